// SPDX-License-Identifier: Apache-2.0
// Quern for hosts in C++20: the C ABI (quern.h) with handles that close themselves and errors that cannot be
// overlooked. A header only, without exceptions; it needs only the standard library and libquern.so.
//
//     auto kernel = quern::Kernel::Compile("join.inner keys=i64 build=f64 probe=rowid");
//     if (!kernel.ok()) return Fail(kernel.status().text());
//     auto join = quern::Join::Create(*kernel);
//     auto build = join->Build();                          // one a thread
//     quern::Status status = build->Append(batch);         // quern_batch: pointers into the host's vectors
//     status = build->Finish();
//     status = join->Finalise();
//     auto probe = join->Probe();                          // one a thread
//     status = probe->Push(probe_batch);
//     do {
//       quern::Result<const quern_result*> rows = probe->Next();
//       if (!rows.ok()) ..
//       Use(**rows);
//     } while ((*rows)->state == QUERN_RESULT_MORE);
//
// An aggregation, with a kernel for "aggregate keys=i64 aggs=count_star,sum(f64)", and a sort, with one for "sort
// keys=f64:desc:out payload=rowid limit=100", differ in their ports:
//
//     auto aggregate = quern::Aggregate::Create(*kernel);     auto sort = quern::Sort::Create(*kernel);
//     aggregate->Rows(), aggregate->States()                  sort->Rows(), sort->Threshold()
//     aggregate->Finalise()                                   sort->Finalise()
//     aggregate->Groups(), aggregate->GroupStates()           sort->Sorted()
//
// A filter, with a kernel for "filter utf8 = 'R' and i64 >= 3":
//
//     auto filter = quern::Filter::Create(*kernel);
//     std::vector<uint32_t> rows(batch.num_rows);
//     quern::Result<uint64_t> passed = filter->Select(batch, rows.data());     // rows[0] .. rows[*passed - 1]
//
// A map, with a kernel for "map in=i64 out=add($0,1:i64)", has one port: map->Rows(), for Push and Next as Probe.
//
// Batches, results, options and statistics are the C structs; those of options that a function takes may be left out.
// Threads, ownership and costs are those that quern.h states, unless this header says otherwise.
//
// Everything is in the inline namespace quern::v2, so that its symbols differ from those of other major versions and
// from the library's own, which use the same outer name and are never visible outside it.
#ifndef QUERN_HPP_
#define QUERN_HPP_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "quern.h"

namespace quern {
inline namespace v2 {

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

// A struct of the ABI that carries its size.
template <class Struct>
Struct Sized(Struct value = {}) {
  value.struct_size = sizeof(value);
  return value;
}

// What a function of the ABI writes into such a struct.
template <class Stats, class Function, class Handle>
Stats StatsOf(Function get, const Handle* handle) {
  Stats stats = Sized<Stats>();
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

// Bounds the large pages that jobs leave for later jobs of the process; 0 keeps none. Default: see
// quern_set_kept_memory. *Threads*: any.
inline void SetKeptMemory(uint64_t bytes) { quern_set_kept_memory(bytes); }

// Selects the tuning profile of kernels: a file, "off", or nullptr for the one that the process finds; or the text of a
// profile. For tuning, see quern_tune.
inline Status SetProfile(const char* path) { return internal::Call(quern_set_profile, path); }
inline Status SetProfileText(std::string_view text) {
  return internal::Call(quern_set_profile_text, text.data(), text.size());
}

// The positions of a port's columns in Arrow batches: child numbers of the struct schema, -1 for a rowid. The spans
// must be as long as the port's lists of columns.
struct ArrowColumns {
  const ArrowSchema* schema = nullptr;
  std::span<const int32_t> keys;
  std::span<const int32_t> payload;
};

// Where the bytes of appended strings and binaries live.
enum class StringBytes {
  kStay,    // the host keeps them in place until the job and its outputs are gone
  kCopied,  // the job copies them
};

// Adds batches to a job. *Threads*: one.
class Input {
 public:
  // *Ownership*: see quern_input_append; an array is moved in, also on error.
  Status Append(const quern_batch& batch) { return internal::Call(quern_input_append, handle_.get(), &batch); }
  Status AppendArrow(ArrowArray* batch, const quern_arrow_rows* rows = nullptr) {
    return internal::Call(quern_input_append_arrow, handle_.get(), batch, rows);
  }
  // Hands the rows over. Destroying an input that has not finished drops its rows.
  Status Finish() { return internal::Call(quern_input_finish, handle_.get()); }
  // The groups of an aggregation that this input has seen.
  uint64_t NumGroups() const { return quern_input_num_groups(handle_.get()); }

  quern_input* handle() const { return handle_.get(); }

 private:
  friend class Job;
  friend class Pipeline;
  explicit Input(quern_input* handle) : handle_(handle) {}
  std::unique_ptr<quern_input, internal::Destroy<quern_input_destroy>> handle_;
};

// Returns rows of a job, which it keeps alive. *Threads*: one.
class Output {
 public:
  // Starts a batch of the probe side. *Ownership*: vectors stay until a result's state is QUERN_RESULT_NEEDS_INPUT; an
  // array is moved in, also on error.
  Status Push(const quern_batch& batch) { return internal::Call(quern_output_push, handle_.get(), &batch); }
  Status PushArrow(ArrowArray* batch, const quern_arrow_rows* rows = nullptr) {
    return internal::Call(quern_output_push_arrow, handle_.get(), batch, rows);
  }

  // The next rows, valid until the next call.
  Result<const quern_result*> Next() { return internal::Answer<const quern_result*>(quern_output_next, handle_.get()); }
  // The same as an Arrow struct array. *Ownership*: the caller releases it; it may outlive all handles.
  Result<const quern_result*> NextArrow(ArrowArray* rows) {
    return internal::Answer<const quern_result*>(quern_output_next_arrow, handle_.get(), rows);
  }

  quern_output* handle() const { return handle_.get(); }

 private:
  friend class Job;
  explicit Output(quern_output* handle) : handle_(handle) {}
  std::unique_ptr<quern_output, internal::Destroy<quern_output_destroy>> handle_;
};

// One run of a kernel, whatever its operator; Join, Aggregate, SetOperation, Sort, Merge and Filter name its ports.
class Job {
 public:
  static Result<Job> Create(const Kernel& kernel, const quern_job_options& options = {}) {
    quern_job_options given = internal::Sized(options);
    const quern_spill_options spill = internal::Sized(given.spill != nullptr ? *given.spill : quern_spill_options{});
    if (given.spill != nullptr) given.spill = &spill;
    auto handle = internal::Answer<quern_job*>(quern_job_create, kernel.handle(), &given);
    if (!handle.ok()) return handle.status();
    return Job(*handle);
  }

  // Call it before the port's first Arrow batch.
  Status BindArrow(quern_port port, const ArrowColumns& columns) {
    return internal::Call(quern_job_bind_arrow, handle_.get(), port, columns.schema, columns.keys.data(),
                          columns.payload.data());
  }
  // *Ownership*: the caller releases `schema`.
  Status ResultSchema(quern_port port, ArrowSchema* schema) const {
    return internal::Call(quern_job_result_schema, static_cast<const quern_job*>(handle_.get()), port, schema);
  }

  Result<Input> NewInput(quern_port port, const quern_input_options& options = {}) {
    const quern_input_options given = internal::Sized(options);
    auto handle = internal::Answer<quern_input*>(quern_input_create, handle_.get(), port, &given);
    if (!handle.ok()) return handle.status();
    return Input(*handle);
  }
  Result<Output> NewOutput(quern_port port, const quern_output_options& options = {}) {
    const quern_output_options given = internal::Sized(options);
    auto handle = internal::Answer<quern_output*>(quern_output_create, handle_.get(), port, &given);
    if (!handle.ok()) return handle.status();
    return Output(*handle);
  }

  // One piece of the work between inputs and outputs; never waits. *Threads*: any number at once, as for Finalise.
  Result<quern_work_state> Work() { return internal::Answer<quern_work_state>(quern_job_work, handle_.get()); }
  // All of it; waits for other threads that take part.
  Status Finalise() { return internal::Call(quern_job_finalise, handle_.get()); }
  // *Threads*: any, at any time.
  void Cancel() { quern_job_cancel(handle_.get()); }

  // Adds all batches, does the work and takes all results, on threads of the library. `on_result` takes a const
  // quern_result& and returns whether it wants more; it is called from several threads at once. Returns the number of
  // rows. *Units*: options.on_result and options.context are not read.
  template <class OnResult>
  Result<uint64_t> Run(std::span<const quern_run_input> inputs, const quern_run_options& options,
                       OnResult&& on_result) {
    using Callee = std::remove_reference_t<OnResult>;
    quern_run_options given = internal::Sized(options);
    given.on_result = [](void* callee, const quern_result* result) -> bool {
      return (*static_cast<Callee*>(callee))(*result);
    };
    given.context = const_cast<void*>(static_cast<const void*>(&on_result));
    return internal::Answer<uint64_t>(quern_job_run, handle_.get(), inputs.data(), inputs.size(), &given);
  }
  // The same without results: only their number is returned.
  Result<uint64_t> Run(std::span<const quern_run_input> inputs, const quern_run_options& options = {}) {
    quern_run_options given = internal::Sized(options);
    given.on_result = nullptr;
    return internal::Answer<uint64_t>(quern_job_run, handle_.get(), inputs.data(), inputs.size(), &given);
  }

  // Writes the partition of each of the batch's rows by its key, the same in every process: BUILD or PROBE of a join,
  // ROWS of an aggregation. *Ownership*: nothing is kept; an array remains the caller's. *Threads*: any number at once.
  // *Errors*: see quern_job_partition.
  Status Partition(quern_port port, const quern_batch& batch, uint32_t num_partitions, uint32_t* partitions) const {
    return internal::Call(quern_job_partition, static_cast<const quern_job*>(handle_.get()), port, &batch,
                          num_partitions, partitions);
  }
  Status PartitionArrow(quern_port port, const ArrowArray& batch, uint32_t num_partitions, uint32_t* partitions,
                        const quern_arrow_rows* of = nullptr) const {
    return internal::Call(quern_job_partition_arrow, static_cast<const quern_job*>(handle_.get()), port, &batch, of,
                          num_partitions, partitions);
  }
  // Gives back memory that is held without need: `bytes` bytes, or what there is. Returns how many bytes. *Threads*:
  // any.
  Result<uint64_t> ReleaseMemory(uint64_t bytes = UINT64_MAX) {
    return internal::Answer<uint64_t>(quern_job_release_memory, handle_.get(), bytes);
  }

  quern_job_stats Stats() const { return internal::StatsOf<quern_job_stats>(quern_job_get_stats, handle_.get()); }
  // Memory now. *Threads*: any, at any time.
  uint64_t UsedBytes() const { return quern_job_used_bytes(handle_.get()); }
  quern_counters Counters() const { return internal::StatsOf<quern_counters>(quern_job_get_counters, handle_.get()); }

  quern_job* handle() const { return handle_.get(); }

 protected:
  explicit Job(quern_job* handle) : handle_(handle) {}

  Result<Job> StepOf(size_t step) const {
    auto handle = internal::Answer<quern_job*>(quern_job_step, handle_.get(), step);
    if (!handle.ok()) return handle.status();
    return Job(*handle);
  }

  // A job of a class that derives from Job and names its ports.
  template <class Named>
  static Result<Named> CreateNamed(const Kernel& kernel, const quern_job_options& options) {
    Result<Job> job = Create(kernel, options);
    if (!job.ok()) return job.status();
    return Named(*std::move(job));
  }

 private:
  std::unique_ptr<quern_job, internal::Destroy<quern_job_destroy>> handle_;
};

class Join : public Job {
 public:
  static Result<Join> Create(const Kernel& kernel, const quern_job_options& options = {}) {
    return CreateNamed<Join>(kernel, options);
  }
  explicit Join(Job job) : Job(std::move(job)) {}

  Result<Input> Build(StringBytes bytes = StringBytes::kStay) {
    quern_input_options options = {};
    options.copy_bytes = bytes == StringBytes::kCopied;
    return NewInput(QUERN_PORT_BUILD, options);
  }
  // batch_rows: the most rows of a result; 0: 65536. context: passed to options.residual of the job.
  Result<Output> Probe(uint64_t batch_rows = 0, void* context = nullptr) {
    return Reader(QUERN_PORT_PROBE, batch_rows, context);
  }
  // When all probing is done: the build rows that come out on their own.
  Result<Output> Unmatched(uint64_t batch_rows = 0) { return Reader(QUERN_PORT_UNMATCHED, batch_rows); }

  // Once all work is done: the range of a key of the build rows, its nulls, and how many keys there are. *Cost*: up to
  // a pass over the table. *Threads*: any number at once, as for the functions below. *Errors*: see
  // quern_job_summarise_key.
  Result<quern_key_summary> SummariseKey(uint32_t key) const {
    quern_key_summary summary = internal::Sized<quern_key_summary>();
    Status status = internal::Call(quern_job_summarise_key, static_cast<const quern_job*>(handle()), key, &summary);
    if (!status.ok()) return status;
    return summary;
  }
  // The rows of a batch of the probe side whose key a build row may have; all others have no match. The answers are
  // those of Filter. *Ownership*: nothing is kept; an array remains the caller's. *Errors*: see quern_job_may_match.
  Result<uint64_t> SelectMayMatch(const quern_batch& batch, uint32_t* rows) const {
    return MayMatch(batch, rows, nullptr);
  }
  Result<uint64_t> BitmapMayMatch(const quern_batch& batch, uint8_t* bitmap) const {
    return MayMatch(batch, nullptr, bitmap);
  }
  Result<uint64_t> CountMayMatch(const quern_batch& batch) const { return MayMatch(batch, nullptr, nullptr); }
  Result<uint64_t> SelectMayMatchArrow(const ArrowArray& batch, uint32_t* rows,
                                       const quern_arrow_rows* of = nullptr) const {
    return MayMatchArrow(batch, of, rows, nullptr);
  }
  Result<uint64_t> BitmapMayMatchArrow(const ArrowArray& batch, uint8_t* bitmap,
                                       const quern_arrow_rows* of = nullptr) const {
    return MayMatchArrow(batch, of, nullptr, bitmap);
  }
  Result<uint64_t> CountMayMatchArrow(const ArrowArray& batch, const quern_arrow_rows* of = nullptr) const {
    return MayMatchArrow(batch, of, nullptr, nullptr);
  }

 private:
  Result<uint64_t> MayMatch(const quern_batch& batch, uint32_t* rows, uint8_t* bitmap) const {
    return internal::Answer<uint64_t>(quern_job_may_match, static_cast<const quern_job*>(handle()), &batch, rows,
                                      bitmap);
  }
  Result<uint64_t> MayMatchArrow(const ArrowArray& batch, const quern_arrow_rows* of, uint32_t* rows,
                                 uint8_t* bitmap) const {
    return internal::Answer<uint64_t>(quern_job_may_match_arrow, static_cast<const quern_job*>(handle()), &batch, of,
                                      rows, bitmap);
  }
  Result<Output> Reader(quern_port port, uint64_t batch_rows, void* context = nullptr) {
    quern_output_options options = {};
    options.batch_rows = batch_rows;
    options.context = context;
    return NewOutput(port, options);
  }
};

class Aggregate : public Job {
 public:
  static Result<Aggregate> Create(const Kernel& kernel, const quern_job_options& options = {}) {
    return CreateNamed<Aggregate>(kernel, options);
  }
  explicit Aggregate(Job job) : Job(std::move(job)) {}

  Result<Input> Rows() { return NewInput(QUERN_PORT_ROWS); }
  // Takes what GroupStates of another aggregation of the same spec returns. format: what FormatNumber() answered where
  // they come from; 0: unknown, or this process.
  Result<Input> States(uint32_t format = 0) {
    quern_input_options options = {};
    options.format = format;
    return NewInput(QUERN_PORT_STATES, options);
  }
  Result<Output> Groups(const quern_output_options& options = {}) { return NewOutput(QUERN_PORT_ROWS, options); }
  Result<Output> GroupStates(const quern_output_options& options = {}) { return NewOutput(QUERN_PORT_STATES, options); }
};

// A union, intersection or difference. *Threads*: rows of both sides may come from any number of threads, in any order.
class SetOperation : public Job {
 public:
  static Result<SetOperation> Create(const Kernel& kernel, const quern_job_options& options = {}) {
    return CreateNamed<SetOperation>(kernel, options);
  }
  explicit SetOperation(Job job) : Job(std::move(job)) {}

  Result<Input> Left() { return NewInput(QUERN_PORT_LEFT); }
  Result<Input> Right() { return NewInput(QUERN_PORT_RIGHT); }
  // Takes what RowStates of another job of the same spec returns.
  Result<Input> States() { return NewInput(QUERN_PORT_STATES); }
  Result<Output> Rows(const quern_output_options& options = {}) { return NewOutput(QUERN_PORT_ROWS, options); }
  Result<Output> RowStates(const quern_output_options& options = {}) { return NewOutput(QUERN_PORT_STATES, options); }
};

class Sort : public Job {
 public:
  static Result<Sort> Create(const Kernel& kernel, const quern_job_options& options = {}) {
    return CreateNamed<Sort>(kernel, options);
  }
  explicit Sort(Job job) : Job(std::move(job)) {}

  Result<Input> Rows(StringBytes bytes = StringBytes::kStay) {
    quern_input_options options = {};
    options.copy_bytes = bytes == StringBytes::kCopied;
    return NewInput(QUERN_PORT_ROWS, options);
  }
  // Takes rows of keys; rows that come after such a row need not come out.
  Result<Input> Threshold() { return NewInput(QUERN_PORT_THRESHOLD); }
  // Each result is the threshold at that time, as one row of keys, or no row.
  Result<Output> CurrentThreshold() { return NewOutput(QUERN_PORT_THRESHOLD); }
  Result<Output> Sorted(uint64_t batch_rows = 0) {
    quern_output_options options = {};
    options.batch_rows = batch_rows;
    return NewOutput(QUERN_PORT_ROWS, options);
  }
};

// Merges sorted runs. *Threads*: its inputs and output are used by one thread at a time.
class Merge : public Job {
 public:
  // Takes a kernel of a sort without window functions. num_runs: 1 to 65536.
  static Result<Merge> Create(const Kernel& kernel, uint32_t num_runs, quern_job_options options = {}) {
    options.num_runs = num_runs;
    return CreateNamed<Merge>(kernel, options);
  }
  explicit Merge(Job job) : Job(std::move(job)) {}

  // format: as of Aggregate::States, for the run.
  Result<Input> RunInput(uint32_t run, uint32_t format = 0) {
    quern_input_options options = {};
    options.run = run;
    options.format = format;
    return NewInput(QUERN_PORT_ROWS, options);
  }
  Result<Output> Merged(uint64_t batch_rows = 0) {
    quern_output_options options = {};
    options.batch_rows = batch_rows;
    return NewOutput(QUERN_PORT_ROWS, options);
  }
};

// Finds the rows of a batch for which a condition is true. *Ownership*: nothing of a batch is kept; an array remains
// the caller's. *Cost*: one pass over the columns. *Threads*: any number at once.
class Filter : public Job {
 public:
  static Result<Filter> Create(const Kernel& kernel, const quern_job_options& options = {}) {
    return CreateNamed<Filter>(kernel, options);
  }
  explicit Filter(Job job) : Job(std::move(job)) {}

  // Writes the numbers of the rows that pass, in the order of the batch; the caller provides room for batch.num_rows of
  // them. Returns how many pass, like the others.
  Result<uint64_t> Select(const quern_batch& batch, uint32_t* rows) const { return Answer(batch, rows, nullptr); }
  // Writes a bit for each row, bit 0 of byte 0 first, into (batch.num_rows + 7) / 8 bytes.
  Result<uint64_t> Bitmap(const quern_batch& batch, uint8_t* bitmap) const { return Answer(batch, nullptr, bitmap); }
  Result<uint64_t> Count(const quern_batch& batch) const { return Answer(batch, nullptr, nullptr); }

  // The same for an Arrow array, or some of its rows.
  Result<uint64_t> SelectArrow(const ArrowArray& batch, uint32_t* rows, const quern_arrow_rows* of = nullptr) const {
    return AnswerArrow(batch, of, rows, nullptr);
  }
  Result<uint64_t> BitmapArrow(const ArrowArray& batch, uint8_t* bitmap, const quern_arrow_rows* of = nullptr) const {
    return AnswerArrow(batch, of, nullptr, bitmap);
  }
  Result<uint64_t> CountArrow(const ArrowArray& batch, const quern_arrow_rows* of = nullptr) const {
    return AnswerArrow(batch, of, nullptr, nullptr);
  }

 private:
  Result<uint64_t> Answer(const quern_batch& batch, uint32_t* rows, uint8_t* bitmap) const {
    return internal::Answer<uint64_t>(quern_job_filter, handle(), &batch, rows, bitmap);
  }
  Result<uint64_t> AnswerArrow(const ArrowArray& batch, const quern_arrow_rows* of, uint32_t* rows,
                               uint8_t* bitmap) const {
    return internal::Answer<uint64_t>(quern_job_filter_arrow, handle(), &batch, of, rows, bitmap);
  }
};

// Computes columns. A batch is pushed to an output, which then gives its rows in their order. *Threads*: any number of
// outputs at once.
class Map : public Job {
 public:
  static Result<Map> Create(const Kernel& kernel, const quern_job_options& options = {}) {
    return CreateNamed<Map>(kernel, options);
  }
  explicit Map(Job job) : Job(std::move(job)) {}

  // batch_rows: the most rows of a result; 0: 65536.
  Result<Output> Rows(uint64_t batch_rows = 0) {
    quern_output_options options = {};
    options.batch_rows = batch_rows;
    return NewOutput(QUERN_PORT_ROWS, options);
  }
};

// Registers an aggregate function of the host, host.NAME in specs, for the life of the process. An exception of a
// callback counts as its failure. *Errors*: see quern_register_aggregate.
inline Status RegisterAggregate(std::string_view name, const quern_aggregate_function& function) {
  return internal::Call(quern_register_aggregate, std::string(name).c_str(), &function);
}

// The version of a collation, which is another one whenever strings may compare otherwise under it: for hosts to store
// beside what relies on its order. *Ownership*: the text lives as long as the process. *Errors*: as for a spec with the
// name.
inline Result<std::string_view> CollationVersion(std::string_view name) {
  auto version = internal::Answer<const char*>(quern_collation_version, std::string(name).c_str());
  if (!version.ok()) return version.status();
  return std::string_view(*version);
}

// What states of groups, partitions and sorted runs mean: the same to all libraries with this number.
inline uint32_t FormatNumber() { return quern_format_number(); }

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

// Rows on their way into a job, through filters, maps and probes (quern_pipeline_input_create):
//
//     auto input = quern::Pipeline("date32,i64,f64")
//                      .Through(filter, {0})                      // columns by number: date32
//                      .Through(join, {1}, {2})            // key i64, payload f64; behind it: f64, build payload
//                      .Into(aggregate, QUERN_PORT_ROWS, {1}, {0});
//
// Build rows that come out on their own (join.right, for example), and rows that any join has spilled: when all inputs
// have finished, an input of another pipeline, from the join's results through the steps behind it, takes what
// join.Unmatched() gives.
//
// *Threads*: an input each. Jobs of steps may be destroyed once the inputs are made.
class Pipeline {
 public:
  // columns: the types of the columns that come in.
  explicit Pipeline(std::string columns) : columns_(std::move(columns)) {}

  Pipeline& Through(const Job& job, std::vector<uint32_t> keys, std::vector<uint32_t> payload = {},
                    void* context = nullptr) {
    steps_.push_back({job.handle(), std::move(keys), std::move(payload), context});
    return *this;
  }

  // Takes away rows that no build row of a join can match, and keeps the columns (`reductions` in quern.h): where a
  // later step probes the join, or the rows are for a table whose results do.
  Pipeline& Reduced(const Job& join, std::vector<uint32_t> keys) {
    steps_.push_back({join.handle(), std::move(keys), {}, nullptr, true});
    return *this;
  }

  // piece_rows: rows that pass together; 0: those of the profile, else 16384.
  Result<Input> Into(const Job& job, quern_port port, const std::vector<uint32_t>& keys,
                     const std::vector<uint32_t>& payload = {}, uint64_t piece_rows = 0,
                     StringBytes bytes = StringBytes::kStay) const {
    quern_pipeline_options options = {};
    options.copy_bytes = bytes == StringBytes::kCopied;
    return Create(job.handle(), port, keys, payload, piece_rows, options);
  }

  // Into a function of the host: bool(const quern_batch&), whose keys are `columns`, and which answers whether it wants
  // more. *Ownership*: *on_rows must outlive the input; the batch is read during the call only.
  template <class OnRows>
  Result<Input> IntoHost(OnRows* on_rows, const std::vector<uint32_t>& columns, uint64_t piece_rows = 0) const {
    quern_pipeline_options options = {};
    options.on_rows = [](void* callee, const quern_batch* rows) -> bool {
      return (*static_cast<OnRows*>(callee))(*rows);
    };
    options.context = const_cast<void*>(static_cast<const void*>(on_rows));
    return Create(nullptr, QUERN_PORT_ROWS, columns, {}, piece_rows, options);
  }

 private:
  Result<Input> Create(quern_job* job, quern_port port, const std::vector<uint32_t>& keys,
                       const std::vector<uint32_t>& payload, uint64_t piece_rows,
                       quern_pipeline_options options) const {
    std::vector<quern_pipeline_step> steps;
    const auto reductions = std::make_unique<bool[]>(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      steps.push_back(
          {step.job, step.keys.data(), step.keys.size(), step.payload.data(), step.payload.size(), step.context});
      reductions[i] = step.is_reduction;
    }
    options.columns = columns_.c_str();
    options.steps = steps.data();
    options.num_steps = steps.size();
    options.reductions = reductions.get();
    options.keys = keys.data();
    options.num_keys = keys.size();
    options.payload = payload.data();
    options.num_payload = payload.size();
    options.piece_rows = piece_rows;
    const quern_pipeline_options given = internal::Sized(options);
    auto handle = internal::Answer<quern_input*>(quern_pipeline_input_create, job, port, &given);
    if (!handle.ok()) return handle.status();
    return Input(*handle);
  }

  struct Step {
    quern_job* job;
    std::vector<uint32_t> keys, payload;
    void* context;
    bool is_reduction = false;
  };
  std::string columns_;
  std::vector<Step> steps_;
};

// A pipeline by its spec, with a kernel for "pipeline in=.. | filter .. [$0] | probe join.. [$1; $2] | aggregate ..
// [..]":
//
//     auto sums = quern::PipelineJob::Create(*kernel, {&items});     // the joins that its steps probe, in their order
//     auto rows = sums->Rows();                                      // one a thread; batches of the source's columns
//     sums->Finalise()                                               // also what the joins have left
//     sums->NewOutput(QUERN_PORT_ROWS)                               // the ports of the end
class PipelineJob : public Job {
 public:
  static Result<PipelineJob> Create(const Kernel& kernel, std::initializer_list<const Job*> tables = {},
                                    const quern_job_options& options = {}) {
    return Create(kernel, std::span(tables.begin(), tables.size()), options);
  }
  // *Ownership*: the job keeps the tables.
  static Result<PipelineJob> Create(const Kernel& kernel, std::span<const Job* const> tables,
                                    const quern_job_options& options = {}) {
    std::vector<quern_job*> handles;
    for (const Job* table : tables) handles.push_back(table->handle());
    quern_job_options given = options;
    given.tables = handles.data();
    given.num_tables = handles.size();
    return CreateNamed<PipelineJob>(kernel, given);
  }
  explicit PipelineJob(Job job) : Job(std::move(job)) {}

  // context: passed to options.on_rows, and to the residuals of the joins that are probed.
  Result<Input> Rows(StringBytes bytes = StringBytes::kStay, void* context = nullptr) {
    quern_input_options options = {};
    options.copy_bytes = bytes == StringBytes::kCopied;
    options.context = context;
    return NewInput(QUERN_PORT_ROWS, options);
  }
  // A step, or behind them the end, as "plan" of the kernel numbers them: for counters and statistics.
  Result<Job> Step(size_t step) const { return StepOf(step); }
};

}  // namespace v2
}  // namespace quern

#endif  // QUERN_HPP_
