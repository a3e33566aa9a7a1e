// SPDX-License-Identifier: Apache-2.0
// A row's number decides on its keys. Of a join of 1000 rows with 2000, row 5 of the build side has number 5, and each
// row of the probe side draws a number below 1000:
//
//     row of the probe side     0      1      2  ..
//     number                  731     18    402  ..       drawn: 64 random bits of the row, scaled to 0 .. 999
//     key                 Mix(731) Mix(18) Mix(402)       64 bits, different for different numbers
//
// Texts have 16 of 32 letters, for 80 bits of which 64 are random: different numbers have different texts.
#include "bench/spill/job_rows.h"

#include <algorithm>

#include "bench/common/append_rows.h"
#include "bench/common/random_bits.h"

namespace quern::bench {
namespace {

constexpr uint64_t kTextBytes = 16;
constexpr uint64_t kDrawSalt = uint64_t{1} << 62;  // rows draw other bits than those that keys consist of

// floor(point * n / 2^64), a number below n.
uint64_t Pick(uint64_t point, uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(point) * n) >> 64);
}

void PutText(uint64_t number, uint8_t* text) {
  uint64_t bits = RandomBits(number);
  for (uint64_t i = 0; i < kTextBytes; ++i, bits = bits << 5 | bits >> 59)
    text[i] = static_cast<uint8_t>("abcdefghijklmnopqrstuvwxyz012345"[bits >> 59]);
}

}  // namespace

struct JobRows::Columns {
  std::vector<uint8_t> text;
  std::vector<int32_t> offsets;
  std::vector<uint64_t> integers, payload;
};

JobRows::JobRows(const JobRowsSpec& spec, bool is_stored) : spec_(spec) {
  if (!is_stored) return;
  for (uint64_t first = 0; first < spec_.num_rows; first += kBatchRows)
    batches_.push_back(Make(first, std::min(kBatchRows, spec_.num_rows - first)));
}

std::shared_ptr<const JobRows::Columns> JobRows::Make(uint64_t first, uint64_t num_rows) const {
  auto columns = std::make_shared<Columns>();
  if (spec_.has_text) {
    columns->text.resize(num_rows * kTextBytes);
    columns->offsets.resize(num_rows + 1);
  }
  if (spec_.has_integer) columns->integers.resize(num_rows);
  if (spec_.has_payload) columns->payload.resize(num_rows);
  for (uint64_t i = 0; i < num_rows; ++i) {
    const uint64_t row = first + i;
    const uint64_t number =
        spec_.numbers == RowNumbers::kDistinct ? row : Pick(RandomBits(row + kDrawSalt), spec_.num_numbers);
    if (spec_.has_text) {
      PutText(number, columns->text.data() + i * kTextBytes);
      columns->offsets[i + 1] = static_cast<int32_t>((i + 1) * kTextBytes);
    }
    if (spec_.has_integer) columns->integers[i] = RandomBits(spec_.has_text ? row : number);
    if (spec_.has_payload) columns->payload[i] = row;
  }
  return columns;
}

BatchView JobRows::View(uint64_t first, uint64_t num_rows) const {
  const std::shared_ptr<const Columns> columns =
      batches_.empty() ? Make(first, num_rows) : batches_[first / kBatchRows];
  BatchView view;
  if (spec_.has_text) {
    QuernColumn text = {};
    text.values = columns->text.data();
    text.offsets = columns->offsets.data();
    view.keys.push_back(text);
  }
  const auto fixed = [](const std::vector<uint64_t>& values) {
    QuernColumn column = {};
    column.values = values.data();
    return column;
  };
  if (spec_.has_integer) view.keys.push_back(fixed(columns->integers));
  if (spec_.has_payload) view.payload.push_back(fixed(columns->payload));
  view.num_rows = num_rows;
  view.owner = columns;
  return view;
}

}  // namespace quern::bench
