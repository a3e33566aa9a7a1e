// SPDX-License-Identifier: Apache-2.0
// A key is a function of its number, a bijection if the type is wide enough: a table holds the keys of the numbers
// 0 .. n-1, and keys of n and more miss. So rows are made in one pass, and each probe row hits or misses as requested:
//
//     table of 4 keys      numbers 0 1 2 3, put in the order 2 0 3 1
//     probe, 50 % hits     numbers 2 6 0 5                              2 hits
//
//     i64, spread          number 2 -> 0x975835de1c9756ce               SplitMix64
//     i64, dense           number 2 -> 2
//     utf8 of 16           number 2 -> "h2qtkpmfx0zc9ebw"               8 characters are a bijection
//                                                                       of 40 bits, the rest are random
//
// Skewed keys follow Zipf's law: the k-th of n is chosen in proportion to k^-s. Rejection-inversion needs no table and
// takes any s above 0. *Source*: Hörmann, Derflinger, "Rejection-inversion to generate variates from monotone discrete
// distributions", 1996.
#include "codegen/tuning/job_data.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "runtime/base/joined_threads.h"
#include "runtime/base/status.h"

namespace quern::tuning {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
constexpr uint64_t k40Bits = (uint64_t{1} << 40) - 1;
constexpr uint32_t kViewBytes = 16;

uint64_t Scatter40(uint64_t x) {
  x = ((x + 1) * kGolden) & k40Bits;
  x = ((x ^ (x >> 20)) * 0xbf58476d1ce4e5b9u) & k40Bits;
  return x ^ (x >> 19);
}

bool IsText(Storage storage) { return storage == kVar32 || storage == kVar64 || storage == kView; }
uint32_t PlaceBytes(Storage storage) {
  return storage == kVar32 ? 4 : storage == kVar64 ? 8 : storage == kView ? kViewBytes : 0;
}

uint32_t WidthOf(const ColumnType& type) {
  if (type.id == TypeId::kFixedBinary) return type.width_bytes;
  return RowOf(type.id).storage == kBit ? 1 : RowOf(type.id).width_bytes;
}

}  // namespace

size_t CarrierOf(const std::vector<KeySpec>& keys) {
  const auto width = [&](size_t k) {
    return IsText(RowOf(keys[k].type.id).storage) ? 64u : std::min(WidthOf(keys[k].type), 8u);
  };
  size_t widest = 0;
  for (size_t k = 1; k < keys.size(); ++k)
    if (width(k) > width(widest)) widest = k;
  return widest;
}

uint64_t SplitMix(uint64_t x) {
  x = (x + 1) * kGolden;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Applies a bijection of the next power of two until the result is below n: at most twice on average.
uint64_t Permute(uint64_t i, uint64_t n) {
  if (n < 2) return 0;
  const int bits = std::bit_width(n - 1);
  const uint64_t mask = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  const int half = std::max(bits / 2, 1);
  do {
    i = ((i ^ (i >> half)) * kGolden + 0x632be59bd9b4e019u) & mask;
    i = ((i ^ (i >> half)) * 0xbf58476d1ce4e5b9u) & mask;
    i ^= i >> half;
  } while (i >= n);
  return i;
}

// ---- columns -----------------------------------------------------------------------------------------------------

absl::StatusOr<NumberColumn> NumberColumn::Make(const ColumnType& type, Values values, uint32_t text_bytes,
                                                uint32_t prefix_bytes) {
  if (type.is_dictionary)
    return absl::UnimplementedError("column of a tuning job: " + PrintType(type) +
                                    "; accepted: all types but dictionaries");
  NumberColumn column;
  column.type_ = type;
  column.storage_ = RowOf(type.id).storage;
  column.values_ = values;
  column.prefix_bytes_ = IsText(column.storage_) ? prefix_bytes : 0;
  column.width_bytes_ = IsText(column.storage_) ? prefix_bytes + std::max(text_bytes, 8u) : WidthOf(type);
  return column;
}

uint64_t NumberColumn::RowBytes() const { return width_bytes_ + PlaceBytes(storage_); }

absl::Status NumberColumn::CheckRows(uint64_t rows) const {
  if (!IsText(storage_) || storage_ == kVar64 || rows * width_bytes_ <= INT32_MAX) return absl::OkStatus();
  return absl::ResourceExhaustedError("bytes of a column of a tuning job: " + std::to_string(rows * width_bytes_) +
                                      "; accepted: up to 2147483647, which 32-bit offsets reach");
}

void NumberColumn::PutText(uint64_t row, uint64_t number) {
  static constexpr char kCharacters[] = "0123456789abcdefghijklmnopqrstuv";
  uint8_t* const to = bytes_.data() + row * width_bytes_;
  std::memset(to, 'p', prefix_bytes_);
  // Selects the shared prefix, so that rows with prefix collisions are scattered, a few to each prefix.
  if (prefix_bytes_ >= 8)
    for (uint32_t i = 0; i < 8; ++i)
      to[i] = static_cast<uint8_t>(kCharacters[(Scatter40(number / kRowsPerPrefix) >> (5 * i)) & 31]);
  for (uint32_t at = prefix_bytes_; at < width_bytes_; at += 8) {
    const uint64_t bits = at == prefix_bytes_ ? Scatter40(number) : SplitMix(number * kGolden + at);
    for (uint32_t i = 0; i < 8 && at + i < width_bytes_; ++i)
      to[at + i] = static_cast<uint8_t>(kCharacters[(bits >> (5 * i)) & 31]);
  }
  if (storage_ == kVar32) {
    const auto end = static_cast<int32_t>((row + 1) * width_bytes_);
    std::memcpy(places_.data() + (row + 1) * 4, &end, 4);
  } else if (storage_ == kVar64) {
    const auto end = static_cast<int64_t>((row + 1) * width_bytes_);
    std::memcpy(places_.data() + (row + 1) * 8, &end, 8);
  } else {
    uint8_t* const view = places_.data() + row * kViewBytes;
    const uint32_t numbers[] = {width_bytes_, 0, 0, static_cast<uint32_t>(row * width_bytes_)};
    std::memcpy(view, numbers, sizeof(numbers));
    std::memcpy(view + 4, to, width_bytes_ <= kInlineStringBytes ? width_bytes_ : 4);
  }
}

void NumberColumn::PutFixed(uint64_t row, uint64_t number) {
  const uint64_t bits = values_ == Values::kZero ? 0 : values_ == Values::kNumber ? number : SplitMix(number);
  if (storage_ == kBit) {
    if ((bits & 1) != 0) bytes_[row / 8] |= static_cast<uint8_t>(1u << (row % 8));
    return;
  }
  uint8_t* const to = bytes_.data() + row * width_bytes_;
  // Converts from a number, since random bits may be a NaN.
  const auto float_number = values_ == Values::kZero ? 0.0 : static_cast<double>(number);
  const auto short_number = static_cast<float>(float_number);
  if (type_.id == TypeId::kF64) std::memcpy(to, &float_number, sizeof(float_number));
  else if (type_.id == TypeId::kF32) std::memcpy(to, &short_number, sizeof(short_number));
  else std::memcpy(to, &bits, std::min<size_t>(width_bytes_, sizeof(bits)));
}

void NumberColumn::Fill(const std::vector<uint64_t>& numbers) {
  if (storage_ == kRowId) return;
  bytes_.assign(storage_ == kBit ? numbers.size() / 8 + 1 : numbers.size() * width_bytes_, 0);
  places_.assign((numbers.size() + 1) * PlaceBytes(storage_), 0);
  const bool is_text = IsText(storage_);
  for (uint64_t row = 0; row < numbers.size(); ++row) {
    if (is_text) PutText(row, values_ == Values::kZero ? 0 : numbers[row]);
    else PutFixed(row, numbers[row]);
  }
  buffer_ = bytes_.data();
}

QuernColumn NumberColumn::From(uint64_t first) const {
  QuernColumn column = {};
  column.values = bytes_.data();
  if (storage_ == kRowId) return column;
  if (storage_ == kBit) column.bit_offset = first;
  else if (storage_ == kView) column.values = places_.data() + first * kViewBytes;
  else if (IsText(storage_)) column.offsets = places_.data() + first * PlaceBytes(storage_);
  else column.values = bytes_.data() + first * width_bytes_;
  if (storage_ == kView) column.buffers = &buffer_;
  return column;
}

absl::StatusOr<std::shared_ptr<const JobRows>> JobRows::Make(const RowMaker& maker,
                                                             const std::vector<uint64_t>& numbers) {
  auto rows = std::make_shared<JobRows>();
  rows->num_rows_ = numbers.size();
  const size_t carrier = CarrierOf(maker.keys);
  for (size_t k = 0; k < maker.keys.size(); ++k) {
    const Values values = !maker.dense ? Values::kSpread : k == carrier ? Values::kNumber : Values::kZero;
    QUERN_ASSIGN_OR_RETURN(NumberColumn column,
                           NumberColumn::Make(maker.keys[k].type, values, maker.text_bytes, maker.prefix_bytes));
    rows->keys_.push_back(std::move(column));
  }
  for (const ColumnType& type : maker.payload) {
    QUERN_ASSIGN_OR_RETURN(NumberColumn column, NumberColumn::Make(type, Values::kNumber, maker.text_bytes, 0));
    rows->payload_.push_back(std::move(column));
  }
  for (const std::vector<NumberColumn>* columns : {&rows->keys_, &rows->payload_})
    for (const NumberColumn& column : *columns) QUERN_RETURN_IF_ERROR(column.CheckRows(numbers.size()));
  for (NumberColumn& column : rows->keys_) column.Fill(numbers);
  for (NumberColumn& column : rows->payload_) column.Fill(numbers);
  return std::shared_ptr<const JobRows>(std::move(rows));
}

BatchView JobRows::View(uint64_t first, uint64_t rows) const {
  BatchView view;
  view.num_rows = rows;
  for (const NumberColumn& column : keys_) view.keys.push_back(column.From(first));
  for (const NumberColumn& column : payload_) view.payload.push_back(column.From(first));
  return view;
}

absl::StatusOr<uint64_t> BytesOfRow(const RowMaker& maker) {
  uint64_t bytes = 0;
  for (const KeySpec& key : maker.keys) {
    QUERN_ASSIGN_OR_RETURN(const NumberColumn column,
                           NumberColumn::Make(key.type, Values::kZero, maker.text_bytes, maker.prefix_bytes));
    bytes += column.RowBytes();
  }
  for (const ColumnType& type : maker.payload) {
    QUERN_ASSIGN_OR_RETURN(const NumberColumn column, NumberColumn::Make(type, Values::kZero, maker.text_bytes, 0));
    bytes += column.RowBytes();
  }
  return bytes;
}

// ---- distributions -------------------------------------------------------------------------------------------------

KeyChooser::KeyChooser(uint64_t n, double zipf, uint32_t hits_percent)
    : n_(std::max<uint64_t>(n, 1)), zipf_(zipf), hits_percent_(hits_percent) {
  if (zipf_ <= 0) return;
  h_first_ = H(1.5) - 1;
  h_last_ = H(static_cast<double>(n_) + 0.5);
  s_ = 2 - InverseH(H(2.5) - std::pow(2.0, -zipf_));
}

// The integral of x^-s, and its inverse.
double KeyChooser::H(double x) const {
  return std::abs(zipf_ - 1) < 1e-9 ? std::log(x) : std::pow(x, 1 - zipf_) / (1 - zipf_);
}
double KeyChooser::InverseH(double x) const {
  return std::abs(zipf_ - 1) < 1e-9 ? std::exp(x) : std::pow(x * (1 - zipf_), 1 / (1 - zipf_));
}

uint64_t KeyChooser::NextZipf() {
  for (;;) {
    const double u = h_last_ + Uniform() * (h_first_ - h_last_);
    const double x = InverseH(u);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(n_));
    if (k - x <= s_ || u >= H(k + 0.5) - std::pow(k, -zipf_)) return static_cast<uint64_t>(k) - 1;
  }
}

uint64_t KeyChooser::Next() {
  const uint64_t number = zipf_ > 0 ? Permute(NextZipf(), n_) : Random() % n_;
  return hits_percent_ < 100 && Random() % 100 >= hits_percent_ ? number + n_ : number;
}

// ---- the machine ---------------------------------------------------------------------------------------------------

uint64_t FreeMemoryBytes() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (uint64_t kib = 0; file >> name >> kib; std::getline(file, unit))
    if (name == "MemAvailable:") return kib << 10;
  return UINT64_MAX;
}

absl::Status CheckMemory(uint64_t bytes) {
  const uint64_t free_bytes = FreeMemoryBytes(), usable = free_bytes - free_bytes / 8;
  if (bytes <= usable) return absl::OkStatus();
  return absl::ResourceExhaustedError("memory of a tuning job: " + std::to_string(bytes) + " bytes; accepted: up to " +
                                      std::to_string(usable) + " of those that are free");
}

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

absl::Status OnThreads(uint32_t threads, const std::function<absl::Status(uint32_t thread)>& run) {
  if (threads <= 1) return run(0);
  std::vector<absl::Status> statuses(threads);
  std::atomic<uint32_t> num_ready{0};
  std::atomic<bool> gives_up{false};
  const auto loop = [&](uint32_t thread) {
    ++num_ready;
    while (num_ready < threads && !gives_up) std::this_thread::yield();
    if (!gives_up) statuses[thread] = WithoutBadAlloc([&] { return run(thread); });
  };
  JoinedThreads others;
  for (uint32_t thread = 1; thread < threads && !gives_up; ++thread)
    gives_up = !others.Start([&loop, thread] { loop(thread); });
  loop(0);
  others.Join();
  if (gives_up)
    return absl::ResourceExhaustedError("threads of a tuning job: " + std::to_string(threads) + "; accepted: fewer");
  for (const absl::Status& status : statuses) QUERN_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace quern::tuning
