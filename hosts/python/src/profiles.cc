// SPDX-License-Identifier: Apache-2.0
// A profile is text with a meaning, and Python sees both: the text as it stands in a file, and its entries as rows, for
// a DataFrame or a picture:
//
//     entry probe_open packed 2^22 pipeline=1 threads=1 setting=48 ns=3.2 default_ns=3.9 off_ns=6.4 noise=0.011
//     ("probe_open", "packed", 1, 1, 4194304, "48", 3.2, 3.9, 6.4, 0.179, 0.011)
//
// There are few rows (some hundred), so their Arrow columns are made on request.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "codegen/machine/machine.h"
#include "codegen/machine/prefetch_choice.h"
#include "errors.h"
#include "results.h"
#include "tools/report/report.h"
#include "tuning.h"
#include "without_gil.h"

namespace nb = nanobind;

namespace quern::python {
namespace {

// ---- rows ----

// loop, keys, pipeline, threads, table_bytes, setting, ns, default_ns, off_ns, gain, noise.
using EntryTuple = std::tuple<std::string, std::string, uint32_t, uint32_t, uint64_t, std::string, double, double,
                              double, double, double>;
constexpr const char* kNames[] = {"loop", "keys",       "pipeline", "threads", "table_bytes", "setting",
                                  "ns",   "default_ns", "off_ns",   "gain",    "noise"};

EntryTuple TupleOf(const ProfileEntry& entry) {
  const TuningCell& cell = entry.cell;
  const std::string setting = entry.is_default ? "default" : PrintSetting(entry.setting, DefaultHint(cell.loop));
  const double gain = entry.default_ns > 0 && !entry.is_default ? 1 - entry.ns / entry.default_ns : 0;
  return {LoopText(cell.loop),
          KeyClassText(cell.keys),
          cell.pipeline,
          cell.threads,
          uint64_t{1} << cell.size_class,
          setting,
          entry.ns,
          entry.default_ns,
          entry.off_ns,
          gain,
          entry.noise};
}

std::vector<EntryTuple> TuplesOf(const Profile& profile) {
  std::vector<EntryTuple> tuples;
  for (const ProfileEntry& entry : profile.entries) tuples.push_back(TupleOf(entry));
  return tuples;
}

// ---- the same as Arrow columns ----

template <class Value>
struct Values {
  std::vector<Value> values;
  std::vector<const void*> buffers;
};

// A column without nulls of `values`, which `owner` keeps.
Column ColumnOf(size_t num_rows, std::vector<const void*>* buffers, std::shared_ptr<const void> owner) {
  Column column;
  column.array.length = static_cast<int64_t>(num_rows);
  column.array.n_buffers = static_cast<int64_t>(buffers->size());
  column.array.buffers = buffers->data();
  column.owner = std::move(owner);
  return column;
}

template <class Number>
Column MakeColumn(const std::vector<Number>& numbers) {
  const auto kept = std::make_shared<Values<Number>>(Values<Number>{numbers, {}});
  kept->buffers = {nullptr, kept->values.data()};
  return ColumnOf(numbers.size(), &kept->buffers, kept);
}

Column MakeColumn(const std::vector<std::string>& texts) {
  struct Strings : Values<int32_t> {
    std::string bytes;
  };
  const auto kept = std::make_shared<Strings>();
  kept->values.push_back(0);
  for (const std::string& text : texts) {
    kept->bytes += text;
    kept->values.push_back(static_cast<int32_t>(kept->bytes.size()));
  }
  kept->buffers = {nullptr, kept->values.data(), kept->bytes.data()};
  return ColumnOf(texts.size(), &kept->buffers, kept);
}

const char* FormatOf(const std::vector<std::string>&) { return "u"; }
const char* FormatOf(const std::vector<uint32_t>&) { return "I"; }
const char* FormatOf(const std::vector<uint64_t>&) { return "L"; }
const char* FormatOf(const std::vector<double>&) { return "g"; }

template <size_t kColumn>
void AddColumn(const std::vector<EntryTuple>& tuples, std::vector<Field>* fields, Batch* batch) {
  std::vector<std::tuple_element_t<kColumn, EntryTuple>> values;
  for (const EntryTuple& tuple : tuples) values.push_back(std::get<kColumn>(tuple));
  fields->push_back({kNames[kColumn], FormatOf(values), "", false});
  batch->columns.push_back(MakeColumn(values));
}

Table TableOf(const Profile& profile) {
  const std::vector<EntryTuple> tuples = TuplesOf(profile);
  std::vector<Field> fields;
  Batch batch{static_cast<int64_t>(tuples.size()), {}};
  [&]<size_t... kColumns>(std::index_sequence<kColumns...>) {
    (AddColumn<kColumns>(tuples, &fields, &batch), ...);
  }(std::make_index_sequence<std::tuple_size_v<EntryTuple>>());
  return MakeTable(std::move(fields), {std::move(batch)});
}

// ---- what else it says ----

std::optional<std::tuple<std::string, std::string>> FactsOf(const Profile& profile) {
  if (!profile.facts) return std::nullopt;
  MachineFacts facts = *profile.facts;
  facts.signature = profile.machine;
  return std::tuple(FactsJson(facts), PrintFacts(facts));
}

KeyClass KeysOf(const std::string& name) {
  for (const KeyClass keys : {KeyClass::kPacked, KeyClass::kFixed, KeyClass::kString})
    if (name == KeyClassText(keys)) return keys;
  throw std::invalid_argument("unknown keys: " + name + "; accepted: packed, fixed, string");
}

// loop, schedule, where it comes from: what plans make of the profile on this machine.
std::vector<std::tuple<std::string, std::string, std::string>> LaddersOf(const PyProfile& self,
                                                                         const std::string& keys_name,
                                                                         uint32_t pipeline) {
  const KeyClass keys = KeysOf(keys_name);
  const absl::StatusOr<Machine> host = HostMachine();
  Check(host.status());
  std::vector<std::tuple<std::string, std::string, std::string>> schedules;
  for (size_t i = 0; i < kNumPrefetchLoops; ++i) {
    const auto loop = static_cast<PrefetchLoop>(i);
    std::string origin;
    const PrefetchSchedule schedule = ChooseSchedule(loop, keys, pipeline, *host, self.profile.get(), &origin);
    schedules.emplace_back(LoopText(loop), PrintSchedule(schedule, DefaultHint(loop)), origin);
  }
  return schedules;
}

const TuningResult& TuningOf(const PyProfile& self) {
  if (self.tuning != nullptr) return *self.tuning;
  throw std::invalid_argument(
      "report of a profile that was read: entries alone; accepted: one that quern.tune has made");
}

// ---- files ----

PyProfile Made(absl::StatusOr<Profile> profile) {
  if (absl::IsNotFound(profile.status())) {
    PyErr_SetString(PyExc_FileNotFoundError, std::string(profile.status().message()).c_str());
    throw nb::python_error();
  }
  Check(profile.status());
  return {std::make_shared<const Profile>(*std::move(profile)), nullptr};
}

std::optional<PyProfile> OrNone(std::shared_ptr<const Profile> profile) {
  if (profile == nullptr) return std::nullopt;
  return PyProfile{std::move(profile), nullptr};
}

PyProfile WrittenAs(const PyProfile& self, const std::string& path) {
  {
    const WithoutGil no_gil;
    Check(WriteProfile(*self.profile, path));
  }
  auto written = std::make_shared<Profile>(*self.profile);
  written->path = path;
  return {std::move(written), self.tuning};
}

std::string HomeOfProfile() {
  const absl::StatusOr<std::string> home = ProfileHome(HostSignature());
  Check(home.status());
  return *home;
}

void DefineProfileClass(nb::module_* module) {
  nb::class_<PyProfile>(*module, "Profile", "A tuning profile.")
      .def_static(
          "parse", [](const std::string& text, const std::string& name) { return Made(Profile::Parse(text, name)); },
          nb::arg("text"), nb::arg("name"))
      .def_static(
          "read", [](const std::string& path) { return Made(ReadProfile(path)); }, nb::arg("path"))
      .def_prop_ro("path", [](const PyProfile& self) { return self.profile->path; })
      .def_prop_ro("text", [](const PyProfile& self) { return self.profile->Print(); })
      .def_prop_ro("signature", [](const PyProfile& self) { return PrintSignature(self.profile->machine); })
      .def_prop_ro(
          "difference", [](const PyProfile& self) { return ForeignMachine(*self.profile); },
          "What makes it one of another machine; empty where it is of this one.")
      .def_prop_ro("entries", [](const PyProfile& self) { return TuplesOf(*self.profile); })
      .def_prop_ro(
          "facts", [](const PyProfile& self) { return FactsOf(*self.profile); }, "As JSON, and as a table for people.")
      .def("schedules", &LaddersOf, nb::arg("keys"), nb::arg("pipeline"))
      .def_prop_ro("is_tuning", [](const PyProfile& self) { return self.tuning != nullptr; })
      .def_prop_ro("stopped", [](const PyProfile& self) { return self.tuning != nullptr && self.tuning->stopped; })
      .def_prop_ro("seconds", [](const PyProfile& self) { return self.tuning == nullptr ? 0 : self.tuning->seconds; })
      .def("html", [](const PyProfile& self) { return HtmlReport(TuningOf(self)); })
      .def("csv", [](const PyProfile& self) { return CsvReport(TuningOf(self)); })
      .def("table", [](const PyProfile& self) { return TerminalReport(TuningOf(self)); })
      .def("write", &WrittenAs, nb::arg("path"), "The same as one of that file.")
      .def(
          "merge",
          [](const PyProfile& self, const PyProfile& other) {
            return Made(MergeProfiles(*self.profile, *other.profile));
          },
          nb::arg("other"))
      .def(
          "diff",
          [](const PyProfile& self, const PyProfile& other) { return DiffProfiles(*self.profile, *other.profile); },
          nb::arg("other"))
      .def("schema_capsule", [](const PyProfile& self) { return SchemaCapsule(TableOf(*self.profile)->fields); })
      .def("stream_capsule", [](const PyProfile& self) { return StreamCapsule(TableOf(*self.profile)); });
}

}  // namespace

void DefineProfiles(nb::module_* module) {
  DefineProfileClass(module);
  module->def("entry_names", [] { return std::vector<std::string>(std::begin(kNames), std::end(kNames)); });
  module->def("profile_in_use", [] { return OrNone(ProfileOfProcess()); }, "What plans go by.");
  module->def("find_profile", [] { return OrNone(FindProfile()); }, "What they go by where nothing else was said.");
  module->def(
      "use_profile",
      [](const PyProfile* profile) { SetProfileOfProcess(profile == nullptr ? nullptr : profile->profile); },
      nb::arg("profile").none());
  module->def(
      "profile_places", [] { return ProfilePlaces(HostSignature()); },
      "Where profiles are looked for; none: QUERN_PROFILE=off.");
  module->def("profile_home", &HomeOfProfile, "Where this machine's is written.");
}

}  // namespace quern::python
