// SPDX-License-Identifier: Apache-2.0
// Finds bitcode. The build writes pruned templates twice: embedded in the library, and as files
// (build/templates/join.x86-64.bc). With --template-dir, a folder of such files, edited or recompiled, replaces the
// embedded ones, so that trying a changed loop needs no build.
#include "codegen/llvm/template_library.h"

#include <fstream>
#include <iterator>

#include "codegen/listeners/code_events.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"

namespace quern {
namespace {

const EmbeddedTemplate* Find(std::span<const EmbeddedTemplate> templates, std::string_view name,
                             std::string_view arch) {
  for (const EmbeddedTemplate& entry : templates)
    if (name == entry.name && arch == entry.arch) return &entry;
  return nullptr;
}

std::string_view BytesOf(const EmbeddedTemplate& entry) {
  return {reinterpret_cast<const char*>(entry.data), entry.size};
}

}  // namespace

absl::StatusOr<std::string_view> FindTemplate(std::string_view name, std::string_view arch,
                                              const std::string& directory, std::string* storage) {
  if (!directory.empty()) {
    const std::string path = directory + "/" + std::string(name) + "." + std::string(arch) + ".bc";
    std::ifstream file(path, std::ios::binary);
    if (!file)
      return absl::NotFoundError("cannot read template: " + path +
                                 "; accepted: a folder with NAME.ARCH.bc for every template");
    storage->assign(std::istreambuf_iterator<char>(file), {});
    return std::string_view(*storage);
  }
  if (const EmbeddedTemplate* entry = WantsSourceLines() ? Find(EmbeddedTemplatesWithLines(), name, arch) : nullptr)
    return BytesOf(*entry);
  if (const EmbeddedTemplate* entry = Find(EmbeddedTemplates(), name, arch)) return BytesOf(*entry);
  return absl::NotFoundError("no template for this architecture: " + std::string(arch) + "; accepted: x86-64, aarch64");
}

uint64_t EmbeddedTemplatesHash() {
  const NoFork no_fork;  // the first call makes it
  static const uint64_t hash = [] {
    uint64_t h = kKernelAbiVersion;  // a part of the cache's keys, which processes share
    for (const EmbeddedTemplate& entry : EmbeddedTemplates())
      h = blocks::Combine(h, blocks::HashBytes(entry.data, entry.size, blocks::kPublicHash), blocks::kPublicHash);
    return h;
  }();
  return hash;
}

}  // namespace quern
