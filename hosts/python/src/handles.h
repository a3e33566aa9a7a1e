// SPDX-License-Identifier: Apache-2.0
// Objects that Python holds, which several files of the module define functions on.
#ifndef QUERN_HOSTS_PYTHON_SRC_HANDLES_H_
#define QUERN_HOSTS_PYTHON_SRC_HANDLES_H_

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "results.h"
#include "source.h"

namespace quern::python {

namespace nb = nanobind;

// Python's handles. What they point to may live on in a reader, and die there without the GIL. Where it dies with the
// handle, a producer's release callback may run Python, which must not lose the exception that is being raised.
struct PySource {
  std::shared_ptr<Source> source;
  ~PySource() {
    const nb::error_scope kept;
    source.reset();
  }
};
struct PyTable {
  Table table;
  ~PyTable() {
    const nb::error_scope kept;
    table.reset();
  }
};
using FieldTuple = std::tuple<std::string, std::string, std::string, bool>;

inline std::vector<FieldTuple> FieldTuples(const std::vector<Field>& fields) {
  std::vector<FieldTuple> tuples;
  for (const Field& field : fields) tuples.emplace_back(field.name, field.format, field.dictionary, field.nullable);
  return tuples;
}

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_HANDLES_H_
