// SPDX-License-Identifier: Apache-2.0
// The lower bound of a loop's cost: llvm-mca takes straight-line instructions, lets a model of the CPU run them a
// hundred times, and reports the cycles of an iteration and what it waits for. In that model caches always hit and
// branches are always predicted, so the figure is a bound for rows that are in the cache, not a promise.
//
// On request, LLVM writes comments after labels that say which loop each block belongs to:
//
//     .LBB0_3:                # =>This Inner Loop Header: Depth=1           the loop BB0_3 begins
//             movl  %ecx, %edx
//     ..
//     # %bb.5:                #   in Loop: Header=BB0_3 Depth=1             a block of it, wherever it stands
//
// A loop's region is all its blocks in the order of the assembly, without those of inner loops, which are regions of
// their own. This counts both sides of a branch, and counts a slow path that is seldom taken as if it always were.
// `join.inner keys=i64` on znver5:
//
//     loop                   depth  instructions  cycles  uops/cycle
//     quern_join_pack.BB0_3      1             8    2.11        3.79
#include "tools/report/mca.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "codegen/base/log.h"
#include "codegen/base/private_folder.h"
#include "codegen/base/write_file.h"
#include "codegen/machine/profile.h"
#include "codegen/pipeline_compiler.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

// The text after `mark` up to a blank; nothing if the line has no such mark.
std::optional<std::string> WordAfter(const std::string& line, std::string_view mark) {
  const size_t at = line.find(mark);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + mark.size();
  return line.substr(begin, line.find_first_of(" \t:", begin) - begin);
}

// Reads assembly line by line and assigns its instructions to loops.
class LoopReader {
 public:
  void Take(const std::string& line) {
    if (line.empty()) return;
    if (const std::optional<std::string> label = LabelOf(line)) Begin(*label);
    ReadComment(line);
    const bool is_instruction =
        line.size() > 1 && line[0] == '\t' && line[1] != '.' && line[1] != '#' && line[1] != '/';
    if (is_instruction && !loop_.empty()) loops_[places_[loop_]].instructions.push_back(line);
  }
  std::vector<AssemblyLoop> Finish() {
    std::erase_if(loops_, [](const AssemblyLoop& loop) { return loop.instructions.empty(); });
    return std::move(loops_);
  }

 private:
  // "BB0_3" of ".LBB0_3:", "quern_join_hash" of "quern_join_hash:", "" of a block without a label, "# %bb.5:".
  static std::optional<std::string> LabelOf(const std::string& line) {
    if (line.rfind("# %bb.", 0) == 0 || line.rfind("// %bb.", 0) == 0) return "";
    if (line.rfind(".LBB", 0) == 0) return line.substr(2, line.find(':') - 2);
    if (line.rfind("quern_", 0) == 0 && line.find(':') != std::string::npos) return line.substr(0, line.find(':'));
    return std::nullopt;
  }

  void Begin(const std::string& label) {
    if (label.rfind("quern_", 0) == 0) function_ = label;
    label_ = label;
    loop_.clear();
  }

  void ReadComment(const std::string& line) {
    const std::optional<std::string> depth = WordAfter(line, "Loop Header: Depth=");
    if (depth.has_value()) return Enter(label_, *depth);
    const std::optional<std::string> header = WordAfter(line, "in Loop: Header=");
    if (header.has_value()) Enter(*header, WordAfter(line, "Depth=").value_or("1"));
  }

  void Enter(const std::string& header, const std::string& depth) {
    loop_ = header;
    if (!places_.emplace(header, loops_.size()).second) return;
    loops_.push_back({function_ + "." + header, static_cast<int>(std::strtol(depth.c_str(), nullptr, 10)), {}});
  }

  std::string function_, label_, loop_;  // loop_: the header of the present block's loop; empty: in none
  std::map<std::string, size_t> places_;
  std::vector<AssemblyLoop> loops_;
};

std::string RegionsText(const std::vector<AssemblyLoop>& loops, bool is_arm) {
  const std::string comment = is_arm ? "// " : "# ";
  std::string text;
  for (const AssemblyLoop& loop : loops) {
    text += comment + "LLVM-MCA-BEGIN " + loop.name + "\n";
    for (const std::string& instruction : loop.instructions) text += instruction + "\n";
    text += comment + "LLVM-MCA-END\n";
  }
  return text;
}

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A file in the system's temporary folder, deleted with this object.
class TemporaryFile {
 public:
  static absl::StatusOr<TemporaryFile> Create(const std::string& text) {
    llvm::SmallString<128> path;
    int descriptor = -1;
    if (const std::error_code error = llvm::sys::fs::createTemporaryFile("quern-mca", "txt", descriptor, path)) {
      llvm::sys::path::system_temp_directory(/*erasedOnReboot=*/true, path);
      return CannotWrite(std::string(path), error.message());
    }
    TemporaryFile file{std::string(path)};
    Descriptor open_file(descriptor);
    const int write_error = IsOverFileLimit(text.size()) ? EFBIG : WriteBytes(descriptor, text);
    const int close_error = open_file.Close();
    const int error = write_error != 0 ? write_error : close_error;
    if (error != 0) return CannotWrite(file.path(), std::generic_category().message(error));
    return file;
  }
  const std::string& path() const { return path_; }

 private:
  static absl::Status CannotWrite(const std::string& path, const std::string& why) {
    return absl::FailedPreconditionError("cannot write a temporary file: " + path + " (" + why +
                                         "); accepted: TMPDIR with room");
  }
  explicit TemporaryFile(const std::string& path) : path_(path), remover_(std::make_unique<llvm::FileRemover>(path)) {}
  std::string path_;
  std::unique_ptr<llvm::FileRemover> remover_;
};

absl::StatusOr<std::string> RunLlvmMca(const std::string& regions, const Machine& machine, const std::string& triple) {
  constexpr unsigned kTimeoutSeconds = 60;
  const std::string program = FindLlvmMca();
  if (program.empty()) {
    return absl::FailedPreconditionError(
        "no such program in PATH: llvm-mca; accepted: that of LLVM 22 (Debian: apt install llvm-22)");
  }
  QUERN_ASSIGN_OR_RETURN(const TemporaryFile input, TemporaryFile::Create(regions));
  QUERN_ASSIGN_OR_RETURN(const TemporaryFile output, TemporaryFile::Create(""));
  QUERN_ASSIGN_OR_RETURN(const TemporaryFile errors, TemporaryFile::Create(""));
  const std::vector<std::string> words = {program,
                                          "-mtriple=" + triple,
                                          "-mcpu=" + machine.cpu,
                                          "-mattr=" + machine.features,
                                          "-resource-pressure=false",
                                          "-bottleneck-analysis"};
  const std::vector<llvm::StringRef> arguments(words.begin(), words.end());
  const std::optional<llvm::StringRef> files[] = {input.path(), output.path(), errors.path()};
  std::string problem;
  const int status = llvm::sys::ExecuteAndWait(program, arguments, std::nullopt, files, kTimeoutSeconds, 0, &problem);
  if (status == 0) return ReadWhole(output.path());
  return absl::FailedPreconditionError(
      "llvm-mca failed: " + OneLine(problem.empty() ? ReadWhole(errors.path()) : problem) +
      "; accepted: a CPU that LLVM 22 has a model of");
}

// The number after "\nNAME: " in one region's report.
double NumberIn(const std::string& report, const std::string& name) {
  const std::string mark = "\n" + name + ":";
  const size_t at = report.find(mark);
  return at == std::string::npos ? 0 : std::strtod(report.c_str() + at + mark.size(), nullptr);
}

// One row a loop, from consecutive reports that begin with "[2] Code Region - NAME ..".
std::string TableOf(const std::vector<AssemblyLoop>& loops, const std::string& reports) {
  size_t width = 4;
  for (const AssemblyLoop& loop : loops) width = std::max(width, loop.name.size());
  std::string text = "loop" + std::string(width - 4, ' ') + "  depth  instructions  cycles  uops/cycle\n";
  for (const AssemblyLoop& loop : loops) {
    const size_t begin = reports.find("Code Region - " + loop.name + "\n");
    if (begin == std::string::npos) continue;
    const std::string report = reports.substr(begin, reports.find("Code Region - ", begin + 1) - begin);
    char numbers[80];
    std::snprintf(numbers, sizeof numbers, "  %5d  %12zu  %6.2f  %10.2f\n", loop.depth, loop.instructions.size(),
                  NumberIn(report, "Total Cycles") / std::max(NumberIn(report, "Iterations"), 1.0),
                  NumberIn(report, "uOps Per Cycle"));
    text += loop.name + std::string(width - loop.name.size(), ' ') + numbers;
  }
  return text;
}

}  // namespace

std::vector<AssemblyLoop> FindLoops(std::string_view assembly) {
  LoopReader reader;
  for (size_t begin = 0; begin < assembly.size();) {
    const size_t end = std::min(assembly.find('\n', begin), assembly.size());
    reader.Take(std::string(assembly.substr(begin, end - begin)));
    begin = end + 1;
  }
  return reader.Finish();
}

std::string FindLlvmMca() {
  for (const char* name : {"llvm-mca-22", "llvm-mca"}) {
    if (const llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName(name)) return *path;
  }
  return "";
}

absl::StatusOr<std::string> McaView(std::string_view assembly, const Machine& machine, const std::string& triple) {
  const std::vector<AssemblyLoop> loops = FindLoops(assembly);
  if (loops.empty()) return std::string("no loop is compiled of this kernel\n");
  QUERN_ASSIGN_OR_RETURN(const std::string reports,
                         RunLlvmMca(RegionsText(loops, machine.arch == "aarch64"), machine, triple));
  return TableOf(loops, reports) + reports;
}

namespace {

absl::StatusOr<std::string> DumpKernelWithMca(std::string_view stage, const KernelSpec& spec, const Machine& machine,
                                              const CompileOptions& options, const Profile* profile) {
  if (stage == "mca") {
    QUERN_ASSIGN_OR_RETURN(const std::string assembly, Dump("annotated_asm", spec, machine, options, profile));
    return McaView(assembly, machine, TargetTriple(machine));
  }
  absl::StatusOr<std::string> text = Dump(stage, spec, machine, options, profile);
  if (text.ok() || !std::string(text.status().message()).starts_with("unknown stage: ")) return text;
  return InvalidArgument(std::string(text.status().message()) + ", mca");
}

}  // namespace

absl::StatusOr<std::string> DumpText(std::string_view stage, std::string_view text, const Machine& machine,
                                     const CompileOptions& options, const Profile* profile) {
  if (!IsPipelineText(text)) {
    QUERN_ASSIGN_OR_RETURN(const KernelSpec spec, ParseSpec(text));
    return DumpKernelWithMca(stage, spec, machine, options, profile);
  }
  QUERN_ASSIGN_OR_RETURN(const PipelineSpec spec, ParsePipeline(text));
  const std::shared_ptr<const Profile> of_process =
      profile == nullptr && machine.is_host ? ProfileOfProcess() : nullptr;
  CompileOptions of_kernel = options;
  const auto dump = [&](const KernelSpec& of, const PlanOverrides& overrides) {
    of_kernel.overrides = overrides;
    return DumpKernelWithMca(stage, of, machine, of_kernel, profile);
  };
  return DumpPipeline(stage, spec, options.overrides, profile == nullptr ? of_process.get() : profile, dump);
}

}  // namespace quern
