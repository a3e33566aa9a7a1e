// SPDX-License-Identifier: Apache-2.0
// Thread-local variables of a library that hosts load with dlopen. By default glibc allocates those of a module when a
// thread first uses one, and ends the process where memory is refused. In the initial-exec model they are part of the
// block that pthread_create allocates, and a thread that cannot have it is not made. The linker marks the whole module
// (DF_STATIC_TLS), so that this holds for the variables of LLVM in it, too. glibc keeps some 1.6 kB of each thread for
// all libraries that ask for this; ours takes 256 bytes. An access costs no call.
//
// Drepper, "ELF Handling For Thread-Local Storage", 2013.
#ifndef QUERN_RUNTIME_BASE_THREAD_LOCAL_H_
#define QUERN_RUNTIME_BASE_THREAD_LOCAL_H_

#define QUERN_THREAD_LOCAL thread_local __attribute__((tls_model("initial-exec")))

#endif  // QUERN_RUNTIME_BASE_THREAD_LOCAL_H_
