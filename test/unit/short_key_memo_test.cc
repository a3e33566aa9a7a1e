// SPDX-License-Identifier: Apache-2.0
// Keys whose bytes fit a word together: a memo of their groups changes which work is done and never which group a row has.
#include "runtime/short_key_memo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/directory_groups.h"
#include "test/unit/group_rows.h"

namespace quern {
namespace {

using test::ColumnPtr;
using test::StringColumn;

struct Table {
  GroupContext context;
  DirectoryGroups groups;

  explicit Table(const std::string& spec) : context(test::ContextOf(spec)), groups(context, 0) {}

  std::vector<uint8_t*> Find(const std::vector<ColumnPtr>& keys, uint32_t n) { return test::FindGroups(&groups, keys, n); }
};

// The groups of rows of several batches, by how their keys count: rows are of one group if and only if they are equal.
void ExpectGroups(Table* table, const std::vector<std::vector<std::string>>& batches,
                  const std::function<std::string(std::string)>& equal) {
  std::map<std::string, uint8_t*> group_of;
  std::set<uint8_t*> groups;
  for (const std::vector<std::string>& keys : batches) {
    const auto n = static_cast<uint32_t>(keys.size());
    const std::vector<uint8_t*> tuples = table->Find({StringColumn(kVar32, keys)}, n);
    for (uint32_t i = 0; i < n; ++i) {
      const auto [at, is_new] = group_of.emplace(equal(keys[i]), tuples[i]);
      EXPECT_EQ(at->second, tuples[i]) << keys[i];
      groups.insert(tuples[i]);
    }
  }
  EXPECT_EQ(groups.size(), group_of.size());
  EXPECT_EQ(table->groups.num_groups(), group_of.size());
}

// Batches of strings of up to so many bytes, few of them different.
std::vector<std::vector<std::string>> FewTexts(const std::vector<size_t>& longest) {
  auto random = test::PrintedRandom();
  std::vector<std::vector<std::string>> batches;
  for (const size_t most : longest) {
    batches.emplace_back();
    for (int i = 0; i < 900; ++i) {
      std::string text(random() % (most + 1), '\0');
      for (char& c : text) c = "aA \0"[random() % 4];
      batches.back().push_back(text);
    }
  }
  return batches;
}

TEST(ShortKeys, AreFoundFromTheSecondBatchOn) {
  Table table("aggregate keys=utf8 aggs=count_star");
  ExpectGroups(&table, FewTexts({1, 1, 2, 2, 0, 2}), [](std::string s) { return s; });
}

TEST(ShortKeys, LongerOnesDivideTheWordAnewAndThenNotAtAll) {
  Table table("aggregate keys=utf8 aggs=count_star");
  ExpectGroups(&table, FewTexts({1, 7, 2, 8, 1, 9, 40, 1, 7, 1, 300, 255, 256, 257, 9, 10, 11, 2, 1}), [](std::string s) { return s; });
}

TEST(ShortKeys, CollationsPutSeveralIntoOneGroup) {
  const auto capitals = [](std::string s) {
    for (char& c : s) c = c == 'a' ? 'A' : c;
    return s;
  };
  Table ascii("aggregate keys=utf8(ascii_ci) aggs=count_star");
  const auto trimmed = [capitals](std::string s) {
    s.resize(s.find_last_not_of(' ') + 1);
    return capitals(s);
  };
  auto batches = FewTexts({3, 2, 3, 1});
  for (auto& batch : batches)
    for (std::string& s : batch) std::replace(s.begin(), s.end(), '\0', 'z');
  ExpectGroups(&ascii, batches, trimmed);
}

TEST(ShortKeys, SeveralKeysOfAllStorages) {
  const std::vector<std::string> texts = {"", "a", "ab", "b", "", "ba"};
  for (const Storage storage : {kVar32, kVar64, kView}) {
    const std::string type = storage == kVar32 ? "utf8" : storage == kVar64 ? "large_utf8" : "utf8_view";
    Table table("aggregate keys=" + type + ":nullable,i16," + type + " aggs=count_star");
    std::map<std::string, uint8_t*> group_of;
    auto random = test::PrintedRandom();
    for (int b = 0; b < 6; ++b) {
      std::vector<std::string> first, second;
      std::vector<int16_t> numbers;
      std::vector<bool> valid;
      for (int i = 0; i < 500; ++i) {
        first.push_back(texts[random() % texts.size()]);
        second.push_back(texts[random() % texts.size()]);
        numbers.push_back(static_cast<int16_t>(random() % 3 - 1));
        valid.push_back(b != 2 || random() % 4 != 0);
      }
      ColumnPtr column = StringColumn(storage, first);
      if (b == 2) column = test::WithNulls(column, valid);
      const std::vector<uint8_t*> tuples = table.Find({column, test::NumberColumn(numbers), StringColumn(storage, second)}, 500);
      for (int i = 0; i < 500; ++i) {
        const std::string key = (valid[i] ? "v" + first[i] : "n") + "|" + std::to_string(numbers[i]) + "|" + second[i];
        EXPECT_EQ(group_of.emplace(key, tuples[i]).first->second, tuples[i]) << key;
      }
    }
    EXPECT_EQ(table.groups.num_groups(), group_of.size());
  }
}

TEST(ShortKeys, AreForgottenWithTheirGroups) {
  Table table("aggregate keys=utf8 aggs=count_star");
  const auto batches = FewTexts({2, 2});
  ExpectGroups(&table, batches, [](std::string s) { return s; });
  table.groups.Release();
  EXPECT_EQ(table.groups.num_groups(), 0u);
  ExpectGroups(&table, batches, [](std::string s) { return s; });
}

}  // namespace
}  // namespace quern
