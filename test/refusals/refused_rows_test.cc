// SPDX-License-Identifier: Apache-2.0
// After an append that was refused memory, the job's whole result is right: where the host repeats the batch, that of
// all batches; where it gives the batch up, that of the others. A batch of which a part is in the job cannot be given
// up: the job then asks for it, and gets it.
//
//     requests of batch 2: 1 .. 37      37 jobs, of which each is refused another one, and repeats batch 2
//                                       37 more, which go on with batch 3
//
// The batches of a job have different lengths, so that none is taken for another one.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "test/hosts/jobs.h"
#include "test/refusals/refusing_allocator.h"

namespace quern_test {
namespace {

struct Case {
  const char* name;
  const char* spec;
  const char* keys;  // a letter for each column, as in TableOf
  const char* payload;
  const char* results;  // as in ValueText
  std::vector<uint64_t> batch_rows = {200, 199, 201};
  uint64_t most_refusals = UINT64_MAX;  // of the requests of a batch; the first batches of a long job have none
  size_t first_batch = 0;               // whose requests are refused
};

std::ostream& operator<<(std::ostream& out, const Case& given) { return out << given.name; }

// ---- batches --------------------------------------------------------------------------------------------------------

// Words of up to 7 bytes, of which the first rows have 4, and the rows from 400 on 8.
std::string ShortWord(uint64_t row) {
  static const char* const kWords[] = {"\u00e4b", "\u00f6x",       "\u00fcq", "\u00df",
                                       "\u20ac",  "\u00e9t\u00e9", "\u00f1",  "\u00f8y"};
  return kWords[row % (row < 200 ? 4 : row < 400 ? 6 : 8)];
}

// Few words at first, then another one in each row.
std::string GrowingWord(uint64_t row) {
  const uint64_t number = row < 66000 ? row % 500 : row * 48271 % 1000003;
  return "\u00e4" + std::to_string(1000000 + number);
}

std::string LongText(uint64_t row) {
  return "a text of more than twelve bytes, \u00e9 " + std::to_string(row * 13 % 150);
}

// The columns of one batch.
struct Columns {
  std::vector<int64_t> numbers;
  std::vector<double> doubles;
  std::vector<int32_t> indices;
  std::vector<uint8_t> validity;
  StringVector<int32_t> words{{}}, few{{}}, growing{{}}, texts{{}};
  quern_column dictionary = {};

  Columns(uint64_t first, uint64_t num_rows) {
    std::vector<std::string> strings[4];
    std::vector<bool> valid;
    for (uint64_t row = first; row < first + num_rows; ++row) {
      numbers.push_back(static_cast<int64_t>(row * 7 % 90));
      doubles.push_back(row % 100 == 99 ? -0.0 : static_cast<double>(row * 11 % 400));
      indices.push_back(static_cast<int32_t>(row % 8));
      valid.push_back(row % 5 != 3);
      strings[0].push_back(ShortWord(row));
      strings[1].push_back({static_cast<char>('a' + row % 7), static_cast<char>('a' + row % 5), 'x'});
      strings[2].push_back(GrowingWord(row));
      strings[3].push_back(LongText(row));
    }
    validity = Bitmap(valid);
    words = StringVector<int32_t>(strings[0]);
    few = StringVector<int32_t>(strings[1]);
    growing = StringVector<int32_t>(strings[2]);
    texts = StringVector<int32_t>(strings[3]);
    dictionary = words.column();
  }
  // n: numbers; f: doubles; w: short words; x: words of three letters; g: growing words; t: long texts; d: a dictionary
  // of short words; W, T: w and t with nulls; r: row ids, which have no column.
  quern_column ColumnOf(char kind) const {
    switch (kind) {
      case 'n': return quern_test::ColumnOf(numbers);
      case 'f': return quern_test::ColumnOf(doubles);
      case 'w': return words.column();
      case 'x': return few.column();
      case 'g': return growing.column();
      case 't': return texts.column();
      case 'd': return DictionaryColumn(quern_test::ColumnOf(indices), dictionary);
      case 'W': return WithValidity(words.column(), validity);
      case 'T': return WithValidity(texts.column(), validity);
    }
    return {};
  }
};

// All batches of a case.
struct Batches {
  explicit Batches(const Case& given) {
    uint64_t first = 0;
    for (const uint64_t num_rows : given.batch_rows) {
      const Columns& columns = all.emplace_back(first, num_rows);
      Table& table = tables.emplace_back();
      for (const char* kind = given.keys; *kind != 0; ++kind) table.keys.push_back(columns.ColumnOf(*kind));
      for (const char* kind = given.payload; *kind != 0; ++kind) table.payload.push_back(columns.ColumnOf(*kind));
      table.num_rows = num_rows;
      table.first_row_id = std::exchange(first, first + num_rows);
    }
  }
  std::deque<Columns> all;
  std::vector<Table> tables;
};

// The columns of a result, which has no nulls, one after the other.
void AddBytes(const quern_result& result, std::string_view kinds, std::string* bytes) {
  for (size_t i = 0; i < kinds.size(); ++i) {
    const auto* values = static_cast<const char*>(result.columns[i].values);
    if (kinds[i] != 's') {
      bytes->append(values, result.num_rows * 8);
      continue;
    }
    const auto* offsets = static_cast<const int32_t*>(result.columns[i].offsets);
    bytes->append(reinterpret_cast<const char*>(offsets), (result.num_rows + 1) * sizeof(int32_t));
    bytes->append(values, static_cast<size_t>(offsets[result.num_rows]));
  }
}

// ---- jobs -----------------------------------------------------------------------------------------------------------

enum class After : uint8_t { kRepeats, kGivesUp };

struct Refusal {
  size_t batch = SIZE_MAX;  // one of whose requests is refused
  uint64_t request = 0;     // which one; 0: none
  After after = After::kRepeats;
};

struct Outcome {
  std::string bytes;                   // of the result of a sort, in its order
  Lines rows;                          // of an aggregation
  std::vector<uint64_t> num_requests;  // by batch
  bool was_refused = false;
  std::optional<size_t> given_up;
};

class RefusedRows : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    batches_.emplace(GetParam());
    kernel_.emplace(KernelOf(GetParam().spec, Engine::kGeneric));
  }

  Outcome RunJob(const Refusal& refusal) {
    Outcome outcome;
    quern::Job job = Take(quern::Job::Create(*kernel_));
    quern::Input input = Take(job.NewInput(QUERN_PORT_ROWS));
    quern_error error = {};
    for (size_t b = 0; b < batches_->tables.size(); ++b) {
      const quern_batch batch = batches_->tables[b].batch();
      StartRefusing(b == refusal.batch ? refusal.request : 0, Refusing::kOnce);
      quern_status status = quern_input_append(input.handle(), &batch, &error);
      outcome.num_requests.push_back(StopRefusing());
      if (status == QUERN_FAILED_PRECONDITION && outcome.given_up) {
        AppendGivenUp(&input, &outcome);
        status = quern_input_append(input.handle(), &batch, &error);
      }
      if (status == QUERN_RESOURCE_EXHAUSTED) {
        outcome.was_refused = true;
        outcome.given_up = b;
        if (refusal.after == After::kRepeats) AppendGivenUp(&input, &outcome);
        status = QUERN_OK;
      }
      EXPECT_EQ(status, QUERN_OK) << error.text;
    }
    if (quern_input_finish(input.handle(), nullptr) != QUERN_OK) {
      if (outcome.given_up) AppendGivenUp(&input, &outcome);
      Done(input.Finish());
    }
    Done(job.Finalise());
    ReadRows(&job, &outcome);
    return outcome;
  }

  // The result of all batches but one.
  const Outcome& Expected(std::optional<size_t> given_up) {
    const auto [found, is_new] = expected_.try_emplace(given_up);
    if (!is_new) return found->second;
    std::optional<Batches> all = std::move(batches_);
    batches_.emplace(GetParam());
    if (given_up) batches_->tables.erase(batches_->tables.begin() + static_cast<ptrdiff_t>(*given_up));
    found->second = RunJob({});
    batches_ = std::move(all);
    return found->second;
  }

  void RefuseEach(After after);

 private:
  void AppendGivenUp(quern::Input* input, Outcome* outcome) const {
    Done(input->Append(batches_->tables[*outcome->given_up].batch()));
    outcome->given_up.reset();
  }

  static void ReadRows(quern::Job* job, Outcome* outcome) {
    quern::Output output = Take(job->NewOutput(QUERN_PORT_ROWS));
    if (!std::string_view(GetParam().spec).starts_with("sort")) {
      outcome->rows = RowsOf(&output, GetParam().results);
      return;
    }
    for (const quern_result* rows = Take(output.Next());; rows = Take(output.Next())) {
      AddBytes(*rows, GetParam().results, &outcome->bytes);
      if (rows->state == QUERN_RESULT_DONE) return;
    }
  }

  std::optional<Batches> batches_;
  std::optional<quern::Kernel> kernel_;
  std::map<std::optional<size_t>, Outcome> expected_;
};

void RefusedRows::RefuseEach(After after) {
  const std::vector<uint64_t> num_requests = Expected({}).num_requests;
  uint64_t num_refused = 0;
  for (size_t b = GetParam().first_batch; b < num_requests.size(); ++b) {
    const uint64_t step = num_requests[b] / GetParam().most_refusals + 1;
    for (uint64_t n = 1; n <= num_requests[b]; n += step) {
      const Outcome outcome = RunJob({b, n, after});
      const Outcome& expected = Expected(outcome.given_up);
      const bool is_right = outcome.rows == expected.rows && outcome.bytes == expected.bytes;
      EXPECT_TRUE(is_right) << "batch " << b << ", request " << n << " of " << num_requests[b];
      num_refused += outcome.was_refused ? 1 : 0;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(num_refused, 0u);
}

TEST_P(RefusedRows, AreAllThereAfterTheSameBatchAgain) { RefuseEach(After::kRepeats); }
TEST_P(RefusedRows, AreThoseOfTheOtherBatchesAfterAnother) { RefuseEach(After::kGivesUp); }

// Batches as far as the one in which a thread's rows reach 65,536, and some behind it.
const std::vector<uint64_t> kUntilCodes = {65000, 1001, 700};
// As far as the one, of one block, in which the strings become too many for codes: 32,768 of them.
const std::vector<uint64_t> kUntilBytes = {65000, 33200, 1000};

INSTANTIATE_TEST_SUITE_P(
    Jobs, RefusedRows,
    testing::Values(
        Case{"GroupsOfWords", "aggregate keys=utf8 aggs=count_star", "w", "", "sl"},
        Case{"GroupsOfCollatedWords", "aggregate keys=utf8(icu:de-u-co-phonebk) aggs=count_star,sum(i64)", "w", "n",
             "sll"},
        Case{"GroupsOfFoldedWords", "aggregate keys=utf8(utf8mb4_0900_ai_ci):nullable aggs=count_star", "W", "", "sl"},
        Case{"GroupsOfNullableTexts",
             "aggregate keys=utf8(icu:de-u-co-phonebk):nullable aggs=count_star,count_distinct(utf8)", "T", "w", "sll"},
        Case{"GroupsOfNumbers", "aggregate keys=i64 aggs=count_star,sum(i64)", "n", "n", "lll"},
        Case{"GroupsOfTexts",
             "aggregate keys=utf8 aggs=count_distinct(utf8),string_agg(utf8,x'2c'),median(f64),min(utf8)", "w", "ttft",
             "slsds"},
        Case{"GroupsOfDictionaries", "aggregate keys=dictionary(i32,utf8),i64 aggs=avg(f64)", "dn", "f", "sld"},
        Case{"OneGroup", "aggregate aggs=count_star,count_distinct(i64),max(utf8)", "", "nt", "lls"},
        Case{"SortOfNumbers", "sort keys=i64:out payload=f64,utf8 stable", "n", "ft", "lds"},
        Case{"SortOfDoubles", "sort keys=f64:out,i64:out", "fn", "", "dl"},
        Case{"SortOfTexts", "sort keys=utf8:out,f64:desc payload=utf8 stable window=row_number", "tf", "t", "ssl"},
        Case{"SortOfWords", "sort keys=utf8(icu:de-u-co-phonebk):out payload=rowid stable", "w", "r", "sl"},
        Case{"FirstRows", "sort keys=utf8:desc:out payload=i64 limit=20 stable", "t", "n", "sl", {900, 700, 650}},
        Case{"SortOfCodes", "sort keys=utf8:out payload=rowid stable", "x", "r", "sl", kUntilCodes, 40, 1},
        Case{"SortOfTwoCodes", "sort keys=utf8:out,utf8:desc:out payload=rowid stable", "xw", "r", "ssl", kUntilCodes,
             40, 1},
        Case{"SortOfManyWords", "sort keys=utf8:out payload=rowid stable", "g", "r", "sl", kUntilBytes, 20, 2},
        Case{"SortOfManyCollatedWords", "sort keys=utf8(icu:de-u-co-phonebk):out payload=rowid stable", "g", "r", "sl",
             kUntilBytes, 5, 2}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace quern_test
