// SPDX-License-Identifier: Apache-2.0
// The generic filter kernel: the template ir-templates/filter.cc, compiled natively, with a hole that interprets the
// descriptor's mask operations. A leaf is tested by the same blocks as in a compiled kernel, 64 rows at a time, and the
// remaining rows by the same calls (filter_leaves.cc):
//
//     filter i64 >= 5, 1000 rows      TestRange<k64>      15 words, 960 rows
//                                     TestLeafRows        40 rows
//
// It dispatches once per piece and leaf and loads constants from memory, so a generic kernel is only slightly slower
// when there are many rows.
#include "ir-templates/generic/generic_filter.h"

#include <algorithm>
#include <vector>

#include "ir-templates/holes.h"
#include "runtime/blocks/filter_leaves.h"
#include "runtime/blocks/filter_strings.h"
#include "runtime/blocks/storage_dispatch.h"

extern "C" void quern_filter_mask(QuernFilterArgs* args);

namespace quern {
namespace {

namespace b = blocks;

template <Storage kStorage>
uint32_t TestStringWords(const LeafRows& r) {
  const QuernFilterLeaf& l = r.leaf;
  if (l.kind == kEqualLeaf) {
    return b::TestEqual<kStorage>(r.column, r.first, r.rows, r.n, r.mask, l.constants, l.length, l.low[0], l.low[1],
                                  l.span[0], l.span[1], l.rule, l.negated, r.prefetches);
  }
  if (l.kind == kOrderLeaf) {
    return b::TestOrder<kStorage>(r.column, r.first, r.rows, r.n, r.mask, l.low[0], l.constants, l.text_length, l.rule,
                                  l.comparison);
  }
  const bool has_affixes = b::PartOf(l.constants, 0).constant.length + b::PartOf(l.constants, 1).constant.length != 0;
  return b::TestParts<kStorage>(r.column, r.first, r.rows, r.n, r.mask, l.constants, l.num_parts, l.min_length,
                                l.is_whole, has_affixes, l.rule, l.negated);
}

uint32_t TestRangeWords(const LeafRows& r) {
  const QuernFilterLeaf& l = r.leaf;
  return DispatchStorage(l.storage, [&](auto tag) -> uint32_t {
    constexpr Storage kStorage = decltype(tag)::value;
    if constexpr (kStorage == kBit) {
      return b::TestBits(r.column, r.first, r.rows, r.n, r.mask, (l.low[0] != 0) != l.negated);
    } else if constexpr (kStorage == k128) {
      return b::TestWideRange(r.column, r.first, r.rows, r.n, r.mask, r.rows_ahead, l.low[0], l.low[1], l.span[0],
                              l.span[1], l.negated);
    } else if constexpr (b::HasLanes(kStorage)) {
      return b::TestRange<kStorage>(r.column, r.first, r.rows, r.n, r.mask, r.rows_ahead, l.low[0], l.span[0],
                                    l.negated);
    } else {
      return 0;
    }
  });
}

uint32_t TestColumnWords(const LeafRows& r) {
  return DispatchStorage(r.leaf.storage, [&](auto tag) -> uint32_t {
    constexpr Storage kStorage = decltype(tag)::value;
    if constexpr (b::HasLanes(kStorage)) {
      return b::TestColumns<kStorage>(r.column, r.other, r.first, r.rows, r.n, r.mask, r.rows_ahead, r.leaf.comparison,
                                      r.leaf.is_signed);
    } else {
      return 0;
    }
  });
}

// Returns how many rows the leaf's blocks have tested.
uint32_t TestPackedKeys(const LeafRows& r) {
  const QuernFilterLeaf& l = r.leaf;
  if (l.index_storage != kNoStorage || l.other_index_storage != kNoStorage) return 0;
  switch (l.kind) {
    case kRangeLeaf: return TestRangeWords(r);
    case kColumnsLeaf: return TestColumnWords(r);
    case kEqualLeaf:
    case kOrderLeaf:
    case kPartsLeaf:
      if (l.storage == kVar32) return TestStringWords<kVar32>(r);
      if (l.storage == kVar64) return TestStringWords<kVar64>(r);
      return l.storage == kView ? TestStringWords<kView>(r) : 0;
    case kNullLeaf:
    case kPatternLeaf:
    case kSetLeaf: return 0;
  }
  __builtin_unreachable();
}

void TestLeaf(const QuernFilterArgs* args, uint32_t leaf, uint64_t first, uint32_t n, uint64_t* mask) {
  const uint32_t done = TestPackedKeys(RowsOf(args, leaf, first, n, mask));
  if (done < n) TestLeafRows(args, leaf, RowsOf(args, leaf, first + done, n - done, mask + done / 64));
}

void RunStep(const QuernFilterArgs* args, const QuernMaskOperation& step, uint64_t first, uint32_t n,
             uint64_t* const* masks) {
  const uint32_t num_words = (n + 63) / 64;
  uint64_t *to = masks[step.to], *from = masks[step.from], *todo = masks[step.todo];
  switch (step.kind) {
    case kTestValid:
      return b::TestValid(&args->columns[step.column], first,
                          args->selection != nullptr ? args->selection + first : nullptr, n, to, false);
    case kTestLeaf: return TestLeaf(args, step.leaf, first, n, to);
    case kClearMask: std::fill_n(to, num_words, 0); return;
    case kSplitMask: return b::SplitMask(to, from, num_words);
    case kCopyMask: std::copy_n(from, num_words, to); return;
    case kKeepMask: return b::KeepMask(to, from, todo, num_words);
    case kMergeMask: return b::MergeMask(to, from, num_words);
  }
}

}  // namespace

QuernFilterEntryPoints GenericFilterKernel() { return {quern_filter_mask}; }

}  // namespace quern

using namespace quern;  // NOLINT: the holes below are C symbols that use the code above

extern "C" {

void quern_hole_filter_batch(const QuernFilterArgs* args, uint64_t first, uint32_t n, uint64_t* mask) {
  constexpr uint32_t kFewMasks = 8;
  const uint32_t num_masks = args->descriptor->num_masks;
  uint64_t few[kFewMasks * kMaskWords];
  uint64_t* pointers[kFewMasks + 1] = {mask};
  std::vector<uint64_t> many;
  std::vector<uint64_t*> many_pointers;
  uint64_t *space = few, **masks = pointers;
  if (num_masks > kFewMasks) {
    many.resize(size_t{num_masks} * kMaskWords);
    many_pointers.resize(num_masks);
    space = many.data();
    masks = many_pointers.data();
    masks[0] = mask;
  }
  for (uint32_t m = 1; m < num_masks; ++m) masks[m] = space + size_t{m - 1} * kMaskWords;
  for (uint32_t s = 0; s < args->descriptor->num_steps; ++s) RunStep(args, args->descriptor->steps[s], first, n, masks);
}

}  // extern "C"
