// SPDX-License-Identifier: Apache-2.0
// Quern for hosts in C++20: the C ABI (quern.h) with handles that close themselves and errors that cannot be
// overlooked. A header only, without exceptions; it needs only the standard library and libquern.so.
//
//     auto kernel = quern::Kernel::Compile("join.inner keys=i64 build=f64 probe=rowid");
//     if (!kernel.ok()) return Fail(kernel.status().text());
//     auto join = quern::Join::Create(*kernel);
//     ...
//     quern::Status status = join->Append(batch);          // quern_batch: pointers into the host's vectors
//     status = join->Finalise();
//     auto prober = quern::Prober::Create(*join);
//     status = prober->Input(probe_batch);
//     while (true) {
//       quern::Result<quern::Rows> rows = prober->Next();
//       if (!rows.ok()) ..
//       Use(rows->result);
//       if (!rows->more) break;
//     }
//
// An aggregation, with a kernel for "aggregate keys=i64 aggs=count_star,sum(f64)":
//
//     auto aggregate = quern::Aggregate::Create(*kernel);
//     quern::Status status = aggregate->Append(batch);
//     status = aggregate->Finalise();
//     auto groups = quern::Groups::Create(*aggregate);
//     ... groups->Next() as above
//
// A sort, with a kernel for "sort keys=f64:desc:out payload=rowid limit=100":
//
//     auto sort = quern::Sort::Create(*kernel);
//     quern::Status status = sort->Append(batch);
//     status = sort->Finalise();
//     auto sorted = quern::SortedRows::Create(*sort);
//     ... sorted->Next() as above, in order; quern::Merge merges the output of several sorts
//
// A filter, with a kernel for "filter utf8 = 'R' and i64 >= 3":
//
//     auto filter = quern::Filter::Create(*kernel);
//     std::vector<uint32_t> rows(batch.num_rows);
//     quern::Result<uint64_t> passed = filter->Select(batch, rows.data());     // rows[0] .. rows[*passed - 1]
//
// Batches, results and statistics are the C structs. Threads, ownership and costs are those that quern.h states, unless
// this header says otherwise.
//
// Everything is in the inline namespace quern::v1, so that its symbols differ from those of other major versions and
// from the library's own, which use the same outer name and are never visible outside it.
#ifndef QUERN_V1_HPP_
#define QUERN_V1_HPP_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "quern.h"

namespace quern {
inline namespace v1 {

// Success, or a code with one line of text. Must not be ignored.
class [[nodiscard]] Status {
 public:
  Status() = default;
  explicit Status(const quern_error& error) : code_(error.status), text_(error.text) {}

  bool ok() const { return code_ == QUERN_OK; }
  quern_status code() const { return code_; }
  // `<what is wrong>: <the value>; <what is accepted>`; empty on success.
  const std::string& text() const { return text_; }

 private:
  quern_status code_ = QUERN_OK;
  std::string text_;
};

// A value, or the reason why there is none. As with std::optional, reading a value that does not exist is the caller's
// mistake.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor): `return value;`
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor): `return status;`

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

namespace internal {

// Calls a function of the ABI whose last parameter is the error object.
template <class Function, class... Arguments>
Status Call(Function function, Arguments... arguments) {
  quern_error error;
  return function(arguments..., &error) == QUERN_OK ? Status() : Status(error);
}

// The same, for a function that returns its result through the parameter before the error object.
template <class Value, class Function, class... Arguments>
Result<Value> Answer(Function function, Arguments... arguments) {
  Value value = {};
  Status status = Call(function, arguments..., &value);
  if (!status.ok()) return status;
  return value;
}

// The counters that a function of the ABI returns.
template <class Stats, class Function, class Handle>
Stats StatsOf(Function get, const Handle* handle) {
  Stats stats = {};
  if constexpr (requires { stats.struct_size; }) stats.struct_size = sizeof(stats);
  get(handle, &stats);
  return stats;
}

template <auto kDestroy>
struct Destroy {
  template <class Handle>
  void operator()(Handle* handle) const {
    kDestroy(handle);
  }
};

// The callback that passes results to a host's function object, whose address is the context.
template <class OnResult>
quern_on_result ResultCall() {
  return [](void* callee, const quern_result* result) -> bool { return (*static_cast<OnResult*>(callee))(*result); };
}

}  // namespace internal

enum class Engine { kAuto = QUERN_ENGINE_AUTO, kJit = QUERN_ENGINE_JIT, kGeneric = QUERN_ENGINE_GENERIC };

// When a kernel of Engine::kAuto is compiled.
enum class CompileWhen {
  kBackground = QUERN_COMPILE_BACKGROUND,  // in the background, as soon as that pays off
  kNow = QUERN_COMPILE_NOW,                // before Compile returns
};

// The members mean the same as those of quern_compile_options.
struct CompileOptions {
  Engine engine = Engine::kAuto;
  CompileWhen when = CompileWhen::kBackground;
  std::string_view params = {};
  uint64_t expected_rows = 0;
  uint64_t compile_after_rows = 0;
  bool swap_waits = false;
};

// Where the bytes of appended strings and binaries live.
enum class StringBytes {
  kStay,    // the host keeps them in place until the join or sort is gone
  kCopied,  // the join or sort copies them
};

// A kernel for one spec on this machine. *Threads*: any number may share it.
class Kernel {
 public:
  // Makes the kernel, or finds it in the process's cache. `params`: "name=value name=value", as `quern dump plan`
  // prints them.
  // *Cost*: see quern_compile. *Errors*: QUERN_INVALID_ARGUMENT for a spec or parameter that is not accepted.
  static Result<Kernel> Compile(std::string_view spec, Engine engine = Engine::kAuto, std::string_view params = {}) {
    quern_kernel* handle = nullptr;
    Status status = internal::Call(quern_compile, std::string(spec).c_str(), static_cast<quern_engine>(engine),
                                   std::string(params).c_str(), &handle);
    if (!status.ok()) return status;
    return Kernel(handle);
  }
  static Result<Kernel> Compile(std::string_view spec, const CompileOptions& options) {
    const std::string params(options.params);
    quern_compile_options given = {};
    given.struct_size = sizeof(given);
    given.engine = static_cast<quern_engine>(options.engine);
    given.when = static_cast<quern_compile_when>(options.when);
    given.params = params.c_str();
    given.expected_rows = options.expected_rows;
    given.compile_after_rows = options.compile_after_rows;
    given.swap_waits = options.swap_waits;
    auto handle = internal::Answer<quern_kernel*>(quern_compile_with, std::string(spec).c_str(), &given);
    if (!handle.ok()) return handle.status();
    return Kernel(*handle);
  }

  // Announces the rows of a job that uses an existing kernel.
  void ExpectRows(uint64_t num_rows) { quern_kernel_expect_rows(handle_.get(), num_rows); }
  uint32_t AdviseThreads(uint64_t rows, uint32_t available, std::span<const uint64_t> groups = {},
                         uint64_t* look_rows = nullptr) const {
    return quern_advise_threads(handle_.get(), rows, available, groups.data(), groups.size(), look_rows);
  }

  // Describes the kernel: "spec", "plan", "layout", "engine", "cache", "compile_ms", "code_bytes", "warning". Empty for
  // any other name.
  std::string_view Text(const char* name) const {
    const char* text = quern_kernel_text(handle_.get(), name);
    return text == nullptr ? std::string_view() : std::string_view(text);
  }

  // The counters of all jobs that have run the kernel. An operator has counters of its own.
  quern_counters Counters() const {
    return internal::StatsOf<quern_counters>(quern_kernel_get_counters, handle_.get());
  }

  quern_kernel* handle() const { return handle_.get(); }

 private:
  explicit Kernel(quern_kernel* handle) : handle_(handle) {}
  std::unique_ptr<quern_kernel, internal::Destroy<quern_kernel_destroy>> handle_;
};

// The memory of the process's kernels, and the hits of its cache.
inline quern_cache_stats CacheStats() {
  quern_cache_stats stats = {};
  stats.struct_size = sizeof(stats);
  quern_cache_get_stats(&stats);
  return stats;
}

// Selects the tuning profile of kernels: a file, "off", or nullptr for the one that the process finds; or the text of a
// profile. For tuning, see quern_tune.
inline Status SetProfile(const char* path) { return internal::Call(quern_set_profile, path); }
inline Status SetProfileText(std::string_view text) {
  return internal::Call(quern_set_profile_text, text.data(), text.size());
}

// The positions of one side's columns in Arrow batches: child numbers of the struct schema, -1 for a rowid.
struct ArrowSide {
  const ArrowSchema* schema = nullptr;
  std::span<const int32_t> keys;
  std::span<const int32_t> payload;
};

// Options of Join::Run, Aggregate::Run and Sort::Run. Zeros: as many threads as the machine has, 65536 rows.
struct RunOptions {
  uint32_t threads = 0;
  uint64_t batch_rows = 0;  // the most rows of a result
};

// The build side of one join. *Threads*: one at a time until Finalise has returned, except for FinaliseShared and
// appenders; after that only probers use it.
class Join {
 public:
  // *Units*: memory_limit in bytes, of table and results; 0: none.
  static Result<Join> Create(const Kernel& kernel, uint64_t memory_limit = 0) {
    auto handle = internal::Answer<quern_join*>(quern_join_create, kernel.handle(), memory_limit);
    if (!handle.ok()) return handle.status();
    return Join(*handle);
  }

  // Adds a batch of the host's own vectors. *Ownership*: see StringBytes; nothing else must stay.
  Status Append(const quern_batch& batch, StringBytes bytes = StringBytes::kStay) {
    return internal::Call(quern_join_append, handle_.get(), &batch, bytes == StringBytes::kCopied);
  }

  // Call both before the first Arrow batch. The spans must be as long as the spec's lists.
  Status BindArrow(const ArrowSide& build, const ArrowSide& probe) {
    return internal::Call(quern_join_bind_arrow, handle_.get(), build.schema, build.keys.data(), build.payload.data(),
                          probe.schema, probe.keys.data(), probe.payload.data());
  }

  // *Ownership*: the caller releases `schema`.
  Status ResultSchema(ArrowSchema* schema) const {
    return internal::Call(quern_join_result_schema, handle_.get(), schema);
  }

  // *Ownership*: the array is moved in, also on error; `rows` is only read. *Cost*: see quern_join_append_arrow.
  Status AppendArrow(ArrowArray* batch, const quern_arrow_rows* rows = nullptr) {
    return internal::Call(quern_join_append_arrow_rows, handle_.get(), batch, rows);
  }

  Status Finalise() { return internal::Call(quern_join_finalise, handle_.get()); }

  // The same, by all threads that call it. *Threads*: any number, when their appenders have finished.
  Status FinaliseShared() { return internal::Call(quern_join_finalise_shared, handle_.get()); }

  // Appends, finalises, probes and scans the unmatched build rows on threads of the library. `on_result` takes a const
  // quern_result& and returns whether it wants more. Returns the number of rows. *Threads*: `on_result` is called from
  // several at once. *Ownership*: as Append with StringBytes::kStay.
  template <class OnResult>
  Result<uint64_t> Run(std::span<const quern_batch> build, std::span<const quern_batch> probe,
                       const RunOptions& options, OnResult&& on_result) {
    const quern_on_result call = internal::ResultCall<std::remove_reference_t<OnResult>>();
    return RunWith(build, probe, options, call, const_cast<void*>(static_cast<const void*>(&on_result)));
  }

  // The same without results: only their number is returned.
  Result<uint64_t> Run(std::span<const quern_batch> build, std::span<const quern_batch> probe,
                       const RunOptions& options = {}) {
    return RunWith(build, probe, options, nullptr, nullptr);
  }

  // The table's layout: "unchained", "dense", .. Empty before finalise. *Ownership*: static text.
  std::string_view Layout() const { return quern_join_layout(handle_.get()); }

  quern_join_stats Stats() const { return internal::StatsOf<quern_join_stats>(quern_join_get_stats, handle_.get()); }
  quern_counters Counters() const { return internal::StatsOf<quern_counters>(quern_join_get_counters, handle_.get()); }

  quern_join* handle() const { return handle_.get(); }

 private:
  explicit Join(quern_join* handle) : handle_(handle) {}

  Result<uint64_t> RunWith(std::span<const quern_batch> build, std::span<const quern_batch> probe,
                           const RunOptions& options, quern_on_result on_result, void* context) {
    return internal::Answer<uint64_t>(quern_join_run, handle_.get(), build.data(), build.size(), probe.data(),
                                      probe.size(), options.threads, options.batch_rows, on_result, context);
  }

  std::unique_ptr<quern_join, internal::Destroy<quern_join_destroy>> handle_;
};

// Adds batches to a join from one thread, while other appenders do so from theirs. *Threads*: one.
class Appender {
 public:
  static Result<Appender> Create(const Join& join) {
    auto handle = internal::Answer<quern_appender*>(quern_appender_create, join.handle());
    if (!handle.ok()) return handle.status();
    return Appender(*handle);
  }

  // Like those of Join. A failure ends the work of all appenders of the join.
  Status Append(const quern_batch& batch, StringBytes bytes = StringBytes::kStay) {
    return internal::Call(quern_appender_append, handle_.get(), &batch, bytes == StringBytes::kCopied);
  }
  Status AppendArrow(ArrowArray* batch, const quern_arrow_rows* rows = nullptr) {
    return internal::Call(quern_appender_append_arrow_rows, handle_.get(), batch, rows);
  }

  // Hands the rows over, before the join is finalised. Destroying an appender that has not finished drops its rows.
  Status Finish() { return internal::Call(quern_appender_finish, handle_.get()); }

  quern_appender* handle() const { return handle_.get(); }

 private:
  explicit Appender(quern_appender* handle) : handle_(handle) {}
  std::unique_ptr<quern_appender, internal::Destroy<quern_appender_destroy>> handle_;
};

// Rows of a result, valid until the next call on their prober or groups.
struct Rows {
  quern_result result = {};
  bool more = false;  // whether to call again before the next input
};

// Probes a finalised join, which it keeps alive. *Threads*: one; any number of probers may share the join.
class Prober {
 public:
  // batch_rows: the most rows of a result; 0: 65536.
  static Result<Prober> Create(const Join& join, uint64_t batch_rows = 0) {
    auto handle = internal::Answer<quern_prober*>(quern_prober_create, join.handle(), batch_rows);
    if (!handle.ok()) return handle.status();
    return Prober(*handle);
  }

  // Starts a batch. *Ownership*: vectors and selections must stay until Next has returned more = false; an array is
  // moved in, also on error.
  Status Input(const quern_batch& batch) { return internal::Call(quern_prober_input, handle_.get(), &batch); }
  Status InputArrow(ArrowArray* batch, const quern_arrow_rows* rows = nullptr) {
    return internal::Call(quern_prober_input_arrow_rows, handle_.get(), batch, rows);
  }

  // Starts the scan of unmatched build rows, when all probers have finished all inputs. Probers that call it share the
  // rows.
  Status InputUnmatched() { return internal::Call(quern_prober_input_unmatched, handle_.get()); }

  Result<Rows> Next() {
    Rows rows;
    Status status = internal::Call(quern_prober_next, handle_.get(), &rows.result, &rows.more);
    if (!status.ok()) return status;
    return rows;
  }

  // The same as an Arrow struct array; returns `more`. *Ownership*: the caller releases `result`; it may outlive the
  // prober and the join.
  Result<bool> NextArrow(ArrowArray* result) {
    return internal::Answer<bool>(quern_prober_next_arrow, handle_.get(), result);
  }

 private:
  explicit Prober(quern_prober* handle) : handle_(handle) {}
  std::unique_ptr<quern_prober, internal::Destroy<quern_prober_destroy>> handle_;
};

// The columns of an aggregation's output besides its keys.
enum class GroupColumns {
  kResults = QUERN_GROUP_RESULTS,
  kStates = QUERN_GROUP_STATES,  // binary columns for AppendStates of another aggregation of the same spec
};

// One aggregation. *Threads*: one at a time until Finalise has returned, except for FinaliseShared and appenders; after
// that only groups use it.
class Aggregate {
 public:
  // *Units*: memory_limit in bytes, of tables and results; 0: none.
  static Result<Aggregate> Create(const Kernel& kernel, uint64_t memory_limit = 0) {
    auto handle = internal::Answer<quern_aggregate*>(quern_aggregate_create, kernel.handle(), memory_limit);
    if (!handle.ok()) return handle.status();
    return Aggregate(*handle);
  }

  // Hints about the groups, before the first batch; a wrong hint costs speed, never correctness.
  Status HintGroups(uint64_t expected_groups) {
    return internal::Call(quern_aggregate_hint_groups, handle_.get(), expected_groups);
  }
  Status HintRange(uint32_t key, int64_t min, int64_t max) {
    return internal::Call(quern_aggregate_hint_range, handle_.get(), key, min, max);
  }

  // Adds a batch of the host's own vectors. Nothing of it is kept.
  Status Append(const quern_batch& batch) { return internal::Call(quern_aggregate_append, handle_.get(), &batch); }
  // Adds the output of another aggregation of the same spec with GroupColumns::kStates.
  Status AppendStates(const quern_batch& batch) {
    return internal::Call(quern_aggregate_append_states, handle_.get(), &batch);
  }

  // Call it before the first Arrow batch; states need no binding. The spans must be as long as the spec's lists.
  Status BindArrow(const ArrowSide& input) {
    return internal::Call(quern_aggregate_bind_arrow, handle_.get(), input.schema, input.keys.data(),
                          input.payload.data());
  }

  // *Ownership*: the caller releases `schema`.
  Status ResultSchema(ArrowSchema* schema, GroupColumns columns = GroupColumns::kResults) const {
    return internal::Call(quern_aggregate_result_schema, handle_.get(), static_cast<quern_group_columns>(columns),
                          schema);
  }

  // *Ownership*: the array is moved in, and released when they return. *Cost*: see quern_join_append_arrow.
  Status AppendArrow(ArrowArray* batch, const quern_arrow_rows* rows = nullptr) {
    return internal::Call(quern_aggregate_append_arrow_rows, handle_.get(), batch, rows);
  }
  Status AppendStatesArrow(ArrowArray* batch) {
    return internal::Call(quern_aggregate_append_states_arrow, handle_.get(), batch);
  }

  Status Finalise() { return internal::Call(quern_aggregate_finalise, handle_.get()); }

  // The same, by all threads that call it. *Threads*: any number, when their appenders have finished.
  Status FinaliseShared() { return internal::Call(quern_aggregate_finalise_shared, handle_.get()); }

  // Appends, finalises and reads on threads of the library. `on_result` takes a const quern_result& and returns whether
  // it wants more. Returns the number of groups. *Threads*: `on_result` is called from several at once.
  template <class OnResult>
  Result<uint64_t> Run(std::span<const quern_batch> batches, const RunOptions& options, OnResult&& on_result) {
    const quern_on_result call = internal::ResultCall<std::remove_reference_t<OnResult>>();
    return RunWith(batches, options, call, const_cast<void*>(static_cast<const void*>(&on_result)));
  }

  // The same without results: only their number is returned.
  Result<uint64_t> Run(std::span<const quern_batch> batches, const RunOptions& options = {}) {
    return RunWith(batches, options, nullptr, nullptr);
  }

  // The table's layout: "single", "dense", .. Empty before finalise. *Ownership*: static text.
  std::string_view Layout() const { return quern_aggregate_layout(handle_.get()); }

  quern_aggregate_stats Stats() const {
    return internal::StatsOf<quern_aggregate_stats>(quern_aggregate_get_stats, handle_.get());
  }
  quern_counters Counters() const {
    return internal::StatsOf<quern_counters>(quern_aggregate_get_counters, handle_.get());
  }

  quern_aggregate* handle() const { return handle_.get(); }

 private:
  explicit Aggregate(quern_aggregate* handle) : handle_(handle) {}

  Result<uint64_t> RunWith(std::span<const quern_batch> batches, const RunOptions& options, quern_on_result on_result,
                           void* context) {
    return internal::Answer<uint64_t>(quern_aggregate_run, handle_.get(), batches.data(), batches.size(),
                                      options.threads, options.batch_rows, on_result, context);
  }

  std::unique_ptr<quern_aggregate, internal::Destroy<quern_aggregate_destroy>> handle_;
};

// Adds batches to an aggregation from one thread, while other appenders do so from theirs. *Threads*: one.
class AggregateAppender {
 public:
  static Result<AggregateAppender> Create(const Aggregate& aggregate) {
    auto handle = internal::Answer<quern_aggregate_appender*>(quern_aggregate_appender_create, aggregate.handle());
    if (!handle.ok()) return handle.status();
    return AggregateAppender(*handle);
  }

  // Like those of Aggregate. A failure ends the work of all appenders of the aggregation.
  Status Append(const quern_batch& batch) {
    return internal::Call(quern_aggregate_appender_append, handle_.get(), &batch);
  }
  Status AppendStates(const quern_batch& batch) {
    return internal::Call(quern_aggregate_appender_append_states, handle_.get(), &batch);
  }
  Status AppendArrow(ArrowArray* batch, const quern_arrow_rows* rows = nullptr) {
    return internal::Call(quern_aggregate_appender_append_arrow_rows, handle_.get(), batch, rows);
  }
  Status AppendStatesArrow(ArrowArray* batch) {
    return internal::Call(quern_aggregate_appender_append_states_arrow, handle_.get(), batch);
  }

  // Hands the groups over, before the aggregation is finalised. Destroying an appender that has not finished drops its
  // rows.
  Status Finish() { return internal::Call(quern_aggregate_appender_finish, handle_.get()); }

  quern_aggregate_appender* handle() const { return handle_.get(); }

 private:
  explicit AggregateAppender(quern_aggregate_appender* handle) : handle_(handle) {}
  std::unique_ptr<quern_aggregate_appender, internal::Destroy<quern_aggregate_appender_destroy>> handle_;
};

// Options of Groups.
struct GroupOptions {
  GroupColumns columns = GroupColumns::kResults;
  // Only one of so many partitions of the groups, by the hash of the key.
  uint32_t partition = 0;
  uint32_t num_partitions = 1;
  uint64_t batch_rows = 0;  // the most rows of a result; 0: 65536
};

// Reads the groups of a finalised aggregation, which it keeps alive. *Threads*: one; any number of readers share the
// groups, and each group comes out of one reader, once.
class Groups {
 public:
  static Result<Groups> Create(const Aggregate& aggregate, const GroupOptions& options = {}) {
    auto handle = internal::Answer<quern_groups*>(quern_groups_create_partition, aggregate.handle(),
                                                  static_cast<quern_group_columns>(options.columns), options.partition,
                                                  options.num_partitions, options.batch_rows);
    if (!handle.ok()) return handle.status();
    return Groups(*handle);
  }

  Result<Rows> Next() {
    Rows rows;
    Status status = internal::Call(quern_groups_next, handle_.get(), &rows.result, &rows.more);
    if (!status.ok()) return status;
    return rows;
  }

  // The same as an Arrow struct array; returns `more`. *Ownership*: the caller releases `result`; it may outlive all
  // handles.
  Result<bool> NextArrow(ArrowArray* result) {
    return internal::Answer<bool>(quern_groups_next_arrow, handle_.get(), result);
  }

 private:
  explicit Groups(quern_groups* handle) : handle_(handle) {}
  std::unique_ptr<quern_groups, internal::Destroy<quern_groups_destroy>> handle_;
};

// One sort. *Threads*: one at a time until Finalise has returned, except for FinaliseShared, appenders and
// SetThreshold; after that only readers use it.
class Sort {
 public:
  // *Units*: memory_limit in bytes, of rows and results; 0: none.
  static Result<Sort> Create(const Kernel& kernel, uint64_t memory_limit = 0) {
    auto handle = internal::Answer<quern_sort*>(quern_sort_create, kernel.handle(), memory_limit);
    if (!handle.ok()) return handle.status();
    return Sort(*handle);
  }

  // Adds a batch of the host's own vectors. *Ownership*: see StringBytes; nothing else must stay.
  Status Append(const quern_batch& batch, StringBytes bytes = StringBytes::kStay) {
    return internal::Call(quern_sort_append, handle_.get(), &batch, bytes == StringBytes::kCopied);
  }

  // Call it before the first Arrow batch. The spans must be as long as the spec's lists.
  Status BindArrow(const ArrowSide& input) {
    return internal::Call(quern_sort_bind_arrow, handle_.get(), input.schema, input.keys.data(), input.payload.data());
  }

  // *Ownership*: the caller releases `schema`.
  Status ResultSchema(ArrowSchema* schema) const {
    return internal::Call(quern_sort_result_schema, handle_.get(), schema);
  }

  // *Ownership*: the array is moved in, also on error. *Cost*: see quern_join_append_arrow.
  Status AppendArrow(ArrowArray* batch, const quern_arrow_rows* rows = nullptr) {
    return internal::Call(quern_sort_append_arrow_rows, handle_.get(), batch, rows);
  }

  // The keys, as one row, that later rows must precede (or equal) to come out under a limit; nothing while there is no
  // such row yet. *Ownership*: valid until the next GetThreshold. *Threads*: one at a time, while appenders append.
  Result<std::optional<quern_result>> GetThreshold() {
    quern_result row = {};
    bool exists = false;
    Status status = internal::Call(quern_sort_get_threshold, handle_.get(), &row, &exists);
    if (!status.ok()) return status;
    return exists ? std::optional<quern_result>(row) : std::nullopt;
  }
  // Declares that rows after this row of keys need not come out. *Ownership*: nothing is kept. *Threads*: any.
  Status SetThreshold(const quern_batch& keys) {
    return internal::Call(quern_sort_set_threshold, handle_.get(), &keys);
  }

  Status Finalise() { return internal::Call(quern_sort_finalise, handle_.get()); }

  // The same, by all threads that call it. *Threads*: any number, when their appenders have finished.
  Status FinaliseShared() { return internal::Call(quern_sort_finalise_shared, handle_.get()); }

  // Appends and finalises on threads of the library, then reads on this one: `on_result` takes a const quern_result&
  // and returns whether it wants more; results come in order. Returns the number of rows. *Ownership*: as Append with
  // StringBytes::kStay.
  template <class OnResult>
  Result<uint64_t> Run(std::span<const quern_batch> batches, const RunOptions& options, OnResult&& on_result) {
    const quern_on_result call = internal::ResultCall<std::remove_reference_t<OnResult>>();
    return RunWith(batches, options, call, const_cast<void*>(static_cast<const void*>(&on_result)));
  }

  // The same without reading: all rows remain for readers.
  Result<uint64_t> Run(std::span<const quern_batch> batches, const RunOptions& options = {}) {
    return RunWith(batches, options, nullptr, nullptr);
  }

  // How rows were sorted: "radix", "sorted", .. Empty before finalise. *Ownership*: static text.
  std::string_view Method() const { return quern_sort_method(handle_.get()); }

  quern_sort_stats Stats() const { return internal::StatsOf<quern_sort_stats>(quern_sort_get_stats, handle_.get()); }
  quern_counters Counters() const { return internal::StatsOf<quern_counters>(quern_sort_get_counters, handle_.get()); }

  quern_sort* handle() const { return handle_.get(); }

 private:
  explicit Sort(quern_sort* handle) : handle_(handle) {}

  Result<uint64_t> RunWith(std::span<const quern_batch> batches, const RunOptions& options, quern_on_result on_result,
                           void* context) {
    return internal::Answer<uint64_t>(quern_sort_run, handle_.get(), batches.data(), batches.size(), options.threads,
                                      options.batch_rows, on_result, context);
  }

  std::unique_ptr<quern_sort, internal::Destroy<quern_sort_destroy>> handle_;
};

// Adds batches to a sort from one thread, while other appenders do so from theirs. *Threads*: one.
class SortAppender {
 public:
  static Result<SortAppender> Create(const Sort& sort) {
    auto handle = internal::Answer<quern_sort_appender*>(quern_sort_appender_create, sort.handle());
    if (!handle.ok()) return handle.status();
    return SortAppender(*handle);
  }

  // Like those of Sort. A failure ends the work of all appenders of the sort.
  Status Append(const quern_batch& batch, StringBytes bytes = StringBytes::kStay) {
    return internal::Call(quern_sort_appender_append, handle_.get(), &batch, bytes == StringBytes::kCopied);
  }
  Status AppendArrow(ArrowArray* batch, const quern_arrow_rows* rows = nullptr) {
    return internal::Call(quern_sort_appender_append_arrow_rows, handle_.get(), batch, rows);
  }

  // Hands the rows over, before the sort is finalised. Destroying an appender that has not finished drops its rows.
  Status Finish() { return internal::Call(quern_sort_appender_finish, handle_.get()); }

  quern_sort_appender* handle() const { return handle_.get(); }

 private:
  explicit SortAppender(quern_sort_appender* handle) : handle_(handle) {}
  std::unique_ptr<quern_sort_appender, internal::Destroy<quern_sort_appender_destroy>> handle_;
};

// Rows of a sort, valid until the next call on their reader.
struct PlacedRows : Rows {
  uint64_t position = 0;  // the position of the first of them among all rows of the sort
};
// The same without the rows.
struct Place {
  bool more = false;
  uint64_t position = 0;
};

// Reads the rows of a finalised sort, which it keeps alive. A single reader returns all of them in order; each of
// several takes the next ones that no reader has taken. *Threads*: one.
class SortedRows {
 public:
  // batch_rows: the most rows of a result; 0: 65536.
  static Result<SortedRows> Create(const Sort& sort, uint64_t batch_rows = 0) {
    auto handle = internal::Answer<quern_sorted*>(quern_sorted_create, sort.handle(), batch_rows);
    if (!handle.ok()) return handle.status();
    return SortedRows(*handle);
  }

  Result<PlacedRows> Next() {
    PlacedRows rows;
    Status status = internal::Call(quern_sorted_next, handle_.get(), &rows.result, &rows.position, &rows.more);
    if (!status.ok()) return status;
    return rows;
  }

  // The same as an Arrow struct array. *Ownership*: the caller releases `result`; it may outlive all handles.
  Result<Place> NextArrow(ArrowArray* result) {
    Place place;
    Status status = internal::Call(quern_sorted_next_arrow, handle_.get(), result, &place.position, &place.more);
    if (!status.ok()) return status;
    return place;
  }

 private:
  explicit SortedRows(quern_sorted* handle) : handle_(handle) {}
  std::unique_ptr<quern_sorted, internal::Destroy<quern_sorted_destroy>> handle_;
};

// The next step of a merge.
struct MergeStep {
  quern_merge_state state = QUERN_MERGE_DONE;
  uint32_t run = 0;  // the run that needs its next batch or its end, if the state is QUERN_MERGE_NEEDS_INPUT
};
// The same with the rows whose position is certain by then, valid until the next call on the merge.
struct MergedRows : MergeStep {
  quern_result result = {};
};

// Options of Merge.
struct MergeOptions {
  uint64_t memory_limit = 0;  // bytes; 0: none
  uint64_t batch_rows = 0;    // the most rows of a result; 0: 65536
};

// Merges sorted runs, whose batches it requests. *Threads*: one at a time.
class Merge {
 public:
  // Takes a kernel of a sort without window functions. num_runs: 1 to 65536.
  static Result<Merge> Create(const Kernel& kernel, uint32_t num_runs, const MergeOptions& options = {}) {
    auto handle = internal::Answer<quern_merge*>(quern_merge_create, kernel.handle(), options.memory_limit, num_runs,
                                                 options.batch_rows);
    if (!handle.ok()) return handle.status();
    return Merge(*handle);
  }

  // Adds the next batch of a run, when it is requested or before the first Next. *Ownership*: vectors stay until the
  // run is requested again; an array is moved in, also on error.
  Status Input(uint32_t run, const quern_batch& batch) {
    return internal::Call(quern_merge_input, handle_.get(), run, &batch);
  }
  Status InputArrow(uint32_t run, ArrowArray* batch, const quern_arrow_rows* rows = nullptr) {
    return internal::Call(quern_merge_input_arrow_rows, handle_.get(), run, batch, rows);
  }

  // Ends a run, which has no further batch.
  Status End(uint32_t run) { return internal::Call(quern_merge_end, handle_.get(), run); }

  // Like those of Sort.
  Status BindArrow(const ArrowSide& input) {
    return internal::Call(quern_merge_bind_arrow, handle_.get(), input.schema, input.keys.data(), input.payload.data());
  }
  Status ResultSchema(ArrowSchema* schema) const {
    return internal::Call(quern_merge_result_schema, handle_.get(), schema);
  }

  Result<MergedRows> Next() {
    MergedRows rows;
    Status status = internal::Call(quern_merge_next, handle_.get(), &rows.result, &rows.state, &rows.run);
    if (!status.ok()) return status;
    return rows;
  }

  // The same as an Arrow struct array. *Ownership*: the caller releases `result`; it may outlive the merge.
  Result<MergeStep> NextArrow(ArrowArray* result) {
    MergeStep step;
    Status status = internal::Call(quern_merge_next_arrow, handle_.get(), result, &step.state, &step.run);
    if (!status.ok()) return status;
    return step;
  }

  quern_counters Counters() const { return internal::StatsOf<quern_counters>(quern_merge_get_counters, handle_.get()); }
  quern_merge* handle() const { return handle_.get(); }

 private:
  explicit Merge(quern_merge* handle) : handle_(handle) {}
  std::unique_ptr<quern_merge, internal::Destroy<quern_merge_destroy>> handle_;
};

// Registers an aggregate function of the host, host.NAME in specs, for the life of the process. An exception of a
// callback counts as its failure. *Errors*: see quern_register_aggregate.
inline Status RegisterAggregate(std::string_view name, const quern_aggregate_function& function) {
  return internal::Call(quern_register_aggregate, std::string(name).c_str(), &function);
}

// Finds the rows of a batch for which a condition is true. *Ownership*: nothing of a batch is kept; an array remains
// the caller's. *Cost*: one pass over the columns. *Threads*: any number at once, except for BindArrow, which must be
// called before the first Arrow batch. *Errors*: those of quern_filter_select.
class Filter {
 public:
  static Result<Filter> Create(const Kernel& kernel) {
    auto handle = internal::Answer<quern_filter*>(quern_filter_create, kernel.handle());
    if (!handle.ok()) return handle.status();
    return Filter(*handle);
  }

  // Child numbers of the struct schema, one for each column that the condition mentions.
  Status BindArrow(const ArrowSchema* input, std::span<const int32_t> columns) {
    return internal::Call(quern_filter_bind_arrow, handle_.get(), input, columns.data());
  }

  // Writes the numbers of the rows that pass, in the order of the batch; the caller provides room for batch.num_rows of
  // them. Returns how many pass.
  Result<uint64_t> Select(const quern_batch& batch, uint32_t* rows) const {
    return Counted(quern_filter_select, &batch, rows);
  }
  Result<uint64_t> SelectArrow(const ArrowArray& batch, uint32_t* rows) const {
    return Counted(quern_filter_select_arrow, &batch, rows);
  }

  // Writes a bit for each row, bit 0 of byte 0 first; the caller provides room for (batch.num_rows + 7) / 8 bytes.
  // Returns how many rows pass.
  Result<uint64_t> Bitmap(const quern_batch& batch, uint8_t* bitmap) const {
    return Counted(quern_filter_bitmap, &batch, bitmap);
  }
  Result<uint64_t> BitmapArrow(const ArrowArray& batch, uint8_t* bitmap) const {
    return Counted(quern_filter_bitmap_arrow, &batch, bitmap);
  }

  // Returns how many rows pass.
  Result<uint64_t> Count(const quern_batch& batch) const { return Counted(quern_filter_count, &batch); }
  Result<uint64_t> CountArrow(const ArrowArray& batch) const { return Counted(quern_filter_count_arrow, &batch); }

  quern_counters Counters() const {
    return internal::StatsOf<quern_counters>(quern_filter_get_counters, handle_.get());
  }
  quern_filter* handle() const { return handle_.get(); }

 private:
  explicit Filter(quern_filter* handle) : handle_(handle) {}

  template <class Function, class... Arguments>
  Result<uint64_t> Counted(Function function, Arguments... arguments) const {
    return internal::Answer<uint64_t>(function, handle_.get(), arguments...);
  }

  std::unique_ptr<quern_filter, internal::Destroy<quern_filter_destroy>> handle_;
};

// Selects whose thread compiles in the background.
enum class CompileThread { kOwn = QUERN_COMPILE_THREAD_OWN, kHost = QUERN_COMPILE_THREAD_HOST };
inline Status SetCompileThread(CompileThread thread) {
  return internal::Call(quern_compile_thread_mode, static_cast<quern_compile_thread>(thread));
}
// Runs one waiting compilation, or one that arrives within the time. Returns whether it ran one.
inline Result<bool> CompileWork(uint32_t timeout_ms) {
  bool worked = false;
  Status status = internal::Call(quern_compile_work, timeout_ms, &worked);
  if (!status.ok()) return status;
  return worked;
}

}  // namespace v1
}  // namespace quern

#endif  // QUERN_V1_HPP_
