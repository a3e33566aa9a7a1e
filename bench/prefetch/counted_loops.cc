// SPDX-License-Identifier: Apache-2.0
// The loops over descriptors as they are timed, and one loop of a join: rows are looked up in a table of slots, a batch
// at a time, by the generic kernel, whose loop over slots is also that of compiled kernels. None of them needs LLVM, so
// the small program that callgrind runs starts at once. Tables are made in advance; a run is one pass over all rows.
//
//     payload, 64 rows ahead, 200,000 rows     12.8 MB of payloads, 3.2 MB of descriptors
//     probe_open, the same                     8.4 MB of slots of 16 bytes, 40 % of them taken
#include "bench/prefetch/counted_loops.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "bench/join/join_workload.h"
#include "bench/prefetch/descriptor_loops.h"
#include "ir-templates/generic/generic_join.h"
#include "runtime/base/status.h"
#include "runtime/join/hash_join.h"
#include "runtime/rows/output_batch.h"

namespace quern::bench {
namespace {

constexpr const char* kProbe = "probe_open";
constexpr uint32_t kBatchRows = 1 << 16;
constexpr uint32_t kOutputRows = 1 << 14;

struct Probe {
  std::optional<JoinWorkload> workload;
  std::shared_ptr<MemoryBudget> budget = std::make_shared<MemoryBudget>();
  std::shared_ptr<HashJoin> join;
  std::optional<JoinProber> prober;
  std::optional<OutputBatch> out;
};

absl::Status ProbeAll(Probe* probe) {
  const uint64_t rows = probe->workload->spec().probe_rows;
  for (uint64_t at = 0; at < rows; at += kBatchRows) {
    QUERN_RETURN_IF_ERROR(
        probe->prober->SetInput(probe->workload->Probe(at, std::min<uint64_t>(kBatchRows, rows - at), 0)));
    for (bool more = true; more;) {
      QUERN_ASSIGN_OR_RETURN(more, probe->prober->Next(&*probe->out));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::function<absl::Status()>> MakeProbe(uint32_t distance, uint32_t rows) {
  auto probe = std::make_shared<Probe>();
  QUERN_ASSIGN_OR_RETURN(const KernelSpec any, ParseSpec("join.inner keys=i64 build=i64"));
  const auto& spec = std::get<JoinSpec>(any);
  probe->workload.emplace(WorkloadSpec{.build_rows = rows, .probe_rows = rows, .payload_columns = 1});
  JoinOptions options;
  options.layout = LayoutChoice::kOpen;
  const auto descriptor = std::make_shared<JoinDescriptor>(spec);
  descriptor->mutable_tuning()->rows.prefetches = true;
  probe->join = std::make_shared<HashJoin>(descriptor, GenericJoinKernel(), nullptr, probe->budget, options);
  QUERN_RETURN_IF_ERROR(probe->join->Append(probe->workload->Build(0, rows, 1)));
  QUERN_RETURN_IF_ERROR(probe->join->Finalise());
  PrefetchSetting setting;
  setting.distance = static_cast<uint16_t>(std::min(distance, kMaxPrefetchDistance));
  probe->join->SetPrefetch(PrefetchLoop::kProbeOpen, setting);
  probe->prober.emplace(probe->join);
  probe->out.emplace(JoinOutputTypes(spec), kOutputRows, probe->budget);
  return [probe] { return ProbeAll(probe.get()); };
}

}  // namespace

std::vector<std::string> CountedLoops() {
  std::vector<std::string> names;
  for (const DescriptorLoop loop : kDescriptorLoops) names.emplace_back(LoopName(loop));
  names.emplace_back(kProbe);
  return names;
}

absl::StatusOr<std::function<absl::Status()>> MakeCountedLoop(std::string_view loop, uint32_t distance, uint32_t rows) {
  if (loop == kProbe) return MakeProbe(distance, rows);
  for (const DescriptorLoop each : kDescriptorLoops) {
    if (loop != LoopName(each)) continue;
    QUERN_ASSIGN_OR_RETURN(DescriptorArray made, DescriptorArray::Make(rows));
    const auto array = std::make_shared<DescriptorArray>(std::move(made));
    return [array, each, distance] {
      // A volatile variable, so that no compiler removes the loop.
      [[maybe_unused]] volatile uint64_t sum =
          RunDescriptorLoop(each, {}, distance, array->descriptors(), array->rows());
      return absl::OkStatus();
    };
  }
  std::string accepted;
  for (const std::string& name : CountedLoops()) accepted += (accepted.empty() ? "" : ", ") + name;
  return InvalidArgument("unknown loop: " + Show(loop) + "; accepted: " + accepted);
}

}  // namespace quern::bench
