// SPDX-License-Identifier: Apache-2.0
// Single flight: the first thread that misses inserts an unfinished entry and compiles outside the lock; later threads
// find the entry and wait for it. A compilation that fails removes its entry, so that the next caller tries again.
// Compiling must not end by an exception (LLVM and the standard library allocate): the threads that wait would wait for
// ever. So whatever an entry needs in the order of use is allocated before the entry can be found.
#include "codegen/cache/kernel_cache.h"

#include <exception>
#include <mutex>
#include <utility>

#include "runtime/base/status.h"

namespace quern {
namespace {

absl::StatusOr<std::shared_ptr<const Kernel>> MakeOrStatus(const KernelCache::Make& make) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::exception& thrown) {
    return WithoutBadAlloc(
        [&] { return Internal("exception while compiling: " + std::string(thrown.what()) + "; accepted: none"); });
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
  done_.MakeAnew();
}

absl::StatusOr<CompiledKernel> KernelCache::FindOrMake(const std::string& key, const Make& make) {
  std::shared_ptr<Entry> entry;
  std::list<std::string> place;  // of the entry in the order
  {
    std::unique_lock<ForkSafeMutex> lock(mutex_);
    if (const auto at = entries_.find(key); at != entries_.end()) {
      entry = at->second;
      done_.wait(lock, [&] { return entry->done; });
      if (!entry->error.ok()) return entry->error;
      ++stats_.hits;
      // It may have been evicted while this thread waited, and is then no longer in the order.
      const auto still = entries_.find(key);
      if (still != entries_.end() && still->second == entry) Touch(entry.get());
      return CompiledKernel{entry->kernel, CacheOutcome::kMemory, ""};
    }
    place.push_front(key);
    entry = std::make_shared<Entry>();
    entries_.emplace(key, entry);
    ++stats_.misses;
  }
  absl::StatusOr<std::shared_ptr<const Kernel>> made = MakeOrStatus(make);
  Evicted evicted;
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
    order_.splice(order_.begin(), place);
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
  // First what may fail: a name that its entry does not know would stay when the entry goes.
  std::string own = name;
  entry->names.reserve(kMaxNames);
  if (names_.try_emplace(name, entry).second) entry->names.push_back(std::move(own));
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

KernelCache::Evicted KernelCache::Evict() {
  Evicted evicted;
  while (stats_.code_bytes > stats_.limit_bytes && !order_.empty()) {
    const auto victim = entries_.find(order_.back());
    stats_.code_bytes -= victim->second->kernel->page_bytes;
    --stats_.kernels;
    ++stats_.evictions;
    for (const std::string& name : victim->second->names) names_.erase(name);
    victim->second->next = std::move(evicted.first);
    evicted.first = std::move(victim->second);
    entries_.erase(victim);
    order_.pop_back();
  }
  return evicted;
}

void KernelCache::SetLimit(uint64_t code_bytes) {
  Evicted evicted;
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
