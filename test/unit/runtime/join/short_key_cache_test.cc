// SPDX-License-Identifier: Apache-2.0
// Joins by one short key whose probers have seen enough rows to cache the table's keys: every kind, storage and sort of
// strings, against the definition of a join. A prober that caches has taken memory from the join's budget.
#include "runtime/join/tables/short_key_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ir-templates/generic/generic_join.h"
#include "runtime/base/thresholds.h"
#include "runtime/join/hash_join.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/spec.h"

namespace quern {
namespace {

using Strings = std::vector<std::string>;
using Rows = std::vector<std::pair<int64_t, int64_t>>;  // of the probe side, of the build side; -1: null

// A column of strings in any storage.
class Column {
 public:
  Column(const Strings& strings, Storage storage) {
    for (const std::string& s : strings) bytes_ += s;
    bytes_ += std::string(4, '\x7f');  // what follows the last string is not zero
    column_ = {};
    uint64_t at = 0;
    for (const std::string& s : strings) {
      offsets_.push_back(static_cast<int32_t>(at));
      large_offsets_.push_back(static_cast<int64_t>(at));
      View view = {static_cast<uint32_t>(s.size()), {}};
      std::memcpy(view.bytes, s.data(), std::min<size_t>(s.size(), s.size() <= 12 ? 12 : 4));
      const auto offset = static_cast<uint32_t>(at);
      if (s.size() > 12) std::memcpy(view.bytes + 8, &offset, sizeof(offset));
      views_.push_back(view);
      at += s.size();
    }
    offsets_.push_back(static_cast<int32_t>(at));
    large_offsets_.push_back(static_cast<int64_t>(at));
    buffer_ = reinterpret_cast<const uint8_t*>(bytes_.data());
    column_.values = bytes_.data();
    if (storage == kVar32) column_.offsets = offsets_.data();
    if (storage == kVar64) column_.offsets = large_offsets_.data();
    if (storage == kView) {
      column_.values = views_.data();
      column_.buffers = &buffer_;
    }
    for (size_t i = 0; i < strings.size(); ++i) rows_.push_back(static_cast<int64_t>(i));
  }
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;

  BatchView Batch() const {
    BatchView batch;
    batch.keys = {column_};
    QuernColumn rows = {};
    rows.values = rows_.data();
    batch.payload = {rows};
    batch.num_rows = rows_.size();
    return batch;
  }

 private:
  struct View {
    uint32_t length;
    uint8_t bytes[12];
  };
  std::string bytes_;
  std::vector<int32_t> offsets_;
  std::vector<int64_t> large_offsets_, rows_;
  std::vector<View> views_;
  const uint8_t* buffer_ = nullptr;
  QuernColumn column_;
};

// What the pairs of a left join are, in the order of the probe rows.
Rows LeftPairs(const Strings& build, const Strings& probe) {
  std::multimap<std::string, int64_t> rows;
  for (size_t b = 0; b < build.size(); ++b) rows.emplace(build[b], static_cast<int64_t>(b));
  Rows pairs;
  for (size_t p = 0; p < probe.size(); ++p) {
    const auto [begin, end] = rows.equal_range(probe[p]);
    if (begin == end) pairs.emplace_back(p, -1);
    for (auto row = begin; row != end; ++row) pairs.emplace_back(p, row->second);
  }
  return pairs;
}

Rows Expected(const std::string& kind, const Strings& build, const Strings& probe) {
  const Rows left = LeftPairs(build, probe);
  std::vector<bool> is_matched(build.size());
  for (const auto& [p, b] : left)
    if (b >= 0) is_matched[static_cast<size_t>(b)] = true;
  Rows rows;
  int64_t last = -1;
  for (const auto& [p, b] : left) {
    const bool matched = b >= 0;
    if (kind == "left" || kind == "full" || ((kind == "inner" || kind == "right") && matched)) rows.emplace_back(p, b);
    if (((kind == "semi" && matched) || (kind == "anti" && !matched)) && p != last) rows.emplace_back(p, -1);
    last = p;
  }
  const bool wants_matched = kind == "right_semi";
  if (kind == "right" || kind == "full" || kind == "right_anti" || wants_matched)
    for (size_t b = 0; b < build.size(); ++b)
      if (is_matched[b] == wants_matched) rows.emplace_back(-1, static_cast<int64_t>(b));
  return rows;
}

bool HasProbeSide(const std::string& kind) { return kind.rfind("right_", 0) != 0; }
bool HasBuildSide(const std::string& kind) { return kind != "semi" && kind != "anti"; }

int64_t ValueAt(const OutputBatch& out, size_t column, uint64_t row) {
  const QuernOutColumn& c = out.column(column);
  if (c.validity != nullptr && (c.validity[row / 8] >> row % 8 & 1) == 0) return -1;
  return static_cast<const int64_t*>(c.values)[row];
}

void Read(const std::string& kind, JoinProber* prober, OutputBatch* out, Rows* rows) {
  for (bool more = true; more;) {
    const absl::StatusOr<bool> next = prober->Next(out);
    ASSERT_TRUE(next.ok()) << next.status();
    more = *next;
    for (uint64_t r = 0; r < out->num_rows(); ++r) {
      const int64_t first = ValueAt(*out, 0, r);
      if (!HasBuildSide(kind)) rows->emplace_back(first, -1);
      else if (!HasProbeSide(kind)) rows->emplace_back(-1, first);
      else rows->emplace_back(first, ValueAt(*out, 1, r));
    }
  }
}

struct Outcome {
  Rows rows;
  bool caches = false;
};

Outcome Join(const std::string& kind, const std::string& type, Storage storage, const Strings& build,
             const Strings& probe, uint64_t capacity, uint64_t limit_bytes = 0) {
  std::string text = "join." + kind + " keys=" + type;
  if (HasBuildSide(kind)) text += " build=i64";
  if (HasProbeSide(kind)) text += " probe=i64";
  const auto spec = ParseSpecOf<JoinSpec>(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  const auto budget = std::make_shared<MemoryBudget>(limit_bytes);
  const auto join = std::make_shared<HashJoin>(std::make_shared<JoinDescriptor>(*spec), GenericJoinKernel(), nullptr,
                                               budget, JoinOptions());
  const Column build_column(build, storage), probe_column(probe, storage);
  BatchView build_rows = build_column.Batch(), probe_rows = probe_column.Batch();
  if (!HasBuildSide(kind)) build_rows.payload.clear();
  if (!HasProbeSide(kind)) probe_rows.payload.clear();
  EXPECT_TRUE(join->Append(build_rows).ok());
  EXPECT_TRUE(join->Finalise().ok());
  JoinProber prober(join);
  OutputBatch out(JoinOutputTypes(*spec), capacity, nullptr);
  Outcome outcome;
  const uint64_t bytes_before = budget->used_bytes();
  EXPECT_TRUE(prober.SetInput(probe_rows).ok());
  Read(kind, &prober, &out, &outcome.rows);
  outcome.caches = budget->used_bytes() > bytes_before;
  EXPECT_TRUE(prober.SetUnmatched().ok());
  Read(kind, &prober, &out, &outcome.rows);
  return outcome;
}

// num_keys different strings of `least` to `most` bytes, the first ones empty or of zeros where these are allowed.
Strings MakeKeys(uint32_t num_keys, uint32_t least, uint32_t most, std::mt19937_64* random) {
  Strings keys;
  std::map<std::string, int> known;
  for (uint32_t i = 0; keys.size() < num_keys; ++i) {
    const auto length = static_cast<uint32_t>(least + (*random)() % (most - least + 1));
    std::string key(i < 4 ? std::min(least + i, most) : length, '\0');
    for (char& c : key) c = i < 4 ? '\0' : static_cast<char>('a' + (*random)() % 20);
    if (known.emplace(key, 0).second) keys.push_back(key);
  }
  return keys;
}

struct Shape {
  const char* name;
  uint32_t num_keys, least, most;
  uint32_t times;  // tuples of a key
  uint32_t hit_percent;
};
constexpr Shape kShapes[] = {{"of 16 bytes", 1000, 16, 16, 1, 100},
                             {"of 5 bytes", 700, 5, 5, 1, 70},
                             {"up to 16 bytes", 900, 1, 16, 1, 50},
                             {"up to 40 bytes", 900, 3, 40, 1, 80},
                             {"few of two", 100, 16, 16, 2, 90},
                             {"one", 1, 9, 9, 1, 60},
                             {"many that fill the buckets", 4096, 12, 16, 1, 95}};

struct Sides {
  Strings build, probe;
};
Sides MakeSides(const Shape& shape, bool is_fixed) {
  std::mt19937_64 random(shape.num_keys + shape.most);
  const uint32_t least = is_fixed ? 16 : shape.least, most = is_fixed ? 16 : shape.most;
  const Strings keys = MakeKeys(2 * shape.num_keys, least, most, &random);
  Sides sides;
  for (uint32_t t = 0; t < shape.times; ++t)
    for (uint32_t k = 0; k < shape.num_keys; ++k) sides.build.push_back(keys[k]);
  const uint64_t num_rows = 12 * sides.build.size() + 5000;
  for (uint64_t r = 0; r < num_rows; ++r) {
    const bool hits = random() % 100 < shape.hit_percent;
    sides.probe.push_back(keys[random() % shape.num_keys + (hits ? 0 : shape.num_keys)]);
  }
  return sides;
}

struct KeyType {
  const char* text;
  Storage storage;
};
constexpr KeyType kTypes[] = {
    {"utf8", kVar32}, {"large_utf8", kVar64}, {"utf8_view", kView}, {"fixed_binary(16)", kFixed}, {"binary", kVar32}};

TEST(ShortKeyCache, JoinsOfEveryKindHaveTheirRows) {
  for (const KeyType& type : kTypes) {
    for (const Shape& shape : kShapes) {
      const Sides sides = MakeSides(shape, type.storage == kFixed);
      for (const char* kind : {"inner", "left", "right", "full", "semi", "anti", "right_semi", "right_anti"}) {
        if (type.text != std::string("utf8") && kind != std::string("inner") && kind != std::string("left")) continue;
        SCOPED_TRACE(std::string(kind) + " " + type.text + ", keys " + shape.name);
        Rows expected = Expected(kind, sides.build, sides.probe);
        Outcome outcome = Join(kind, type.text, type.storage, sides.build, sides.probe, shape.most == 16 ? 4096 : 777);
        // Semi and anti joins keep the order of their rows; other results have none.
        if (HasBuildSide(kind)) {
          std::sort(expected.begin(), expected.end());
          std::sort(outcome.rows.begin(), outcome.rows.end());
        }
        EXPECT_EQ(outcome.rows == expected, true) << outcome.rows.size() << " rows of " << expected.size();
        EXPECT_EQ(outcome.caches, kind != std::string("right_semi") && kind != std::string("right_anti"));
      }
    }
  }
}

TEST(ShortKeyCache, AMatchOfEachRowComesInTheOrderOfTheRows) {
  const Sides sides = MakeSides(kShapes[0], false);
  const Rows expected = Expected("inner", sides.build, sides.probe);
  const Outcome outcome = Join("inner", "utf8", kVar32, sides.build, sides.probe, 4096);
  // The first rows went the table's way, whose matches are in no order.
  const size_t num_first = thresholds::kShortKeyRows * sides.build.size() + 1024;
  EXPECT_TRUE(std::equal(outcome.rows.begin() + static_cast<ptrdiff_t>(num_first), outcome.rows.end(),
                         expected.begin() + static_cast<ptrdiff_t>(num_first)));
}

// Strings of every length that begin with a key of two tuples, whose bucket keeps its bytes.
TEST(ShortKeyCache, NoLongStringMeetsAKeyThatItBeginsWith) {
  Sides sides = MakeSides(kShapes[0], false);
  const std::string twice = "sixteen bytes ..";
  sides.build.push_back(twice);
  sides.build.push_back(twice);
  for (size_t r = 0; r < sides.probe.size(); r += 20) sides.probe[r] = twice + std::string(1 + r / 20 % 60, 'x');
  EXPECT_EQ(Join("inner", "utf8", kVar32, sides.build, sides.probe, 4096).rows.size(),
            Expected("inner", sides.build, sides.probe).size());
}

// Strings of 16 bytes that look as shorter ones do with their length behind them.
TEST(ShortKeyCache, NoStringOf16BytesIsTakenForAShorterOne) {
  for (const KeyType& type : kTypes) {
    if (type.storage == kFixed) continue;
    for (const uint32_t built : {1, 2, 3}) {  // bit 0: the short ones, bit 1: those of 16 bytes
      for (const bool is_even : {false, true}) {
        Sides sides = MakeSides(kShapes[0], false);
        std::mt19937_64 random(built);
        for (size_t length = 0; length < 16; ++length) {
          std::string key(length, 'k');
          std::string odd = key + std::string(15 - length, '\0') + static_cast<char>(length);
          if ((built & 1) != 0) sides.build.push_back(key);
          if ((built & 2) != 0) sides.build.push_back(odd);
          for (size_t r = length; r < sides.probe.size(); r += 400)
            sides.probe[r] = is_even || random() % 2 == 0 ? odd : key;
        }
        SCOPED_TRACE(std::string(type.text) + ", " + std::to_string(built));
        Rows expected = Expected("inner", sides.build, sides.probe);
        Outcome outcome = Join("inner", type.text, type.storage, sides.build, sides.probe, 4096);
        std::sort(expected.begin(), expected.end());
        std::sort(outcome.rows.begin(), outcome.rows.end());
        EXPECT_TRUE(outcome.rows == expected) << outcome.rows.size() << " rows of " << expected.size();
        EXPECT_TRUE(outcome.caches);
      }
    }
  }
}

TEST(ShortKeyCache, FewRowsAndOtherKeysHaveNone) {
  Sides sides = MakeSides(kShapes[0], false);
  Strings few(sides.probe.begin(), sides.probe.begin() + 500);
  EXPECT_FALSE(Join("inner", "utf8", kVar32, sides.build, few, 4096).caches);
  EXPECT_FALSE(Join("inner", "utf8(utf8mb4_general_ci)", kVar32, sides.build, sides.probe, 4096).caches);
  // 2,048 buckets of 64 bytes, of which a limit needs 128 times as much.
  EXPECT_TRUE(Join("inner", "utf8", kVar32, sides.build, sides.probe, 4096, 128 << 17).caches);
  EXPECT_FALSE(Join("inner", "utf8", kVar32, sides.build, sides.probe, 4096, (128 << 17) - 1).caches);
  const Sides many = MakeSides({"too many", 5000, 16, 16, 1, 90}, false);
  EXPECT_FALSE(Join("inner", "utf8", kVar32, many.build, many.probe, 4096).caches);
}

}  // namespace
}  // namespace quern
