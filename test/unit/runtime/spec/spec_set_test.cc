// SPDX-License-Identifier: Apache-2.0
// The text form of set operations.
#include <gtest/gtest.h>

#include <string>

#include "runtime/spec/spec.h"
#include "test/unit/runtime/spec/spec_texts.h"

namespace quern {
namespace {

using namespace spec_texts;  // NOLINT: the helpers of this folder

TEST(SetSpec, ParsesKindAndKeys) {
  const auto spec = Parsed<SetSpec>("set.except_all keys=i64:nullable,utf8(utf8mb4_bin)");
  EXPECT_EQ(spec.kind, SetKind::kExceptAll);
  ASSERT_EQ(spec.keys.size(), 2u);
  EXPECT_TRUE(spec.keys[0].null_equal);
  EXPECT_EQ(Types(SetOutputTypes(spec)), "i64:nullable utf8");
  for (const std::string name : {"union", "intersect", "except", "intersect_all", "except_all"})
    EXPECT_EQ(Canonical("set." + name + "  keys=i64:nullable,dictionary(i8,utf8(ascii_bin))"),
              "set." + name + " keys=i64:nullable,dictionary(i8,utf8(ascii_bin))");
}

TEST(SetSpec, GroupsKnowTheirRowsOfEitherSide) {
  const auto groups = [](const std::string& text) { return PrintSpec(GroupsOf(Parsed<SetSpec>(text))); };
  EXPECT_EQ(groups("set.union keys=i64"), "aggregate keys=i64");
  EXPECT_EQ(groups("set.intersect keys=i64"), "aggregate keys=i64 aggs=bit_or(u8)");
  EXPECT_EQ(groups("set.except keys=i64"), "aggregate keys=i64 aggs=bit_or(u8)");
  EXPECT_EQ(groups("set.except_all keys=i64"), "aggregate keys=i64 aggs=sum(i8)");
  EXPECT_EQ(groups("set.intersect_all keys=i64"), "aggregate keys=i64 aggs=count_star:filter,count_star:filter");
}

TEST(SetSpec, Errors) {
  EXPECT_EQ(Error("set.union"), "missing field: keys; accepted: keys=TYPE,TYPE,.. with 1 to 16 types");
  EXPECT_EQ(Error("set.union keys=rowid").substr(0, 15), "rowid is no key");
  EXPECT_EQ(Error("set.union keys=i64 aggs=count_star"), "unknown field: aggs; accepted: keys");
  EXPECT_NE(Error("set.union keys=i64:desc"), "no error");
  EXPECT_EQ(Error("set.union keys=" + Repeated("i8", 17)), "number of keys out of range: 17; accepted: 1 to 16");
  SetSpec spec = Parsed<SetSpec>("set.union keys=i64");
  spec.kind = static_cast<SetKind>(9);
  EXPECT_EQ(Text(ValidateSpec(spec)), "set kind out of range: 9; accepted: 0 to 4");
  spec = {};
  EXPECT_EQ(Text(ValidateSpec(spec)), "number of keys out of range: 0; accepted: 1 to 16");
}

SetSpec RandomSpec(Random* random) {
  SetSpec spec;
  spec.kind = static_cast<SetKind>(random->Below(5));
  spec.keys.resize(1 + random->Below(kMaxKeys));
  for (KeySpec& key : spec.keys) {
    key.type = RandomKeyType(random);
    key.null_equal = key.type.nullable;
  }
  return spec;
}

TEST(SetSpecRandom, ParseInvertsPrint) { ExpectParseInvertsPrint(500, RandomSpec); }
TEST(SetSpecRandom, DamageIsAnswered) { ExpectDamageIsAnswered(2000, "=,:()._ keys", RandomSpec); }

}  // namespace
}  // namespace quern
