// SPDX-License-Identifier: Apache-2.0
// One ORC session per process, one JITDylib per kernel.
//
// LLJIT would bring a platform, process symbols and a compile layer; a kernel needs none of them: its object is ready, it calls five
// functions, it has no constructors. So the session is ORC's core with the JITLink layer, and a dylib whose only other content is the
// allow-list as absolute symbols. A name outside of it fails the link, which is the last of the checks on what generated code may reach.
#include "codegen/jit.h"

#include <atomic>
#include <mutex>

#include "llvm/ExecutionEngine/JITLink/JITLink.h"
#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "runtime/runtime_calls.h"
#include "runtime/status.h"

namespace quern {
namespace {

namespace orc = llvm::orc;

LLVM_ENABLE_BITMASK_ENUMS_IN_NAMESPACE();

absl::Status CannotLoad(const std::string& problem) { return Internal("cannot load code: " + problem + "; accepted: a kernel's object"); }

// Adds up what a link maps executable.
class CountCode : public orc::ObjectLinkingLayer::Plugin {
 public:
  void modifyPassConfig(orc::MaterializationResponsibility&, llvm::jitlink::LinkGraph&, llvm::jitlink::PassConfiguration& config) override {
    config.PostAllocationPasses.push_back([this](llvm::jitlink::LinkGraph& graph) {
      for (const llvm::jitlink::Section& section : graph.sections()) {
        if ((section.getMemProt() & orc::MemProt::Exec) == orc::MemProt::None) continue;
        for (const llvm::jitlink::Block* block : section.blocks()) bytes_ += block->getSize();
      }
      return llvm::Error::success();
    });
  }
  llvm::Error notifyFailed(orc::MaterializationResponsibility&) override { return llvm::Error::success(); }
  llvm::Error notifyRemovingResources(orc::JITDylib&, orc::ResourceKey) override { return llvm::Error::success(); }
  void notifyTransferringResources(orc::JITDylib&, orc::ResourceKey, orc::ResourceKey) override {}

  uint64_t Take() { return bytes_.exchange(0); }

 private:
  std::atomic<uint64_t> bytes_{0};
};

// Never destroyed: kernels that a host keeps in static variables may outlive everything else.
class Session {
 public:
  static absl::StatusOr<Session*> Get() {
    static absl::StatusOr<Session*>* session = new absl::StatusOr<Session*>(Make());
    return *session;
  }

  absl::StatusOr<LoadedCode> Load(std::unique_ptr<llvm::MemoryBuffer> object, const std::vector<std::string>& symbols) {
    std::lock_guard<std::mutex> lock(mutex_);
    counter_->Take();  // what a link that failed had counted
    problems_.clear();
    llvm::Expected<orc::JITDylib&> dylib = session_->createJITDylib("kernel" + std::to_string(next_kernel_++));
    if (!dylib) return Failed(dylib.takeError());
    LoadedCode code;
    code.owner = std::shared_ptr<const void>(&*dylib, [this](const void* d) { Remove(const_cast<void*>(d)); });
    if (llvm::Error error = dylib->define(orc::absoluteSymbols(AllowedCalls()))) return Failed(std::move(error));
    if (llvm::Error error = layer_->add(*dylib, std::move(object))) return Failed(std::move(error));
    for (const std::string& symbol : symbols) {
      llvm::Expected<orc::ExecutorSymbolDef> found = session_->lookup({&*dylib}, session_->intern(symbol));
      if (!found) return Failed(found.takeError());
      code.addresses.push_back(found->getAddress().toPtr<void*>());
    }
    code.code_bytes = counter_->Take();
    return code;
  }

 private:
  static absl::StatusOr<Session*> Make() {
    auto control = orc::SelfExecutorProcessControl::Create();
    if (!control) return CannotLoad(llvm::toString(control.takeError()));
    Session* session = new Session;
    session->session_ = std::make_unique<orc::ExecutionSession>(std::move(*control));
    session->layer_ = std::make_unique<orc::ObjectLinkingLayer>(*session->session_);
    // Else the session prints what went wrong and tells its caller only that something did.
    session->session_->setErrorReporter([session](llvm::Error error) { session->problems_ += llvm::toString(std::move(error)) + ": "; });
    session->counter_ = std::make_shared<CountCode>();
    session->layer_->addPlugin(session->counter_);
    return session;
  }

  absl::Status Failed(llvm::Error error) { return CannotLoad(problems_ + llvm::toString(std::move(error))); }

  orc::SymbolMap AllowedCalls() {
    orc::SymbolMap map;
    for (const RuntimeCall& call : AllRuntimeCalls()) {
      map[session_->intern(call.name)] = {orc::ExecutorAddr::fromPtr(call.address),
                                          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    }
    return map;
  }

  void Remove(void* dylib) {
    if (llvm::Error error = session_->removeJITDylib(*static_cast<orc::JITDylib*>(dylib))) llvm::consumeError(std::move(error));
  }

  std::mutex mutex_;      // one link at a time, so that the counter and the problems belong to it
  std::string problems_;  // of this link, as the session reports them
  std::unique_ptr<orc::ExecutionSession> session_;
  std::unique_ptr<orc::ObjectLinkingLayer> layer_;
  std::shared_ptr<CountCode> counter_;
  uint64_t next_kernel_ = 0;
};

}  // namespace

absl::StatusOr<LoadedCode> LoadObject(std::unique_ptr<llvm::MemoryBuffer> object, const std::vector<std::string>& symbols,
                                      const std::string&) {
  QUERN_ASSIGN_OR_RETURN(Session * session, Session::Get());
  return session->Load(std::move(object), symbols);
}

}  // namespace quern
