// SPDX-License-Identifier: Apache-2.0
// Aggregates of a host: which may be registered, and which functions are called when.
#include "runtime/spec/host_aggregates.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/unit/runtime/aggregate/accumulators/accumulator_rows.h"

namespace quern::test {
namespace {

// The sum of width * height and the number of rows, in 12 bytes.
struct Area {
  int32_t sum;
  int32_t num_rows;
  int32_t unused;
};

int g_answer = 0;
int g_calls = 0;

int UpdateArea(void*, void*, const QuernColumn* columns, uint32_t num_columns, const uint32_t* rows,
               void* const* states, uint64_t n) {
  EXPECT_EQ(num_columns, 2u);
  ++g_calls;
  for (uint64_t i = 0; i < n; ++i) {
    auto* const area = static_cast<Area*>(states[i]);
    area->sum +=
        blocks::LoadAt<int32_t>(columns[0].values, rows[i]) * blocks::LoadAt<int32_t>(columns[1].values, rows[i]);
    ++area->num_rows;
  }
  return g_answer;
}

int MergeArea(void*, void*, void* const* into, const void* const* from, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) {
    auto* const to = static_cast<Area*>(into[i]);
    const auto* const other = static_cast<const Area*>(from[i]);
    to->sum += other->sum;
    to->num_rows += other->num_rows;
  }
  return g_answer;
}

int FinaliseArea(void*, void*, const void* const* states, uint64_t n, void* values, uint8_t* validity) {
  for (uint64_t i = 0; i < n; ++i) {
    const auto* const area = static_cast<const Area*>(states[i]);
    static_cast<int64_t*>(values)[i] = area->sum;
    if (area->num_rows == 0) validity[i / 8] = static_cast<uint8_t>(validity[i / 8] & ~(1 << i % 8));
  }
  return g_answer;
}

HostAggregate AreaAggregate() {
  return {sizeof(Area), TypeOf(TypeId::kI64), nullptr, UpdateArea, MergeArea, FinaliseArea};
}

AggregateSpec AreaSpec() {
  static const bool registered = RegisterHostAggregate("area", AreaAggregate()).ok();
  EXPECT_TRUE(registered);
  AggregateSpec spec = SpecOf(AggregateFunction::kHost, TypeOf(TypeId::kI32));
  spec.arguments.push_back(TypeOf(TypeId::kI32));
  spec.host_name = "area";
  return spec;
}

struct Rectangles {
  ColumnPtr widths = NumberColumn<int32_t>({1, 2, 3, 4});
  ColumnPtr heights = NumberColumn<int32_t>({10, 20, 30, 40});
  QuernColumn columns[2] = {widths->column, heights->column};
};

TEST(HostAggregates, AreCalledOnceABatch) {
  const Rectangles rectangles;
  Groups groups(AreaSpec(), 3);
  EXPECT_EQ(groups.accumulator().state_bytes(), 16u);
  g_calls = 0;
  ASSERT_TRUE(groups.Add(rectangles.columns, {0, 1, 3}).ok());
  ASSERT_TRUE(groups.Add(rectangles.columns, {}).ok());
  EXPECT_EQ(g_calls, 1);
  EXPECT_EQ(groups.Results().value(), (std::vector<std::string>{"170", "40", "null"}));
}

TEST(HostAggregates, MergeStatesAndSavedStates) {
  const Rectangles rectangles;
  Groups a(AreaSpec(), 2), b(AreaSpec(), 2);
  ASSERT_TRUE(a.Add(rectangles.columns, {0}).ok());
  ASSERT_TRUE(b.Add(rectangles.columns, {1, 2}).ok());
  ASSERT_EQ(b.Saved(0).size(), sizeof(Area));
  ASSERT_TRUE(a.MergeSaved(0, b.Saved(0)).ok());
  ASSERT_TRUE(a.Merge(&b).ok());
  EXPECT_EQ(a.Results().value(), (std::vector<std::string>{"190", "40"}));
  EXPECT_EQ(Message(a.MergeSaved(0, "four")),
            "saved state of host.area(i32,i32) is damaged: 4 bytes; accepted: bytes that this version wrote");
}

TEST(HostAggregates, AnswersBut0EndTheAggregation) {
  const Rectangles rectangles;
  Groups a(AreaSpec(), 1), b(AreaSpec(), 1);
  g_answer = 3;
  EXPECT_EQ(Message(a.Add(rectangles.columns, {0})), "host aggregate failed: area: update answered 3; accepted: 0");
  g_answer = -1;
  EXPECT_EQ(Message(a.Merge(&b)), "host aggregate failed: area: merge answered -1; accepted: 0");
  EXPECT_EQ(Message(a.Results().status()), "host aggregate failed: area: finalise answered -1; accepted: 0");
  g_answer = 0;
}

TEST(HostAggregates, UnknownOnesAreNotMade) {
  AggregateSpec spec = AreaSpec();
  spec.host_name = "volume";
  const absl::Status status = MakeOutOfLineAggregate(spec).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(Message(status), "unknown host aggregate: volume; accepted: a name that the host registered");
}

TEST(HostAggregates, AreFoundByName) {
  AreaSpec();
  ASSERT_NE(FindHostAggregate("area"), nullptr);
  EXPECT_EQ(FindHostAggregate("area"), FindHostAggregate("area"));
  EXPECT_EQ(FindHostAggregate("area")->state_bytes, sizeof(Area));
  EXPECT_EQ(FindHostAggregate("are"), nullptr);
}

TEST(HostAggregates, NamesAreLettersDigitsAndUnderscores) {
  EXPECT_EQ(Message(RegisterHostAggregate("my area", AreaAggregate())),
            "bad name of a host aggregate: my area; accepted: 1 to 64 letters, digits and '_'");
  EXPECT_EQ(Message(RegisterHostAggregate("", AreaAggregate())),
            "bad name of a host aggregate: \"\"; accepted: 1 to 64 letters, digits and '_'");
  EXPECT_TRUE(RegisterHostAggregate(std::string(64, 'x'), AreaAggregate()).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(RegisterHostAggregate(std::string(65, 'x'), AreaAggregate())));
}

TEST(HostAggregates, ANameIsGivenOnce) {
  ASSERT_TRUE(RegisterHostAggregate("Twice_2", AreaAggregate()).ok());
  const absl::Status status = RegisterHostAggregate("Twice_2", AreaAggregate());
  EXPECT_TRUE(absl::IsAlreadyExists(status));
  EXPECT_EQ(Message(status), "host aggregate registered twice: Twice_2; accepted: once in a process");
}

TEST(HostAggregates, StatesHaveASize) {
  HostAggregate aggregate = AreaAggregate();
  for (const uint32_t bytes : {0u, 4097u}) {
    aggregate.state_bytes = bytes;
    EXPECT_EQ(Message(RegisterHostAggregate("sized", aggregate)),
              "bad state of host aggregate sized: " + std::to_string(bytes) + " bytes; accepted: 1 to 4096");
  }
}

TEST(HostAggregates, ResultsAreOfFixedWidth) {
  HostAggregate aggregate = AreaAggregate();
  const ColumnType refused[] = {TypeOf(TypeId::kUtf8),
                                TypeOf(TypeId::kBool),
                                TypeOf(TypeId::kRowId),
                                {.id = TypeId::kI64, .is_dictionary = true}};
  const char* const texts[] = {"utf8", "bool", "rowid", "dictionary(i32,i64)"};
  for (int i = 0; i < 4; ++i) {
    aggregate.result = refused[i];
    EXPECT_EQ(
        Message(RegisterHostAggregate("fixed", aggregate)),
        std::string("bad result type of host aggregate fixed: ") + texts[i] + "; accepted: numbers, dates and times");
  }
  aggregate.result.id = static_cast<TypeId>(200);
  EXPECT_EQ(Message(RegisterHostAggregate("fixed", aggregate)),
            "bad result type of host aggregate fixed: 200; accepted: numbers, dates and times");
}

TEST(HostAggregates, CallbacksAreAllNeeded) {
  HostAggregate aggregate = AreaAggregate();
  aggregate.finalise = nullptr;
  EXPECT_EQ(Message(RegisterHostAggregate("called", aggregate)),
            "missing callback of host aggregate called: finalise; accepted: update, merge and finalise");
  aggregate.merge = nullptr;
  EXPECT_EQ(Message(RegisterHostAggregate("called", aggregate)),
            "missing callback of host aggregate called: merge; accepted: update, merge and finalise");
  aggregate.update = nullptr;
  EXPECT_EQ(Message(RegisterHostAggregate("called", aggregate)),
            "missing callback of host aggregate called: update; accepted: update, merge and finalise");
}

}  // namespace
}  // namespace quern::test
