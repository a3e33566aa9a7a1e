// SPDX-License-Identifier: Apache-2.0
// The text form of filters: no fields, but a condition (condition.cc).
#include "runtime/spec/filter_spec.h"

#include "runtime/base/status.h"
#include "runtime/spec/spec_text.h"

namespace quern {

Names FilterSpec::Names() { return {"filter"}; }

absl::StatusOr<FilterSpec> FilterSpec::Parse(std::string_view, std::string_view condition) {
  FilterSpec spec;
  QUERN_ASSIGN_OR_RETURN(spec.where, ParseCondition(condition));
  return spec;
}

absl::Status FilterSpec::Validate() const { return ValidateCondition(where); }

std::string FilterSpec::Print() const { return "filter " + PrintCondition(where); }

}  // namespace quern
