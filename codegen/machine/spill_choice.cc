// SPDX-License-Identifier: Apache-2.0
// The line of a profile that says how rows are spilled here:
//
//     spill block_bytes=1048576 read_ahead=4 write_behind=4 threads=4 reads=ring codec=lz4 device_mb_s=520.5
//       cache_mb_s=1900 default_device_mb_s=310.2 default_cache_mb_s=1450 noise=0.08        (one line)
//
// The fields come in this order. Speeds are for people: a plan takes the first six. Profiles of earlier versions have
// no codec.
#include "codegen/machine/spill_choice.h"

#include <iterator>

#include "codegen/base/text_words.h"
#include "codegen/machine/line_fields.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

struct CountField {
  const char* name;
  uint32_t SpillChoice::* value;
  uint32_t min, max;  // as of the plan parameter
};
constexpr CountField kCounts[] = {{"block_bytes", &SpillChoice::block_bytes, 16 << 10, 64 << 20},
                                  {"read_ahead", &SpillChoice::read_ahead, 1, 64},
                                  {"write_behind", &SpillChoice::write_behind, 0, 64},
                                  {"threads", &SpillChoice::threads, 1, 64}};

constexpr const char *kRing = "ring", *kThreads = "threads", *kNone = "none", *kLz4 = "lz4";

struct RealField {
  const char* name;
  double* value;
};

constexpr const char* kForm =
    "spill block_bytes=N read_ahead=N write_behind=N threads=N reads=WORD codec=WORD device_mb_s=N cache_mb_s=N "
    "default_device_mb_s=N default_cache_mb_s=N noise=N";

}  // namespace

std::string PrintSpillChoice(const SpillChoice& choice) {
  std::string text;
  for (const CountField& field : kCounts)
    text += (text.empty() ? "" : " ") + std::string(field.name) + "=" + std::to_string(choice.*field.value);
  return text + " reads=" + (choice.reads_by_ring ? kRing : kThreads) + " codec=" + (choice.compresses ? kLz4 : kNone);
}

std::string PrintSpillLine(const ProfileSpill& spill) {
  return "spill " + PrintSpillChoice(spill.choice) + " device_mb_s=" + PrintReal(spill.speed.device_mb_s) +
         " cache_mb_s=" + PrintReal(spill.speed.cache_mb_s) +
         " default_device_mb_s=" + PrintReal(spill.default_speed.device_mb_s) +
         " default_cache_mb_s=" + PrintReal(spill.default_speed.cache_mb_s) + " noise=" + PrintReal(spill.noise);
}

absl::StatusOr<ProfileSpill> ParseSpillLine(std::string_view rest) {
  ProfileSpill spill;
  const RealField reals[] = {{"device_mb_s", &spill.speed.device_mb_s},
                             {"cache_mb_s", &spill.speed.cache_mb_s},
                             {"default_device_mb_s", &spill.default_speed.device_mb_s},
                             {"default_cache_mb_s", &spill.default_speed.cache_mb_s},
                             {"noise", &spill.noise}};
  LineFields fields("spill", kForm, rest);
  for (const CountField& field : kCounts)
    QUERN_RETURN_IF_ERROR(fields.TakeCount(field.name, field.min, field.max, &(spill.choice.*field.value)));
  QUERN_ASSIGN_OR_RETURN(const std::string_view reads, fields.Take("reads"));
  if (reads != kRing && reads != kThreads) return fields.Bad("reads=" + std::string(reads), "ring, threads");
  spill.choice.reads_by_ring = reads == kRing;
  if (std::string_view codec; fields.TakeIf("codec", &codec)) {
    if (codec != kNone && codec != kLz4) return fields.Bad("codec=" + std::string(codec), "none, lz4");
    spill.choice.compresses = codec == kLz4;
  }
  for (const RealField& field : reals) QUERN_RETURN_IF_ERROR(fields.TakeReal(field.name, field.value));
  QUERN_RETURN_IF_ERROR(fields.CheckEnd());
  return spill;
}

}  // namespace quern
