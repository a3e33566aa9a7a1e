// SPDX-License-Identifier: Apache-2.0
// A consumer may request a result more than once (DuckDB requests the schema twice, then the rows), so a table keeps
// its batches and every stream of it shares them. A reader keeps nothing: its batches are made on request,
//
//     pa.table(quern.join(.., stream=True))     get_next -> pull a batch of the probe side -> probe it -> one batch out
//
// on the consumer's thread. There a failure is a text and an errno, since no exception may cross C; and Ctrl-C, which
// Python would only see when the consumer comes back, ends the stream with EINTR and is raised when Python goes on.
#include "results.h"

#include <cerrno>
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

#include "source.h"
#include "without_gil.h"
#include "workers.h"

namespace nb = nanobind;

namespace quern::python {

std::vector<Field> ResultShape::Fields(ArrowSchema* schema) const {
  std::vector<Field> fields;
  for (size_t i = 0; i < order.size(); ++i) {
    fields.push_back(FieldOf(*schema->children[order[i]]));
    fields.back().name = names[i];
  }
  schema->release(schema);
  return fields;
}

Batch ResultShape::Arranged(const Batch& batch) const {
  Batch arranged{batch.num_rows, {}};
  for (const uint32_t column : order) arranged.columns.push_back(batch.columns[column]);
  return arranged;
}

Table MakeTable(std::vector<Field> fields, std::vector<Batch> batches) {
  auto table = std::make_shared<TableData>();
  table->fields = std::move(fields);
  for (Batch& batch : batches) {
    if (batch.num_rows == 0) continue;
    table->num_rows += static_cast<uint64_t>(batch.num_rows);
    table->batches.push_back(std::move(batch));
  }
  return table;
}

namespace {

// ---- capsules ----

template <class Struct>
nb::object Capsule(Struct value, const char* name) {
  auto owned = std::make_unique<Struct>(value);
  const auto destroy = [](PyObject* capsule) {
    auto* const kept = static_cast<Struct*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
    if (kept->release != nullptr) kept->release(kept);
    delete kept;
  };
  PyObject* const capsule = PyCapsule_New(owned.get(), name, destroy);
  if (capsule == nullptr) {
    value.release(&value);
    throw nb::python_error();
  }
  owned.release();
  return nb::steal<nb::object>(capsule);
}

// What is behind an ArrowArrayStream.
struct Stream {
  std::vector<Field> fields;
  std::function<std::optional<Batch>()> next;
  std::string error;
};

// The errno of what `work` throws, whose text is kept; 0 without.
template <class Work>
int Guarded(ArrowArrayStream* stream, const Work& work) {
  auto* const state = static_cast<Stream*>(stream->private_data);
  try {
    work(state);
    return 0;
  } catch (nb::python_error& interrupt) {
    const nb::gil_scoped_acquire gil;
    state->error = interrupt.what();
    PyErr_SetInterrupt();
    return EINTR;
  } catch (const std::bad_alloc& failure) {
    state->error = failure.what();
    return ENOMEM;
  } catch (const std::invalid_argument& failure) {
    state->error = failure.what();
    return EINVAL;
  } catch (const std::exception& failure) {
    state->error = failure.what();
    return EIO;
  }
}

int GetSchema(ArrowArrayStream* stream, ArrowSchema* out) {
  return Guarded(stream, [out](Stream* state) { ExportSchema(state->fields, out); });
}

int GetNext(ArrowArrayStream* stream, ArrowArray* out) {
  *out = {};
  return Guarded(stream, [out](Stream* state) {
    const std::optional<Batch> batch = state->next();
    if (batch) ExportBatch(*batch, out);
  });
}

const char* GetLastError(ArrowArrayStream* stream) {
  const auto* const state = static_cast<Stream*>(stream->private_data);
  return state->error.empty() ? nullptr : state->error.c_str();
}

void ReleaseStream(ArrowArrayStream* stream) {
  delete static_cast<Stream*>(stream->private_data);
  stream->release = nullptr;
}

nb::object StreamCapsule(const std::vector<Field>& fields, std::function<std::optional<Batch>()> next) {
  ArrowArrayStream stream = {GetSchema, GetNext, GetLastError, ReleaseStream, new Stream{fields, std::move(next), ""}};
  return Capsule(stream, "arrow_array_stream");
}

}  // namespace

nb::object SchemaCapsule(const std::vector<Field>& fields) {
  ArrowSchema schema = {};
  ExportSchema(fields, &schema);
  return Capsule(schema, "arrow_schema");
}

nb::object StreamCapsule(const Table& table) {
  return StreamCapsule(table->fields, [table, next = size_t{0}]() mutable -> std::optional<Batch> {
    if (next == table->batches.size()) return std::nullopt;
    return table->batches[next++];
  });
}

// ---- readers ----

// Kept by the reader and by the stream that it gave away.
struct Reader::State {
  Next next;
  std::thread::id owner = std::this_thread::get_id();
  SignalCheck check_signals;

  std::optional<Batch> Read() {
    // Only here may the GIL be waited for: who has it waits for none of the consumer's other threads.
    const bool may_wait = std::this_thread::get_id() == owner;
    return next([this, may_wait] {
      if (may_wait) check_signals();
    });
  }
};

Reader::Reader(std::vector<Field> fields, Next next) : fields_(std::move(fields)), state_(std::make_shared<State>()) {
  state_->next = std::move(next);
}

Table Reader::NextTable() {
  if (is_taken_)
    throw std::runtime_error("reader that was given away: a stream was taken of it; accepted: one or the other");
  const WithoutGil no_gil;
  std::optional<Batch> batch = state_->Read();
  if (!batch) return nullptr;
  std::vector<Batch> batches;
  batches.push_back(std::move(*batch));
  return MakeTable(fields_, std::move(batches));
}

nb::object Reader::TakeStream() {
  if (std::exchange(is_taken_, true)) {
    throw std::runtime_error(
        "reader that was read before: its stream was taken; accepted: one reading, or a result without stream=True");
  }
  return StreamCapsule(fields_, [state = state_] { return state->Read(); });
}

}  // namespace quern::python
