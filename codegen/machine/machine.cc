// SPDX-License-Identifier: Apache-2.0
// Detects this machine, and describes another one by its name.
//
// For the host, CPU and features come from CPUID through LLVM, caches from sysfs. A virtual machine may report both
// wrongly; the plan only needs the order of magnitude, and the tuner measures. For a machine given by name, caches are
// fixed numbers, so that `quern dump plan --machine znver4` prints the same wherever it runs.
#include "codegen/machine/machine.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <vector>

#include "codegen/base/llvm_memory.h"
#include "codegen/machine/target_machine.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Host.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
void LLVMInitializeAArch64TargetInfo();
void LLVMInitializeAArch64Target();
void LLVMInitializeAArch64TargetMC();
void LLVMInitializeAArch64AsmPrinter();
}

namespace quern {
namespace {

// Registers all targets before the first lookup. LLVM's registry is a list without a lock that contains a target before
// its functions are filled in, and another thread may be looking up a target.
void InitialiseTargets() {
  const NoFork no_fork;  // the first call does
  static const bool done = [] {
    ThrowWhereLlvmIsRefusedMemory();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    return true;
  }();
  (void)done;
}

const char* TripleOf(const std::string& arch) {
  return arch == "aarch64" ? "aarch64-unknown-linux-gnu" : "x86_64-unknown-linux-gnu";
}

// Avoids a stream, which takes 12 us for each of these files of a few bytes; detection precedes the first kernel.
std::string FirstLine(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  char text[64];
  const ssize_t bytes = read(file, text, sizeof text);
  close(file);
  const std::string_view content(text, bytes < 0 ? 0 : static_cast<size_t>(bytes));
  return std::string(content.substr(0, content.find('\n')));
}

// "1024K" and "32M" as sysfs writes sizes; 0 for anything else.
uint64_t ParseSize(const std::string& text) {
  char* end = nullptr;
  const uint64_t number = std::strtoull(text.c_str(), &end, 10);
  if (*end == 'K') return number << 10;
  if (*end == 'M') return number << 20;
  return number;
}

void ReadCaches(Machine* machine) {
  for (int i = 0; i < 8; ++i) {
    const std::string directory = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string level = FirstLine(directory + "level");
    if (level.empty()) break;
    if (level == "1") continue;
    const uint64_t bytes = ParseSize(FirstLine(directory + "size"));
    if (bytes == 0 || FirstLine(directory + "type") == "Instruction") continue;
    if (level == "2") machine->l2_bytes = bytes;
    if (level == "3") machine->l3_bytes = bytes;
  }
  machine->l3_bytes = std::max(machine->l3_bytes, machine->l2_bytes);
}

std::string SortedFeatures(const llvm::StringMap<bool>& features) {
  std::map<std::string, bool> sorted;
  for (const auto& feature : features) sorted[feature.getKey().str()] = feature.getValue();
  std::string text;
  for (const auto& [name, on] : sorted) text += (text.empty() ? "" : ",") + std::string(on ? "+" : "-") + name;
  return text;
}

absl::StatusOr<Machine> ReadHost() {
  Machine machine;
  const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
#if defined(__x86_64__)
  machine.arch = "x86-64";
  for (const char* needed : {"sse4.2", "popcnt", "cx16"}) {
    const auto found = features.find(needed);
    if (found == features.end() || !found->getValue()) {
      return absl::FailedPreconditionError(std::string("CPU below x86-64-v2: no ") + needed +
                                           "; accepted: x86-64-v2 or better");
    }
  }
#elif defined(__aarch64__)
  machine.arch = "aarch64";
#else
  return absl::FailedPreconditionError("unknown architecture: of this process; accepted: x86-64, aarch64");
#endif
  machine.cpu = llvm::sys::getHostCPUName().str();
  machine.features = SortedFeatures(features);
  machine.is_host = true;
  ReadCaches(&machine);
  return machine;
}

bool IsKnownCpu(const std::string& arch, const std::string& cpu) {
  InitialiseTargets();
  std::string error;
  const llvm::Triple triple(TripleOf(arch));
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) return false;
  const std::unique_ptr<llvm::MCSubtargetInfo> info(target->createMCSubtargetInfo(triple, "", ""));
  return info && info->isCPUStringValid(cpu);
}

// The features of a known x86-64 CPU.
bool HasFeatures(const std::string& cpu, const std::string& more, const char* features) {
  InitialiseTargets();
  std::string error;
  const llvm::Triple triple(TripleOf("x86-64"));
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) return false;
  const std::unique_ptr<llvm::MCSubtargetInfo> info(target->createMCSubtargetInfo(triple, cpu, more));
  return info && info->checkFeatures(features);
}

// 64-bit and at least x86-64-v2, which every kernel may assume.
bool IsAtLeastV2(const std::string& cpu) { return HasFeatures(cpu, "", "+sse4.2,+popcnt,+cx16,+64bit"); }

}  // namespace

absl::StatusOr<Machine> HostMachine() {
  const NoFork no_fork;  // the first call detects it
  static const absl::StatusOr<Machine>* machine = new absl::StatusOr<Machine>(ReadHost());
  return *machine;
}

absl::StatusOr<Machine> MachineByName(std::string_view name) {
  const NoFork no_fork;  // LLVM has locks of its own
  if (name == "native") return HostMachine();
  constexpr const char* kAccepted =
      "; accepted: native, an x86-64 CPU from x86-64-v2 up (x86-64-v3, znver4, ..), aarch64:CPU (aarch64:neoverse-n1, "
      "..)";
  Machine machine;
  const size_t colon = name.find(':');
  machine.arch = colon == std::string_view::npos ? "x86-64" : std::string(name.substr(0, colon));
  machine.cpu = std::string(colon == std::string_view::npos ? name : name.substr(colon + 1));
  if ((machine.arch != "x86-64" && machine.arch != "aarch64") || machine.cpu.empty() ||
      !IsKnownCpu(machine.arch, machine.cpu)) {
    return InvalidArgument("unknown machine: " + Show(name) + kAccepted);
  }
  if (machine.arch == "x86-64" && !IsAtLeastV2(machine.cpu))
    return InvalidArgument("CPU below x86-64-v2: " + Show(machine.cpu) + kAccepted);
  return machine;
}

// A sum of 6 M products took 8.0 ms without prefetches on AMD Zen 4, and 11.4 with them; a sum of 20 M i64 took 26 and
// 16 ms on an Intel Xeon (Emerald Rapids). On Zen 5 a join whose sums read four columns took 62 ms without, 60 with
// them, and 54 where they were 128 or 256 rows ahead.
uint32_t InputRowsWithoutKeys(const Machine& machine, uint32_t default_rows) {
  if (machine.cpu == "znver5") return 256;
  return machine.cpu.starts_with("znver") ? 0 : default_rows;
}

bool HasVectorMasks(const Machine& machine) {
  constexpr const char* kFeatures[] = {"avx512f", "avx512dq", "avx512vl"};
  if (machine.arch != "x86-64") return false;
  if (!machine.is_host) return HasFeatures(machine.cpu, machine.features, "+avx512f,+avx512dq,+avx512vl");
  // Lists all features of the host. This does not use LLVM: a process whose kernels are all on disk never starts it.
  const std::string listed = "," + machine.features + ",";
  return std::all_of(std::begin(kFeatures), std::end(kFeatures), [&](const char* feature) {
    return listed.find(",+" + std::string(feature) + ",") != std::string::npos;
  });
}

std::string PrintMachine(const Machine& machine) {
  return "machine " + machine.arch + " cpu=" + machine.cpu + " l2_bytes=" + std::to_string(machine.l2_bytes) +
         " l3_bytes=" + std::to_string(machine.l3_bytes) + " features=" + machine.features;
}

std::string TargetTriple(const Machine& machine) { return TripleOf(machine.arch); }

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeTargetMachine(const Machine& machine) {
  InitialiseTargets();
  std::string error;
  const llvm::Triple triple(TripleOf(machine.arch));
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) return Internal("no code generator: " + error + "; accepted: x86-64, aarch64");
  llvm::TargetOptions options;
  options.FunctionSections = false;  // objects with many sections load slowly in JITLink
  options.DataSections = false;
  // Less takes a tenth less time than Default for code of the same speed (join_bench at 1,000 to 10 M build rows is
  // within its noise).
  std::unique_ptr<llvm::TargetMachine> result(
      target->createTargetMachine(triple, machine.cpu, machine.features, options, llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Less,
                                  /*JIT=*/true));
  if (result == nullptr) return InvalidArgument("unknown machine: " + machine.cpu + "; accepted: CPUs of LLVM 22.1");
  return result;
}

}  // namespace quern
