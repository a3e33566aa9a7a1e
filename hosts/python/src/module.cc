// SPDX-License-Identifier: Apache-2.0
// quern._quern: the Python interface of the C++ side. It is not for users: the package's own functions (quern/*.py)
// call it with resolved names, known types and a finished spec.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "errors.h"
#include "handles.h"
#include "hosts/c/quern.h"
#include "kernel.h"
#include "operators.h"
#include "query.h"
#include "results.h"
#include "source.h"
#include "texts.h"
#include "tuning.h"
#include "view.h"
#include "without_gil.h"
#include "workers.h"

namespace nb = nanobind;

namespace quern::python {
namespace {

struct PyView {
  std::shared_ptr<View> view;
  ~PyView() {
    const nb::error_scope kept;
    view.reset();
  }
};
struct PyInput : Input {
  ~PyInput() {
    const nb::error_scope kept;
    view.reset();
  }
};

Input InputOf(const PyView& view, std::vector<int32_t> keys, std::vector<int32_t> payload) {
  return {view.view, std::move(keys), std::move(payload)};
}

void DefineInputs(nb::module_* module) {
  nb::class_<PySource>(*module, "Source", "What a producer gives: a schema and its batches.")
      .def(
          "__init__",
          [](PySource* self, nb::object object, const std::string& what) {
            new (self) PySource{std::make_shared<Source>(object, what)};
          },
          nb::arg("object").none(), nb::arg("what"))
      .def_prop_ro(
          "fields", [](const PySource& self) { return FieldTuples(self.source->fields()); },
          "(name, format, format of a dictionary's values or \"\", nullable) of each column.")
      .def(
          "collect", [](const PySource& self) { self.source->Collect(); }, "Takes all batches.")
      .def_prop_ro("num_rows", [](const PySource& self) { return self.source->num_rows(); })
      .def_prop_ro(
          "rows_taken", [](const PySource& self) { return self.source->rows_taken(); },
          "Rows that operators took so far.")
      .def(
          "has_nulls",
          [](const PySource& self, size_t column) {
            if (column >= self.source->fields().size()) throw nb::index_error("no such column");
            return self.source->HasNulls(column);
          },
          nb::arg("column"));
  nb::class_<PyView>(*module, "View", "The columns of a source that an operator reads.")
      .def(
          "__init__",
          [](PyView* self, const PySource& source) { new (self) PyView{std::make_shared<View>(source.source)}; },
          nb::arg("source"))
      .def(
          "add_cast",
          [](PyView& self, uint32_t column, const std::string& format) { return self.view->AddCast(column, format); },
          nb::arg("column"), nb::arg("format"))
      .def(
          "add_test",
          [](PyView& self, const KernelHandle& kernel, const std::vector<uint32_t>& columns) {
            return self.view->AddTest(kernel, columns);
          },
          nb::arg("kernel"), nb::arg("columns"))
      .def(
          "set_where",
          [](PyView& self, const KernelHandle& kernel, const std::vector<uint32_t>& columns) {
            self.view->SetWhere(kernel, columns);
          },
          nb::arg("kernel"), nb::arg("columns"))
      .def(
          "set_computation",
          [](PyView& self, const KernelHandle& kernel, std::vector<uint32_t> columns) {
            return self.view->SetComputation(kernel, std::move(columns));
          },
          nb::arg("kernel"), nb::arg("columns"))
      .def_prop_ro(
          "fields", [](const PyView& self) { return FieldTuples(self.view->fields()); },
          "Of the source's columns and the made ones.")
      .def(
          "set_output", [](PyView& self, std::vector<uint32_t> columns) { self.view->SetOutput(std::move(columns)); },
          nb::arg("columns"));
}

void DefineResults(nb::module_* module) {
  nb::class_<PyTable>(*module, "Table", "Rows of a result, which never change.")
      .def_prop_ro("num_rows", [](const PyTable& self) { return self.table->num_rows; })
      .def_prop_ro("num_batches", [](const PyTable& self) { return self.table->batches.size(); })
      .def_prop_ro("fields", [](const PyTable& self) { return FieldTuples(self.table->fields); })
      .def("schema_capsule", [](const PyTable& self) { return SchemaCapsule(self.table->fields); })
      .def("stream_capsule", [](const PyTable& self) { return StreamCapsule(self.table); });
  nb::class_<Reader>(*module, "Reader", "Batches that are made when they are asked for.")
      .def_prop_ro("fields", [](const Reader& self) { return FieldTuples(self.fields()); })
      .def("next",
           [](Reader& self) -> std::optional<PyTable> {
             Table table = self.NextTable();
             return table == nullptr ? std::nullopt : std::optional<PyTable>(PyTable{std::move(table)});
           })
      .def("schema_capsule", [](const Reader& self) { return SchemaCapsule(self.fields()); })
      .def("take_stream", &Reader::TakeStream);
}

void DefineKernel(nb::module_* module) {
  nb::class_<KernelHandle>(*module, "Kernel", "A kernel of the library.")
      .def(nb::init<const std::string&, const std::string&, const std::string&, bool>(), nb::arg("spec"),
           nb::arg("engine"), nb::arg("params"), nb::arg("now"))
      .def("text", &KernelHandle::Text, nb::arg("name"))
      .def("dump", &KernelHandle::Dump, nb::arg("stage"), nb::arg("machine"));
  nb::class_<PyInput>(*module, "Input", "A view with the numbers of a kernel's keys and payload among its columns.")
      .def(
          "__init__",
          [](PyInput* self, const PyView& view, std::vector<int32_t> keys, std::vector<int32_t> payload) {
            new (self) PyInput{InputOf(view, std::move(keys), std::move(payload))};
          },
          nb::arg("view"), nb::arg("keys"), nb::arg("payload"));
  nb::class_<ResultShape>(*module, "Descriptor",
                          "Which columns of a kernel's result a table has, and what they are called there.")
      .def(
          "__init__",
          [](ResultShape* self, std::vector<uint32_t> order, std::vector<std::string> names) {
            if (order.size() != names.size()) throw nb::value_error("as many columns as names");
            new (self) ResultShape{std::move(order), std::move(names)};
          },
          nb::arg("order"), nb::arg("names"));
}

void DefineOptions(nb::module_* module) {
  nb::class_<RunOptions>(*module, "Options", "Threads, a memory limit, and where rows go that exceed it.")
      .def(
          "__init__",
          [](RunOptions* self, uint32_t threads, uint64_t memory_limit, bool spills, std::string spill_dir,
             uint64_t spill_bytes) {
            new (self) RunOptions{threads, memory_limit, spills, std::move(spill_dir), spill_bytes};
          },
          nb::arg("threads"), nb::arg("memory_limit"), nb::arg("spills"), nb::arg("spill_dir"), nb::arg("spill_bytes"));
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const IoError& error) {
      PyErr_SetString(PyExc_OSError, error.what());
    }
  });
}

// Of one input: run_NAME, whose result is a table, and read_NAME, whose result is a reader.
template <Table (*kRun)(const KernelHandle&, const Input&, const ResultShape&, const RunOptions&),
          std::unique_ptr<Reader> (*kRead)(const KernelHandle&, const Input&, const ResultShape&, const RunOptions&)>
void DefineOneInput(nb::module_* module, const std::string& name) {
  module->def(("run_" + name).c_str(),
              [](const KernelHandle& kernel, const PyInput& input, const ResultShape& descriptor,
                 const RunOptions& options) { return PyTable{kRun(kernel, input, descriptor, options)}; },
              nb::arg("kernel"), nb::arg("input"), nb::arg("descriptor"), nb::arg("options"));
  module->def(("read_" + name).c_str(),
              [](const KernelHandle& kernel, const PyInput& input, const ResultShape& descriptor,
                 const RunOptions& options) { return kRead(kernel, input, descriptor, options); },
              nb::arg("kernel"), nb::arg("input"), nb::arg("descriptor"), nb::arg("options"));
}

// The same of two inputs.
template <Table (*kRun)(const KernelHandle&, const Input&, const Input&, const ResultShape&, const RunOptions&),
          std::unique_ptr<Reader> (*kRead)(const KernelHandle&, const Input&, const Input&, const ResultShape&,
                                           const RunOptions&)>
void DefineTwoInputs(nb::module_* module, const std::string& name, const char* first, const char* second) {
  module->def(("run_" + name).c_str(),
              [](const KernelHandle& kernel, const PyInput& one, const PyInput& other, const ResultShape& descriptor,
                 const RunOptions& options) { return PyTable{kRun(kernel, one, other, descriptor, options)}; },
              nb::arg("kernel"), nb::arg(first), nb::arg(second), nb::arg("descriptor"), nb::arg("options"));
  module->def(("read_" + name).c_str(),
              [](const KernelHandle& kernel, const PyInput& one, const PyInput& other, const ResultShape& descriptor,
                 const RunOptions& options) { return kRead(kernel, one, other, descriptor, options); },
              nb::arg("kernel"), nb::arg(first), nb::arg(second), nb::arg("descriptor"), nb::arg("options"));
}

void DefineOperators(nb::module_* module) {
  DefineTwoInputs<RunJoin, ReadJoin>(module, "join", "build", "probe");
  DefineTwoInputs<RunSet, ReadSet>(module, "set", "left", "right");
  DefineOneInput<RunAggregate, ReadAggregate>(module, "aggregate");
  DefineOneInput<RunSort, ReadSort>(module, "sort");
  module->def(
      "run_filter",
      [](const PyView& view, uint32_t threads) { return PyTable{RunFilter(view.view, {.threads = threads})}; },
      nb::arg("view"), nb::arg("threads"));
  module->def(
      "with_ticks",
      [](nb::object tick, nb::object call) {
        const Ticks ticks(tick);
        return nb::object(call());
      },
      nb::arg("tick"), nb::arg("call"),
      nb::sig("def with_ticks(tick: collections.abc.Callable[[], None], call: collections.abc.Callable[[], "
              "typing.Any]) -> typing.Any"),
      "What call() returns; tick() is called now and then while it computes, and ends it by raising.");
  module->def(
      "run_map",
      [](const PyView& view, const ResultShape& descriptor, uint32_t threads) {
        return PyTable{RunMap(view.view, descriptor, {.threads = threads})};
      },
      nb::arg("view"), nb::arg("descriptor"), nb::arg("threads"));
  module->def(
      "read_map", [](const PyView& view, const ResultShape& descriptor) { return ReadMap(view.view, descriptor); },
      nb::arg("view"), nb::arg("descriptor"));
  module->def("read_filter", [](const PyView& view) { return ReadFilter(view.view); }, nb::arg("view"));
}

}  // namespace
}  // namespace quern::python

NB_MODULE(_quern, module) {
  // Objects that other libraries still hold when the process ends (a lazy frame of Polars and its function hold each
  // other, and with it all globals) are nothing to warn their user of.
  nanobind::set_leak_warnings(false);
  module.doc() = "The native part of quern; use the functions of the package.";
  module.def("version", [] { return std::string(quern_version()); });
  module.def("abi_version", &quern_abi_version);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { quern::python::interpreter_ends = true; }));
  quern::python::DefineInputs(&module);
  quern::python::DefineResults(&module);
  quern::python::DefineKernel(&module);
  quern::python::DefineOptions(&module);
  quern::python::DefineOperators(&module);
  quern::python::DefineQueries(&module);
  quern::python::DefineTexts(&module);
  quern::python::DefineProfiles(&module);
  quern::python::DefineTuning(&module);
}
