// SPDX-License-Identifier: Apache-2.0
// A constant has the type of the values beside it, with its collation:
//
//     equal($0,'MAIL':utf8)            like($0,'50!%%':utf8,'!':utf8)       equal($0,'a':large_utf8) of a utf8: refused
#include "runtime/spec/expression_strings.h"

#include <algorithm>
#include <string>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/spec/condition.h"

namespace quern {
namespace {

using Arguments = std::span<const Expression>;

bool IsString(const Expression& e) { return IsStringType(e.type.id); }
bool IsConstant(const Expression& e) { return e.kind == ExpressionKind::kConstant && IsString(e); }

// Null: no function of strings alone.
const char* AcceptedText(Operands accepts) {
  switch (accepts) {
    case Operands::kStrings: return "a string";
    case Operands::kTexts: return "a string of utf8, large_utf8 or utf8_view";
    case Operands::kAllStrings: return "strings of one type";
    case Operands::kStringAndRange: return "a string, and one or two i64";
    case Operands::kStringAndText: return "a string and a constant of its type";
    case Operands::kStringAndPattern: return "a string, a constant of its type and, if wanted, another one, the escape";
    case Operands::kNumbers:
    case Operands::kPlainNumbers:
    case Operands::kIntegers:
    case Operands::kFloats:
    case Operands::kDecimals:
    case Operands::kAlike:
    case Operands::kTruths:
    case Operands::kCases:
    case Operands::kDates:
    case Operands::kDateAndNumber:
    case Operands::kDateAndUnits:
    case Operands::kTimestampAndUnits:
    case Operands::kAnyValue: break;
  }
  return nullptr;
}

bool AreAccepted(Operands accepts, Arguments arguments) {
  const Expression& first = arguments[0];
  if (!IsString(first)) return false;
  const Arguments others = arguments.subspan(1);
  const auto is_alike = [&first](const Expression& e) { return IsString(e) && AreAlike(e.type, first.type); };
  switch (accepts) {
    case Operands::kTexts: return IsTextType(first.type.id);
    case Operands::kAllStrings: return std::all_of(others.begin(), others.end(), is_alike);
    case Operands::kStringAndRange:
      return std::all_of(others.begin(), others.end(), [](const Expression& e) { return e.type.id == TypeId::kI64; });
    case Operands::kStringAndText:
    case Operands::kStringAndPattern:
      return std::all_of(others.begin(), others.end(),
                         [&](const Expression& e) { return IsConstant(e) && is_alike(e); });
    default: return true;
  }
}

}  // namespace

bool IsTextType(TypeId id) { return id == TypeId::kUtf8 || id == TypeId::kLargeUtf8 || id == TypeId::kUtf8View; }

bool TakesOnlyStrings(const ExpressionFunctionRow& row) { return AcceptedText(row.accepts) != nullptr; }

absl::Status CheckStringArguments(const ExpressionFunctionRow& row, Arguments arguments) {
  if (!AreAccepted(row.accepts, arguments)) {
    std::string types;
    for (const Expression& argument : arguments) {
      ValueType type = argument.type;
      type.nullable = false;
      types += (types.empty() ? "" : ", ") + PrintValueType(type);
    }
    return Wrong("arguments of " + std::string(row.text), types, AcceptedText(row.accepts));
  }
  if (row.accepts != Operands::kStringAndPattern || arguments.size() < 3) return absl::OkStatus();
  if (!arguments[2].value.has_value()) return Wrong("escape of like", "null", "one character, or '' for none");
  return EscapeOf(arguments[2].value->bytes).status();
}

bool IsStringCast(const ValueType& from, const ValueType& to) {
  const bool from_string = IsStringType(from.id), to_string = IsStringType(to.id);
  if (to.is_dictionary) return false;
  if (from_string && to_string) return IsTextType(from.id) || !IsTextType(to.id);
  const TypeId other = from_string ? to.id : from.id;
  if (from_string ? !IsTextType(from.id) : !IsTextType(to.id)) return false;
  return other == TypeId::kBool || IsFloat(other) || IsInteger(other) || IsDecimal(other) || other == TypeId::kDate32;
}

}  // namespace quern
