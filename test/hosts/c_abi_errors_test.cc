// SPDX-License-Identifier: Apache-2.0
// Every error that the C ABI itself can answer, with its full text; with and without an error object. (Those of Arrow:
// arrow_test.cc.)
#include <gtest/gtest.h>

#include <regex>

#include "test/hosts/host_tables.h"

namespace quern_test {
namespace {

class CAbiErrors : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(quern_compile("join.inner keys=i64 build=f64 probe=rowid", QUERN_ENGINE_GENERIC, nullptr, &some_kernel,
                            nullptr),
              QUERN_OK);
    ASSERT_EQ(quern_join_create(some_kernel, 0, &open_join, nullptr), QUERN_OK);
    ASSERT_EQ(quern_join_create(some_kernel, 0, &finalised_join, nullptr), QUERN_OK);
    ASSERT_EQ(quern_join_append(finalised_join, &some_batch, false, nullptr), QUERN_OK);
    ASSERT_EQ(quern_join_finalise(finalised_join, nullptr), QUERN_OK);
    ASSERT_EQ(quern_prober_create(finalised_join, 0, &some_prober, nullptr), QUERN_OK);
  }
  void TearDown() override {
    quern_prober_destroy(some_prober);
    quern_join_destroy(open_join);
    quern_join_destroy(finalised_join);
    quern_kernel_destroy(some_kernel);
  }

  const std::vector<int64_t> keys = {1, 2, 3};
  const std::vector<double> prices = {1, 2, 3};
  const Table table = {{ColumnOf(keys)}, {ColumnOf(prices)}, 3};
  const quern_batch some_batch = table.batch();
  quern_kernel* some_kernel = nullptr;
  quern_join* open_join = nullptr;
  quern_join* finalised_join = nullptr;
  quern_prober* some_prober = nullptr;
};

std::string CompileError(const char* spec, const char* params = nullptr) {
  quern_kernel* kernel = reinterpret_cast<quern_kernel*>(8);
  std::string text = ErrorOf(QUERN_INVALID_ARGUMENT, quern_compile, spec, QUERN_ENGINE_AUTO, params, &kernel);
  EXPECT_EQ(kernel, nullptr);
  return text;
}

TEST_F(CAbiErrors, NullArguments) {
  const auto invalid = [](auto... call) { return ErrorOf(QUERN_INVALID_ARGUMENT, call...); };
  quern_kernel* kernel = nullptr;
  quern_join* join = nullptr;
  quern_prober* prober = nullptr;
  quern_result result;
  bool more = false;
  quern_kernel** const no_kernel = nullptr;
  quern_join** const no_join = nullptr;
  quern_prober** const no_prober = nullptr;
  const char* const no_text = nullptr;
  const quern_batch* const no_batch = nullptr;
  EXPECT_EQ(invalid(quern_compile, no_text, QUERN_ENGINE_AUTO, no_text, &kernel),
            "null argument: spec; accepted: a pointer");
  EXPECT_EQ(invalid(quern_compile, "join.inner keys=i64", QUERN_ENGINE_AUTO, no_text, no_kernel),
            "null argument: kernel; accepted: a pointer");
  EXPECT_EQ(invalid(quern_join_create, kernel, 0, &join), "null argument: kernel; accepted: a pointer");
  EXPECT_EQ(invalid(quern_join_create, some_kernel, 0, no_join), "null argument: join; accepted: a pointer");
  EXPECT_EQ(invalid(quern_join_append, join, &some_batch, false), "null argument: join; accepted: a pointer");
  EXPECT_EQ(invalid(quern_join_append, open_join, no_batch, false), "null argument: batch; accepted: a pointer");
  EXPECT_EQ(invalid(quern_join_finalise, join), "null argument: join; accepted: a pointer");
  EXPECT_EQ(invalid(quern_prober_create, join, 0, &prober), "null argument: join; accepted: a pointer");
  EXPECT_EQ(invalid(quern_prober_create, finalised_join, 0, no_prober), "null argument: prober; accepted: a pointer");
  EXPECT_EQ(invalid(quern_prober_input, prober, &some_batch), "null argument: prober; accepted: a pointer");
  EXPECT_EQ(invalid(quern_prober_input, some_prober, no_batch), "null argument: batch; accepted: a pointer");
  EXPECT_EQ(invalid(quern_prober_next, prober, &result, &more), "null argument: prober; accepted: a pointer");
  EXPECT_EQ(invalid(quern_prober_next, some_prober, static_cast<quern_result*>(nullptr), &more),
            "null argument: result; accepted: a pointer");
  EXPECT_EQ(invalid(quern_prober_next, some_prober, &result, static_cast<bool*>(nullptr)),
            "null argument: more; accepted: a pointer");
}

TEST_F(CAbiErrors, NullArgumentsOfAppenders) {
  const auto invalid = [](auto... call) { return ErrorOf(QUERN_INVALID_ARGUMENT, call...); };
  quern_join* const no_join = nullptr;
  quern_appender* appender = nullptr;
  EXPECT_EQ(invalid(quern_appender_create, no_join, &appender), "null argument: join; accepted: a pointer");
  EXPECT_EQ(invalid(quern_appender_create, open_join, static_cast<quern_appender**>(nullptr)),
            "null argument: appender; accepted: a pointer");
  EXPECT_EQ(invalid(quern_appender_append, appender, &some_batch, false),
            "null argument: appender; accepted: a pointer");
  EXPECT_EQ(invalid(quern_appender_finish, appender), "null argument: appender; accepted: a pointer");
  EXPECT_EQ(invalid(quern_join_finalise_shared, no_join), "null argument: join; accepted: a pointer");
  EXPECT_EQ(invalid(quern_prober_input_unmatched, static_cast<quern_prober*>(nullptr)),
            "null argument: prober; accepted: a pointer");
  ASSERT_EQ(quern_appender_create(open_join, &appender, nullptr), QUERN_OK);
  EXPECT_EQ(invalid(quern_appender_append, appender, static_cast<const quern_batch*>(nullptr), false),
            "null argument: batch; accepted: a pointer");
  quern_appender_destroy(appender);
}

TEST_F(CAbiErrors, WrongOrderOfAppenders) {
  const auto failed = [](auto... call) { return ErrorOf(QUERN_FAILED_PRECONDITION, call...); };
  quern_appender *appender = nullptr, *late = nullptr;
  EXPECT_EQ(failed(quern_appender_create, finalised_join, &appender),
            "appender after finalise: the table is built; accepted: a new join");
  ASSERT_EQ(quern_appender_create(open_join, &appender, nullptr), QUERN_OK);
  ASSERT_EQ(quern_appender_create(open_join, &late, nullptr), QUERN_OK);
  ASSERT_EQ(quern_appender_finish(appender, nullptr), QUERN_OK);
  EXPECT_EQ(failed(quern_appender_append, appender, &some_batch, false),
            "append after finish: the rows were handed over; accepted: a new appender");
  EXPECT_EQ(failed(quern_appender_finish, appender),
            "finish after finish: the rows were handed over; accepted: a new appender");
  ASSERT_EQ(quern_join_finalise_shared(open_join, nullptr), QUERN_OK);
  EXPECT_EQ(quern_join_finalise_shared(open_join, nullptr), QUERN_OK) << "who comes late finds the table";
  EXPECT_EQ(failed(quern_join_finalise, open_join),
            "finalise after finalise: the table is built; accepted: a new join");
  EXPECT_EQ(failed(quern_appender_append, late, &some_batch, false),
            "append after finalise: the table is built; accepted: a new join");
  EXPECT_EQ(failed(quern_appender_finish, late), "finish after finalise: the table is built; accepted: a new join");
  quern_appender_destroy(appender);
  quern_appender_destroy(late);
}

TEST_F(CAbiErrors, SpecsAndParameters) {
  EXPECT_EQ(CompileError("join.inner keys=i64", "batch_size"),
            "bad parameter: batch_size; accepted: name=value, separated by spaces");
  EXPECT_EQ(CompileError("join.inner keys=i64", "test.hash=mix64 =7"),
            "bad parameter: =7; accepted: name=value, separated by spaces");
  EXPECT_EQ(CompileError("join.inner keys=i64", " test.hash= "),
            "bad parameter: test.hash=; accepted: name=value, separated by spaces");
  EXPECT_EQ(CompileError("join.inner keys=i64", "test.hash=crc"),
            "bad value of plan parameter test.hash: crc; accepted: mix64, zero");
  EXPECT_EQ(CompileError("join.inner keys=i64", "\tbatch_size=7\n batch_size=4097"),
            "bad value of plan parameter batch_size: 4097; accepted: 1 to 4096 rows");
  EXPECT_TRUE(std::regex_match(
      CompileError("join.inner keys=i64", "batch=7"),
      std::regex("unknown plan parameter: batch; accepted: layout, .*inline_key_bytes, batch_size, .*")));
  EXPECT_TRUE(std::regex_match(CompileError("join.inner keys=i65"),
                               std::regex("unknown column type: i65; .*accepted: bool, i8, .*")));
}

TEST_F(CAbiErrors, Engines) {
  quern_kernel* kernel = nullptr;
  EXPECT_EQ(
      ErrorOf(QUERN_INVALID_ARGUMENT, quern_compile, "join.inner keys=i64", static_cast<quern_engine>(3), "", &kernel),
      "unknown engine: 3; accepted: QUERN_ENGINE_AUTO (0), QUERN_ENGINE_JIT (1), QUERN_ENGINE_GENERIC (2)");
}

TEST_F(CAbiErrors, LongTextsAreCutBetweenCharacters) {
  std::string params = "a";
  for (int i = 0; i < 2000; ++i) params += "\xc3\xa9";  // 2 bytes each
  const std::string text = CompileError("join.inner keys=i64", params.c_str());
  EXPECT_EQ(text, ("bad parameter: " + params).substr(0, 1018));
  EXPECT_EQ(CompileError("join.inner keys=i64", "x\ry"), "bad parameter: x; accepted: name=value, separated by spaces");
}

TEST_F(CAbiErrors, WrongOrder) {
  const auto failed = [](auto... call) { return ErrorOf(QUERN_FAILED_PRECONDITION, call...); };
  quern_prober* prober = nullptr;
  quern_result result;
  bool more = false;
  EXPECT_EQ(failed(quern_prober_create, open_join, 0, &prober),
            "prober before finalise: the table is not built; accepted: after quern_join_finalise");
  EXPECT_EQ(failed(quern_join_append, finalised_join, &some_batch, false),
            "append after finalise: the table is built; accepted: a new join");
  EXPECT_EQ(failed(quern_join_finalise, finalised_join),
            "finalise after finalise: the table is built; accepted: a new join");
  EXPECT_EQ(failed(quern_prober_next, some_prober, &result, &more),
            "result before input: the prober has no batch; accepted: after quern_prober_input");
}

TEST_F(CAbiErrors, BatchRows) {
  quern_prober* prober = nullptr;
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_prober_create, finalised_join, uint64_t{1} << 31, &prober),
            "batch_rows out of range: 2147483648; accepted: 0 to 2147483647");
}

TEST_F(CAbiErrors, BatchesTooLarge) {
  quern_batch batch = some_batch;
  batch.num_rows = 4294967295;
  const std::string text = "batch too large: 4294967295 rows; accepted: below 4294967295";
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_join_append, open_join, &batch, false), text);
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_prober_input, some_prober, &batch), text);
}

TEST_F(CAbiErrors, MissingColumns) {
  quern_batch batch = some_batch;
  batch.keys = nullptr;
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_join_append, open_join, &batch, false),
            "batch without columns: build key; accepted: 1 columns");
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_prober_input, some_prober, &batch),
            "batch without columns: probe key; accepted: 1 columns");
  batch = some_batch;
  batch.payload = nullptr;
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_join_append, open_join, &batch, true),
            "batch without columns: build payload; accepted: 1 columns");
  quern_error error;
  EXPECT_EQ(quern_join_append(open_join, &some_batch, false, &error), QUERN_OK)
      << "a batch that was refused changes nothing";
}

// A join of one column of one type on the build side; answers the error for that column.
std::string ColumnError(const char* type, const quern_column& column) {
  const std::string spec = "join.inner keys=i64 build=" + std::string(type);
  auto kernel = quern::Kernel::Compile(spec, quern::Engine::kGeneric);
  EXPECT_TRUE(kernel.ok()) << kernel.status().text();
  auto join = quern::Join::Create(*kernel);
  const std::vector<int64_t> key = {1, 2};
  const quern::Status status = join->Append(Table{{ColumnOf(key)}, {column}, 2}.batch());
  EXPECT_EQ(status.code(), QUERN_INVALID_ARGUMENT);
  return status.text();
}

TEST_F(CAbiErrors, MissingPointers) {
  const quern_column absent = {};
  const std::vector<uint8_t> one_valid = Bitmap({false, true});
  EXPECT_EQ(ColumnError("f64", absent),
            "column without values: build payload 0 (f64); accepted: a pointer, unless no row needs it");
  EXPECT_EQ(ColumnError("bool:nullable", WithValidity(absent, one_valid)),
            "column without values: build payload 0 (bool); accepted: a pointer, unless no row needs it");
  EXPECT_EQ(ColumnError("utf8", absent),
            "column without offsets: build payload 0 (utf8); accepted: a pointer, unless no row needs it");
  EXPECT_EQ(ColumnError("utf8_view", absent),
            "column without values: build payload 0 (utf8_view); accepted: a pointer, unless no row needs it");
  StringVector<int64_t> strings({"", "b"});
  quern_column no_bytes = strings.column();
  no_bytes.values = nullptr;
  EXPECT_EQ(ColumnError("large_binary", no_bytes),
            "column without values: build payload 0 (large_binary); accepted: a pointer, unless no row needs it");
  const ViewVector views({"short", "longer than twelve"});
  quern_column no_buffers = views.column();
  no_buffers.buffers = nullptr;
  EXPECT_EQ(ColumnError("binary_view", no_buffers),
            "column without buffers: build payload 0 (binary_view); accepted: a pointer, unless no row needs it");
}

TEST_F(CAbiErrors, MissingDictionaries) {
  const std::vector<int32_t> indices = {0, 1};
  const quern_column absent = {};
  EXPECT_EQ(
      ColumnError("dictionary(i32,utf8)", ColumnOf(indices)),
      "column without dictionary: build payload 0 (dictionary(i32,utf8)); accepted: a pointer, unless no row needs it");
  EXPECT_EQ(
      ColumnError("dictionary(i32,utf8)", DictionaryColumn(absent, absent)),
      "column without indices: build payload 0 (dictionary(i32,utf8)); accepted: a pointer, unless no row needs it");
  EXPECT_EQ(
      ColumnError("dictionary(i32,i64)", DictionaryColumn(ColumnOf(indices), absent)),
      "column without values: build payload 0 (dictionary(i32,i64)); accepted: a pointer, unless no row needs it");
}

TEST_F(CAbiErrors, MemoryLimitWhileBuilding) {
  quern_join* join = nullptr;
  ASSERT_EQ(quern_join_create(some_kernel, 1000, &join, nullptr), QUERN_OK);
  quern_error error = {};
  EXPECT_EQ(quern_join_append(join, &some_batch, false, &error), QUERN_RESOURCE_EXHAUSTED);
  EXPECT_TRUE(
      std::regex_match(error.text, std::regex("memory limit exceeded: [0-9]+ bytes requested, 0 in use; limit 1000")))
      << error.text;
  EXPECT_EQ(ErrorOf(QUERN_FAILED_PRECONDITION, quern_join_append, join, &some_batch, false),
            "append after a failed append: a batch is missing from the table; accepted: a new join");
  EXPECT_EQ(ErrorOf(QUERN_FAILED_PRECONDITION, quern_join_finalise, join),
            "finalise after a failed append: a batch is missing from the table; accepted: a new join");
  quern_join_destroy(join);
}

TEST_F(CAbiErrors, MemoryLimitOfCopiedBytes) {
  auto kernel = quern::Kernel::Compile("join.inner keys=utf8", quern::Engine::kGeneric);
  auto join = quern::Join::Create(*kernel, 5000);
  const StringVector<int32_t> strings({std::string(6000, 'a')});
  const quern::Status status = join->Append(Table{{strings.column()}, {}, 1}.batch(), quern::StringBytes::kCopied);
  EXPECT_EQ(status.code(), QUERN_RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.text(), "memory limit exceeded: 6000 bytes requested, 0 in use; limit 5000");
  EXPECT_EQ(join->Stats().build_rows, 0u);
}

TEST_F(CAbiErrors, MemoryLimitOfResults) {
  quern_join* join = nullptr;
  ASSERT_EQ(quern_join_create(some_kernel, 4 << 20, &join, nullptr), QUERN_OK);
  ASSERT_EQ(quern_join_append(join, &some_batch, false, nullptr), QUERN_OK);
  ASSERT_EQ(quern_join_finalise(join, nullptr), QUERN_OK);
  quern_prober* prober = nullptr;
  ASSERT_EQ(quern_prober_create(join, 10 << 20, &prober, nullptr), QUERN_OK);
  ASSERT_EQ(quern_prober_input(prober, &some_batch, nullptr), QUERN_OK);
  quern_result result;
  bool more = true;
  quern_error error = {};
  EXPECT_EQ(quern_prober_next(prober, &result, &more, &error), QUERN_RESOURCE_EXHAUSTED);
  EXPECT_TRUE(std::regex_match(
      error.text, std::regex("memory limit exceeded: [0-9]+ bytes requested, [0-9]+ in use; limit 4194304")))
      << error.text;
  EXPECT_FALSE(more);
  EXPECT_EQ(result.num_rows, 0u);
  EXPECT_EQ(ErrorOf(QUERN_FAILED_PRECONDITION, quern_prober_next, prober, &result, &more),
            "result after a failure: rows of this input are lost; accepted: a new input");
  quern_prober_destroy(prober);
  quern_join_destroy(join);
}

}  // namespace
}  // namespace quern_test
