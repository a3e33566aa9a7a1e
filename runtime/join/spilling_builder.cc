// SPDX-License-Identifier: Apache-2.0
// The phases of building, where memory may be refused at any time:
//
//     begin   ── all rows seem to fit ──> table ──────────────────────────────────────> done
//       │                                   │ refused, before it has taken tuples
//       └──> divide: each thread writes its rows to their partitions  <──┘
//              └──> load: the smallest partitions that fit, with their table, are read ──> table ──> done
//                       ^──────────────── half of them, where memory is refused ─────────────┘
//
// 10 M build rows of 16 bytes under 128 MiB take 160 MB as tuples and up to 400 MB as a table: they are written to 64
// partitions, of which about 14 form a table of 88 MB, built from tuples of 35 MB.
#include "runtime/join/spilling_builder.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

// How much must be free for a table that takes so many bytes while it is built, so that probing has the rest.
uint64_t RoomFor(uint64_t bytes) {
  return static_cast<uint64_t>(static_cast<double>(bytes) / thresholds::kTableShareOfFree);
}

}  // namespace

uint64_t BuildBytesOf(const JoinDescriptor& descriptor, uint64_t num_rows, uint64_t string_bytes) {
  return TupleBytesOf(*descriptor.rows(), num_rows) + string_bytes +
         TableBuilder::LeastBytes(*descriptor.get(), num_rows);
}

absl::Status LoadTuples(const SpilledBuild& build, const std::shared_ptr<SpilledRows>& rows,
                        const std::shared_ptr<MemoryBudget>& budget, const StopFlag* stop_flag, BuildSide* into) {
  RowReader reader(build.spill(), build.types(), rows, build.strings().any() ? budget : nullptr);
  ReadTuples tuples(build.layout(), build.strings());
  for (;;) {
    if (stop_flag != nullptr) QUERN_RETURN_IF_ERROR(stop_flag->Check());
    BatchView batch;
    QUERN_ASSIGN_OR_RETURN(const bool more, reader.Next(&batch));
    if (!more) return absl::OkStatus();
    QUERN_RETURN_IF_ERROR(tuples.Set(batch));
    QUERN_RETURN_IF_ERROR(into->AppendTuples(tuples, batch.owner));
  }
}

SpillingBuilder::SpillingBuilder(JoinContext context, std::shared_ptr<SpilledBuild> spilled,
                                 std::vector<BuildSide*> sides, const PackedKeyRange& range)
    : context_(std::move(context)),
      spilled_(std::move(spilled)),
      sides_(std::move(sides)),
      range_(range),
      work_([this] { return NextPhase(); }) {}

absl::StatusOr<std::optional<SharedWork::Phase>> SpillingBuilder::NextPhase() {
  for (;;) {
    switch (next_) {
      case Next::kBegin: {
        next_ = Next::kDivide;
        uint64_t num_rows = 0;
        bool is_partitioned = false;
        std::vector<TupleStore*> stores;
        for (BuildSide* side : sides_) {
          num_rows += side->num_stored();
          is_partitioned |= side->store()->is_partitioned();
          stores.push_back(side->store());
        }
        const QuernJoinDescriptor& descriptor = *context_.descriptor->get();
        const uint64_t bytes = is_partitioned ? TableBuilder::LeastBytesTaking(descriptor, num_rows)
                                              : TableBuilder::LeastBytes(descriptor, num_rows);
        if (spilled_->is_used() || !spilled_->spill()->HasRoom(bytes)) return WriteAll();
        BeginTable(stores);
        break;
      }
      case Next::kDivide: {
        QUERN_RETURN_IF_ERROR(ChooseResident());
        return Load();
      }
      case Next::kLoaded: {
        if (is_refused_.exchange(false)) {
          QUERN_RETURN_IF_ERROR(Refuse());
          return Load();
        }
        std::vector<TupleStore*> stores;
        for (const auto& side : loaded_) stores.push_back(side->store());
        BeginTable(stores);
        break;
      }
      case Next::kTable: {
        absl::StatusOr<std::optional<Phase>> phase = NextOfTable();
        if (phase.ok() || !absl::IsResourceExhausted(phase.status())) return phase;
        if (parts_.empty() && has_taken_tuples()) return MemoryLost(phase.status());
        table_.reset();
        if (parts_.empty()) return next_ = Next::kDivide, WriteAll();  // there may be no rows to write
        QUERN_RETURN_IF_ERROR(Refuse());
        return Load();
      }
    }
  }
}

// Tuples that were written and read are in no order any more, whatever that of the rows was.
void SpillingBuilder::BeginTable(const std::vector<TupleStore*>& stores) {
  PackedKeyRange range = range_;
  range.ascends = false;
  table_ = std::make_unique<TableBuilder>(*context_.descriptor->get(), RowOf(context_.descriptor->spec().kind),
                                          context_.options, context_.budget, stores, range);
  next_ = Next::kTable;
}

// A task that is refused memory ends, so that the table can be built in another way.
SharedWork::Phase SpillingBuilder::Unrefused(Phase phase) {
  return {phase.num_tasks, [this, run = std::move(phase.run)](uint64_t task) {
            if (is_refused_.load(std::memory_order_relaxed)) return absl::OkStatus();
            absl::Status status = WithoutBadAlloc([&] { return run(task); });
            if (!absl::IsResourceExhausted(status)) return status;
            is_refused_ = true;
            return absl::OkStatus();
          }};
}

// *Errors*: ResourceExhausted where the table was refused memory.
absl::StatusOr<std::optional<SharedWork::Phase>> SpillingBuilder::NextOfTable() {
  if (is_refused_.exchange(false))
    return absl::ResourceExhaustedError(
        "join that spills: no memory for its table, some of which is built; accepted: a higher memory limit");
  absl::StatusOr<std::optional<Phase>> phase = std::nullopt;
  QUERN_RETURN_IF_ERROR(WithoutBadAlloc([&] {
    phase = table_->NextPhase();
    return phase.status();
  }));
  if (phase->has_value()) return Unrefused(std::move(**phase));
  for (const uint32_t part : resident_) parts_[part].reset();
  return std::nullopt;
}

SharedWork::Phase SpillingBuilder::WriteAll() {
  return {sides_.size(), [this](uint64_t side) { return sides_[side]->Spill(); }};
}

// ---- the partitions of the table ------------------------------------------------------------------------------------

// The smallest ones, so that as few probe rows as possible are written.
absl::Status SpillingBuilder::ChooseResident() {
  QUERN_ASSIGN_OR_RETURN(std::vector<SpilledRows> rows, spilled_->Finish());
  null_rows_ = std::move(rows.back());
  rows.pop_back();
  for (SpilledRows& part : rows) parts_.push_back(std::make_shared<SpilledRows>(std::move(part)));
  resident_.resize(parts_.size());
  std::iota(resident_.begin(), resident_.end(), 0);
  std::sort(resident_.begin(), resident_.end(), [this](uint32_t a, uint32_t b) {
    return std::pair(parts_[a]->num_rows(), a) < std::pair(parts_[b]->num_rows(), b);
  });
  uint64_t num_rows = 0, string_bytes = 0;
  size_t num_resident = 0;
  for (; num_resident < resident_.size(); ++num_resident) {
    const SpilledRows& part = *parts_[resident_[num_resident]];
    num_rows += part.num_rows();
    string_bytes += StringBytesOf(*context_.descriptor->rows(), part);
    const uint64_t bytes = BuildBytesOf(*context_.descriptor, num_rows, string_bytes);
    if (part.num_rows() != 0 && !spilled_->spill()->HasRoomInShare(RoomFor(bytes))) break;
  }
  resident_.resize(num_resident);
  return absl::OkStatus();
}

// After a refusal: half of the partitions stay. *Errors*: ResourceExhausted where there are none.
absl::Status SpillingBuilder::Refuse() {
  loaded_.clear();
  table_.reset();
  const bool any = std::any_of(resident_.begin(), resident_.end(), [this](uint32_t p) { return !parts_[p]->empty(); });
  if (!any) {
    return absl::ResourceExhaustedError(
        "join that spills: no memory for a table of no rows; accepted: a higher memory limit");
  }
  const auto empty = static_cast<size_t>(
      std::count_if(resident_.begin(), resident_.end(), [this](uint32_t p) { return parts_[p]->empty(); }));
  resident_.resize(empty + (resident_.size() - empty) / 2);
  return absl::OkStatus();
}

std::vector<std::unique_ptr<BuildSide>> SpillingBuilder::TakeLoaded() {
  for (const auto& side : loaded_) side->DropTuples();
  return std::move(loaded_);
}

// Reads the partitions of the table; their blocks stay until it is complete.
SharedWork::Phase SpillingBuilder::Load() {
  next_ = Next::kLoaded;
  const uint64_t num_loaders = std::clamp<uint64_t>(sides_.size(), 1, thresholds::kMostLoaders);
  for (uint64_t i = 0; i < num_loaders; ++i) {
    loaded_.push_back(std::make_unique<BuildSide>(context_.descriptor, context_.entry_points, context_.counters,
                                                  context_.options, context_.budget));
  }
  return Unrefused({num_loaders, [this, num_loaders](uint64_t loader) {
                      for (size_t i = loader; i < resident_.size(); i += num_loaders)
                        QUERN_RETURN_IF_ERROR(LoadTuples(*spilled_, parts_[resident_[i]], context_.budget,
                                                         context_.stop_flag, loaded_[loader].get()));
                      return absl::OkStatus();
                    }});
}

}  // namespace quern
