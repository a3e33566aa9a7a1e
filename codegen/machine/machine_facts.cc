// SPDX-License-Identifier: Apache-2.0
// Measures this machine's memory, for tables of 32 KiB, 64 KiB, .. 2 GiB, on small pages and on huge ones:
//
//   latency   ns a load whose address depends on the load before it: nothing overlaps
//   floor F   ns a line with many loads outstanding: no loop over random lines can be faster. For writes it includes
//             the write back to memory
//
// Both loops visit the same truly random lines, since hardware prefetchers predict any stride. The floor's loop
// prefetches a fixed number of lines ahead of the one that it uses, so that the number of outstanding lines is known.
// It tries several such numbers by turns:
//
//     lines ahead        0     4     8    16    32    64   128
//     ns a line       14.1  24.0  12.3   6.7   5.4   5.3   5.6      256 MiB: 64 are best, F = 5.3 ns
//
// (4 are worse than none, since a core with a window of 500 instructions finds more lines than that by itself.) The
// candidates take turns, in slices of less than a millisecond, so that a neighbour's noise affects all of them alike. A
// candidate's result is the median of its slices; one that is far behind after its first slice gets no more.
//
// A cache ends where latency begins to rise. The rise to the next cache takes some doublings, since half of the lines
// still hit in a table twice as large as the cache; so a cache ends where a flat stretch ends:
//
//     size       32K  64K  128K  256K  512K   1M   2M   4M   8M   16M   32M   64M  128M
//     ns           1    2     3     3     3    4    7   11   13    14    28    69    95
//                 L1                            L2                 L3
//
// Stores of zeros: some Intel cores do not write back a line of zeros that is overwritten with zeros, which makes "fill
// with 0" up to 40 % faster than "fill with 1". A benchmark that fills its memory with zeros would measure this effect
// and not memory. The experiment repeats the same stores with several values: zeros over zeros, ones over ones, lines
// of zeros and of ones in turn, ones over zeros; and lines of ones and of twos in turn, to distinguish the effect of
// two values from that of zeros. *Source*: "Hardware Store Elimination", Travis Downs, 2020.
#include "codegen/machine/machine_facts.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/prefetch.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; headers of older C libraries do not have it
#endif

namespace quern {
namespace {

constexpr uint64_t kLineBytes = 64;
constexpr uint64_t kSmallestBytes = uint64_t{1} << kSmallestSizeClass;
constexpr uint64_t kLargestBytes = uint64_t{1} << kLargestSizeClass;
constexpr uint64_t kSmallPageBytes = 4096;
constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

// Shares of the time limit: all slices of random lines on one kind of page, and stores.
constexpr double kLinesShare = 0.3;
constexpr double kStoresShare = 0.12;
// Deadlines of huge pages, stores and small pages, as shares. Past one, larger tables are left out: a hypervisor may
// hand out new memory at less than 1 GB/s.
constexpr double kHugePagesEnd = 0.5;
constexpr double kSmallPagesEnd = 0.92;
constexpr uint32_t kRounds = 3;
constexpr uint32_t kAhead[] = {0, 4, 8, 16, 24, 32, 64, 96, 128, 256};
// A candidate that takes this many times the best one's time cannot catch up in later slices.
constexpr double kHopeless = 1.3;
constexpr double kSlicesASize = 2 * kRounds * std::size(kAhead) + 2 * kRounds;

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
}
double Median(const std::vector<double>& values) { return Quantile(values, 0.5); }

// ---- random lines ----------------------------------------------------------------------------------------------

// A walk over random lines of a table. The table's lines contain multiples of 64 below its size, so that the xor of one
// of them and the next random offset is again the offset of a line of the table.
class Walk {
 public:
  Walk(uint8_t* data, uint64_t bytes) : data_(data), mask_((bytes - 1) & ~(kLineBytes - 1)) {}

  void Chase(uint64_t steps) {
    uint64_t found = found_;
    for (uint64_t i = 0; i < steps; ++i) std::memcpy(&found, data_ + (Line(next_ + i) ^ found), sizeof found);
    found_ = found;
    next_ += steps;
  }

  // Prefetches the first lines; Use continues from there.
  template <bool kWrite>
  void Begin(uint32_t ahead) {
    ahead_ = ahead;
    for (uint64_t i = 0; i < ahead; ++i) Prefetch<kWrite>(next_ + i);
  }
  template <bool kWrite>
  void Use(uint64_t steps) {
    uint64_t sum = 0;
    for (uint64_t i = next_; i < next_ + steps; ++i) {
      if (ahead_ != 0) Prefetch<kWrite>(i + ahead_);
      uint8_t* const line = data_ + (ahead_ != 0 ? ring_[i % kRing] : Line(i));
      uint64_t found = 0;
      if (kWrite) found = i % (kSmallestBytes / kLineBytes) * kLineBytes, std::memcpy(line, &found, sizeof found);
      else std::memcpy(&found, line, sizeof found), sum += found;
    }
    asm volatile("" ::"r"(sum) : "memory");
    next_ += steps;
  }

 private:
  static constexpr uint64_t kRing = 512;  // more than any prefetch distance

  // A measurement walks the same lines each time.
  uint64_t Line(uint64_t i) const { return blocks::Mix(i + 1, blocks::kPublicHash) & mask_; }
  template <bool kWrite>
  void Prefetch(uint64_t i) {
    const uint64_t line = Line(i);
    PrefetchLine<kWrite ? PrefetchHint::kWrite : PrefetchHint::kT0>(data_ + line);
    ring_[i % kRing] = line;
  }

  uint8_t* data_;
  uint64_t mask_;
  uint64_t next_ = 0;
  uint64_t found_ = 0;
  uint32_t ahead_ = 0;
  std::array<uint64_t, kRing> ring_ = {};
};

// ns per iteration, over about `seconds`.
template <class Steps>
double Slice(double seconds, const Steps& steps) {
  constexpr uint64_t kUpdateFunctions = 1024;
  const double start = Now();
  uint64_t done = 0;
  double now = start;
  do {
    steps(kUpdateFunctions);
    done += kUpdateFunctions;
    now = Now();
  } while (now - start < seconds);
  return (now - start) / static_cast<double>(done) * 1e9;
}

struct Floor {
  double ns = 0;
  uint32_t ahead = 0;
};

template <bool kWrite>
Floor FindFloor(Walk* walk, double slice_seconds) {
  std::array<std::vector<double>, std::size(kAhead)> slices;
  double best_slice = 0;
  for (uint32_t round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < slices.size(); ++i) {
      if (round > 0 && slices[i][0] > kHopeless * best_slice) continue;
      walk->Begin<kWrite>(kAhead[i]);
      const double ns = Slice(slice_seconds, [&](uint64_t steps) { walk->Use<kWrite>(steps); });
      slices[i].push_back(ns);
      best_slice = best_slice == 0 ? ns : std::min(best_slice, ns);
    }
  }
  constexpr double kSame = 1.02;  // of two equally good candidates, the one with fewer outstanding lines wins
  Floor best;
  for (size_t i = 0; i < slices.size(); ++i) {
    const double ns = Median(slices[i]);
    if (best.ns == 0 || ns * kSame < best.ns) best = {ns, kAhead[i]};
  }
  return best;
}

// Loads the table into the caches, as far as it fits.
void Warm(const uint8_t* data, uint64_t bytes) {
  constexpr uint64_t kLargestWarm = uint64_t{64} << 20;
  uint64_t sum = 0;
  for (uint64_t at = 0; at < std::min(bytes, kLargestWarm); at += kLineBytes) sum += data[at];
  asm volatile("" ::"r"(sum));
}

MemoryFact MeasureSize(uint8_t* data, uint64_t bytes, double slice_seconds) {
  MemoryFact fact;
  fact.bytes = bytes;
  Walk walk(data, bytes);
  Warm(data, bytes);
  std::vector<double> latencies;
  const auto chase = [&] {
    for (uint32_t round = 0; round < kRounds; ++round)
      latencies.push_back(Slice(slice_seconds, [&](uint64_t steps) { walk.Chase(steps); }));
  };
  chase();
  const Floor read = FindFloor<false>(&walk, slice_seconds);
  const Floor write = FindFloor<true>(&walk, slice_seconds);
  chase();
  fact.latency_ns = Quantile(latencies, 0.25);  // noise can only add time
  fact.read_ns = read.ns;
  fact.read_misses = read.ahead;
  fact.write_ns = write.ns;
  fact.write_misses = write.ahead;
  return fact;
}

// ---- pages -----------------------------------------------------------------------------------------------------

// "AnonHugePages:    2048 kB".
bool IsKib(std::string_view line, std::string_view name, uint64_t* bytes) {
  if (line.substr(0, name.size()) != name) return false;
  const size_t digit = std::min(line.find_first_of("0123456789"), line.size());
  uint64_t kib = 0;
  if (std::from_chars(line.data() + digit, line.data() + line.size(), kib).ec != std::errc()) return false;
  *bytes = kib << 10;
  return true;
}

// "7f0c38000000-7f0c58000000 rw-p 00000000 00:00 0".
bool IsRange(std::string_view line, uint64_t* begin, uint64_t* end) {
  const char* const last = line.data() + line.size();
  const auto first = std::from_chars(line.data(), last, *begin, 16);
  if (first.ec != std::errc() || first.ptr == last || *first.ptr != '-') return false;
  const auto second = std::from_chars(first.ptr + 1, last, *end, 16);
  return second.ec == std::errc() && second.ptr != last && *second.ptr == ' ';
}

// Memory whose pages are touched from the front as they are needed.
class Pages {
 public:
  static absl::StatusOr<Pages> Reserve(uint64_t bytes, bool huge) {
    Pages pages;
    QUERN_ASSIGN_OR_RETURN(pages.buffer_, HugeBuffer::Allocate(nullptr, std::max(bytes, kHugePageBytes), huge));
    if (!huge) madvise(pages.buffer_.data(), pages.buffer_.bytes(), MADV_NOHUGEPAGE);
    return pages;
  }

  uint8_t* data() const { return buffer_.data(); }
  uint64_t taken_bytes() const { return taken_bytes_; }

  // False if the deadline has passed, or would pass before all pages are touched.
  bool Take(uint64_t bytes, double deadline) {
    constexpr uint64_t kPiece = uint64_t{32} << 20;
    while (taken_bytes_ < std::max(bytes, kHugePageBytes)) {
      const uint64_t piece = std::min(kPiece, buffer_.bytes() - taken_bytes_);
      if (taken_bytes_ >= kPiece && Now() + seconds_a_byte_ * static_cast<double>(bytes - taken_bytes_) > deadline)
        return false;
      const double piece_start = Now();
      uint8_t* const begin = buffer_.data() + taken_bytes_;
      if (madvise(begin, piece, MADV_POPULATE_WRITE) != 0)
        for (uint64_t at = 0; at < piece; at += kSmallPageBytes) *const_cast<volatile uint8_t*>(begin + at) = 0;
      taken_bytes_ += piece;
      seconds_a_byte_ = (Now() - piece_start) / static_cast<double>(piece);
    }
    return true;
  }

  // Whether the touched memory really has huge pages, according to the mapping's entry in /proc/self/smaps.
  bool AreHuge() const {
    std::ifstream file("/proc/self/smaps");
    const auto address = reinterpret_cast<uint64_t>(buffer_.data());
    bool is_ours = false;
    for (std::string line; std::getline(file, line);) {
      uint64_t begin = 0, end = 0, bytes = 0;
      if (IsRange(line, &begin, &end)) is_ours = begin <= address && address < end;
      if (is_ours && IsKib(line, "AnonHugePages:", &bytes)) return bytes >= taken_bytes_ / 10 * 9;
    }
    return false;
  }

 private:
  HugeBuffer buffer_;
  uint64_t taken_bytes_ = 0;
  double seconds_a_byte_ = 0;  // of the last piece
};

uint64_t NumberIn(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? number : UINT64_MAX;  // "max"
}

// Memory that the limits of a control group and its ancestors leave. `root`: the hierarchy's mount point.
uint64_t FreeInGroups(const std::string& root, std::string path, const char* limit, const char* usage) {
  uint64_t free = UINT64_MAX;
  while (true) {
    const uint64_t most = NumberIn(root + path + "/" + limit);
    const uint64_t used = NumberIn(root + path + "/" + usage);
    if (most != UINT64_MAX && used != UINT64_MAX) free = std::min(free, most - std::min(most, used));
    if (path.empty() || path == "/") return free;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

uint64_t LargestTable(const MachineFactsOptions& options) {
  const uint64_t wanted = options.max_bytes == 0 ? kLargestBytes : std::min(options.max_bytes, kLargestBytes);
  return std::bit_floor(std::max(kSmallestBytes, std::min(wanted, FreeMemoryBytes() / 2)));
}

// ---- stores and streams ----------------------------------------------------------------------------------------

using Line = uint64_t __attribute__((vector_size(64), aligned(64), may_alias));

Line LineOf(uint64_t word) { return Line{word, word, word, word, word, word, word, word}; }

// Stores lines of `even` and of `odd` in turn. The values are hidden from the compiler, which would call memset for
// zeros, and memset uses other instructions.
void Fill(uint8_t* data, uint64_t bytes, uint64_t even, uint64_t odd) {
  asm volatile("" : "+r"(even), "+r"(odd));
  const Line lines[2] = {LineOf(even), LineOf(odd)};
  auto* const to = reinterpret_cast<Line*>(data);
  for (uint64_t i = 0; i < bytes / kLineBytes; i += 2) {
    to[i] = lines[0];
    to[i + 1] = lines[1];
  }
  asm volatile("" ::: "memory");
}

void ReadAll(const uint8_t* data, uint64_t bytes) {
  const auto* const from = reinterpret_cast<const Line*>(data);
  Line sums[2] = {LineOf(0), LineOf(0)};
  for (uint64_t i = 0; i < bytes / kLineBytes; i += 2) {
    sums[0] += from[i];
    sums[1] += from[i + 1];
  }
  const uint64_t sum = sums[0][0] ^ sums[1][0];
  asm volatile("" ::"r"(sum));
}

template <class Work>
double GbPerSecond(uint64_t bytes, const Work& work) {
  const double start = Now();
  work();
  return static_cast<double>(bytes) / std::max(Now() - start, 1e-9) * 1e-9;
}

// The values that lines are filled with, and those that they had before.
struct StoreTest {
  double MachineFacts::* target;
  uint64_t even, odd, over;  // over: the lines' previous value; kLike: the same value as the new one
};
constexpr uint64_t kLike = ~uint64_t{0};
constexpr uint64_t kOnes = 0x0000'0001'0000'0001;  // an array of int filled with 1
constexpr StoreTest kStoreTests[] = {{&MachineFacts::zero_fill_gb_s, 0, 0, kLike},
                                     {&MachineFacts::one_fill_gb_s, kOnes, kOnes, kLike},
                                     {&MachineFacts::alternating_fill_gb_s, 0, kOnes, kLike},
                                     {&MachineFacts::alternating_control_gb_s, kOnes, 2 * kOnes, kLike},
                                     {&MachineFacts::ones_over_zeros_gb_s, kOnes, kOnes, 0}};
enum : uint8_t { kZeros, kOnesOverOnes, kAlternating, kControl, kOnesOverZeros };

// Zeros are cheaper beyond the noise if most passes with zeros are faster than nearly all with other values.
bool AreCheaper(const std::vector<double>& zeros, const std::vector<double>& others) {
  constexpr double kLeastGain = 1.05;
  return zeros.size() >= kRounds && Quantile(zeros, 0.25) > Quantile(others, 0.75) * kLeastGain;
}

void MeasureStores(uint8_t* data, uint64_t bytes, double seconds, MachineFacts* facts) {
  constexpr uint32_t kMost = 15;
  std::array<std::vector<double>, std::size(kStoreTests)> passes;
  const double start = Now();
  for (uint32_t round = 0; round < kMost && (round == 0 || Now() - start < seconds); ++round) {
    for (size_t i = 0; i < passes.size(); ++i) {
      const StoreTest& test = kStoreTests[i];
      Fill(data, bytes, test.over == kLike ? test.even : test.over, test.over == kLike ? test.odd : test.over);
      passes[i].push_back(GbPerSecond(bytes, [&] { Fill(data, bytes, test.even, test.odd); }));
    }
  }
  for (size_t i = 0; i < passes.size(); ++i) facts->*kStoreTests[i].target = Median(passes[i]);
  facts->zero_stores_are_cheaper =
      AreCheaper(passes[kZeros], passes[kOnesOverOnes]) && AreCheaper(passes[kZeros], passes[kControl]);
}

void MeasureStreams(uint8_t* data, uint64_t bytes, MachineFacts* facts) {
  std::vector<double> reads, writes, copies;
  for (uint64_t round = 1; round <= kRounds; ++round) {
    writes.push_back(GbPerSecond(bytes, [&] { Fill(data, bytes, round, ~round); }));
    reads.push_back(GbPerSecond(bytes, [&] { ReadAll(data, bytes); }));
    copies.push_back(GbPerSecond(bytes / 2, [&] { std::memcpy(data + bytes / 2, data, bytes / 2); }));
  }
  facts->sequential_read_gb_s = Median(reads);
  facts->sequential_write_gb_s = Median(writes);
  facts->sequential_copy_gb_s = Median(copies);
}

// ---- all -------------------------------------------------------------------------------------------------------

std::string SizeText(uint64_t bytes) {
  return bytes >> 20 != 0 ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes >> 10) + " KiB";
}

absl::Status CheckNotStopped(const MachineFactsOptions& options) {
  if (options.stop == nullptr || !options.stop->load(std::memory_order_relaxed)) return absl::OkStatus();
  return absl::CancelledError("measuring the machine: ended early; accepted: to its end");
}

// Measures all sizes on one kind of page. The caller may go on using the pages.
absl::StatusOr<Pages> MeasurePages(const MachineFactsOptions& options, uint64_t largest, bool huge, double deadline,
                                   MachineFacts* facts) {
  absl::StatusOr<Pages> pages = Pages::Reserve(largest, huge);
  while (!pages.ok() && largest > kSmallestBytes) {  // until the limits of this process allow it
    largest /= 2;
    facts->is_cut = true;
    pages = Pages::Reserve(largest, huge);
  }
  if (!pages.ok()) return pages;
  const uint32_t num_sizes = SizeClassOf(largest) - kSmallestSizeClass + 1;
  const double slice_seconds = kLinesShare * options.seconds / kSlicesASize / num_sizes;
  for (uint64_t bytes = kSmallestBytes; bytes <= largest; bytes *= 2) {
    if (options.progress)
      options.progress("random lines of " + SizeText(bytes) + (huge ? " on huge pages" : " on small pages"));
    QUERN_RETURN_IF_ERROR(CheckNotStopped(options));
    // Measures at least the caches, however little time there is.
    if (!pages->Take(bytes, deadline) || (Now() > deadline && bytes > kHugePageBytes)) {
      facts->is_cut = true;
      break;
    }
    if (huge && !pages->AreHuge()) break;
    facts->memory.push_back(MeasureSize(pages->data(), bytes, slice_seconds));
    facts->memory.back().huge_pages = huge;
  }
  return pages;
}

// Interleaves the facts of both kinds of page, by size.
void SortMemory(MachineFacts* facts) {
  std::sort(facts->memory.begin(), facts->memory.end(), [](const MemoryFact& a, const MemoryFact& b) {
    return std::pair(a.bytes, a.huge_pages) < std::pair(b.bytes, b.huge_pages);
  });
}

std::string FeaturesOf(const Machine& machine) {
  std::string text;
  for (size_t at = 0; at < machine.features.size();) {
    const size_t end = std::min(machine.features.find(',', at), machine.features.size());
    if (machine.features[at] == '+') text += (text.empty() ? "" : " ") + machine.features.substr(at + 1, end - at - 1);
    at = end + 1;
  }
  return text;
}

}  // namespace

uint64_t FreeMemoryBytes() {
  uint64_t free = kSmallestBytes;
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);) {
    IsKib(line, "MemAvailable:", &free);
  }
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:memory:/path", or "0::/path" of version 2
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controller = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controller.empty()) free = std::min(free, FreeInGroups("/sys/fs/cgroup", path, "memory.max", "memory.current"));
    if (controller == "memory")
      free =
          std::min(free, FreeInGroups("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes"));
  }
  return free;
}

void FindCaches(MachineFacts* facts) {
  const bool has_huge =
      std::any_of(facts->memory.begin(), facts->memory.end(), [](const MemoryFact& fact) { return fact.huge_pages; });
  std::vector<std::pair<uint64_t, double>> curve;  // on one kind of page; preferably huge: no translation misses
  for (const MemoryFact& fact : facts->memory)
    if (fact.huge_pages == has_huge) curve.emplace_back(fact.bytes, fact.latency_ns);
  std::sort(curve.begin(), curve.end());
  // A smaller table is never slower; the excess is noise.
  for (size_t i = curve.size(); i-- > 1;) curve[i - 1].second = std::min(curve[i - 1].second, curve[i].second);
  constexpr double kRise = 1.3;  // from one size to the next
  std::array<uint64_t, 3> ends = {};
  size_t num_ends = 0;
  bool was_flat = true;
  for (size_t i = 0; i + 1 < curve.size() && num_ends < ends.size(); ++i) {
    const bool is_flat = curve[i + 1].second < kRise * curve[i].second;
    if (was_flat && !is_flat) ends[num_ends++] = curve[i].first;
    was_flat = is_flat;
  }
  facts->l1_bytes = ends[0];
  facts->l2_bytes = ends[1];
  facts->l3_bytes = ends[2];
}

absl::StatusOr<MachineFacts> MeasureMachine(const MachineFactsOptions& options) {
  const double start = Now();
  MachineFacts facts;
  facts.signature = HostSignature();
  if (const absl::StatusOr<Machine> machine = HostMachine(); machine.ok()) facts.features = FeaturesOf(*machine);
  const uint64_t largest = LargestTable(options);
  {
    QUERN_ASSIGN_OR_RETURN(const Pages pages,
                           MeasurePages(options, largest, true, start + kHugePagesEnd * options.seconds, &facts));
    // A size beyond the caches if there are enough pages; a larger one would take too long.
    const uint64_t wanted =
        std::clamp(2 * std::bit_ceil(facts.signature.l3_bytes), uint64_t{64} << 20, uint64_t{256} << 20);
    const uint64_t bytes = std::min(wanted, pages.taken_bytes());
    if (options.progress) options.progress("stores and streams of " + SizeText(bytes));
    QUERN_RETURN_IF_ERROR(CheckNotStopped(options));
    MeasureStores(pages.data(), bytes, kStoresShare * options.seconds, &facts);
    MeasureStreams(pages.data(), bytes, &facts);
  }
  QUERN_RETURN_IF_ERROR(
      MeasurePages(options, largest, false, start + kSmallPagesEnd * options.seconds, &facts).status());
  SortMemory(&facts);
  FindCaches(&facts);
  facts.seconds = Now() - start;
  return facts;
}

}  // namespace quern
