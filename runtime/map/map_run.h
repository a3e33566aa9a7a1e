// SPDX-License-Identifier: Apache-2.0
// Runs the instructions of a map, for maps and for aggregations of expressions.
#ifndef QUERN_RUNTIME_MAP_MAP_RUN_H_
#define QUERN_RUNTIME_MAP_MAP_RUN_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/abi/filter_abi.h"
#include "runtime/abi/map_abi.h"
#include "runtime/map/map_descriptor.h"
#include "runtime/map/string_values.h"

namespace quern {

// The kernels that every machine has, for maps and their conditions on strings.
struct GenericMaps {
  QuernMapEntryPoints rows = {};
  QuernFilterEntryPoints strings = {};
};

enum class MapEnd : uint8_t {
  kDone,
  kRowFailed,  // args->failed_row has no result
  kTooLarge,   // a result column with offsets of 32 bits has no room for all strings; it has those of earlier calls
};

// Computes the rows that args describes, by the kernel that there is now or, where decimals do not fit 64 bits, by the
// generic one. strings: of the map. wide_calls: kept by the caller from call to call, at first 0: how many calls since
// the compiled kernel was last tried, that one included, had decimals beyond 64 bits; 0: that one had none.
// *Errors*: ResourceExhausted.
absl::StatusOr<MapEnd> RunMap(const QuernMapEntryPoints& now, const QuernMapEntryPoints& generic, StringReader* strings,
                              QuernMapArgs* args, uint64_t* wide_calls);

// The error of args.failed_row, with the row's number, its values and the cause. first_row: what errors call the
// batch's row 0; nullopt: they name no row.
absl::Status FailedRow(const MapDescriptor& map, const QuernMapEntryPoints& generic, const QuernMapArgs& args,
                       std::optional<uint64_t> first_row, StringReader* strings);

}  // namespace quern

#endif  // QUERN_RUNTIME_MAP_MAP_RUN_H_
