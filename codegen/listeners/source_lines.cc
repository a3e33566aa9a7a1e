// SPDX-License-Identifier: Apache-2.0
// Finds the template line of each instruction. The object's DWARF has it, as the line table and as inlined subroutines.
// After inlining, nearly every instruction comes from a block, in a loop of the template:
//
//     0x20  runtime/blocks/blocks.h:212         inlined into  ir-templates/join.cc:105
//     0x27  ir-templates/join.cc:106
//
// Both lines are kept: profilers that allow a file for each entry show the first, those with one file per function the
// second. The object is the one from code generation, with addresses relative to sections; LLVM's reader adds the
// addresses at which the sections were loaded.
#include <algorithm>

#include "codegen/listeners/code_listener.h"
#include "llvm/DebugInfo/DIContext.h"
#include "llvm/DebugInfo/DWARF/DWARFContext.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace quern {
namespace {

class LoadedSections : public llvm::LoadedObjectInfo {
 public:
  explicit LoadedSections(const CodeLoaded& code) : code_(code) {}

  uint64_t getSectionLoadAddress(const llvm::object::SectionRef& section) const override {
    llvm::Expected<llvm::StringRef> name = section.getName();
    if (!name) {
      llvm::consumeError(name.takeError());
      return 0;
    }
    for (const LoadedSection& loaded : code_.sections)
      if (*name == loaded.name) return loaded.address;
    return 0;
  }
  std::unique_ptr<llvm::LoadedObjectInfo> clone() const override { return std::make_unique<LoadedSections>(code_); }

 private:
  const CodeLoaded& code_;
};

// The number of the section that holds an address; it disambiguates addresses in a relocatable object.
uint64_t SectionAt(const llvm::object::ObjectFile& object, const LoadedSections& loaded, uint64_t address) {
  for (const llvm::object::SectionRef& section : object.sections()) {
    const uint64_t begin = loaded.getSectionLoadAddress(section);
    if (begin != 0 && begin <= address && address - begin < section.getSize()) return section.getIndex();
  }
  return llvm::object::SectionedAddress::UndefSection;
}

std::vector<SourceLine> LinesOf(llvm::DWARFContext* dwarf, const LoadedFunction& function, uint64_t section) {
  using Path = llvm::DILineInfoSpecifier::FileLineInfoKind;
  const llvm::DILineInfoSpecifier wanted(Path::RelativeFilePath, llvm::DILineInfoSpecifier::FunctionNameKind::None);
  std::vector<SourceLine> lines;
  for (const auto& [address, row] :
       dwarf->getLineInfoForAddressRange({function.address, section}, function.bytes, wanted)) {
    if (row.Line == 0) continue;  // compiler-generated: counts for the line before
    const llvm::DIInliningInfo frames = dwarf->getInliningInfoForAddress({address, section}, wanted);
    const llvm::DILineInfo& outer =
        frames.getNumberOfFrames() == 0 ? row : frames.getFrame(frames.getNumberOfFrames() - 1);
    SourceLine line = {address, row.FileName, row.Line, outer.FileName, outer.Line};
    const bool repeats = !lines.empty() && lines.back().line == line.line && lines.back().file == line.file &&
                         lines.back().outer_line == line.outer_line && lines.back().outer_file == line.outer_file;
    if (!repeats) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::vector<std::vector<SourceLine>> ReadSourceLines(const CodeLoaded& code) {
  std::vector<std::vector<SourceLine>> lines(code.functions.size());
  const llvm::MemoryBufferRef bytes(llvm::StringRef(code.object.data(), code.object.size()), "kernel");
  auto object = llvm::object::ObjectFile::createObjectFile(bytes);
  if (!object) {
    llvm::consumeError(object.takeError());
    return lines;
  }
  const LoadedSections loaded(code);
  const auto ignore = [](llvm::Error error) { llvm::consumeError(std::move(error)); };
  const auto dwarf = llvm::DWARFContext::create(**object, llvm::DWARFContext::ProcessDebugRelocations::Process, &loaded,
                                                "", ignore, ignore);
  for (size_t i = 0; i < lines.size(); ++i) {
    const uint64_t section = SectionAt(**object, loaded, code.functions[i].address);
    lines[i] = LinesOf(dwarf.get(), code.functions[i], section);
  }
  return lines;
}

}  // namespace quern
