// SPDX-License-Identifier: Apache-2.0
// Compiled aggregations: one kernel for equal specs, entry points only where there is work, the generic kernel's
// results, and code that is the same in every run.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/inspect/dump.h"
#include "codegen/operators.h"
#include "test/unit/runtime/aggregate/group_rows.h"

namespace quern {
namespace {

using test::ColumnPtr;
using test::Lines;

CompileOptions With(Engine engine, const PlanOverrides& overrides = {}) {
  CompileOptions options;
  options.engine = engine;
  options.overrides = overrides;
  return options;
}

std::shared_ptr<HashAggregate> Compiled(const std::string& spec, const CompileOptions& options) {
  const auto compiled = CompileText(spec, options);
  EXPECT_TRUE(compiled.ok()) << spec << ": " << compiled.status();
  if (!compiled.ok()) return nullptr;
  EXPECT_EQ(compiled->kernel->engine, options.engine);
  return MakeHashAggregate(compiled->kernel, test::NoLimit());
}

// ---- kernels ----

TEST(CompileAggregate, EqualSpecsShareOneKernel) {
  ClearKernelCache();
  const auto first = CompileText("aggregate keys=i64 aggs=count_star,sum(i64)", With(Engine::kJit));
  const auto second = CompileText("aggregate aggs=count_star,sum(i64)  keys=i64", With(Engine::kAuto));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(second->cache, CacheOutcome::kMemory);
  EXPECT_EQ(first->kernel, second->kernel);
}

TEST(CompileAggregate, EntryPointsAreThereWhereThereIsWork) {
  for (const char* spec :
       {"aggregate keys=i64", "aggregate aggs=sum(i64)", "aggregate keys=utf8 aggs=sum(i64:nullable)",
        "aggregate keys=i64 aggs=median(f64)", "aggregate keys=i64,i64 aggs=count(i64)"}) {
    const auto compiled = CompileText(spec, With(Engine::kJit));
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const NeededAggregateEntryPoints needed = EntryPointsOf(*compiled->kernel->As<AggregationSpec>().descriptor->get());
#define QUERN_AGGREGATE_ENTRY(field, result, parameters) \
  EXPECT_EQ(compiled->kernel->As<AggregationSpec>().entry_points.field != nullptr, needed.field) << spec << " " #field;
#include "runtime/abi/aggregate_entry_points.def"
#include "test/unit/seed.h"
  }
}

TEST(CompileAggregate, ThePlanReachesTheTable) {
  const auto aggregate =
      Compiled("aggregate keys=i64", With(Engine::kJit, {{"group_layout", "directory"}, {"batch_size", "3"}}));
  const std::vector<int64_t> keys = {1, 2, 3, 1, 2, 3, 4};
  ASSERT_EQ(aggregate->Append(test::Rows(7, {test::NumberColumn(keys)})), absl::OkStatus());
  ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
  EXPECT_STREQ(aggregate->stats().layout, "directory");
  EXPECT_EQ(test::GroupsOf(aggregate), (Lines{"1", "2", "3", "4"}));
}

TEST(CompileAggregate, WhatAHostKnowsReachesTheTable) {
  const auto compiled = CompileText("aggregate keys=i64", With(Engine::kJit));
  ASSERT_TRUE(compiled.ok());
  GroupHints hints;
  hints.ranges = {{true, 0, 1000000}};
  const auto aggregate = MakeHashAggregate(compiled->kernel, test::NoLimit(), hints);
  ASSERT_EQ(aggregate->Append(test::Rows(2, {test::NumberColumn<int64_t>({5, 1000000})})), absl::OkStatus());
  ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
  EXPECT_STREQ(aggregate->stats().layout, "dense");
}

TEST(CompileAggregate, AFunctionThatNoHostHasIsRefused) {
  for (const Engine engine : {Engine::kAuto, Engine::kJit, Engine::kGeneric}) {
    const auto compiled = CompileText("aggregate keys=i64 aggs=host.of_nobody(i64)", With(engine));
    EXPECT_EQ(compiled.status().code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(std::string(compiled.status().message()),
              "unknown host aggregate: of_nobody; accepted: a name that the host registered");
  }
}

TEST(CompileAggregate, EveryStageOfTheSameSpecIsTheSame) {
  const KernelSpec spec = *ParseSpec(
      "aggregate keys=i64,utf8(utf8mb4_bin):nullable aggs=count_star,avg(i64:nullable),min(f32):filter,max(utf8)");
  for (const char* name : {"x86-64-v3", "aarch64:neoverse-n1"}) {
    for (const char* stage : {"spec", "plan", "layout", "template", "ir", "opt", "asm", "obj", "remarks"}) {
      const auto first = Dump(stage, spec, *MachineByName(name), {}),
                 second = Dump(stage, spec, *MachineByName(name), {});
      ASSERT_TRUE(first.ok()) << stage << " " << first.status();
      EXPECT_EQ(*first, *second) << stage;
      EXPECT_FALSE(first->empty()) << stage;
    }
  }
}

// ---- the generic kernel's results ----

// Columns of the spec, with nulls where they are permitted.
ColumnPtr SomeRows(const ColumnType& type, uint32_t n, std::mt19937_64* random) {
  const ColumnPtr column = test::RandomColumn(type, n, random);
  if (!type.nullable) return column;
  std::vector<bool> valid(n);
  for (size_t i = 0; i < n; ++i) valid[i] = (*random)() % 5 != 0;
  return test::WithNulls(column, valid);
}

void ExpectGenericResults(const std::string& text, const PlanOverrides& overrides, bool is_sorted) {
  auto random = test::PrintedRandom();
  const AggregationSpec spec = *ParseSpecOf<AggregationSpec>(text);
  std::vector<BatchView> batches;
  for (const uint32_t n : {1u, 700u, 1500u}) {
    std::vector<ColumnPtr> keys, payload;
    for (const KeySpec& key : spec.keys) {
      keys.push_back(SomeRows(key.type, n, &random));
      if (is_sorted) keys.back() = test::NumberColumn(std::vector<int64_t>(n, n));
    }
    for (const ColumnType& type : AggregateInputTypes(spec.aggregates)) payload.push_back(SomeRows(type, n, &random));
    batches.push_back(test::Rows(n, keys, payload));
  }
  std::vector<Lines> found;
  for (const Engine engine : {Engine::kGeneric, Engine::kJit}) {
    const auto aggregate = Compiled(text, With(engine, overrides));
    for (const BatchView& batch : batches) ASSERT_EQ(aggregate->Append(batch), absl::OkStatus());
    ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
    found.push_back(test::GroupsOf(aggregate));
  }
  EXPECT_EQ(found[1], found[0]) << text;
}

constexpr const char* kAllUpdateFunctions =
    " aggs=count_star,count(utf8:nullable),sum(i8:nullable),sum(u32),sum(f32:nullable),sum128(i64:nullable),sum("
    "decimal128:nullable),avg("
    "i16),"
    "avg(u64:nullable),avg(f64:nullable),avg(decimal128),min(i32:nullable),max(u8),min(f32),max(f64:nullable),min("
    "decimal128),"
    "max(decimal128:nullable),any(i64),any(decimal128),first(f32:nullable),last(i64),first(decimal128),last(decimal128:"
    "nullable),"
    "bool_and(bool:nullable),bool_or(bool),bit_and(u16):filter,bit_or(i8:nullable),bit_xor(i64):filter,var_pop(i64),"
    "stddev_samp(f64:nullable),covar_pop(f64,i32:nullable),corr(f32:nullable,f64),sum(dictionary(u8,i64):nullable),"
    "max(dictionary(u8,f64)),last(dictionary(u8,decimal128):nullable),min(utf8),count_distinct(i64:nullable):filter";

TEST(CompileAggregate, EveryStepGivesTheGenericResult) {
  for (const char* keys : {" keys=i16:nullable", "", " keys=utf8(utf8mb4_bin):nullable,i8",
                           " keys=dictionary(u8,utf8):nullable", " keys=f64"})
    ExpectGenericResults(std::string("aggregate") + keys + kAllUpdateFunctions, {}, false);
}

// Update functions that states in vectors have, in tuples of 2 to 23 lanes.
TEST(CompileAggregate, StatesAsVectorsGiveTheGenericResult) {
  for (const char* aggregates : {"count_star,sum(i64),max(f64)", "sum(i64),min(i64)", "count_star,sum(i8),sum(u32)",
                                 "sum(i64:nullable),sum(f32:nullable),any(u8)",
                                 "sum(i32:nullable),min(f64:nullable),max(f32:nullable),avg(f64:nullable),bit_and(u16:"
                                 "nullable),count(i64:nullable)",
                                 "min(f64),max(f64),min(f32),max(f32),min(u64),max(u64),min(i16),max(i16),bool_and("
                                 "bool),bool_or(bool),bit_and(i64),bit_or(u8),"
                                 "min(bool),max(bool),min(date32),bit_xor(i64),avg(i32),avg(u8),avg(f32),count_star,"
                                 "sum(dictionary(u8,i64)),min(dictionary(u8,f64))",
                                 "count_star,min(utf8),sum(i64),count_distinct(i64),max(i64),sum(f64)"}) {
    for (const char* keys : {" keys=i64", " keys=i32:nullable", " keys=i64,utf8:nullable", ""}) {
      const std::string text = std::string("aggregate") + keys + " aggs=" + aggregates;
      for (const char* states : {"vectors", "single"})
        ExpectGenericResults(text, {{"states", states}, {"prefetch_input_rows", "3"}}, false);
    }
  }
}

TEST(CompileAggregate, SumsInVectorsAreChecked) {
  const auto run = [](const std::string& type, const ColumnPtr& values) {
    const auto aggregate = Compiled("aggregate keys=i64 aggs=count_star,sum(" + type + "),max(f64)",
                                    With(Engine::kJit, {{"states", "vectors"}}));
    const std::vector<int64_t> keys = {1, 2, 1, 2, 1};
    return aggregate->Append(
        test::Rows(5, {test::NumberColumn(keys)}, {values, test::NumberColumn<double>({1, 2, 3, 4, 5})}));
  };
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  constexpr uint64_t kTop = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(run("i64", test::NumberColumn<int64_t>({kMax, kMin, -5, 4, 5})), absl::OkStatus());
  EXPECT_EQ(run("u64", test::NumberColumn<uint64_t>({kTop - 2, kTop, 1, 0, 1})), absl::OkStatus());
  for (const ColumnPtr& values :
       {test::NumberColumn<int64_t>({kMax, 1, 0, 1, 1}), test::NumberColumn<int64_t>({1, kMin, 1, -1, 1})})
    EXPECT_EQ(run("i64", values).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(run("u64", test::NumberColumn<uint64_t>({1, kTop, 1, 1, 1})).code(), absl::StatusCode::kOutOfRange);
}

TEST(CompileAggregate, RunsGiveTheGenericResult) {
  ExpectGenericResults(std::string("aggregate keys=i64") + kAllUpdateFunctions, {}, true);
}

// Rows are collected into runs.
TEST(CompileAggregate, FewGroupsGiveTheGenericResult) {
  ExpectGenericResults(std::string("aggregate keys=bool:nullable") + kAllUpdateFunctions, {}, false);
}

TEST(CompileAggregate, KeysOfEveryKindGiveTheGenericResult) {
  for (const char* key : {"bool:nullable", "i8,u16:nullable", "u64", "f32:nullable", "decimal128:nullable",
                          "fixed_binary(5)", "large_utf8", "utf8_view:nullable,i64", "utf8(ascii_bin),utf8"}) {
    for (const PlanOverrides& overrides :
         {PlanOverrides(), PlanOverrides{{"test.hash", "zero"}, {"batch_size", "7"}, {"inline_group_bytes", "12"}}})
      ExpectGenericResults(std::string("aggregate keys=") + key + " aggs=count_star,sum(i64:nullable)", overrides,
                           false);
  }
}

}  // namespace
}  // namespace quern
