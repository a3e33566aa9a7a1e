// SPDX-License-Identifier: Apache-2.0
// Versions that hosts store beside what they keep: those of collations.
//
//     quern_collation_version("utf8mb4_unicode_ci", &version, &error)   ->   "1.d2995676b0c0012d"
//
// A text is made once for each collation, however its name is spelled, and lives as long as the process.
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "hosts/c/boundary.h"
#include "hosts/c/quern.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"
#include "runtime/collation/collation.h"
#include "runtime/collation/collation_version.h"

namespace quern::c_abi {
namespace {

ForkSafeMutex texts_mutex;
std::map<Collation, std::string>* texts = nullptr;  // never destroyed: hosts may ask while the process ends

absl::Status CollationVersionText(const char* name, const char** version) {
  if (version == nullptr) return MissingArgument("version");
  *version = nullptr;
  if (name == nullptr) return MissingArgument("name");
  QUERN_ASSIGN_OR_RETURN(const Collation id, CollationNamed(name));
  QUERN_ASSIGN_OR_RETURN(std::string text, CollationVersion(name));
  const std::lock_guard<ForkSafeMutex> lock(texts_mutex);
  if (texts == nullptr) texts = new std::map<Collation, std::string>();
  *version = texts->emplace(id, std::move(text)).first->second.c_str();
  return absl::OkStatus();
}

}  // namespace
}  // namespace quern::c_abi

extern "C" {

quern_status quern_collation_version(const char* name, const char** version, quern_error* error) {
  return quern::c_abi::Boundary(error, [&] { return quern::c_abi::CollationVersionText(name, version); });
}

}  // extern "C"
