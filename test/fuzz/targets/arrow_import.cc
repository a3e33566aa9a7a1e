// SPDX-License-Identifier: Apache-2.0
// Arrow structs through the C ABI: two columns of any formats as key and payload of a join, an aggregation, a sort, a
// filter or a merge. Whatever the structs say, nothing is read beyond a buffer, each array is released exactly once,
// and what is refused is refused in one line.
//
// The first byte chooses the operator, the next four the two columns ({2, 0, 5, 0}: i32 and i64); then come the
// batches, whose bytes fuzz_arrow.cc reads.
#include "runtime/rows/arrow_import.h"

#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "runtime/spec/spec.h"
#include "test/fuzz/targets/fuzz_arrow.h"
#include "test/fuzz/targets/host_calls.h"

namespace quern::fuzz {
namespace {

constexpr int32_t kFirst[] = {0}, kSecond[] = {1};
constexpr uint32_t kMostBatches = 3;

// One input: the columns, their schema and their batches, which live as long as the handles that read them.
class Case {
 public:
  explicit Case(Input* given) : in(given) {
    columns_ = {ReadColumn(in), ReadColumn(in)};
    schema_ = std::make_unique<FuzzSchema>(columns_);
    for (size_t i = 0; i < columns_.size(); ++i) {
      const absl::StatusOr<ColumnType> type = TypeOfArrow(schema_->field(i));
      types_.push_back(type.ok() ? PrintType(*type) + (in->Chance(128) ? ":nullable" : "") : "i64");
    }
    if (in->Chance(32)) schema_->Break(in);
  }
  // After all handles are gone.
  void RequireReleased() const {
    for (const auto& batch : moved_) Require(batch->times_released() == 1, "an array is released once");
  }

  const std::string& key() const { return types_[0]; }
  const std::string& payload() const { return types_[1]; }
  const ArrowSchema* schema() const { return schema_->get(); }

  // Calls a function that takes over an array, with a new one. Returns whether it was accepted.
  template <class Call>
  bool Move(Call&& call) {
    moved_.push_back(NewBatch());
    ArrowArray array = *moved_.back()->get();
    quern_error error;
    const bool accepted = Succeeded(call(&array, &error), error);
    Require(array.release == nullptr, "an array is moved in, also on error");
    return accepted;
  }
  // The same for a function that only reads.
  template <class Call>
  bool Lend(Call&& call) {
    const std::unique_ptr<FuzzArray> batch = NewBatch();
    quern_error error;
    const bool accepted = Succeeded(call(batch->get(), &error), error);
    Require(batch->times_released() == 0, "an array that is only read is not released");
    return accepted;
  }

  Input* const in;

 private:
  std::unique_ptr<FuzzArray> NewBatch() {
    auto batch = std::make_unique<FuzzArray>(columns_, in);
    if (in->Chance(48)) batch->Break(in);
    return batch;
  }

  std::vector<ArrowColumn> columns_;
  std::vector<std::string> types_;
  std::unique_ptr<FuzzSchema> schema_;
  std::vector<std::unique_ptr<FuzzArray>> moved_;
};

// Reads all results of `next` as arrays of the schema that `result_schema` gives. A failure ends it.
template <class Schema, class Next>
void ReadResults(Schema&& result_schema, Next&& next) {
  quern_error error;
  ArrowSchema schema = {};
  RequireSuccess(result_schema(&schema, &error), error, "a binding has a result");
  for (bool more = true; more;) {
    ArrowArray result = {};
    if (!Succeeded(next(&result, &more, &error), error)) break;
    ReadAndRelease(&result, schema);
  }
  schema.release(&schema);
}

void Join(Case* test) {
  const std::string kind = test->in->Chance(128) ? "full" : "inner";
  const KernelHandle kernel = CompileGeneric("join." + kind + " keys=" + test->key() + " build=" + test->payload() +
                                             " probe=" + test->payload());
  if (kernel == nullptr) return;
  const auto join = Create<JoinHandle>(quern_join_create, kernel.get(), uint64_t{0});
  quern_error error;
  if (!Succeeded(
          quern_join_bind_arrow(join.get(), test->schema(), kFirst, kSecond, test->schema(), kFirst, kSecond, &error),
          error))
    return;
  for (uint32_t i = test->in->Below(kMostBatches); i > 0; --i)
    if (!test->Move([&](auto* array, auto* e) { return quern_join_append_arrow(join.get(), array, e); })) return;
  if (!Succeeded(quern_join_finalise(join.get(), &error), error)) return;
  const auto prober = Create<ProberHandle>(quern_prober_create, join.get(), uint64_t{7});
  const auto read = [&] {
    ReadResults(
        [&](auto* schema, auto* e) { return quern_join_result_schema(join.get(), schema, e); },
        [&](auto* array, bool* more, auto* e) { return quern_prober_next_arrow(prober.get(), array, more, e); });
  };
  if (test->Move([&](auto* array, auto* e) { return quern_prober_input_arrow(prober.get(), array, e); })) read();
  if (kind == "full" && Succeeded(quern_prober_input_unmatched(prober.get(), &error), error)) read();
}

void Aggregate(Case* test) {
  constexpr const char* kFunctions[] = {"min", "count_distinct", "first", "any", "sum", "string_agg"};
  const std::string function = kFunctions[test->in->Below(std::size(kFunctions))];
  const KernelHandle kernel = CompileGeneric("aggregate keys=" + test->key() + " aggs=" + function + "(" +
                                             test->payload() + (function == "string_agg" ? ",x'2c')" : ")"));
  if (kernel == nullptr) return;
  const auto aggregate = Create<AggregateHandle>(quern_aggregate_create, kernel.get(), uint64_t{0});
  quern_error error;
  if (!Succeeded(quern_aggregate_bind_arrow(aggregate.get(), test->schema(), kFirst, kSecond, &error), error)) return;
  for (uint32_t i = test->in->Below(kMostBatches); i > 0; --i)
    if (!test->Move([&](auto* array, auto* e) { return quern_aggregate_append_arrow(aggregate.get(), array, e); }))
      return;
  if (!Succeeded(quern_aggregate_finalise(aggregate.get(), &error), error)) return;
  const quern_group_columns which = test->in->Chance(64) ? QUERN_GROUP_STATES : QUERN_GROUP_RESULTS;
  const auto groups = Create<GroupsHandle>(quern_groups_create, aggregate.get(), which, uint64_t{7});
  ReadResults([&](auto* schema, auto* e) { return quern_aggregate_result_schema(aggregate.get(), which, schema, e); },
              [&](auto* array, bool* more, auto* e) { return quern_groups_next_arrow(groups.get(), array, more, e); });
}

void Sort(Case* test) {
  const std::string order = test->in->Chance(128) ? ":desc:out" : ":nulls_first:out";
  const std::string limit = test->in->Chance(64) ? " limit=3 stable" : "";
  const KernelHandle kernel =
      CompileGeneric("sort keys=" + test->key() + order + " payload=" + test->payload() + limit);
  if (kernel == nullptr) return;
  const auto sort = Create<SortHandle>(quern_sort_create, kernel.get(), uint64_t{0});
  quern_error error;
  if (!Succeeded(quern_sort_bind_arrow(sort.get(), test->schema(), kFirst, kSecond, &error), error)) return;
  for (uint32_t i = test->in->Below(kMostBatches); i > 0; --i)
    if (!test->Move([&](auto* array, auto* e) { return quern_sort_append_arrow(sort.get(), array, e); })) return;
  if (!Succeeded(quern_sort_finalise(sort.get(), &error), error)) return;
  const auto sorted = Create<SortedHandle>(quern_sorted_create, sort.get(), uint64_t{7});
  ReadResults(
      [&](auto* schema, auto* e) { return quern_sort_result_schema(sort.get(), schema, e); },
      [&](auto* array, bool* more, auto* e) { return quern_sorted_next_arrow(sorted.get(), array, nullptr, more, e); });
}

// Drives a merge until it is done or refuses; every run gets a batch and then its end.
void ReadMerged(Case* test, quern_merge* merge, const ArrowSchema& schema) {
  std::vector<uint32_t> inputs(2, 0);
  for (;;) {
    quern_error error;
    ArrowArray result = {};
    quern_merge_state state = QUERN_MERGE_DONE;
    uint32_t run = 0;
    if (!Succeeded(quern_merge_next_arrow(merge, &result, &state, &run, &error), error)) return;
    ReadAndRelease(&result, schema);
    if (state == QUERN_MERGE_DONE) return;
    if (state == QUERN_MERGE_ROWS) continue;
    const bool accepted =
        inputs[run]++ < 2
            ? test->Move([&](auto* array, auto* e) { return quern_merge_input_arrow(merge, run, array, e); })
            : Succeeded(quern_merge_end(merge, run, &error), error);
    if (!accepted) return;
  }
}

void Merge(Case* test) {
  const KernelHandle kernel = CompileGeneric("sort keys=" + test->key() + ":out payload=" + test->payload());
  if (kernel == nullptr) return;
  const auto merge = Create<MergeHandle>(quern_merge_create, kernel.get(), uint64_t{0}, 2U, uint64_t{7});
  quern_error error;
  if (!Succeeded(quern_merge_bind_arrow(merge.get(), test->schema(), kFirst, kSecond, &error), error)) return;
  ArrowSchema schema = {};
  RequireSuccess(quern_merge_result_schema(merge.get(), &schema, &error), error, "a binding has a result");
  ReadMerged(test, merge.get(), schema);
  schema.release(&schema);
}

void Filter(Case* test) {
  const KernelHandle kernel =
      CompileGeneric("filter " + test->key() + " is not null or " + test->payload() + " >= " + test->payload());
  if (kernel == nullptr) return;
  const auto filter = Create<FilterHandle>(quern_filter_create, kernel.get());
  quern_error error;
  const int32_t columns[] = {0, 1, 1};
  if (!Succeeded(quern_filter_bind_arrow(filter.get(), test->schema(), columns, &error), error)) return;
  for (uint32_t i = 0; i < kMostBatches; ++i) {
    uint64_t num_rows = 0;
    uint8_t bitmap[8];
    test->Lend([&](const auto* array, auto* e) {
      return quern_filter_bitmap_arrow(filter.get(), array, bitmap, &num_rows, e);
    });
  }
}

}  // namespace
}  // namespace quern::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quern::fuzz::Input in(data, size);
  constexpr void (*kOperators[])(quern::fuzz::Case*) = {quern::fuzz::Join, quern::fuzz::Aggregate, quern::fuzz::Sort,
                                                        quern::fuzz::Filter, quern::fuzz::Merge};
  const uint32_t number = in.Below(std::size(kOperators));
  quern::fuzz::Case test(&in);
  kOperators[number](&test);
  test.RequireReleased();
  return 0;
}
