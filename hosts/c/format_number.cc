// SPDX-License-Identifier: Apache-2.0
// The format number travels with states and sorted runs: in the metadata of their Arrow schema, which Arrow IPC, Flight
// and Parquet keep, or by whatever way a host sends batches of its own. The interface's metadata are a number of pairs,
// then each text after its length, as int32 of the machine:
//
//     1 | 12 "quern.format" | 1 "1"
//
// They have no length of their own, so they are trusted as far as the interface makes a consumer trust them.
#include "hosts/c/format_number.h"

#include <cstring>
#include <string_view>

#include "hosts/c/quern.h"
#include "runtime/base/format_number.h"
#include "runtime/base/status.h"

namespace quern::c_abi {
namespace {

constexpr std::string_view kKey = "quern.format";

// Reads pairs one by one.
class MetadataReader {
 public:
  explicit MetadataReader(const char* at) : at_(at) {}

  int32_t Number() {
    int32_t number = 0;
    std::memcpy(&number, at_, sizeof number);
    at_ += sizeof number;
    return number;
  }
  std::string_view Text() {
    const int32_t length = Number();
    const std::string_view text(at_, length < 0 ? 0 : static_cast<size_t>(length));
    at_ += text.size();
    return text;
  }

 private:
  const char* at_;
};

void AddNumber(int32_t number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof number);
}

void AddText(std::string_view text, std::string* bytes) {
  AddNumber(static_cast<int32_t>(text.size()), bytes);
  bytes->append(text);
}

absl::Status OtherFormat(std::string_view number, const char* what) {
  return InvalidArgument(std::string(what) + " of another format: " + Show(number) +
                         "; accepted: " + std::to_string(kFormatNumber) + ", the format of this library");
}

}  // namespace

std::string FormatMetadata() {
  std::string bytes;
  AddNumber(1, &bytes);
  AddText(kKey, &bytes);
  AddText(std::to_string(kFormatNumber), &bytes);
  return bytes;
}

absl::Status CheckFormatMetadata(const ArrowSchema& schema, const char* what) {
  if (schema.metadata == nullptr) return absl::OkStatus();
  MetadataReader reader(schema.metadata);
  for (int32_t left = reader.Number(); left > 0; --left) {
    const std::string_view key = reader.Text(), value = reader.Text();
    if (key == kKey && value != std::to_string(kFormatNumber)) return OtherFormat(value, what);
  }
  return absl::OkStatus();
}

absl::Status CheckFormatNumber(uint32_t number, const char* what) {
  if (number == 0 || number == kFormatNumber) return absl::OkStatus();
  return OtherFormat(std::to_string(number), what);
}

}  // namespace quern::c_abi

extern "C" {

uint32_t quern_format_number(void) { return quern::kFormatNumber; }

}  // extern "C"
