// SPDX-License-Identifier: Apache-2.0
#include "hosts/c/spill_options.h"

#include <string>
#include <utility>

#include "codegen/base/environment.h"
#include "hosts/c/boundary.h"
#include "runtime/base/status.h"
#include "runtime/spill/spill_store.h"

namespace quern::c_abi {
namespace {

constexpr size_t kSpillOptionsSize = sizeof(quern_spill_options);
constexpr uint64_t kMinBlockBytes = 4096, kMaxBlockBytes = 64 << 20;

absl::Status Check(const quern_spill_options& options) {
  const int num_functions = (options.write_block != nullptr ? 1 : 0) + (options.read_block != nullptr ? 1 : 0) +
                            (options.free_block != nullptr ? 1 : 0);
  if (num_functions != 0 && num_functions != 3) {
    return InvalidArgument("functions of a store for spilled rows: " + std::to_string(num_functions) +
                           "; accepted: write_block, read_block and free_block, or none");
  }
  const uint64_t block = options.block_bytes;
  if (block != 0 && (block < kMinBlockBytes || block > kMaxBlockBytes)) {
    return InvalidArgument("block_bytes out of range: " + std::to_string(block) + "; accepted: 0, or " +
                           std::to_string(kMinBlockBytes) + " to " + std::to_string(kMaxBlockBytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<SpillContext>> SpillOf(const quern_spill_options& given, void* host,
                                                      const std::shared_ptr<MemoryBudget>& budget,
                                                      const SpillSettings& planned) {
  QUERN_ASSIGN_OR_RETURN(const quern_spill_options options, ReadOptions(&given, kSpillOptionsSize));
  QUERN_RETURN_IF_ERROR(Check(options));
  SpillSettings settings = planned;
  settings.block_bytes = options.block_bytes;
  std::unique_ptr<SpillStore> store;
  if (options.write_block != nullptr) {
    store = MakeHostStore({options.write_block, options.read_block, options.free_block, host});
  } else {
    const std::string folder = options.folder != nullptr ? options.folder : ReadVariable(Variable::kSpillDir).value;
    store = std::make_unique<TemporaryFiles>(folder, options.max_bytes);
  }
  return std::make_shared<SpillContext>(std::move(store), budget, settings);
}

}  // namespace quern::c_abi
