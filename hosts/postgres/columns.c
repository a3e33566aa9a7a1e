/* SPDX-License-Identifier: Apache-2.0 */
#include "quern_pg.h"

#include "utils/builtins.h"

/* A view, as Arrow has it: up to 12 bytes in place, others in the arena. */
typedef struct View {
  uint32 length;
  char prefix[4];
  uint32 buffer, offset;
} View;

enum { kInlineBytes = 12 };

static int width_of(const ColumnPlan* plan) {
  switch (plan->kind) {
    case KIND_BYVALUE:
    case KIND_FIXED: return plan->width;
    case KIND_I64_OF_I16:
    case KIND_I64_OF_I32:
    case KIND_F64_OF_F32: return 8;
    case KIND_BOOL:
    case KIND_FLAG: return 1;
    case KIND_VARLENA:
    case KIND_TEXT:
    case KIND_TRIMMED:
    case KIND_DECIMAL:
    case KIND_NUMERIC_KEY: return 16;
  }
  return 16;
}

static bool has_bytes(ColumnKind kind) {
  return kind == KIND_VARLENA || kind == KIND_TEXT || kind == KIND_TRIMMED || kind == KIND_NUMERIC_KEY;
}

static Columns* create(const List* plans, int capacity) {
  Columns* columns = palloc0(sizeof(Columns));
  const int n = list_length(plans);

  columns->num_columns = n;
  columns->capacity = capacity;
  columns->buffers = palloc0(sizeof(ColumnBuffer) * (n + 1));
  columns->vectors = palloc0(sizeof(quern_column) * (n + 1));
  for (int i = 0; i < n; ++i) {
    const ColumnPlan* plan = list_nth(plans, i);
    ColumnBuffer* buffer = &columns->buffers[i];

    buffer->kind = plan->kind;
    buffer->width = width_of(plan);
    buffer->scale = plan->scale;
    buffer->values = palloc_extended((Size)buffer->width * capacity, MCXT_ALLOC_HUGE);
    buffer->validity = palloc((capacity + 7) / 8);
  }
  return columns;
}

Columns* columns_create(const List* plans, int capacity) {
  Columns* columns = create(plans, capacity);

  bytes_reserve(&columns->bytes, 1);
  return columns;
}

Columns* columns_create_for_thread(const List* plans, const Columns* like) {
  Columns* columns = create(plans, like->capacity);

  for (int i = 0; i < columns->num_columns; ++i) columns->buffers[i].attno = like->buffers[i].attno;
  columns->bytes.of_thread = true;
  return columns;
}

void columns_free_bytes(Columns* columns) {
  if (columns->bytes.of_thread) free(columns->bytes.data);
  columns->bytes.data = NULL;
  columns->bytes.used = columns->bytes.size = 0;
}

void columns_clear(Columns* columns) {
  columns->bytes.used = 0;
  columns->inexact = false;
  for (int i = 0; i < columns->num_columns; ++i) columns->buffers[i].has_nulls = false;
}

/* Makes the view of the arena's last bytes, from `begin` on. Bytes that fit the view leave the arena again. */
static void put_view(Columns* columns, ColumnBuffer* column, int row, Size begin) {
  View* view = (View*)column->values + row;
  const Size length = columns->bytes.used - begin;

  view->length = (uint32)length;
  if (length <= kInlineBytes) {
    memset(view->prefix, 0, kInlineBytes);
    memcpy(view->prefix, columns->bytes.data + begin, length);
    columns->bytes.used = begin;
  } else {
    memcpy(view->prefix, columns->bytes.data + begin, sizeof(view->prefix));
    view->buffer = 0;
    view->offset = (uint32)begin;
  }
}

/* A header of one byte up to 126 bytes in all, of four above: the one form that equal values share. */
static void append_varlena(Bytes* bytes, const char* data, Size length) {
  const bool is_short = length + VARHDRSZ_SHORT <= VARATT_SHORT_MAX;
  const Size header = is_short ? VARHDRSZ_SHORT : VARHDRSZ;
  char* out = bytes_reserve(bytes, length + header);

  if (is_short) SET_VARSIZE_1B(out, length + header);
  else SET_VARSIZE_4B(out, length + header);
  memcpy(out + header, data, length);
  bytes->used += length + header;
}

static void put_bytes(Columns* columns, ColumnBuffer* column, int row, struct varlena* value) {
  const char* data = VARDATA_ANY(value);
  Size length = VARSIZE_ANY_EXHDR(value);
  const Size begin = columns->bytes.used;

  switch (column->kind) {
    case KIND_VARLENA: append_varlena(&columns->bytes, data, length); break;
    case KIND_NUMERIC_KEY: numeric_append_key(value, &columns->bytes); break;
    default:
      if (column->kind == KIND_TRIMMED)
        while (length > 0 && data[length - 1] == ' ') --length;
      memcpy(bytes_reserve(&columns->bytes, length), data, length);
      columns->bytes.used += length;
  }
  put_view(columns, column, row, begin);
}

/* A value that is neither compressed nor stored elsewhere. */
static void put_plain(Columns* columns, ColumnBuffer* column, int row, struct varlena* value) {
  if (column->kind == KIND_DECIMAL) {
    Decimal decimal = 0;

    if (!decimal_of_numeric(value, column->scale, &decimal)) columns->inexact = true;
    memcpy(column->values + (Size)16 * row, &decimal, 16);
  } else {
    put_bytes(columns, column, row, value);
  }
}

static void put_varlena(Columns* columns, ColumnBuffer* column, int row, struct varlena* stored) {
  struct varlena* plain;

  if (likely(!VARATT_IS_EXTENDED(stored) || (VARATT_IS_1B(stored) && !VARATT_IS_1B_E(stored)))) {
    put_plain(columns, column, row, stored);
    return;
  }
  plain = pg_detoast_datum_packed(stored);
  put_plain(columns, column, row, plain);
  if (plain != stored) pfree(plain);
}

void columns_put_stored(Columns* columns, ColumnBuffer* column, int row, const char* at) {
  switch (column->kind) {
    case KIND_BYVALUE:
      switch (column->width) {
        case 1: ((uint8*)column->values)[row] = *(const uint8*)at; break;
        case 2: ((uint16*)column->values)[row] = *(const uint16*)at; break;
        case 4: ((uint32*)column->values)[row] = *(const uint32*)at; break;
        default: ((uint64*)column->values)[row] = *(const uint64*)at; break;
      }
      break;
    case KIND_I64_OF_I16: ((int64*)column->values)[row] = *(const int16*)at; break;
    case KIND_I64_OF_I32: ((int64*)column->values)[row] = *(const int32*)at; break;
    case KIND_F64_OF_F32: ((float8*)column->values)[row] = *(const float4*)at; break;
    case KIND_FIXED: memcpy(column->values + (Size)column->width * row, at, column->width); break;
    case KIND_VARLENA:
    case KIND_TEXT:
    case KIND_TRIMMED:
    case KIND_DECIMAL:
    case KIND_NUMERIC_KEY: put_varlena(columns, column, row, (struct varlena*)at); break;
    case KIND_BOOL: column->values[row] = *at != 0; break;
    case KIND_FLAG: column->values[row] = 0; break;
  }
}

/* ---- tuples of a page ---- */

/* Bytes behind a value that may be read with it, as long as they lie in the page. */
enum { kChunk = 16 };

static bool chunk_fits(const FoundTuples* found, const char* at) { return at + kChunk <= found->page + BLCKSZ; }

/* Copies to where kChunk bytes more than `length` may be written. */
static void copy_bytes(const FoundTuples* found, char* out, const char* from, Size length) {
  if (likely(chunk_fits(found, from + length))) {
    for (Size i = 0; i < length; i += kChunk) memcpy(out + i, from + i, kChunk);
  } else {
    memcpy(out, from, length);
  }
}

/* Makes a view of bytes that lie in the page: a copy of them, in the view or in the arena, which has room. */
static pg_attribute_always_inline void view_stored(Columns* columns, const FoundTuples* found, const char* data,
                                                   Size length, View* view) {
  view->length = (uint32)length;
  if (length > kInlineBytes) {
    memcpy(view->prefix, data, sizeof(view->prefix));
    view->buffer = 0;
    view->offset = (uint32)columns->bytes.used;
    copy_bytes(found, columns->bytes.data + columns->bytes.used, data, length);
    columns->bytes.used += length;
  } else if (likely(chunk_fits(found, data))) {
    const uint64 low_mask = length < 8 ? ((uint64)1 << (8 * length)) - 1 : PG_UINT64_MAX;
    const uint32 high_mask = length > 8 ? (uint32)(((uint64)1 << (8 * (length - 8))) - 1) : 0;
    uint64 low;
    uint32 high;

    memcpy(&low, data, sizeof(low));
    memcpy(&high, data + sizeof(low), sizeof(high));
    low &= low_mask;
    high &= high_mask;
    memcpy(view->prefix, &low, sizeof(low));
    memcpy(view->prefix + sizeof(low), &high, sizeof(high));
  } else {
    memset(view->prefix, 0, kInlineBytes);
    memcpy(view->prefix, data, length);
  }
}

/* The strings of a page have less than BLCKSZ bytes, so that the arena is asked for room once. */
static pg_attribute_always_inline void put_strings(Columns* columns, ColumnBuffer* column, const uint16* places,
                                                   const FoundTuples* found, int first, int n, int row,
                                                   ColumnKind kind) {
  View* views = (View*)column->values + row;

  bytes_reserve(&columns->bytes, BLCKSZ + kChunk);
  for (int i = 0; i < n; ++i) {
    const char* at = found->page + places[found->tuples[first + i]];
    const bool is_short = VARATT_IS_1B(at);
    const char* data = at + (is_short ? VARHDRSZ_SHORT : VARHDRSZ);
    Size length = is_short ? VARSIZE_1B(at) - VARHDRSZ_SHORT : VARSIZE_4B(at) - VARHDRSZ;

    if (at == found->page) continue;
    if (kind == KIND_TRIMMED)
      while (length > 0 && data[length - 1] == ' ') --length;
    if (kind == KIND_VARLENA) {
      /* Stored in the canonical form, unless it has a long header without need. */
      if (unlikely(!is_short && length + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)) {
        put_bytes(columns, column, row + i, (struct varlena*)at);
        bytes_reserve(&columns->bytes, BLCKSZ + kChunk);
        continue;
      }
      length += data - at;
      data = at;
    }
    view_stored(columns, found, data, length, &views[i]);
  }
}

#define PUT_VALUES(to, from)                                                              \
  do {                                                                                    \
    to* out = (to*)column->values + row;                                                  \
    for (int i = 0; i < n; ++i) out[i] = *(const from*)(found->page + places[tuples[i]]); \
  } while (0)

static void put_values(ColumnBuffer* column, const uint16* places, const FoundTuples* found, int first, int n,
                       int row) {
  const uint16* tuples = found->tuples + first;
  const Size width = column->width;

  switch (column->kind) {
    case KIND_I64_OF_I16: PUT_VALUES(int64, int16); break;
    case KIND_I64_OF_I32: PUT_VALUES(int64, int32); break;
    case KIND_F64_OF_F32: PUT_VALUES(float8, float4); break;
    case KIND_BOOL:
      for (int i = 0; i < n; ++i) column->values[row + i] = found->page[places[tuples[i]]] != 0;
      break;
    case KIND_FIXED:
      for (int i = 0; i < n; ++i) memcpy(column->values + width * (row + i), found->page + places[tuples[i]], width);
      break;
    default:
      switch (width) {
        case 1: PUT_VALUES(uint8, uint8); break;
        case 2: PUT_VALUES(uint16, uint16); break;
        case 4: PUT_VALUES(uint32, uint32); break;
        default: PUT_VALUES(uint64, uint64); break;
      }
  }
}

void columns_put_found(Columns* columns, ColumnBuffer* column, const uint16* places, const FoundTuples* found,
                       int first, int n, int row) {
  switch (column->kind) {
    case KIND_FLAG: memset(column->values + row, 0, n); break;
    case KIND_DECIMAL:
      if (!decimals_of_found(column->values + sizeof(Decimal) * row, column->scale, places, found, first, n))
        columns->inexact = true;
      break;
    case KIND_TEXT: put_strings(columns, column, places, found, first, n, row, KIND_TEXT); break;
    case KIND_TRIMMED: put_strings(columns, column, places, found, first, n, row, KIND_TRIMMED); break;
    case KIND_VARLENA: put_strings(columns, column, places, found, first, n, row, KIND_VARLENA); break;
    case KIND_NUMERIC_KEY:
      for (int i = 0; i < n; ++i) {
        const uint16 place = places[found->tuples[first + i]];

        if (place != 0) put_bytes(columns, column, row + i, (struct varlena*)(found->page + place));
      }
      break;
    default: put_values(column, places, found, first, n, row); break;
  }
  if (!found->has_nulls) return;
  for (int i = 0; i < n; ++i)
    if (places[found->tuples[first + i]] == 0) columns_put_null(columns, column, row + i);
}

/* ---- single values ---- */

void columns_put(Columns* columns, ColumnBuffer* column, int row, Datum value) {
  switch (column->kind) {
    case KIND_BYVALUE:
      switch (column->width) {
        case 1: ((uint8*)column->values)[row] = (uint8)value; break;
        case 2: ((uint16*)column->values)[row] = (uint16)value; break;
        case 4: ((uint32*)column->values)[row] = (uint32)value; break;
        default: ((uint64*)column->values)[row] = (uint64)value; break;
      }
      break;
    case KIND_I64_OF_I16: ((int64*)column->values)[row] = DatumGetInt16(value); break;
    case KIND_I64_OF_I32: ((int64*)column->values)[row] = DatumGetInt32(value); break;
    case KIND_F64_OF_F32: ((float8*)column->values)[row] = DatumGetFloat4(value); break;
    case KIND_BOOL: column->values[row] = DatumGetBool(value); break;
    case KIND_FLAG: column->values[row] = 0; break;
    case KIND_FIXED:
    case KIND_VARLENA:
    case KIND_TEXT:
    case KIND_TRIMMED:
    case KIND_DECIMAL:
    case KIND_NUMERIC_KEY: columns_put_stored(columns, column, row, DatumGetPointer(value)); break;
  }
}

void columns_put_null(Columns* columns, ColumnBuffer* column, int row) {
  if (!column->has_nulls) {
    memset(column->validity, 0xff, (columns->capacity + 7) / 8);
    column->has_nulls = true;
  }
  column->validity[row >> 3] &= (uint8) ~(1 << (row & 7));
  memset(column->values + (Size)column->width * row, 0, column->width);
}

void columns_finish(Columns* columns) {
  columns->arena = (const uint8*)columns->bytes.data;
  for (int i = 0; i < columns->num_columns; ++i) {
    const ColumnBuffer* buffer = &columns->buffers[i];
    quern_column* vector = &columns->vectors[i];

    vector->values = buffer->values;
    vector->validity = buffer->has_nulls ? buffer->validity : NULL;
    vector->flags = buffer->kind == KIND_BOOL ? QUERN_COLUMN_BYTES : 0;
    vector->buffers = has_bytes(buffer->kind) ? &columns->arena : NULL;
  }
}
