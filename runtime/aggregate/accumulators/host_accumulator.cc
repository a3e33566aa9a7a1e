// SPDX-License-Identifier: Apache-2.0
// The accumulator of a host's aggregate function: it calls the host's callbacks once a batch.
//
// A batch of 1000 rows is one call with 1000 row numbers and 1000 addresses of states, so even a callback that does
// little work has little overhead.
//
//     state of 20 bytes in the group's row    | 20 bytes of the host | 4 bytes unused |
//                                             rounded up to 24, so that the next state is aligned to 8
//
// The host writes validity as bits from 0 on, while rows of the result begin anywhere: the host gets a bitmap of its
// own, which is copied to the result bit by bit.
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/aggregate/accumulators/out_of_line_kinds.h"
#include "runtime/spec/host_aggregates.h"

namespace quern {
namespace {

class HostAccumulator final : public SpecAccumulator {
 public:
  HostAccumulator(const AggregateSpec& spec, const HostAggregate* host) : SpecAccumulator(spec), host_(*host) {}

  uint32_t state_bytes() const override { return (host_.state_bytes + 7) / 8 * 8; }

  absl::Status Update(const AccumulatorRows& rows, AccumulatorMemory* memory) const override {
    if (rows.n == 0) return absl::OkStatus();
    const auto num_columns = static_cast<uint32_t>(spec().arguments.size());
    auto* const states = reinterpret_cast<void* const*>(rows.states);
    return Check("update",
                 host_.update(host_.user, memory->host(), rows.columns, num_columns, rows.rows, states, rows.n));
  }

  absl::Status Merge(uint8_t* const* into, uint8_t* const* from, uint32_t n, AccumulatorMemory* memory) const override {
    if (n == 0) return absl::OkStatus();
    return Check("merge", host_.merge(host_.user, memory->host(), reinterpret_cast<void* const*>(into),
                                      reinterpret_cast<const void* const*>(from), n));
  }

  absl::StatusOr<uint32_t> Finalise(const uint8_t* const* states, uint32_t n, QuernOutColumn* out, uint64_t out_row,
                                    void* host) const override {
    if (n == 0) return 0;
    const uint32_t width = RowOf(host_.result.id).width_bytes;
    uint8_t* const values = static_cast<uint8_t*>(out->values) + out_row * width;
    std::vector<uint8_t> validity((uint64_t{n} + 7) / 8, 0xff);
    QUERN_RETURN_IF_ERROR(Check(
        "finalise",
        host_.finalise(host_.user, host, reinterpret_cast<const void* const*>(states), n, values, validity.data())));
    for (uint32_t i = 0; i < n; ++i) {
      const bool valid = blocks::Bit(validity.data(), i);
      WriteValidity(out, out_row + i, valid);
      if (!valid) std::memset(values + uint64_t{i} * width, 0, width);
    }
    return n;
  }

  void Save(const uint8_t* state, std::string* bytes) const override {
    bytes->append(reinterpret_cast<const char*>(state), host_.state_bytes);
  }

  absl::Status MergeSaved(uint8_t* state, std::string_view bytes, AccumulatorMemory* memory) const override {
    if (bytes.size() != host_.state_bytes) return Damaged(bytes);
    std::vector<uint64_t> copy(state_bytes() / 8);  // aligned to 8
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    auto* from = reinterpret_cast<uint8_t*>(copy.data());
    return Merge(&state, &from, 1, memory);
  }

 private:
  absl::Status Check(const char* callback, int answer) const {
    if (answer == 0) return absl::OkStatus();
    return absl::AbortedError("host aggregate failed: " + spec().host_name + ": " + callback + " answered " +
                              std::to_string(answer) + "; accepted: 0");
  }

  const HostAggregate& host_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<OutOfLineAggregate>> MakeHostAccumulator(const AggregateSpec& spec) {
  const HostAggregate* const host = FindHostAggregate(spec.host_name);
  if (host == nullptr) {
    return absl::NotFoundError("unknown host aggregate: " + Show(spec.host_name) +
                               "; accepted: a name that the host registered");
  }
  return std::make_unique<HostAccumulator>(spec, host);
}

}  // namespace quern
