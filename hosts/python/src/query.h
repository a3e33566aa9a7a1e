// SPDX-License-Identifier: Apache-2.0
// Queries of several steps (tools/query) over what producers give.
#ifndef QUERN_HOSTS_PYTHON_SRC_QUERY_H_
#define QUERN_HOSTS_PYTHON_SRC_QUERY_H_

#include <nanobind/nanobind.h>

namespace quern::python {

// Adds the class Query.
void DefineQueries(nanobind::module_* module);

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_QUERY_H_
