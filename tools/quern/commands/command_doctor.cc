// SPDX-License-Identifier: Apache-2.0
// quern doctor: what is installed, what is missing, what to do. One fact a line, with advice where there is some:
//
//     cpu          znver4
//     huge pages   never      ask for them: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled
//     engine       ok
//
// Facts come from Linux's own files. One that cannot be read is "unknown" and not an error, because only one thing
// makes a machine unusable: a kernel that cannot be compiled, or that returns wrong rows. So a join of three rows is
// compiled and run: build keys 1, 2, 3 with payload 10, 20, 30; probe keys 3, 4, 1; the result must be 30, 10.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "codegen/cache/disk_cache.h"
#include "codegen/compiler.h"
#include "codegen/machine/machine.h"
#include "codegen/machine/profile.h"
#include "codegen/operators.h"
#include "runtime/base/status.h"
#include "runtime/collation/icu_collation.h"
#include "runtime/rows/output_batch.h"
#include "tools/frontend/errors.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/commands/disk_cache_text.h"
#include "tools/quern/files/table_io.h"
#include "tools/quern/run/arguments.h"
#include "tools/quern/run/version.h"
#include "tools/report/mca.h"

namespace quern::cli {
namespace {

struct Fact {
  std::string name;
  std::string value;
  std::string advice;  // "": all is well
};

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The value of "name : value" or "name: value" in a file of such lines.
std::string Field(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, name.size(), name) != 0) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return "unknown";
}

std::string KnownOr(const std::string& text) { return text.empty() ? "unknown" : text; }

std::string Caches() {
  std::string text;
  for (int i = 0; i < 8; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string type = FirstLine(folder + "type");
    if (type.empty() || type == "Instruction") continue;
    text += (text.empty() ? "L" : ", L") + FirstLine(folder + "level") + " " + FirstLine(folder + "size");
  }
  return KnownOr(text);
}

std::string MemoryGib(std::string_view name) {
  const std::string kib = Field("/proc/meminfo", name);
  if (kib == "unknown") return kib;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", std::strtod(kib.c_str(), nullptr) / (1 << 20));
  return text;
}

// The word in brackets of "always [madvise] never".
Fact HugePages() {
  const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";
  const std::string line = FirstLine(path);
  const size_t open = line.find('[');
  const size_t close = line.find(']');
  if (open == std::string::npos || close == std::string::npos) return {"huge pages", "unknown", ""};
  const std::string mode = line.substr(open + 1, close - open - 1);
  return {"huge pages", mode, mode == "never" ? "large joins run slower; as root: echo madvise > " + path : ""};
}

Fact PerfEvents() {
  const std::string level = KnownOr(FirstLine("/proc/sys/kernel/perf_event_paranoid"));
  const bool closed = level != "unknown" && std::strtol(level.c_str(), nullptr, 10) > 2;
  return {"perf_event_paranoid", level,
          closed ? "perf cannot see kernels at work; as root: sysctl kernel.perf_event_paranoid=2" : ""};
}

Fact CacheFact() {
  const KernelCacheStats cache = GetKernelCacheStats();
  return {"kernel cache", "memory, up to " + std::to_string(cache.limit_bytes >> 20) + " MiB of code", ""};
}

// The memory of the kernel that was tried: its pages, and the reserved address space.
Fact CodeMemoryFact() {
  const KernelCacheStats stats = GetKernelCacheStats();
  return {"code memory",
          std::to_string(stats.live_bytes >> 10) + " KiB used, " + std::to_string(stats.reserved_bytes >> 10) +
              " KiB reserved, " + std::to_string(stats.mappings) + " mappings",
          ""};
}

// Where kernels are kept for the next process, and why none are where it is so.
Fact DiskCacheFact() {
  const absl::StatusOr<DiskCachePlace> place = DiskCachePlaceOfEnvironment();
  if (!place.ok()) return {"disk cache", "none", OneLine(std::string(place.status().message()))};
  if (place->mode == DiskCacheMode::kOff) return {"disk cache", "off", ""};
  const absl::StatusOr<DiskCacheContent> content = DiskCache(*place).Read();
  if (!content.ok()) return {"disk cache", "none", OneLine(std::string(content.status().message()))};
  const DiskCacheTotals totals = TotalsOf(*content);
  return {"disk cache",
          place->directory + ", " + ModeText(place->mode) + ", " + std::to_string(totals.kernels) + " kernels, " +
              std::to_string(totals.bytes) + " bytes",
          totals.problems == 0 ? "" : std::to_string(totals.problems) + " files are not loaded: quern cache ls"};
}

// The profile that kernels use: the first location that has a file decides, whether the file is usable or not.
Fact ProfileFact() {
  const std::vector<std::string> places = ProfilePlaces(HostSignature());
  if (places.empty()) return {"profile", "off", ""};
  for (const std::string& path : places) {
    const absl::StatusOr<Profile> profile = ReadProfile(path);
    if (absl::IsNotFound(profile.status())) continue;
    if (!profile.ok()) return {"profile", "not used", OneLine(std::string(profile.status().message()))};
    const std::string difference = ForeignMachine(*profile);
    if (!difference.empty())
      return {"profile", "not used", path + " is of another machine: " + difference + "; quern tune makes one of this"};
    return {"profile", path + ", " + std::to_string(profile->entries.size()) + " entries", ""};
  }
  return {"profile", "none", "distances are estimated; quern tune measures them"};
}

Fact LlvmMcaFact() {
  const std::string path = FindLlvmMca();
  return path.empty() ? Fact{"llvm-mca", "none",
                             "for quern dump mca put that of LLVM 22 into PATH (Debian: apt install llvm-22)"}
                      : Fact{"llvm-mca", path, ""};
}

Fact IcuFact() {
  if (!IcuVersion().empty()) return {"icu", std::string(IcuVersion()), ""};
  return {"icu", "none", "no collations icu:TAG; for them install libicu-dev and build again"};
}

QuernColumn ColumnOf(const int64_t* values) {
  QuernColumn column = {};
  column.values = values;
  return column;
}

BatchView BatchOf(const int64_t* keys, const int64_t* payload) {
  BatchView batch;
  batch.keys = {ColumnOf(keys)};
  if (payload != nullptr) batch.payload = {ColumnOf(payload)};
  batch.num_rows = 3;
  return batch;
}

// Runs the join of three rows and returns its kernel.
absl::Status TryEngine(Engine engine, std::shared_ptr<const Kernel>* kernel) {
  static constexpr int64_t kBuildKeys[] = {1, 2, 3};
  static constexpr int64_t kBuildPayload[] = {10, 20, 30};
  static constexpr int64_t kProbeKeys[] = {3, 4, 1};
  CompileOptions options;
  options.engine = engine;
  options.use_cache = false;
  QUERN_ASSIGN_OR_RETURN(const KernelSpec spec, ParseSpec("join.inner keys=i64 build=i64"));
  QUERN_ASSIGN_OR_RETURN(const CompiledKernel compiled, Compile(spec, options));
  *kernel = compiled.kernel;
  const auto budget = std::make_shared<MemoryBudget>();
  const std::shared_ptr<HashJoin> join = MakeHashJoin(compiled.kernel, budget);
  QUERN_RETURN_IF_ERROR(join->Append(BatchOf(kBuildKeys, kBuildPayload)));
  QUERN_RETURN_IF_ERROR(join->Finalise());
  JoinProber prober(join);
  OutputBatch out(JoinOutputTypes(std::get<JoinSpec>(spec)), 16, budget);
  QUERN_RETURN_IF_ERROR(prober.SetInput(BatchOf(kProbeKeys, nullptr)));
  QUERN_RETURN_IF_ERROR(prober.Next(&out).status());
  const auto* values = static_cast<const int64_t*>(out.column(0).values);
  if (out.num_rows() != 2 || values[0] != 30 || values[1] != 10)
    return Internal("wrong result of a join of three rows: " + PrintSpec(spec));
  return absl::OkStatus();
}

Fact EngineFact(const char* name, const absl::Status& status, const char* advice) {
  if (status.ok()) return {name, "ok", ""};
  return {name, "failed", OneLine(std::string(status.message())) + "; " + advice};
}

std::vector<Fact> FactsOfMachine(const absl::StatusOr<Machine>& machine) {
  const std::string model = Field("/proc/cpuinfo", "model name");
  std::vector<Fact> facts;
  if (machine.ok()) {
    facts = {{"cpu", machine->cpu + " (" + model + ")", ""}, {"architecture", machine->arch, ""}};
  } else {
    facts = {{"cpu", model, OneLine(std::string(machine.status().message()))}};
  }
  facts.push_back({"cores", std::to_string(std::thread::hardware_concurrency()), ""});
  facts.push_back({"caches", Caches(), ""});
  facts.push_back({"memory", MemoryGib("MemTotal") + ", " + MemoryGib("MemAvailable") + " available", ""});
  facts.push_back(HugePages());
  facts.push_back(PerfEvents());
  return facts;
}

void PrintFacts(const std::vector<Fact>& facts) {
  size_t name_width = 0;
  size_t value_width = 0;
  for (const Fact& fact : facts) {
    name_width = std::max(name_width, fact.name.size());
    if (!fact.advice.empty()) value_width = std::max(value_width, fact.value.size());
  }
  for (const Fact& fact : facts) {
    std::string line = fact.name + std::string(name_width + 2 - fact.name.size(), ' ') + fact.value;
    if (!fact.advice.empty()) line += std::string(value_width + 2 - fact.value.size(), ' ') + fact.advice;
    std::printf("%s\n", line.c_str());
  }
}

}  // namespace

absl::StatusOr<int> RunDoctor(const std::vector<std::string>& words) {
  Arguments arguments(
      "doctor",
      "Prints what is here, what is missing, and what to do. The exit status is 0 when Quern can be used here, else 1.",
      "quern doctor");
  QUERN_ASSIGN_OR_RETURN(const bool go_on, arguments.Parse(words));
  if (!go_on) return kExitOk;
  const absl::StatusOr<Machine> machine = HostMachine();
  std::shared_ptr<const Kernel> kernel;
  const absl::Status generic = TryEngine(Engine::kGeneric, &kernel);
  const absl::Status jit = TryEngine(Engine::kJit, &kernel);
  std::vector<Fact> facts = {{"quern", kVersion, ""}};
  const std::vector<Fact> of_machine = FactsOfMachine(machine);
  facts.insert(facts.end(), of_machine.begin(), of_machine.end());
  facts.push_back({"llvm", kLlvmVersion, ""});
  facts.push_back(LlvmMcaFact());
  facts.push_back(EngineFact("engine jit", jit, "joins run by --engine generic if that is ok"));
  facts.push_back(EngineFact("engine generic", generic, "this build is broken: build it again"));
  facts.push_back({"arrow", ArrowVersion(), ""});
  facts.push_back(IcuFact());
  facts.push_back(CacheFact());
  facts.push_back(CodeMemoryFact());
  facts.push_back(DiskCacheFact());
  facts.push_back(ProfileFact());
  PrintFacts(facts);
  return machine.ok() && generic.ok() && jit.ok() ? kExitOk : kExitData;
}

}  // namespace quern::cli
