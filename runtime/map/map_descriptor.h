// SPDX-License-Identifier: Apache-2.0
// Translates a map's expressions to the instructions for which kernels are specialised (map_abi.h). Equal parts of
// expressions become one instruction, so that they are computed once.
#ifndef QUERN_RUNTIME_MAP_MAP_DESCRIPTOR_H_
#define QUERN_RUNTIME_MAP_MAP_DESCRIPTOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/abi/map_abi.h"
#include "runtime/map/string_values.h"
#include "runtime/spec/map_spec.h"

namespace quern {

class MapDescriptor {
 public:
  explicit MapDescriptor(MapSpec spec);
  MapDescriptor(const MapDescriptor&) = delete;
  MapDescriptor& operator=(const MapDescriptor&) = delete;

  const QuernMapDescriptor* get() const { return &descriptor_; }
  const MapSpec& spec() const { return spec_; }
  // The types of the batch's columns, and of the result's.
  const std::vector<ColumnType>& columns() const { return columns_; }
  const std::vector<ColumnType>& results() const { return results_; }

  // What the kernel takes from strings, in the order of QuernMapArgs::string_values.
  const std::vector<StringValue>& string_values() const { return string_values_; }

  // What an instruction computes a part of, for errors.
  const Expression& SourceOf(uint32_t instruction) const { return *sources_[instruction]; }
  // The instruction that has the value of a part of spec().results; nullopt for strings, and for constants that are
  // parameters of instructions.
  std::optional<uint32_t> ValueOf(const Expression& part) const {
    const auto value = values_.find(&part);
    return value == values_.end() ? std::nullopt : std::optional(value->second);
  }

  // The instructions as text, as `quern dump layout` prints them.
  std::string Print() const;

 private:
  friend class MapBuilder;

  MapSpec spec_;
  std::vector<ColumnType> columns_, results_;
  std::vector<QuernMapInstruction> instructions_;
  std::vector<const Expression*> sources_;  // by instruction
  std::vector<StringValue> string_values_;
  std::unordered_map<const Expression*, uint32_t> values_;
  QuernMapDescriptor descriptor_ = {};
};

// The name of a function of lanes: "decimal_add".
const char* LaneFunctionText(LaneFunction function);
// How many of its arguments an instruction has.
uint32_t NumArguments(const QuernMapInstruction& instruction);

}  // namespace quern

#endif  // QUERN_RUNTIME_MAP_MAP_DESCRIPTOR_H_
