// SPDX-License-Identifier: Apache-2.0
// The grammars of the command line, for Python: the same names and texts mean the same there.
#ifndef QUERN_HOSTS_PYTHON_SRC_TEXTS_H_
#define QUERN_HOSTS_PYTHON_SRC_TEXTS_H_

#include <nanobind/nanobind.h>

namespace quern::python {

// Adds the parse_* functions, type_text, quote_name and unknown_word to the module.
void DefineTexts(nanobind::module_* module);

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_TEXTS_H_
