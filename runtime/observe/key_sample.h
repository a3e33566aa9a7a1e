// SPDX-License-Identifier: Apache-2.0
// Statistics about a job's keys, from hashes of a sample: how many distinct keys there are, and how unevenly they are
// distributed over rows.
#ifndef QUERN_RUNTIME_OBSERVE_KEY_SAMPLE_H_
#define QUERN_RUNTIME_OBSERVE_KEY_SAMPLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quern {

// A sample of a stream of rows, spread evenly over all rows.
class RowSample {
 public:
  static constexpr size_t kMostRows = 32768;

  // Chooses from the next n rows, in order; returns the stride: each chosen row stands for this many. *Threads*: any.
  uint64_t Choose(uint64_t n, std::vector<uint32_t>* rows);
  // Adds the hashes of rows that were chosen with this stride. *Threads*: one at a time; others may have added theirs
  // since these were chosen.
  void Add(const uint64_t* hashes, size_t n, uint64_t stride);

  const std::vector<uint64_t>& hashes() const { return hashes_; }

 private:
  uint64_t NextBelow(uint64_t n);

  std::atomic<uint64_t> stride_{1};
  std::atomic<uint64_t> num_choices_{0};
  std::vector<uint64_t> hashes_;
};

// Counts distinct hashes, to 1 % or 2 %. *Threads*: any.
class DistinctCounter {
 public:
  DistinctCounter() : ranks_(kNumRegisters) {}
  void Add(const uint64_t* hashes, size_t n);
  double Estimate() const;

 private:
  static constexpr uint32_t kRegisterBits = 14;
  static constexpr uint32_t kNumRegisters = 1 << kRegisterBits;

  std::vector<std::atomic<uint8_t>> ranks_;
};

// The exponent of Zipf's law over this many keys that fits the rows of a sample; 0 if all keys are equally frequent, or
// if too few rows share a key. *Cost*: sorts the sample.
double FitZipf(std::vector<uint64_t> hashes, double keys);

}  // namespace quern

#endif  // QUERN_RUNTIME_OBSERVE_KEY_SAMPLE_H_
