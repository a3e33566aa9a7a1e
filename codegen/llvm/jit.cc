// SPDX-License-Identifier: Apache-2.0
// Uses JITLink alone, without ORC's sessions and dylibs.
//
// ORC keeps tables for code that is compiled at its first call, by symbols that depend on each other, possibly in
// another process. A kernel needs none of that: its object is complete, it calls a few functions, and it has no
// constructors. ORC also never forgets: a session grows with each kernel that is loaded and freed. So we parse an
// object into JITLink's graph of blocks, lay it out on pages of code_memory.h, assign addresses, copy it there, and
// drop the graph. The stages of a link, for an object of 4.8 KB:
//
//     stage      input                                      result
//     allocate   .text 3014, .rodata.cst8 24, .rodata 64    2 segments: r-x at 0, r-- at 3136
//     resolve    defined symbols: quern_join_hash, ..       addresses of the kernel's entry points
//     look up    undefined symbols: bcmp, quern_rt_hash_64  addresses in runtime_calls.h; any other name fails the link
//     finalise   bytes, fixed up in separate memory         a copy on 1 page, which becomes executable
//
// The failed lookup is the last of the checks on what generated code may call.
#include "codegen/llvm/jit.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "codegen/base/llvm_memory.h"
#include "codegen/listeners/code_events.h"
#include "codegen/llvm/code_memory.h"
#include "llvm/ExecutionEngine/JITLink/JITLink.h"
#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"
#include "llvm/ExecutionEngine/Orc/SymbolStringPool.h"
#include "llvm/Support/MemoryBufferRef.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"
#include "runtime/blocks/runtime_calls.h"

namespace quern {
namespace {

namespace jitlink = llvm::jitlink;
namespace orc = llvm::orc;

LLVM_ENABLE_BITMASK_ENUMS_IN_NAMESPACE();

#if defined(__aarch64__)
constexpr llvm::Triple::ArchType kArchitecture = llvm::Triple::aarch64;
#else
constexpr llvm::Triple::ArchType kArchitecture = llvm::Triple::x86_64;
#endif

// Code and constants do not share a cache line.
constexpr uint64_t kSegmentAlignment = 64;

absl::Status CannotLoad(const std::string& problem) {
  return Internal("cannot load code: " + problem + "; accepted: a kernel's object");
}

llvm::Error LinkError(const std::string& problem) {
  return llvm::make_error<llvm::StringError>(problem, llvm::inconvertibleErrorCode());
}

const std::unordered_map<std::string_view, void*>& AllowedCalls() {
  const NoFork no_fork;  // the first call makes it
  static const auto* calls = [] {
    auto* map = new std::unordered_map<std::string_view, void*>;
    for (const RuntimeCall& call : AllRuntimeCalls()) map->emplace(call.name, call.address);
    for (const RuntimeCall& constant : AllRuntimeConstants()) map->emplace(constant.name, constant.address);
    return map;
  }();
  return *calls;
}

// The result of one link.
struct Linked {
  LoadedCode code;
  CodePages pages;
  CodeLoaded event;             // filled only if a listener is active
  absl::Status memory_problem;  // clearer than the text that LLVM would pass on
  std::string link_problem;
};

// The memory of one kernel: laid out and fixed up in `bytes_`, then copied to its pages.
class KernelMemory : public jitlink::JITLinkMemoryManager {
 public:
  explicit KernelMemory(Linked* linked) : linked_(linked) {}

  void allocate(const jitlink::JITLinkDylib*, jitlink::LinkGraph& graph, OnAllocatedFunction on_allocated) override {
    if (llvm::Error error = LayOut(graph)) return on_allocated(std::move(error));
    on_allocated(std::make_unique<InFlight>(this));
  }
  // Nothing to do: the owner of the pages frees them.
  void deallocate(std::vector<FinalizedAlloc> allocations, OnDeallocatedFunction on_deallocated) override {
    for (FinalizedAlloc& allocation : allocations) allocation.release();
    on_deallocated(llvm::Error::success());
  }

 private:
  class InFlight : public InFlightAlloc {
   public:
    explicit InFlight(KernelMemory* memory) : memory_(memory) {}
    void abandon(OnAbandonedFunction on_abandoned) override { on_abandoned(llvm::Error::success()); }
    void finalize(OnFinalizedFunction on_finalized) override {
      Linked* linked = memory_->linked_;
      linked->memory_problem = linked->pages.Commit(memory_->bytes_);
      if (!linked->memory_problem.ok()) return on_finalized(LinkError("no memory"));
      on_finalized(FinalizedAlloc(orc::ExecutorAddr(linked->pages.address())));
    }

   private:
    KernelMemory* memory_;
  };

  llvm::Error LayOut(jitlink::LinkGraph& graph) {
    jitlink::BasicLayout layout(graph);
    uint64_t size = 0;
    std::vector<uint64_t> offsets;
    for (auto& [group, segment] : layout.segments()) {
      if ((group.getMemProt() & orc::MemProt::Write) != orc::MemProt::None) return LinkError("it has writable data");
      // Segments are aligned to 64 bytes within the pages, and to no more.
      if (segment.Alignment.value() > kSegmentAlignment)
        return LinkError("its sections want to be aligned to more than 64 bytes");
      size = llvm::alignTo(size, kSegmentAlignment);
      offsets.push_back(size);
      size += segment.ContentSize + segment.ZeroFillSize;
    }
    absl::StatusOr<CodePages> pages = CodeMemory::OfProcess().Reserve(size);
    if (!pages.ok()) {
      linked_->memory_problem = pages.status();
      return LinkError("no memory");
    }
    linked_->pages = *std::move(pages);
    bytes_.assign(size, '\0');
    auto offset = offsets.begin();
    for (auto& [group, segment] : layout.segments()) {
      segment.Addr = orc::ExecutorAddr(linked_->pages.address() + *offset);
      segment.WorkingMem = bytes_.data() + *offset++;
    }
    return layout.apply();
  }

  Linked* linked_;
  std::string bytes_;
};

// Answers JITLink's callbacks. One link, from start to end, on the calling thread.
class KernelLink : public jitlink::JITLinkContext {
 public:
  KernelLink(const std::vector<std::string>& symbols, Linked* linked)
      : JITLinkContext(nullptr), symbols_(symbols), memory_(linked), linked_(linked) {}

  jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory_; }

  void notifyFailed(llvm::Error error) override { linked_->link_problem = llvm::toString(std::move(error)); }

  void lookup(const LookupMap& names, std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> go_on) override {
    jitlink::AsyncLookupResult found;
    std::string unknown;
    for (const auto& [name, flags] : names) {
      const auto at = AllowedCalls().find(std::string_view((*name).data(), (*name).size()));
      if (at == AllowedCalls().end()) {
        unknown += (unknown.empty() ? "" : ", ") + (*name).str();
        continue;
      }
      found[name] = {orc::ExecutorAddr::fromPtr(at->second),
                     llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    }
    if (!unknown.empty()) return go_on->run(LinkError("it calls what it may not: " + unknown));
    go_on->run(std::move(found));
  }

  llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
    for (const std::string& wanted : symbols_) {
      const jitlink::Symbol* symbol = graph.findDefinedSymbolByName(graph.intern(wanted));
      if (symbol == nullptr) return LinkError("it has no " + wanted);
      linked_->code.addresses.push_back(symbol->getAddress().toPtr<void*>());
    }
    for (jitlink::Section& section : graph.sections()) {
      if (!IsCode(section)) continue;
      for (const jitlink::Block* block : section.blocks()) linked_->code.code_bytes += block->getSize();
    }
    if (WantsCodeEvents()) Describe(graph);
    return llvm::Error::success();
  }

  void notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc allocation) override { allocation.release(); }

 private:
  static bool IsCode(const jitlink::Section& section) {
    return (section.getMemProt() & orc::MemProt::Exec) != orc::MemProt::None;
  }

  void Describe(jitlink::LinkGraph& graph) {
    for (jitlink::Section& section : graph.sections()) {
      if (section.getMemLifetime() == orc::MemLifetime::NoAlloc || section.blocks_size() == 0) continue;
      linked_->event.sections.push_back(
          {section.getName().str(), jitlink::SectionRange(section).getStart().getValue()});
      if (!IsCode(section)) continue;
      for (const jitlink::Symbol* symbol : section.symbols()) {
        if (!symbol->hasName() || symbol->getSize() == 0 || !symbol->isCallable()) continue;
        linked_->event.functions.push_back(
            {(*symbol->getName()).str(), symbol->getAddress().getValue(), symbol->getSize()});
      }
    }
  }

  const std::vector<std::string>& symbols_;
  KernelMemory memory_;
  Linked* linked_;
};

// A kernel's share in its code. The announcement is withdrawn before the pages are freed.
struct CodeOwner {
  CodePages pages;
  std::shared_ptr<const void> announcement;
};

}  // namespace

absl::StatusOr<LoadedCode> LoadObject(std::string_view object, const std::vector<std::string>& symbols,
                                      const std::string& spec) {
  ThrowWhereLlvmIsRefusedMemory();  // a kernel on disk needs nothing else of LLVM
  const llvm::MemoryBufferRef bytes(llvm::StringRef(object.data(), object.size()), "kernel");
  // Outlives the graph: lookup results still hold names while `link` destroys the graph.
  const auto names = std::make_shared<orc::SymbolStringPool>();
  auto graph = jitlink::createLinkGraphFromObject(bytes, names);
  if (!graph) return CannotLoad(llvm::toString(graph.takeError()));
  if ((*graph)->getTargetTriple().getArch() != kArchitecture)
    return CannotLoad("it is for " + (*graph)->getTargetTriple().str());
  Linked linked;
  // Returns when the link has succeeded or failed: nothing in it waits for another thread.
  jitlink::link(std::move(*graph), std::make_unique<KernelLink>(symbols, &linked));
  if (!linked.memory_problem.ok()) return linked.memory_problem;
  if (!linked.link_problem.empty()) return CannotLoad(linked.link_problem);
  auto owner = std::make_shared<CodeOwner>();
  linked.code.page_bytes = linked.pages.bytes();
  owner->pages = std::move(linked.pages);
  if (WantsCodeEvents()) {
    linked.event.spec = spec;
    linked.event.object = object;
    owner->announcement = AnnounceCode(linked.event);
  }
  linked.code.owner = std::move(owner);
  return std::move(linked.code);
}

}  // namespace quern
