// SPDX-License-Identifier: Apache-2.0
// The secret of a process that hashes of tables depend on (quern_hash_secret in bytes.h), against hash flooding: data
// that is made so that all keys meet in one place of a table (Crosby and Wallach, 2003).
//
// It is drawn when the library is loaded, so that a child inherits it by fork, and all tables and threads of a process
// share it. QUERN_HASH_SEED makes it the same in each process, for runs that are to be repeated.
//
// Whoever knows the secret all the same (from a seed, or from the order of groups) can choose keys that meet. A table
// that sees such keys makes their hashes anew with numbers of its own (TableSecret), which are drawn at that moment.
#ifndef QUERN_RUNTIME_BASE_HASH_SECRET_H_
#define QUERN_RUNTIME_BASE_HASH_SECRET_H_

#include <cstdint>

#include "runtime/base/bytes.h"

namespace quern {

// Replaces the secret by numbers that `seed` determines. *Threads*: none may have a table yet, or make one meanwhile.
void SetHashSeed(uint64_t seed);

// The numbers of one table.
struct TableSecret {
  blocks::HashSecret numbers = {};

  // The hash that takes the place of a hash with the secret of the process. Different hashes stay different.
  uint64_t Remix(uint64_t hash) const { return blocks::Mix(hash, numbers); }
  // The hash of the process again.
  uint64_t Unmix(uint64_t remixed) const;
};

// Draws numbers from the system; QUERN_HASH_SEED has no influence on them. *Cost*: a system call. *Threads*: any.
TableSecret DrawTableSecret();

// For tests that are to be repeated: all later numbers follow from `seed`. *Threads*: none may draw meanwhile.
void SetTableSecretSeed(uint64_t seed);

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_HASH_SECRET_H_
