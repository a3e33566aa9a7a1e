// SPDX-License-Identifier: Apache-2.0
// The kernels of a process by key, with least-recently-used eviction.
#ifndef QUERN_CODEGEN_CACHE_KERNEL_CACHE_H_
#define QUERN_CODEGEN_CACHE_KERNEL_CACHE_H_

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/kernel/kernel.h"
#include "runtime/base/fork_safety.h"

namespace quern {

// *Threads*: any. *Ownership*: callers share kernels with the cache; an evicted kernel lives until its last user drops
// it.
class KernelCache {
 public:
  using Make = std::function<absl::StatusOr<std::shared_ptr<const Kernel>>()>;

  static KernelCache& OfProcess();

  // Finds the kernel, or makes it once if several threads request it at the same time; the others wait and get the same
  // kernel or the same error. Errors are not cached. *Cost* of a hit: one hash of the key and one lock.
  absl::StatusOr<CompiledKernel> FindOrMake(const std::string& key, const Make& make);

  // Finds a finished kernel by a name of its key; null if there is none. *Cost*: one hash of the name and one lock.
  std::shared_ptr<const Kernel> FindByName(const std::string& name);
  // Gives a finished kernel another name, which is removed with the kernel. Does nothing if the key is gone.
  void AddName(const std::string& name, const std::string& key);
  // Gives the kernel named `name` another name.
  void AddAlias(const std::string& alias, const std::string& name);

  void SetLimit(uint64_t code_bytes);
  KernelCacheStats Stats();
  void Clear();

 private:
  struct Entry {
    std::shared_ptr<const Kernel> kernel;  // null while it is being made
    absl::Status error;
    bool done = false;
    std::list<std::string>::iterator used;
    std::vector<std::string> names;
    std::shared_ptr<Entry> next;  // of those that are evicted together
  };

  // Evicted entries. A chain, because eviction must not allocate: the limit holds at all times.
  struct Evicted {
    Evicted() = default;
    Evicted(Evicted&&) = default;
    Evicted& operator=(Evicted&&) = default;
    ~Evicted() {
      while (first != nullptr) first = std::move(first->next);
    }
    std::shared_ptr<Entry> first;
  };

  void AfterForkInChild();

  // The lock guards the functions and fields below.
  void Name(const std::string& name, const std::shared_ptr<Entry>& entry);
  void Touch(Entry* entry) { order_.splice(order_.begin(), order_, entry->used); }

  // Removes the least recently used kernels until the limit holds. *Ownership*: the caller destroys them after it
  // releases the lock, since unmapping code takes longer than a thousand hits.
  Evicted Evict();

  ForkSafeMutex mutex_;
  ForkSafeCondition done_;  // of any entry
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> names_;  // of entries in `entries_` only
  std::list<std::string> order_;                                   // finished entries, most recently used first
  KernelCacheStats stats_ = {.limit_bytes = uint64_t{64} << 20};
};

}  // namespace quern

#endif  // QUERN_CODEGEN_CACHE_KERNEL_CACHE_H_
