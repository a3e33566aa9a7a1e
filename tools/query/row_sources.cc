// SPDX-License-Identifier: Apache-2.0
#include "tools/query/row_sources.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/output_buffer.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/rows/arrow_import.h"

namespace quern::query {
namespace {

constexpr uint64_t kMorselRows = thresholds::kMorselRows;

// ---- tables ----

void ReleaseNothing(ArrowArray* array) { array->release = nullptr; }

// Rows of a struct array whose buffers somebody else owns.
struct BorrowedRows {
  ArrowArray array = {};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
  const void* validity = nullptr;

  BorrowedRows(const ArrowArray& batch, const std::vector<uint32_t>& numbers, uint64_t first, uint64_t num_rows) {
    for (const uint32_t number : numbers) {
      ArrowArray child = *batch.children[number];
      const bool is_whole = first == 0 && batch.offset == 0 && static_cast<int64_t>(num_rows) == child.length;
      child.offset += batch.offset + static_cast<int64_t>(first);
      child.length = static_cast<int64_t>(num_rows);
      if (!is_whole && child.null_count != 0) child.null_count = -1;
      child.release = &ReleaseNothing;
      children.push_back(child);
    }
    for (ArrowArray& child : children) pointers.push_back(&child);
    array.length = static_cast<int64_t>(num_rows);
    array.n_buffers = 1;
    array.buffers = &validity;
    array.n_children = static_cast<int64_t>(children.size());
    array.children = pointers.data();
    array.release = &ReleaseNothing;
  }
};

class TableSource final : public RowSource {
 public:
  TableSource(const TableRows& rows, const std::vector<uint32_t>& children, SourceContext context)
      : children_(children), context_(std::move(context)) {
    for (size_t c = 0; c < children.size(); ++c) binding_.keys.push_back(static_cast<int>(c));
    uint64_t first_id = 0;
    for (const ArrowArray* batch : rows.batches) {
      const auto num_rows = static_cast<uint64_t>(batch->length);
      for (uint64_t first = 0; first < num_rows; first += kMorselRows)
        morsels_.push_back({batch, first, std::min(kMorselRows, num_rows - first), first_id + first});
      first_id += num_rows;
    }
  }

  uint64_t num_morsels() const override { return morsels_.size(); }
  absl::Status Send(uint64_t number, RowTaker* taker) override {
    const Morsel& morsel = morsels_[number];
    BorrowedRows rows(*morsel.batch, children_, morsel.first, morsel.num_rows);
    QUERN_ASSIGN_OR_RETURN(BatchView view, ImportArrow(&rows.array, binding_, context_.types, {}));
    view.first_row_id = morsel.first_id;
    return taker->Take(view);
  }

 private:
  struct Morsel {
    const ArrowArray* batch;
    uint64_t first, num_rows, first_id;
  };
  const std::vector<uint32_t> children_;
  const SourceContext context_;
  ColumnBinding binding_;
  std::vector<Morsel> morsels_;
};

// ---- results ----

// The rows of an output batch as columns that steps read.
class ResultView {
 public:
  // owner: null where nobody keeps strings.
  BatchView Of(const OutputBatch& out, std::shared_ptr<const void> owner) {
    BatchView view;
    bytes_.resize(out.num_columns());
    for (size_t c = 0; c < out.num_columns(); ++c) {
      const QuernOutColumn& from = out.column(c);
      QuernColumn column = {};
      column.validity = from.validity;
      column.values = from.values;
      column.offsets = from.offsets;
      bytes_[c] = from.bytes;
      const Storage storage = RowOf(out.type(c).id).storage;
      if (storage == kView) column.buffers = &bytes_[c];
      else if (IsVariable(storage)) column.values = from.bytes;
      view.keys.push_back(column);
    }
    view.num_rows = out.num_rows();
    view.owns_strings = owner != nullptr;
    view.owner = std::move(owner);
    return view;
  }

  // The same with a copy of the strings' bytes.
  absl::StatusOr<BatchView> CopyOf(const OutputBatch& out, const std::shared_ptr<MemoryBudget>& budget,
                                   RowTaker* taker) {
    uint64_t num_bytes = 0;
    for (size_t c = 0; c < out.num_columns(); ++c) num_bytes += out.column(c).num_bytes;
    const auto kept = std::make_shared<OutputBuffer>();
    for (absl::Status status; num_bytes != 0;) {
      status = kept->Allocate(budget, num_bytes);
      if (status.ok()) break;
      QUERN_RETURN_IF_ERROR(taker->FreeMemory(status));
    }
    BatchView view = Of(out, kept);
    uint8_t* to = kept->data();
    for (size_t c = 0; c < out.num_columns(); ++c) {
      const uint64_t of_column = out.column(c).num_bytes;
      if (of_column == 0) continue;
      std::memcpy(to, bytes_[c], of_column);
      bytes_[c] = to;
      if (view.keys[c].buffers == nullptr) view.keys[c].values = to;
      to += of_column;
    }
    return view;
  }

 private:
  std::vector<const uint8_t*> bytes_;
};

// Sends what `next` fills in, batch by batch, to the taker. next(out): whether there is more; position(): of the first
// row that it filled in; rows before `offset` are left out.
template <class Next, class Position>
absl::Status SendResults(const SourceContext& context, uint64_t num_rows, uint64_t offset, const Next& next,
                         const Position& position, RowTaker* taker) {
  ResultView columns;
  std::shared_ptr<OutputBatch> out;
  const uint64_t capacity = std::clamp<uint64_t>(num_rows, 1, context.most_rows);
  for (bool more = true; more;) {
    const bool copies = context.keeps_strings && context.kept_budget != nullptr;
    if (out == nullptr || (context.keeps_strings && !copies))
      out = std::make_shared<OutputBatch>(context.types, capacity, context.budget);
    QUERN_ASSIGN_OR_RETURN(more, next(out.get()));
    if (out->num_rows() == 0) continue;
    BatchView view;
    if (copies) {
      QUERN_ASSIGN_OR_RETURN(view, columns.CopyOf(*out, context.kept_budget, taker));
    } else {
      view = columns.Of(*out, context.keeps_strings ? out : nullptr);
    }
    const uint64_t first = position();
    const uint64_t left_out = first < offset ? std::min(offset - first, view.num_rows) : 0;
    if (left_out == view.num_rows) continue;
    if (left_out != 0) view = SliceOf(view, context.types, {}, left_out, view.num_rows - left_out);
    QUERN_RETURN_IF_ERROR(taker->Take(view));
  }
  return absl::OkStatus();
}

class GroupSource final : public RowSource {
 public:
  GroupSource(std::shared_ptr<HashAggregate> groups, SourceContext context)
      : groups_(std::move(groups)), context_(std::move(context)) {}

  uint64_t num_morsels() const override { return Readers(groups_->stats().num_groups, context_.threads); }
  absl::Status Send(uint64_t /*morsel*/, RowTaker* taker) override {
    GroupReader reader(groups_);
    return SendResults(
        context_, groups_->stats().num_groups, 0, [&](OutputBatch* out) { return reader.Next(out); },
        [] { return uint64_t{0}; }, taker);
  }

 private:
  const std::shared_ptr<HashAggregate> groups_;
  const SourceContext context_;
};

class SortSource final : public RowSource {
 public:
  SortSource(std::shared_ptr<RowSort> sort, uint64_t offset, SourceContext context)
      : sort_(std::move(sort)), offset_(offset), context_(std::move(context)) {}

  // One reader alone has the rows in their order.
  uint64_t num_morsels() const override { return 1; }
  absl::Status Send(uint64_t /*morsel*/, RowTaker* taker) override {
    SortReader reader(sort_);
    return SendResults(
        context_, sort_->stats().num_rows, offset_, [&](OutputBatch* out) { return reader.Next(out); },
        [&] { return reader.position(); }, taker);
  }

 private:
  const std::shared_ptr<RowSort> sort_;
  const uint64_t offset_;
  const SourceContext context_;
};

class UnmatchedSource final : public RowSource {
 public:
  UnmatchedSource(std::shared_ptr<const HashJoin> join, SourceContext context)
      : join_(std::move(join)), context_(std::move(context)) {}

  // Where rows were written, probe rows may be far more than build rows.
  uint64_t num_morsels() const override {
    return join_->has_spilled() ? context_.threads : Readers(join_->stats().build_rows, context_.threads);
  }
  absl::Status Send(uint64_t /*morsel*/, RowTaker* taker) override {
    JoinProber prober(join_);
    QUERN_RETURN_IF_ERROR(prober.SetUnmatched());
    const uint64_t num_rows = join_->has_spilled() ? UINT64_MAX : join_->stats().build_rows;
    return SendResults(
        context_, num_rows, 0, [&](OutputBatch* out) { return prober.Next(out); }, [] { return uint64_t{0}; }, taker);
  }

 private:
  const std::shared_ptr<const HashJoin> join_;
  const SourceContext context_;
};

}  // namespace

uint64_t Readers(uint64_t num_rows, uint32_t threads) {
  return std::min<uint64_t>(threads, num_rows / kMorselRows + 1);
}

std::unique_ptr<RowSource> MakeTableSource(const TableRows& rows, const std::vector<uint32_t>& children,
                                           SourceContext context) {
  return std::make_unique<TableSource>(rows, children, std::move(context));
}

std::unique_ptr<RowSource> MakeGroupSource(std::shared_ptr<HashAggregate> groups, SourceContext context) {
  return std::make_unique<GroupSource>(std::move(groups), std::move(context));
}

std::unique_ptr<RowSource> MakeSortSource(std::shared_ptr<RowSort> sort, uint64_t offset, SourceContext context) {
  return std::make_unique<SortSource>(std::move(sort), offset, std::move(context));
}

std::unique_ptr<RowSource> MakeUnmatchedSource(std::shared_ptr<const HashJoin> join, SourceContext context) {
  return std::make_unique<UnmatchedSource>(std::move(join), std::move(context));
}

}  // namespace quern::query
