// SPDX-License-Identifier: Apache-2.0
// Operations on the states of groups: merging and saving them, and turning them into results.
#ifndef QUERN_RUNTIME_AGGREGATE_GROUP_STATES_H_
#define QUERN_RUNTIME_AGGREGATE_GROUP_STATES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/aggregate/aggregate_descriptor.h"

namespace quern {

// Adds all states of from[i] to into[i]; into[i] may occur more than once. *Errors*: OutOfRange for a checked sum that
// does not fit, with its name; ResourceExhausted, after which states that were added are zero in from[i], so that the
// call may be repeated, unless memory->is_broken().
absl::Status MergeStates(const AggregateDescriptor& descriptor, uint8_t* const* into, uint8_t* const* from, uint32_t n,
                         AccumulatorMemory* memory);

// The same for one aggregate.
absl::Status MergeState(const AggregateDescriptor& descriptor, size_t aggregate, uint8_t* const* into,
                        uint8_t* const* from, uint32_t n, AccumulatorMemory* memory);

// Writes the results of n groups to a column of AggregateResultType, from out_row on. Returns how many fit; fewer than
// n only for strings at the limit of 32-bit offsets. *Errors*: OutOfRange for an average or a sum that does not fit;
// ResourceExhausted. host: the job's pointer for functions of the host.
absl::StatusOr<uint32_t> WriteResults(const AggregateDescriptor& descriptor, size_t aggregate, uint8_t* const* tuples,
                                      uint32_t n, QuernOutColumn* out, uint64_t out_row, void* host = nullptr);

// Saves a state as bytes: its own bytes and one that says whether it has seen a value, or the format of its out-of-line
// aggregate.
void SaveState(const AggregateDescriptor& descriptor, size_t aggregate, const uint8_t* tuple, std::string* bytes);
// Writes the states of n groups, as SaveState saves them, to a binary column, from out_row on. Returns how many fit;
// fewer than n only at the limit of 32-bit offsets. *Errors*: ResourceExhausted.
absl::StatusOr<uint32_t> WriteStates(const AggregateDescriptor& descriptor, size_t aggregate, uint8_t* const* tuples,
                                     uint32_t n, QuernOutColumn* out, uint64_t out_row);
// The same for one group whose state has parts, of which each call writes the next one, of about most_bytes, from value
// *next on (OutOfLineAggregate::SavePart). *next is 0 at first, and UINT64_MAX once there are no more: then the state
// of no values is written.
absl::Status WritePartOfState(const AggregateDescriptor& descriptor, size_t aggregate, const uint8_t* tuple,
                              uint64_t most_bytes, uint64_t* next, QuernOutColumn* out, uint64_t out_row);
// Saves the state of no values of an out-of-line aggregate.
void SaveNoValues(const AggregateDescriptor& descriptor, size_t aggregate, std::string* bytes);
// Makes all states of a group what they are before the first value, unless adding them once more changes nothing.
void ClearStates(const AggregateDescriptor& descriptor, uint8_t* tuple);
// Adds n saved states of an aggregate that is not out of line to the tuples; one may occur more than once. scratch:
// memory that further calls use again. *Errors*: as MergeSavedState, after which some states may have been added.
absl::Status MergeSavedStates(const AggregateDescriptor& descriptor, size_t aggregate, const std::string_view* saved,
                              uint8_t* const* tuples, uint32_t n, std::vector<uint8_t>* scratch);
// Adds a saved state. *Errors*: InvalidArgument for bytes that SaveState does not write; OutOfRange; ResourceExhausted.
absl::Status MergeSavedState(const AggregateDescriptor& descriptor, size_t aggregate, std::string_view bytes,
                             uint8_t* tuple, AccumulatorMemory* memory);

// "sum out of range: sum(i64); accepted: results within 64 bits, or sum128"
absl::Status SumOutOfRange(const AggregateSpec& aggregate);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_GROUP_STATES_H_
