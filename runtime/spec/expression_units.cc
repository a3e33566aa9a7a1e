// SPDX-License-Identifier: Apache-2.0
// One rule says which columns give a result its format, and which ones must have one unit: values of a type that meet
// in a call are of one unit, and a call whose result has that type passes the unit on.
//
//     less(coalesce($0,$1),$2)     $0, $1 and $2 meet in less; $0 and $1 meet in coalesce, which passes them on
//     less(cast($0,i64),5:i64)     casts take the unit away
//
// A timestamp that is moved, or cut down to a date, keeps its unit and zone:
//
//     cast(add_checked(cast($0,i64),3600:i64),timestamp)              passes $0 on
//     date_to_timestamp(add_days(timestamp_to_date($0,1:i64),7:i32),1:i64)     likewise; 1 is its unit, the second
#include "runtime/spec/expression_units.h"

#include <string_view>

namespace quern {
namespace {

constexpr TypeId kTypesWithUnit[] = {TypeId::kTime32, TypeId::kTime64, TypeId::kTimestamp, TypeId::kDuration};

using Sources = std::vector<const Expression*>;

bool IsCall(const Expression& e, ExpressionFunction function, TypeId of) {
  return e.kind == ExpressionKind::kCall && e.function == function && e.arguments[0].type.id == of;
}

bool IsOfDate(const Expression& e) { return IsCall(e, ExpressionFunction::kDateToTimestamp, TypeId::kDate32); }

// The timestamp to which a call adds units; null: the call is another one.
const Expression* MovedTimestamp(const Expression& e) {
  if (e.type.id != TypeId::kTimestamp || !IsCall(e, ExpressionFunction::kCast, TypeId::kI64)) return nullptr;
  const Expression& sum = e.arguments[0];
  if (!IsCall(sum, ExpressionFunction::kAddChecked, TypeId::kI64)) return nullptr;
  const Expression& whole = sum.arguments[0];
  return IsCall(whole, ExpressionFunction::kCast, TypeId::kTimestamp) ? &whole.arguments[0] : nullptr;
}

// What the results have their unit from: columns, and calls of date_to_timestamp.
void AddSources(const Expression& e, TypeId id, Sources* sources) {
  if (e.type.id != id) return;
  if (e.kind == ExpressionKind::kColumn || IsOfDate(e)) return sources->push_back(&e);
  if (const Expression* moved = MovedTimestamp(e); moved != nullptr) return AddSources(*moved, id, sources);
  for (const Expression& argument : e.arguments) AddSources(argument, id, sources);
}

void AddPassedOn(const Expression& e, TypeId id, std::vector<uint32_t>* columns);

// The timestamps whose dates reach a date.
void AddTimestamps(const Expression& date, std::vector<uint32_t>* columns) {
  if (date.type.id != TypeId::kDate32) return;
  if (IsCall(date, ExpressionFunction::kTimestampToDate, TypeId::kTimestamp))
    return AddPassedOn(date.arguments[0], TypeId::kTimestamp, columns);
  for (const Expression& argument : date.arguments) AddTimestamps(argument, columns);
}

void AddPassedOn(const Expression& e, TypeId id, std::vector<uint32_t>* columns) {
  Sources sources;
  AddSources(e, id, &sources);
  for (const Expression* source : sources) {
    if (source->kind == ExpressionKind::kColumn) columns->push_back(source->column);
    else AddTimestamps(source->arguments[0], columns);
  }
}

char UnitOfSecond(const Expression& units) {
  switch (static_cast<int64_t>(units.value->number)) {
    case 1: return 's';
    case 1'000: return 'm';
    case 1'000'000: return 'u';
    default: return 'n';
  }
}

// "tsn:Europe/Paris" has "tsn".
std::string_view UnitOf(std::string_view format) { return format.substr(0, 3); }

}  // namespace

std::vector<uint32_t> PassedOn(std::span<const Expression> expressions, TypeId id) {
  std::vector<uint32_t> columns;
  for (const Expression& e : expressions) AddPassedOn(e, id, &columns);
  return columns;
}

std::string DefaultFormat(const ValueType& type) {
  if (IsDecimal(type.id)) {
    const uint32_t bits = RowOf(type.id).width_bytes * 8;
    return "d:" + std::to_string(type.digits) + "," + std::to_string(type.scale) +
           (bits == 128 ? "" : "," + std::to_string(bits));
  }
  if (type.id == TypeId::kTimestamp) return "tsu:";
  if (type.id == TypeId::kDuration) return "tDu";
  const std::string accepted(RowOf(type.id).arrow);
  return accepted.substr(0, accepted.find('|'));
}

std::string FormatOf(const Expression& expression, std::span<const std::string> formats) {
  if (IsDecimal(expression.type.id)) return DefaultFormat(expression.type);
  const std::vector<uint32_t> columns = PassedOn({&expression, 1}, expression.type.id);
  std::string format = columns.empty() ? DefaultFormat(expression.type) : formats[columns.front()];
  Sources sources;
  AddSources(expression, expression.type.id, &sources);
  if (!sources.empty() && IsOfDate(*sources.front()) && format.size() > 2)
    format[2] = UnitOfSecond(sources.front()->arguments[1]);
  return format;
}

std::optional<MixedUnits> FindMixedUnits(const Expression& expression, std::span<const std::string> formats) {
  for (const TypeId id : kTypesWithUnit) {
    const std::vector<uint32_t> columns = PassedOn(expression.arguments, id);
    for (const uint32_t column : columns)
      if (UnitOf(formats[column]) != UnitOf(formats[columns.front()]))
        return MixedUnits{&expression, columns.front(), column};
  }
  for (const Expression& argument : expression.arguments)
    if (const auto mixed = FindMixedUnits(argument, formats); mixed.has_value()) return mixed;
  return std::nullopt;
}

}  // namespace quern
