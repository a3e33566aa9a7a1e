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
// Candidates of an axis take turns (turns.h); the best median goes on. At last it meets the default, and replaces it
// only beyond the noise, and by at least 3 %. There are as many threads as blocks in flight.
#include "codegen/tuning/spill_tuner.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "codegen/base/text_words.h"
#include "codegen/inspect/capture.h"
#include "codegen/tuning/job_data.h"
#include "codegen/tuning/turns.h"
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
constexpr size_t kLeastProofPairs = 3;
// What is set aside for reading and writing: enough for the largest candidate.
constexpr uint64_t kIoBytes = uint64_t{64} << 20;
constexpr uint64_t kBatchRows = 4096;

SpillChoice WithThreads(SpillChoice choice) {
  choice.threads = std::max({kLeastThreads, choice.read_ahead, choice.write_behind});
  return choice;
}

// Times, as a choice is judged by them.
tuning::Costs CostsOf(const SpillSpeed& speed) { return {1 / speed.device_mb_s, 1 / speed.cache_mb_s}; }
SpillSpeed SpeedOf(const tuning::Costs& costs) { return {1 / costs[0], 1 / costs[1]}; }

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
  explicit Search(const SpillSearch& search)
      : run_(search.run), clock_{search.now, search.end, search.stops}, begin_(search.now()) {}

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
  double At(double share) const { return begin_ + share * (clock_.end - begin_); }

  tuning::RunChoice RunOf(const std::vector<SpillChoice>& choices) const {
    return [this, &choices](size_t choice) -> absl::StatusOr<tuning::Costs> {
      QUERN_ASSIGN_OR_RETURN(const SpillSpeed speed, run_(choices[choice]));
      return CostsOf(speed);
    };
  }

  absl::Status Race(const std::vector<SpillChoice>& choices, double end, SpillChoice* best) {
    QUERN_ASSIGN_OR_RETURN(const tuning::Race race, tuning::RunRace(choices.size(), end, clock_, RunOf(choices)));
    for (size_t i = 0; i < race.medians.size(); ++i)
      tuning_.candidates.push_back({choices[i], SpeedOf(race.medians[i]), race.num_rounds});
    if (!race.medians.empty()) *best = choices[race.best];
    return absl::OkStatus();
  }

  absl::Status Duel(const SpillChoice& best) {
    const std::vector<SpillChoice> choices = {SpillChoice(), best};
    QUERN_ASSIGN_OR_RETURN(const tuning::Duel duel, tuning::RunDuel(0, clock_, RunOf(choices)));
    ProfileSpill& found = tuning_.found;
    found.noise = duel.noise;
    if (duel.num_pairs == 0) return absl::OkStatus();
    found.default_speed = found.speed = SpeedOf(duel.medians[0]);
    tuning_.beats_default = !(best == SpillChoice()) && duel.RivalWins();
    if (!tuning_.beats_default) return absl::OkStatus();
    found.choice = best;
    found.speed = SpeedOf(duel.medians[1]);
    return absl::OkStatus();
  }

  const std::function<absl::StatusOr<SpillSpeed>(const SpillChoice&)>& run_;
  const tuning::TurnClock clock_;
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
  const tuning::TurnClock clock = {tuning::NowSeconds, tuning::NowSeconds() + options.seconds,
                                   [&] { return options.stop != nullptr && *options.stop; }};
  const SpillChoice choices[] = {SpillChoice(), choice};
  const auto run = [&](size_t number) -> absl::StatusOr<tuning::Costs> {
    if (options.progress) options.progress("spilled rows: " + PrintSpillChoice(choices[number]));
    QUERN_ASSIGN_OR_RETURN(const SpillSpeed speed, MeasureSpilling(options.folder, choices[number], options.num_bytes));
    return CostsOf(speed);
  };
  QUERN_ASSIGN_OR_RETURN(const tuning::Duel duel, tuning::RunDuel(kLeastProofPairs, clock, run));
  return SpillProof{SpeedOf(duel.medians[0]), SpeedOf(duel.medians[1]), duel.num_pairs};
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
