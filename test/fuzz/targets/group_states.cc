// SPDX-License-Identifier: Apache-2.0
// States of groups that another process exported: an aggregation of a few rows exports its states, the input damages
// some of them, and a second aggregation takes them in. Undamaged states are accepted. Damaged ones are accepted or
// refused in one line; what was accepted exports again, and a third aggregation accepts that.
//
// The first byte chooses the aggregate, the second the number of rows; then come the key and the value of each row, and
// the damage.
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "test/fuzz/targets/host_calls.h"

namespace quern::fuzz {
namespace {

constexpr const char* kAggregates[] = {
    "count_star",
    "count(i64:nullable)",
    "sum(i64)",
    "sum(i64:nullable)",
    "sum(u64)",
    "sum(f64)",
    "sum(decimal128)",
    "sum128(i64)",
    "avg(i32)",
    "avg(i64)",
    "avg(f64)",
    "avg(decimal128)",
    "min(i64)",
    "max(i8:nullable)",
    "min(f64)",
    "max(decimal128)",
    "min(utf8)",
    "max(utf8(utf8mb4_general_ci))",
    "any(i64)",
    "any(utf8)",
    "any(decimal128)",
    "first(i64)",
    "first(utf8)",
    "last(decimal128)",
    "last(utf8)",
    "bool_and(bool)",
    "bool_or(bool)",
    "bit_and(u64)",
    "bit_or(u16)",
    "bit_xor(i64)",
    "var_samp(f64)",
    "stddev_pop(i64)",
    "covar_pop(f64,f64)",
    "corr(f64,f64)",
    "count_distinct(i64)",
    "count_distinct(f64)",
    "count_distinct(utf8)",
    "count_distinct(utf8(utf8mb4_general_ci))",
    "count_distinct(decimal128)",
    "sum_distinct(i64)",
    "sum_distinct(f64)",
    "sum_distinct(decimal128)",
    "approx_count_distinct(i64)",
    "approx_count_distinct(utf8)",
    "median(i64)",
    "quantile(f64,0.9)",
    "string_agg(utf8,x'2c20')",
    "string_agg(binary,x'')",
};

// States of groups with their keys; each state lies in memory of its own size.
struct States {
  std::vector<int64_t> keys;
  std::vector<std::string> states;
};

// An aggregation and one input of it.
struct Aggregation {
  Aggregation(const KernelHandle& kernel, quern_port port) : job(NewJob(kernel)), input(NewInput(job, port)) {}

  JobHandle job;
  InputHandle input;
};

// Hands the rows over, and does the work; returns whether it succeeded.
bool Finalise(const Aggregation& aggregate) {
  quern_error error;
  return Succeeded(quern_input_finish(aggregate.input.get(), &error), error) &&
         Succeeded(quern_job_finalise(aggregate.job.get(), &error), error);
}

// All states of an aggregation.
States Export(const Aggregation& aggregate) {
  Require(Finalise(aggregate), "states can be finalised");
  const OutputHandle groups = NewOutput(aggregate.job, QUERN_PORT_STATES, 3);
  States all;
  const quern_result* result = nullptr;
  do {
    result = Next(groups);
    Require(result != nullptr, "states can be exported");
    for (uint64_t row = 0; row < result->num_rows; ++row) {
      const auto* const offsets = static_cast<const int32_t*>(result->columns[1].offsets) + row;
      all.keys.push_back(static_cast<const int64_t*>(result->columns[0].values)[row]);
      all.states.emplace_back(static_cast<const char*>(result->columns[1].values) + offsets[0],
                              static_cast<size_t>(offsets[1] - offsets[0]));
    }
  } while (result->state == QUERN_RESULT_MORE);
  return all;
}

// The states of up to 16 rows with 16 bytes a row, which all columns share: as numbers, as bits, or as strings of up to
// 12 bytes.
States ExportRows(const KernelHandle& kernel, const std::string& text, Input* in) {
  const size_t n = in->Below(17);
  std::vector<int64_t> row_keys(n + 1);
  std::vector<int32_t> offsets(n + 1);
  const auto bytes = std::make_unique<uint8_t[]>(n * 16);
  for (size_t i = 0; i < n; ++i) {
    row_keys[i] = static_cast<int64_t>(in->Below(4));
    in->Fill(bytes.get() + i * 16, 1 + in->Below(16));
    offsets[i + 1] = offsets[i] + static_cast<int32_t>(in->Below(13));
  }
  quern_column key = {}, column = {};
  key.values = row_keys.data();
  column.values = bytes.get();
  const bool has_offsets = text.find("utf8") != std::string::npos || text.find("binary") != std::string::npos;
  if (has_offsets) column.offsets = offsets.data();
  if (text.find("nullable") != std::string::npos) column.validity = bytes.get();
  const quern_column payload[] = {column, column};
  quern_batch batch = {};
  batch.keys = &key;
  batch.payload = payload;
  batch.num_rows = n;
  const Aggregation aggregate(kernel, QUERN_PORT_ROWS);
  quern_error error;
  if (!Succeeded(quern_input_append(aggregate.input.get(), &batch, &error), error)) return {};
  return Export(aggregate);
}

// Returns whether anything was damaged.
bool Damage(States* all, Input* in) {
  uint32_t num_changes = in->Below(5);
  if (all->states.empty()) num_changes = 0;
  for (uint32_t i = 0; i < num_changes; ++i) {
    std::string& state = all->states[in->Below(static_cast<uint32_t>(all->states.size()))];
    const size_t at = in->Below(256) % (state.size() + 1);
    switch (in->Below(5)) {
      case 0: state.resize(at); break;
      case 1: state.insert(at, 1 + in->Below(9), static_cast<char>(in->Byte())); break;
      case 2: state = state.substr(at) + state; break;
      case 3: state.erase(at, 1 + in->Below(9)); break;
      default: {
        char patch[8] = {};
        const size_t patched = std::min<size_t>(1 + in->Below(sizeof patch), state.size() - at);
        in->Fill(patch, patched);
        state.replace(at, patched, patch, patched);
      }
    }
  }
  return num_changes != 0;
}

// Adds all states to an aggregation; returns whether it accepted them.
bool Import(const States& all, const Aggregation& aggregate) {
  std::vector<int32_t> offsets = {0};
  std::string joined;
  for (const std::string& state : all.states) {
    joined += state;
    offsets.push_back(static_cast<int32_t>(joined.size()));
  }
  // Exactly so many bytes, so that AddressSanitizer sees a read beyond the last state.
  const auto bytes = std::make_unique<uint8_t[]>(joined.size());
  std::copy(joined.begin(), joined.end(), bytes.get());
  std::vector<int64_t> keys = all.keys;
  keys.push_back(0);  // so that there is a pointer
  quern_column key = {}, states = {};
  key.values = keys.data();
  states.values = bytes.get();
  states.offsets = offsets.data();
  quern_batch batch = {};
  batch.keys = &key;
  batch.payload = &states;
  batch.num_rows = all.keys.size();
  quern_error error;
  return Succeeded(quern_input_append(aggregate.input.get(), &batch, &error), error);
}

// Some results are refused: a sum that is too large.
void ReadResults(const Aggregation& aggregate) {
  if (!Finalise(aggregate)) return;
  const OutputHandle groups = NewOutput(aggregate.job, QUERN_PORT_ROWS, 3);
  const quern_result* result = nullptr;
  do result = Next(groups);
  while (result != nullptr && result->state == QUERN_RESULT_MORE);
}

}  // namespace
}  // namespace quern::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace fuzz = quern::fuzz;
  fuzz::Input in(data, size);
  const std::string text = fuzz::kAggregates[in.Below(std::size(fuzz::kAggregates))];
  const fuzz::KernelHandle kernel = fuzz::CompileGeneric("aggregate keys=i64 aggs=" + text);
  fuzz::Require(kernel != nullptr, "a spec of this list is right", text);
  fuzz::States states = fuzz::ExportRows(kernel, text, &in);
  const bool is_damaged = fuzz::Damage(&states, &in);
  const fuzz::Aggregation second(kernel, QUERN_PORT_STATES);
  const bool accepted = fuzz::Import(states, second);
  fuzz::Require(accepted || is_damaged, "exported states are accepted", text);
  if (!accepted) return 0;
  const bool again = in.Chance(128) && !fuzz::Import(states, second);
  if (again) return 0;  // sums that exceed their type together
  if (in.Chance(128)) return fuzz::ReadResults(second), 0;
  const fuzz::Aggregation third(kernel, QUERN_PORT_STATES);
  fuzz::Require(fuzz::Import(fuzz::Export(second), third), "what was accepted exports and is accepted", text);
  fuzz::ReadResults(third);
  return 0;
}
