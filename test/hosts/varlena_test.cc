// SPDX-License-Identifier: Apache-2.0
// PostgreSQL's varlena values: headers at the limits of their forms, blanks of bpchar, slices of large batches, and
// what is refused. (In every operator: columns_test.cc.)
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <string>

#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

// Values at odd addresses, unless their header has four bytes; as a column of pointers.
class Datums {
 public:
  void Add(const std::string& value, bool is_long) { AddRaw(Varlena(value, is_long)); }
  void AddRaw(const std::string& bytes) {
    memory_.push_back("." + bytes);
    pointers_.push_back(memory_.back().data() + 1);
  }
  quern_column column(uint32_t flags = QUERN_COLUMN_VARLENA) const {
    quern_column column = ColumnOf(pointers_);
    column.flags = flags;
    return column;
  }
  uint64_t size() const { return pointers_.size(); }
  std::vector<const char*> pointers_;

 private:
  std::deque<std::string> memory_;
};

Lines SortedBy(const std::string& spec, const quern_column& column, uint64_t num_rows) {
  quern::Sort sort = Sorted(spec, {{{column}, {column}, num_rows}}, Engine::kJit, StringBytes::kCopied);
  return InOrder(sort.Sorted(), "v");
}

TEST(Varlena, HeadersOfOneByteAndOfFour) {
  Datums datums;
  Lines expected;
  for (const size_t length : {0u, 1u, 12u, 13u, 125u, 126u}) {
    for (const bool is_long : {false, true}) {
      const std::string value(length, 'a');
      datums.Add(value, is_long);
      expected.push_back(value);
    }
  }
  for (const size_t length : {127u, 128u, 70000u, 16u << 20}) {  // beyond what a short header can tell
    expected.emplace_back(length, 'a');
    datums.Add(expected.back(), true);
  }
  for (const char* type : {"utf8_view", "binary_view"}) {
    const std::string key = type;
    EXPECT_EQ(SortedBy("sort keys=" + key + " payload=" + key, datums.column(), datums.size()), expected);
  }
}

TEST(Varlena, BlanksAtTheEndAreNoPartOfBpchar) {
  Datums datums;
  for (const char* value : {"b  ", "a", "a   ", "   ", "", "a\t ", "a value of more than twelve bytes  "})
    datums.Add(value, false);
  const auto groups = [&](uint32_t flags) {
    const quern_column column = datums.column(flags);
    quern::Aggregate aggregate =
        Aggregated("aggregate keys=utf8_view aggs=count_star", {{{column}, {}, datums.size()}});
    return RowsOf(aggregate.Groups(), "vl");
  };
  EXPECT_EQ(groups(QUERN_COLUMN_VARLENA | QUERN_COLUMN_TRIMMED),
            (Lines{"a\t|1", "a value of more than twelve bytes|1", "a|2", "b|1", "|2"}));
  EXPECT_EQ(groups(QUERN_COLUMN_VARLENA).size(), 7u);
}

TEST(Varlena, LargeBatchesAreCutIntoSlices) {
  Datums datums;
  for (int i = 0; i < 200; ++i) datums.Add("value number " + std::to_string(i), i % 2 == 0);
  std::vector<const char*> pointers;
  for (size_t i = 0; i < 150000; ++i) pointers.push_back(datums.pointers_[i % 200]);
  quern_column column = ColumnOf(pointers);
  column.flags = QUERN_COLUMN_VARLENA;
  quern::Aggregate aggregate =
      Aggregated("aggregate keys=utf8_view aggs=count_star", {{{column}, {}, pointers.size()}});
  const Lines groups = RowsOf(aggregate.Groups(), "vl");
  EXPECT_EQ(groups.size(), 200u);
  EXPECT_EQ(groups.front(), "value number 0|750");
}

// ---- refusals ----

std::string Refusal(const quern_column& column, uint64_t num_rows, const std::string& type = "utf8_view") {
  quern::Aggregate aggregate = New<quern::Aggregate>("aggregate keys=" + type + " aggs=count_star", Engine::kGeneric);
  quern::Input rows = Take(aggregate.Rows());
  const Table table = {{column}, {}, num_rows};
  const quern::Status status = rows.Append(table.batch());
  EXPECT_EQ(status.code(), QUERN_INVALID_ARGUMENT);
  Done(rows.Finish());
  Done(aggregate.Finalise());
  EXPECT_EQ(RowsOf(aggregate.Groups(), "vl"), Lines()) << "the batch was refused as a whole";
  return status.text();
}

TEST(Varlena, ThatMustBeUnpackedIsRefused) {
  const auto refusal = [](const std::string& raw) {
    Datums datums;
    datums.Add("good", false);
    datums.AddRaw(raw);
    return Refusal(datums.column(), 2);
  };
  const std::string where =
      ": input key 0 (utf8_view): row 1; accepted: values in place, as pg_detoast_datum_packed "
      "gives them";
  EXPECT_EQ(refusal(std::string("\x01\x12", 2) + std::string(16, 'p')), "varlena that is stored elsewhere" + where);
  EXPECT_EQ(refusal(std::string("\x52\0\0\0", 4) + std::string(16, 'c')), "varlena that is compressed" + where);
  EXPECT_EQ(refusal(std::string("\x0c\0\0\0", 4)), "varlena that is shorter than its header" + where);
  Datums datums;
  datums.Add("good", false);
  datums.pointers_.push_back(nullptr);
  EXPECT_EQ(Refusal(datums.column(), 2), "varlena without an address" + where);
}

TEST(Varlena, FlagsThatDoNotFit) {
  Datums datums;
  datums.Add("good", false);
  const std::string column = ": input key 0 (utf8_view): ", text = ": input key 0 (utf8): ";
  EXPECT_EQ(Refusal(datums.column(), 1, "utf8"),
            "column with flags of another type" + text + "8; accepted: QUERN_COLUMN_VARLENA (8) for views");
  EXPECT_EQ(Refusal(datums.column(QUERN_COLUMN_VARLENA | QUERN_COLUMN_POINTERS), 1),
            "column with flags that exclude each other" + column +
                "10; accepted: QUERN_COLUMN_POINTERS (2), or QUERN_COLUMN_VARLENA (8)");
  EXPECT_EQ(Refusal(datums.column(QUERN_COLUMN_TRIMMED), 1),
            "column with QUERN_COLUMN_TRIMMED alone" + column + "16; accepted: together with QUERN_COLUMN_VARLENA (8)");
  EXPECT_EQ(Refusal(datums.column(32), 1), "column with unknown flags" + column + "32; accepted: 0 to 31");
}

}  // namespace
}  // namespace quern_test
