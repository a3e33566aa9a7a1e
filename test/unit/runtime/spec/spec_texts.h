// SPDX-License-Identifier: Apache-2.0
// Helpers of the tests of specs' texts: errors as texts, the lists in messages, and random specs and damaged texts.
#ifndef QUERN_TEST_UNIT_RUNTIME_SPEC_SPEC_TEXTS_H_
#define QUERN_TEST_UNIT_RUNTIME_SPEC_SPEC_TEXTS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/spec/spec.h"
#include "test/unit/seed.h"

namespace quern::spec_texts {

inline std::string Text(const absl::Status& status) { return status.ok() ? "no error" : std::string(status.message()); }
inline std::string Error(std::string_view text) { return Text(ParseSpec(text).status()); }

template <class Spec>
Spec Parsed(std::string_view text) {
  const auto spec = ParseSpec(text);
  EXPECT_TRUE(spec.ok()) << Error(text);
  return spec.ok() ? std::get<Spec>(*spec) : Spec();
}

inline std::string Canonical(std::string_view text) {
  const auto spec = ParseSpec(text);
  return spec.ok() ? PrintSpec(*spec) : Error(text);
}

// "i8,i8,i8"
inline std::string Repeated(const std::string& item, int n) {
  std::string list = item;
  for (int i = 1; i < n; ++i) list += "," + item;
  return list;
}

// "i64 f64:nullable"
inline std::string Types(const std::vector<ColumnType>& types) {
  std::string text;
  for (const ColumnType& type : types)
    text += (text.empty() ? "" : " ") + PrintType(type) + (type.nullable ? ":nullable" : "");
  return text;
}

inline constexpr char kAllButRowId[] =
    "bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, decimal32, decimal64, decimal128, date32, date64, time32, "
    "time64, timestamp, "
    "duration, fixed_binary, "
    "binary, utf8, large_binary, large_utf8, binary_view, utf8_view";
inline constexpr char kAllOperators[] =
    "join.inner, join.left, join.right, join.full, join.semi, join.anti, join.right_semi, join.right_anti, "
    "join.anti_null_aware, "
    "join.mark, join.single, aggregate, sort, filter, set.union, set.intersect, set.except, set.intersect_all, "
    "set.except_all, map";

// ---- random ----

// Seeded with the test's seed.
class Random {
 public:
  Random() : generator_(test::PrintedRandom()) {}
  explicit Random(uint64_t seed) : generator_(seed) {}
  uint64_t Bits() { return generator_(); }
  uint64_t Below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(generator_); }
  bool Coin() { return Below(2) == 0; }
  double Fraction() { return std::uniform_real_distribution<double>(0, 1)(generator_); }

 private:
  std::mt19937_64 generator_;
};

// Any type but rowid, with a collation where it takes one.
inline ColumnType RandomKeyType(Random* random, uint64_t max_width_bytes = 65536) {
  ColumnType type;
  type.id = AllTypes()[random->Below(AllTypes().size() - 1)].id;  // rowid is the last
  if (type.id == TypeId::kFixedBinary) type.width_bytes = static_cast<uint32_t>(1 + random->Below(max_width_bytes));
  if (IsVariable(RowOf(type.id).storage)) type.collation = AllCollations()[random->Below(AllCollations().size())].id;
  type.nullable = random->Coin();
  type.is_dictionary = random->Below(3) == 0;
  if (type.is_dictionary) type.index = static_cast<TypeId>(static_cast<uint64_t>(TypeId::kI8) + random->Below(8));
  return type;
}

// Any type; payload has no collations.
inline ColumnType RandomPayloadType(Random* random) {
  ColumnType type;
  type.id = TypeId::kRowId;
  if (random->Below(AllTypes().size()) == 0) return type;
  type = RandomKeyType(random);
  type.collation = ColumnType().collation;
  return type;
}

// Each of `n` specs that `make` returns is valid, and its text parses to the same spec.
template <class MakeSpec>
void ExpectParseInvertsPrint(int n, const MakeSpec& make) {
  Random random;
  for (int i = 0; i < n; ++i) {
    const KernelSpec spec = make(&random);
    const std::string text = PrintSpec(spec);
    ASSERT_EQ(Text(ValidateSpec(spec)), "no error") << text;
    EXPECT_EQ(text.find_first_of("\t\r\n"), std::string::npos) << text;
    const auto parsed = ParseSpec(text);
    ASSERT_TRUE(parsed.ok()) << text << "\n" << Error(text);
    EXPECT_TRUE(*parsed == spec) << text;
    EXPECT_EQ(PrintSpec(*parsed), text);
  }
}

// The text with up to four changes: bytes or pieces are removed, inserted, changed or repeated. `likely`: bytes that
// have a meaning in it.
inline std::string Damaged(std::string text, std::string_view likely, Random* random) {
  for (uint64_t n = 1 + random->Below(4); n > 0 && !text.empty(); --n) {
    const size_t at = random->Below(text.size());
    const uint64_t kind = random->Below(4);
    if (kind == 0) text.erase(at, 1 + random->Below(8));
    else if (kind == 1) text.insert(at, 1, likely[random->Below(likely.size())]);
    else if (kind == 2) text[at] = static_cast<char>(random->Below(256));
    else text.insert(at, text.substr(random->Below(text.size()), random->Below(12)));
  }
  return text;
}

// Texts that are nearly right reach further into the parser than random bytes do: each is either a spec that prints and
// parses, or one line of error.
template <class MakeSpec>
void ExpectDamageIsAnswered(int n, std::string_view likely, const MakeSpec& make) {
  Random random;
  for (int i = 0; i < n; ++i) {
    const std::string text = Damaged(PrintSpec(make(&random)), likely, &random);
    const auto spec = ParseSpec(text);
    if (spec.ok()) {
      EXPECT_TRUE(ParseSpec(PrintSpec(*spec)).value() == *spec) << text;
      continue;
    }
    const std::string error = Error(text);
    EXPECT_NE(error.find("accepted: "), std::string::npos) << text << "\n" << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << text;
  }
}

}  // namespace quern::spec_texts

#endif  // QUERN_TEST_UNIT_RUNTIME_SPEC_SPEC_TEXTS_H_
