// SPDX-License-Identifier: Apache-2.0
// Filter kernels, compiled and generic, against an evaluation row by row (filter_rows.h): every kind of leaf on every
// type, with nulls, selections and dictionaries, constants of 0 to 40 bytes, every collation; random conditions of many
// leaves; LIKE with random patterns. Buffers end at inaccessible pages. row_filter_test.cc has further tests without
// compilation.
#include <gtest/gtest.h>

#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "test/unit/runtime/filter/filter_maker.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::FilterColumns;
using test::FilterMaker;

void ExpectFromBothEngines(const Predicate& condition, const FilterColumns& columns, uint32_t num_rows,
                           FilterMaker* maker) {
  FilterSpec spec;
  spec.where = condition;
  SCOPED_TRACE(PrintSpec(spec));
  for (const Engine engine : {Engine::kGeneric, Engine::kJit}) {
    SCOPED_TRACE(engine == Engine::kJit ? "jit" : "generic");
    CompileOptions options;
    options.engine = engine;
    options.use_cache = false;
    if (maker->Below(2) == 0) options.overrides = {{"batch_size", std::to_string(1 + maker->Below(300))}};
    const absl::StatusOr<CompiledKernel> compiled = Compile(spec, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    test::ExpectRowsAndPicked(condition, columns, maker->Selection(num_rows), num_rows,
                              *MakeRowFilter(compiled->kernel));
  }
}

void ExpectRandomRows(const Predicate& condition, uint32_t num_rows, FilterMaker* maker) {
  ExpectFromBothEngines(condition, maker->MakeColumns(condition, num_rows, maker->AnyGuard()), num_rows, maker);
}

TEST(FilterKernel, EveryLeafOnEveryType) {
  FilterMaker maker(test::SeedOfTest());
  for (const ColumnType& type : test::FilterTypes()) {
    for (const PredicateKind kind : {PredicateKind::kCompare, PredicateKind::kCompareColumns, PredicateKind::kIn,
                                     PredicateKind::kBetween, PredicateKind::kIsNull, PredicateKind::kLike}) {
      if (kind == PredicateKind::kLike && !IsVariable(RowOf(type.id).storage)) continue;
      ExpectRandomRows(maker.Leaf(kind, type), static_cast<uint32_t>(maker.Below(300)), &maker);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(FilterKernel, ConstantsOfEveryLength) {
  FilterMaker maker(test::SeedOfTest());
  for (const char* text : {"utf8", "utf8(utf8mb4_bin)", "utf8(utf8mb4_general_ci)", "utf8_view"}) {
    for (size_t length = 0; length <= 40 && !testing::Test::HasFailure(); ++length) {
      const Predicate condition = maker.EqualityOfLength(test::TypeNamed(text), length);
      ExpectFromBothEngines(condition, maker.AlmostEqual(condition, 200), 200, &maker);
    }
  }
}

TEST(FilterKernel, RandomConditions) {
  FilterMaker maker(test::SeedOfTest());
  for (int i = 0; i < 25 && !testing::Test::HasFailure(); ++i) {
    ExpectRandomRows(maker.Condition(test::FilterTypes(), 3), static_cast<uint32_t>(maker.Below(500)), &maker);
  }
}

TEST(FilterKernel, LikeInLongBatches) {
  FilterMaker maker(test::SeedOfTest());
  for (const char* text :
       {"utf8", "large_utf8(utf8mb4_bin):nullable", "utf8(utf8mb4_general_ci)", "utf8_view", "binary"}) {
    for (int i = 0; i < 10 && !testing::Test::HasFailure(); ++i) {
      ExpectRandomRows(maker.Leaf(PredicateKind::kLike, test::TypeNamed(text)), 1500, &maker);
    }
  }
}

TEST(FilterKernel, KernelsAreCachedAndKept) {
  KernelSpec spec = ParseSpec("filter i64 = 7").value();
  const std::shared_ptr<RowFilter> filter = MakeRowFilter(Compile(spec, {}).value().kernel);
  EXPECT_EQ(Compile(spec, {}).value().cache, CacheOutcome::kMemory);
  ClearKernelCache();
  const int64_t values[] = {7, 8, 7};
  BatchView batch;
  batch.keys.resize(1);
  batch.keys[0] = {};
  batch.keys[0].values = values;
  batch.num_rows = 3;
  EXPECT_EQ(filter->Count(batch).value(), 2u);
}

}  // namespace
}  // namespace quern
