// SPDX-License-Identifier: Apache-2.0
// Pipelines that end in the host: its function receives each row that passes once, whatever the pieces, and may end it.
#include <gtest/gtest.h>

#include <cstddef>
#include <new>
#include <random>

#include "test/hosts/arrow_arrays.h"
#include "test/hosts/jobs.h"
#include "test/hosts/refusals.h"
#include "test/unit/seed.h"

namespace quern_test {
namespace {

using quern::Pipeline;
using Numbers = std::vector<int64_t>;

// ---- rows as text ----

std::string TextAt(quern_column column, char kind, uint64_t row) {
  if (column.validity != nullptr && !BitAt(column.validity, row + column.bit_offset)) return "null";
  column.validity = nullptr;
  if (kind == 'b') return BitAt(column.values, row + column.bit_offset) ? "true" : "false";
  if (kind != 'D') return ValueText(column, kind, row);
  return StringAt<int32_t>(*column.dictionary, ElementAt<uint32_t>(column.values, row));
}

// What a host has received; kinds as for ValueText, 'D' for a dictionary(u32,utf8).
struct Received {
  std::string kinds;
  Lines lines;
  Numbers ids;
  uint64_t num_calls = 0, num_selections = 0;

  bool operator()(const quern_batch& rows) {
    ++num_calls;
    num_selections += rows.selection != nullptr;
    for (uint64_t i = 0; i < rows.num_rows; ++i) {
      const uint64_t row = rows.selection == nullptr ? i : rows.selection[i];
      std::string line;
      for (size_t c = 0; c < kinds.size(); ++c) line += (c == 0 ? "" : "|") + TextAt(rows.keys[c], kinds[c], row);
      lines.push_back(line);
      ids.push_back(static_cast<int64_t>(rows.first_row_id + row));
    }
    return true;
  }
};

constexpr uint64_t kPieces[] = {1, 7, 100, 0, 65536};

// ---- rows ----

TEST(PipelineHost, ReceivesColumnsOfTheSourceAndOfSteps) {
  std::mt19937_64 random(quern::test::SeedOfTest());
  constexpr uint64_t kNumRows = 6000;
  const std::vector<std::string> words = {"a word", "one of more than twelve bytes", ""};
  Numbers number;
  std::vector<uint32_t> index;
  std::vector<std::string> texts;
  std::vector<bool> valid, truth;
  for (uint64_t i = 0; i < kNumRows; ++i) {
    number.push_back(static_cast<int64_t>(random() % 100));
    index.push_back(static_cast<uint32_t>(random() % 3));
    texts.push_back("text " + std::string(random() % 20, 'x'));
    valid.push_back(random() % 4 != 0);
    truth.push_back(random() % 2 != 0);
  }
  const std::vector<uint8_t> validity = Bitmap(valid, 3), truths = Bitmap(truth, 5);
  const StringVector<int32_t> strings(texts), values(words);
  quern_column bools = ColumnOf(truths);
  bools.bit_offset = 5;
  const quern_column of_words = values.column();
  const Table table = {{WithValidity(ColumnOf(number), validity, 3), strings.column(),
                        DictionaryColumn(ColumnOf(index), of_words), bools},
                       {},
                       kNumRows,
                       {},
                       1000};
  for (const int64_t least : {0, 5, 90}) {
    Lines expected;
    Numbers ids;
    for (uint64_t i = 0; i < kNumRows; ++i) {
      if (!valid[i] || number[i] < least) continue;
      expected.push_back(std::to_string(number[i] + 1) + "|" + texts[i] + "|" + words[index[i]] + "|" +
                         (truth[i] ? "true" : "false") + "|" + std::to_string(number[i]));
      ids.push_back(static_cast<int64_t>(1000 + i));
    }
    const auto filter = New<quern::Job>("filter i64:nullable >= " + std::to_string(least));
    const auto map = New<quern::Job>("map in=i64:nullable out=add($0,1:i64)");
    for (const uint64_t piece_rows : kPieces) {
      Received host{"lsDbl", {}, {}};
      quern::Input input = Take(Pipeline("i64:nullable,utf8,dictionary(u32,utf8),bool")
                                    .Through(filter, {0})
                                    .Through(map, {0})
                                    .IntoHost(&host, {4, 1, 2, 3, 0}, piece_rows));
      Done(input.Append(table.batch()));
      Done(input.Finish());
      EXPECT_EQ(host.lines, expected) << piece_rows;
      EXPECT_EQ(host.ids, ids) << piece_rows;
      EXPECT_EQ(host.num_selections != 0, piece_rows != 1) << "selected rows are not copied";
    }
  }
}

// Rows of a probe have no selection; strings are those of the table, which is gone but for the pipeline.
TEST(PipelineHost, ReceivesRowsOfAProbe) {
  const Numbers keys = {1, 2, 2, 3}, probed = {3, 2, 9, 1};
  const std::vector<std::string> names = {"the first name of the table", "b", "the third name of the table", "d"};
  const StringVector<int32_t> texts(names);
  Received host{"rs", {}, {}};
  std::optional<quern::Input> input;
  {
    const quern::Join join =
        Built("join.left keys=i64 build=utf8 probe=rowid", {{{ColumnOf(keys)}, {texts.column()}, 4}});
    input = Take(Pipeline("i64").Through(join, {0}, {0}).IntoHost(&host, {0, 1}, 2));
  }
  Done(input->Append(Table{{ColumnOf(probed)}, {}, 4, {}, 70}.batch()));
  Done(input->Finish());
  EXPECT_EQ(Ordered(host.lines),
            Ordered({"70|d", "71|b", "71|the third name of the table", "72|null", "73|the first name of the table"}));
  EXPECT_EQ(host.num_selections, 0u);
}

// Row ids go on from one array to the next, past rows that a filter has taken away.
TEST(PipelineHost, CountsRowsOfArrays) {
  const auto filter = New<quern::Job>("filter i64 >= 5");
  Received host{"l", {}, {}};
  quern::Input input = Take(Pipeline("i64").Through(filter, {0}).IntoHost(&host, {0}, 2));
  for (int array = 0; array < 2; ++array) {
    const TestArrayPtr batch = StructArray(5, FixedArray<int64_t>({1, 6, 2, 7, 8}));
    Done(input.AppendArrow(&batch->array));
    EXPECT_EQ(batch->times_released, 1);
  }
  Done(input.Finish());
  EXPECT_EQ(host.lines, (Lines{"6", "7", "8", "6", "7", "8"}));
  EXPECT_EQ(host.ids, (Numbers{1, 3, 4, 6, 8, 9}));
}

// A batch is one of a job's, as it is.
TEST(PipelineHost, AppendsToAJobOfItsOwn) {
  const auto filter = New<quern::Job>("filter i64 < 3");
  auto sums = New<quern::Aggregate>("aggregate keys=i64 aggs=count_star");
  quern::Input rows = Take(sums.Rows());
  const auto append = [&](const quern_batch& batch) { return rows.Append(batch).ok(); };
  OnThreads(1, [&] {
    quern::Input input = Take(Pipeline("i64").Through(filter, {0}).IntoHost(&append, {0}, 10));
    Numbers numbers;
    for (int64_t i = 0; i < 100; ++i) numbers.push_back(i % 5);
    Done(input.Append(Table{{ColumnOf(numbers)}, {}, 100}.batch()));
    Done(input.Finish());
  });
  Done(rows.Finish());
  Done(sums.Finalise());
  EXPECT_EQ(RowsOf(sums.Groups(), "ll"), Ordered({"0|20", "1|20", "2|20"}));
}

TEST(PipelineHost, ThreadsHaveInputsOfTheirOwn) {
  const auto map = New<quern::Job>("map in=i64 out=add($0,1:i64)");
  std::atomic<int64_t> next{0}, sum{0};
  OnThreads(4, [&] {
    const auto add = [&](const quern_batch& rows) {
      for (uint64_t i = 0; i < rows.num_rows; ++i) sum += ElementAt<int64_t>(rows.keys[0].values, i);
      return true;
    };
    quern::Input input = Take(Pipeline("i64").Through(map, {0}).IntoHost(&add, {1}));
    for (int64_t i = next++; i < 40; i = next++) {
      const Numbers numbers(1000, i);
      Done(input.Append(Table{{ColumnOf(numbers)}, {}, 1000}.batch()));
    }
    Done(input.Finish());
  });
  EXPECT_EQ(sum, 1000 * (40 + 39 * 40 / 2));
}

// ---- ends ----

// Memory counts in the job of the last step; rows that the host has are not handed to it again.
TEST(PipelineHost, ReceivesRefusedBatchesOnce) {
  Numbers keys, values, probed;
  for (int64_t i = 0; i < 3000; ++i) {
    keys.push_back(i % 20);
    values.push_back(i);
    probed.push_back(i % 50);
  }
  const quern::Join join =
      Built("join.inner keys=i64 build=i64 probe=i64", {{{ColumnOf(keys)}, {ColumnOf(values)}, 40}});
  Lines expected;
  int64_t num_refused = 0;
  for (int64_t n = -1; n < 400; ++n) {
    OneRefusal memory{-1};
    const auto map = New<quern::Job>("map in=i64,i64 out=add($0,$1)", Engine::kJit, memory.options());
    Received host{"ll", {}, {}};
    quern::Input input =
        Take(Pipeline("i64").Through(join, {0}, {0}).Through(map, {0, 1}).IntoHost(&host, {0, 2}, 700));
    memory.left = n;
    bool refused = !AppendTwice(&input, {{ColumnOf(probed)}, {}, 3000});
    refused |= !AppendTwice(&input, {{ColumnOf(probed)}, {}, 50});
    Done(input.Finish());
    memory.left = -1;
    num_refused += refused;
    if (n == -1) expected = host.lines;
    ASSERT_EQ(host.lines, expected) << n;
    if (!refused && n >= 0) break;
  }
  EXPECT_GT(num_refused, 3);
}

// The strings of a result are refused memory, so that it becomes shorter; then something behind the probe is. The piece
// that comes again becomes the same batches, of which the host has the first ones.
TEST(PipelineHost, ReceivesShorterResultsOnce) {
  constexpr uint64_t kNumRows = 1500;
  const Numbers twice = {1, 1}, numbers = {10, 20}, keys(kNumRows, 1);
  const quern::Join join =
      Built("join.inner keys=i64 build=i64 probe=utf8", {{{ColumnOf(twice)}, {ColumnOf(numbers)}, 2}});
  std::vector<std::string> words;
  for (uint64_t i = 0; i < kNumRows; ++i) words.push_back(std::to_string(i) + std::string(60, '.'));
  const StringVector<int32_t> texts(words);
  const Table source = {{ColumnOf(keys), texts.column()}, {}, kNumRows};
  Lines expected;
  for (const std::string& word : words)
    for (const int64_t number : numbers) expected.push_back(word + "|" + std::to_string(number));
  uint64_t num_shorter = 0;
  bool has_refused = true;
  for (int64_t first = 0; first < 40 && has_refused; ++first) {
    for (int64_t second = first + 1; second < first + 16; ++second) {
      TwoRefusals memory{first, second};
      const auto map = New<quern::Job>("map in=utf8 out=octet_length($0)", Engine::kGeneric, memory.options());
      Received host{"sl", {}, {}};
      quern::Input input =
          Take(Pipeline("i64,utf8").Through(join, {0}, {1}).Through(map, {0}).IntoHost(&host, {0, 1}, 0));
      memory.num_requests = 0;
      quern::Status status = input.Append(source.batch());
      has_refused = !status.ok() || memory.num_requests > first;
      for (int i = 0; i < 2 && !status.ok(); ++i) status = input.Append(source.batch());
      Done(status);
      Done(input.Finish());
      num_shorter += host.num_calls > 1;
      ASSERT_EQ(host.lines, expected) << first << " " << second;
    }
  }
  EXPECT_GT(num_shorter, 1u);
}

TEST(PipelineHost, StopsWithoutAnError) {
  const auto map = New<quern::Job>("map in=i64 out=divide_checked(1:i64,$0)");
  uint64_t num_rows = 0;
  const auto take_25 = [&](const quern_batch& rows) { return (num_rows += rows.num_rows) < 25; };
  quern::Input input = Take(Pipeline("i64").Through(map, {0}).IntoHost(&take_25, {1}, 10));
  Numbers numbers(100, 1);
  numbers[50] = 0;
  Done(input.Append(Table{{ColumnOf(numbers)}, {}, 100}.batch()));
  Done(input.Append(Table{{ColumnOf(numbers)}, {}, 100}.batch()));
  Done(input.Finish());
  EXPECT_EQ(num_rows, 30u);
  EXPECT_EQ(input.Append(Table{{ColumnOf(numbers)}, {}, 100}.batch()).text(),
            "append after finish: the rows were handed over; accepted: a new input");
}

// A row that fails behind rows that the host has: these must not come again.
TEST(PipelineHost, CannotGoOnAfterAFailure) {
  const auto map = New<quern::Job>("map in=i64 out=divide_checked(1:i64,$0)");
  Numbers numbers(100, 1);
  numbers[50] = 0;
  Received host{"l", {}, {}};
  quern::Input input = Take(Pipeline("i64").Through(map, {0}).IntoHost(&host, {1}, 10));
  EXPECT_EQ(input.Append(Table{{ColumnOf(numbers)}, {}, 100}.batch()).code(), QUERN_OUT_OF_RANGE);
  EXPECT_EQ(host.lines.size(), 50u);
  const quern::Status again = input.Append(Table{{ColumnOf(numbers)}, {}, 10}.batch());
  EXPECT_EQ(again.code(), QUERN_FAILED_PRECONDITION);
  EXPECT_EQ(again.text(), "append after a failure: the host has a part of the batch; accepted: a new input");
  EXPECT_EQ(input.Finish().text(), "finish after a failure: the host has a part of the batch; accepted: a new input");
}

TEST(PipelineHost, MayThrow) {
  const auto filter = New<quern::Job>("filter i64 >= 0");
  const Numbers numbers(100, 1);
  uint64_t num_calls = 0;
  const auto throws = [&](const quern_batch& /*rows*/) -> bool {
    ++num_calls;
    throw std::bad_alloc();
  };
  quern::Input input = Take(Pipeline("i64").Through(filter, {0}).IntoHost(&throws, {0}, 10));
  const quern::Status status = input.Append(Table{{ColumnOf(numbers)}, {}, 100}.batch());
  EXPECT_EQ(status.code(), QUERN_ABORTED);
  EXPECT_EQ(status.text(), "function of a pipeline's host failed: an exception; accepted: true or false");
  EXPECT_EQ(input.Append(Table{{ColumnOf(numbers)}, {}, 100}.batch()).code(), QUERN_FAILED_PRECONDITION);
  EXPECT_EQ(num_calls, 1u);
}

// ---- errors ----

std::string CreateError(quern_job* job, const quern_pipeline_options& options) {
  quern_input* input = nullptr;
  return ErrorOf(QUERN_INVALID_ARGUMENT, quern_pipeline_input_create, job, QUERN_PORT_ROWS, &options, &input);
}

TEST(PipelineHost, ErrorsSayWhatIsAccepted) {
  const auto filter = New<quern::Job>("filter i64 < 5");
  const auto sums = New<quern::Aggregate>("aggregate keys=i64 aggs=count_star");
  const uint32_t first[] = {0}, second[] = {1};
  const quern_pipeline_step step = {filter.handle(), first, 1, nullptr, 0, nullptr};
  quern_pipeline_options options = {};
  options.struct_size = sizeof(options);
  options.columns = "i64";
  options.steps = &step;
  options.num_steps = 1;
  options.keys = first;
  options.num_keys = 1;
  EXPECT_EQ(CreateError(nullptr, options), "null argument: job, without on_rows; accepted: a pointer");
  options.on_rows = [](void*, const quern_batch*) { return true; };
  EXPECT_EQ(CreateError(sums.handle(), options), "ends of a pipeline: a job and on_rows; accepted: one of them");
  options.keys = second;
  EXPECT_EQ(CreateError(nullptr, options), "keys of the sink[0]: column 1; accepted: 0 to 0");
  options.num_steps = 0;
  EXPECT_EQ(CreateError(nullptr, options), "num_steps of a pipeline into the host: 0; accepted: 1 or more");

  // A host that knows no on_rows.
  options.struct_size = offsetof(quern_pipeline_options, on_rows);
  EXPECT_EQ(CreateError(nullptr, options), "null argument: job, without on_rows; accepted: a pointer");
  options.keys = first;
  quern_input* input = nullptr;
  EXPECT_EQ(quern_pipeline_input_create(sums.handle(), QUERN_PORT_ROWS, &options, &input, nullptr), QUERN_OK);
  quern_input_destroy(input);
}

// Memory is refused to the second piece, of which more rows pass: the host has the first one.
TEST(PipelineHost, HasAPartOfARefusedBatch) {
  Numbers numbers(200, 50);
  std::fill_n(numbers.begin(), 99, 0);
  const Table table = {{ColumnOf(numbers)}, {}, 200}, other = {{ColumnOf(numbers)}, {}, 150};
  const auto filter = New<quern::Job>("filter i64 > 10");
  bool has_part = false;
  for (int64_t n = 0; n < 50 && !has_part; ++n) {
    OneRefusal memory{n};
    const auto map = New<quern::Job>("map in=i64 out=add($0,1:i64)", Engine::kJit, memory.options());
    Received host{"l", {}, {}};
    quern::Input input = Take(Pipeline("i64").Through(filter, {0}).Through(map, {0}).IntoHost(&host, {1}, 100));
    const bool refused = !input.Append(table.batch()).ok();
    has_part = refused && host.lines.size() == 1;
    if (!has_part) continue;
    EXPECT_EQ(input.Append(other.batch()).text(),
              "batch of 150 rows after a refused append: a part of another batch is in the host; accepted: the refused "
              "batch, of 200 rows");
    EXPECT_EQ(input.Finish().text(),
              "finish after a refused append: a part of the batch is in the host; accepted: the same batch again, or "
              "quern_input_destroy");
    Done(input.Append(table.batch()));
    Done(input.Finish());
    EXPECT_EQ(host.lines, Lines(101, "51"));
  }
  EXPECT_TRUE(has_part);
}

}  // namespace
}  // namespace quern_test
