// SPDX-License-Identifier: Apache-2.0
// Strings of build keys that a tuple holds itself (`inline_key_bytes`) are not copied by an input with `copy_bytes`:
// the host may overwrite its buffers after each append all the same, and the job takes no memory for them. A batch with
// a longer one is copied as ever.
//
//     inline_key_bytes=36    a batch of keys of 0 to 36 bytes    nothing is copied
//                            the same with one of 37 bytes       all of the column are copied
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/hosts/arrow_arrays.h"
#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

using Texts = std::vector<std::string>;

constexpr size_t kHeld = 36;
const quern_column kRowIds = {};

// Text i, of `length` bytes, which tell it from the others where there are enough of them.
std::string TextOf(size_t i, size_t length) {
  std::string text = std::to_string(i);
  text.resize(length, static_cast<char>('a' + i % 26));
  return text;
}

// Of shortest to longest bytes, by turns.
Texts TextsOf(size_t num_rows, size_t shortest, size_t longest, size_t first = 0) {
  Texts texts;
  for (size_t i = first; i < first + num_rows; ++i) texts.push_back(TextOf(i, shortest + i % (longest - shortest + 1)));
  return texts;
}

enum class Form { kUtf8, kLarge, kView, kDictionary };
struct FormRow {
  Form form;
  const char* type;
};
constexpr FormRow kForms[] = {{Form::kUtf8, "utf8"},
                              {Form::kLarge, "large_utf8"},
                              {Form::kView, "utf8_view"},
                              {Form::kDictionary, "dictionary(i32,utf8)"}};

// A host's column, whose memory it uses for something else afterwards.
class HostColumn {
 public:
  HostColumn(Form form, const Texts& texts) : form_(form), strings_(texts), large_(texts), views_(texts) {
    for (size_t i = 0; i < texts.size(); ++i) indices_.push_back(static_cast<int32_t>(texts.size() - 1 - i));
    dictionary_ = std::make_unique<StringVector<int32_t>>(Texts(texts.rbegin(), texts.rend()));
    values_ = dictionary_->column();
  }
  HostColumn(const HostColumn&) = delete;
  HostColumn& operator=(const HostColumn&) = delete;
  ~HostColumn() {
    for (std::string* bytes : {&strings_.bytes, &large_.bytes, &views_.bytes[0], &views_.bytes[1], &dictionary_->bytes})
      std::fill(bytes->begin(), bytes->end(), '#');
    std::fill(strings_.offsets.begin(), strings_.offsets.end(), INT32_MAX);
    std::fill(large_.offsets.begin(), large_.offsets.end(), INT64_MAX);
    std::fill(views_.views.begin(), views_.views.end(), 0xff);
    std::fill(indices_.begin(), indices_.end(), INT32_MAX);
  }

  quern_column column() const {
    switch (form_) {
      case Form::kUtf8: return strings_.column();
      case Form::kLarge: return large_.column();
      case Form::kView: return views_.column();
      case Form::kDictionary: return DictionaryColumn(ColumnOf(indices_), values_);
    }
    return {};
  }

 private:
  const Form form_;
  StringVector<int32_t> strings_;
  StringVector<int64_t> large_;
  ViewVector views_;
  std::vector<int32_t> indices_;
  std::unique_ptr<StringVector<int32_t>> dictionary_;
  quern_column values_ = {};
};

quern::Kernel KernelWith(const std::string& spec, Engine engine, size_t held) {
  return KernelOf(spec, engine, "inline_key_bytes=" + std::to_string(held));
}

// A join whose build rows come in batches of texts, which the host forgets after each.
struct Built {
  HostMemory memory;
  quern::Join join;

  Built(const std::string& spec, Engine engine, size_t held, Form form, const std::vector<Texts>& batches,
        StringBytes bytes = StringBytes::kCopied)
      : join(Take(quern::Join::Create(KernelWith(spec, engine, held), memory.options()))) {
    quern::Input build = Take(join.Build(bytes));
    uint64_t first_row_id = 0;
    for (const Texts& texts : batches) {
      const HostColumn column(form, texts);
      Table table = {{column.column()}, {kRowIds}, texts.size()};
      table.first_row_id = first_row_id;
      first_row_id += texts.size();
      Done(build.Append(table.batch()));
    }
    Done(build.Finish());
  }
};

// Bytes of an unfinished job, whose strings the host keeps or the job copies.
int64_t BytesOf(const FormRow& form, size_t held, const Texts& texts, StringBytes bytes) {
  // Where strings stay, they live as long as the job: nothing reads them before it is gone.
  const Built built("join.inner keys=" + std::string(form.type) + " build=rowid", Engine::kJit, held, form.form,
                    {texts}, bytes);
  return built.memory.used;
}

void ExpectRows(const FormRow& form, size_t held, const std::vector<Texts>& batches) {
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    SCOPED_TRACE(std::string(form.type) + ", " + std::to_string(held) + " bytes held, engine " +
                 std::to_string(static_cast<int>(engine)));
    const std::string spec = "join.right keys=" + std::string(form.type) + " build=rowid probe=rowid";
    Built built(spec, engine, held, form.form, batches);
    Done(built.join.Finalise());
    Texts probe;
    for (const Texts& batch : batches) probe.insert(probe.end(), batch.begin(), batch.end());
    Lines expected;
    for (size_t i = 0; i < probe.size(); ++i) {  // every third row has no match: one byte differs
      if (i % 3 == 0) probe[i].back() ^= 1;
      expected.push_back((i % 3 == 0 ? "null" : std::to_string(i)) + "|" + std::to_string(i));
    }
    const HostColumn column(form.form, probe);
    quern::Output output = Take(built.join.Probe());
    Lines lines = Probed(&output, {{column.column()}, {kRowIds}, probe.size()}, "rr");
    const Lines rest = RowsOf(built.join.Unmatched(), "rr");
    lines.insert(lines.end(), rest.begin(), rest.end());
    EXPECT_EQ(Ordered(lines), Ordered(expected));
  }
}

TEST(HeldKeys, RowsAreRightWhereTheHostForgetsItsStrings) {
  for (const FormRow& form : kForms)
    for (const size_t held : {12, 20, 36, 60, 68})
      ExpectRows(form, held, {TextsOf(500, 5, held), TextsOf(300, 8, 12, 500), TextsOf(1, held, held, 800)});
}

TEST(HeldKeys, RowsAreRightWhereSomeBatchesHaveLongerOnes) {
  for (const FormRow& form : kForms)
    for (const size_t held : {12, 36, 68})
      ExpectRows(form, held,
                 {TextsOf(500, 5, held), TextsOf(400, 5, held + 1, 500), TextsOf(300, held + 1, 200, 900),
                  TextsOf(200, held, held, 1200)});
}

TEST(HeldKeys, TakeNoMemory) {
  for (const FormRow& form : kForms) {
    SCOPED_TRACE(form.type);
    const Texts texts = TextsOf(2000, 5, kHeld);
    EXPECT_EQ(BytesOf(form, kHeld, texts, StringBytes::kCopied), BytesOf(form, kHeld, texts, StringBytes::kStay));
  }
}

TEST(HeldKeys, OfABatchWithALongerOneAreCopied) {
  for (const FormRow& form : kForms) {
    SCOPED_TRACE(form.type);
    Texts texts = TextsOf(2000, 20, kHeld);
    texts[1000] = TextOf(1000, kHeld + 1);
    size_t num_bytes = 0;
    for (const std::string& text : texts) num_bytes += text.size();
    EXPECT_GE(BytesOf(form, kHeld, texts, StringBytes::kCopied),
              BytesOf(form, kHeld, texts, StringBytes::kStay) + static_cast<int64_t>(num_bytes));
  }
}

// Keys alone: a payload of the same strings is copied.
TEST(HeldKeys, PayloadIsCopied) {
  const std::string spec = "join.inner keys=utf8 build=utf8 probe=rowid";
  quern::Join join = Take(quern::Join::Create(KernelWith(spec, Engine::kJit, kHeld)));
  quern::Input build = Take(join.Build(StringBytes::kCopied));
  const Texts texts = TextsOf(200, 13, kHeld);
  Lines expected;
  for (size_t i = 0; i < texts.size(); ++i) expected.push_back(std::to_string(i) + "|" + texts[i]);
  {
    const HostColumn column(Form::kUtf8, texts);
    Done(build.Append(Table{{column.column()}, {column.column()}, texts.size()}.batch()));
  }
  Done(build.Finish());
  Done(join.Finalise());
  const HostColumn column(Form::kUtf8, texts);
  quern::Output output = Take(join.Probe());
  EXPECT_EQ(Probed(&output, {{column.column()}, {kRowIds}, texts.size()}, "rs"), Ordered(expected));
}

// A null's offsets may be anything, and its length decides nothing.
TEST(HeldKeys, NullsAreNotMeasured) {
  for (const char* spec : {"join.full keys=utf8:nullable build=rowid probe=rowid",
                           "join.full keys=utf8:nullable:nullequal build=rowid probe=rowid"}) {
    SCOPED_TRACE(spec);
    HostMemory memory;
    quern::Join join = Take(quern::Join::Create(KernelWith(spec, Engine::kJit, kHeld), memory.options()));
    const auto valid = Bitmap({true, false, true});
    const Texts texts = {"short", std::string(1'000'000, 'n'), TextOf(2, kHeld)};
    {
      const HostColumn column(Form::kUtf8, texts);
      quern::Input build = Take(join.Build(StringBytes::kCopied));
      Done(build.Append(Table{{WithValidity(column.column(), valid)}, {kRowIds}, 3}.batch()));
      Done(build.Finish());
    }
    EXPECT_LT(memory.used, 1'000'000);
    Done(join.Finalise());
    const HostColumn column(Form::kUtf8, texts);
    quern::Output output = Take(join.Probe());
    Lines lines = Probed(&output, {{WithValidity(column.column(), valid)}, {kRowIds}, 3}, "rr");
    const Lines rest = RowsOf(join.Unmatched(), "rr");
    lines.insert(lines.end(), rest.begin(), rest.end());
    const bool match = std::string(spec).find("nullequal") != std::string::npos;
    EXPECT_EQ(Ordered(lines), Ordered(match ? Lines{"0|0", "1|1", "2|2"} : Lines{"0|0", "1|null", "2|2", "null|1"}));
  }
}

// Beside a key that is copied.
TEST(HeldKeys, OfSeveralColumnsEachDecidesForItself) {
  const std::string spec = "join.inner keys=utf8,i64,utf8_view build=rowid probe=rowid";
  quern::Join join = Take(quern::Join::Create(KernelWith(spec, Engine::kJit, kHeld)));
  const Texts held = TextsOf(300, 4, kHeld), longer = TextsOf(300, 30, 90);
  std::vector<int64_t> numbers(300);
  Lines expected;
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<int64_t>(i);
    expected.push_back(std::to_string(i) + "|" + std::to_string(i));
  }
  {
    const HostColumn first(Form::kUtf8, held), last(Form::kView, longer);
    quern::Input build = Take(join.Build(StringBytes::kCopied));
    Done(build.Append(Table{{first.column(), ColumnOf(numbers), last.column()}, {kRowIds}, 300}.batch()));
    Done(build.Finish());
  }
  Done(join.Finalise());
  const HostColumn first(Form::kUtf8, held), last(Form::kView, longer);
  quern::Output output = Take(join.Probe());
  const Table probe = {{first.column(), ColumnOf(numbers), last.column()}, {kRowIds}, 300};
  EXPECT_EQ(Probed(&output, probe, "rr"), Ordered(expected));
}

// An Arrow array goes at once, and is spoiled.
TEST(HeldKeys, OfArrowArrays) {
  const TestSchema schema({{"key", "u"}, {"number", "l"}});
  constexpr int32_t kKey[] = {0}, kNumber[] = {1};
  for (const size_t longest : {kHeld, kHeld + 30}) {
    const Texts texts = TextsOf(1000, 4, longest);
    std::vector<int64_t> numbers(texts.size());
    Lines expected;
    for (size_t i = 0; i < texts.size(); ++i) {
      numbers[i] = static_cast<int64_t>(i);
      expected.push_back(std::to_string(i) + "|" + std::to_string(i));
    }
    auto array = StructArray(1000, Utf8Array(texts), FixedArray<int64_t>(numbers));
    quern::Join join =
        Take(quern::Join::Create(KernelWith("join.inner keys=utf8 build=i64 probe=rowid", Engine::kJit, kHeld)));
    Done(join.BindArrow(QUERN_PORT_BUILD, {&schema.schema, kKey, kNumber}));
    quern::Input build = Take(join.Build(StringBytes::kCopied));
    Done(build.AppendArrow(&array->array));
    EXPECT_EQ(array->times_released, 1);
    Done(build.Finish());
    Done(join.Finalise());
    const HostColumn column(Form::kUtf8, texts);
    quern::Output output = Take(join.Probe());
    EXPECT_EQ(Probed(&output, {{column.column()}, {kRowIds}, texts.size()}, "rl"), Ordered(expected));
  }
}

// Rows that are written and read back have their keys with them.
TEST(HeldKeys, AreWrittenWithTheirRows) {
  quern_spill_options spill = {};
  spill.struct_size = sizeof(spill);
  spill.folder = "/tmp";
  quern_job_options options = LimitedTo(uint64_t{4} << 20);
  options.struct_size = sizeof(options);
  options.spill = &spill;
  const std::string spec = "join.inner keys=utf8 build=rowid probe=rowid";
  quern::Join join = Take(quern::Join::Create(KernelWith(spec, Engine::kJit, kHeld), options));
  constexpr size_t kBatches = 60, kBatchRows = 2000;
  const auto batch_of = [](size_t batch) {
    Texts texts;
    for (size_t i = 0; i < kBatchRows; ++i) {
      const size_t number = batch * kBatchRows + i;
      texts.push_back(TextOf(number, 8 + number % (kHeld - 7 + (batch == 30 ? 20 : 0))));
    }
    return texts;
  };
  {
    quern::Input build = Take(join.Build(StringBytes::kCopied));
    for (size_t batch = 0; batch < kBatches; ++batch) {
      const HostColumn column(Form::kUtf8, batch_of(batch));
      Table table = {{column.column()}, {kRowIds}, kBatchRows};
      table.first_row_id = batch * kBatchRows;
      Done(build.Append(table.batch()));
    }
    Done(build.Finish());
  }
  Done(join.Finalise());
  Lines lines, expected;
  quern::Output output = Take(join.Probe());
  for (const size_t batch : {size_t{0}, size_t{30}, kBatches - 1}) {
    const HostColumn column(Form::kUtf8, batch_of(batch));
    Table table = {{column.column()}, {kRowIds}, kBatchRows};
    table.first_row_id = batch * kBatchRows;
    for (const std::string& line : Probed(&output, table, "rr")) lines.push_back(line);
    for (size_t i = batch * kBatchRows; i < (batch + 1) * kBatchRows; ++i)
      expected.push_back(std::to_string(i) + "|" + std::to_string(i));
  }
  for (const std::string& line : RowsOf(join.Unmatched(), "rr")) lines.push_back(line);
  EXPECT_GT(join.Stats().spilled_rows, 0u);
  EXPECT_TRUE(Ordered(lines) == Ordered(expected)) << lines.size() << " rows, not " << expected.size();
}

}  // namespace
}  // namespace quern_test
