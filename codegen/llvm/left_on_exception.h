// SPDX-License-Identifier: Apache-2.0
// LLVM is built without exceptions: one that passes through it (memory was refused) leaves objects half made, and
// destroying them would follow pointers to what is gone. Such objects are left alone, a few hundred KiB each time.
#ifndef QUERN_CODEGEN_LLVM_LEFT_ON_EXCEPTION_H_
#define QUERN_CODEGEN_LLVM_LEFT_ON_EXCEPTION_H_

#include <exception>
#include <memory>

namespace quern {

// Leaves the object of an owner alone where this scope ends by an exception. To be declared right after the owner.
template <class Object>
class LeftOnException {
 public:
  explicit LeftOnException(std::unique_ptr<Object>* owner) : owner_(owner) {}
  LeftOnException(const LeftOnException&) = delete;
  LeftOnException& operator=(const LeftOnException&) = delete;
  ~LeftOnException() {
    if (std::uncaught_exceptions() > begun_) static_cast<void>(owner_->release());
  }

 private:
  std::unique_ptr<Object>* const owner_;
  const int begun_ = std::uncaught_exceptions();
};

}  // namespace quern

#endif  // QUERN_CODEGEN_LLVM_LEFT_ON_EXCEPTION_H_
