// SPDX-License-Identifier: Apache-2.0
// exit() destroys static objects while other threads still run, and LLVM has hundreds of them: registries of passes,
// lists of options, types of values that instruction selection looks up. A thread that compiles at that moment reads
// destroyed objects. Waiting for it first does not help: exit() runs handlers in the reverse order of their
// registration, and LLVM creates many of its objects during the first compilation, so they are destroyed before any
// handler that was registered before it:
//
//     start    our handler is registered; the first compilation makes SimpleVTArray and others
//     exit()   ~SimpleVTArray runs; then our handler waits, and the compilation crashes
//
// But nobody needs these destructors: all they do is return memory of a process that ends. So they are never
// registered. Compilers register a destructor by calling __cxa_atexit. libquern.so and the command line tool are linked
// with --wrap=__cxa_atexit, which redirects such calls from everything linked into them, including LLVM, to the
// function below. Programs that are linked without this option behave as usual.
//
// Shared libraries that these two use (C++, Abseil, Arrow) are not affected, nor is the host. None of our own
// destructors has to run: files are closed where they are written. std::atexit would be dropped too, hence
// AtProcessEnd.
#include "codegen/base/process_end.h"

#include <cstdlib>
#include <new>

// NOLINTBEGIN(readability-identifier-naming): the linker's name for it
extern "C" int __wrap___cxa_atexit(void (*destructor)(void*), void* object, void* library);

extern "C" int __wrap___cxa_atexit(void (*)(void*), void*, void*) { return 0; }
// NOLINTEND(readability-identifier-naming)

namespace quern {

void AtProcessEnd(void (*handler)()) {
  on_exit(
      [](int, void* argument) {
        try {
          reinterpret_cast<void (*)()>(argument)();
        } catch (const std::bad_alloc&) {  // the process ends all the same
          return;
        }
      },
      reinterpret_cast<void*>(handler));
}

}  // namespace quern
