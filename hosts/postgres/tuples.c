/* SPDX-License-Identifier: Apache-2.0
 *
 * The attributes of a page's tuples. Each step passes over all tuples of the page before the next one begins: its loop
 * has no branch on a type, and no tuple waits for what another one has in memory.
 */
#include "quern_pg.h"

#include "lanes.h"
#include "storage/bufpage.h"

/* Attributes of fixed length that follow one another at the same distances in all tuples, or one of another length. */
typedef struct Step {
  int first, num_attributes;
  int align; /* of the first one: bytes */
  int bytes; /* of all; -1: a varlena, -2: a C string */
} Step;

typedef struct Attribute {
  int16 length;
  char align;
  uint16 distance; /* from the begin of its step */
  uint16* places;  /* of packed tuples: bytes from the begin of the page, 0 where it is null; NULL: not read */
} Attribute;

/* low <= value <= high */
typedef struct Range {
  const uint16* places;
  int width;
  int64 low, high;
} Range;

struct PageTuples {
  Attribute* attributes; /* up to the last that is read */
  int num_attributes;
  Step* steps;
  int num_steps;
  int num_varlenas; /* of the steps */
  Range* ranges;
  int num_ranges;
  uint16 ends[MaxHeapTuplesPerPage];  /* of what has been passed of the tuples without nulls */
  uint16 order[MaxHeapTuplesPerPage]; /* of the visible tuples: those without nulls are packed first */
  uint16 in_ranges[MaxHeapTuplesPerPage];
  bool has_lanes; /* AVX-512 */
};

/* The tuples of a page, as far as their data have been found. */
typedef struct Tuples {
  int num_plain, num_nulls;
  uint16 with_nulls[MaxHeapTuplesPerPage];
} Tuples;

/* ---- what is read ---- */

static int bytes_of_align(char align) {
  switch (align) {
    case TYPALIGN_CHAR: return 1;
    case TYPALIGN_SHORT: return ALIGNOF_SHORT;
    case TYPALIGN_INT: return ALIGNOF_INT;
    default: return ALIGNOF_DOUBLE;
  }
}

static void add_attribute(PageTuples* tuples, int number, int length, int align) {
  Step* last = tuples->num_steps > 0 ? &tuples->steps[tuples->num_steps - 1] : NULL;
  Attribute* attribute = &tuples->attributes[number];

  if (length < 0 || last == NULL || last->bytes < 0 || align > last->align) {
    last = &tuples->steps[tuples->num_steps++];
    last->first = number;
    /* A tuple's data begin at the largest alignment. */
    last->align = number == 0 && length > 0 ? MAXIMUM_ALIGNOF : align;
  }
  if (length > 0) {
    attribute->distance = TYPEALIGN(align, last->bytes);
    last->bytes = attribute->distance + length;
  } else {
    last->bytes = length;
    tuples->num_varlenas += length == -1;
  }
  ++last->num_attributes;
}

PageTuples* page_tuples_create(TupleDesc descriptor, int num_attributes) {
  PageTuples* tuples = palloc0(sizeof(PageTuples));

  tuples->num_attributes = num_attributes;
  tuples->has_lanes = lanes_are_there();
  tuples->attributes = palloc0(sizeof(Attribute) * (num_attributes + 1));
  tuples->steps = palloc0(sizeof(Step) * (num_attributes + 1));
  for (int i = 0; i < num_attributes; ++i) {
    const Form_pg_attribute form = TupleDescAttr(descriptor, i);

    tuples->attributes[i].length = form->attlen;
    tuples->attributes[i].align = form->attalign;
    add_attribute(tuples, i, form->attlen, bytes_of_align(form->attalign));
  }
  return tuples;
}

const uint16* page_tuples_read(PageTuples* tuples, AttrNumber attno) {
  Attribute* attribute = &tuples->attributes[attno - 1];

  /* One more, since places are gathered by four bytes. */
  if (attribute->places == NULL) attribute->places = palloc0(sizeof(uint16) * (MaxHeapTuplesPerPage + 1));
  return attribute->places;
}

void page_tuples_add_range(PageTuples* tuples, AttrNumber attno, int width, int64 low, int64 high) {
  const Range range = {.places = page_tuples_read(tuples, attno), .width = width, .low = low, .high = high};

  tuples->ranges = tuples->ranges == NULL ? palloc(sizeof(Range))
                                          : repalloc(tuples->ranges, sizeof(Range) * (tuples->num_ranges + 1));
  tuples->ranges[tuples->num_ranges++] = range;
}

/* ---- a page ---- */

/* Tuples of a page that has been read long ago lie in memory, not in a cache, and in an order that the processor does
 * not foresee. Where the next page is known, its lines are prefetched a few at a time, while attributes of this page
 * are passed: a core waits for some 24 lines at most. Where it is not, tuples to come are prefetched. */
enum { kPrefetchDistance = 8, kPrefetchBytes = 256, kFractionBits = 8 };

typedef struct Ahead {
  const char* page;
  uint32 line;
  uint32 end, stride; /* in bytes << kFractionBits */
} Ahead;

/* `n` calls of prefetch_some prefetch all of a page. */
static Ahead prefetch_in(const char* page, int n) {
  Ahead ahead = {.page = page, .stride = page == NULL || n == 0 ? 0 : (BLCKSZ << kFractionBits) / n};

  return ahead;
}

/* Into the L2 cache, which waits for more lines at a time than L1 does. */
static pg_attribute_always_inline void prefetch_some(Ahead* ahead, int calls) {
  ahead->end += ahead->stride * calls;
  for (; ahead->line < ahead->end >> kFractionBits; ahead->line += QUERN_CACHE_LINE)
    __builtin_prefetch(ahead->page + ahead->line, 0, 2);
}

static void prefetch_tuple(Page page, OffsetNumber number) {
  const ItemId item = PageGetItemId(page, number);
  const char* tuple = PageGetItem(page, item);

  for (unsigned i = 0; i < Min(ItemIdGetLength(item), kPrefetchBytes); i += QUERN_CACHE_LINE)
    __builtin_prefetch(tuple + i);
}

/* Passes attributes of fixed length. */
static void pass_fixed(PageTuples* tuples, const Step* step, int n) {
  const uint16 mask = (uint16)(step->align - 1), bytes = (uint16)step->bytes;
  uint16* const restrict ends = tuples->ends;

  for (int i = step->first; i < step->first + step->num_attributes; ++i) {
    const uint16 distance = tuples->attributes[i].distance;
    uint16* const restrict places = tuples->attributes[i].places;

    if (places == NULL) continue;
    for (int k = 0; k < n; ++k) places[k] = (uint16)(((ends[k] + mask) & ~mask) + distance);
  }
  for (int k = 0; k < n; ++k) ends[k] = (uint16)(((ends[k] + mask) & ~mask) + bytes);
}

/* Passes a varlena of tuples begin .. end - 1. Returns whether one is compressed or stored elsewhere. */
static bool pass_varlena_of(PageTuples* tuples, const Step* step, const char* page, int begin, int end, Ahead* next) {
  const unsigned mask = step->align - 1;
  uint16* const places = tuples->attributes[step->first].places;
  bool is_extended = false;
  Ahead ahead = *next;

  for (int k = begin; k < end; ++k) {
    const unsigned at_end = tuples->ends[k];
    const unsigned place = VARATT_NOT_PAD_BYTE(page + at_end) ? at_end : (at_end + mask) & ~mask;
    const char* at = page + place;

    prefetch_some(&ahead, 1);
    if (places != NULL) places[k] = (uint16)place;
    if (likely(VARATT_IS_1B(at) && !VARATT_IS_1B_E(at))) {
      tuples->ends[k] = (uint16)(place + VARSIZE_1B(at));
    } else {
      is_extended |= VARATT_IS_EXTENDED(at);
      tuples->ends[k] = (uint16)(place + VARSIZE_ANY(at));
    }
  }
  *next = ahead;
  return is_extended;
}

static bool pass_varlena_by_one(PageTuples* tuples, const Step* step, const char* page, int n, Ahead* next) {
  const bool is_extended = pass_varlena_of(tuples, step, page, 0, n, next);

  return is_extended && tuples->attributes[step->first].places != NULL;
}

static void pass_c_string(PageTuples* tuples, const char* page, int n) {
  for (int k = 0; k < n; ++k) tuples->ends[k] += (uint16)(strlen(page + tuples->ends[k]) + 1);
}

/* Finds the attributes of a tuple that has nulls. */
static bool pass_with_nulls(PageTuples* tuples, const char* page, HeapTupleHeader tuple, int k) {
  const uint32 data = (uint32)((const char*)tuple + tuple->t_hoff - page);
  uint32 offset = 0;
  bool is_extended = false;

  for (int i = 0; i < tuples->num_attributes; ++i) {
    const Attribute* attribute = &tuples->attributes[i];
    const char* at;

    if (att_isnull(i, tuple->t_bits)) {
      if (attribute->places != NULL) attribute->places[k] = 0;
      continue;
    }
    offset = att_align_pointer(offset, attribute->align, attribute->length, page + data + offset);
    at = page + data + offset;
    if (attribute->places != NULL) {
      attribute->places[k] = (uint16)(data + offset);
      is_extended |= attribute->length == -1 && VARATT_IS_EXTENDED(at) && (!VARATT_IS_1B(at) || VARATT_IS_1B_E(at));
    }
    offset = att_addlength_pointer(offset, attribute->length, at);
  }
  return is_extended;
}

/* Keeps the tuples whose value lies in a range; a null reads the begin of the page. */
static pg_attribute_always_inline int keep_in_range(const Range* range, int width, const char* page, uint16* kept,
                                                    int n) {
  const uint16* const places = range->places;
  const int64 low = range->low, high = range->high;
  int num_kept = 0;

  for (int i = 0; i < n; ++i) {
    const uint16 k = kept[i], place = places[k];
    const int64 value = width == 4 ? *(const int32*)(page + place) : *(const int64*)(page + place);

    kept[num_kept] = k;
    num_kept += (place != 0) & (value >= low) & (value <= high);
  }
  return num_kept;
}

static int keep_in_ranges(const PageTuples* tuples, const char* page, uint16* kept, int n) {
  for (int i = 0; i < tuples->num_ranges; ++i) {
    const Range* range = &tuples->ranges[i];

    n = range->width == 4 ? keep_in_range(range, 4, page, kept, n) : keep_in_range(range, 8, page, kept, n);
  }
  return n;
}

/* Finds where the data of a tuple begin, or adds it to those with nulls; false where it lacks attributes. */
static pg_attribute_always_inline bool begin_tuple(PageTuples* tuples, const char* page, OffsetNumber number, int i,
                                                   Tuples* begun) {
  const ItemId item = PageGetItemId((Page)page, number);
  const HeapTupleHeader tuple = (HeapTupleHeader)PageGetItem((Page)page, item);

  if (HeapTupleHeaderGetNatts(tuple) < tuples->num_attributes) return false;
  if ((tuple->t_infomask & HEAP_HASNULL) != 0) {
    begun->with_nulls[begun->num_nulls++] = (uint16)i;
  } else {
    tuples->order[i] = (uint16)begun->num_plain;
    tuples->ends[begun->num_plain++] = (uint16)(ItemIdGetOffset(item) + tuple->t_hoff);
  }
  return true;
}

/* Tuples that have been prefetched with their page. */
static bool begin_tuples_by_one(PageTuples* tuples, const char* page, const OffsetNumber* visible, int begin, int end,
                                Tuples* begun, Ahead* ahead) {
  for (int i = begin; i < end; ++i) {
    prefetch_some(ahead, 1);
    if (!begin_tuple(tuples, page, visible[i], i, begun)) return false;
  }
  return true;
}

static bool begin_tuples_of_cold_page(PageTuples* tuples, const char* page, const OffsetNumber* visible, int n,
                                      Tuples* begun, Ahead* ahead) {
  int num_prefetched = 0;

  while (num_prefetched < Min(n, kPrefetchDistance)) prefetch_tuple((Page)page, visible[num_prefetched++]);
  for (int i = 0; i < n; ++i) {
    if (num_prefetched < n) prefetch_tuple((Page)page, visible[num_prefetched++]);
    prefetch_some(ahead, 1);
    if (!begin_tuple(tuples, page, visible[i], i, begun)) return false;
  }
  return true;
}

/* ---- sixteen tuples at a time ---- */

#ifdef HAS_LANES

enum { kLanes = 16 };

/* The 4 bytes at places of a page that are multiples of 4. */
OF_LANES static pg_attribute_always_inline __m512i gather(const char* page, __m512i places) {
  return _mm512_i32gather_epi32(places, page, 1);
}

OF_LANES static pg_attribute_always_inline __m512i load_numbers(const uint16* numbers) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)numbers));
}

OF_LANES static pg_attribute_always_inline void store_numbers(uint16* numbers, __m512i from) {
  _mm256_storeu_si256((__m256i*)numbers, _mm512_cvtepi32_epi16(from));
}

/* As begin_tuple, where no tuple has nulls or lacks attributes; false: one does. */
OF_LANES static pg_attribute_always_inline bool begin_lanes(PageTuples* tuples, const char* page,
                                                            const OffsetNumber* visible, int i, Tuples* begun) {
  enum { kToInfomask2 = 16, kToInfomask = 20, kOffsetBits = 15 };
  const __m512i first = _mm512_set1_epi32(offsetof(PageHeaderData, pd_linp) - sizeof(ItemIdData));
  const __m512i items = gather(page, _mm512_add_epi32(_mm512_slli_epi32(load_numbers(visible + i), 2), first));
  const __m512i offsets = _mm512_and_si512(items, _mm512_set1_epi32((1 << kOffsetBits) - 1));
  const __m512i infomask2 = gather(page, _mm512_add_epi32(offsets, _mm512_set1_epi32(kToInfomask2)));
  const __m512i infomask = gather(page, _mm512_add_epi32(offsets, _mm512_set1_epi32(kToInfomask)));
  const __m512i natts = _mm512_and_si512(_mm512_srli_epi32(infomask2, 16), _mm512_set1_epi32(HEAP_NATTS_MASK));
  const __m512i begins = _mm512_and_si512(_mm512_srli_epi32(infomask, 16), _mm512_set1_epi32(0xff));
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);

  StaticAssertStmt(offsetof(HeapTupleHeaderData, t_infomask2) == kToInfomask2 + 2, "a tuple's header");
  StaticAssertStmt(offsetof(HeapTupleHeaderData, t_infomask) == kToInfomask, "a tuple's header");
  StaticAssertStmt(offsetof(HeapTupleHeaderData, t_hoff) == kToInfomask + 2, "a tuple's header");
  if (_mm512_test_epi32_mask(infomask, _mm512_set1_epi32(HEAP_HASNULL)) != 0) return false;
  if (_mm512_cmplt_epi32_mask(natts, _mm512_set1_epi32(tuples->num_attributes)) != 0) return false;
  store_numbers(tuples->order + i, _mm512_add_epi32(lanes, _mm512_set1_epi32(begun->num_plain)));
  store_numbers(tuples->ends + begun->num_plain, _mm512_add_epi32(offsets, begins));
  begun->num_plain += kLanes;
  return true;
}

OF_LANES static bool begin_tuples_by_lanes(PageTuples* tuples, const char* page, const OffsetNumber* visible, int n,
                                           Tuples* begun, Ahead* ahead) {
  int i = 0;

  for (; i + kLanes <= n; i += kLanes) {
    if (begin_lanes(tuples, page, visible, i, begun)) prefetch_some(ahead, kLanes);
    else if (!begin_tuples_by_one(tuples, page, visible, i, i + kLanes, begun, ahead)) return false;
  }
  return begin_tuples_by_one(tuples, page, visible, i, n, begun, ahead);
}

/* As pass_varlena_of, where all headers have one byte; false: one has not. */
OF_LANES static pg_attribute_always_inline bool pass_lanes(PageTuples* tuples, uint16* places, const char* page,
                                                           int k) {
  const __m512i one = _mm512_set1_epi32(1), low = _mm512_set1_epi32(3);
  const __m512i ends = load_numbers(tuples->ends + k);
  const __m512i words = gather(page, _mm512_andnot_si512(low, ends));
  const __m512i shifts = _mm512_slli_epi32(_mm512_and_si512(ends, low), 3);
  const __m512i headers = _mm512_and_si512(_mm512_srlv_epi32(words, shifts), _mm512_set1_epi32(0xff));
  const __mmask16 are_short = _mm512_test_epi32_mask(headers, one) & _mm512_cmpneq_epi32_mask(headers, one);

  if (are_short != 0xffff) return false;
  if (places != NULL) store_numbers(places + k, ends);
  store_numbers(tuples->ends + k, _mm512_add_epi32(ends, _mm512_srli_epi32(headers, 1)));
  return true;
}

OF_LANES static bool pass_varlena_by_lanes(PageTuples* tuples, const Step* step, const char* page, int n, Ahead* next) {
  uint16* const places = tuples->attributes[step->first].places;
  bool is_extended = false;
  int k = 0;

  for (; k + kLanes <= n; k += kLanes) {
    if (pass_lanes(tuples, places, page, k)) prefetch_some(next, kLanes);
    else is_extended |= pass_varlena_of(tuples, step, page, k, k + kLanes, next);
  }
  is_extended |= pass_varlena_of(tuples, step, page, k, n, next);
  return is_extended && places != NULL;
}

#else

static bool begin_tuples_by_lanes(PageTuples* tuples, const char* page, const OffsetNumber* visible, int n,
                                  Tuples* begun, Ahead* ahead) {
  return begin_tuples_by_one(tuples, page, visible, 0, n, begun, ahead);
}

static bool pass_varlena_by_lanes(PageTuples* tuples, const Step* step, const char* page, int n, Ahead* next) {
  return pass_varlena_by_one(tuples, step, page, n, next);
}

#endif

/* ---- all of it ---- */

PageKind page_tuples_find(PageTuples* tuples, const char* page, bool is_prefetched, const char* next,
                          const OffsetNumber* visible, int n, FoundTuples* found) {
  Tuples begun = {.num_plain = 0};
  Ahead ahead = prefetch_in(next, n * (1 + tuples->num_varlenas));
  bool is_extended = false, are_whole;

  if (!is_prefetched) are_whole = begin_tuples_of_cold_page(tuples, page, visible, n, &begun, &ahead);
  else if (tuples->has_lanes) are_whole = begin_tuples_by_lanes(tuples, page, visible, n, &begun, &ahead);
  else are_whole = begin_tuples_by_one(tuples, page, visible, 0, n, &begun, &ahead);
  if (!are_whole) return PAGE_BY_SLOTS;
  for (int i = 0; i < tuples->num_steps; ++i) {
    const Step* step = &tuples->steps[i];

    if (step->bytes >= 0) pass_fixed(tuples, step, begun.num_plain);
    else if (step->bytes == -2) pass_c_string(tuples, page, begun.num_plain);
    else if (tuples->has_lanes) is_extended |= pass_varlena_by_lanes(tuples, step, page, begun.num_plain, &ahead);
    else is_extended |= pass_varlena_by_one(tuples, step, page, begun.num_plain, &ahead);
  }
  for (int i = 0; i < begun.num_nulls; ++i) {
    const ItemId item = PageGetItemId((Page)page, visible[begun.with_nulls[i]]);
    const int k = begun.num_plain + i;

    tuples->order[begun.with_nulls[i]] = (uint16)k;
    is_extended |= pass_with_nulls(tuples, page, (HeapTupleHeader)PageGetItem((Page)page, item), k);
  }
  memcpy(tuples->in_ranges, tuples->order, sizeof(uint16) * n);
  found->page = page;
  found->tuples = tuples->in_ranges;
  found->num_tuples = keep_in_ranges(tuples, page, tuples->in_ranges, n);
  found->has_nulls = begun.num_nulls > 0;
  found->has_lanes = tuples->has_lanes;
  return is_extended ? PAGE_BY_ROWS : PAGE_BY_COLUMNS;
}
