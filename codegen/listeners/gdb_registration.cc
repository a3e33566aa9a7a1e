// SPDX-License-Identifier: Apache-2.0
// GDB's JIT interface ("JIT Compilation Interface" in its manual; LLDB has the same): a list of objects in memory
// behind a symbol with a fixed name, and an empty function that is called whenever the list changes, in which the
// debugger sets a breakpoint. A debugger that attaches later reads the list as it is then.
//
// The debugger reads an ELF file like any other, but needs the addresses at which its sections were loaded. Its copy
// has them in the section headers:
//
//     .text      sh_addr 0 as code generation leaves it      ->      0x7f3a00401000
//
// libquern.so exports both symbols and binds them within itself. A process with a second LLVM has a second pair;
// debuggers look into every library, and the lists stay separate.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "codegen/listeners/code_listener.h"
#include "runtime/base/fork_safety.h"

// GDB defines the layouts, the numbers and the names of both symbols.
extern "C" {
struct JitCodeEntry {
  JitCodeEntry* next_entry;
  JitCodeEntry* prev_entry;
  const char* symfile_addr;
  uint64_t symfile_size;
};

struct JitDescriptor {
  uint32_t version;
  uint32_t action_flag;
  JitCodeEntry* relevant_entry;
  JitCodeEntry* first_entry;
};

__attribute__((visibility("protected"), used)) JitDescriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};

// The barrier keeps the compiler from removing calls of an empty function.
// NOLINTNEXTLINE(readability-identifier-naming)
__attribute__((visibility("protected"), used, noinline)) void __jit_debug_register_code() {
  asm volatile("" ::: "memory");
}
}

namespace quern {
namespace {

enum : uint32_t { kNoAction = 0, kRegister = 1, kUnregister = 2 };

constinit ForkSafeMutex list_mutex;

void TellDebugger(uint32_t action, JitCodeEntry* entry) {
  __jit_debug_descriptor.action_flag = action;
  __jit_debug_descriptor.relevant_entry = entry;
  __jit_debug_register_code();
  __jit_debug_descriptor.action_flag = kNoAction;
  __jit_debug_descriptor.relevant_entry = nullptr;
}

// Keeps an object in the debugger's list for its own lifetime.
class Registered {
 public:
  explicit Registered(std::string object) : object_(std::move(object)) {
    std::lock_guard<ForkSafeMutex> lock(list_mutex);
    JitCodeEntry*& first = __jit_debug_descriptor.first_entry;
    entry_ = {first, nullptr, object_.data(), object_.size()};
    if (first != nullptr) first->prev_entry = &entry_;
    first = &entry_;
    TellDebugger(kRegister, &entry_);
  }
  ~Registered() {
    std::lock_guard<ForkSafeMutex> lock(list_mutex);
    if (entry_.prev_entry != nullptr) entry_.prev_entry->next_entry = entry_.next_entry;
    else __jit_debug_descriptor.first_entry = entry_.next_entry;
    if (entry_.next_entry != nullptr) entry_.next_entry->prev_entry = entry_.prev_entry;
    TellDebugger(kUnregister, &entry_);
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  const std::string object_;
  JitCodeEntry entry_;
};

class GdbRegistration : public CodeListener {
 public:
  bool ReadsObject() const override { return true; }
  std::shared_ptr<const void> Announce(const CodeLoaded& code, const std::vector<NamedFunction>&) override {
    std::string object = AddressedObject(code);
    if (object.empty()) return nullptr;
    return std::make_shared<Registered>(std::move(object));
  }
};

// Whether [offset, offset + bytes) lies within `size`.
bool Lies(uint64_t offset, uint64_t bytes, uint64_t size) { return offset <= size && bytes <= size - offset; }

std::string_view NameAt(std::string_view object, const Elf64_Shdr& names, uint32_t offset) {
  if (!Lies(names.sh_offset, names.sh_size, object.size()) || offset >= names.sh_size) return {};
  const std::string_view rest = object.substr(names.sh_offset + offset, names.sh_size - offset);
  return rest.substr(0, rest.find('\0'));
}

}  // namespace

std::string AddressedObject(const CodeLoaded& code) {
  std::string object(code.object);
  Elf64_Ehdr header;
  if (object.size() < sizeof header) return {};
  std::memcpy(&header, object.data(), sizeof header);
  const bool is_elf64 = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64;
  if (!is_elf64 || header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum) return {};
  if (!Lies(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), object.size())) return {};
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), object.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  const Elf64_Shdr names = sections[header.e_shstrndx];
  for (Elf64_Shdr& section : sections) {
    if ((section.sh_flags & SHF_ALLOC) == 0) continue;
    const std::string_view name = NameAt(object, names, section.sh_name);
    const auto loaded = std::find_if(code.sections.begin(), code.sections.end(),
                                     [&](const LoadedSection& s) { return s.name == name; });
    if (loaded != code.sections.end()) section.sh_addr = loaded->address;
  }
  std::memcpy(object.data() + header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr));
  return object;
}

std::unique_ptr<CodeListener> MakeGdbRegistration() { return std::make_unique<GdbRegistration>(); }

}  // namespace quern
