// SPDX-License-Identifier: Apache-2.0
// Where the keys, states and bits of a group lie: some layouts in full, and for all functions a check that no two
// fields overlap.
#include "runtime/aggregate/aggregate_descriptor.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/spec/spec.h"
#include "test/unit/runtime/aggregate/group_rows.h"

namespace quern {
namespace {

using test::ShapeOf;

TEST(AggregateDescriptor, ANarrowWordIsFollowedByTheBits) {
  EXPECT_EQ(ShapeOf("aggregate keys=i32 aggs=count_star,sum(i32),max(f64:nullable)")->Print(),
            "offset  bytes  field       type        storage\n"
            "     0      4  packed key  32 bits     keys[0] from bit 0\n"
            "     8      8  aggs[0]     count_star  rows\n"
            "    16      8  aggs[1]     sum         sum\n"
            "    24      8  aggs[2]     max         max\n"
            "     4      1  bits        of aggs[2]\n"
            "tuple_bytes 32\n");
}

TEST(AggregateDescriptor, AFullWordPutsTheBitsBehindTheStates) {
  EXPECT_EQ(ShapeOf("aggregate keys=i64 aggs=count_star,sum(i64:nullable),max(f64)")->Print(),
            "offset  bytes  field       type        storage\n"
            "     0      8  packed key  64 bits     keys[0] from bit 0\n"
            "     8      8  aggs[0]     count_star  rows\n"
            "    16      8  aggs[1]     sum         sum\n"
            "    24      8  aggs[2]     max         max\n"
            "    32      1  bits        of aggs[1]\n"
            "tuple_bytes 40\n");
}

TEST(AggregateDescriptor, APadSpaceKeyCountsItsSpaces) {
  const auto descriptor = ShapeOf("aggregate keys=i32,utf8(utf8mb4_bin):nullable aggs=sum(i64:nullable)");
  EXPECT_EQ(descriptor->Print(),
            "offset  bytes  field    type               storage\n"
            "     0     16  keys[1]  utf8(utf8mb4_bin)  var32\n"
            "    16      4  keys[0]  i32                32\n"
            "    20      4  spaces   cut off keys[1]\n"
            "    24      8  aggs[0]  sum                sum\n"
            "    32      1  bits     of keys[1], aggs[0]\n"
            "tuple_bytes 40\n");
  EXPECT_EQ(descriptor->spaces_offset(0), 0u);
  EXPECT_EQ(descriptor->spaces_offset(1), 20u);
  EXPECT_EQ(ShapeOf("aggregate keys=utf8(utf8mb4_0900_bin) aggs=count_star")->spaces_offset(0), 0u);
}

TEST(AggregateDescriptor, WithoutKeysThereAreStatesAlone) {
  EXPECT_EQ(ShapeOf("aggregate aggs=sum(i64)")->Print(),
            "offset  bytes  field    type  storage\n"
            "     0      8  aggs[0]  sum   sum\n"
            "     8      1  bits     of aggs[0]\n"
            "tuple_bytes 16\n");
}

TEST(AggregateDescriptor, ADictionaryKeyIsANumber) {
  const auto descriptor = ShapeOf("aggregate keys=dictionary(i8,utf8):nullable aggs=count_star");
  EXPECT_EQ(descriptor->Print(),
            "offset  bytes  field       type        storage\n"
            "     0      8  packed key  33 bits     keys[0] from bit 0 (null: bit 32)\n"
            "     8      8  aggs[0]     count_star  rows\n"
            "tuple_bytes 16\n");
  EXPECT_EQ(descriptor->get()->group.keys[0].storage, k32);
  EXPECT_EQ(descriptor->get()->group.keys[0].index_storage, kNoStorage);
}

// Up to 64 bytes, and only if at most a quarter is wasted.
TEST(AggregateDescriptor, SlotsAreBroughtUpToAPowerOfTwo) {
  const auto bytes = [](int num_sums, const char* keys) {
    std::string aggs = "count_star";
    for (int i = 1; i < num_sums; ++i) aggs += ",sum(i64)";
    return ShapeOf(std::string("aggregate keys=") + keys + " aggs=" + aggs)->get()->group.tuple_bytes;
  };
  const std::vector<uint32_t> slots = {16, 32, 32, 40, 64, 64, 64, 72, 80};
  for (size_t n = 1; n <= slots.size(); ++n) EXPECT_EQ(bytes(static_cast<int>(n), "i64"), slots[n - 1]) << n;
  EXPECT_EQ(bytes(2, "utf8_view"), 32u);
  EXPECT_EQ(bytes(3, "utf8_view"), 40u);
  EXPECT_EQ(ShapeOf("aggregate keys=bool")->get()->group.tuple_bytes, 8u);
}

std::string Needed(const char* text) {
  const auto descriptor = ShapeOf(text);
  const NeededAggregateEntryPoints entries = EntryPointsOf(*descriptor->get());
  std::string names;
#define QUERN_AGGREGATE_ENTRY(field, result, parameters) \
  if (entries.field) names += #field " ";
#include "runtime/abi/aggregate_entry_points.def"
  return names;
}

TEST(AggregateDescriptor, EntryPointsAreThoseWithWorkToDo) {
  EXPECT_EQ(Needed("aggregate keys=i64"), "pack ");
  EXPECT_EQ(Needed("aggregate aggs=count_star"), "update update_runs ");
  EXPECT_EQ(Needed("aggregate keys=i64 aggs=min(utf8),median(f64)"), "pack ");  // only out-of-line ones
  EXPECT_EQ(Needed("aggregate keys=i64 aggs=count(i64:nullable)"),
            "pack update update_valid update_runs update_lanes ");
  EXPECT_EQ(Needed("aggregate keys=i64 aggs=count_star:filter"), "pack update update_runs update_lanes ");
  EXPECT_EQ(Needed("aggregate aggs=count_star,sum(i64)"), "update update_runs update_lanes ");
  EXPECT_EQ(Needed("aggregate aggs=sum(i64),sum(f64)"), "update update_runs ");  // lanes do not add floats
  EXPECT_EQ(Needed("aggregate aggs=sum(dictionary(i8,i64))"), "update update_runs ");
  EXPECT_EQ(Needed("aggregate in=i64 aggs=sum($0)"), "update update_runs update_lanes ");
  EXPECT_EQ(Needed("aggregate in=i64 aggs=sum(add($0,1:i64))"), "compute update update_runs update_lanes ");
  EXPECT_EQ(Needed("aggregate in=f64 aggs=sum(add($0,1:f64))"), "compute update update_runs ");
  EXPECT_EQ(Needed("aggregate in=utf8 aggs=sum(octet_length($0))"), "compute update update_runs ");
  EXPECT_EQ(Needed("aggregate keys=i64 aggs=corr(f64,f64:nullable)"), "pack update update_valid update_runs ");
  EXPECT_EQ(Needed("aggregate keys=utf8 aggs=count_star"), "hash store compare update update_runs ");
  EXPECT_EQ(Needed("aggregate keys=dictionary(i8,utf8) aggs=count_star"), "pack update update_runs ");
}

TEST(AggregateDescriptor, ColumnsOfABatchAreCountedAggregateByAggregate) {
  const auto descriptor =
      ShapeOf("aggregate keys=i64 aggs=count_star:filter,corr(f64,f32),median(f64):filter,sum(i64)");
  EXPECT_EQ(descriptor->get()->num_columns, 6u);
  EXPECT_EQ(descriptor->columns(1).arguments, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(descriptor->columns(2).arguments, (std::vector<uint32_t>{3}));
  EXPECT_EQ(descriptor->columns(2).filter, 4u);
  EXPECT_EQ(descriptor->columns(3).arguments, (std::vector<uint32_t>{5}));
  EXPECT_EQ(descriptor->get()->accumulators[0].filter_column, 0u);
  EXPECT_EQ(descriptor->get()->accumulators[1].arguments[1].column, 2u);
  EXPECT_EQ(descriptor->get()->accumulators[2].filter_column, 4u);
  EXPECT_EQ(descriptor->called(0), nullptr);
  EXPECT_NE(descriptor->called(2), nullptr);
  EXPECT_TRUE(descriptor->has_out_of_line());
}

TEST(AggregateDescriptor, ExpressionsAreComputedOnceAndColumnsAreRead) {
  const auto descriptor = ShapeOf(
      "aggregate in=i64,utf8,f64 aggs=sum(add($0,1:i64)),min($1),avg(add($0,1:i64)):filter(less($2,1.5:f64)),"
      "corr($0,divide($2,2:f64)),sum($0):filter(equal($1,'a':utf8))");
  EXPECT_EQ(descriptor->get()->num_columns, 3u);
  ASSERT_NE(descriptor->computed(), nullptr);
  // $0+1, $2<1.5, and both arguments of corr, which are read in one way; then the last filter.
  EXPECT_EQ(descriptor->computed()->results().size(), 5u);
  const auto places = [&](size_t a) { return descriptor->columns(a); };
  EXPECT_TRUE(places(0).is_computed);
  EXPECT_EQ(places(0).arguments, (std::vector<uint32_t>{0}));
  EXPECT_FALSE(places(1).is_computed);
  EXPECT_EQ(places(1).arguments, (std::vector<uint32_t>{1}));
  EXPECT_EQ(places(2).arguments, (std::vector<uint32_t>{0}));
  EXPECT_TRUE(places(2).is_filter_computed);
  EXPECT_EQ(places(2).filter, 1u);
  EXPECT_EQ(places(3).arguments, (std::vector<uint32_t>{2, 3}));
  EXPECT_FALSE(places(4).is_computed);
  EXPECT_EQ(places(4).arguments, (std::vector<uint32_t>{0}));
  EXPECT_EQ(places(4).filter, 4u);
  EXPECT_EQ(ShapeOf("aggregate in=i64 aggs=sum($0)")->computed(), nullptr);
}

// A group always has rows, so it needs a seen bit only where a value of them may be null.
TEST(AggregateDescriptor, SeenBitsAreThereWhereAGroupMayHaveNoValue) {
  const auto has_bit = [](const std::string& text) {
    return ShapeOf("aggregate " + text)->get()->accumulators[0].seen_mask != 0;
  };
  EXPECT_FALSE(has_bit("keys=i64 aggs=sum(i64)"));
  EXPECT_TRUE(has_bit("keys=i64 aggs=sum(i64:nullable)"));
  EXPECT_TRUE(has_bit("keys=i64 aggs=sum(i64):filter"));
  EXPECT_TRUE(has_bit("aggs=sum(i64)"));
  for (const char* counts_itself :
       {"count(i64:nullable)", "avg(i64:nullable)", "avg(decimal128:nullable)", "first(i64:nullable)",
        "last(decimal128:nullable)", "var_pop(f64:nullable)", "corr(f64:nullable,f64)", "median(f64:nullable)"})
    EXPECT_FALSE(has_bit(std::string("aggs=") + counts_itself)) << counts_itself;
}

TEST(AggregateDescriptor, FieldsOfAllFunctionsDoNotOverlap) {
  std::string aggs;
  for (const char* type : {"i8", "u64", "f32", "f64", "decimal128"})
    for (const char* function : {"sum", "avg", "min", "max", "any", "first", "last"})
      aggs += std::string(aggs.empty() ? "" : ",") + function + "(" + type + ":nullable)";
  const auto descriptor =
      ShapeOf("aggregate keys=i16:nullable,utf8(ascii_bin):nullable,fixed_binary(3):nullable aggs=" + aggs +
              ",bit_xor(i8):filter,bool_and(bool):filter,corr(f64,f32),count_distinct(i64)");
  const QuernAggregateDescriptor& s = *descriptor->get();
  std::vector<int> uses(s.group.tuple_bytes, 0);
  const auto use = [&](uint32_t begin, uint32_t bytes) {
    for (uint32_t i = begin; i < begin + bytes; ++i) ++uses.at(i);
  };
  use(s.group.keys[0].tuple_offset, 2);
  use(s.group.keys[1].tuple_offset, 16);
  use(s.group.keys[2].tuple_offset, 3);
  use(descriptor->spaces_offset(1), 4);
  use(s.bits_offset, s.bits_bytes);
  for (uint32_t k = 0; k < s.num_accumulators; ++k) {
    const QuernAccumulator& a = s.accumulators[k];
    use(a.state_offset, a.state_bytes);
    EXPECT_EQ(a.state_offset % 8, 0u) << k;
    if (a.seen_mask == 0) continue;
    EXPECT_GE(a.seen_offset, s.bits_offset);
    EXPECT_LT(a.seen_offset, s.bits_offset + s.bits_bytes);
  }
  for (size_t i = 0; i < uses.size(); ++i) EXPECT_LE(uses[i], 1) << "byte " << i;
  EXPECT_EQ(s.group.tuple_bytes % 8, 0u);
}

TEST(AggregateDescriptor, AFunctionThatNoHostHasIsRefused) {
  const absl::Status status =
      AggregateDescriptor::Make(*ParseSpecOf<AggregationSpec>("aggregate keys=i64 aggs=host.of_nobody(i64)")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(status.message()),
            "unknown host aggregate: of_nobody; accepted: a name that the host registered");
}

}  // namespace
}  // namespace quern
