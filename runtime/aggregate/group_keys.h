// SPDX-License-Identifier: Apache-2.0
// Writes the keys of groups to result columns.
#ifndef QUERN_RUNTIME_AGGREGATE_GROUP_KEYS_H_
#define QUERN_RUNTIME_AGGREGATE_GROUP_KEYS_H_

#include "absl/status/statusor.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/aggregate/aggregate_descriptor.h"
#include "runtime/aggregate/key_dictionaries.h"

namespace quern {

// Writes one key of n groups to a column of its type, from out_row on. Returns how many fit; fewer than n only for
// strings at the limit of 32-bit offsets. *Errors*: ResourceExhausted.
absl::StatusOr<uint32_t> WriteKey(const AggregateDescriptor& descriptor, const KeyDictionaries& dictionaries,
                                  size_t key, uint8_t* const* tuples, uint32_t n, QuernOutColumn* out,
                                  uint64_t out_row);

// Hashes the keys of n groups by their values, so that the result is the same in every process: it depends neither on
// the secret of the process nor on the numbers of dictionary values.
void HashKeys(const AggregateDescriptor& descriptor, const KeyDictionaries& dictionaries, uint8_t* const* tuples,
              uint32_t n, uint64_t* hashes);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_GROUP_KEYS_H_
