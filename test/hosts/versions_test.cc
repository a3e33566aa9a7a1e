// SPDX-License-Identifier: Apache-2.0
// What hosts store or send beside rows, and compare later: versions of collations, and the format number.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "test/hosts/arrow_results.h"
#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

// ---- collations ----

TEST(CollationVersions, AreTextsThatLive) {
  const char *version = nullptr, *again = nullptr;
  ASSERT_EQ(quern_collation_version("utf8mb4_unicode_ci", &version, nullptr), QUERN_OK);
  const std::string text = version;
  EXPECT_EQ(text.size(), 18u) << "a number and the digest of a table: " << text;
  EXPECT_EQ(Take(quern::CollationVersion("binary")), "1");
  ASSERT_EQ(quern_collation_version("utf8mb4_unicode_ci", &again, nullptr), QUERN_OK);
  EXPECT_EQ(again, version) << "the same text, which is not made twice";
  EXPECT_EQ(Take(quern::CollationVersion("tidb.utf8mb4_unicode_ci")), text) << "the same weights";
  EXPECT_NE(Take(quern::CollationVersion("utf8mb4_0900_ai_ci")), text);
}

TEST(CollationVersions, AreAskedForByAnyThread) {
  OnThreads(4, [] {
    for (const char* name : {"utf8mb4_general_ci", "utf8mb4_unicode_520_ci", "ascii_ci"})
      EXPECT_FALSE(Take(quern::CollationVersion(name)).empty());
  });
}

TEST(CollationVersions, UnknownNames) {
  const char* version = "";
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_collation_version, "klingon", &version).substr(0, 37),
            "unknown collation: klingon; accepted:");
  EXPECT_EQ(version, nullptr);
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_collation_version, nullptr, &version),
            "null argument: name; accepted: a pointer");
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_collation_version, "binary", nullptr),
            "null argument: version; accepted: a pointer");
}

// ---- the format number ----

// Metadata of an Arrow schema, with a pair of somebody else's first.
std::string Metadata(const std::string& format) {
  std::string bytes;
  const auto add = [&](int32_t number) { bytes.append(reinterpret_cast<const char*>(&number), sizeof number); };
  const auto add_text = [&](const std::string& text) {
    add(static_cast<int32_t>(text.size()));
    bytes += text;
  };
  add(2);
  for (const char* text : {"pandas", "{}", "quern.format"}) add_text(text);
  add_text(format);
  return bytes;
}

// The format in a schema's metadata, which has nothing else; empty without metadata. Releases the schema.
std::string FormatOf(ArrowSchema* schema) {
  std::string format;
  if (schema->metadata != nullptr) {
    int32_t numbers[2], length = 0;
    std::memcpy(numbers, schema->metadata, sizeof numbers);
    EXPECT_EQ(numbers[0], 1);
    EXPECT_EQ(std::string(schema->metadata + 8, static_cast<size_t>(numbers[1])), "quern.format");
    const char* const value = schema->metadata + 8 + numbers[1];
    std::memcpy(&length, value, sizeof length);
    format.assign(value + 4, static_cast<size_t>(length));
  }
  schema->release(schema);
  return format;
}

constexpr int32_t kFirst[] = {0}, kSecond[] = {1};
const char* const kGroups = "aggregate keys=i64 aggs=sum(i64)";
const char* const kRun = "sort keys=i64:out payload=i64";
const std::string kNumber = "1";
const std::string kOther = " of another format: 7; accepted: 1, the format of this library";

TEST(FormatNumbers, ComeWithTheSchemasOfStatesAndRuns) {
  EXPECT_EQ(std::to_string(quern::FormatNumber()), kNumber);
  const TestSchema rows({{"key", "l"}, {"value", "l"}});
  ArrowSchema schema;
  quern::Aggregate groups = New<quern::Aggregate>(kGroups, Engine::kGeneric);
  Done(groups.BindArrow(QUERN_PORT_ROWS, {&rows.schema, kFirst, kSecond}));
  Done(groups.ResultSchema(QUERN_PORT_STATES, &schema));
  EXPECT_EQ(FormatOf(&schema), kNumber);
  Done(groups.ResultSchema(QUERN_PORT_ROWS, &schema));
  EXPECT_EQ(FormatOf(&schema), "") << "results mean the same to everybody";
  const quern::Kernel kernel = KernelOf(kRun, Engine::kGeneric);
  quern::Job sort = Take(quern::Sort::Create(kernel)), merge = Take(quern::Merge::Create(kernel, 2));
  for (quern::Job* job : {&sort, &merge}) {
    Done(job->BindArrow(QUERN_PORT_ROWS, {&rows.schema, kFirst, kSecond}));
    Done(job->ResultSchema(QUERN_PORT_ROWS, &schema));
    EXPECT_EQ(FormatOf(&schema), kNumber);
  }
}

TEST(FormatNumbers, OfStatesAreChecked) {
  quern::Aggregate groups = New<quern::Aggregate>(kGroups, Engine::kGeneric);
  TestSchema states({{"key", "l"}, {"sum(i64)", "z"}}), few({{"key", "l"}}), typed({{"key", "l"}, {"sum(i64)", "l"}});
  const std::string same = Metadata(kNumber), other = Metadata("7"), odd = Metadata("1x");
  Done(groups.BindArrow(QUERN_PORT_STATES, {&states.schema, {}, {}}));
  states.schema.metadata = same.c_str();
  Done(groups.BindArrow(QUERN_PORT_STATES, {&states.schema, {}, {}}));  // each schema that comes
  states.schema.metadata = other.c_str();
  const quern::Status refused = groups.BindArrow(QUERN_PORT_STATES, {&states.schema, {}, {}});
  EXPECT_EQ(refused.text(), "states" + kOther);
  EXPECT_EQ(refused.code(), QUERN_INVALID_ARGUMENT);
  states.schema.metadata = odd.c_str();
  EXPECT_EQ(groups.BindArrow(QUERN_PORT_STATES, {&states.schema, {}, {}}).text(),
            "states of another format: 1x; accepted: 1, the format of this library");
  EXPECT_EQ(groups.BindArrow(QUERN_PORT_STATES, {&few.schema, {}, {}}).text(),
            "wrong number of columns of states: 1; accepted: 2");
  EXPECT_NE(groups.BindArrow(QUERN_PORT_STATES, {&typed.schema, {}, {}}).text(), "");
  EXPECT_EQ(groups.States(7).status().text(), "states" + kOther);
  Done(groups.States(quern::FormatNumber()).status());
}

TEST(FormatNumbers, OfRunsAreChecked) {
  quern::Merge merge = Take(quern::Merge::Create(KernelOf(kRun, Engine::kGeneric), 2));
  TestSchema rows({{"key", "l"}, {"value", "l"}});
  const std::string other = Metadata("7");
  rows.schema.metadata = other.c_str();
  EXPECT_EQ(merge.BindArrow(QUERN_PORT_ROWS, {&rows.schema, kFirst, kSecond}).text(), "input" + kOther);
  EXPECT_EQ(merge.RunInput(1, 7).status().text(), "input" + kOther);
  Done(merge.RunInput(1, quern::FormatNumber()).status());
  quern::Sort sort = New<quern::Sort>(kRun, Engine::kGeneric);
  Done(sort.BindArrow(QUERN_PORT_ROWS, {&rows.schema, kFirst, kSecond}));  // rows in any order
}

// Another order of these needs another format number: CONTRIBUTING.md.
TEST(FormatNumbers, StandForTheOrderOfRuns) {
  ASSERT_EQ(quern::FormatNumber(), 1u);
  const double inf = INFINITY;
  const std::vector<double> values = {NAN, 1, -0.0, inf, 0.0, -inf, -NAN, -1, 7};
  const std::vector<uint8_t> valid = Bitmap({true, true, true, true, true, true, true, true, false});
  const std::vector<int64_t> numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  const StringVector<int32_t> strings({"a", "b", "a ", "a\t", "", std::string(1, '\0'), "A", "\xc3\xa9", "a\xff"});
  const Table doubles = {{WithValidity(ColumnOf(values), valid)}, {ColumnOf(numbers)}, 9};
  const Table texts = {{WithValidity(strings.column(), valid)}, {ColumnOf(numbers)}, 9};
  const auto order = [](const std::string& key, const Table& table) {
    quern::Sort sort = Sorted("sort keys=" + key + " payload=i64 stable", {table});
    std::string all;
    for (const std::string& line : InOrder(sort.Sorted(), "l")) all += line;
    return all;
  };
  EXPECT_EQ(order("f64:nullable", doubles), "572413068");
  EXPECT_EQ(order("f64:nullable:desc", doubles), "063124758");
  EXPECT_EQ(order("utf8:nullable", texts), "456032178");
  EXPECT_EQ(order("utf8(utf8mb4_bin):nullable", texts), "546302178");
  EXPECT_EQ(order("utf8(tidb.utf8mb4_bin):nullable", texts), "456023178");
}

}  // namespace
}  // namespace quern_test
