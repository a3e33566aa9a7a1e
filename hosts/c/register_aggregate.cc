// SPDX-License-Identifier: Apache-2.0
// Aggregate functions of the host, registered with the runtime under the name that a spec uses.
//
//     quern_register_aggregate("area", {.state_bytes = 8, .result = "f64", ..})
//     -> aggregate keys=i64 aggs=host.area(f64,f64)
//
// The runtime calls a function once per batch, not per row, so one more call costs nothing. Our function stands between
// the runtime and the host's: its `user` identifies the host's function, whose own `user` it passes on, with the job's
// `host`. It lets no exception into the runtime's loops: whatever a host in C++ throws is a failure, like any result
// other than 0.
//
// A registration lasts for the process, because kernels that call the function may be in the cache, and so does the
// copy of its struct.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "hosts/c/boundary.h"
#include "hosts/c/host_batch.h"
#include "hosts/c/quern.h"
#include "runtime/base/status.h"
#include "runtime/spec/host_aggregates.h"
#include "runtime/spec/spec.h"

namespace quern::c_abi {
namespace {

constexpr int kThrown = -1;

template <class Call>
int WithoutExceptions(Call&& call) noexcept {
  try {
    return call();
  } catch (...) {
    return kThrown;
  }
}

const quern_aggregate_function& FunctionOf(const void* user) {
  return *static_cast<const quern_aggregate_function*>(user);
}

int Update(void* user, void* host, const QuernColumn* columns, uint32_t num_columns, const uint32_t* rows,
           void* const* states, uint64_t n) {
  const quern_aggregate_function& function = FunctionOf(user);
  return WithoutExceptions([&] {
    ShownColumns shown;
    return function.update(function.user, host, shown.Show({columns, num_columns}), num_columns, rows, states, n);
  });
}

int Merge(void* user, void* host, void* const* into, const void* const* from, uint64_t n) {
  const quern_aggregate_function& function = FunctionOf(user);
  return WithoutExceptions([&] { return function.merge(function.user, host, into, from, n); });
}

int Finalise(void* user, void* host, const void* const* states, uint64_t n, void* values, uint8_t* validity) {
  const quern_aggregate_function& function = FunctionOf(user);
  return WithoutExceptions([&] { return function.finalise(function.user, host, states, n, values, validity); });
}

absl::StatusOr<ColumnType> ResultTypeOf(const char* text) {
  if (text == nullptr) return MissingArgument("result");
  QUERN_ASSIGN_OR_RETURN(const KeySpec parsed, ParseKey(text));
  const KeySpec plain = {.type = parsed.type};
  if (parsed == plain && !parsed.type.nullable) return parsed.type;
  return InvalidArgument("flags of a result type: " + Show(text) + "; accepted: a type alone, as " +
                         PrintType(parsed.type));
}

absl::StatusOr<std::unique_ptr<quern_aggregate_function>> CopyOf(const quern_aggregate_function& function) {
  constexpr size_t kSize = sizeof(quern_aggregate_function);  // in version 2.0
  QUERN_RETURN_IF_ERROR(CheckStructSize(function.struct_size, kSize, kSize, &function + 1));
  return std::make_unique<quern_aggregate_function>(function);
}

absl::Status RegisterFunction(const char* name, const quern_aggregate_function* function) {
  if (name == nullptr) return MissingArgument("name");
  if (function == nullptr) return MissingArgument("function");
  QUERN_ASSIGN_OR_RETURN(std::unique_ptr<quern_aggregate_function> copy, CopyOf(*function));
  HostAggregate aggregate;
  aggregate.state_bytes = copy->state_bytes;
  QUERN_ASSIGN_OR_RETURN(aggregate.result, ResultTypeOf(copy->result));
  aggregate.user = copy.get();
  if (copy->update != nullptr) aggregate.update = Update;
  if (copy->merge != nullptr) aggregate.merge = Merge;
  if (copy->finalise != nullptr) aggregate.finalise = Finalise;
  copy->result = nullptr;  // the host's text may go away
  QUERN_RETURN_IF_ERROR(RegisterHostAggregate(name, aggregate));
  static_cast<void>(copy.release());
  return absl::OkStatus();
}

}  // namespace
}  // namespace quern::c_abi

extern "C" {

quern_status quern_register_aggregate(const char* name, const quern_aggregate_function* function, quern_error* error) {
  return quern::c_abi::Boundary(error, [&] { return quern::c_abi::RegisterFunction(name, function); });
}

}  // extern "C"
