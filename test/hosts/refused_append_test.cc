// SPDX-License-Identifier: Apache-2.0
// Appends to which memory is refused before a row was added: the host frees memory and repeats them. (Refusals of every
// request: test/refusals.)
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

struct Case {
  const char* name;
  const char* spec;
  const char* kinds;
  quern_port input, output;
};

std::ostream& operator<<(std::ostream& out, const Case& given) { return out << given.name; }

class RefusedCopies : public testing::TestWithParam<Case> {
 protected:
  static Table TableOf(const StringVector<int32_t>& texts, const std::vector<int64_t>& numbers) {
    return {{texts.column()}, {ColumnOf(numbers)}, numbers.size()};
  }
};

// Strings that are copied need memory before the first row is stored.
TEST_P(RefusedCopies, MayBeRepeatedWhereNoRowWasAdded) {
  const Case& given = GetParam();
  const StringVector<int32_t> first({"a", "the second text of the first batch"}), second({std::string(5000, 'c'), "d"});
  const std::vector<int64_t> numbers = {1, 2}, others = {3, 4};
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    HostMemory memory;
    const quern::Kernel kernel = KernelOf(given.spec, engine);
    const auto rows_of = [&](bool refuses) {
      quern::Job job = Take(quern::Job::Create(kernel, memory.options()));
      quern_input_options options = {};
      options.copy_bytes = true;
      quern::Input input = Take(job.NewInput(given.input, options));
      Done(input.Append(TableOf(first, numbers).batch()));
      if (refuses) {
        memory.limit = memory.used.load();
        for (int i = 0; i < 3; ++i)
          EXPECT_EQ(input.Append(TableOf(second, others).batch()).code(), QUERN_RESOURCE_EXHAUSTED);
        EXPECT_EQ(memory.used, memory.limit) << "a refused call keeps nothing";
        memory.limit = INT64_MAX;
      }
      Done(input.Append(TableOf(second, others).batch()));
      Done(input.Finish());
      Done(job.Finalise());
      return RowsOf(job.NewOutput(given.output), given.kinds);
    };
    const Lines expected = rows_of(false);
    EXPECT_EQ(expected.size(), 4u);
    EXPECT_EQ(rows_of(true), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Operators, RefusedCopies,
    testing::Values(Case{"Join", "join.right_anti keys=utf8 build=i64", "l", QUERN_PORT_BUILD, QUERN_PORT_UNMATCHED},
                    Case{"Sort", "sort keys=utf8:out payload=i64", "sl", QUERN_PORT_ROWS, QUERN_PORT_ROWS}),
    [](const auto& info) { return std::string(info.param.name); });

// An account that makes room for a job by destroying another one, whose memory it gets back meanwhile.
struct RoomMaker {
  HostMemory memory;
  std::optional<quern::Sort> victim;
  int times = 0;

  static bool Reserve(void* host, uint64_t bytes) {
    auto* maker = static_cast<RoomMaker*>(host);
    if (HostMemory::Reserve(&maker->memory, bytes)) return true;
    ++maker->times;
    maker->victim.reset();
    return HostMemory::Reserve(&maker->memory, bytes);
  }
  static void Release(void* host, uint64_t bytes) {
    HostMemory::Release(&static_cast<RoomMaker*>(host)->memory, bytes);
  }
  quern_job_options options() {
    quern_job_options options = {};
    options.reserve = Reserve;
    options.release = Release;
    options.host = this;
    return options;
  }
};

TEST(RefusedAppends, AreAvoidedByAnAccountThatDestroysOtherJobs) {
  std::vector<int64_t> keys(300000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i * 7919 % keys.size());
  const Table table = {{ColumnOf(keys)}, {}, keys.size()};
  RoomMaker maker;
  const quern::Kernel kernel = KernelOf("sort keys=i64:out", Engine::kGeneric);
  maker.victim = Take(quern::Sort::Create(kernel, maker.options()));
  Feed(maker.victim->Rows(), {table});
  maker.memory.limit = maker.memory.used + 1000;
  quern::Aggregate aggregate =
      Take(quern::Aggregate::Create(KernelOf("aggregate keys=i64 aggs=count_star", Engine::kGeneric), maker.options()));
  const std::vector<int64_t> few(keys.begin(), keys.begin() + 20000);
  Feed(aggregate.Rows(), {{{ColumnOf(few)}, {}, few.size()}});
  Done(aggregate.Finalise());
  EXPECT_EQ(maker.times, 1);
  EXPECT_EQ(aggregate.Stats().num_rows, few.size());
}

}  // namespace
}  // namespace quern_test
