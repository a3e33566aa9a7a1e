// SPDX-License-Identifier: Apache-2.0
// Pieces of a batch pass from step to step by calls: Run of a step makes its rows and calls Run of the next.
//
//     Append(batch of 65,536 rows)
//       piece 0, rows 0 .. 4095         filter: 4,021 rows ─> map: two columns ─> probe: 2,300 + 1,700 rows ─> sink,
//       twice piece 1, ..
//
// Columns of a piece lie in the batch, or in results of steps, and rows are selected by number. A filter thus copies
// nothing. A map computes the selected rows one after the other, and puts its results where the rows are, so that one
// selection serves all columns. A semi or anti join takes rows away, as a filter does. Any other probe puts its build
// payload where the rows are, too, unless one of them has several matches: then it copies all columns.
#include "runtime/pipeline/pipeline.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "runtime/base/adaptive_gate.h"
#include "runtime/base/output_buffer.h"
#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/runtime_calls.h"
#include "runtime/pipeline/result_sizes.h"
#include "runtime/pipeline/row_numbers.h"
#include "runtime/rows/add_up_fields.h"
#include "runtime/rows/address_views.h"
#include "runtime/rows/output_batch.h"
#include "runtime/rows/place_fields.h"
#include "runtime/rows/row_order.h"

namespace quern {
namespace {

// ---- rows ----

// Rows on their way: columns, and which of their rows.
struct Rows {
  std::vector<QuernColumn> columns;
  const uint32_t* selection = nullptr;  // null: rows 0 .. num_rows-1
  uint64_t num_rows = 0;
  uint64_t num_following = 0;  // BatchView::num_following
  uint64_t first_row_id = kCountedRowIds;
  uint64_t first_row = 0;             // what errors call row 0: its id or, behind a probe, its number in the results
  std::shared_ptr<const void> owner;  // of the columns, where a sink keeps them
  bool owns_strings = false;          // BatchView::owns_strings
  uint64_t num_present = 0;           // rows 0 .. num_present-1 of the columns may be read, selected or not

  // More than the highest row number.
  uint64_t RowSpan() const { return quern::RowSpan(selection, num_rows); }
};

void Bind(const std::vector<uint32_t>& numbers, const std::vector<QuernColumn>& columns,
          std::vector<QuernColumn>* bound) {
  bound->resize(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) (*bound)[i] = columns[numbers[i]];
}

void BindRows(const StepColumns& by, const Rows& rows, BatchView* batch) {
  Bind(by.keys, rows.columns, &batch->keys);
  Bind(by.payload, rows.columns, &batch->payload);
  batch->selection = rows.selection;
  batch->num_rows = rows.num_rows;
  batch->num_following = rows.num_following;
  batch->first_row_id = rows.first_row_id;
  batch->owner = rows.owner;
  batch->owns_strings = rows.owns_strings;
}

// bytes: where those of the strings are, by column; views point there.
QuernColumn ColumnOf(const OutputBatch& out, size_t c, const uint8_t* const* bytes) {
  const QuernOutColumn& from = out.column(c);
  QuernColumn column = {};
  column.validity = from.validity;
  column.values = from.values;
  column.offsets = from.offsets;
  const Storage storage = RowOf(out.type(c).id).storage;
  if (storage == kView) column.buffers = bytes;
  else if (IsVariable(storage)) column.values = *bytes;
  return column;
}

bool HasStrings(std::span<const ColumnType> types) {
  return std::any_of(types.begin(), types.end(),
                     [](const ColumnType& type) { return IsVariable(RowOf(type.id).storage); });
}

// Memory of strings, and of those that were there before.
struct BothOwners {
  std::shared_ptr<const void> before, added;
};

std::shared_ptr<const void> WithOwner(std::shared_ptr<const void> before, std::shared_ptr<const void> added) {
  if (before == nullptr) return added;
  return std::make_shared<BothOwners>(BothOwners{std::move(before), std::move(added)});
}

// Copies the bytes of strings, which the sink may keep, to memory of just their size: the results have room for a
// whole piece, also of columns that no sink points to, and are used again. owner: of the rows, from then on also of the
// copies.
absl::Status KeepBytes(const OutputBatch& out, const std::shared_ptr<MemoryBudget>& budget, const uint8_t** bytes,
                       std::shared_ptr<const void>* owner) {
  uint64_t num_bytes = 0;
  for (size_t c = 0; c < out.num_columns(); ++c) num_bytes += out.column(c).num_bytes;
  if (num_bytes == 0) return absl::OkStatus();
  const auto kept = std::make_shared<OutputBuffer>();
  QUERN_RETURN_IF_ERROR(kept->Allocate(budget, num_bytes));
  uint8_t* to = kept->data();
  for (size_t c = 0; c < out.num_columns(); ++c) {
    const uint64_t of_column = out.column(c).num_bytes;
    if (of_column == 0) continue;
    std::memcpy(to, bytes[c], of_column);
    bytes[c] = to;
    to += of_column;
  }
  *owner = WithOwner(std::move(*owner), kept);
  return absl::OkStatus();
}

// Writes the i-th string of a column at row rows[i] of n, which may be in any order; those of other rows are empty.
template <class Offset>
absl::Status SpreadStrings(const QuernOutColumn& from, std::span<const uint32_t> rows, uint64_t n, QuernOutColumn* to) {
  if (quern_rt_reserve_bytes(to, from.num_bytes) != 0) return OutOfMemory();
  const auto* const from_offsets = static_cast<const Offset*>(from.offsets);
  auto* const offsets = static_cast<Offset*>(to->offsets);
  std::fill_n(offsets, n + 1, Offset{0});
  for (size_t i = 0; i < rows.size(); ++i) offsets[rows[i] + 1] = from_offsets[i + 1] - from_offsets[i];
  for (uint64_t row = 0; row < n; ++row) offsets[row + 1] += offsets[row];
  for (size_t i = 0; i < rows.size(); ++i)
    std::memcpy(to->bytes + offsets[rows[i]], from.bytes + from_offsets[i],
                static_cast<size_t>(from_offsets[i + 1] - from_offsets[i]));
  to->num_bytes = from.num_bytes;
  return absl::OkStatus();
}
}  // namespace

// ---- steps of one thread ----

class PipelineInput::Step {
 public:
  explicit Step(const StepColumns& columns) : columns_(columns) {}
  virtual ~Step() = default;
  virtual absl::Status Run(Rows* rows) = 0;
  virtual void BeginPiece(bool /*is_again*/) {}
  // From the next piece on, pieces have more rows than before.
  virtual void SetPieceRows(uint64_t /*piece_rows*/) {}
  virtual bool has_written_part() const { return false; }

  Step* next = nullptr;  // null: this is the sink

 protected:
  const StepColumns& columns_;  // the pipeline has it
  BatchView batch_;             // used again and again
};

class PipelineInput::FilterStep final : public Step {
 public:
  FilterStep(const StepColumns& columns, std::shared_ptr<const RowFilter> filter)
      : Step(columns), filter_(std::move(filter)) {}

  absl::Status Run(Rows* rows) override {
    BindRows(columns_, *rows, &batch_);
    if (selected_.size() < rows->num_rows) selected_.resize(rows->num_rows);
    QUERN_ASSIGN_OR_RETURN(const uint64_t passed, filter_->Select(batch_, selected_.data()));
    if (passed == 0) return absl::OkStatus();
    const bool passes_all = passed == rows->num_rows && rows->selection == nullptr;
    if (!passes_all) rows->selection = selected_.data();
    rows->num_rows = passed;
    return next->Run(rows);
  }

 private:
  const std::shared_ptr<const RowFilter> filter_;
  std::vector<uint32_t> selected_;
};

class PipelineInput::MapStep final : public Step {
 public:
  // keeps_strings: as of a ProbeStep.
  MapStep(const StepColumns& columns, std::shared_ptr<const RowMapper> mapper, std::shared_ptr<MemoryBudget> budget,
          bool keeps_strings)
      : Step(columns),
        types_(mapper->descriptor().results()),
        budget_(std::move(budget)),
        has_strings_(HasStrings(types_)),
        keeps_strings_(keeps_strings),
        reader_(std::move(mapper), budget_),
        bytes_(types_.size()) {}

  absl::Status Run(Rows* rows) override {
    BindRows(columns_, *rows, &batch_);
    first_row_ = rows->first_row;
    const OutputBatch* results = nullptr;
    if (rows->selection == nullptr) {
      QUERN_RETURN_IF_ERROR(Compute(nullptr, rows->num_rows));
      results = results_.get();
    } else if (ComputesAll(*rows)) {
      results = results_.get();
    } else {
      QUERN_RETURN_IF_ERROR(Compute(rows->selection, rows->num_rows));
      QUERN_RETURN_IF_ERROR(Fit(rows->RowSpan(), &spread_));
      QUERN_RETURN_IF_ERROR(spread_->Reset());
      for (size_t c = 0; c < types_.size(); ++c) QUERN_RETURN_IF_ERROR(Spread(c, *rows));
      results = spread_.get();
      // Strings of rows that are not selected are those of other pieces, whose bytes are gone.
      if (has_strings_) rows->num_present = 0;
    }
    for (size_t c = 0; c < types_.size(); ++c) bytes_[c] = results->column(c).bytes;
    if (has_strings_ && keeps_strings_)
      QUERN_RETURN_IF_ERROR(KeepBytes(*results, budget_, bytes_.data(), &rows->owner));
    for (size_t c = 0; c < types_.size(); ++c) rows->columns.push_back(ColumnOf(*results, c, &bytes_[c]));
    return next->Run(rows);
  }

 private:
  absl::Status Compute(const uint32_t* selection, uint64_t num_rows, bool explains = true) {
    QUERN_RETURN_IF_ERROR(Fit(num_rows, &results_));
    batch_.selection = selection;
    batch_.num_rows = num_rows;
    QUERN_RETURN_IF_ERROR(reader_.SetInput(batch_, first_row_));
    QUERN_ASSIGN_OR_RETURN(const bool has_more, reader_.Next(results_.get(), explains));
    if (!has_more) return absl::OkStatus();
    return absl::OutOfRangeError("strings of 2 GiB and more in " + std::to_string(num_rows) +
                                 " rows of a pipeline; accepted: fewer, or large_utf8");
  }

  // Computes all rows, selected or not, where most are selected: that costs less than gathering these. Where a row
  // fails, which may be one that is not selected, the selected ones tell, and those of the next pieces are gathered:
  // divide_checked behind a filter of zeros would fail in each piece.
  bool ComputesAll(const Rows& rows) {
    if (rows.num_present == 0 || thresholds::kComputedShare * rows.num_rows < rows.num_present) return false;
    if (pieces_until_try_ != 0) {
      --pieces_until_try_;
      return false;
    }
    const absl::Status status = Compute(nullptr, rows.num_present, /*explains=*/false);
    if (absl::IsOutOfRange(status)) pieces_until_try_ = thresholds::kAllRowsRetryPieces - 1;
    return status.ok();
  }

  absl::Status Fit(uint64_t num_rows, std::unique_ptr<OutputBatch>* out) {
    if (*out != nullptr && (*out)->capacity() >= num_rows) return absl::OkStatus();
    *out = std::make_unique<OutputBatch>(types_, std::bit_ceil(std::max<uint64_t>(num_rows, 8)), budget_);
    return absl::OkStatus();
  }

  // Puts result i where the i-th selected row is. The bytes of views stay where they are.
  absl::Status Spread(size_t c, const Rows& rows) {
    const QuernOutColumn& from = results_->column(c);
    QuernOutColumn& to = spread_->columns()[c];
    if (types_[c].nullable) SpreadBits(from.validity, to.validity, rows);
    const Storage storage = RowOf(types_[c].id).storage;
    const std::span selection(rows.selection, rows.num_rows);
    if (storage == kVar32) return SpreadStrings<int32_t>(from, selection, rows.RowSpan(), &to);
    if (storage == kVar64) return SpreadStrings<int64_t>(from, selection, rows.RowSpan(), &to);
    if (storage == kBit) {
      SpreadBits(static_cast<const uint8_t*>(from.values), static_cast<uint8_t*>(to.values), rows);
      return absl::OkStatus();
    }
    if (storage == kView) {
      to.bytes = from.bytes;
      to.num_bytes = from.num_bytes;
    }
    switch (StorageFieldBytes(storage)) {
      case 1: SpreadValues<uint8_t>(from.values, to.values, rows); break;
      case 2: SpreadValues<uint16_t>(from.values, to.values, rows); break;
      case 4: SpreadValues<uint32_t>(from.values, to.values, rows); break;
      case 8: SpreadValues<uint64_t>(from.values, to.values, rows); break;
      case 16: SpreadValues<unsigned __int128>(from.values, to.values, rows); break;
      default: break;
    }
    return absl::OkStatus();
  }

  template <class T>
  static void SpreadValues(const void* from, void* to, const Rows& rows) {
    for (uint64_t i = 0; i < rows.num_rows; ++i) {
      T value;
      std::memcpy(&value, static_cast<const uint8_t*>(from) + i * sizeof(T), sizeof(T));
      std::memcpy(static_cast<uint8_t*>(to) + uint64_t{rows.selection[i]} * sizeof(T), &value, sizeof(T));
    }
  }

  // Into bits that are 0.
  static void SpreadBits(const uint8_t* from, uint8_t* to, const Rows& rows) {
    for (uint64_t i = 0; i < rows.num_rows; ++i) {
      const uint32_t row = rows.selection[i];
      const uint32_t bit = from[i / 8] >> i % 8 & 1;
      to[row / 8] = static_cast<uint8_t>(to[row / 8] | bit << row % 8);
    }
  }

  const std::vector<ColumnType> types_;
  const std::shared_ptr<MemoryBudget> budget_;
  const bool has_strings_, keeps_strings_;
  MapReader reader_;
  std::vector<const uint8_t*> bytes_;  // of strings, by result
  uint64_t first_row_ = 0;
  uint64_t pieces_until_try_ = 0;  // of computing all rows
  std::unique_ptr<OutputBatch> results_, spread_;
};

// Whether rows that come out of the probe may stay where they are, with the join's build payload beside them: no probe
// column changes, and no build column has offsets, which must follow one another.
bool CanStay(const JoinSpec& join) {
  const auto is_changed = [](const ColumnType& type) { return type.id == TypeId::kRowId || type.is_dictionary; };
  const auto has_offsets = [](const ColumnType& type) {
    const Storage storage = RowOf(type.id).storage;
    return storage == kVar32 || storage == kVar64;
  };
  return RowOf(join.kind).pairs && !join.probe.empty() &&
         std::none_of(join.probe.begin(), join.probe.end(), is_changed) &&
         std::none_of(join.build.begin(), join.build.end(), has_offsets);
}

class PipelineInput::ProbeStep final : public Step {
 public:
  // keeps_strings: the sink may point to strings of the results, which then stay as long as it wants.
  // reads_row_ids: a step or the sink behind this one does. sink: which the rows reach next, else null.
  ProbeStep(const PipelineStep& step, const std::shared_ptr<const HashJoin>& join, std::shared_ptr<MemoryBudget> budget,
            uint64_t piece_rows, bool keeps_strings, bool reads_row_ids, const PipelineSink* sink)
      : Step(step.columns),
        types_(JoinOutputTypes(join->descriptor().spec())),
        num_probe_(join->descriptor().spec().probe.size()),
        layout_(*join->descriptor().rows()),
        budget_(std::move(budget)),
        piece_rows_(piece_rows),
        keeps_strings_(keeps_strings),
        can_stay_(!reads_row_ids && CanStay(join->descriptor().spec())),
        prober_(join, step.host_context),
        out_(types_, std::min(piece_rows, thresholds::kFirstPieceRows), budget_) {
    bytes_.resize(types_.size());
    if (!can_stay_) return;
    MakeRoom(piece_rows);
    has_strings_ = HasStrings(std::span(types_).subspan(num_probe_));
    copies_strings_ = keeps_strings_ && ((budget_ != nullptr && budget_->has_limit()) || !join->may_be_kept());
    if (sink != nullptr && piece_rows <= kMostAddedRows) added_ = FieldsAddedUp(*sink);
  }

  void BeginPiece(bool is_again) override {
    prober_.BeginPiece(is_again);
    sizes_.BeginPiece(is_again);
    if (is_again) runs_until_try_ = runs_before_piece_;
    else runs_before_piece_ = runs_until_try_;
  }
  void SetPieceRows(uint64_t piece_rows) override {
    piece_rows_ = piece_rows;
    if (can_stay_) MakeRoom(piece_rows);
  }
  bool has_written_part() const override { return prober_.has_written_of_piece(); }

  absl::Status Run(Rows* rows) override {
    BindRows(columns_, *rows, &batch_);
    QUERN_RETURN_IF_ERROR(prober_.SetInput(batch_));
    if (can_stay_ && rows->RowSpan() <= piece_rows_) {
      if (runs_until_try_ == 0) return RunPairs(*rows);
      --runs_until_try_;
    }
    for (bool more = true; more;) {
      QUERN_ASSIGN_OR_RETURN(more, prober_.Next(&out_, sizes_.Next(out_.capacity())));
      if (out_.num_rows() != 0) QUERN_RETURN_IF_ERROR(PassCopies());
    }
    return absl::OkStatus();
  }

 private:
  // ---- all columns are copied ----

  absl::Status PassCopies() {
    QUERN_RETURN_IF_ERROR(sizes_.Add(out_.num_rows()));
    for (size_t c = 0; c < types_.size(); ++c) bytes_[c] = out_.column(c).bytes;
    found_.owner = nullptr;
    found_.owns_strings = keeps_strings_;
    if (keeps_strings_) QUERN_RETURN_IF_ERROR(KeepBytes(out_, budget_, bytes_.data(), &found_.owner));
    found_.columns.resize(types_.size());  // without those that maps have added
    for (size_t c = 0; c < types_.size(); ++c) found_.columns[c] = ColumnOf(out_, c, &bytes_[c]);
    found_.selection = nullptr;
    found_.first_row = 0;
    found_.num_rows = found_.num_present = out_.num_rows();
    return next->Run(&found_);
  }

  // ---- rows stay where they are ----

  absl::Status RunPairs(const Rows& rows) {
    for (bool more = true; more;) {
      uint64_t num_pairs = 0;
      QUERN_ASSIGN_OR_RETURN(more, prober_.NextPairs(piece_rows_, rows_.data(), tuples_.data(), &num_pairs));
      if (num_pairs == 0) continue;
      std::copy_n(rows_.begin(), num_pairs, selected_.begin());
      if (!sorter_->SortDistinct(selected_.data(), num_pairs)) {
        runs_until_try_ = thresholds::kPlacedRetryRuns - 1;
        QUERN_RETURN_IF_ERROR(CopyPairs(num_pairs));
      } else {
        QUERN_RETURN_IF_ERROR(PlacePairs(rows, num_pairs));
      }
    }
    prober_.EndPairs();
    return absl::OkStatus();
  }

  absl::Status CopyPairs(uint64_t num_pairs) {
    for (uint64_t done = 0; done < num_pairs;) {
      QUERN_ASSIGN_OR_RETURN(const uint64_t copied,
                             prober_.CopyPairs(rows_.data() + done, tuples_.data() + done,
                                               sizes_.Next(std::min(num_pairs - done, out_.capacity())), &out_));
      done += copied;
      QUERN_RETURN_IF_ERROR(PassCopies());
    }
    return absl::OkStatus();
  }

  void MakeRoom(uint64_t rows) {
    placed_.emplace(std::vector<ColumnType>(types_.begin() + static_cast<ptrdiff_t>(num_probe_), types_.end()), rows,
                    budget_);
    is_zeroed_ = false;
    rows_.resize(rows);
    tuples_.resize(rows);
    selected_.resize(rows);
    sorter_.emplace(static_cast<uint32_t>(rows));
  }

  // The pairs' rows differ, and are sorted in `selected_`.
  absl::Status PlacePairs(const Rows& rows, uint64_t num_pairs) {
    for (uint64_t done = 0; done < num_pairs;) {
      QUERN_RETURN_IF_ERROR(placed_->Reset());
      ZeroOnce();
      PlacedTuples some = {prober_.tuples(),
                           tuples_.data() + done,
                           rows_.data() + done,
                           static_cast<uint32_t>(sizes_.Next(num_pairs - done)),
                           prober_.prefetch_distance(),
                           copies_strings_,
                           /*prefetches_strings=*/copies_strings_ || !keeps_strings_,
                           /*left_out=*/added_};
      const RefusedCalls refused;
      const int64_t fit = PlaceFields(layout_, some, placed_->columns());
      QUERN_RETURN_IF_ERROR(refused.status());
      if (fit < 0) return StatusOfCode(static_cast<int32_t>(fit));
      const auto n = static_cast<uint64_t>(fit);
      some.n = static_cast<uint32_t>(n);
      const bool are_added = added_ != 0 && AddUp(some);
      QUERN_RETURN_IF_ERROR(sizes_.Add(n));
      if (n < num_pairs) {  // strings have room for some of the pairs
        std::copy_n(rows_.begin() + static_cast<ptrdiff_t>(done), n, selected_.begin());
        std::sort(selected_.begin(), selected_.begin() + static_cast<ptrdiff_t>(n));
      }
      const absl::Status passed = PassPlaced(rows, n);
      if (are_added) SetSums(some.rows[0], nullptr);
      QUERN_RETURN_IF_ERROR(passed);
      done += n;
    }
    return absl::OkStatus();
  }

  // ---- columns that are only added up: one row of a piece has the sum, the others have 0 ----

  // Bit f: build column f, of the first 64, of which all that the sink reads is added up.
  uint64_t FieldsAddedUp(const PipelineSink& sink) const {
    const std::vector<uint32_t>& read = sink.columns.payload;
    uint64_t fields = 0;
    for (size_t f = 0; f < std::min<size_t>(types_.size() - num_probe_, 64) && !sink.only_added.empty(); ++f) {
      bool is_read = false, is_added = layout_.fields[f].null_mask == 0 && !types_[num_probe_ + f].nullable;
      for (size_t p = 0; p < read.size(); ++p) {
        if (read[p] != num_probe_ + f) continue;
        is_read = true;
        is_added &= sink.only_added[p];
      }
      fields |= uint64_t{is_read && is_added} << f;
    }
    return fields;
  }

  // Where a value is too large, all are written; returns whether they were added up.
  bool AddUp(PlacedTuples some) {
    int64_t totals[64];
    if (AddUpFields(layout_, added_, some, totals)) {
      SetSums(some.rows[0], totals);
      return true;
    }
    some.left_out = ~added_;
    PlaceFields(layout_, some, placed_->columns());
    is_zeroed_ = false;
    return false;
  }

  // totals: by field; null: 0.
  void SetSums(uint32_t row, const int64_t* totals) {
    for (uint64_t left = added_; left != 0; left &= left - 1) {
      const auto f = static_cast<size_t>(std::countr_zero(left));
      static_cast<int64_t*>(placed_->columns()[f].values)[row] = totals == nullptr ? 0 : totals[f];
    }
  }

  absl::Status PassPlaced(const Rows& rows, uint64_t num_rows) {
    for (size_t c = num_probe_; c < types_.size(); ++c) bytes_[c] = placed_->column(c - num_probe_).bytes;
    found_.owner = rows.owner;
    found_.owns_strings = rows.owns_strings;
    if (copies_strings_) QUERN_RETURN_IF_ERROR(KeepBytes(*placed_, budget_, bytes_.data() + num_probe_, &found_.owner));
    else if (keeps_strings_ && has_strings_) KeepTable();
    found_.columns.assign(batch_.payload.begin(), batch_.payload.begin() + static_cast<ptrdiff_t>(num_probe_));
    for (size_t c = num_probe_; c < types_.size(); ++c) {
      found_.columns.push_back(ColumnOf(*placed_, c - num_probe_, &bytes_[c]));
      if (found_.columns.back().buffers != nullptr && !copies_strings_)
        found_.columns.back().buffers = AddressBuffers();
    }
    const bool is_all = num_rows == rows.num_rows;
    found_.selection = is_all ? rows.selection : selected_.data();
    found_.num_rows = num_rows;
    found_.first_row = rows.first_row;
    // Copies of rows that are not selected are those of other pieces, whose bytes are gone.
    const bool are_gone = has_strings_ && copies_strings_ && !(is_all && rows.selection == nullptr);
    found_.num_present = are_gone ? 0 : rows.num_present;
    return next->Run(&found_);
  }

  // Batches of one owner, as all pieces of a batch are, share the owner made of it.
  void KeepTable() {
    if (kept_table_ == nullptr || kept_for_ != found_.owner) {
      kept_for_ = found_.owner;
      kept_table_ = WithOwner(found_.owner, prober_.table_owner());
    }
    found_.owner = kept_table_;
  }

  // Rows that were never written may be read by a map that computes all rows.
  void ZeroOnce() {
    if (is_zeroed_) return;
    for (size_t c = 0; c < placed_->num_columns(); ++c) {
      const Storage storage = RowOf(placed_->type(c).id).storage;
      if (storage == kBit) continue;  // Reset has zeroed it
      const uint64_t width = storage == kFixed ? placed_->type(c).width_bytes : StorageFieldBytes(storage);
      std::memset(placed_->column(c).values, 0, placed_->capacity() * width);
    }
    is_zeroed_ = true;
  }

  const std::vector<ColumnType> types_;
  const size_t num_probe_;  // types of the probe payload, the first ones
  const QuernRowLayout& layout_;
  const std::shared_ptr<MemoryBudget> budget_;
  uint64_t piece_rows_;
  const bool keeps_strings_, can_stay_;
  JoinProber prober_;
  OutputBatch out_;
  Rows found_;
  std::vector<const uint8_t*> bytes_;  // of strings, by column
  // Where rows may stay:
  std::optional<OutputBatch> placed_;  // the build payload
  std::vector<uint32_t> rows_;         // of pairs
  std::vector<uint64_t> tuples_;       // of the same
  std::vector<uint32_t> selected_;     // the rows, sorted
  std::optional<RowSorter> sorter_;
  bool has_strings_ = false;  // in the build payload
  uint64_t added_ = 0;        // bit f: build column f is only added up
  // Whether the sink keeps strings, and the table may not be kept for them: where memory has a limit it goes as soon as
  // all rows have probed it.
  bool copies_strings_ = false;
  std::shared_ptr<const void> kept_for_, kept_table_;  // an owner of rows, and the one of these and the table
  bool is_zeroed_ = false;
  ResultSizes sizes_;
  uint64_t runs_until_try_ = 0, runs_before_piece_ = 0;  // in which all columns are copied
};

// A semi or anti join takes rows away, as a filter does, and copies nothing.
class PipelineInput::SelectionStep final : public Step {
 public:
  SelectionStep(const PipelineStep& step, const std::shared_ptr<const HashJoin>& join)
      : Step(step.columns), num_columns_(join->descriptor().spec().probe.size()), prober_(join, step.host_context) {}

  void BeginPiece(bool is_again) override { prober_.BeginPiece(is_again); }
  bool has_written_part() const override { return prober_.has_written_of_piece(); }

  absl::Status Run(Rows* rows) override {
    BindRows(columns_, *rows, &batch_);
    if (selected_.size() < rows->num_rows) selected_.resize(rows->num_rows);
    QUERN_RETURN_IF_ERROR(prober_.SetInput(batch_));
    QUERN_ASSIGN_OR_RETURN(const uint64_t passed, prober_.Select(selected_.data()));
    if (passed == 0) return absl::OkStatus();
    rows->columns.assign(batch_.payload.begin(), batch_.payload.begin() + num_columns_);
    if (passed < rows->num_rows) rows->selection = selected_.data();
    rows->num_rows = passed;
    return next->Run(rows);
  }

 private:
  const size_t num_columns_;  // of the payload; residual columns are behind them
  JoinProber prober_;
  std::vector<uint32_t> selected_;
};

// A test of keys takes rows away, as a filter does, and probes nothing.
class PipelineInput::ReductionStep final : public Step {
 public:
  ReductionStep(const StepColumns& columns, std::shared_ptr<const HashJoin> join)
      : Step(columns), join_(std::move(join)), gate_(Gate::kReduction, join_->adapts()), gate_before_piece_(gate_) {}

  void BeginPiece(bool is_again) override {
    if (is_again) gate_ = gate_before_piece_;
    else gate_before_piece_ = gate_;
  }

  absl::Status Run(Rows* rows) override {
    if (!gate_.TakeTurn()) return next->Run(rows);
    BindRows(columns_, *rows, &batch_);
    if (selected_.size() < rows->num_rows) selected_.resize(rows->num_rows);
    QUERN_ASSIGN_OR_RETURN(const uint64_t passed, join_->FindMembers(batch_, {.rows = selected_.data()}));
    gate_.Count(rows->num_rows, rows->num_rows - passed);
    if (passed == 0) return absl::OkStatus();
    if (passed < rows->num_rows) rows->selection = selected_.data();
    rows->num_rows = passed;
    return next->Run(rows);
  }

 private:
  const std::shared_ptr<const HashJoin> join_;
  AdaptiveGate gate_, gate_before_piece_;
  std::vector<uint32_t> selected_;
};

class PipelineInput::SinkStep final : public Step {
 public:
  SinkStep(const StepColumns& columns, PipelineEnd* end) : Step(columns), end_(end) {}

  absl::Status Run(Rows* rows) override {
    BindRows(columns_, *rows, &batch_);
    return end_->Append(batch_);
  }

 private:
  PipelineEnd* const end_;
};

PipelineInput::PipelineInput(std::shared_ptr<const Pipeline> pipeline, const std::shared_ptr<MemoryBudget>& budget,
                             PipelineEnd* end, uint64_t piece_rows, bool grows)
    : pipeline_(std::move(pipeline)),
      end_(end),
      piece_rows_(grows ? std::min(piece_rows, thresholds::kFirstPieceRows) : piece_rows),
      most_piece_rows_(budget != nullptr && budget->has_limit() ? piece_rows_ : piece_rows),
      rows_until_growth_(piece_rows_ == most_piece_rows_ ? UINT64_MAX : thresholds::kRowsOfFirstPieces) {
  for (size_t i = 0; i < pipeline_->steps().size(); ++i) {
    const PipelineStep& step = pipeline_->steps()[i];
    if (const auto* filter = std::get_if<std::shared_ptr<const RowFilter>>(&step.op))
      steps_.push_back(std::make_unique<FilterStep>(step.columns, *filter));
    else if (const auto* mapper = std::get_if<std::shared_ptr<const RowMapper>>(&step.op))
      steps_.push_back(std::make_unique<MapStep>(step.columns, *mapper, budget, pipeline_->sink().keeps_strings));
    else if (const auto& join = std::get<std::shared_ptr<const HashJoin>>(step.op); step.is_reduction)
      steps_.push_back(std::make_unique<ReductionStep>(step.columns, join));
    else if (IsSelection(join->descriptor().spec())) steps_.push_back(std::make_unique<SelectionStep>(step, join));
    else
      steps_.push_back(std::make_unique<ProbeStep>(step, join, budget, piece_rows_, pipeline_->sink().keeps_strings,
                                                   ReadsRowIdsBehind(*pipeline_, i),
                                                   i + 1 == pipeline_->steps().size() ? &pipeline_->sink() : nullptr));
  }
  steps_.push_back(std::make_unique<SinkStep>(pipeline_->sink().columns, end));
  for (const PipelineStep& step : pipeline_->steps()) {
    const auto* join = std::get_if<std::shared_ptr<const HashJoin>>(&step.op);
    if (join != nullptr && !step.is_reduction && !IsSelection((*join)->descriptor().spec())) break;
    spreads_ |= std::holds_alternative<std::shared_ptr<const RowMapper>>(step.op);
  }
  for (size_t i = 0; i + 1 < steps_.size(); ++i) steps_[i]->next = steps_[i + 1].get();
}

PipelineInput::~PipelineInput() = default;

// The selected rows of a host may lie anywhere in a large batch. A piece then is as many of them as lie close together,
// and its row numbers begin near 0, so that a map needs little room to put its results beside them.
PipelineInput::Span PipelineInput::SpanOf(const uint32_t* selection, uint64_t at, uint64_t most) const {
  if (selection == nullptr || !spreads_) return {0, most};
  const uint64_t widest = thresholds::kSpreadRowsPerRow * piece_rows_;
  uint32_t first = selection[at], last = first;
  uint64_t n = 1;
  for (; n < most; ++n) {
    const uint32_t row = selection[at + n], low = std::min(first, row), high = std::max(last, row);
    if (high - low >= widest) break;
    first = low;
    last = high;
  }
  return {last < widest ? 0 : first, n};
}

// Makes first_row the piece's row 0.
void PipelineInput::MoveOn(uint32_t first_row, BatchView* piece) {
  moved_.resize(piece->num_rows);
  for (uint64_t i = 0; i < piece->num_rows; ++i) moved_[i] = piece->selection[i] - first_row;
  piece->selection = moved_.data();
  if (piece->first_row_id != kCountedRowIds) piece->first_row_id += first_row;
  const std::vector<ColumnType>& types = pipeline_->source();
  for (size_t c = 0; c < types.size(); ++c) piece->keys[c] = ColumnFrom(first_row, types[c], piece->keys[c]);
}

bool PipelineInput::has_written_part() const {
  return is_again_ &&
         std::any_of(steps_.begin(), steps_.end(), [](const auto& step) { return step->has_written_part(); });
}

absl::Status PipelineInput::Append(const BatchView& batch, uint64_t* taken_rows) {
  *taken_rows = 0;
  QUERN_RETURN_IF_ERROR(CheckBatch(batch, pipeline_->source().size(), 0));
  while (*taken_rows < batch.num_rows) {
    if (rows_until_growth_ == 0 && !is_again_) GrowPieces();
    const uint64_t at = *taken_rows, most = std::min(piece_rows_, batch.num_rows - at);
    const Span span = SpanOf(batch.selection, at, most);
    const uint64_t num_rows = span.num_rows;
    BatchView piece = SliceOf(batch, pipeline_->source(), {}, at, num_rows);
    if (span.first_row != 0) MoveOn(span.first_row, &piece);
    Rows rows;
    rows.columns = std::move(piece.keys);
    rows.selection = piece.selection;
    rows.num_rows = num_rows;
    rows.num_following = piece.num_following;
    rows.num_present = piece.selection == nullptr ? num_rows : 0;
    rows.first_row_id = piece.first_row_id;
    if (piece.first_row_id != kCountedRowIds) rows.first_row = piece.first_row_id;
    else rows.first_row = piece.selection == nullptr ? at : span.first_row;
    rows.owner = batch.owner;
    rows.owns_strings = batch.owns_strings;
    for (const std::unique_ptr<Step>& step : steps_) step->BeginPiece(is_again_);
    end_->BeginPiece();
    is_again_ = true;
    QUERN_RETURN_IF_ERROR(steps_.front()->Run(&rows));
    is_again_ = false;
    end_->EndPiece();
    *taken_rows += num_rows;
    rows_until_growth_ -= std::min(rows_until_growth_, num_rows);
  }
  return absl::OkStatus();
}

void PipelineInput::GrowPieces() {
  piece_rows_ = most_piece_rows_;
  rows_until_growth_ = UINT64_MAX;
  for (const std::unique_ptr<Step>& step : steps_) step->SetPieceRows(piece_rows_);
}

}  // namespace quern
