// SPDX-License-Identifier: Apache-2.0
// Kernels compare the numbers that columns hold: unscaled decimals, days, microseconds. A constant is a number on the
// same scale and often lies between two that a column can hold. The comparison is then changed to use the nearest one
// below:
//
//     decimal(10, 2), 0.123       12.3 hundredths: below it 12
//       x < 0.123   x <= 12     x >= 0.123   x > 12     x = 0.123   never     x between 0.123 and 9   13 to 900
//     i8, 1000                    above all
//       x < 1000    always          x = 1000     never          x in (3, 1000)   x in (3)
//
// `always` and `never` are still unknown where x is null, so they are comparisons too: x between (not between) the ends
// of its type.
//
// Dates and times are read in the column's unit (time_text.h). A column without any value has no type by which to read
// a constant; any comparison with it is unknown, and the kernel tests a bool column of nulls instead.
#include "tools/frontend/where_leaf.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/list_parser.h"
#include "tools/frontend/value_types.h"

namespace quern::cli {
namespace {

using Integer = __int128;

constexpr Integer kGreatest = ~(Integer{1} << 127);
constexpr Integer kLeast = -kGreatest - 1;

// The integers that a column can hold, without the bit patterns that are no decimal.
IntegerRange WholeRangeOf(TypeId id) {
  if (!IsDecimal(id)) return RangeOf(id);
  const Integer greatest = PowerOfTen(MaxDigitsOf(id)) - 1;
  return {-greatest, greatest};
}

// A number on the scale of a column.
struct Scaled {
  Integer floor = 0;  // kGreatest where it is above all, kLeast where it is below
  bool is_exact = true;
};

// ---- texts of numbers ----

// A decimal number: 0.00digits x 10^point, as '12.50e1' is 0.125 x 10^3.
struct Digits {
  bool negative = false;
  std::string digits;  // none at the front is 0
  int64_t point = 0;
};

bool ReadDigits(std::string_view text, Digits* number) {
  if (text.starts_with('-') || text.starts_with('+')) {
    number->negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const size_t e = text.find_first_of("eE");
  if (e != std::string_view::npos) {
    std::string_view exponent = text.substr(e + 1);
    if (exponent.starts_with('+') && !exponent.starts_with("+-")) exponent.remove_prefix(1);
    int32_t value = 0;
    const auto [end, error] = std::from_chars(exponent.data(), exponent.data() + exponent.size(), value);
    if (error != std::errc() || end != exponent.data() + exponent.size()) return false;
    number->point = value;
    text = text.substr(0, e);
  }
  const size_t point = std::min(text.find('.'), text.size());
  number->digits = std::string(text.substr(0, point)) + std::string(text.substr(std::min(point + 1, text.size())));
  if (number->digits.empty() || number->digits.find_first_not_of("0123456789") != std::string::npos) return false;
  number->point += static_cast<int64_t>(point);
  const size_t zeros = std::min(number->digits.find_first_not_of('0'), number->digits.size());
  number->digits.erase(0, zeros);
  number->point -= static_cast<int64_t>(zeros);
  return true;
}

// number x 10^scale. 38 digits fit always, more are above or below all that a column can hold or are not.
Scaled ScaledBy(const Digits& number, int32_t scale) {
  if (number.digits.empty()) return {};
  const int64_t whole = number.point + scale;  // digits before the point
  Scaled scaled;
  Integer value = 0;
  bool overflows = false;
  for (int64_t i = 0; i < whole && !overflows; ++i) {
    const int digit = i < static_cast<int64_t>(number.digits.size()) ? number.digits[static_cast<size_t>(i)] - '0' : 0;
    overflows = __builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value);
  }
  if (overflows) return {number.negative ? kLeast : kGreatest, false};
  const auto first = static_cast<size_t>(std::clamp<int64_t>(whole, 0, static_cast<int64_t>(number.digits.size())));
  scaled.is_exact = number.digits.find_first_not_of('0', first) == std::string::npos;
  scaled.floor = number.negative ? -value - (scaled.is_exact ? 0 : 1) : value;
  return scaled;
}

// ---- constants ----

// What a constant is read with.
struct Reader {
  const WhereColumn& column;

  absl::Status Bad(const WhereConstant& constant, const std::string& accepted) const {
    return CommandError("bad constant in " + column.option + ": " + constant.shown + "; accepted: " + accepted +
                        ", as " + column.text + " is " + column.type_text);
  }

  absl::StatusOr<Scaled> Number(const WhereConstant& constant) const;
  absl::StatusOr<Scaled> Time(const WhereConstant& constant, const char* accepted) const;
  absl::StatusOr<double> Real(const WhereConstant& constant) const;
  absl::StatusOr<std::string> Bytes(const WhereConstant& constant) const;
  absl::StatusOr<Literal> Value(const WhereConstant& constant) const;
};

// The digits after the point: 2 of "d:15,2" and "d:15,2,128"; 0 of a type without them.
int32_t ScaleOf(std::string_view format) {
  int32_t scale = 0;
  if (!format.starts_with("d:")) return scale;
  const std::string_view digits = format.substr(std::min(format.find(','), format.size() - 1) + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), scale);
  return scale;
}

absl::StatusOr<Scaled> Reader::Number(const WhereConstant& constant) const {
  Digits digits;
  if (constant.form != WhereConstant::Form::kBare || !ReadDigits(constant.text, &digits))
    return Bad(constant, "a number");
  return ScaledBy(digits, ScaleOf(column.format));
}

absl::StatusOr<Scaled> Reader::Time(const WhereConstant& constant, const char* accepted) const {
  if (constant.form == WhereConstant::Form::kBytes) return Bad(constant, accepted);
  const std::optional<Literal> literal = TimeIn(constant.text, column.type.id, column.format);
  if (!literal.has_value()) return Bad(constant, accepted);
  return Scaled{literal->number, true};
}

// A whole number that a float column does not hold lies between two that it does, and no comparison with either is
// right.
absl::StatusOr<double> Reader::Real(const WhereConstant& constant) const {
  const bool is_float = column.type.id == TypeId::kF32;
  const std::string lower = LowerCase(constant.text);
  if (constant.form != WhereConstant::Form::kBare) return Bad(constant, "a number, nan, inf, -inf");
  if (lower == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (lower == "inf" || lower == "+inf") return std::numeric_limits<double>::infinity();
  if (lower == "-inf") return -std::numeric_limits<double>::infinity();
  Digits digits;
  if (!ReadDigits(constant.text, &digits)) return Bad(constant, "a number, nan, inf, -inf");
  const char* const begin = constant.text.data() + (constant.text[0] == '+' ? 1 : 0);
  const char* const end = constant.text.data() + constant.text.size();
  double value = 0;
  float narrow = 0;
  const std::errc error = is_float ? std::from_chars(begin, end, narrow).ec : std::from_chars(begin, end, value).ec;
  const bool rounds_to_zero = error == std::errc::result_out_of_range && digits.point <= 0;  // 1e-400
  if (rounds_to_zero) return 0.0;
  if (error != std::errc()) return Bad(constant, "a number that it can hold");
  if (is_float) value = narrow;
  const bool is_whole = constant.text.find_first_of(".eE") == std::string::npos;
  const Scaled exact = ScaledBy(digits, 0);
  constexpr double kBeyond = 0x1p127;
  if (!is_whole || (exact.is_exact && std::abs(value) < kBeyond && static_cast<Integer>(value) == exact.floor))
    return value;
  return Bad(constant, "a whole number that it can hold, or one with a point, which is rounded");
}

absl::StatusOr<std::string> Reader::Bytes(const WhereConstant& constant) const {
  if (constant.form == WhereConstant::Form::kBare) return Bad(constant, "text in single quotes");
  if (column.type.width_bytes == 0 || constant.text.size() == column.type.width_bytes) return constant.text;
  return Bad(constant, std::to_string(column.type.width_bytes) + " bytes");
}

enum class Domain : uint8_t { kBool, kNumber, kDate, kTime, kTimestamp, kReal, kBytes };

Domain DomainOf(TypeId id) {
  switch (id) {
    case TypeId::kBool: return Domain::kBool;
    case TypeId::kF32:
    case TypeId::kF64: return Domain::kReal;
    case TypeId::kDate32:
    case TypeId::kDate64: return Domain::kDate;
    case TypeId::kTime32:
    case TypeId::kTime64: return Domain::kTime;
    case TypeId::kTimestamp: return Domain::kTimestamp;
    default:  // far more types than domains
      return IsVariable(RowOf(id).storage) || id == TypeId::kFixedBinary ? Domain::kBytes : Domain::kNumber;
  }
}

bool IsWhole(Domain domain) { return domain != Domain::kBool && domain != Domain::kReal && domain != Domain::kBytes; }

// Of a domain that is not whole.
absl::StatusOr<Literal> Reader::Value(const WhereConstant& constant) const {
  Literal literal;
  const Domain domain = DomainOf(column.type.id);
  if (domain == Domain::kReal) {
    QUERN_ASSIGN_OR_RETURN(literal.real, Real(constant));
  } else if (domain == Domain::kBytes) {
    QUERN_ASSIGN_OR_RETURN(literal.bytes, Bytes(constant));
  } else {
    const std::string lower = LowerCase(constant.text);
    if (constant.form != WhereConstant::Form::kBare || (lower != "true" && lower != "false"))
      return Bad(constant, "true, false");
    literal.number = lower == "true" ? 1 : 0;
  }
  return literal;
}

// ---- leaves over whole numbers ----

class WholeLeaf {
 public:
  WholeLeaf(const WhereText& text, const WhereColumn& column)
      : text_(text), column_(column), range_(WholeRangeOf(column.type.id)) {}
  absl::StatusOr<Predicate> Make();

 private:
  absl::StatusOr<Scaled> Read(const WhereConstant& constant) const;
  bool Holds(const Scaled& constant) const {
    return constant.is_exact && constant.floor >= range_.min && constant.floor <= range_.max;
  }
  Predicate Leaf(PredicateKind kind, const std::vector<Integer>& values, bool negated) const;
  // True, or false, for every value; unknown for null.
  Predicate Constant(bool value) const { return Leaf(PredicateKind::kBetween, {range_.min, range_.max}, !value); }
  Predicate Compared(const Scaled& constant) const;
  Predicate Ordered(const Scaled& constant) const;
  Predicate Between(const Scaled& low, const Scaled& high) const;
  Predicate Set(const std::vector<Scaled>& constants) const;

  const WhereText& text_;
  const WhereColumn& column_;
  IntegerRange range_;
};

absl::StatusOr<Scaled> WholeLeaf::Read(const WhereConstant& constant) const {
  const Reader reader{column_};
  switch (DomainOf(column_.type.id)) {
    case Domain::kDate: return reader.Time(constant, "a date, YYYY-MM-DD");
    case Domain::kTime: return reader.Time(constant, "a time, HH:MM:SS, of its unit");
    case Domain::kTimestamp: return reader.Time(constant, "a time, YYYY-MM-DD HH:MM:SS, of its unit");
    case Domain::kNumber:
    case Domain::kBool:
    case Domain::kReal:
    case Domain::kBytes: break;
  }
  return reader.Number(constant);
}

Predicate WholeLeaf::Leaf(PredicateKind kind, const std::vector<Integer>& values, bool negated) const {
  Predicate leaf{.kind = kind, .column = column_.type, .negated = negated};
  for (const Integer value : values) leaf.values.push_back({.number = value});
  return leaf;
}

Predicate WholeLeaf::Compared(const Scaled& constant) const {
  if (text_.op != Comparison::kEqual && text_.op != Comparison::kNotEqual) return Ordered(constant);
  if (!Holds(constant)) return Constant(text_.op == Comparison::kNotEqual);
  Predicate leaf = Leaf(PredicateKind::kCompare, {constant.floor}, false);
  leaf.op = text_.op;
  return leaf;
}

// `constant` is not below floor, and not above floor + 1.
Predicate WholeLeaf::Ordered(const Scaled& constant) const {
  const bool is_less = text_.op == Comparison::kLess || text_.op == Comparison::kLessEqual;
  if (constant.floor > range_.max) return Constant(is_less);
  if (constant.floor < range_.min) return Constant(!is_less);
  Predicate leaf = Leaf(PredicateKind::kCompare, {constant.floor}, false);
  leaf.op = text_.op;
  if (!constant.is_exact) leaf.op = is_less ? Comparison::kLessEqual : Comparison::kGreater;
  return leaf;
}

Predicate WholeLeaf::Between(const Scaled& low, const Scaled& high) const {
  const bool low_is_above = low.floor > range_.max || (low.floor == range_.max && !low.is_exact);
  if (low_is_above || high.floor < range_.min) return Constant(text_.negated);
  const Integer first = low.floor + (low.is_exact ? 0 : 1);
  return Leaf(PredicateKind::kBetween, {std::max(first, range_.min), std::min(high.floor, range_.max)}, text_.negated);
}

Predicate WholeLeaf::Set(const std::vector<Scaled>& constants) const {
  std::vector<Integer> values;
  for (const Scaled& constant : constants)
    if (Holds(constant)) values.push_back(constant.floor);
  if (values.empty()) return Constant(text_.negated);
  return Leaf(PredicateKind::kIn, values, text_.negated);
}

absl::StatusOr<Predicate> WholeLeaf::Make() {
  std::vector<Scaled> constants;
  for (const WhereConstant& text : text_.constants) {
    QUERN_ASSIGN_OR_RETURN(const Scaled constant, Read(text));
    constants.push_back(constant);
  }
  if (text_.kind == PredicateKind::kCompare) return Compared(constants[0]);
  return text_.kind == PredicateKind::kBetween ? Between(constants[0], constants[1]) : Set(constants);
}

absl::Status CheckLeaf(const WhereText& leaf, const WhereColumn& column) {
  const Domain domain = DomainOf(column.type.id);
  if (leaf.is_bare && domain != Domain::kBool) {
    return CommandError("condition that is no bool in " + column.option + ": " + column.text + " is " +
                        column.type_text + "; accepted: a bool column, or a comparison");
  }
  if (leaf.kind != PredicateKind::kLike || IsVariable(RowOf(column.type.id).storage)) return absl::OkStatus();
  return CommandError("like on a column without text in " + column.option + ": " + column.text + " is " +
                      column.type_text + "; accepted: utf8 and binary columns");
}

}  // namespace

absl::StatusOr<Predicate> LeafOf(const WhereText& leaf, const WhereColumn& column) {
  QUERN_RETURN_IF_ERROR(CheckLeaf(leaf, column));
  if (!leaf.constants.empty() && IsWhole(DomainOf(column.type.id))) return WholeLeaf(leaf, column).Make();
  Predicate predicate{.kind = leaf.kind, .column = column.type, .negated = leaf.negated};
  if (leaf.kind == PredicateKind::kCompare) predicate.op = leaf.op;
  if (leaf.kind == PredicateKind::kLike) predicate.escape = leaf.escape;
  for (const WhereConstant& constant : leaf.constants) {
    QUERN_ASSIGN_OR_RETURN(Literal literal, Reader{column}.Value(constant));
    predicate.values.push_back(std::move(literal));
  }
  return predicate;
}

}  // namespace quern::cli
