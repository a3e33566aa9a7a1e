// SPDX-License-Identifier: Apache-2.0
#include "codegen/emit/input_streams.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "runtime/rows/prefetch_lines.h"
#include "runtime/spec/column_type.h"

namespace quern {
namespace {

using llvm::Value;

constexpr uint32_t kLineBytes = 64;
// Operands of llvm.prefetch. Which cache: prefetch_lines.h.
constexpr uint32_t kToRead = 0, kToL1 = 3, kToL2 = 2, kOfData = 1;

// The array of a column that is read element after element.
struct ColumnArray {
  uint32_t bytes;  // of an element; 0: too little to be worth a prefetch of its own
  uint64_t pointer_offset;
};

ColumnArray ArrayOf(Storage storage) {
  constexpr uint64_t kValues = offsetof(QuernColumn, values), kOffsets = offsetof(QuernColumn, offsets);
  switch (storage) {
    case k16: return {2, kValues};
    case k32:
    case kF32: return {4, kValues};
    case k64:
    case kF64: return {8, kValues};
    case k128:
    case kView: return {16, kValues};
    case kVar32: return {4, kOffsets};
    case kVar64: return {8, kOffsets};
    case kBit:
    case k8:
    case kFixed:
    case kRowId:
    case kNoStorage: break;
  }
  return {0, kValues};
}

}  // namespace

void InputStreams::Add(Value* column, Storage storage) {
  if (rows_ahead_ == 0) return;
  const ColumnArray array = ArrayOf(storage);
  if (array.bytes != 0) streams_.push_back({e_.LoadPointer(column, array.pointer_offset, "stream"), array.bytes});
}

void InputStreams::AddColumnsOf(const QuernMapDescriptor* map, Value* columns, std::set<uint32_t> others) {
  if (map == nullptr) return;
  for (uint32_t k = 0; k < map->num_instructions; ++k) {
    const QuernMapInstruction& load = map->instructions[k];
    if (load.function != kLoadLanes || !others.insert(load.column).second) continue;
    Add(e_.Element(columns, load.column, sizeof(QuernColumn), "read" + llvm::Twine(load.column)), load.storage);
  }
}

void InputStreams::Prefetch(Value* row) {
  const uint32_t cache = rows_ahead_ <= kNearInputRows ? kToL1 : kToL2;
  for (const Stream& stream : streams_) {
    for (uint32_t line = 0; line < std::max(1u, stream.bytes * kRowsPerPrefetch / kLineBytes); ++line) {
      Value* offset =
          e_.ir().CreateAdd(e_.ir().CreateMul(row, e_.I64(stream.bytes)),
                            e_.I64(uint64_t{rows_ahead_} * stream.bytes + line * kLineBytes), "prefetch_offset");
      Value* at = e_.ir().CreateGEP(e_.ir().getInt8Ty(), stream.begin, offset, "prefetch_at");
      e_.ir().CreateIntrinsic(llvm::Intrinsic::prefetch, {at->getType()},
                              {at, e_.I32(kToRead), e_.I32(cache), e_.I32(kOfData)});
    }
  }
}

}  // namespace quern
