// SPDX-License-Identifier: Apache-2.0
// Runs a map's kernel over pieces of a batch. map_run.h has what becomes of decimals that are too wide, and of rows
// without a result.
#include "runtime/map/row_mapper.h"

#include <algorithm>

#include "runtime/base/status.h"
#include "runtime/map/map_run.h"

namespace quern {
namespace {

// Rows between two looks at the entry points, a multiple of the rows of an instruction's piece.
constexpr uint64_t kCallRows = 16 * kPieceRows;
static_assert(kCallRows <= kMaxBatchRows);  // StringReader has room for as many

}  // namespace

absl::StatusOr<MapEnd> RowMapper::Run(QuernMapArgs* args, StringReader* strings, uint64_t* wide_calls) const {
  const QuernMapEntryPoints& now = entry_points_.ForLook(args->num_rows);
  const absl::StatusOr<MapEnd> end = RunMap(now, generic_, strings, args, wide_calls);
  counters_.OfThread()->CountBatch(args->num_rows, *wide_calls == 0 && now.rows != generic_.rows);
  return end;
}

absl::Status MapReader::SetInput(BatchView batch, std::optional<uint64_t> first_row) {
  const MapDescriptor& descriptor = *mapper_->descriptor_;
  QUERN_RETURN_IF_ERROR(CheckBatch(batch, descriptor.columns().size(), 0));
  if (places_.data() == nullptr) {
    const uint64_t bytes = uint64_t{descriptor.get()->num_places} * kPieceLanes * sizeof(QuernLanes);
    QUERN_ASSIGN_OR_RETURN(places_, HugeBuffer::Allocate(budget_, bytes, /*huge_pages=*/false, Contents::kAnything));
  }
  QUERN_RETURN_IF_ERROR(strings_.SetBatch(budget_));
  input_ = std::move(batch);
  first_row_ = first_row;
  next_row_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<bool> MapReader::Next(OutputBatch* out, bool explains) {
  const MapDescriptor& descriptor = *mapper_->descriptor_;
  QUERN_RETURN_IF_ERROR(CheckOutput(*out, descriptor.results().size(), NoColumns::kRefused));
  QUERN_RETURN_IF_ERROR(out->Reset());
  const CallTimer timer(mapper_->counters_.OfThread());
  const uint64_t begin = next_row_, num_rows = std::min(out->capacity(), input_.num_rows - begin);
  uint64_t done = 0, most_rows = kCallRows;
  // A call writes from a multiple of eight rows on. So the last one is that which has fewer rows than it might.
  for (bool is_last = false; done < num_rows && !is_last;) {
    QuernMapArgs args = {};
    args.descriptor = descriptor.get();
    args.columns = input_.keys.data();
    args.selection = input_.selection == nullptr ? nullptr : input_.selection + begin + done;
    args.first = begin + done;
    args.num_rows = static_cast<uint32_t>(std::min(most_rows, num_rows - done));
    args.results = out->columns();
    args.out_first = done;
    args.places = reinterpret_cast<QuernLanes*>(places_.data());
    QUERN_ASSIGN_OR_RETURN(const MapEnd end, mapper_->Run(&args, &strings_, &wide_calls_));
    if (end == MapEnd::kRowFailed) {
      if (!explains) return absl::OutOfRangeError("a row without a result");
      return FailedRow(mapper_->descriptor(), mapper_->generic_, args, first_row_, &strings_);
    }
    if (end == MapEnd::kDone) {
      done += args.num_rows;
      is_last = most_rows < kCallRows;
      continue;
    }
    if (done != 0) break;
    if (args.num_rows == 1)
      return absl::OutOfRangeError("a string of 2 GiB or more; accepted: shorter ones, or a result of large_utf8");
    most_rows = args.num_rows / 2;
  }
  out->set_num_rows(done);
  next_row_ += done;
  if (next_row_ < input_.num_rows) return true;
  input_.owner.reset();
  return false;
}

}  // namespace quern
