/* SPDX-License-Identifier: Apache-2.0 */
/* A host that test/hosts/privileged.py gives more rights than its user has. */
#include <stdio.h>

#include "quern.h"

int main(void) {
  quern_error error;
  quern_kernel* kernel = NULL;
  const quern_status status =
      quern_compile("aggregate keys=utf8(icu:de) aggs=count_star", QUERN_ENGINE_JIT, NULL, &kernel, &error);
  printf("%s\n", status == QUERN_OK ? "compiled" : error.text);
  return status != QUERN_OK;
}
