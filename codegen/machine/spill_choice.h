// SPDX-License-Identifier: Apache-2.0
// How spilled rows are read ahead and written behind on a machine, as a profile keeps it.
#ifndef QUERN_CODEGEN_MACHINE_SPILL_CHOICE_H_
#define QUERN_CODEGEN_MACHINE_SPILL_CHOICE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace quern {

// The values of the plan parameters spill_block_bytes, spill_read_ahead, spill_write_behind, spill_threads, spill_reads
// and spill_codec, with their defaults.
struct SpillChoice {
  uint32_t block_bytes = 256 << 10;
  uint32_t read_ahead = 2;
  uint32_t write_behind = 2;
  uint32_t threads = 2;
  bool reads_by_ring = true;
  bool compresses = false;  // spill_codec=lz4

  bool operator==(const SpillChoice&) const = default;
};
// "block_bytes=262144 read_ahead=2 write_behind=2 threads=2 reads=ring codec=none".
std::string PrintSpillChoice(const SpillChoice& choice);

// Rows that are written and read again, in 10^6 bytes a second of both together.
struct SpillSpeed {
  double device_mb_s = 0;  // written until the device has them, and read past the page cache
  double cache_mb_s = 0;   // where the page cache keeps them
};

// The line of a profile: "spill block_bytes=.. read_ahead=.. .. device_mb_s=.. default_cache_mb_s=.. noise=..".
struct ProfileSpill {
  SpillChoice choice;  // the default where nothing beat it beyond the noise
  SpillSpeed speed, default_speed;
  double noise = 0;  // share by which two measurements of one choice differ
};
std::string PrintSpillLine(const ProfileSpill& spill);
// rest: the line without its first word. *Errors*: InvalidArgument.
absl::StatusOr<ProfileSpill> ParseSpillLine(std::string_view rest);

}  // namespace quern

#endif  // QUERN_CODEGEN_MACHINE_SPILL_CHOICE_H_
