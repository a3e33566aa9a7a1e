// SPDX-License-Identifier: Apache-2.0
// The Arrow PyCapsule interface: an object answers __arrow_c_stream__() with a capsule around an ArrowArrayStream,
// which is moved out of it; a single batch may answer __arrow_c_array__() with two capsules, a schema and an array.
// Streams come first, since objects that have both (pyarrow.RecordBatch) mean the same by both.
//
// A stream of a table in memory returns its chunks without a copy: collecting 6,000,000 rows of a Polars frame takes
// microseconds. Streams of readers and of lazy relations compute or read on request, and some take the GIL for that; it
// is never held here.
#include "source.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "without_gil.h"
#include "workers.h"

namespace nb = nanobind;

namespace quern::python {
namespace {

template <class Struct>
Struct* InCapsule(const nb::object& capsule, const char* name) {
  auto* const pointer = static_cast<Struct*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (pointer == nullptr) throw nb::python_error();
  return pointer;
}

// A producer that is written in Python may be where the signal's handler runs, and then its KeyboardInterrupt has
// become a text.
void RaiseInterrupt(const std::string& text) {
  if (text.find("KeyboardInterrupt") == std::string::npos) return;
  const nb::gil_scoped_acquire gil;
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw nb::python_error();
}

// What a call of a stream left.
[[noreturn]] void Fail(ArrowArrayStream* stream, const std::string& what) {
  const char* const text = stream->get_last_error(stream);
  const std::string reason = text == nullptr ? "the producer gives no reason" : text;
  RaiseInterrupt(reason);
  // pyarrow gives the traceback of a producer in Python behind what was raised.
  const size_t end = std::min(reason.find('\n'), reason.find(". Detail: Python exception:"));
  throw std::runtime_error(what + ": " + reason.substr(0, end));
}

}  // namespace

Source::Source(nb::handle object, std::string what) : what_(std::move(what)) {
  if (nb::hasattr(object, "__arrow_c_stream__")) OpenStream(object);
  else if (nb::hasattr(object, "__arrow_c_array__")) OpenArray(object);
  else Refuse(object);
}

void Source::Refuse(nb::handle object) const {
  const std::string type = nb::cast<std::string>(object.type().attr("__name__"));
  const std::string text =
      "no Arrow data in " + what_ + ": an object of type " + type +
      "; accepted: objects with __arrow_c_stream__ or __arrow_c_array__, as tables of pyarrow, Polars, pandas, DuckDB";
  throw nb::type_error(text.c_str());
}

Source::~Source() {
  if (stream_.release != nullptr) stream_.release(&stream_);
}

void Source::OpenStream(nb::handle object) {
  const nb::object capsule = object.attr("__arrow_c_stream__")();
  auto* const stream = InCapsule<ArrowArrayStream>(capsule, "arrow_array_stream");
  if (stream->release == nullptr)
    throw std::invalid_argument("stream of " + what_ + " that was read before: " + what_ + "; accepted: a new one");
  if (stream->get_schema == nullptr || stream->get_next == nullptr || stream->get_last_error == nullptr)
    throw std::invalid_argument("stream of " + what_ + " without its callbacks: " + what_ +
                                "; accepted: get_schema, get_next, get_last_error, release");
  stream_ = *stream;
  stream->release = nullptr;
  ArrowSchema schema = {};
  {
    const WithoutGil no_gil;
    if (stream_.get_schema(&stream_, &schema) != 0) Fail(&stream_, "no schema of " + what_);
  }
  const std::unique_ptr<ArrowSchema, void (*)(ArrowSchema*)> owned(&schema, [](ArrowSchema* given) {
    if (given->release != nullptr) given->release(given);
  });
  TakeFields(schema);
}

void Source::OpenArray(nb::handle object) {
  const nb::object pair = object.attr("__arrow_c_array__")();
  if (!nb::isinstance<nb::tuple>(pair) || nb::len(pair) != 2) {
    const std::string text = "no pair from __arrow_c_array__ of " + what_ + ": " +
                             nb::cast<std::string>(nb::repr(pair.type())) + "; accepted: two capsules";
    throw nb::type_error(text.c_str());
  }
  const nb::object schema_capsule = pair[0], array_capsule = pair[1];
  TakeFields(*InCapsule<ArrowSchema>(schema_capsule, "arrow_schema"));
  batches_.push_back(ImportBatch(InCapsule<ArrowArray>(array_capsule, "arrow_array"), types_));
  num_rows_ = static_cast<uint64_t>(batches_.back().num_rows);
  is_collected_ = true;
}

void Source::TakeFields(const ArrowSchema& schema) {
  fields_ = FieldsOf(schema, what_);
  types_ = TypesOf(fields_);
}

std::optional<Batch> Source::Pull() {
  if (stream_.release == nullptr) return std::nullopt;
  ArrowArray array = {};
  if (stream_.get_next(&stream_, &array) != 0) Fail(&stream_, "no batch of " + what_);
  if (array.release != nullptr) return ImportBatch(&array, types_);
  stream_.release(&stream_);
  stream_.release = nullptr;
  return std::nullopt;
}

void Source::Collect() {
  if (is_collected_) return;
  const WithoutGil no_gil;
  SignalCheck check_signals;
  while (std::optional<Batch> batch = Pull()) {
    num_rows_ += static_cast<uint64_t>(batch->num_rows);
    if (batch->num_rows > 0) batches_.push_back(std::move(*batch));
    check_signals();
  }
  is_collected_ = true;
}

bool Source::HasNulls(size_t column) const {
  return std::any_of(batches_.begin(), batches_.end(),
                     [column](const Batch& batch) { return python::HasNulls(batch.columns[column]); });
}

std::optional<Batch> Feed::NextBatch() {
  if (!source_.is_collected()) return source_.Pull();
  if (next_batch_ == source_.batches().size()) return std::nullopt;
  return source_.batches()[next_batch_++];
}

std::optional<Feed::Morsel> Feed::Next() {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (next_row_ == batch_.num_rows) {
    std::optional<Batch> batch = NextBatch();
    if (!batch) {
      batch_ = {};
      next_row_ = 0;
      return std::nullopt;
    }
    batch_ = std::move(*batch);
    next_row_ = 0;
  }
  const int64_t rows = std::min(kMorselRows, batch_.num_rows - next_row_);
  Morsel morsel{SliceBatch(batch_, next_row_, rows), next_number_++, rows_dealt_};
  next_row_ += rows;
  rows_dealt_ += static_cast<uint64_t>(rows);
  source_.CountTaken(rows);
  return morsel;
}

}  // namespace quern::python
