/* SPDX-License-Identifier: Apache-2.0
 * A host that loads the library given, lets a thread compile with it, closes it and ends: code that the thread still
 * runs must be there. */
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "quern.h"

static quern_status (*compile)(const char*, quern_engine, const char*, quern_kernel**, quern_error*);
static void (*destroy)(quern_kernel*);

static void* compile_for_ever(void* unused) {
  (void)unused;
  for (uint32_t i = 0;; ++i) {
    char spec[40];
    quern_kernel* kernel = NULL;
    quern_error error;
    snprintf(spec, sizeof(spec), "filter i64 >= %u", i);
    if (compile(spec, QUERN_ENGINE_JIT, NULL, &kernel, &error) == QUERN_OK) destroy(kernel);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 3;
  /* As POSIX has it: an object pointer is turned into a function's by its bytes. */
  *(void**)&compile = dlsym(library, "quern_compile");
  *(void**)&destroy = dlsym(library, "quern_kernel_destroy");
  pthread_t thread;
  if (compile == NULL || destroy == NULL || pthread_create(&thread, NULL, compile_for_ever, NULL) != 0) return 4;
  usleep(30000);
  dlclose(library);
  usleep(30000);
  printf("closed\n");
  return 0;
}
