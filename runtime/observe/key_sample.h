// SPDX-License-Identifier: Apache-2.0
// What a job's keys are like, told by hashes of some of them: how many different ones there are, and how unevenly rows
// choose among them.
#ifndef QUERN_RUNTIME_OBSERVE_KEY_SAMPLE_H_
#define QUERN_RUNTIME_OBSERVE_KEY_SAMPLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quern {

// A part of a stream of rows, as evenly spread over it as the rows are that it keeps.
class RowSample {
 public:
  static constexpr size_t kMostRows = 32768;

  // Those of the next n rows that are wanted, in order; answers out of how many each is one. *Threads*: any.
  uint64_t Choose(uint64_t n, std::vector<uint32_t>* rows);
  // The hashes of rows of which each is one out of `stride`. *Threads*: one at a time; others may have added theirs
  // since these were chosen.
  void Add(const uint64_t* hashes, size_t n, uint64_t stride);

  const std::vector<uint64_t>& hashes() const { return hashes_; }

 private:
  uint64_t NextBelow(uint64_t n);

  std::atomic<uint64_t> stride_{1};
  std::atomic<uint64_t> num_choices_{0};
  std::vector<uint64_t> hashes_;
};

// How many different hashes there were, to 1 % or 2 %. *Threads*: any.
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

// The exponent of Zipf's law over so many keys by which the rows of a sample choose theirs; 0 where all keys are alike,
// or where too few rows have a key in common to tell. *Cost*: sorts the sample.
double FitZipf(std::vector<uint64_t> hashes, double keys);

}  // namespace quern

#endif  // QUERN_RUNTIME_OBSERVE_KEY_SAMPLE_H_
