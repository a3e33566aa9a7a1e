// SPDX-License-Identifier: Apache-2.0
// The generic map kernel: the template ir-templates/map.cc, compiled natively, with a hole that interprets the
// instructions. One instruction runs over a piece of 256 rows before the next one does:
//
//     %3 = decimal_subtract %1 %2     switch (function), then a loop over 32 times eight rows
//
// so that it dispatches once for 256 rows, and its values stay in the L1 and L2 caches. Decimals have 128 bits here.
#include "ir-templates/generic/generic_map.h"

#include <algorithm>

#include "ir-templates/holes.h"
#include "runtime/blocks/lane_columns.h"
#include "runtime/blocks/storage_dispatch.h"

extern "C" int32_t quern_map_rows(QuernMapArgs* args);

namespace quern {
namespace {

namespace b = blocks;

// Rows begin .. begin + n - 1 of a batch.
struct Piece {
  QuernMapArgs* args;
  uint32_t begin, n;
  uint32_t num_lanes() const { return (n + b::kLanes - 1) / b::kLanes; }
  QuernLanes* Place(uint32_t instruction) const {
    return args->places + uint64_t{args->descriptor->instructions[instruction].place} * kPieceLanes;
  }
};

void Load(const Piece& piece, const QuernMapInstruction& i, QuernLanes* out) {
  const QuernColumn column = piece.args->columns[i.column];
  uint8_t escaped = 0;
  uint32_t buffer[b::kLanes];
  DispatchStorage(i.storage, [&](auto tag) {
    constexpr Storage kStorage = decltype(tag)::value;
    if constexpr (b::HasLanes(kStorage) || kStorage == kBit || kStorage == k128) {
      for (uint32_t k = 0; k < piece.num_lanes(); ++k) {
        const uint32_t row = piece.begin + k * b::kLanes;
        const b::EightRows rows =
            b::RowsFrom(piece.args->selection, piece.args->first, row, piece.begin + piece.n, buffer);
        b::LoadColumn<kStorage, true>(&column, rows, i.nullable, i.parameters.is_signed, out + k, &escaped);
      }
    }
  });
}

void LoadStringValues(const Piece& piece, const QuernMapInstruction& i, QuernLanes* out) {
  const QuernColumn column = piece.args->string_values[i.column];
  uint8_t escaped = 0;
  for (uint32_t k = 0; k < piece.num_lanes(); ++k) {
    const b::EightRows rows = {piece.begin + k * b::kLanes, nullptr};
    if (i.storage == kBit) b::LoadColumn<kBit, true>(&column, rows, i.nullable, true, out + k, &escaped);
    else b::LoadColumn<k64, true>(&column, rows, i.nullable, true, out + k, &escaped);
  }
}

void LoadStrings(const Piece& piece, const QuernMapInstruction& i, QuernLanes* out) {
  uint32_t buffer[b::kLanes];
  for (uint32_t k = 0; k < piece.num_lanes(); ++k) {
    const b::EightRows rows = b::RowsFrom(piece.args->selection, piece.args->first, piece.begin + k * b::kLanes,
                                          piece.begin + piece.n, buffer);
    quern_rt_load_strings(&piece.args->columns[i.column], rows.first, rows.rows, i.storage,
                          static_cast<Storage>(i.parameters.low), i.nullable, out + k);
  }
}

// Returns the first row of the piece that has failed, or n.
uint32_t Store(const Piece& piece, const QuernMapInstruction& i, const QuernLanes* values) {
  QuernOutColumn* column = &piece.args->results[i.column];
  uint64_t null_count = 0;
  const b::ResultColumn to = {column->values, column->validity, &null_count};
  uint32_t first_failed = piece.n;
  const auto note = [&](uint32_t row, uint8_t failed) {
    if (failed != 0 && first_failed == piece.n) first_failed = row + static_cast<uint32_t>(__builtin_ctz(failed));
  };
  DispatchStorage(i.storage, [&](auto tag) {
    constexpr Storage kStorage = decltype(tag)::value;
    if constexpr (b::HasLanes(kStorage) || kStorage == kBit || kStorage == k128) {
      for (uint32_t k = 0; k < piece.num_lanes(); ++k) {
        const uint32_t row = k * b::kLanes;
        note(row, b::StoreColumn<kStorage, true>(values[k], to, piece.args->out_first + piece.begin + row,
                                                 piece.n - row, i.nullable));
      }
    } else if constexpr (b::IsVariableStorage(kStorage)) {
      for (uint32_t k = 0; k < piece.num_lanes(); ++k) {
        const uint32_t row = k * b::kLanes;
        note(row, quern_rt_store_strings(values + k, column, &null_count, piece.args->out_first + piece.begin + row,
                                         piece.n - row, kStorage, i.nullable));
      }
    }
  });
  column->null_count += null_count;
  return first_failed;
}

void Run(const Piece& piece, const QuernMapInstruction& i, QuernLanes* out) {
  const QuernLanes *x = piece.Place(i.arguments[0]), *y = piece.Place(i.arguments[1]), *z = piece.Place(i.arguments[2]);
  const QuernLaneParameters parameters = i.parameters;
  uint8_t escaped = 0;
  switch (i.function) {
#define QUERN_LANE_FUNCTION(Id, text, num_arguments, Function)                  \
  case Id:                                                                      \
    for (uint32_t k = 0; k < piece.num_lanes(); ++k)                            \
      b::RunLanes<Id, true>({x[k], y[k], z[k], out + k, parameters, &escaped}); \
    return;
#include "runtime/abi/lane_functions.def"
    case kLoadLanes: return Load(piece, i, out);
    case kStoreLanes: return;
    case kLoadStringValueLanes: return LoadStringValues(piece, i, out);
    case kLoadStringsLanes: return LoadStrings(piece, i, out);
    case kStringConstantLanes:
      for (uint32_t k = 0; k < piece.num_lanes(); ++k)
        b::LoadStringConstant(&piece.args->string_values[i.column], out + k);
      return;
  }
}

// Returns the first row of the piece for which a result has failed, or n.
uint32_t RunPiece(const Piece& piece) {
  const QuernMapDescriptor& descriptor = *piece.args->descriptor;
  uint32_t first_failed = piece.n;
  if (descriptor.writes_strings) quern_rt_empty_strings();
  for (uint32_t k = 0; k < descriptor.num_instructions; ++k) {
    const QuernMapInstruction& i = descriptor.instructions[k];
    if (i.function == kStoreLanes) first_failed = std::min(first_failed, Store(piece, i, piece.Place(i.arguments[0])));
    else if (i.function != kConstantLanes || piece.begin == 0) Run(piece, i, piece.Place(k));
  }
  return first_failed;
}

}  // namespace

QuernMapEntryPoints GenericMapKernel() { return {quern_map_rows}; }

}  // namespace quern

using namespace quern;  // NOLINT: the hole below is a C symbol that uses the code above

extern "C" int32_t quern_hole_map_batch(QuernMapArgs* args) {
  for (uint32_t begin = 0; begin < args->num_rows; begin += kPieceRows) {
    const Piece piece = {args, begin, std::min(kPieceRows, args->num_rows - begin)};
    const uint32_t failed = RunPiece(piece);
    if (failed == piece.n) continue;
    args->failed_row = begin + failed;
    return kQuernRowFailed;
  }
  return kQuernDone;
}
