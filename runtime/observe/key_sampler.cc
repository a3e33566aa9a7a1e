// SPDX-License-Identifier: Apache-2.0
// An observer hashes keys itself, with the blocks of the generic join, whatever the operator and its kernel are. So its
// results are the same for a join, an aggregation and a sort, compiled or not, and operators keep nothing for it. For 1
// M build rows and 10 M probe rows in batches of 2048:
//
//     build rows    1,000,000 hashed into the counter of distinct keys: 4 ms
//     probe rows    32768 kept, each one in 512 by the end; 4 rows of a batch are hashed
//
// Only hashes are kept, and only as long as the observer lives.
#include "runtime/observe/key_sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/blocks/blocks.h"
#include "runtime/blocks/storage_dispatch.h"

namespace quern {
namespace {

constexpr uint32_t kBlockRows = 1024;
constexpr size_t kMostThreads = 1024;

// The keys, to be hashed by the operator's equality: nulls of groups and of sorted rows are values.
std::vector<KeySpec> HashedKeys(const KernelSpec& spec) {
  std::vector<KeySpec> keys;
  for (const KeySpec& key : KeysOf(spec)) {
    KeySpec plain;
    plain.type = key.type;
    plain.null_equal = key.null_equal || !Is<JoinSpec>(spec);
    keys.push_back(plain);
  }
  return keys;
}

// Adds the bytes of a string; nothing for a null.
uint64_t AddString(const QuernField& key, const QuernColumn* column, uint32_t row, uint64_t* num_strings) {
  if (!blocks::IsValid(column, row)) return 0;
  if (key.index_storage != kNoStorage) {
    row = TranslateRow(key.index_storage, column, row);
    column = column->dictionary;
  }
  ++*num_strings;
  return DispatchStorage(key.storage, [&](auto tag) -> uint64_t {
    constexpr Storage kStorage = decltype(tag)::value;
    if constexpr (blocks::IsVariableStorage(kStorage))
      return blocks::ReadBytes<kStorage>(column, row, key.rule, 0).length;
    else return 0;
  });
}

}  // namespace

struct KeySampler::Scratch {
  uint32_t rows[kBlockRows];  // without those whose null key cannot match
  uint64_t hashes[kBlockRows];
};

KeySampler::KeySampler(const KernelSpec& spec, const QuernJoinEntryPoints& kernel, Done done)
    : kernel_(kernel), done_(std::move(done)) {
  TuplePlacer placer;
  rows_.PlaceKeys(HashedKeys(spec), kInlineStringBytes, &placer);
  rows_.Finish(placer);
}

void KeySampler::SeeBuild(const BatchView& batch) {
  build_rows_.fetch_add(batch.num_rows, std::memory_order_relaxed);
  CountKeys(batch);
  SampleKeys(batch, &build_);
}

void KeySampler::SeeProbe(const BatchView& batch) {
  probe_rows_.fetch_add(batch.num_rows, std::memory_order_relaxed);
  SampleKeys(batch, &probe_);
}

void KeySampler::SeeInput(const BatchView& batch) {
  build_rows_.fetch_add(batch.num_rows, std::memory_order_relaxed);
  CountKeys(batch);
  SampleKeys(batch, &probe_);
}

// Hashes up to kBlockRows rows; returns how many have hashes.
uint32_t KeySampler::HashRows(const BatchView& batch, const uint32_t* rows, uint32_t n, Scratch* scratch) const {
  const uint32_t kept = kernel_.filter(&layout_, batch.keys.data(), 0, rows, n, scratch->rows);
  if (kept == kAllRows) std::copy_n(rows, n, scratch->rows);
  else n = kept;
  const auto make = layout_.packed_bytes != 0 ? kernel_.pack : kernel_.hash;
  make(&layout_, batch.keys.data(), 0, scratch->rows, n, scratch->hashes);
  // Without the constant, a key word of 0 would have the hash 0. The public numbers, since nothing is looked up by
  // these hashes: they only estimate how many keys differ.
  for (uint32_t i = 0; i < n; ++i)
    scratch->hashes[i] = blocks::Mix(scratch->hashes[i] + blocks::kPublicHash[blocks::kCombine], blocks::kPublicHash);
  return n;
}

void KeySampler::CountKeys(const BatchView& batch) {
  if (batch.keys.empty()) return;
  uint32_t rows[kBlockRows];
  Scratch scratch;
  for (uint64_t first = 0; first < batch.num_rows; first += kBlockRows) {
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(kBlockRows, batch.num_rows - first));
    for (uint32_t i = 0; i < n; ++i)
      rows[i] = batch.selection != nullptr ? batch.selection[first + i] : static_cast<uint32_t>(first + i);
    distinct_.Add(scratch.hashes, HashRows(batch, rows, n, &scratch));
  }
}

void KeySampler::SampleKeys(const BatchView& batch, RowSample* sample) {
  std::vector<uint32_t> rows;
  const uint64_t stride = sample->Choose(batch.num_rows, &rows);
  if (batch.selection != nullptr)
    for (uint32_t& row : rows) row = batch.selection[row];
  uint64_t bytes = 0, num_strings = 0;
  Scratch scratch;
  for (size_t first = 0; first < rows.size() && !batch.keys.empty(); first += kBlockRows) {
    const auto n = static_cast<uint32_t>(std::min<size_t>(kBlockRows, rows.size() - first));
    const uint32_t num_hashes = HashRows(batch, rows.data() + first, n, &scratch);
    for (uint32_t k = 0; k < layout_.num_keys; ++k) {
      const QuernField& key = layout_.keys[k];
      for (uint32_t i = 0; i < num_hashes && IsVariable(key.storage); ++i)
        bytes += AddString(key, &batch.keys[k], scratch.rows[i], &num_strings);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    sample->Add(scratch.hashes, num_hashes, stride);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  string_bytes_ += bytes;
  num_strings_ += num_strings;
  CountThread();
}

// Called with the mutex held.
void KeySampler::CountThread() {
  const std::thread::id id = std::this_thread::get_id();
  if (threads_.size() < kMostThreads && std::find(threads_.begin(), threads_.end(), id) == threads_.end())
    threads_.push_back(id);
}

void KeySampler::End(JobSummary job) {
  job.build_rows = build_rows_.load();
  job.probe_rows = probe_rows_.load();
  if (job.build_rows + job.probe_rows == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (job.keys == 0) job.keys = std::min(static_cast<uint64_t>(std::llround(distinct_.Estimate())), job.build_rows);
  // Tables do not count hits where only pairs are counted: estimate them by assuming that each hit finds as many tuples
  // as a key has.
  if (job.num_hits == 0 && matches_ != 0 && job.build_rows != 0) {
    const double pairs_per_row =
        static_cast<double>(job.build_rows) / static_cast<double>(std::max<uint64_t>(job.keys, 1));
    job.num_hits = static_cast<uint64_t>(std::llround(static_cast<double>(matches_.load()) / pairs_per_row));
  }
  job.num_hits = std::min(job.num_hits, job.probe_rows);
  job.zipf = FitZipf(probe_.hashes(), static_cast<double>(job.keys));
  job.key_bytes = num_strings_ == 0 ? 0 : static_cast<double>(string_bytes_) / static_cast<double>(num_strings_);
  job.threads = static_cast<uint32_t>(std::max<size_t>(threads_.size(), 1));
  done_(job);
}

}  // namespace quern
