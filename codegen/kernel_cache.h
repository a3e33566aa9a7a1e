// SPDX-License-Identifier: Apache-2.0
// The process's kernels, by key, least recently used first out.
#ifndef QUERN_CODEGEN_KERNEL_CACHE_H_
#define QUERN_CODEGEN_KERNEL_CACHE_H_

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "codegen/compiler.h"

namespace quern {

// *Threads*: any. *Ownership*: callers share kernels with the cache; an evicted kernel lives on until its last user is gone.
class KernelCache {
 public:
  using Make = std::function<absl::StatusOr<std::shared_ptr<const Kernel>>()>;

  static KernelCache& OfProcess();

  // Finds the kernel, or makes it once however many threads ask for it at the same time: the others wait and get the same kernel, or the
  // same error, which is not kept. *Cost* of a hit: one hash of the key and one lock.
  absl::StatusOr<CompiledKernel> FindOrMake(const std::string& key, const Make& make);

  // Finds a finished kernel by a name that was given to its key; null if there is none. *Cost*: one hash of the name and one lock.
  std::shared_ptr<const Kernel> FindByName(const std::string& name);
  // Gives a finished kernel one more name, which goes when the kernel goes. Does nothing for a key that is gone already.
  void AddName(const std::string& name, const std::string& key);

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
  };

  void Touch(Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { order_.splice(order_.begin(), order_, entry->used); }

  void Evict() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::shared_ptr<Entry>> names_ ABSL_GUARDED_BY(mutex_);  // of entries in `entries_` alone
  std::list<std::string> order_ ABSL_GUARDED_BY(mutex_);                                   // finished ones, most recently used first
  KernelCacheStats stats_ ABSL_GUARDED_BY(mutex_) = {.limit_bytes = uint64_t{64} << 20};
};

}  // namespace quern

#endif  // QUERN_CODEGEN_KERNEL_CACHE_H_
