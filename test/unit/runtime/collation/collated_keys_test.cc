// SPDX-License-Identifier: Apache-2.0
// Joins and aggregations by strings of every collation, over every storage: rows are equal if the equality keys of
// their strings are. The strings are of random kinds; each has variants that differ in case, spaces or a character.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ir-templates/generic/generic_join.h"
#include "runtime/collation/collation.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/runtime/collation/collated_texts.h"
#include "test/unit/runtime/join/number_join.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::ColumnPtr;
using test::DictionaryColumn;
using test::GroupsOf;
using test::Lines;
using test::NumberColumn;
using test::Rows;
using test::StringColumn;
using test::WithNulls;
using Texts = std::vector<std::string>;

// The names in the table, and one of ICU where the library was built with it.
std::vector<std::string> AllNames() {
  std::vector<std::string> names;
  for (const CollationRow& row : AllCollations()) names.emplace_back(row.text);
  if (CollationNamed("icu:und-u-ks-level1").ok()) names.emplace_back("icu:und-u-ks-level1");
  return names;
}

std::string KeyOf(const std::string& text, CollationRule rule) {
  std::string key;
  if ((rule & kWeighsEquality) != 0) AppendEqualityKey(test::BytesOfText(text), rule, &key);
  else key.assign(text, 0, blocks::Trimmed(test::BytesOfText(text), rule).length);
  return key;
}

// n strings, with at most `num_different` distinct byte strings.
Texts SomeTexts(size_t n, size_t num_different, std::mt19937_64* random) {
  Texts different, texts;
  while (different.size() < num_different) {
    different.push_back(test::RandomText(test::kTextKinds[(*random)() % std::size(test::kTextKinds)], random));
    std::string twin = different.back() + std::string((*random)() % 3, ' ');
    for (char& c : twin)
      if (c >= 'a' && c <= 'z' && (*random)() % 2 == 0) c = static_cast<char>(c - 0x20);
    different.push_back(twin);
  }
  for (size_t i = 0; i < n; ++i) texts.push_back(different[(*random)() % different.size()]);
  return texts;
}

struct Form {
  const char* type;  // with % in place of the collation
  Storage storage;
};
constexpr Form kForms[] = {
    {"utf8(%)", kVar32}, {"large_utf8(%)", kVar64}, {"utf8_view(%)", kView}, {"dictionary(u8,utf8(%))", kNoStorage}};

std::string TypeText(const Form& form, const std::string& collation) {
  std::string text = form.type;
  return text.replace(text.find('%'), 1, collation);
}

// A dictionary holds its up to 256 distinct strings in the order of their first rows.
ColumnPtr ColumnOf(const Form& form, const Texts& texts) {
  if (form.storage != kNoStorage) return StringColumn(form.storage, texts);
  Texts values;
  std::vector<uint8_t> indices;
  for (const std::string& text : texts) {
    const auto found = std::find(values.begin(), values.end(), text);
    indices.push_back(static_cast<uint8_t>(found - values.begin()));
    if (found == values.end()) values.push_back(text);
  }
  return DictionaryColumn(indices, StringColumn(kVar32, values));
}

template <class F>
void ForEachName(F&& f) {
  for (const std::string& name : AllNames()) {
    SCOPED_TRACE(name);
    const auto collation = CollationNamed(name);
    ASSERT_TRUE(collation.ok()) << collation.status();
    f(name, RuleOf(*collation));
  }
}

// ---- joins ----

std::shared_ptr<HashJoin> Join(const std::string& spec, uint32_t width_tuning = 1024) {
  const auto parsed = ParseSpecOf<JoinSpec>(spec);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  auto descriptor = std::make_shared<JoinDescriptor>(*parsed);
  descriptor->mutable_tuning()->batch_rows = width_tuning;
  return std::make_shared<HashJoin>(descriptor, GenericJoinKernel(), nullptr, nullptr, JoinOptions());
}

test::Pairs JoinOf(const std::string& spec, const BatchView& build, const BatchView& probe) {
  const auto join = Join(spec);
  EXPECT_EQ(join->Append(build), absl::OkStatus());
  EXPECT_EQ(join->Finalise(), absl::OkStatus());
  return test::Probe(join, probe, 777);
}

ColumnPtr Numbers(size_t n) { return NumberColumn(test::RowNumbers(n)); }

TEST(CollatedKeys, JoinsPairWhatIsEqual) {
  auto random = test::PrintedRandom();
  ForEachName([&](const std::string& name, CollationRule rule) {
    const Texts build = SomeTexts(200, 120, &random), probe = SomeTexts(300, 60, &random);
    Texts mixed = probe;
    for (size_t i = 0; i < mixed.size(); i += 2) mixed[i] = build[random() % build.size()];
    test::Pairs expected;
    for (size_t p = 0; p < mixed.size(); ++p)
      for (size_t b = 0; b < build.size(); ++b)
        if (KeyOf(mixed[p], rule) == KeyOf(build[b], rule)) expected.emplace_back(p, b);
    for (const Form& form : kForms) {
      const std::string spec = "join.inner keys=" + TypeText(form, name) + " build=i64 probe=i64";
      EXPECT_EQ(JoinOf(spec, Rows(build.size(), {ColumnOf(form, build)}, {Numbers(build.size())}),
                       Rows(mixed.size(), {ColumnOf(form, mixed)}, {Numbers(mixed.size())})),
                expected)
          << spec;
    }
  });
}

// The string is one of two keys; the other is a number. Nulls match nulls.
TEST(CollatedKeys, SeveralKeysAndNullsMatch) {
  auto random = test::PrintedRandom();
  ForEachName([&](const std::string& name, CollationRule rule) {
    const Texts texts = SomeTexts(250, 40, &random);
    std::vector<int64_t> numbers;
    std::vector<bool> valid;
    for (size_t i = 0; i < texts.size(); ++i)
      numbers.push_back(static_cast<int64_t>(random() % 2)), valid.push_back(random() % 6 != 0);
    test::Pairs expected;
    for (size_t p = 0; p < texts.size(); ++p) {
      for (size_t b = 0; b < texts.size(); ++b) {
        const bool equal = valid[p] && valid[b] ? KeyOf(texts[p], rule) == KeyOf(texts[b], rule) : valid[p] == valid[b];
        if (equal && numbers[p] == numbers[b]) expected.emplace_back(p, b);
      }
    }
    const BatchView batch = Rows(texts.size(), {NumberColumn(numbers), WithNulls(StringColumn(kVar32, texts), valid)},
                                 {Numbers(texts.size())});
    EXPECT_EQ(JoinOf("join.inner keys=i64,utf8(" + name + "):nullable:nullequal build=i64 probe=i64", batch, batch),
              expected);
  });
}

TEST(CollatedKeys, OtherKindsCountTheSameRows) {
  auto random = test::PrintedRandom();
  ForEachName([&](const std::string& name, CollationRule rule) {
    const Texts build = SomeTexts(150, 60, &random);
    Texts probe = SomeTexts(150, 60, &random);
    for (size_t i = 0; i < probe.size(); i += 2) probe[i] = build[random() % build.size()];
    std::multiset<std::string> build_keys, probe_keys;
    for (const std::string& text : build) build_keys.insert(KeyOf(text, rule));
    for (const std::string& text : probe) probe_keys.insert(KeyOf(text, rule));
    uint64_t matches = 0, probe_hits = 0, build_hits = 0;
    for (const std::string& key : probe_keys) matches += build_keys.count(key), probe_hits += build_keys.contains(key);
    for (const std::string& key : build_keys) build_hits += probe_keys.contains(key);
    const uint64_t probe_rest = probe.size() - probe_hits, build_rest = build.size() - build_hits;
    const std::pair<const char*, uint64_t> kinds[] = {{"left", matches + probe_rest},
                                                      {"right", matches + build_rest},
                                                      {"full", matches + probe_rest + build_rest},
                                                      {"semi", probe_hits},
                                                      {"anti", probe_rest},
                                                      {"right_semi", build_hits},
                                                      {"right_anti", build_rest},
                                                      {"mark", probe.size()}};
    for (const auto& [kind, expected] : kinds) {
      const auto join = Join("join." + std::string(kind) + " keys=utf8(" + name + ")", 100);
      ASSERT_EQ(join->Append(Rows(build.size(), {StringColumn(kVar32, build)})), absl::OkStatus());
      ASSERT_EQ(join->Finalise(), absl::OkStatus());
      OutputBatch out(JoinOutputTypes(join->descriptor().spec()), 64, nullptr);
      JoinProber prober(join);
      uint64_t num_rows = 0;
      const BatchView input = Rows(probe.size(), {StringColumn(kVar32, probe)});
      for (const bool scans : {false, true}) {
        ASSERT_EQ(scans ? prober.SetUnmatched() : prober.SetInput(input), absl::OkStatus());
        for (bool more = true; more; num_rows += out.num_rows()) {
          const auto next = prober.Next(&out);
          ASSERT_TRUE(next.ok()) << next.status();
          more = *next;
        }
      }
      EXPECT_EQ(num_rows, expected) << kind;
    }
  });
}

// ---- aggregations ----

// The first string and the number of rows of each group, by key.
Lines ExpectedGroups(const Texts& texts, CollationRule rule) {
  std::map<std::string, std::pair<std::string, uint64_t>> groups;
  for (const std::string& text : texts) ++groups.try_emplace(KeyOf(text, rule), text, 0).first->second.second;
  Lines lines;
  for (const auto& [key, group] : groups) lines.push_back(group.first + "|" + std::to_string(group.second));
  std::sort(lines.begin(), lines.end());
  return lines;
}

// Batches of 100 rows, each with its own dictionary where there are dictionaries.
std::vector<BatchView> Batches(const Form& form, const Texts& texts) {
  std::vector<BatchView> batches;
  for (size_t begin = 0; begin < texts.size(); begin += 100) {
    const Texts part(texts.begin() + static_cast<int64_t>(begin),
                     texts.begin() + static_cast<int64_t>(std::min(begin + 100, texts.size())));
    batches.push_back(Rows(part.size(), {ColumnOf(form, part)}));
  }
  return batches;
}

TEST(CollatedKeys, AGroupIsWhatIsEqualAndShowsItsFirstString) {
  auto random = test::PrintedRandom();
  ForEachName([&](const std::string& name, CollationRule rule) {
    const Texts texts = SomeTexts(700, 150, &random);
    for (const Form& form : kForms) {
      const std::string spec = "aggregate keys=" + TypeText(form, name) + " aggs=count_star";
      EXPECT_EQ(GroupsOf(spec, Batches(form, texts)), ExpectedGroups(texts, rule)) << spec;
    }
  });
}

// Groups as keys and counts, since each thread-local state has its own first string.
std::map<std::string, std::string> ByKey(const Lines& lines, CollationRule rule) {
  std::map<std::string, std::string> counts;
  for (const std::string& line : lines) {
    const size_t bar = line.rfind('|');
    EXPECT_TRUE(counts.emplace(KeyOf(line.substr(0, bar), rule), line.substr(bar)).second) << line;
  }
  return counts;
}

TEST(CollatedKeys, SidesAreMergedByEquality) {
  auto random = test::PrintedRandom();
  ForEachName([&](const std::string& name, CollationRule rule) {
    const Texts texts = SomeTexts(900, 200, &random);
    const auto expected = ByKey(ExpectedGroups(texts, rule), rule);
    for (const Form& form : kForms) {
      const std::vector<BatchView> batches = Batches(form, texts);
      for (const uint64_t local_groups : {10u, 100000u}) {  // radix-partitioned at once, or merged at the end
        AggregateOptions options;
        options.local_groups = local_groups;
        auto aggregate = test::Aggregation("aggregate keys=" + TypeText(form, name) + " aggs=count_star", options);
        std::vector<std::thread> threads;
        std::atomic<size_t> next{0};
        for (int t = 0; t < 3; ++t) {
          threads.emplace_back([&] {
            Appender appender(aggregate);
            for (size_t b; (b = next.fetch_add(1)) < batches.size();)
              EXPECT_EQ(appender.Append(batches[b]), absl::OkStatus());
            EXPECT_EQ(appender.Finish(), absl::OkStatus());
          });
        }
        for (std::thread& thread : threads) thread.join();
        ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
        EXPECT_EQ(ByKey(GroupsOf(aggregate), rule), expected) << form.type << " " << local_groups;
      }
    }
  });
}

// Share 1 of one process has the same keys in another process, whichever strings represent them there.
TEST(CollatedKeys, SharesGoByEquality) {
  auto random = test::PrintedRandom();
  ForEachName([&](const std::string& name, CollationRule rule) {
    Texts texts = SomeTexts(300, 80, &random);
    for (const Form& form : kForms) {
      std::map<std::string, uint32_t> shares[2];
      for (auto& share_of : shares) {
        auto aggregate = test::Aggregation("aggregate keys=" + TypeText(form, name) + " aggs=count_star");
        for (const BatchView& batch : Batches(form, texts)) ASSERT_EQ(aggregate->Append(batch), absl::OkStatus());
        ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
        for (uint32_t share = 0; share < 3; ++share)
          for (const auto& [key, count] : ByKey(test::ShareOf(aggregate, share, 3, 1000), rule)) share_of[key] = share;
        std::reverse(texts.begin(), texts.end());
      }
      EXPECT_EQ(shares[0], shares[1]) << form.type;
    }
  });
}

}  // namespace
}  // namespace quern
