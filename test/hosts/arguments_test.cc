// SPDX-License-Identifier: Apache-2.0
// What the functions on jobs refuse of their arguments: null pointers, numbers that no enum has, structs of other
// sizes, ports of other operators. Each with its full text, with and without an error object.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "test/hosts/arrow_results.h"
#include "test/hosts/operators.h"

namespace quern_test {
namespace {

template <class... Call>
std::string Invalid(Call... call) {
  return ErrorOf(QUERN_INVALID_ARGUMENT, call...);
}

std::string Null(const char* name) { return std::string("null argument: ") + name + "; accepted: a pointer"; }

// One job of each state, and its handles.
class Arguments : public testing::Test {
 protected:
  Arguments() {
    Done(join.Finalise());
    probe = std::make_unique<quern::Output>(Take(join.Probe()));
  }
  static TestArrayPtr Array() { return StructArray(1, FixedArray<int64_t>({1})); }

  const std::vector<int64_t> numbers = {1, 2, 3};
  const Table table = {{ColumnOf(numbers)}, {ColumnOf(numbers)}, 3};
  const quern_batch batch = table.batch(), *no_batch = nullptr;
  const TestSchema schema{std::vector<TestField>{{"k", "l"}}};
  const int32_t first[1] = {0};
  quern::Kernel kernel = KernelOf(kSort.spec, Engine::kGeneric);
  quern::Job open = NewJob(kSort);
  quern::Input input = Take(open.NewInput(QUERN_PORT_ROWS));
  quern::Join join = New<quern::Join>("join.inner keys=i64");
  std::unique_ptr<quern::Output> probe;
  quern::Filter filter = New<quern::Filter>("filter i64 > 2");

  quern_kernel* const no_kernel = nullptr;
  quern_job *job = reinterpret_cast<quern_job*>(8), *const no_job = nullptr, **const no_place = nullptr;
  const quern_job* const no_const_job = nullptr;
  quern_input* const no_input = nullptr;
  quern_output* const no_output = nullptr;
  ArrowArray* const no_array = nullptr;
  const quern_arrow_rows* const all_rows = nullptr;
};

// ---- null pointers ----

TEST_F(Arguments, NullOfJobs) {
  const quern_job_options* const defaults = nullptr;
  EXPECT_EQ(Invalid(quern_job_create, no_kernel, defaults, &job), Null("kernel"));
  EXPECT_EQ(job, nullptr) << "on failure too";
  EXPECT_EQ(Invalid(quern_job_create, kernel.handle(), defaults, no_place), Null("job"));
  quern_work_state state = QUERN_WORK_MORE;
  EXPECT_EQ(Invalid(quern_job_work, no_job, &state), Null("job"));
  EXPECT_EQ(state, QUERN_WORK_DONE) << "so that nobody calls for ever";
  EXPECT_EQ(Invalid(quern_job_work, open.handle(), static_cast<quern_work_state*>(nullptr)), Null("state"));
  EXPECT_EQ(Invalid(quern_job_finalise, no_job), Null("job"));
  quern_job_cancel(nullptr);
  quern_job_destroy(nullptr);
}

TEST_F(Arguments, NullOfBindings) {
  const ArrowSchema *some = &schema.schema, *no_schema = nullptr;
  const int32_t* const no_numbers = nullptr;
  ArrowSchema result = {};
  quern::Job unbound = NewJob(kSort);
  EXPECT_EQ(Invalid(quern_job_bind_arrow, no_job, QUERN_PORT_ROWS, some, first, first), Null("job"));
  EXPECT_EQ(Invalid(quern_job_bind_arrow, unbound.handle(), QUERN_PORT_ROWS, no_schema, first, first), Null("schema"));
  EXPECT_EQ(Invalid(quern_job_bind_arrow, unbound.handle(), QUERN_PORT_ROWS, some, no_numbers, first), Null("keys"));
  EXPECT_EQ(Invalid(quern_job_bind_arrow, unbound.handle(), QUERN_PORT_ROWS, some, first, no_numbers), Null("payload"));
  EXPECT_EQ(Invalid(quern_job_result_schema, no_const_job, QUERN_PORT_ROWS, &result), Null("job"));
  EXPECT_EQ(Invalid(quern_job_result_schema, static_cast<const quern_job*>(unbound.handle()), QUERN_PORT_ROWS,
                    static_cast<ArrowSchema*>(nullptr)),
            Null("schema"));
}

TEST_F(Arguments, NullOfInputs) {
  const quern_input_options* const defaults = nullptr;
  quern_input* made = reinterpret_cast<quern_input*>(8);
  EXPECT_EQ(Invalid(quern_input_create, no_job, QUERN_PORT_ROWS, defaults, &made), Null("job"));
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(Invalid(quern_input_create, open.handle(), QUERN_PORT_ROWS, defaults, static_cast<quern_input**>(nullptr)),
            Null("input"));
  EXPECT_EQ(Invalid(quern_input_append, no_input, &batch), Null("input"));
  EXPECT_EQ(Invalid(quern_input_append, input.handle(), no_batch), Null("batch"));
  EXPECT_EQ(Invalid(quern_input_append_arrow, input.handle(), no_array, all_rows), Null("batch"));
  EXPECT_EQ(RefusalOf(Array(),
                      [&](ArrowArray* array) {
                        quern_error error;
                        EXPECT_EQ(quern_input_append_arrow(nullptr, array, nullptr, &error), QUERN_INVALID_ARGUMENT);
                        return std::string(error.text);
                      }),
            Null("input"));
  EXPECT_EQ(Invalid(quern_input_finish, no_input), Null("input"));
  EXPECT_EQ(quern_input_num_groups(nullptr), 0u);
  quern_input_destroy(nullptr);
}

TEST_F(Arguments, NullOfOutputs) {
  const quern_output_options* const defaults = nullptr;
  quern_output* made = reinterpret_cast<quern_output*>(8);
  EXPECT_EQ(Invalid(quern_output_create, no_job, QUERN_PORT_PROBE, defaults, &made), Null("job"));
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(
      Invalid(quern_output_create, join.handle(), QUERN_PORT_PROBE, defaults, static_cast<quern_output**>(nullptr)),
      Null("output"));
  EXPECT_EQ(Invalid(quern_output_push, no_output, &batch), Null("output"));
  EXPECT_EQ(Invalid(quern_output_push, probe->handle(), no_batch), Null("batch"));
  EXPECT_EQ(Invalid(quern_output_push_arrow, probe->handle(), no_array, all_rows), Null("batch"));
  EXPECT_EQ(RefusalOf(Array(),
                      [&](ArrowArray* array) {
                        quern_error error;
                        EXPECT_EQ(quern_output_push_arrow(nullptr, array, nullptr, &error), QUERN_INVALID_ARGUMENT);
                        return std::string(error.text);
                      }),
            Null("output"));
  const quern_result* result = reinterpret_cast<const quern_result*>(8);
  const quern_result** const no_result = nullptr;
  ArrowArray rows;
  EXPECT_EQ(Invalid(quern_output_next, no_output, &result), Null("output"));
  EXPECT_EQ(result, nullptr);
  EXPECT_EQ(Invalid(quern_output_next, probe->handle(), no_result), Null("result"));
  EXPECT_EQ(Invalid(quern_output_next_arrow, no_output, &rows, &result), Null("output"));
  EXPECT_EQ(rows.release, nullptr);
  EXPECT_EQ(Invalid(quern_output_next_arrow, probe->handle(), no_array, &result), Null("rows"));
  EXPECT_EQ(Invalid(quern_output_next_arrow, probe->handle(), &rows, no_result), Null("result"));
  quern_output_destroy(nullptr);
}

TEST_F(Arguments, NullOfFilters) {
  const quern_job *some = filter.handle(), *sort = open.handle();
  uint32_t rows[3], *const no_rows = nullptr;
  uint8_t bits[1], *const no_bits = nullptr;
  uint64_t num_rows = 7, *const nowhere = nullptr;
  EXPECT_EQ(Invalid(quern_job_filter, no_const_job, &batch, rows, no_bits, &num_rows), Null("job"));
  EXPECT_EQ(num_rows, 0u);
  EXPECT_EQ(Invalid(quern_job_filter, some, no_batch, rows, no_bits, &num_rows), Null("batch"));
  EXPECT_EQ(Invalid(quern_job_filter, some, &batch, rows, no_bits, nowhere), Null("num_rows"));
  EXPECT_EQ(Invalid(quern_job_filter, some, &batch, rows, bits, &num_rows),
            "both rows and bitmap; accepted: one of them, or neither to count");
  EXPECT_EQ(Invalid(quern_job_filter, sort, &batch, no_rows, no_bits, &num_rows),
            "wrong job for a filter: sort; accepted: a job of a kernel `filter ..`");
  const ArrowArray* const nothing = nullptr;
  EXPECT_EQ(Invalid(quern_job_filter_arrow, no_const_job, nothing, all_rows, no_rows, no_bits, &num_rows), Null("job"));
  EXPECT_EQ(Invalid(quern_job_filter_arrow, some, nothing, all_rows, no_rows, no_bits, &num_rows), Null("batch"));
  EXPECT_EQ(Invalid(quern_job_filter_arrow, some, nothing, all_rows, no_rows, no_bits, nowhere), Null("num_rows"));
}

TEST_F(Arguments, NullOfStatistics) {
  quern_job_stats stats;
  std::memset(&stats, 0xff, sizeof(stats));
  stats.struct_size = sizeof(stats);
  quern_job_get_stats(nullptr, &stats);
  EXPECT_STREQ(stats.layout, "");
  EXPECT_EQ(quern_job_used_bytes(nullptr), 0u);
  EXPECT_EQ(stats.input_rows + stats.num_rows + stats.peak_bytes + stats.key_bits + stats.prefetch_distance, 0u);
  quern_job_get_stats(open.handle(), nullptr);
  std::memset(&stats, 0xff, sizeof(stats));
  stats.struct_size = offsetof(quern_job_stats, num_rows);
  quern_job_get_stats(open.handle(), &stats);
  EXPECT_EQ(stats.input_rows, 0u);
  EXPECT_EQ(stats.num_rows, UINT64_MAX) << "a host whose header ends before it";
}

TEST_F(Arguments, OfRuns) {
  const auto error_of = [&](quern_job* given, const quern_batch* batches, quern_port port = QUERN_PORT_ROWS,
                            uint32_t threads = 1, uint64_t batch_rows = 0) {
    const quern_run_input of_port = {port, batches, 1};
    quern_run_options options = {};
    options.struct_size = sizeof(options);
    options.threads = threads;
    options.batch_rows = batch_rows;
    uint64_t num_rows = 77;
    quern_error error = {};
    EXPECT_EQ(quern_job_run(given, &of_port, 1, &options, &num_rows, &error), QUERN_INVALID_ARGUMENT);
    EXPECT_EQ(num_rows, 0u);
    return std::string(error.text);
  };
  quern::Job sort = NewJob(kSort), merge = NewJob(kMerge);
  quern_job* const handle = sort.handle();
  EXPECT_EQ(error_of(nullptr, &batch), Null("job"));
  EXPECT_EQ(error_of(handle, nullptr), Null("batches"));
  EXPECT_EQ(quern_job_run(handle, nullptr, 1, nullptr, nullptr, nullptr), QUERN_INVALID_ARGUMENT);
  EXPECT_EQ(error_of(merge.handle(), &batch),
            "run of a merge; accepted: a join, an aggregation or a sort, or a pipeline into one");
  EXPECT_EQ(error_of(filter.handle(), &batch),
            "run of a filter; accepted: a join, an aggregation or a sort, or a pipeline into one");
  EXPECT_EQ(error_of(handle, &batch, QUERN_PORT_BUILD), "port of a run's batches: 1; accepted: QUERN_PORT_ROWS (0)");
  EXPECT_EQ(error_of(handle, &batch, QUERN_PORT_ROWS, 1025), "threads out of range: 1025; accepted: 0 to 1024");
  EXPECT_EQ(error_of(handle, &batch, QUERN_PORT_ROWS, 1, uint64_t{1} << 31),
            "batch_rows out of range: 2147483648; accepted: 0 to 2147483647");
  quern_batch large = batch;
  large.num_rows = UINT32_MAX;
  EXPECT_EQ(error_of(handle, &large), "batch too large: 4294967295 rows; accepted: below 4294967295");
  EXPECT_EQ(Take(sort.Run({})), 0u) << "calls that were refused change nothing";
  quern::Job failed = NewJob(kSort);
  quern_batch keyless = batch;
  keyless.keys = nullptr;
  EXPECT_EQ(error_of(failed.handle(), &keyless), "batch without columns: input key; accepted: 1 columns");
  EXPECT_EQ(failed.Run({}).status().text(),
            "run after a failed append: rows are missing from the sort; accepted: a new sort");
  const quern_run_input probes = {QUERN_PORT_ROWS, &batch, 1};
  quern::Join unbuilt = New<quern::Join>("join.inner keys=i64");
  EXPECT_EQ(unbuilt.Run({&probes, 1}).status().text(),
            "port of a run's batches: 0; accepted: QUERN_PORT_BUILD (1) or QUERN_PORT_PROBE (2)");
}

// ---- ports ----

TEST_F(Arguments, PortsThatThereAreNot) {
  const auto ninth = static_cast<quern_port>(8);
  const std::string unknown = "unknown port: 8; accepted: 0 to 7";
  ArrowSchema result = {};
  EXPECT_EQ(open.NewInput(ninth).status().text(), unknown);
  EXPECT_EQ(open.NewOutput(ninth).status().text(), unknown);
  EXPECT_EQ(open.BindArrow(ninth, {&schema.schema, first, first}).text(), unknown);
  EXPECT_EQ(open.ResultSchema(ninth, &result).text(), unknown);
  const quern_run_input of_port = {ninth, &batch, 1};
  EXPECT_EQ(open.Run({&of_port, 1}).status().text(), "port of a run's batches: 8; accepted: QUERN_PORT_ROWS (0)");
}

TEST_F(Arguments, PortsOfOtherOperators) {
  const auto wrong = [](const char* job, const char* port, const char* accepted) {
    return std::string("port that the ") + job + " does not have here: QUERN_PORT_" + port + "; accepted: " + accepted;
  };
  quern::Job merge = NewJob(kMerge), aggregation = NewJob(kAggregation);
  EXPECT_EQ(open.NewInput(QUERN_PORT_BUILD).status().text(),
            wrong("sort", "BUILD", "QUERN_PORT_ROWS or QUERN_PORT_THRESHOLD"));
  EXPECT_EQ(open.NewOutput(QUERN_PORT_STATES).status().text(),
            wrong("sort", "STATES", "QUERN_PORT_ROWS or QUERN_PORT_THRESHOLD"));
  EXPECT_EQ(join.NewInput(QUERN_PORT_PROBE).status().text(), wrong("join", "PROBE", "QUERN_PORT_BUILD for inputs"));
  EXPECT_EQ(join.NewOutput(QUERN_PORT_BUILD).status().text(),
            wrong("join", "BUILD", "QUERN_PORT_PROBE or QUERN_PORT_UNMATCHED for outputs"));
  EXPECT_EQ(aggregation.NewInput(QUERN_PORT_THRESHOLD).status().text(),
            wrong("aggregation", "THRESHOLD", "QUERN_PORT_ROWS or QUERN_PORT_STATES"));
  EXPECT_EQ(merge.NewInput(QUERN_PORT_STATES).status().text(), wrong("merge", "STATES", "QUERN_PORT_ROWS"));
  EXPECT_EQ(merge.NewOutput(QUERN_PORT_UNMATCHED).status().text(), wrong("merge", "UNMATCHED", "QUERN_PORT_ROWS"));
  EXPECT_EQ(filter.NewInput(QUERN_PORT_ROWS).status().text(), wrong("filter", "ROWS", "none, as it has no inputs"));
  EXPECT_EQ(filter.NewOutput(QUERN_PORT_ROWS).status().text(), wrong("filter", "ROWS", "none, as it has no outputs"));
  EXPECT_EQ(open.BindArrow(QUERN_PORT_PROBE, {&schema.schema, first, first}).text(),
            wrong("sort", "PROBE", "a port of batches with a binding"));
  EXPECT_EQ(open.BindArrow(QUERN_PORT_STATES, {&schema.schema, first, first}).text(),
            wrong("sort", "STATES", "a port of batches with a binding"));
}

// ---- options ----

TEST_F(Arguments, OptionsThatContradictEachOther) {
  quern_job_options options = {};
  options.reserve = HostMemory::Reserve;
  EXPECT_EQ(quern::Job::Create(kernel, options).status().text(),
            "one of reserve and release; accepted: both, or neither");
  options = {};
  options.num_runs = 3;
  EXPECT_EQ(quern::Job::Create(KernelOf("filter i64 > 2", Engine::kGeneric), options).status().text(),
            "num_runs for a kernel that does not sort: 3; accepted: 0, or a kernel of sort");
  EXPECT_EQ(join.Probe(uint64_t{1} << 31).status().text(),
            "batch_rows out of range: 2147483648; accepted: 0 to 2147483647");
}

// A call with a struct of this size, whose bytes beyond the library's are all `beyond`.
template <class Struct, class Call>
std::string WithSize(Struct value, size_t struct_size, int beyond, Call&& call) {
  struct {
    Struct value;
    unsigned char beyond[64];
  } given = {value, {}};
  std::memset(given.beyond, beyond, sizeof(given.beyond));
  given.value.struct_size = struct_size;
  quern_error error = {};
  if (call(&given.value, &error) == QUERN_OK) return "";
  EXPECT_EQ(error.status, QUERN_INVALID_ARGUMENT);
  return error.text;
}

// A struct may be as long as in the ABI's version 2.0, and longer where the rest is zero.
template <class Struct, class Call>
void ExpectSizeIsChecked(const Struct& value, size_t least, Call&& call) {
  const size_t ours = sizeof(Struct);
  const std::string size = std::to_string(ours), longer = std::to_string(ours + 64);
  const std::string accepted = "; accepted: " + std::to_string(least) + " or more";
  EXPECT_EQ(WithSize(value, 8, 0, call), "struct_size too small: 8" + accepted);
  EXPECT_EQ(WithSize(value, least - 1, 0, call), "struct_size too small: " + std::to_string(least - 1) + accepted);
  EXPECT_EQ(WithSize(value, least, 0, call), "");
  EXPECT_EQ(WithSize(value, ours, 7, call), "");
  EXPECT_EQ(WithSize(value, ours + 64, 0, call), "");
  EXPECT_EQ(WithSize(value, ours + 64, 7, call), "struct_size too large: " + longer + ", with a member at byte " +
                                                     size + " that this library does not know; accepted: " + size +
                                                     ", or zeros beyond it");
}
template <class Options, class Call>
void ExpectOptionsAreChecked(size_t least, Call&& call) {
  ExpectSizeIsChecked(Options{}, least, call);
  EXPECT_EQ(WithSize(Options{}, 0, 0, call),
            "struct_size too small: 0; accepted: " + std::to_string(least) + " or more");
}

TEST_F(Arguments, StructsOfOtherSizes) {
  ExpectOptionsAreChecked<quern_job_options>(
      offsetof(quern_job_options, spill), [&](const quern_job_options* options, quern_error* error) {
        quern_job* made = nullptr;
        const quern_status status = quern_job_create(kernel.handle(), options, &made, error);
        quern_job_destroy(made);
        return status;
      });
  ExpectOptionsAreChecked<quern_input_options>(
      offsetof(quern_input_options, context), [&](const quern_input_options* options, quern_error* error) {
        quern_input* made = nullptr;
        const quern_status status = quern_input_create(open.handle(), QUERN_PORT_ROWS, options, &made, error);
        quern_input_destroy(made);
        return status;
      });
  ExpectOptionsAreChecked<quern_output_options>(
      sizeof(quern_output_options), [&](const quern_output_options* options, quern_error* error) {
        quern_output* made = nullptr;
        const quern_status status = quern_output_create(join.handle(), QUERN_PORT_PROBE, options, &made, error);
        quern_output_destroy(made);
        return status;
      });
  ExpectOptionsAreChecked<quern_run_options>(
      sizeof(quern_run_options), [&](const quern_run_options* options, quern_error* error) {
        return quern_job_run(NewJob(kSort).handle(), nullptr, 0, options, nullptr, error);
      });
}

TEST_F(Arguments, BatchesOfOtherSizes) {
  const auto append = [&](const quern_batch* given, quern_error* error) {
    return quern_input_append(input.handle(), given, error);
  };
  const auto push = [&](const quern_batch* given, quern_error* error) {
    return quern_output_push(probe->handle(), given, error);
  };
  const auto test = [&](const quern_batch* given, quern_error* error) {
    uint64_t num_rows = 0;
    return quern_job_filter(filter.handle(), given, nullptr, nullptr, &num_rows, error);
  };
  ExpectSizeIsChecked(batch, sizeof(batch), append);
  ExpectSizeIsChecked(batch, sizeof(batch), push);
  ExpectSizeIsChecked(batch, sizeof(batch), test);
  EXPECT_EQ(WithSize(batch, 0, 7, append), "") << "the members of version 2.0";
}

TEST_F(Arguments, ArrowRowsOfOtherSizes) {
  quern::Job sort = NewJob(kSort);
  Done(sort.BindArrow(QUERN_PORT_ROWS, {&schema.schema, first, first}));
  quern::Input rows = Take(sort.NewInput(QUERN_PORT_ROWS));
  quern_arrow_rows one = {};
  one.num_rows = 1;
  const auto append = [&](const quern_arrow_rows* given, quern_error* error) {
    const auto array = Array();
    const quern_status status = quern_input_append_arrow(rows.handle(), &array->array, given, error);
    EXPECT_EQ(array->times_released, 1);
    return status;
  };
  ExpectSizeIsChecked(one, sizeof(one), append);
  EXPECT_EQ(WithSize(one, 0, 0, append), "struct_size too small: 0; accepted: 32 or more");
}

}  // namespace
}  // namespace quern_test
