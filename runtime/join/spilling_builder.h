// SPDX-License-Identifier: Apache-2.0
// Builds the table of a join whose rows may exceed its memory.
#ifndef QUERN_RUNTIME_JOIN_SPILLING_BUILDER_H_
#define QUERN_RUNTIME_JOIN_SPILLING_BUILDER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/shared_work.h"
#include "runtime/join/build_side.h"
#include "runtime/join/join_descriptor.h"
#include "runtime/join/join_options.h"
#include "runtime/join/spilled_build.h"
#include "runtime/join/table_builder.h"

namespace quern {

// What building a join and its parts needs.
struct JoinContext {
  std::shared_ptr<const JoinDescriptor> descriptor;
  JoinEntrySource entry_points;
  std::shared_ptr<CounterSet> counters;
  JoinOptions options;
  std::shared_ptr<MemoryBudget> budget;
  const StopFlag* stop_flag = nullptr;  // the join's; may be null
};

// What so many tuples and their table take together while it is built, about.
uint64_t BuildBytesOf(const JoinDescriptor& descriptor, uint64_t num_rows, uint64_t string_bytes);

// Adds tuples that were written to `into`; the blocks stay in the store. budget: for what strings point to, which stays
// as long as `into`. stop_flag: may be null. *Errors*: ResourceExhausted, after which some may have been added;
// Cancelled; those of RowReader.
absl::Status LoadTuples(const SpilledBuild& build, const std::shared_ptr<SpilledRows>& rows,
                        const std::shared_ptr<MemoryBudget>& budget, const StopFlag* stop_flag, BuildSide* into);

// The work that builds a table of all rows or, where memory is refused, of the partitions that fit.
class SpillingBuilder {
 public:
  // sides: of all threads, which spill to `spilled`; they stay.
  SpillingBuilder(JoinContext context, std::shared_ptr<SpilledBuild> spilled, std::vector<BuildSide*> sides,
                  const PackedKeyRange& range);

  SharedWork* work() { return &work_; }
  // Whether rows were written, so that the sides do not have all of them.
  bool has_written() const { return spilled_->is_used(); }
  // Whether a table has taken tuples that nobody else has.
  bool has_taken_tuples() const { return table_ != nullptr && table_->has_taken_tuples(); }

  // After the work. The complete table:
  TableBuilder* table() { return table_.get(); }
  // The partitions that are not in the table, by number; null for those that are. Empty: all rows are in the table.
  std::vector<std::shared_ptr<SpilledRows>>* parts() { return &parts_; }
  // Rows whose null key matches nothing, which were written.
  SpilledRows null_rows() { return std::move(null_rows_); }
  // What the strings of the table point to, without the tuples that the table has now.
  std::vector<std::unique_ptr<BuildSide>> TakeLoaded();

 private:
  using Phase = SharedWork::Phase;
  enum class Next : uint8_t { kBegin, kDivide, kLoaded, kTable };
  absl::StatusOr<std::optional<Phase>> NextPhase();
  absl::StatusOr<std::optional<Phase>> NextOfTable();
  Phase Unrefused(Phase phase);
  Phase WriteAll();
  absl::Status ChooseResident();
  Phase Load();
  void BeginTable(const std::vector<TupleStore*>& stores);
  absl::Status Refuse();

  const JoinContext context_;
  const std::shared_ptr<SpilledBuild> spilled_;
  const std::vector<BuildSide*> sides_;
  const PackedKeyRange range_;
  Next next_ = Next::kBegin;
  std::atomic<bool> is_refused_{false};  // a task was refused memory
  std::unique_ptr<TableBuilder> table_;
  std::vector<std::shared_ptr<SpilledRows>> parts_;
  SpilledRows null_rows_;
  std::vector<uint32_t> resident_;  // partitions that are to be in the table, smallest first
  std::vector<std::unique_ptr<BuildSide>> loaded_;
  SharedWork work_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_SPILLING_BUILDER_H_
