// SPDX-License-Identifier: Apache-2.0
// Measurements of the file system of a folder: what blocks of a size cost that are read and written so many at a time.
#ifndef QUERN_CODEGEN_MACHINE_DEVICE_FACTS_H_
#define QUERN_CODEGEN_MACHINE_DEVICE_FACTS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace quern {

// Blocks at random places of a file.
struct DeviceFact {
  uint64_t block_bytes = 0;
  uint32_t depth = 0;    // blocks in flight: each is one thread's, in one call
  bool cached = false;   // through the page cache, which has the file; else past it
  double read_mb_s = 0;  // of all threads together, in 10^6 bytes a second
  double read_us = 0;    // of one block, from its call to its return
  double write_mb_s = 0, write_us = 0;
};

struct DeviceFacts {
  std::string folder, file_system;  // "ext4"; a number where the name is not known
  uint64_t file_bytes = 0;
  bool passes_cache = false;      // the file system allows O_DIRECT
  std::vector<DeviceFact> facts;  // past the cache and through it, by size, then depth
  double seconds = 0;
};

struct DeviceFactsOptions {
  double seconds = 2;                                // approximate limit
  uint64_t max_bytes = uint64_t{256} << 20;          // of the file; never more than a quarter of the free space
  std::function<void(const std::string&)> progress;  // called with the current measurement; may be empty
  const std::atomic<bool>* stop = nullptr;           // set: ends with Cancelled before the next one
};

// Makes a nameless file in the folder, and none is left. *Cost*: options.seconds; writes up to a few times max_bytes.
// *Errors*: FailedPrecondition for a folder without such files, or without room; Unavailable where a call fails;
// ResourceExhausted without memory; Cancelled.
absl::StatusOr<DeviceFacts> MeasureDevice(const std::string& folder, const DeviceFactsOptions& options = {});

// For people, and one JSON object.
std::string PrintDevice(const DeviceFacts& facts);
std::string DeviceJson(const DeviceFacts& facts);

}  // namespace quern

#endif  // QUERN_CODEGEN_MACHINE_DEVICE_FACTS_H_
