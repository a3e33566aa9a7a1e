// SPDX-License-Identifier: Apache-2.0
// A capture as text. Each kind of job is one line with words NAME=VALUE in this order; the spec comes last and extends
// to the end of the line.
//
//     quern-capture 1
//     job jobs=12 threads=2 layout=open build_rows=1000000 probe_rows=59986052 keys=1000000 hits=97.5 zipf=0.74
//         key_bytes=0 table_bytes=40000000 collided_rows=0 ns=512000000 params=batch_size=512
//         spec=join.inner keys=i64 build=i64                                                     (all on one line)
//     end 1
//
// params=- means that there are none. Empty lines and lines that begin with '#' are ignored. The last line counts the
// jobs, so that a truncated file is detected.
//
// Jobs that are alike share a line: those that a tuner would treat alike. 1 M and 1.04 M build rows, both of 20 bits,
// tune the same table; hit rates of 95 % and 40 % do not. Ten runs of a query, or one on each of ten days, are one line
// with jobs=10.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <utility>

#include "codegen/base/text_words.h"
#include "codegen/inspect/capture.h"
#include "codegen/plan/pipeline_plan.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr uint64_t kVersion = 1;
constexpr const char* kNames[] = {"jobs", "threads",   "layout",      "build_rows",    "probe_rows", "keys",   "hits",
                                  "zipf", "key_bytes", "table_bytes", "collided_rows", "ns",         "params", "spec"};
constexpr size_t kLayout = 2, kFirstReal = 3, kHits = 6, kZipf = 7, kParams = 12, kSpec = 13;
static_assert(std::size(kNames) == kSpec + 1);
constexpr uint64_t kMostJobs = uint64_t{1} << 50;
constexpr uint32_t kMostThreads = 65536;

// In the order of kNames, from kFirstReal on.
std::array<double*, kParams - kFirstReal> RealsOf(CapturedJob* job) {
  return {&job->build_rows,  &job->probe_rows,    &job->keys, &job->hits_percent, &job->zipf, &job->key_bytes,
          &job->table_bytes, &job->collided_rows, &job->ns};
}

std::string PrintParams(const PlanOverrides& params) {
  std::string text;
  for (const auto& [name, value] : params) text += (text.empty() ? "" : ",") + name + "=" + value;
  return text.empty() ? "-" : text;
}

std::string PrintJob(CapturedJob job) {
  std::string text =
      "job jobs=" + std::to_string(job.jobs) + " threads=" + std::to_string(job.threads) + " layout=" + job.layout;
  const auto reals = RealsOf(&job);
  for (size_t i = 0; i < reals.size(); ++i) {
    const size_t field = i + kFirstReal;
    const bool is_share = field == kHits || field == kZipf;
    const std::string value =
        is_share ? PrintReal(*reals[i]) : std::to_string(static_cast<uint64_t>(std::llround(*reals[i])));
    text += std::string(" ") + kNames[field] + "=" + value;
  }
  return text + " params=" + PrintParams(job.params) + " spec=" + job.spec + "\n";
}

// What all jobs of one kind have in common.
std::string KindOf(const CapturedJob& job) {
  const auto bits = [](double value) {
    return std::to_string(std::bit_width(static_cast<uint64_t>(std::llround(value))));
  };
  const auto steps = [](double value) { return std::to_string(std::llround(value)); };
  return job.spec + "\n" + PrintParams(job.params) + "\n" + job.layout + " " + std::to_string(job.threads) + " " +
         bits(job.table_bytes) + " " + bits(job.build_rows) + " " + bits(job.probe_rows) + " " +
         steps(job.hits_percent / 25) + " " + steps(job.zipf * 2) + " " + bits(job.key_bytes) + " " +
         (job.collided_rows > 0 ? "ties" : "");
}

absl::Status Bad(const std::string& what, std::string_view value, const std::string& accepted) {
  return InvalidArgument(what + ": " + Show(value) + "; accepted: " + accepted);
}

bool IsLayout(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

// NAME=VALUE,NAME=VALUE; values contain no commas.
absl::Status ReadParams(std::string_view text, PlanOverrides* params) {
  const std::string_view all = text;
  while (text != "-" && !text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view param = text.substr(0, comma);
    const size_t equals = param.find('=');
    if (equals == std::string_view::npos) return Bad("bad params of a job", all, "NAME=VALUE,NAME=VALUE.. or -");
    params->emplace_back(param.substr(0, equals), param.substr(equals + 1));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return absl::OkStatus();
}

absl::Status ReadSpec(std::string_view text, CapturedJob* job) {
  if (IsPipelineText(text)) {
    QUERN_ASSIGN_OR_RETURN(const PipelineSpec spec, ParsePipeline(text));
    job->spec = PrintPipeline(spec);
    return MakePipelinePlan(spec, job->params).status();
  }
  QUERN_ASSIGN_OR_RETURN(const KernelSpec spec, ParseSpec(text));
  if (Is<FilterSpec, MapSpec>(spec)) return Bad("spec of a job", text, "joins, aggregations, sorts and pipelines");
  job->spec = PrintSpec(spec);
  return MakePlan(spec, Machine{}, job->params).status();
}

absl::Status ReadField(size_t field, std::string_view value, CapturedJob* job) {
  const std::string what = std::string("bad ") + kNames[field] + " of a job";
  uint64_t count = 0;
  if (field == 0) {
    return ReadCount(value, 1, kMostJobs, &job->jobs) ? absl::OkStatus()
                                                      : Bad(what, value, "1 to " + std::to_string(kMostJobs));
  }
  if (field == 1) {
    if (!ReadCount(value, 1, kMostThreads, &count)) return Bad(what, value, "1 to " + std::to_string(kMostThreads));
    job->threads = static_cast<uint32_t>(count);
    return absl::OkStatus();
  }
  if (field == kLayout) {
    job->layout = value;
    return IsLayout(value) ? absl::OkStatus() : Bad(what, value, "a word of small letters");
  }
  if (field == kParams) return ReadParams(value, &job->params);
  const double most = field == kHits ? 100 : field == kZipf ? 10 : 1e18;
  double* const real = RealsOf(job)[field - kFirstReal];
  if (ReadReal(value, real) && *real <= most) return absl::OkStatus();
  return Bad(what, value, "a number from 0 to " + PrintReal(most));
}

absl::StatusOr<CapturedJob> ReadJob(std::string_view rest) {
  CapturedJob job;
  for (size_t field = 0; field < kSpec; ++field) {
    const std::string_view word = TakeWord(&rest);
    const std::string start = std::string(kNames[field]) + "=";
    if (word.substr(0, start.size()) != start) return Bad("field of a job", word, start + " here");
    QUERN_RETURN_IF_ERROR(ReadField(field, word.substr(start.size()), &job));
  }
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  if (rest.substr(0, 5) != "spec=") return Bad("field of a job", rest, "spec= here");
  QUERN_RETURN_IF_ERROR(ReadSpec(rest.substr(5), &job));
  return job;
}

// Reads lines one by one; `log` is complete after the last one.
class Reader {
 public:
  explicit Reader(CaptureLog* log) : log_(log) {}

  absl::Status ReadLine(std::string_view line) {
    std::string_view rest = line;
    const std::string_view word = TakeWord(&rest);
    if (word.empty() || word[0] == '#') return absl::OkStatus();
    if (has_end_) return Bad("line behind the end of a capture", line, "nothing behind end");
    if (!has_version_) return ReadVersion(line, word, rest);
    if (word == "end") return ReadEnd(rest);
    if (word != "job") return Bad("unknown line of a capture", word, "job, end");
    QUERN_ASSIGN_OR_RETURN(const CapturedJob job, ReadJob(rest));
    log_->Add(job);
    ++num_jobs_;
    return absl::OkStatus();
  }

  absl::Status CheckComplete() const {
    if (has_end_) return absl::OkStatus();
    return Bad("capture without its last line", has_version_ ? "cut off" : "empty",
               "a whole one, from quern-capture 1 to end COUNT");
  }

 private:
  absl::Status ReadVersion(std::string_view line, std::string_view word, std::string_view rest) {
    if (word != "quern-capture")
      return Bad("not a capture", line, "quern-capture " + std::to_string(kVersion) + " as first line");
    uint64_t version = 0;
    const std::string_view text = TakeWord(&rest);
    if (!ReadCount(text, kVersion, kVersion, &version) || !TakeWord(&rest).empty())
      return Bad("version of a capture", text, std::to_string(kVersion));
    has_version_ = true;
    return absl::OkStatus();
  }
  absl::Status ReadEnd(std::string_view rest) {
    uint64_t count = 0;
    const std::string_view text = TakeWord(&rest);
    if (!ReadCount(text, 0, UINT64_MAX, &count) || !TakeWord(&rest).empty() || count != num_jobs_)
      return Bad("number of jobs of a capture", text, std::to_string(num_jobs_) + ", as many as there are");
    has_end_ = true;
    return absl::OkStatus();
  }

  CaptureLog* log_;
  uint64_t num_jobs_ = 0;
  bool has_version_ = false, has_end_ = false;
};

}  // namespace

bool CaptureLog::Add(const CapturedJob& job) {
  const std::string kind = KindOf(job);
  const auto found = places_.find(kind);
  if (found == places_.end()) {
    if (jobs_.size() == kMostKinds) return false;
    places_.emplace(kind, jobs_.size());
    jobs_.push_back(job);
    return true;
  }
  CapturedJob& mean = jobs_[found->second];
  mean.jobs += job.jobs;
  CapturedJob news = job;
  const auto means = RealsOf(&mean);
  const auto values = RealsOf(&news);
  const double share = static_cast<double>(job.jobs) / static_cast<double>(mean.jobs);
  for (size_t i = 0; i < means.size(); ++i) *means[i] += (*values[i] - *means[i]) * share;
  return true;
}

std::string CaptureLog::Print() const {
  std::string text = "quern-capture " + std::to_string(kVersion) + "\n";
  for (const CapturedJob& job : jobs_) text += PrintJob(job);
  return text + "end " + std::to_string(jobs_.size()) + "\n";
}

absl::StatusOr<CaptureLog> CaptureLog::Parse(std::string_view text, std::string_view name) {
  CaptureLog log;
  Reader reader(&log);
  QUERN_RETURN_IF_ERROR(ReadLines(text, name, &reader));
  return log;
}

}  // namespace quern
