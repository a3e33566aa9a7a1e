// SPDX-License-Identifier: Apache-2.0
// The generic aggregation kernel: the template ir-templates/aggregate.cc, compiled natively, with holes that interpret
// the descriptor. Keys use the holes of all operators (generic_tuples.cc). Accumulators are updated one after the
// other, each in two loops over the batch:
//
//     read      column -> 1024 values of 64 bits     switch (storage), then a loop without branches
//     update    values -> states                     switch (update function), then a loop over the groups' addresses
//
// A batch of 1024 rows and 3 accumulators so dispatches 6 times. A compiled kernel updates all three in one loop, and
// reads each group's address once instead of three times. Both use the same update functions (accumulators.h), so that
// their results agree to the bit.
#include "ir-templates/generic/generic_aggregate.h"

#include <algorithm>

#include "ir-templates/holes.h"
#include "runtime/blocks/accumulators.h"
#include "runtime/blocks/storage_dispatch.h"

extern "C" {
#define QUERN_AGGREGATE_ENTRY(field, result, parameters) result quern_aggregate_##field parameters;
#include "runtime/abi/aggregate_entry_points.def"
}

namespace quern {
namespace {

namespace b = blocks;

constexpr UpdateReads kReads[] = {
#define QUERN_UPDATE_FUNCTION(Id, text, reads, state_bytes) reads,
#include "runtime/abi/update_functions.def"
};

// The rows of a batch that one accumulator processes.
struct StepRows {
  const QuernUpdateArgs* args;
  const QuernAccumulator* accumulator;
  uint8_t* const* tuples;
  uint32_t n;
  bool tests_nulls;

  uint32_t Row(uint32_t i) const { return static_cast<uint32_t>(args->first + args->rows[i]); }
  // Of columns of the batch, or of those that were computed.
  const QuernColumn* Column(bool is_computed, uint32_t column) const {
    return (is_computed ? args->computed : args->columns) + column;
  }
  uint32_t RowIn(bool is_computed, uint32_t i) const { return is_computed ? args->first_computed + i : Row(i); }
  uint8_t* State(uint32_t i) const { return tuples[i] + accumulator->state_offset; }
  uint64_t RowId(uint32_t i) const { return args->first_row_id + Row(i); }
  uint8_t* overflowed() const { return args->overflowed + (accumulator - args->descriptor->accumulators); }
};

// An argument's column and the rows at which to read it.
struct ArgumentRows {
  const QuernColumn* column;
  uint32_t rows[kMaxBatchRows];
};

void Locate(const StepRows& r, const QuernArgument& argument, ArgumentRows* out) {
  const QuernColumn* column = r.Column(argument.is_computed, argument.column);
  for (uint32_t i = 0; i < r.n; ++i) out->rows[i] = r.RowIn(argument.is_computed, i);
  out->column = column;
  if (argument.index_storage == kNoStorage) return;
  TranslateRows(argument.index_storage, column, 0, out->rows, r.n, out->rows);
  for (uint32_t i = 0; i < r.n; ++i) out->rows[i] = out->rows[i] == kNullRow ? 0 : out->rows[i];
  out->column = column->dictionary;
}

// Whether each row takes part; returns false if all do, in which case nothing is written.
bool FindTaking(const StepRows& r, uint8_t* takes) {
  const QuernAccumulator& a = *r.accumulator;
  bool tests = false;
  const auto begin = [&] {
    if (!tests) std::fill(takes, takes + r.n, uint8_t{1});
    tests = true;
  };
  for (uint32_t k = 0; k < a.num_arguments && r.tests_nulls; ++k) {
    const bool is_computed = a.arguments[k].is_computed;
    const QuernColumn* column = r.Column(is_computed, a.arguments[k].column);
    if (!a.arguments[k].nullable || column->validity == nullptr) continue;
    begin();
    for (uint32_t i = 0; i < r.n; ++i) takes[i] = takes[i] & b::IsValid(column, r.RowIn(is_computed, i));
  }
  if (!a.filtered) return tests;
  begin();
  const QuernColumn* filter = r.Column(a.is_filter_computed, a.filter_column);
  for (uint32_t i = 0; i < r.n; ++i) {
    const uint32_t row = r.RowIn(a.is_filter_computed, i);
    takes[i] = takes[i] & (b::IsValid(filter, row) && b::BitReader::Read(filter, row) != 0);
  }
  return tests;
}

template <class Read>
void ReadAll(const ArgumentRows& at, uint32_t n, const uint8_t* takes, uint64_t* values, Read&& read) {
  const QuernColumn column = *at.column;
  for (uint32_t i = 0; i < n; ++i) values[i] = takes == nullptr || takes[i] != 0 ? read(&column, at.rows[i]) : 0;
}

void ReadValues(const ArgumentRows& at, const QuernArgument& argument, UpdateReads reads, uint32_t n,
                const uint8_t* takes, uint64_t* values) {
  DispatchStorage(argument.storage, [&](auto tag) {
    constexpr Storage kStorage = decltype(tag)::value;
    constexpr bool kIsFloat = kStorage == kF32 || kStorage == kF64;
    const bool is_signed = argument.is_signed;
    if constexpr (b::HasLanes(kStorage) || kStorage == kBit) {
      if (reads == kReadsOrdered) {
        ReadAll(at, n, takes, values,
                [&](const QuernColumn* c, uint32_t row) { return b::ReadOrdered<kStorage>(c, row, is_signed); });
      } else if (reads == kReadsBits) {
        ReadAll(at, n, takes, values,
                [&](const QuernColumn* c, uint32_t row) { return b::ReadBits<kStorage>(c, row); });
      } else if (reads == kReadsInteger) {
        if constexpr (!kIsFloat)
          ReadAll(at, n, takes, values, [&](const QuernColumn* c, uint32_t row) {
            return static_cast<uint64_t>(b::ReadInteger<kStorage>(c, row, is_signed));
          });
      } else {
        ReadAll(at, n, takes, values, [&](const QuernColumn* c, uint32_t row) {
          return __builtin_bit_cast(uint64_t, b::ReadNumber<kStorage>(c, row, is_signed));
        });
      }
    }
  });
}

// Values under nulls may be read, since a column has memory for them; a dictionary may be empty.
const uint8_t* TakesOf(const QuernArgument& argument, const uint8_t* takes) {
  return argument.index_storage == kNoStorage ? nullptr : takes;
}

template <Step kStep>
void StepAll64(const StepRows& r, const uint64_t* values, const uint8_t* takes) {
  const bool is_signed = r.accumulator->arguments[0].is_signed;
  uint8_t* overflowed = r.overflowed();
  for (uint32_t i = 0; i < r.n; ++i) {
    const uint64_t one = takes == nullptr || takes[i] != 0;
    if (!b::IsMasked(kStep) && one == 0) continue;
    b::Step64<kStep>(values[i], r.State(i), one, is_signed, r.RowId(i), overflowed);
  }
}

// Calls f with the update function as a constant.
template <class F>
void DispatchUpdate(Step step, F&& f) {
  switch (step) {
#define QUERN_UPDATE_FUNCTION(Id, text, reads, state_bytes) \
  case Id: return f.template operator()<Id>();
#include "runtime/abi/update_functions.def"
  }
}

constexpr bool Is64(Step step) {
  return kReads[step] != kReadsWide && kReads[step] != kReadsNumbers && step != kUpdateOutOfLine;
}

void Step64Rows(const StepRows& r, const uint8_t* takes) {
  const QuernAccumulator& a = *r.accumulator;
  uint64_t values[kMaxBatchRows];
  ArgumentRows at;
  if (kReads[a.step] != kReadsNothing) {
    Locate(r, a.arguments[0], &at);
    ReadValues(at, a.arguments[0], kReads[a.step], r.n, TakesOf(a.arguments[0], takes), values);
    const uint64_t turned = b::TurnedBits(a.step, a.negated);
    for (uint32_t i = 0; i < r.n; ++i) values[i] = takes == nullptr || takes[i] != 0 ? values[i] ^ turned : 0;
  } else {
    std::fill(values, values + r.n, uint64_t{0});
  }
  DispatchUpdate(a.step, [&]<Step kStep>() {
    if constexpr (Is64(kStep)) StepAll64<kStep>(r, values, takes);
  });
}

void StepWideRows(const StepRows& r, const uint8_t* takes) {
  ArgumentRows at;
  Locate(r, r.accumulator->arguments[0], &at);
  DispatchUpdate(r.accumulator->step, [&]<Step kStep>() {
    for (uint32_t i = 0; i < r.n; ++i) {
      if (takes != nullptr && takes[i] == 0) continue;
      if constexpr (kReads[kStep] == kReadsWide)
        b::StepWide<kStep>(at.column, at.rows[i], r.State(i), r.RowId(i), r.overflowed());
    }
  });
}

void StepTwoRows(const StepRows& r, const uint8_t* takes) {
  const QuernAccumulator& a = *r.accumulator;
  uint64_t x[kMaxBatchRows], y[kMaxBatchRows];
  ArgumentRows at;
  for (uint32_t k = 0; k < 2; ++k) {
    Locate(r, a.arguments[k], &at);
    ReadValues(at, a.arguments[k], kReadsNumber, r.n, TakesOf(a.arguments[k], takes), k == 0 ? x : y);
  }
  for (uint32_t i = 0; i < r.n; ++i) {
    if (takes != nullptr && takes[i] == 0) continue;
    if (a.step == kUpdateComoments) b::StepTwo<kUpdateComoments>(x[i], y[i], r.State(i));
    else b::StepTwo<kUpdateCorrelation>(x[i], y[i], r.State(i));
  }
}

void SetSeen(const StepRows& r, const uint8_t* takes) {
  const QuernAccumulator& a = *r.accumulator;
  for (uint32_t i = 0; i < r.n; ++i) {
    uint8_t* seen = r.tuples[i] + a.seen_offset;
    *seen = static_cast<uint8_t>(*seen | (takes == nullptr || takes[i] != 0 ? a.seen_mask : 0));
  }
}

enum class Counts : uint8_t { kByRow, kByRun };  // of accumulators that count all rows

void UpdateAll(const QuernUpdateArgs* args, uint8_t* const* tuples, uint32_t n, bool tests_nulls, Counts counts) {
  uint8_t taking[kMaxBatchRows];
  for (uint32_t k = 0; k < args->descriptor->num_accumulators; ++k) {
    const QuernAccumulator& a = args->descriptor->accumulators[k];
    if (a.step == kUpdateOutOfLine || (counts == Counts::kByRun && b::CountsAllRows(a))) continue;
    const StepRows rows = {args, &a, tuples, n, tests_nulls};
    const uint8_t* takes = FindTaking(rows, taking) ? taking : nullptr;
    if (kReads[a.step] == kReadsWide) StepWideRows(rows, takes);
    else if (kReads[a.step] == kReadsNumbers) StepTwoRows(rows, takes);
    else Step64Rows(rows, takes);
    if (a.seen_mask != 0) SetSeen(rows, takes);
  }
}

void CountRun(const QuernAggregateDescriptor& descriptor, uint32_t num_rows, uint8_t* tuple) {
  for (uint32_t k = 0; k < descriptor.num_accumulators; ++k) {
    const QuernAccumulator& a = descriptor.accumulators[k];
    if (b::CountsAllRows(a)) b::StepRows(tuple + a.state_offset, num_rows);
  }
}

}  // namespace

QuernAggregateEntryPoints GenericAggregateKernel() {
  QuernAggregateEntryPoints entry_points = {
#define QUERN_AGGREGATE_ENTRY(field, result, parameters) quern_aggregate_##field,
#include "runtime/abi/aggregate_entry_points.def"
  };
  entry_points.update_lanes = nullptr;  // it gains nothing where each value goes through memory
  return entry_points;
}

}  // namespace quern

using namespace quern;  // NOLINT: the holes below are C symbols that use the code above

extern "C" {

void quern_hole_update_rows(const QuernUpdateArgs* args) {
  UpdateAll(args, args->tuples, args->n, true, Counts::kByRow);
}
void quern_hole_update_valid_rows(const QuernUpdateArgs* args) {
  UpdateAll(args, args->tuples, args->n, false, Counts::kByRow);
}

void quern_hole_update_run_rows(const QuernUpdateArgs* args) {
  uint8_t* tuples[kMaxBatchRows];
  uint32_t n = 0;
  for (uint32_t run = 0; run < args->n; ++run) {
    CountRun(*args->descriptor, args->run_ends[run] - n, args->tuples[run]);
    for (; n < args->run_ends[run]; ++n) tuples[n] = args->tuples[run];
  }
  UpdateAll(args, tuples, n, true, Counts::kByRun);
}

uint32_t quern_hole_update_lane_rows(const QuernLaneArgs*) { return 0; }

}  // extern "C"
