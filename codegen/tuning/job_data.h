// SPDX-License-Identifier: Apache-2.0
// The rows that tuning jobs run over, and the means to time them: columns of any type made from numbers, numbers of a
// given distribution, and threads that start together.
#ifndef QUERN_CODEGEN_TUNING_JOB_DATA_H_
#define QUERN_CODEGEN_TUNING_JOB_DATA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/rows/batch_view.h"
#include "runtime/spec/column_type.h"
#include "runtime/spec/spec.h"

namespace quern::tuning {

// How a column represents a number. Different numbers are different values if the type is wide enough.
enum class Values : uint8_t {
  kNumber,  // itself, as far as the type's range goes
  kSpread,  // random bits: a bijection
  kZero,    // the same value for all
};

constexpr uint64_t kRowsPerPrefix = 16;

// *Threads*: any number may read it once it is filled.
class NumberColumn {
 public:
  // *Errors*: Unimplemented for a dictionary.
  static absl::StatusOr<NumberColumn> Make(const ColumnType& type, Values values, uint32_t text_bytes,
                                           uint32_t prefix_bytes);

  // *Errors*: ResourceExhausted for more bytes of strings than offsets can address.
  absl::Status CheckRows(uint64_t rows) const;
  void Fill(const std::vector<uint64_t>& numbers);
  // Rows from `first` on.
  QuernColumn From(uint64_t first) const;
  // Bytes of a value in its column, plus a string's offset or view.
  uint64_t RowBytes() const;

 private:
  void PutText(uint64_t row, uint64_t number);
  void PutFixed(uint64_t row, uint64_t number);

  ColumnType type_;
  Storage storage_ = k64;
  Values values_ = Values::kSpread;
  uint32_t width_bytes_ = 8;   // of a value; of a string's bytes
  uint32_t prefix_bytes_ = 0;  // of a string, shared by kRowsPerPrefix rows
  std::vector<uint8_t> bytes_;
  std::vector<uint8_t> places_;  // offsets or views
  const uint8_t* buffer_ = nullptr;
};

// Keys and payload of one side.
struct RowMaker {
  std::vector<KeySpec> keys;
  std::vector<ColumnType> payload;
  bool dense = false;         // keys are numbers without gaps, in the widest key column
  uint32_t text_bytes = 16;   // of strings
  uint32_t prefix_bytes = 0;  // of string keys, shared by kRowsPerPrefix rows; 0, or at least 8
};

// The index of the key that distinguishes numbers: the widest.
size_t CarrierOf(const std::vector<KeySpec>& keys);

// *Ownership*: a view keeps only what its `owner` names.
class JobRows {
 public:
  // *Cost*: 2 to 10 ns a value. *Errors*: Unimplemented for a dictionary; ResourceExhausted as in CheckRows.
  static absl::StatusOr<std::shared_ptr<const JobRows>> Make(const RowMaker& maker,
                                                             const std::vector<uint64_t>& numbers);
  uint64_t num_rows() const { return num_rows_; }
  BatchView View(uint64_t first, uint64_t rows) const;

 private:
  uint64_t num_rows_ = 0;
  std::vector<NumberColumn> keys_, payload_;
};
// Bytes of a row's columns.
absl::StatusOr<uint64_t> BytesOfRow(const RowMaker& maker);

// A bijection of 64 bits, different from the tables' hash. *Source*: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
uint64_t SplitMix(uint64_t x);
// A pseudorandom permutation of [0, n): the new position of i.
uint64_t Permute(uint64_t i, uint64_t n);

// Chooses the keys of probe rows among n keys. Every run chooses the same.
class KeyChooser {
 public:
  // zipf: exponent; 0: uniform. hits_percent: share of rows with a number below n; the others have n or more.
  KeyChooser(uint64_t n, double zipf, uint32_t hits_percent);
  uint64_t Next();

 private:
  double H(double x) const;
  double InverseH(double x) const;
  uint64_t Random() { return SplitMix(state_++); }
  double Uniform() { return static_cast<double>(Random() >> 11) * 0x1p-53; }
  uint64_t NextZipf();

  uint64_t n_;
  double zipf_;
  uint32_t hits_percent_;
  uint64_t state_ = 1;
  double h_first_ = 0, h_last_ = 0, s_ = 0;
};

// The system's free memory; UINT64_MAX if it is unknown.
uint64_t FreeMemoryBytes();
// *Errors*: ResourceExhausted if a job of so many bytes would leave the system less than an eighth of its free memory.
absl::Status CheckMemory(uint64_t bytes);

double NowSeconds();

// Runs `run(thread)` on so many threads, which begin together. *Errors*: the first one's; ResourceExhausted if a thread
// cannot be started.
absl::Status OnThreads(uint32_t threads, const std::function<absl::Status(uint32_t thread)>& run);

}  // namespace quern::tuning

#endif  // QUERN_CODEGEN_TUNING_JOB_DATA_H_
