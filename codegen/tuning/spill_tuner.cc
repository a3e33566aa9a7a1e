// SPDX-License-Identifier: Apache-2.0
// Two machines may differ in which blocks are best by a factor of ten: a network disk wants many large ones in flight,
// a page cache wants blocks that fit L2. Rows are therefore written and read by the code that operators use, and twice
// in a run:
//
//     device   written, fdatasync; dropped from the page cache (posix_fadvise); read
//     cache    written; read, from the page cache
//
// A choice is judged by both, since a job does not know which one it will meet: by the geometric mean of its times
// relative to those of the default. The search goes along one axis after the other:
//
//     blocks         64K  128K  256K  512K  1M  2M     at the other defaults -> 1M
//     read ahead     1  2  4  8  16                    at 1M                 -> 4
//     write behind   0  1  2  4  8                     at 1M, 4              -> 4
//     reads          ring  threads                     at 1M, 4, 4           -> ring
//     codec          none  lz4                         at 1M, 4, 4, ring     -> none
//
// Candidates of an axis take turns, so that what else happens on the device falls on all alike; the best median goes
// on. At last it meets the default in pairs of new runs, and replaces it only beyond the noise of these pairs, and by
// at least 3 %. There are as many threads as blocks in flight.
#include "codegen/tuning/spill_tuner.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "codegen/base/text_words.h"
#include "codegen/inspect/capture.h"
#include "codegen/tuning/job_data.h"
#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/batch_view.h"
#include "runtime/spill/spilled_rows.h"

namespace quern {
namespace {

constexpr uint32_t kBlockBytes[] = {64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20};
constexpr uint32_t kReadAhead[] = {1, 2, 4, 8, 16};
constexpr uint32_t kWriteBehind[] = {0, 1, 2, 4, 8};
constexpr uint32_t kLeastThreads = 2;
// Ends of the axes, as shares of the time; the rest is for the duel.
constexpr double kAxisEnds[] = {0.3, 0.5, 0.6, 0.7, 0.78};
constexpr size_t kMostRounds = 5, kLeastPairs = 3, kMostPairs = 15;
constexpr double kLeastGain = 0.03;
// What is set aside for reading and writing: enough for the largest candidate.
constexpr uint64_t kIoBytes = uint64_t{64} << 20;
constexpr uint64_t kBatchRows = 4096;

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

SpillChoice WithThreads(SpillChoice choice) {
  choice.threads = std::max({kLeastThreads, choice.read_ahead, choice.write_behind});
  return choice;
}

// How much longer `speed` takes than `base`, as a geometric mean of both ways.
double RelativeTime(const SpillSpeed& speed, const SpillSpeed& base) {
  return std::sqrt(base.device_mb_s / speed.device_mb_s * (base.cache_mb_s / speed.cache_mb_s));
}

SpillSpeed MedianOf(const std::vector<SpillSpeed>& runs) {
  std::vector<double> device, cache;
  for (const SpillSpeed& run : runs) {
    device.push_back(run.device_mb_s);
    cache.push_back(run.cache_mb_s);
  }
  return {Median(std::move(device)), Median(std::move(cache))};
}

// ---- one run --------------------------------------------------------------------------------------------------------

// The system's calls; knows the files.
class KnownFiles final : public FileCalls {
 public:
  int Open(const char* folder) override {
    const int file = FileCalls::Open(folder);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (file >= 0) files_.push_back(file);
    return file;
  }
  void Sync() const {
    for (const int file : files_) fdatasync(file);
  }
  // Pages that were written back already leave the cache.
  void Drop() const {
    for (const int file : files_) posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  }

 private:
  std::mutex mutex_;
  std::vector<int> files_;
};

SpillSettings SettingsOf(const SpillChoice& choice) {
  SpillSettings settings;
  settings.block_bytes = choice.block_bytes;
  settings.read_depth = choice.read_ahead;
  settings.write_depth = choice.write_behind;
  settings.num_threads = choice.threads;
  settings.uses_ring = choice.reads_by_ring;
  settings.codec = choice.compresses ? BlockCodec::kLz4 : BlockCodec::kNone;
  settings.io_bytes = kIoBytes;
  return settings;
}

// Two columns of numbers: one that nothing makes smaller, and one whose upper bytes are zero, as those of most keys and
// sums are.
class SomeRows {
 public:
  SomeRows() : random_(kBatchRows), small_(kBatchRows) {
    for (uint64_t i = 0; i < kBatchRows; ++i) {
      random_[i] = blocks::Mix(i + 1, blocks::kPublicHash);
      small_[i] = random_[i] >> kZeroBits;
    }
    ColumnType type;
    type.id = TypeId::kU64;
    types_ = {type, type};
    QuernColumn column = {};
    column.values = random_.data();
    batch_.keys = {column, column};
    batch_.keys[1].values = small_.data();
    batch_.num_rows = kBatchRows;
    batch_.first_row_id = 0;
  }
  const std::vector<ColumnType>& types() const { return types_; }
  const BatchView& batch() const { return batch_; }
  static uint64_t Batches(uint64_t num_bytes) { return num_bytes / (2 * sizeof(uint64_t) * kBatchRows) + 1; }

 private:
  static constexpr uint32_t kZeroBits = 40;
  std::vector<uint64_t> random_, small_;
  std::vector<ColumnType> types_;
  BatchView batch_;
};

// 10^6 bytes a second, written and read.
absl::StatusOr<double> WriteAndRead(const std::string& folder, const SpillChoice& choice, uint64_t num_bytes,
                                    bool past_cache) {
  KnownFiles files;
  const auto context = std::make_shared<SpillContext>(std::make_unique<TemporaryFiles>(folder, 0, &files),
                                                      std::make_shared<MemoryBudget>(0), SettingsOf(choice));
  const SomeRows rows;
  const double start = tuning::NowSeconds();
  RowWriter writer(context, rows.types());
  for (uint64_t i = 0; i < SomeRows::Batches(num_bytes); ++i) QUERN_RETURN_IF_ERROR(writer.Append(rows.batch()));
  QUERN_ASSIGN_OR_RETURN(SpilledRows written, writer.Finish());
  const double num_written = static_cast<double>(written.num_bytes());
  if (past_cache) files.Sync();
  const double write_end = tuning::NowSeconds();
  if (past_cache) files.Drop();
  const double read_start = tuning::NowSeconds();
  RowReader reader(context, rows.types(), std::move(written));
  for (bool more = true; more;) {
    BatchView batch;
    QUERN_ASSIGN_OR_RETURN(more, reader.Next(&batch));
  }
  const double seconds = tuning::NowSeconds() - read_start + (write_end - start);
  return num_written / std::max(seconds, 1e-9) / 1e6;
}

// ---- the search -----------------------------------------------------------------------------------------------------

class Search {
 public:
  explicit Search(const SpillSearch& search) : search_(search), begin_(search.now()) {}

  absl::StatusOr<SpillTuning> Run() {
    SpillChoice best;
    size_t axis = 0;
    const auto along = [&](const auto& values, uint32_t SpillChoice::* value) {
      std::vector<SpillChoice> choices;
      for (const uint32_t number : values) {
        choices.push_back(best);
        choices.back().*value = number;
        choices.back() = WithThreads(choices.back());
      }
      return Race(choices, At(kAxisEnds[axis++]), &best);
    };
    QUERN_RETURN_IF_ERROR(along(kBlockBytes, &SpillChoice::block_bytes));
    QUERN_RETURN_IF_ERROR(along(kReadAhead, &SpillChoice::read_ahead));
    QUERN_RETURN_IF_ERROR(along(kWriteBehind, &SpillChoice::write_behind));
    SpillChoice other = best;
    other.reads_by_ring = !best.reads_by_ring;
    QUERN_RETURN_IF_ERROR(Race({best, other}, At(kAxisEnds[axis++]), &best));
    other = best;
    other.compresses = !best.compresses;
    QUERN_RETURN_IF_ERROR(Race({best, other}, At(kAxisEnds[axis]), &best));
    QUERN_RETURN_IF_ERROR(Duel(best));
    return std::move(tuning_);
  }

 private:
  double At(double share) const { return begin_ + share * (search_.end - begin_); }
  bool Stops() const { return search_.stops && search_.stops(); }

  // Rounds of all choices until the time is over. A race without a whole round decides nothing.
  absl::Status Race(const std::vector<SpillChoice>& choices, double end, SpillChoice* best) {
    std::vector<std::vector<SpillSpeed>> runs(choices.size());
    size_t num_rounds = 0;
    for (double round_seconds = 0; num_rounds < kMostRounds; ++num_rounds) {
      const double start = search_.now();
      if (start + round_seconds >= end || Stops()) break;
      for (size_t i = 0; i < choices.size(); ++i) {
        const size_t place = num_rounds % 2 == 0 ? i : choices.size() - 1 - i;
        if (search_.now() >= search_.end || Stops()) return absl::OkStatus();
        QUERN_ASSIGN_OR_RETURN(const SpillSpeed speed, search_.run(choices[place]));
        runs[place].push_back(speed);
      }
      round_seconds = search_.now() - start;
    }
    if (num_rounds == 0) return absl::OkStatus();
    size_t first = 0;
    for (size_t i = 0; i < choices.size(); ++i) {
      tuning_.candidates.push_back({choices[i], MedianOf(runs[i]), num_rounds});
      if (RelativeTime(MedianOf(runs[i]), MedianOf(runs[first])) < 1) first = i;
    }
    *best = choices[first];
    return absl::OkStatus();
  }

  absl::Status Duel(const SpillChoice& best) {
    std::vector<SpillSpeed> defaults, bests;
    std::vector<double> ratios;
    while (ratios.size() < kMostPairs && search_.now() < search_.end && !Stops()) {
      const bool best_first = ratios.size() % 2 == 0;
      SpillSpeed by_best;
      if (best_first) {
        QUERN_ASSIGN_OR_RETURN(by_best, search_.run(best));
      }
      QUERN_ASSIGN_OR_RETURN(const SpillSpeed by_default, search_.run(SpillChoice()));
      if (!best_first) {
        QUERN_ASSIGN_OR_RETURN(by_best, search_.run(best));
      }
      defaults.push_back(by_default);
      bests.push_back(by_best);
      ratios.push_back(RelativeTime(by_best, by_default));
    }
    ProfileSpill& found = tuning_.found;
    found.noise = 1;
    if (ratios.empty()) return absl::OkStatus();
    const double ratio = Median(ratios);
    std::vector<double> deviations;
    for (const double r : ratios) deviations.push_back(std::abs(r - ratio));
    // Three standard errors of the median, from the median absolute deviation.
    found.noise = 3 * 1.858 * Median(deviations) / std::sqrt(static_cast<double>(ratios.size()));
    found.default_speed = found.speed = MedianOf(defaults);
    tuning_.beats_default =
        !(best == SpillChoice()) && ratios.size() >= kLeastPairs && ratio < 1 - std::max(found.noise, kLeastGain);
    if (!tuning_.beats_default) return absl::OkStatus();
    found.choice = best;
    found.speed = MedianOf(bests);
    return absl::OkStatus();
  }

  const SpillSearch& search_;
  const double begin_;
  SpillTuning tuning_;
};

std::string SpeedText(const SpillSpeed& speed) {
  return PrintFixed(speed.device_mb_s, 0) + " MB/s on the device, " + PrintFixed(speed.cache_mb_s, 0) +
         " in the page cache";
}

}  // namespace

absl::StatusOr<SpillSpeed> MeasureSpilling(const std::string& folder, const SpillChoice& choice, uint64_t num_bytes) {
  SpillSpeed speed;
  QUERN_ASSIGN_OR_RETURN(speed.device_mb_s, WriteAndRead(folder, choice, num_bytes, /*past_cache=*/true));
  QUERN_ASSIGN_OR_RETURN(speed.cache_mb_s, WriteAndRead(folder, choice, num_bytes, /*past_cache=*/false));
  return speed;
}

absl::StatusOr<SpillTuning> SearchSpilling(const SpillSearch& search) { return Search(search).Run(); }

absl::StatusOr<SpillTuning> TuneSpilling(const SpillTuningOptions& options) {
  SpillSearch search;
  search.now = tuning::NowSeconds;
  search.end = tuning::NowSeconds() + options.seconds;
  search.run = [&](const SpillChoice& choice) {
    if (options.progress) options.progress("spilled rows: " + PrintSpillChoice(choice));
    return MeasureSpilling(options.folder, choice, options.num_bytes);
  };
  search.stops = [&] { return options.stop != nullptr && options.stop->load(std::memory_order_relaxed); };
  return SearchSpilling(search);
}

absl::StatusOr<SpillProof> ProveSpilling(const SpillTuningOptions& options, const SpillChoice& choice) {
  const double end = tuning::NowSeconds() + options.seconds;
  std::vector<SpillSpeed> defaults, chosen;
  while (chosen.size() < kMostPairs && (chosen.size() < kLeastPairs || tuning::NowSeconds() < end)) {
    if (options.stop != nullptr && *options.stop && !chosen.empty()) break;
    if (options.progress) options.progress("spilled rows: " + PrintSpillChoice(choice));
    QUERN_ASSIGN_OR_RETURN(const SpillSpeed by_default,
                           MeasureSpilling(options.folder, SpillChoice(), options.num_bytes));
    QUERN_ASSIGN_OR_RETURN(const SpillSpeed by_choice, MeasureSpilling(options.folder, choice, options.num_bytes));
    defaults.push_back(by_default);
    chosen.push_back(by_choice);
  }
  return SpillProof{MedianOf(defaults), MedianOf(chosen), chosen.size()};
}

std::string PrintSpillTuning(const SpillTuning& tuning) {
  std::string text;
  for (const SpillCandidate& candidate : tuning.candidates)
    text += "spilled rows  " + PrintSpillChoice(candidate.choice) + "  " + SpeedText(candidate.speed) + "\n";
  const ProfileSpill& found = tuning.found;
  if (found.default_speed.device_mb_s == 0) return text + "spilled rows: no time to compare with the default\n";
  if (!tuning.beats_default)
    return text + "spilled rows: the default stays, " + PrintSpillChoice(found.choice) + ", " +
           SpeedText(found.default_speed) + "\n";
  return text + "spilled rows: " + PrintSpillChoice(found.choice) + ", " + SpeedText(found.speed) + "; by default " +
         SpeedText(found.default_speed) + "\n";
}

}  // namespace quern
