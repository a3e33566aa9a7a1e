// SPDX-License-Identifier: Apache-2.0
// The phases of a hash join around the kernel's loops. Rows are first stored as tuples (build_side.h), because their
// number, their range and the uniqueness of their keys are not known yet. Finalise then chooses the table and builds it
// (table_builder.h). Probers and scans of unmatched build rows run the stages over it (join_loop.h).
//
//     Append   -> BuildSide -+
//     Appender -> BuildSide -+->  TableBuilder -> JoinTable  <- JoinProber, JoinProber, ..
//     Appender -> BuildSide -+
//
// 10 M rows with one i64 key, counted: 80 MB of tuples while building, then a table of 200 MB (open, 40 % taken).
#include "runtime/join/hash_join.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/join/build_side.h"
#include "runtime/join/tables/unchained_table.h"
#include "runtime/rows/job_observer.h"
#include "runtime/rows/output_batch.h"

namespace quern {
namespace {

constexpr SinkTexts kJoinTexts = {"rows", "the table is built", "a batch is missing from the table", "a new join"};

}  // namespace

// The memory of a table, and of strings to which tuples point that were read back.
struct HashJoin::MemoryWithStrings {
  TableMemory table;
  std::vector<std::unique_ptr<BuildSide>> loaded;
};

HashJoin::HashJoin(std::shared_ptr<const JoinDescriptor> descriptor, JoinEntrySource entry_points,
                   std::shared_ptr<const void> code, std::shared_ptr<MemoryBudget> budget, const JoinOptions& options)
    : Sink(kJoinTexts, entry_points.NewCounters(), std::move(budget)),
      descriptor_(std::move(descriptor)),
      entry_points_(std::move(entry_points)),
      code_(std::move(code)),
      options_(options) {}

HashJoin::~HashJoin() {
  EndJob([this](JobSummary* job) {
    const Counters counted = counters();
    job->table_bytes = stats_.directory_bytes + stats_.tuple_bytes;
    job->num_hits = counted.tag_hits;
    job->ns = counted.ns;
    job->layout = stats_.layout;
  });
}

// ---- building ----------------------------------------------------------------------------------------------------

std::unique_ptr<LocalState> HashJoin::NewLocalState() {
  auto side = std::make_unique<BuildSide>(descriptor_, entry_points_, counters_, options_, budget_);
  if (spill_ == nullptr) return side;
  {
    const std::lock_guard<std::mutex> lock(spill_mutex_);
    if (spilled_build_ == nullptr) spilled_build_ = std::make_shared<SpilledBuild>(descriptor_, spill_);
  }
  side->SpillTo(spilled_build_);
  return side;
}

absl::Status HashJoin::CheckInput(const BatchView& batch, RowKind /*kind*/) const {
  const QuernJoinDescriptor& descriptor = *descriptor_->get();
  return CheckBatch(batch, descriptor.rows.num_keys, descriptor.rows.num_output_fields + descriptor.num_residual);
}

absl::StatusOr<SharedWork*> HashJoin::BeginFinalise() {
  if (local_states()->empty()) local_states()->push_back(NewLocalState());
  std::vector<TupleStore*> stores;
  std::vector<BuildSide*> sides;
  PackedKeyRange range;
  for (const auto& local : *local_states()) {
    auto* const side = static_cast<BuildSide*>(local.get());
    stores.push_back(side->store());
    sides.push_back(side);
    range.Add(side->range());
  }
  range_ = range;
  made_memory_ = std::make_shared<MemoryWithStrings>();  // now: the end of the work must not be refused memory
  if (spill_ != nullptr) {
    spilling_ = std::make_unique<SpillingBuilder>(Context(), spilled_build_, std::move(sides), range);
    return spilling_->work();
  }
  builder_ = std::make_unique<TableBuilder>(*descriptor_->get(), RowOf(descriptor_->spec().kind), options_, budget_,
                                            std::move(stores), range);
  return builder_->work();
}

// Tuples stay where they are until the table is complete, unless they are written, or the table takes them. Then the
// work stays, too: threads that come late learn from it how it has ended.
bool HashJoin::AbandonFinalise() {
  if (spilling_ != nullptr && (spilling_->has_written() || spilling_->has_taken_tuples())) return false;
  if (builder_ != nullptr && builder_->has_taken_tuples()) return false;
  builder_ = nullptr;
  spilling_ = nullptr;
  return true;
}

// Takes over the finished table and the counts of its rows.
void HashJoin::EndFinalise() {
  TableBuilder* const builder = spilling_ != nullptr ? spilling_->table() : builder_.get();
  table_ = builder->table;
  const std::shared_ptr<MemoryWithStrings> owner = std::move(made_memory_);
  const std::shared_ptr<TableMemory> memory(owner, &owner->table);
  *memory = std::move(builder->memory);
  for (const auto& local : *local_states()) {
    auto* const side = static_cast<BuildSide*>(local.get());
    stats_.build_rows += side->num_rows();
    num_null_rows_ += side->num_null_keys();
    owns_strings_ &= side->owns_strings();
    null_rows_.insert(null_rows_.end(), side->null_rows().begin(), side->null_rows().end());
    side->DropTuples();
  }
  stats_.table_rows = table_.num_tuples;
  stats_.directory_bytes = memory->directory_bytes();
  stats_.tuple_bytes = table_.layout == Layout::kOpen || table_.layout == Layout::kCounting
                           ? table_.num_slots * table_.slot_bytes
                       : memory->tuples.bytes() == 0 ? 0
                                                     : table_.null_tuple;
  const uint32_t batch_rows = table_.probe.batch_rows != 0 ? table_.probe.batch_rows : descriptor_->get()->batch_rows;
  stats_.prefetch_distance = table_.probe.distance == kWholeBatch ? batch_rows : table_.probe.distance;
  const uint64_t probed_bytes = memory->directory_bytes() + memory->tuples.bytes();
  stats_.prefetch_class = descriptor_->rows()->prefetches ? options_.caches.NameFor(probed_bytes) : "off";
  stats_.layout = LayoutText(table_.layout);
  build_is_empty_ = stats_.build_rows == 0;
  build_has_null_key_ = num_null_rows_ > 0;
  memory_ = memory;
  if (spilling_ == nullptr || !spilling_->has_written()) {
    if (spill_ != nullptr) spill_->EndSettingAside();  // results have the room
    return;
  }
  owner->loaded = spilling_->TakeLoaded();
  spilled_ = std::make_unique<SpilledJoin>(Context(), generic_, spilled_build_, std::move(*spilling_->parts()),
                                           spilling_->null_rows());
}

// ---- parts of a join that has spilled ----------------------------------------------------------------------------

std::shared_ptr<const TableMemory> HashJoin::UseTable() const {
  const std::lock_guard<std::mutex> lock(memory_mutex_);
  return memory_;
}

void HashJoin::FreeTable() const {
  const std::lock_guard<std::mutex> lock(memory_mutex_);
  memory_.reset();
}

std::shared_ptr<HashJoin> HashJoin::NewPart(const std::shared_ptr<MemoryBudget>& budget) const {
  auto part =
      std::make_shared<HashJoin>(spilled_->part_descriptor(), spilled_->part_entry_points(), code_, budget, options_);
  part->SetHostResidual(host_residual_);
  StopTogether(part.get());
  return part;
}

absl::Status HashJoin::BuildPart(const HashJoin& whole, const std::shared_ptr<SpilledRows>& tuples) {
  auto side = std::make_unique<BuildSide>(descriptor_, entry_points_, counters_, options_, budget_);
  QUERN_RETURN_IF_ERROR(LoadTuples(whole.spilled_->build(), tuples, budget_, stop_flag(), side.get()));
  local_states()->push_back(std::move(side));
  QUERN_RETURN_IF_ERROR(Finalise());
  build_is_empty_ = whole.build_is_empty_;
  build_has_null_key_ = whole.build_has_null_key_;
  return absl::OkStatus();
}

absl::Status HashJoin::BuildNullRows(const HashJoin& whole, const ReadTuples& rows) {
  QUERN_RETURN_IF_ERROR(Finalise());
  TupleSpan span;
  span.tuples = const_cast<uint8_t*>(rows.tuples());  // only read: none of them is ever matched
  span.num_tuples = span.capacity = rows.num_tuples();
  null_rows_ = {span};
  build_is_empty_ = whole.build_is_empty_;
  build_has_null_key_ = whole.build_has_null_key_;
  return absl::OkStatus();
}

void HashJoin::SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting) {
  options_.prefetch.Set(loop, setting);
  if (!is_finalised() || !descriptor_->rows()->prefetches || loop != ProbeLoopOf(table_.layout)) return;
  table_.probe = setting;
  stats_.prefetch_distance = setting.distance;
}

// ---- what a table tells ------------------------------------------------------------------------------------------

absl::StatusOr<KeySummary> HashJoin::Summarise(uint32_t key) const {
  QUERN_RETURN_IF_ERROR(CheckBuilt("key summary"));
  if (has_spilled()) return SummariseSpilled(key);
  QUERN_ASSIGN_OR_RETURN(KeySummary summary, SummariseKey(table_, *descriptor_->rows(), range_, key, stop_flag()));
  summary.num_build_rows = stats_.build_rows;
  summary.num_null_rows = num_null_rows_;
  return summary;
}

absl::StatusOr<uint64_t> HashJoin::FindMembers(const BatchView& batch, const MemberAnswer& answer) const {
  QUERN_RETURN_IF_ERROR(CheckBuilt("look-up"));
  QUERN_RETURN_IF_ERROR(CheckBatch(batch, descriptor_->rows()->num_keys, 0));
  if (has_spilled()) return FindRowsWithKeys(*descriptor_->get(), entry_points_, stop_flag(), batch, answer);
  return quern::FindMembers(table_, *descriptor_->get(), entry_points_, stop_flag(), batch, answer, options_.distances);
}

// What is known without a table: the range of a single packed key.
KeySummary HashJoin::SummariseSpilled(uint32_t key) const {
  KeySummary summary = SummariseRange(*descriptor_->rows(), range_, table_.sign_bit, key);
  summary.num_build_rows = stats_.build_rows;
  summary.num_null_rows = num_null_rows_;
  summary.num_keys = stats_.build_rows - num_null_rows_;
  return summary;
}

absl::Status HashJoin::CheckBuilt(const char* call) const {
  if (is_finalised()) return absl::OkStatus();
  return absl::FailedPreconditionError(std::string(call) +
                                       " before finalise: the table is not built; accepted: finalise first");
}

}  // namespace quern
