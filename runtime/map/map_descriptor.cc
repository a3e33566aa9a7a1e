// SPDX-License-Identifier: Apache-2.0
// Each call of an expression becomes a few instructions: case_when becomes a chain of `select`s from its end, `greater`
// is `less` with its arguments exchanged, decimals of different scales are brought to one. A new instruction is made
// only if there is none with the same function, constants and arguments (value numbering, Cocke and Schwartz 1970):
//
//     out=multiply($0,$1),multiply(multiply($0,$1),$2)       three loads, two products
#include "runtime/map/map_descriptor.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "runtime/blocks/string_functions.h"
#include "runtime/collation/collation_id.h"
#include "runtime/map/date_functions.h"
#include "runtime/spec/expression_strings.h"

namespace quern {
namespace {

struct LaneFunctionRow {
  const char* text;
  uint32_t num_arguments;
};

constexpr LaneFunctionRow kLaneFunctions[] = {
#define QUERN_LANE_FUNCTION(Id, text, num_arguments, Function) {#text, num_arguments},
#include "runtime/abi/lane_functions.def"
    {"load", 0}, {"store", 1}, {"string", 0}, {"load_strings", 0}, {"string_constant", 0},
};
static_assert(std::size(kLaneFunctions) == kStringConstantLanes + 1);

// Of all that have values as integers: dates and times, too.
bool HasSign(TypeId id) { return !IsInteger(id) || IsSigned(id); }

// The width that functions of lanes take for the type: of integers and floats, 128 for decimals and strings, 1 for
// bool.
uint8_t BitsOf(TypeId id) {
  if (IsStringType(id) || IsDecimal(id)) return 128;
  if (id == TypeId::kBool) return 1;
  return static_cast<uint8_t>(RowOf(id).width_bytes * 8);
}

}  // namespace

// Makes the instructions of a descriptor.
class MapBuilder {
 public:
  explicit MapBuilder(MapDescriptor* descriptor) : d_(*descriptor) {}

  void BuildAll() {
    for (size_t i = 0; i < d_.spec_.results.size(); ++i) {
      const Expression& result = d_.spec_.results[i];
      source_ = &result;
      QuernMapInstruction store = New(kStoreLanes, {Value(result)});
      source_ = &result;
      const TypeRow& type = RowOf(result.type.id);
      store.storage = IsVariable(type.storage) ? type.storage : type.key_storage;
      store.nullable = result.type.nullable;
      store.column = static_cast<uint32_t>(i);
      Add(store);
    }
    Place();
  }

 private:
  using Arguments = std::vector<uint32_t>;

  static QuernMapInstruction New(LaneFunction function, const Arguments& arguments) {
    QuernMapInstruction instruction = {};
    instruction.function = function;
    instruction.storage = kNoStorage;
    std::copy(arguments.begin(), arguments.end(), instruction.arguments);
    return instruction;
  }

  static void SetNumber(__int128 number, QuernLaneParameters* parameters) {
    parameters->low = static_cast<uint64_t>(number);
    parameters->high = static_cast<uint64_t>(static_cast<unsigned __int128>(number) >> 64);
  }

  // The number of an instruction that computes the same: this one, or an earlier one.
  uint32_t Add(const QuernMapInstruction& i) {
    const QuernLaneParameters& p = i.parameters;
    const auto key = std::make_tuple(i.function, i.storage, i.nullable, i.column, i.arguments[0], i.arguments[1],
                                     i.arguments[2], p.bits, p.is_signed, p.from_signed, p.errors, p.low, p.high);
    const auto number = static_cast<uint32_t>(d_.instructions_.size());
    const auto [known, is_new] = known_.try_emplace(key, number);
    if (!is_new) return known->second;
    d_.instructions_.push_back(i);
    d_.sources_.push_back(source_);
    return number;
  }

  uint32_t Run(LaneFunction function, const Arguments& arguments, const ValueType& type,
               uint8_t errors = kErrorsIgnored, __int128 number = 0) {
    QuernMapInstruction instruction = New(function, arguments);
    instruction.parameters.bits = BitsOf(type.id);
    instruction.parameters.is_signed = HasSign(type.id);
    instruction.parameters.errors = errors;
    SetNumber(number, &instruction.parameters);
    return Add(instruction);
  }

  uint32_t Value(const Expression& e) {
    const Expression* const outer = std::exchange(source_, &e);
    const uint32_t value = e.kind == ExpressionKind::kColumn     ? Load(e)
                           : e.kind == ExpressionKind::kConstant ? Constant(e)
                                                                 : Call(e);
    source_ = outer;
    d_.values_.emplace(&e, value);
    return value;
  }

  uint32_t Load(const Expression& e) {
    if (IsStringType(e.type.id)) return LoadStrings(e.type, e.column);
    QuernMapInstruction load = New(kLoadLanes, {});
    load.storage = RowOf(e.type.id).key_storage;
    load.nullable = e.type.nullable;
    load.column = e.column;
    load.parameters.is_signed = HasSign(e.type.id);
    return Add(load);
  }

  uint32_t Constant(const Expression& e) {
    if (IsStringType(e.type.id) && e.value.has_value()) return StringConstant(MakeStringConstant(e.value->bytes));
    QuernMapInstruction constant = New(kConstantLanes, {});
    constant.parameters.bits = BitsOf(e.type.id);
    if (!e.value.has_value()) constant.parameters.errors = kErrorsAreNull;
    else if (IsFloat(e.type.id)) constant.parameters.low = std::bit_cast<uint64_t>(e.value->real);
    else SetNumber(e.value->number, &constant.parameters);
    return Add(constant);
  }

  // A decimal with another scale and, where it then has fewer digits than before, a check.
  uint32_t Rescaled(uint32_t value, const ValueType& from, const ValueType& to, uint8_t errors) {
    const int change = to.scale - from.scale;
    const int whole = from.digits - from.scale;
    if (change > 0) value = Run(kDecimalScaleUpLanes, {value}, to, errors, PowerOfTen(change));
    if (change < 0) value = Run(kDecimalScaleDownLanes, {value}, to, errors, PowerOfTen(-change));
    // Rounding may add a digit. A column of more bits may hold what its digits do not say.
    const bool fits = whole + (change < 0 ? 1 : 0) <= to.digits - to.scale && from.id <= to.id;
    return fits ? value : Run(kDecimalLimitLanes, {value}, to, errors, PowerOfTen(to.digits));
  }

  uint32_t Argument(const Expression& call, size_t i) { return Value(call.arguments[i]); }
  // With the scale of the result; `type` is that of the call.
  uint32_t ScaledArgument(const Expression& call, size_t i, const ValueType& type) {
    const uint32_t value = Argument(call, i);
    ValueType same = type;
    same.digits = kMaxDecimalDigits;
    return IsDecimal(type.id) ? Rescaled(value, call.arguments[i].type, same, kErrorsFail) : value;
  }

  // NOLINTNEXTLINE(readability-function-size): a case for each function of the table
  uint32_t Call(const Expression& e) {
    if (AreOfColumns(e)) return StringCall(e);
    const ExpressionFunctionRow& row = RowOf(e.function);
    const auto errors = static_cast<uint8_t>(row.errors == RowErrors::kFail   ? kErrorsFail
                                             : row.errors == RowErrors::kNull ? kErrorsAreNull
                                                                              : kErrorsIgnored);
    switch (e.function) {
      case ExpressionFunction::kAdd:
      case ExpressionFunction::kAddChecked:
      case ExpressionFunction::kAddOrNull: return Arithmetic(e, kAddLanes, kFloatAddLanes, kDecimalAddLanes, errors);
      case ExpressionFunction::kSubtract:
      case ExpressionFunction::kSubtractChecked:
      case ExpressionFunction::kSubtractOrNull:
        return Arithmetic(e, kSubtractLanes, kFloatSubtractLanes, kDecimalSubtractLanes, errors);
      case ExpressionFunction::kMultiply:
      case ExpressionFunction::kMultiplyChecked:
      case ExpressionFunction::kMultiplyOrNull:
        return Arithmetic(e, kMultiplyLanes, kFloatMultiplyLanes, kDecimalMultiplyLanes, errors);
      case ExpressionFunction::kDivide:
      case ExpressionFunction::kDivideChecked:
      case ExpressionFunction::kDivideOrNull:
        return Arithmetic(e, kDivideLanes, kFloatDivideLanes, kDivideLanes, errors);
      case ExpressionFunction::kDivideDecimalChecked:
      case ExpressionFunction::kDivideDecimalOrNull: return Quotient(e, errors);
      case ExpressionFunction::kModuloChecked:
      case ExpressionFunction::kModuloOrNull: return Arithmetic(e, kModuloLanes, kModuloLanes, kModuloLanes, errors);
      case ExpressionFunction::kNegate:
      case ExpressionFunction::kNegateChecked:
        return Arithmetic(e, kNegateLanes, kFloatNegateLanes, kDecimalNegateLanes, errors);
      case ExpressionFunction::kAbs:
      case ExpressionFunction::kAbsChecked: return Arithmetic(e, kAbsLanes, kFloatAbsLanes, kDecimalAbsLanes, errors);
      case ExpressionFunction::kBitAnd: return Run(kBitAndLanes, {Argument(e, 0), Argument(e, 1)}, e.type);
      case ExpressionFunction::kBitOr: return Run(kBitOrLanes, {Argument(e, 0), Argument(e, 1)}, e.type);
      case ExpressionFunction::kBitXor: return Run(kBitXorLanes, {Argument(e, 0), Argument(e, 1)}, e.type);
      case ExpressionFunction::kBitNot: return Run(kBitNotLanes, {Argument(e, 0)}, e.type);
      case ExpressionFunction::kFloor: return Run(kFloatFloorLanes, {Argument(e, 0)}, e.type);
      case ExpressionFunction::kCeil: return Run(kFloatCeilLanes, {Argument(e, 0)}, e.type);
      case ExpressionFunction::kTrunc: return Run(kFloatTruncLanes, {Argument(e, 0)}, e.type);
      case ExpressionFunction::kRoundHalfToEven: return Run(kFloatRoundLanes, {Argument(e, 0)}, e.type);
      case ExpressionFunction::kSqrt: return Run(kFloatSqrtLanes, {Argument(e, 0)}, e.type);
      case ExpressionFunction::kEqual: return Equal(e, Argument(e, 0), Argument(e, 1));
      case ExpressionFunction::kNotEqual: return Not(Equal(e, Argument(e, 0), Argument(e, 1)));
      case ExpressionFunction::kLess: return Less(TypeOf(e, 0), Argument(e, 0), Argument(e, 1));
      case ExpressionFunction::kLessEqual: return Not(Less(TypeOf(e, 0), Argument(e, 1), Argument(e, 0)));
      case ExpressionFunction::kGreater: return Less(TypeOf(e, 0), Argument(e, 1), Argument(e, 0));
      case ExpressionFunction::kGreaterEqual: return Not(Less(TypeOf(e, 0), Argument(e, 0), Argument(e, 1)));
      case ExpressionFunction::kIsDistinct: return Not(NotDistinct(e));
      case ExpressionFunction::kIsNotDistinct: return NotDistinct(e);
      case ExpressionFunction::kIsNull: return Run(kIsNullLanes, {Argument(e, 0)}, kTruth);
      case ExpressionFunction::kIsValid: return Not(Run(kIsNullLanes, {Argument(e, 0)}, kTruth));
      case ExpressionFunction::kAnd: return Logic(e, kAndLanes);
      case ExpressionFunction::kOr: return Logic(e, kOrLanes);
      case ExpressionFunction::kNot: return Not(Argument(e, 0));
      case ExpressionFunction::kCaseWhen: return Cases(e);
      case ExpressionFunction::kCoalesce: return FirstValid(e);
      case ExpressionFunction::kNullIf: return NullIf(e);
      case ExpressionFunction::kLeast: return Extreme(e, true);
      case ExpressionFunction::kGreatest: return Extreme(e, false);
      case ExpressionFunction::kYear:
      case ExpressionFunction::kQuarter:
      case ExpressionFunction::kMonth:
      case ExpressionFunction::kDay:
      case ExpressionFunction::kIsoYear:
      case ExpressionFunction::kIsoWeek:
      case ExpressionFunction::kIsoDayOfWeek:
      case ExpressionFunction::kSundayDayOfWeek:
      case ExpressionFunction::kDayOfYear:
      case ExpressionFunction::kDateTruncYear:
      case ExpressionFunction::kDateTruncQuarter:
      case ExpressionFunction::kDateTruncMonth:
      case ExpressionFunction::kDateTruncWeek:
      case ExpressionFunction::kTimestampToDate:
      case ExpressionFunction::kDateToTimestamp:
      case ExpressionFunction::kHour:
      case ExpressionFunction::kMinute:
      case ExpressionFunction::kSecond:
      case ExpressionFunction::kTimestampTruncDay:
      case ExpressionFunction::kTimestampTruncHour:
      case ExpressionFunction::kTimestampTruncMinute:
      case ExpressionFunction::kTimestampTruncSecond: return OfDate(e, errors);
      case ExpressionFunction::kAddDays: return Run(kAddLanes, {Argument(e, 0), Argument(e, 1)}, e.type, errors);
      case ExpressionFunction::kAddMonths:
        return Run(kAddMonthsLanes, {Argument(e, 0), Argument(e, 1)}, e.type, errors);
      case ExpressionFunction::kDaysBetween: return Run(kSubtractLanes, {Argument(e, 1), Argument(e, 0)}, e.type);
      case ExpressionFunction::kCast:
      case ExpressionFunction::kCastOrNull: return Cast(e, errors);
      case ExpressionFunction::kNotLike: return Not(Like(e));
      case ExpressionFunction::kLike:
      case ExpressionFunction::kStartsWith:
      case ExpressionFunction::kEndsWith:
      case ExpressionFunction::kContains: return Like(e);
      case ExpressionFunction::kOctetLength: return OfStrings(e, kOctetLengthLanes, errors);
      case ExpressionFunction::kCharLength: return OfStrings(e, kCharLengthLanes, errors);
      case ExpressionFunction::kSubstring: return Substring(e, errors);
      case ExpressionFunction::kConcat: return Concat(e, errors);
      case ExpressionFunction::kAsciiLower: return OfStrings(e, kAsciiLowerLanes, errors);
      case ExpressionFunction::kAsciiUpper: return OfStrings(e, kAsciiUpperLanes, errors);
      case ExpressionFunction::kTrim: return OfStrings(e, kTrimLanes, errors, kTrimsStart | kTrimsEnd);
      case ExpressionFunction::kTrimStart: return OfStrings(e, kTrimLanes, errors, kTrimsStart);
      case ExpressionFunction::kTrimEnd: return OfStrings(e, kTrimLanes, errors, kTrimsEnd);
      case ExpressionFunction::kReplace: return OfStrings(e, kReplaceLanes, errors);
      case ExpressionFunction::kSign: return Sign(e);
      case ExpressionFunction::kLn:
      case ExpressionFunction::kLnChecked:
      case ExpressionFunction::kLnOrNull: return OfFloats(e, kFloatLnLanes, errors);
      case ExpressionFunction::kLog10:
      case ExpressionFunction::kLog10Checked:
      case ExpressionFunction::kLog10OrNull: return OfFloats(e, kFloatLog10Lanes, errors);
      case ExpressionFunction::kExp:
      case ExpressionFunction::kExpChecked: return OfFloats(e, kFloatExpLanes, errors);
      case ExpressionFunction::kPower:
      case ExpressionFunction::kPowerChecked:
      case ExpressionFunction::kPowerOrNull: return OfFloats(e, kFloatPowerLanes, errors);
    }
    __builtin_unreachable();
  }

  static const ValueType& TypeOf(const Expression& call, size_t i) { return call.arguments[i].type; }

  uint32_t Arithmetic(const Expression& e, LaneFunction of_integers, LaneFunction of_floats, LaneFunction of_decimals,
                      uint8_t errors) {
    const bool is_decimal = IsDecimal(e.type.id), scales = of_decimals != kDecimalMultiplyLanes;
    Arguments values;
    for (size_t i = 0; i < e.arguments.size(); ++i)
      values.push_back(is_decimal && scales ? ScaledArgument(e, i, e.type) : Argument(e, i));
    if (is_decimal) return Run(of_decimals, values, e.type, kErrorsFail);
    return Run(IsFloat(e.type.id) ? of_floats : of_integers, values, e.type, errors);
  }

  uint32_t OfFloats(const Expression& e, LaneFunction function, uint8_t errors) {
    Arguments values;
    for (size_t i = 0; i < e.arguments.size(); ++i) values.push_back(Argument(e, i));
    return Run(function, values, e.type, errors);
  }

  // Whether it is above 0, less whether it is below.
  uint32_t Sign(const Expression& e) {
    const ValueType& type = TypeOf(e, 0);
    const uint32_t value = Argument(e, 0), zero = Run(kConstantLanes, {}, type);
    const uint32_t is_positive = Run(kTruthToIntegerLanes, {Less(type, zero, value)}, e.type);
    const uint32_t is_negative = Run(kTruthToIntegerLanes, {Less(type, value, zero)}, e.type);
    return Run(kSubtractLanes, {is_positive, is_negative}, e.type);
  }

  // With more digits for the dividend, so many that the quotient has the scale of the result.
  uint32_t Quotient(const Expression& e, uint8_t errors) {
    const ValueType &a = TypeOf(e, 0), &b = TypeOf(e, 1), &to = e.type;
    const int more = to.scale + b.scale - a.scale;
    constexpr int kMost = 18;  // 10^18 is below 2^63
    QuernMapInstruction divide = New(kDecimalDivideLanes, {Argument(e, 0), Argument(e, 1)});
    divide.parameters.bits = BitsOf(to.id);
    divide.parameters.errors = errors;
    divide.parameters.low = more <= kMost ? static_cast<uint64_t>(PowerOfTen(more)) : 0;
    divide.parameters.high = static_cast<uint64_t>(more);
    const uint32_t value = Add(divide);
    const bool fits = a.digits - a.scale + b.scale + 1 <= to.digits - to.scale && to.id == TypeId::kDecimal128;
    return fits ? value : Run(kDecimalLimitLanes, {value}, to, errors, PowerOfTen(to.digits));
  }

  // Of a date, or of a timestamp and its units.
  uint32_t OfDate(const Expression& e, uint8_t errors) {
    const DateFunctionRow& row = DateFunctionOf(e.function);
    const bool has_units = e.arguments.size() == 2;
    const auto units = has_units ? static_cast<uint64_t>(e.arguments[1].value->number) : 1;
    QuernMapInstruction made = New(row.lanes, {Argument(e, 0)});
    made.parameters.bits = BitsOf(e.type.id);
    made.parameters.is_signed = true;
    made.parameters.errors = errors;
    made.parameters.low = row.low * units;
    made.parameters.high = row.high * units;
    return Add(made);
  }

  uint32_t Not(uint32_t value) { return Run(kNotLanes, {value}, kTruth); }

  uint32_t Ordered(const ValueType& type, uint32_t value) {
    return IsFloat(type.id) ? Run(kFloatOrderLanes, {value}, {}) : value;
  }

  uint32_t Equal(const Expression& e, uint32_t a, uint32_t b) {
    const ValueType& type = TypeOf(e, 0);
    if (IsStringType(type.id)) return CompareStrings(kStringEqualLanes, type, a, b);
    if (type.id == TypeId::kBool) return Run(kTruthEqualLanes, {a, b}, kTruth);
    if (IsDecimal(type.id)) return Run(kDecimalEqualLanes, {a, b}, kTruth);
    return Run(kEqualLanes, {Ordered(type, a), Ordered(type, b)}, kTruth);
  }

  uint32_t Less(const ValueType& type, uint32_t a, uint32_t b) {
    if (IsStringType(type.id)) return CompareStrings(kStringLessLanes, type, a, b);
    if (type.id == TypeId::kBool) return Run(kTruthLessLanes, {a, b}, kTruth);
    if (IsDecimal(type.id)) return Run(kDecimalLessLanes, {a, b}, kTruth);
    QuernMapInstruction less = New(kLessLanes, {Ordered(type, a), Ordered(type, b)});
    less.parameters.is_signed = HasSign(type.id);
    return Add(less);
  }

  uint32_t NotDistinct(const Expression& e) {
    const uint32_t a = Argument(e, 0), b = Argument(e, 1);
    return Run(kNotDistinctLanes, {a, b, Equal(e, a, b)}, kTruth);
  }

  // ---- strings as values ----

  uint32_t LoadStrings(const ValueType& type, uint32_t column) {
    QuernMapInstruction load = New(kLoadStringsLanes, {});
    load.storage = RowOf(type.id).storage;
    load.nullable = type.nullable;
    load.column = column;
    load.parameters.low = type.is_dictionary ? RowOf(type.index).storage : kNoStorage;
    return Add(load);
  }

  uint32_t StringConstant(StringValue value) {
    QuernMapInstruction constant = New(kStringConstantLanes, {});
    constant.column = NumberOf(std::move(value));
    return Add(constant);
  }

  uint32_t CompareStrings(LaneFunction function, const ValueType& type, uint32_t a, uint32_t b) {
    return Run(function, {a, b}, kTruth, kErrorsIgnored, RuleOf(type.collation));
  }

  uint32_t OfStrings(const Expression& e, LaneFunction function, uint8_t errors, __int128 number = 0) {
    Arguments values;
    for (size_t i = 0; i < e.arguments.size(); ++i) values.push_back(Argument(e, i));
    return Run(function, values, e.type, errors, number);
  }

  uint32_t Like(const Expression& e) {
    for (size_t i = 1; i < e.arguments.size(); ++i)
      if (!e.arguments[i].value.has_value()) return Null(kTruth);
    const ExpressionFunction function =
        e.function == ExpressionFunction::kNotLike ? ExpressionFunction::kLike : e.function;
    return Run(kStringLikeLanes, {Argument(e, 0), StringConstant(MakeStringPattern(function, e.arguments))}, kTruth);
  }

  uint32_t Substring(const Expression& e, uint8_t errors) {
    Arguments values = {Argument(e, 0), Argument(e, 1)};
    const bool has_length = e.arguments.size() > 2;
    values.push_back(has_length ? Argument(e, 2) : values[1]);
    return Run(kSubstringLanes, values, e.type, errors, Words(IsTextType(e.type.id) ? 1 : 0, has_length ? 0 : 1));
  }

  // Halves of halves, so that no byte is copied more than log2(n) times.
  uint32_t Concat(const Expression& e, uint8_t errors) {
    Arguments values;
    for (size_t i = 0; i < e.arguments.size(); ++i) values.push_back(Argument(e, i));
    return Concat(values, e.type, errors);
  }
  uint32_t Concat(std::span<const uint32_t> values, const ValueType& type, uint8_t errors) {
    if (values.size() == 1) return values[0];
    const size_t half = values.size() / 2;
    const uint32_t first = Concat(values.first(half), type, errors);
    return Run(kConcatLanes, {first, Concat(values.subspan(half), type, errors)}, type, errors);
  }

  // Constants of a function.
  static __int128 Words(uint64_t low, uint64_t high) {
    return static_cast<__int128>(static_cast<unsigned __int128>(high) << 64 | low);
  }
  uint32_t Convert(LaneFunction function, uint32_t value, const ValueType& to, uint8_t errors, uint64_t low,
                   uint64_t high) {
    return Run(function, {value}, to, errors, Words(low, high));
  }

  uint32_t CastToString(uint32_t value, const ValueType& from, const ValueType& to) {
    if (IsStringType(from.id)) return value;
    if (from.id == TypeId::kBool) return Run(kTruthToStringLanes, {value}, to);
    if (from.id == TypeId::kDate32) return Run(kDateToStringLanes, {value}, to);
    if (IsFloat(from.id)) return Convert(kFloatToStringLanes, value, to, kErrorsIgnored, BitsOf(from.id), 0);
    if (IsDecimal(from.id)) return Convert(kDecimalToStringLanes, value, to, kErrorsIgnored, from.scale, 0);
    return Convert(kIntegerToStringLanes, value, to, kErrorsIgnored, HasSign(from.id) ? 1 : 0, 0);
  }

  uint32_t CastString(uint32_t value, const ValueType& to, uint8_t errors) {
    if (to.id == TypeId::kBool) return Run(kStringToTruthLanes, {value}, to, errors);
    if (to.id == TypeId::kDate32) return Run(kStringToDateLanes, {value}, to, errors);
    if (IsDecimal(to.id)) return Convert(kStringToDecimalLanes, value, to, errors, to.scale, to.digits);
    if (IsFloat(to.id)) return Convert(kStringToFloatLanes, value, to, errors, 0, BitsOf(to.id));
    return Convert(kStringToIntegerLanes, value, to, errors, HasSign(to.id) ? 1 : 0, BitsOf(to.id));
  }

  // ---- what is computed of columns of strings beforehand ----

  // Whether all its strings are columns and constants, one column at least, and its result is no string.
  static bool AreOfColumns(const Expression& e) {
    if (!IsStringType(e.arguments[0].type.id) || IsStringType(e.type.id) || NamesType(RowOf(e.function))) return false;
    const auto is_column = [](const Expression& part) { return part.kind == ExpressionKind::kColumn; };
    const auto is_call = [](const Expression& part) { return part.kind == ExpressionKind::kCall; };
    return std::any_of(e.arguments.begin(), e.arguments.end(), is_column) &&
           std::none_of(e.arguments.begin(), e.arguments.end(), is_call);
  }

  uint32_t NumberOf(StringValue value) {
    std::vector<StringValue>& all = d_.string_values_;
    const auto known = std::find(all.begin(), all.end(), value);
    const auto number = static_cast<uint32_t>(known - all.begin());
    if (known == all.end()) all.push_back(std::move(value));
    return number;
  }

  uint32_t Add(StringValue value) {
    QuernMapInstruction load = New(kLoadStringValueLanes, {});
    load.storage = value.function == StringFunction::kCondition ? kBit : k64;
    load.nullable = value.nullable();
    load.column = NumberOf(std::move(value));
    load.parameters.is_signed = true;
    return Add(load);
  }

  uint32_t FromStrings(ExpressionFunction function, const Expression& e) {
    return Add(MakeStringValue(function, e.arguments));
  }

  uint32_t IsNullString(const Expression& column) {
    return Add(MakeStringValue(ExpressionFunction::kIsNull, {&column, 1}));
  }

  uint32_t StringCall(const Expression& e) {
    using F = ExpressionFunction;
    const bool is_distinctness = e.function == F::kIsDistinct || e.function == F::kIsNotDistinct;
    for (size_t i = 0; i < e.arguments.size(); ++i) {
      const Expression& argument = e.arguments[i];
      if (argument.kind != ExpressionKind::kConstant || argument.value.has_value()) continue;
      if (!is_distinctness) return Null(kTruth);
      const uint32_t is_null = IsNullString(e.arguments[1 - i]);
      return e.function == F::kIsDistinct ? Not(is_null) : is_null;
    }
    if (e.function == F::kNotEqual) return Not(FromStrings(F::kEqual, e));
    if (e.function == F::kGreater) return Not(FromStrings(F::kLessEqual, e));
    if (e.function == F::kGreaterEqual) return Not(FromStrings(F::kLess, e));
    if (e.function == F::kNotLike) return Not(FromStrings(F::kLike, e));
    if (e.function == F::kIsValid) return Not(FromStrings(F::kIsNull, e));
    if (!is_distinctness) return FromStrings(e.function, e);
    return e.function == F::kIsDistinct ? Not(AreSameStrings(e)) : AreSameStrings(e);
  }

  // Equal, or null both of them.
  uint32_t AreSameStrings(const Expression& e) {
    const uint32_t equal = FromStrings(ExpressionFunction::kEqual, e);
    const Expression &a = e.arguments[0], &b = e.arguments[1];
    if (!a.type.nullable && !b.type.nullable) return equal;
    const uint32_t is_equal = Run(kCoalesceLanes, {equal, Run(kConstantLanes, {}, kTruth)}, kTruth);
    if (!a.type.nullable || !b.type.nullable) return is_equal;
    return Run(kOrLanes, {is_equal, Run(kAndLanes, {IsNullString(a), IsNullString(b)}, kTruth)}, kTruth);
  }

  uint32_t Null(const ValueType& type) { return Run(kConstantLanes, {}, type, kErrorsAreNull); }

  uint32_t Logic(const Expression& e, LaneFunction function) {
    if (function == kOrLanes)
      if (std::optional<StringValue> list = MakeStringList(e); list.has_value()) return Add(*std::move(list));
    uint32_t value = Argument(e, 0);
    for (size_t i = 1; i < e.arguments.size(); ++i) value = Run(function, {value, Argument(e, i)}, kTruth);
    return value;
  }

  uint32_t Select(uint32_t condition, uint32_t value, uint32_t otherwise, const ValueType& type) {
    return Run(IsStringType(type.id) ? kStringSelectLanes : kSelectLanes, {condition, value, otherwise}, type);
  }
  uint32_t Coalesce(uint32_t first, uint32_t second, const ValueType& type) {
    return Run(IsStringType(type.id) ? kStringCoalesceLanes : kCoalesceLanes, {first, second}, type);
  }

  uint32_t Cases(const Expression& e) {
    const size_t n = e.arguments.size();
    Arguments values;
    for (size_t i = 0; i < n; ++i) values.push_back(Argument(e, i));
    uint32_t value = values[n - 1];
    for (size_t i = n - 1; i >= 2; i -= 2) value = Select(values[i - 2], values[i - 1], value, e.type);
    return value;
  }

  uint32_t FirstValid(const Expression& e) {
    Arguments values;
    for (size_t i = 0; i < e.arguments.size(); ++i) values.push_back(Argument(e, i));
    uint32_t value = values.back();
    for (size_t i = values.size() - 1; i > 0; --i) value = Coalesce(values[i - 1], value, e.type);
    return value;
  }

  uint32_t NullIf(const Expression& e) {
    const uint32_t a = Argument(e, 0), b = Argument(e, 1);
    QuernMapInstruction null = New(kConstantLanes, {});
    null.parameters.errors = kErrorsAreNull;
    return Select(Equal(e, a, b), Add(null), a, e.type);
  }

  // The better one of two, or the one that is not null: a comparison with null selects the first one.
  uint32_t Extreme(const Expression& e, bool least) {
    uint32_t best = Argument(e, 0);
    for (size_t i = 1; i < e.arguments.size(); ++i) {
      const uint32_t next = Argument(e, i);
      const uint32_t is_better = least ? Less(e.type, next, best) : Less(e.type, best, next);
      best = Coalesce(Select(is_better, next, best, e.type), next, e.type);
    }
    return best;
  }

  uint32_t Cast(const Expression& e, uint8_t errors) {
    const ValueType &from = TypeOf(e, 0), &to = e.type;
    const uint32_t value = Argument(e, 0);
    if (IsStringType(to.id)) return CastToString(value, from, to);
    if (IsStringType(from.id)) return CastString(value, to, errors);
    if (IsDecimal(to.id)) return CastToDecimal(value, from, to, errors);
    if (IsDecimal(from.id)) return CastDecimal(value, from, to, errors);
    if (from.id == to.id) return value;
    if (from.id == TypeId::kBool) return Run(kTruthToIntegerLanes, {value}, to);
    const bool from_float = IsFloat(from.id), to_float = IsFloat(to.id);
    QuernMapInstruction cast = New(from_float ? (to_float ? kFloatToFloatLanes : kFloatToIntegerLanes)
                                              : (to_float ? kIntegerToFloatLanes : kCastIntegerLanes),
                                   {value});
    cast.parameters.bits = BitsOf(to.id);
    cast.parameters.is_signed = HasSign(to.id);
    cast.parameters.from_signed = HasSign(from.id);
    cast.parameters.errors = errors;
    return Add(cast);
  }

  uint32_t CastToDecimal(uint32_t value, ValueType from, const ValueType& to, uint8_t errors) {
    if (!IsDecimal(from.id)) {
      QuernMapInstruction cast = New(kIntegerToDecimalLanes, {value});
      cast.parameters.from_signed = HasSign(from.id);
      value = Add(cast);
      constexpr uint8_t kDigits[] = {3, 5, 10, 20};  // of 8, 16, 32, 64 bits
      const auto log2_bytes = static_cast<size_t>(std::countr_zero(RowOf(from.id).width_bytes));
      from = {.id = TypeId::kDecimal128, .digits = kDigits[log2_bytes]};
    }
    return Rescaled(value, from, to, errors);
  }

  uint32_t CastDecimal(uint32_t value, const ValueType& from, const ValueType& to, uint8_t errors) {
    if (IsFloat(to.id)) {
      const auto power = static_cast<double>(PowerOfTen(from.scale));
      QuernMapInstruction cast = New(kDecimalToFloatLanes, {value});
      cast.parameters.bits = BitsOf(to.id);
      cast.parameters.low = std::bit_cast<uint64_t>(power);
      return Add(cast);
    }
    if (from.scale > 0) value = Run(kDecimalScaleDownLanes, {value}, from, errors, PowerOfTen(from.scale));
    return Run(kDecimalToIntegerLanes, {value}, to, errors);
  }

  // Gives each value a place, which others use again behind its last use. Constants keep theirs.
  void Place() {
    std::vector<QuernMapInstruction>& all = d_.instructions_;
    std::vector<uint32_t> last_use(all.size(), 0), free;
    for (uint32_t i = 0; i < all.size(); ++i)
      for (uint32_t k = 0; k < NumArguments(all[i]); ++k) last_use[all[i].arguments[k]] = i;
    uint32_t num_places = 0;
    for (uint32_t i = 0; i < all.size(); ++i) {
      if (all[i].function != kStoreLanes) {
        if (free.empty() || all[i].function == kConstantLanes) {
          all[i].place = num_places++;
        } else {
          all[i].place = free.back();
          free.pop_back();
        }
      }
      for (uint32_t k = 0; k < NumArguments(all[i]); ++k) {
        const uint32_t a = all[i].arguments[k];
        const bool again = std::find(all[i].arguments, all[i].arguments + k, a) != all[i].arguments + k;
        if (last_use[a] == i && !again && all[a].function != kConstantLanes) free.push_back(all[a].place);
      }
    }
    d_.descriptor_.num_places = num_places;
  }

  static constexpr ValueType kTruth = {.id = TypeId::kBool};

  using Key = std::tuple<LaneFunction, Storage, bool, uint32_t, uint32_t, uint32_t, uint32_t, uint8_t, bool, bool,
                         uint8_t, uint64_t, uint64_t>;
  MapDescriptor& d_;
  const Expression* source_ = nullptr;
  std::map<Key, uint32_t> known_;
};

MapDescriptor::MapDescriptor(MapSpec spec)
    : spec_(std::move(spec)), columns_(MapInputTypes(spec_)), results_(MapOutputTypes(spec_)) {
  MapBuilder(this).BuildAll();
  descriptor_.num_instructions = static_cast<uint32_t>(instructions_.size());
  descriptor_.num_columns = static_cast<uint32_t>(columns_.size());
  descriptor_.num_results = static_cast<uint32_t>(results_.size());
  descriptor_.instructions = instructions_.data();
  descriptor_.writes_strings = std::any_of(instructions_.begin(), instructions_.end(),
                                           [](const QuernMapInstruction& i) { return WritesStrings(i.function); });
}

const char* LaneFunctionText(LaneFunction function) { return kLaneFunctions[function].text; }
uint32_t NumArguments(const QuernMapInstruction& instruction) {
  return kLaneFunctions[instruction.function].num_arguments;
}

std::string MapDescriptor::Print() const {
  std::string text = "value  function            arguments    of\n";
  for (size_t i = 0; i < instructions_.size(); ++i) {
    const QuernMapInstruction& instruction = instructions_[i];
    std::string arguments;
    const bool has_length = instruction.function != kSubstringLanes || instruction.parameters.high == 0;
    for (uint32_t k = 0; k + (has_length ? 0 : 1) < NumArguments(instruction); ++k)
      arguments += (k == 0 ? "%" : " %") + std::to_string(instruction.arguments[k]);
    std::string function = LaneFunctionText(instruction.function);
    if (instruction.storage != kNoStorage) function += " " + std::string(StorageText(instruction.storage));
    if (instruction.function == kLoadLanes) arguments = "$" + std::to_string(instruction.column);
    if (instruction.function == kLoadStringsLanes) arguments = "$" + std::to_string(instruction.column);
    if (instruction.function == kLoadStringValueLanes || instruction.function == kStringConstantLanes)
      arguments = "s" + std::to_string(instruction.column);
    char line[128];
    const std::string value =
        instruction.function == kStoreLanes ? "out" + std::to_string(instruction.column) : "%" + std::to_string(i);
    std::snprintf(line, sizeof(line), "%-6s %-19s %-12s ", value.c_str(), function.c_str(), arguments.c_str());
    text += line + PrintExpression(*sources_[i]) + "\n";
  }
  for (size_t s = 0; s < string_values_.size(); ++s) {
    text += s == 0 ? "\nstring  columns  value\n" : "";
    text += PrintStringValue(s, string_values_[s]) + "\n";
  }
  return text;
}

}  // namespace quern
