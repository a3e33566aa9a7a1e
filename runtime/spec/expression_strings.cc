// SPDX-License-Identifier: Apache-2.0
// A string is never a value between two functions, so that each argument which is one is a column or a constant:
//
//     equal($0,'MAIL':utf8)     equal($0,$1)     like($0,'MED%':utf8)              accepted
//     equal('MAIL':utf8,'MAIL':utf8)             case_when(..,$0,$1)               refused
//
// A constant has the type of the values of the column beside it, with its collation.
#include "runtime/spec/expression_strings.h"

#include <algorithm>
#include <string>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/spec/condition.h"

namespace quern {
namespace {

using Arguments = std::span<const Expression>;

bool IsColumn(const Expression& e) { return e.kind == ExpressionKind::kColumn && IsStringType(e.type.id); }
bool IsConstant(const Expression& e) { return e.kind == ExpressionKind::kConstant && IsStringType(e.type.id); }

bool IsText(TypeId id) { return id == TypeId::kUtf8 || id == TypeId::kLargeUtf8 || id == TypeId::kUtf8View; }

bool Compares(const ExpressionFunctionRow& row) {
  return row.accepts == Operands::kAlike && (row.result == ResultOf::kTruth || row.result == ResultOf::kTruthNeverNull);
}

// Which strings may be arguments; null: none.
const char* AcceptedText(const ExpressionFunctionRow& row) {
  constexpr const char* kStrings = "a column of strings";
  switch (row.accepts) {
    case Operands::kStrings: return kStrings;
    case Operands::kTexts: return "a column of utf8, large_utf8 or utf8_view";
    case Operands::kStringAndText: return "a column of strings and a constant of its type";
    case Operands::kStringAndPattern:
      return "a column of strings, a constant of its type and, if wanted, another one, the escape";
    case Operands::kAlike:
      return Compares(row) ? "a column of strings and a constant of its type, or two columns of one type" : nullptr;
    case Operands::kAnyValue: return row.result == ResultOf::kTruthNeverNull ? kStrings : nullptr;
    case Operands::kNumbers:
    case Operands::kPlainNumbers:
    case Operands::kIntegers:
    case Operands::kFloats:
    case Operands::kTruths:
    case Operands::kCases:
    case Operands::kDecimals:
    case Operands::kDates:
    case Operands::kDateAndNumber:
    case Operands::kDateAndUnits:
    case Operands::kTimestampAndUnits: break;
  }
  return nullptr;
}

bool HasStrings(const ExpressionFunctionRow& row) { return AcceptedText(row) != nullptr; }

bool AreAccepted(const ExpressionFunctionRow& row, Arguments arguments) {
  const Expression& first = arguments[0];
  const bool alike = std::all_of(arguments.begin(), arguments.end(), [&first](const Expression& e) {
    return IsStringType(e.type.id) && AreAlike(e.type, first.type);
  });
  if (!alike) return false;
  if (Compares(row)) {
    const Expression& second = arguments[1];
    return (IsColumn(first) && (IsColumn(second) || IsConstant(second))) || (IsConstant(first) && IsColumn(second));
  }
  if (!IsColumn(first) || (row.accepts == Operands::kTexts && !IsText(first.type.id))) return false;
  return std::all_of(arguments.begin() + 1, arguments.end(), IsConstant);
}

}  // namespace

bool TakesOnlyStrings(const ExpressionFunctionRow& row) {
  return row.accepts != Operands::kAlike && row.accepts != Operands::kAnyValue && HasStrings(row);
}

bool TakesStrings(const ExpressionFunctionRow& row, Arguments arguments) {
  return TakesOnlyStrings(row) ||
         std::any_of(arguments.begin(), arguments.end(), [](const Expression& e) { return IsStringType(e.type.id); });
}

absl::Status CheckStringArguments(const ExpressionFunctionRow& row, Arguments arguments) {
  std::string types;
  for (const Expression& argument : arguments) {
    ValueType type = argument.type;
    type.nullable = false;
    types += (types.empty() ? "" : ", ") + PrintValueType(type);
  }
  if (!HasStrings(row)) {
    Names names;
    for (const ExpressionFunctionRow& known : AllExpressionFunctions())
      if (HasStrings(known)) names.push_back(known.text);
    return Wrong("strings as arguments of " + std::string(row.text), types, "strings in " + Listed(names));
  }
  if (!AreAccepted(row, arguments)) return Wrong("arguments of " + std::string(row.text), types, AcceptedText(row));
  if (row.accepts != Operands::kStringAndPattern || arguments.size() < 3) return absl::OkStatus();
  if (!arguments[2].value.has_value()) return Wrong("escape of like", "null", "one character, or '' for none");
  return EscapeOf(arguments[2].value->bytes).status();
}

}  // namespace quern
