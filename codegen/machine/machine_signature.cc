// SPDX-License-Identifier: Apache-2.0
// The signature that identifies a machine. A profile contains it, so that distances measured on one machine are not
// used on another. It is one line, here in two:
//
//     cpu_name="AMD EPYC 9R45" cpu=znver5 microcode=0xb10101f hypervisor=kvm l2_bytes=1048576 l3_bytes=33554432
//         huge_pages=madvise cores=2
//
// Every field is what the system reports and may be wrong. That does no harm, since it is only compared with earlier
// reports of the same system. A value is quoted if it is empty or has characters other than letters, digits and
// ._+-/:. In quotes, \ precedes " and \.
//
// CPUID's leaf 0x40000000, which processors reserve for hypervisors, has the hypervisor's name: twelve characters in
// three registers. "KVMKVMKVM" is KVM. Other architectures use the firmware's vendor, which a hypervisor sets too.
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "codegen/machine/machine_facts.h"
#include "runtime/base/status.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace quern {
namespace {

constexpr const char* kHugePagesFile = "/sys/kernel/mm/transparent_hugepage/enabled";

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The value of the first "name : value" of /proc/cpuinfo.
std::string CpuInfo(std::string_view name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, name.size(), name) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos && line.find_first_not_of(" \t", name.size()) == colon)
      return line.substr(colon + 2);
  }
  return "";
}

// The word in brackets in "always [madvise] never".
std::string HugePagePolicy() {
  const std::string line = FirstLine(kHugePagesFile);
  const size_t open = line.find('['), close = line.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return line.substr(open + 1, close - open - 1);
}

#if defined(__x86_64__)
std::string Hypervisor() {
  constexpr uint32_t kIsGuest = 1u << 31;  // a bit of ECX in leaf 1
  constexpr uint32_t kHypervisorLeaf = 0x40000000;
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kIsGuest) == 0) return "";
  __cpuid(kHypervisorLeaf, eax, ebx, ecx, edx);
  const uint32_t words[3] = {ebx, ecx, edx};
  char name[13] = {};
  std::memcpy(name, words, sizeof words);
  static constexpr std::pair<const char*, const char*> kKnown[] = {
      {"KVMKVMKVM", "kvm"},    {"Microsoft Hv", "hyper-v"}, {"VMwareVMware", "vmware"},
      {"XenVMMXenVMM", "xen"}, {"TCGTCGTCGTCG", "qemu"},    {"bhyve bhyve ", "bhyve"}};
  for (const auto& [vendor, known] : kKnown)
    if (std::string_view(name) == vendor) return known;
  return name[0] == 0 ? "unknown" : name;
}
#else
std::string Hypervisor() {
  const std::string type = FirstLine("/sys/hypervisor/type");
  return type.empty() ? FirstLine("/sys/class/dmi/id/sys_vendor") : type;
}
#endif

uint32_t UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 0;
  return static_cast<uint32_t>(CPU_COUNT(&cores));
}

// Reduces text to what the text form can hold: one line.
std::string Printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

// ---- text ------------------------------------------------------------------------------------------------------

// One field: a text or a number; the other pointer is null.
struct Field {
  const char* name;
  std::string MachineSignature::* text;
  uint64_t MachineSignature::* bytes;
  bool matters;  // whether a difference matters to tuning
};

// `cores`, which has another type, follows the texts.
constexpr Field kFields[] = {
    {"cpu_name", &MachineSignature::cpu_name, nullptr, true},
    {"cpu", &MachineSignature::cpu, nullptr, true},
    {"microcode", &MachineSignature::microcode, nullptr, false},
    {"hypervisor", &MachineSignature::hypervisor, nullptr, true},
    {"l2_bytes", nullptr, &MachineSignature::l2_bytes, true},
    {"l3_bytes", nullptr, &MachineSignature::l3_bytes, true},
    {"huge_pages", &MachineSignature::huge_pages, nullptr, true},
};
constexpr const char* kForm =
    "; accepted: cpu_name=.. cpu=.. microcode=.. hypervisor=.. l2_bytes=.. l3_bytes=.. huge_pages=.. cores=.., each "
    "once, texts in quotes "
    "where they have blanks";

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._+-/:,").find(c) != std::string_view::npos;
}

std::string Quote(const std::string& text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), IsPlain)) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

// Removes "name=value" from the front of *rest.
bool TakeWord(std::string_view* rest, std::string* name, std::string* value) {
  const size_t equals = rest->find('=');
  if (equals == std::string_view::npos) return false;
  *name = rest->substr(0, equals);
  rest->remove_prefix(equals + 1);
  value->clear();
  if (rest->empty() || rest->front() != '"') {
    const size_t end = std::min(rest->find(' '), rest->size());
    *value = rest->substr(0, end);
    rest->remove_prefix(end);
    return !value->empty() && std::all_of(value->begin(), value->end(), IsPlain);
  }
  for (size_t i = 1; i < rest->size(); ++i) {
    if ((*rest)[i] == '"') {
      rest->remove_prefix(i + 1);
      return rest->empty() || rest->front() == ' ';
    }
    if ((*rest)[i] == '\\') ++i;
    if (i == rest->size()) return false;
    *value += (*rest)[i];
  }
  return false;
}

template <class Number>
bool ParseWhole(const std::string& text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// Returns the index of the field, or -1.
int SetField(const std::string& name, const std::string& value, MachineSignature* signature) {
  if (name == "cores") return ParseWhole(value, &signature->cores) ? static_cast<int>(std::size(kFields)) : -1;
  for (const Field& field : kFields) {
    if (name != field.name) continue;
    if (field.text != nullptr) signature->*field.text = value;
    else if (!ParseWhole(value, &(signature->*field.bytes))) return -1;
    return static_cast<int>(&field - kFields);
  }
  return -1;
}

}  // namespace

MachineSignature HostSignature() {
  MachineSignature signature;
  signature.cpu_name = Printable(CpuInfo("model name"));
  signature.microcode = Printable(CpuInfo("microcode"));
  signature.hypervisor = Printable(Hypervisor());
  signature.cores = UsableCores();
  signature.huge_pages = Printable(HugePagePolicy());
  if (const absl::StatusOr<Machine> machine = HostMachine(); machine.ok()) {
    signature.cpu = machine->cpu;
    signature.l2_bytes = machine->l2_bytes;
    signature.l3_bytes = machine->l3_bytes;
  }
  return signature;
}

std::string PrintSignature(const MachineSignature& signature) {
  std::string text;
  for (const Field& field : kFields) {
    const std::string value =
        field.text != nullptr ? Quote(signature.*field.text) : std::to_string(signature.*field.bytes);
    text += std::string(field.name) + "=" + value + " ";
  }
  return text + "cores=" + std::to_string(signature.cores);
}

absl::StatusOr<MachineSignature> ParseSignature(std::string_view text) {
  MachineSignature signature;
  uint32_t seen = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view before = rest;
    std::string name, value;
    const int field = TakeWord(&rest, &name, &value) ? SetField(name, value, &signature) : -1;
    if (field < 0 || (seen >> field & 1) != 0) {
      return InvalidArgument(
          "bad field of a machine's signature: " + Show(before.substr(0, before.size() - rest.size())) + kForm);
    }
    seen |= 1u << field;
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  }
  if (seen != (2u << std::size(kFields)) - 1)
    return InvalidArgument("incomplete signature of a machine: " + Show(text) + kForm);
  return signature;
}

std::string SignatureDifference(const MachineSignature& here, const MachineSignature& there) {
  std::string text;
  for (const Field& field : kFields) {
    if (!field.matters) continue;
    const auto value = [&](const MachineSignature& of) {
      return field.text != nullptr ? Quote(of.*field.text) : std::to_string(of.*field.bytes);
    };
    if (value(here) == value(there)) continue;
    text += (text.empty() ? "" : "; ") + std::string(field.name) + " " + value(here) + " here, " + value(there) +
            " in the profile";
  }
  return text;
}

}  // namespace quern
