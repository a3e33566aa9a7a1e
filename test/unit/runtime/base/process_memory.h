// SPDX-License-Identifier: Apache-2.0
// What the system reports about this process's memory.
#ifndef QUERN_TEST_UNIT_RUNTIME_BASE_PROCESS_MEMORY_H_
#define QUERN_TEST_UNIT_RUNTIME_BASE_PROCESS_MEMORY_H_

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace quern::test {

// One line of /proc/self/maps.
struct Mapping {
  uint64_t begin = 0, end = 0;
  std::string permissions;  // "r-xp"
};

inline std::vector<Mapping> Mappings() {
  std::vector<Mapping> mappings;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    char dash = 0;
    std::istringstream(line) >> std::hex >> mapping.begin >> dash >> mapping.end >> mapping.permissions;
    mappings.push_back(mapping);
  }
  return mappings;
}

// "r-xp"; empty where nothing is mapped.
inline std::string PermissionsAt(uint64_t address) {
  for (const Mapping& mapping : Mappings())
    if (mapping.begin <= address && address < mapping.end) return mapping.permissions;
  return "";
}

inline std::string PermissionsAt(const void* address) { return PermissionsAt(reinterpret_cast<uint64_t>(address)); }

inline bool AnyMappingIsWritableAndExecutable() {
  for (const Mapping& mapping : Mappings())
    if (mapping.permissions.find("wx") != std::string::npos) return true;
  return false;
}

inline uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_BASE_PROCESS_MEMORY_H_
