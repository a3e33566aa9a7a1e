// SPDX-License-Identifier: Apache-2.0
// The secret of a process that hashes of tables depend on (quern_hash_secret in bytes.h), against hash flooding: data
// that is made so that all keys meet in one place of a table (Crosby and Wallach, 2003).
//
// It is drawn when the library is loaded, so that a child inherits it by fork, and all tables and threads of a process
// share it. QUERN_HASH_SEED makes it the same in each process, for runs that are to be repeated.
#ifndef QUERN_RUNTIME_BASE_HASH_SECRET_H_
#define QUERN_RUNTIME_BASE_HASH_SECRET_H_

#include <cstdint>

namespace quern {

// Replaces the secret by numbers that `seed` determines. *Threads*: none may have a table yet, or make one meanwhile.
void SetHashSeed(uint64_t seed);

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_HASH_SECRET_H_
