// SPDX-License-Identifier: Apache-2.0
// Hashes of tables are the same in each run of a test program, unless QUERN_TEST_SEED says otherwise.
#include "runtime/base/hash_secret.h"
#include "test/unit/seed.h"

namespace {
const bool is_seeded = (quern::SetHashSeed(quern::test::Seed()), quern::SetTableSecretSeed(quern::test::Seed()), true);
}  // namespace
