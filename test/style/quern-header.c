// SPDX-License-Identifier: Apache-2.0
// The public header compiles alone as C11 and as C++, with every warning an error, and twice in one file.
// RUN: %cc -std=c11 -Wall -Wextra -Wpedantic -Wstrict-prototypes -Werror -I%src_root/hosts/c -fsyntax-only %s
// RUN: %cxx -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -I%src_root/hosts/c -fsyntax-only %s
#include "quern.h"

quern_status use(const char* spec, quern_kernel** kernel, quern_error* error);
quern_status use(const char* spec, quern_kernel** kernel, quern_error* error) {
  return quern_compile(spec, QUERN_ENGINE_AUTO, 0, kernel, error);
}
