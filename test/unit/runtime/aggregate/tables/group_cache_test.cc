// SPDX-License-Identifier: Apache-2.0
// Keys whose bytes fit one word together: a cache of their groups saves work but never changes the group of a row.
#include "runtime/aggregate/tables/group_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/aggregate/tables/directory_groups.h"
#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::ColumnPtr;
using test::StringColumn;

struct Table {
  GroupContext context;
  DirectoryGroups groups;

  explicit Table(const std::string& spec) : context(test::ContextOf(spec)), groups(context, 0) {}

  std::vector<uint8_t*> Find(const std::vector<ColumnPtr>& keys, uint32_t n) {
    return test::FindGroups(&groups, keys, n);
  }
};

// Checks the groups of the rows of several batches: two rows have the same group if and only if they are equal.
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

// Batches of strings of up to that many bytes, with few distinct values.
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
  ExpectGroups(&table, FewTexts({1, 7, 2, 8, 1, 9, 40, 1, 7, 1, 300, 255, 256, 257, 9, 10, 11, 2, 1}),
               [](std::string s) { return s; });
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
      const std::vector<uint8_t*> tuples =
          table.Find({column, test::NumberColumn(numbers), StringColumn(storage, second)}, 500);
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

// The group cache alone: its groups for rows of one or two string keys, which every other way must confirm.
class ShortKeyRows : public testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  static bool HasViews() { return std::get<1>(GetParam()); }
  ShortKeyRows()
      : descriptor_(test::ShapeOf(HasViews() ? "aggregate keys=utf8_view,utf8_view aggs=count_star"
                                             : "aggregate keys=utf8,large_utf8 aggs=count_star")),
        group_cache_(*descriptor_->group()) {
    if (!std::get<0>(GetParam())) group_cache_.UseNoVectors();
  }

  // Nothing is assumed of a view's bytes behind its text.
  void FillPadding(const QuernColumn& column, const std::vector<std::string>& texts) {
    auto* view = const_cast<uint8_t*>(static_cast<const uint8_t*>(column.values));
    for (const std::string& text : texts) {
      for (size_t at = 4 + text.size(); at < 16 && text.size() <= 12; ++at) view[at] = static_cast<uint8_t>(random_());
      view += 16;
    }
  }

  // rows: rows of the columns; empty: all from `first` on.
  void ExpectGroups(const std::vector<std::string>& a, const std::vector<std::string>& b,
                    const std::vector<uint32_t>& picked, uint32_t first, bool looks = true) {
    const ColumnPtr columns[] = {StringColumn(HasViews() ? kView : kVar32, a),
                                 StringColumn(HasViews() ? kView : kVar64, b)};
    if (HasViews()) FillPadding(columns[0]->column, a), FillPadding(columns[1]->column, b);
    const QuernColumn keys[] = {columns[0]->column, columns[1]->column};
    const auto n = static_cast<uint32_t>(picked.empty() ? a.size() - first : picked.size());
    std::vector<uint8_t*> tuples(n), found;
    std::vector<uint32_t> others(n);
    uint32_t num_others = 0;
    ASSERT_EQ(group_cache_.Look({keys, first, picked.empty() ? nullptr : picked.data(), n}, tuples.data(),
                                others.data(), &num_others),
              looks);
    if (!looks) return;
    const auto group_of = [&](uint32_t i) {
      const uint32_t row = picked.empty() ? first + i : picked[i];
      return memory_ + groups_.emplace(std::pair(a[row], b[row]), groups_.size()).first->second;
    };
    for (uint32_t o = 0; o < num_others; ++o) found.push_back(group_of(others[o]));
    for (uint32_t o = 0; o < num_others; ++o) tuples[others[o]] = found[o];
    for (uint32_t i = 0; i < n; ++i) ASSERT_EQ(tuples[i], group_of(i)) << i;
    num_others_ = num_others;
    group_cache_.Learn(others.data(), num_others, found.data());
  }

  std::shared_ptr<AggregateDescriptor> descriptor_;
  GroupCache group_cache_;
  std::map<std::pair<std::string, std::string>, size_t> groups_;
  uint8_t memory_[4096];
  uint32_t num_others_ = 0;
  std::mt19937_64 random_ = test::PrintedRandom();

  // Strings of `letters` letters, each one of `different`; mixed lengths up to that.
  std::vector<std::string> Texts(uint32_t n, uint32_t letters, uint32_t different, bool is_mixed = false) {
    std::vector<std::string> texts(n);
    for (std::string& text : texts) {
      text.assign(is_mixed ? random_() % (letters + 1) : letters, 'x');
      for (char& c : text) c = static_cast<char>('a' + random_() % different);
    }
    return texts;
  }
};

INSTANTIATE_TEST_SUITE_P(WithVectorsAndViews, ShortKeyRows, testing::Combine(testing::Bool(), testing::Bool()));

TEST_P(ShortKeyRows, OfOneLengthAndOfSeveral) {
  for (const uint32_t n : {513u, 7u, 64u, 65u, 1u, 512u, 1000u}) {
    ExpectGroups(Texts(n, 1, 3), Texts(n, 1, 2), {}, 0);
    ExpectGroups(Texts(n, 2, 2), Texts(n, 1, 2), {}, n / 3);
    ExpectGroups(Texts(n, 2, 2, true), Texts(n, 2, 2), {}, 0);
  }
  // One longer string among single letters; then one that no word holds.
  std::vector<std::string> a = Texts(700, 1, 2);
  a[650] = "no";
  ExpectGroups(a, Texts(700, 1, 2), {}, 1);
  for (const size_t length : {8, 13}) {
    a[650].assign(length, 'n');
    ExpectGroups(a, Texts(700, 1, 2), {}, 1, /*looks=*/false);
  }
  a[650] = "x";
  ExpectGroups(a, Texts(700, 1, 2), {}, 1);
}

TEST_P(ShortKeyRows, WithGapsAndInAnyOrder) {
  for (const uint32_t every : {2u, 3u, 9u, 60u, 1000u}) {
    for (const uint32_t n : {30u, 300u, 4000u}) {
      std::vector<uint32_t> picked;
      for (uint32_t i = 5; i < n; ++i)
        if (i % every != every / 2) picked.push_back(i);
      const std::vector<std::string> a = Texts(n, 1, 3), b = Texts(n, 1, 2);
      ExpectGroups(a, b, picked, 0);
      ExpectGroups(a, b, picked, 0);
      EXPECT_EQ(num_others_, 0u);
      std::swap(picked.front(), picked.back());
      ExpectGroups(a, b, picked, 0);
      picked[1] = picked[0];
      ExpectGroups(a, b, picked, 0);
    }
  }
}

TEST_P(ShortKeyRows, MoreWordsThanAreComparedWithAtOnce) {
  for (uint32_t different = 2; different < 8; ++different)
    for (int b = 0; b < 20; ++b) ExpectGroups(Texts(100, 1, different), Texts(100, 1, different), {}, 0);
  group_cache_.Forget();
  groups_.clear();
  ExpectGroups(Texts(500, 1, 2), Texts(500, 1, 2), {}, 0);
  EXPECT_EQ(num_others_, 500u);
}

}  // namespace
}  // namespace quern
