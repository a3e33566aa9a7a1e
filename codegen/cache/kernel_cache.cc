// SPDX-License-Identifier: Apache-2.0
// Single flight: the first thread that misses inserts an unfinished entry and compiles outside the lock; later threads
// find the entry and wait for it. A compilation that fails removes its entry, so that the next caller tries again.
// Compiling must not end by an exception (LLVM and the standard library allocate): the threads that wait would wait for
// ever.
#include "codegen/cache/kernel_cache.h"

#include <exception>
#include <mutex>
#include <new>
#include <utility>

#include "runtime/base/status.h"

namespace quern {
namespace {

absl::StatusOr<std::shared_ptr<const Kernel>> MakeOrStatus(const KernelCache::Make& make) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory: while compiling; accepted: what the system has free");
  } catch (const std::exception& thrown) {
    return Internal("exception while compiling: " + std::string(thrown.what()) + "; accepted: none");
  }
}

}  // namespace

KernelCache& KernelCache::OfProcess() {
  const NoFork no_fork;  // the first call makes it
  static KernelCache* cache = [] {
    auto* made = new KernelCache;
    CallInForkedChild(ForkReset::kKernelCache, [] { OfProcess().AfterForkInChild(); });
    return made;
  }();
  return *cache;
}

// Drops entries that other threads of the parent were compiling; in the child nobody finishes them.
void KernelCache::AfterForkInChild() {
  std::erase_if(entries_, [](const auto& item) { return !item.second->done; });
  new (&done_) std::condition_variable_any;  // the old one still waits for the threads that waited
}

absl::StatusOr<CompiledKernel> KernelCache::FindOrMake(const std::string& key, const Make& make) {
  std::shared_ptr<Entry> entry;
  {
    std::unique_lock<ForkSafeMutex> lock(mutex_);
    auto [at, inserted] = entries_.try_emplace(key);
    if (!inserted) {
      entry = at->second;
      done_.wait(lock, [&] { return entry->done; });
      if (!entry->error.ok()) return entry->error;
      ++stats_.hits;
      // It may have been evicted while this thread waited, and is then no longer in the order.
      const auto still = entries_.find(key);
      if (still != entries_.end() && still->second == entry) Touch(entry.get());
      return CompiledKernel{entry->kernel, CacheOutcome::kMemory, ""};
    }
    entry = at->second = std::make_shared<Entry>();
    ++stats_.misses;
  }
  absl::StatusOr<std::shared_ptr<const Kernel>> made = MakeOrStatus(make);
  std::vector<std::shared_ptr<Entry>> evicted;
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  entry->done = true;
  done_.notify_all();
  if (!made.ok()) {
    entry->error = made.status();
    const auto at = entries_.find(key);
    if (at != entries_.end() && at->second == entry) entries_.erase(at);
    return made.status();
  }
  entry->kernel = *std::move(made);
  const auto at = entries_.find(key);
  if (at != entries_.end() && at->second == entry) {  // not cleared meanwhile
    order_.push_front(key);
    entry->used = order_.begin();
    ++stats_.kernels;
    stats_.code_bytes += entry->kernel->page_bytes;
    evicted = Evict();
  }
  return CompiledKernel{entry->kernel, CacheOutcome::kMiss, ""};
}

std::shared_ptr<const Kernel> KernelCache::FindByName(const std::string& name) {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  const auto at = names_.find(name);
  if (at == names_.end()) return nullptr;
  ++stats_.hits;
  Touch(at->second.get());
  return at->second->kernel;
}

void KernelCache::Name(const std::string& name, const std::shared_ptr<Entry>& entry) {
  constexpr size_t kMaxNames = 16;  // a spec that is spelt in more ways is parsed each time
  if (entry->names.size() == kMaxNames) return;
  if (names_.try_emplace(name, entry).second) entry->names.push_back(name);
}

void KernelCache::AddName(const std::string& name, const std::string& key) {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  const auto at = entries_.find(key);
  if (at != entries_.end() && at->second->done) Name(name, at->second);
}

void KernelCache::AddAlias(const std::string& alias, const std::string& name) {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  const auto at = names_.find(name);
  if (at != names_.end()) Name(alias, std::shared_ptr<Entry>(at->second));
}

std::vector<std::shared_ptr<KernelCache::Entry>> KernelCache::Evict() {
  std::vector<std::shared_ptr<Entry>> evicted;
  while (stats_.code_bytes > stats_.limit_bytes && !order_.empty()) {
    const auto victim = entries_.find(order_.back());
    stats_.code_bytes -= victim->second->kernel->page_bytes;
    --stats_.kernels;
    ++stats_.evictions;
    for (const std::string& name : victim->second->names) names_.erase(name);
    evicted.push_back(std::move(victim->second));
    entries_.erase(victim);
    order_.pop_back();
  }
  return evicted;
}

void KernelCache::SetLimit(uint64_t code_bytes) {
  std::vector<std::shared_ptr<Entry>> evicted;
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  stats_.limit_bytes = code_bytes;
  evicted = Evict();
}

KernelCacheStats KernelCache::Stats() {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  return stats_;
}

void KernelCache::Clear() {
  std::unordered_map<std::string, std::shared_ptr<Entry>> cleared;  // destroyed after the lock
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  // Unfinished entries complete for those that wait, and are not kept.
  names_.clear();
  cleared.swap(entries_);
  order_.clear();
  stats_.kernels = 0;
  stats_.code_bytes = 0;
}

}  // namespace quern
