// SPDX-License-Identifier: Apache-2.0
// The mapper of a spec, for tests.
#ifndef QUERN_TEST_UNIT_CODEGEN_EMIT_MAPPER_OF_H_
#define QUERN_TEST_UNIT_CODEGEN_EMIT_MAPPER_OF_H_

#include <gtest/gtest.h>

#include <memory>

#include "codegen/compiler.h"
#include "codegen/operators.h"

namespace quern::test {

// With a kernel that is made now, and is in no cache. Null where that fails, which is a failure of the test.
inline std::shared_ptr<const RowMapper> MapperOf(const MapSpec& spec, Engine engine) {
  CompileOptions options;
  options.engine = engine;
  options.use_cache = false;
  const absl::StatusOr<CompiledKernel> compiled = Compile(spec, options);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return compiled.ok() ? MakeRowMapper(compiled->kernel) : nullptr;
}

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_CODEGEN_EMIT_MAPPER_OF_H_
