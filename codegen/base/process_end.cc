// SPDX-License-Identifier: Apache-2.0
// exit() destroys static objects while other threads still run, and LLVM has hundreds of them: registries of passes,
// lists of options, types of values that instruction selection looks up. A thread that compiles at that moment reads
// what is gone. To wait for it first does not help: handlers of exit() run in the reverse order of their registration,
// LLVM makes many of its objects within the first compilation, and so they go before any handler that was registered
// early enough to be there.
//
//     handler registered, first compilation: SimpleVTArray made, .. exit(): ~SimpleVTArray, handler waits, the
//     compilation crashes
//
// But nobody needs these destructors. All they do is to give memory back to a process that ends. So they are never
// registered: compilers register a destructor by a call of __cxa_atexit, and libquern.so and the command line tool are
// linked with --wrap=__cxa_atexit, which makes such calls of all that is linked into them, LLVM too, calls of the
// function below. (Programs that do not ask for that are as ever.)
//
// The libraries that these two use as shared ones (C++, Abseil, Arrow) are not meant, nor is the host. Nothing of ours
// has a destructor that must run: files are closed where they were written. std::atexit would be left out too, hence
// AtProcessEnd.
#include "codegen/base/process_end.h"

#include <cstdlib>

// NOLINTBEGIN(readability-identifier-naming): the linker's name for it
extern "C" int __wrap___cxa_atexit(void (*destructor)(void*), void* object, void* library);

extern "C" int __wrap___cxa_atexit(void (*)(void*), void*, void*) { return 0; }
// NOLINTEND(readability-identifier-naming)

namespace quern {

void AtProcessEnd(void (*handler)()) {
  on_exit([](int, void* argument) { reinterpret_cast<void (*)()>(argument)(); }, reinterpret_cast<void*>(handler));
}

}  // namespace quern
