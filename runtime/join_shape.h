// SPDX-License-Identifier: Apache-2.0
// From a join's spec to the shape that kernels are specialised for: where each field lies in a tuple.
#ifndef QUERN_RUNTIME_JOIN_SHAPE_H_
#define QUERN_RUNTIME_JOIN_SHAPE_H_

#include <memory>
#include <string>
#include <vector>

#include "runtime/kernel_abi.h"
#include "runtime/spec.h"

namespace quern {

// A shape with the fields that it points to.
class JoinShape {
 public:
  // Lays out the tuple: keys first, then build payload, in each part the widest first, null bits last.
  explicit JoinShape(const KernelSpec& spec);
  JoinShape(const JoinShape&) = delete;
  JoinShape& operator=(const JoinShape&) = delete;

  const QuernJoinShape* get() const { return &shape_; }
  QuernJoinShape* mutable_tuning() { return &shape_; }
  const KernelSpec& spec() const { return spec_; }

  // The tuple as a table: offset, bytes, field, type. What `quern dump layout` prints.
  std::string Print() const;

 private:
  KernelSpec spec_;
  std::vector<QuernField> keys_, build_, probe_;
  QuernJoinShape shape_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_SHAPE_H_
