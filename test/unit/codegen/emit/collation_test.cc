// SPDX-License-Identifier: Apache-2.0
// Compiled joins and aggregations by strings of every collation return the generic kernel's pairs and groups.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "runtime/collation/collation.h"
#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/runtime/collation/collated_texts.h"
#include "test/unit/runtime/join/number_join.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::ColumnPtr;
using test::Lines;
using test::NumberColumn;
using test::StringColumn;
using Texts = std::vector<std::string>;

std::shared_ptr<const Kernel> KernelOf(const std::string& spec, Engine engine) {
  CompileOptions options;
  options.engine = engine;
  const auto compiled = CompileText(spec, options);
  EXPECT_TRUE(compiled.ok()) << spec << ": " << compiled.status();
  return compiled.ok() ? compiled->kernel : nullptr;
}

// n strings with few distinct characters, so that many of them are equal under some collation.
Texts SomeTexts(size_t n, std::mt19937_64* random) {
  Texts texts;
  while (texts.size() < n) {
    const test::TextKind kind = test::kTextKinds[(*random)() % std::size(test::kTextKinds)];
    std::string text = test::RandomText(kind, random);
    texts.push_back(text);
    for (char& c : text)
      if (c >= 'a' && c <= 'z' && (*random)() % 2 == 0) c = static_cast<char>(c - 0x20);
    texts.push_back(text);
  }
  return texts;
}

std::vector<std::string> AllNames() {
  std::vector<std::string> names;
  for (const CollationRow& row : AllCollations()) names.emplace_back(row.text);
  if (CollationNamed("icu:und-u-ks-level1").ok()) names.emplace_back("icu:und-u-ks-level1");
  return names;
}

TEST(CompileCollated, JoinsGiveTheGenericPairs) {
  auto random = test::PrintedRandom();
  for (const std::string& name : AllNames()) {
    for (const char* type : {"utf8", "utf8_view"}) {
      const std::string spec = "join.inner keys=" + std::string(type) + "(" + name + ") build=i64 probe=i64";
      const Storage storage = KeysOf(*ParseSpec(spec))[0].type.id == TypeId::kUtf8 ? kVar32 : kView;
      const Texts texts = SomeTexts(400, &random);
      const auto numbers = NumberColumn(test::RowNumbers(texts.size()));
      const BatchView batch = test::Rows(texts.size(), {StringColumn(storage, texts)}, {numbers});
      std::vector<test::Pairs> found;
      for (const Engine engine : {Engine::kGeneric, Engine::kJit}) {
        const auto join = MakeHashJoin(KernelOf(spec, engine), test::NoLimit());
        ASSERT_EQ(join->Append(batch), absl::OkStatus());
        ASSERT_EQ(join->Finalise(), absl::OkStatus());
        found.push_back(test::Probe(join, batch, 500));
      }
      EXPECT_GE(found[0].size(), texts.size()) << spec;
      EXPECT_EQ(found[1], found[0]) << spec;
    }
  }
}

TEST(CompileCollated, AggregationsGiveTheGenericGroups) {
  auto random = test::PrintedRandom();
  for (const std::string& name : AllNames()) {
    const std::string type = "utf8(" + name + ")";
    const std::string spec = "aggregate keys=" + type + ",i32,dictionary(u8," + type +
                             "):nullable aggs=count_star,min(" + type + "),max(" + type + "),count_distinct(" + type +
                             ")";
    std::vector<BatchView> batches;
    for (int b = 0; b < 2; ++b) {
      const Texts texts = SomeTexts(300, &random), values = SomeTexts(8, &random);
      std::vector<uint8_t> indices;
      std::vector<int32_t> numbers;
      std::vector<bool> valid;
      for (size_t i = 0; i < texts.size(); ++i) {
        indices.push_back(static_cast<uint8_t>(random() % values.size()));
        numbers.push_back(static_cast<int32_t>(random() % 2));
        valid.push_back(random() % 4 != 0);
      }
      const ColumnPtr column = StringColumn(kVar32, texts);
      const ColumnPtr dictionary =
          test::WithNulls(test::DictionaryColumn(indices, StringColumn(kVar32, values)), valid);
      batches.push_back(
          test::Rows(texts.size(), {column, NumberColumn(numbers), dictionary}, {column, column, column}));
    }
    std::vector<Lines> found;
    for (const Engine engine : {Engine::kGeneric, Engine::kJit}) {
      const auto aggregate = MakeHashAggregate(KernelOf(spec, engine), test::NoLimit());
      for (const BatchView& batch : batches) ASSERT_EQ(aggregate->Append(batch), absl::OkStatus());
      ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
      found.push_back(test::GroupsOf(aggregate));
    }
    EXPECT_EQ(found[1], found[0]) << spec;
  }
}

}  // namespace
}  // namespace quern
