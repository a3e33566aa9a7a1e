// SPDX-License-Identifier: Apache-2.0
// A string value with a truth is a filter of its own, so that maps and filters have one definition of comparisons, LIKE
// and collations. For out=equal($0,$2),starts_with($1,'50%':utf8):
//
//     s0  columns $0, $2     utf8 = utf8
//     s1  columns $1         utf8 like '50\%%'
//
// The generic filter kernel evaluates them for up to 4096 rows into a mask of one bit a row, which is a column of bits,
// since words are little-endian. A filter's bit is 0 for a null; where a column has nulls, a bitmap says which rows
// have values. Negations (not_equal, greater, not_like) are left to the map, for which not of null is null.
//
// Compiled maps call the generic filter kernel too: its blocks test 64 rows at a time, and constants in its code would
// gain little beside the reads of strings.
#include "runtime/map/string_values.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/blocks/filter_blocks.h"
#include "runtime/blocks/storage_dispatch.h"
#include "runtime/blocks/string_functions.h"
#include "runtime/collation/collation_id.h"
#include "runtime/rows/batch_view.h"
#include "runtime/spec/expression_strings.h"

namespace quern {
namespace {

namespace b = blocks;
using Function = ExpressionFunction;

constexpr uint64_t kMaskBytes = kMaskWords * sizeof(uint64_t);

bool IsColumn(const Expression& e) { return e.kind == ExpressionKind::kColumn; }

StringValue ConditionOn(std::span<const Expression* const> columns, Predicate where) {
  StringValue value;
  for (const Expression* column : columns) {
    value.columns.push_back(column->column);
    value.types.push_back(ColumnTypeOf(column->type));
  }
  where.column = value.types[0];
  if (where.kind == PredicateKind::kCompareColumns) where.other = value.types[1];
  value.condition = std::make_shared<const FilterDescriptor>(FilterSpec{std::move(where)});
  return value;
}

StringValue LengthOf(StringFunction function, const Expression& column) {
  StringValue value;
  value.function = function;
  value.columns = {column.column};
  value.types = {ColumnTypeOf(column.type)};
  return value;
}

Comparison ComparisonOf(Function function, bool exchanged) {
  if (function == Function::kEqual) return Comparison::kEqual;
  if (function == Function::kLess) return exchanged ? Comparison::kGreater : Comparison::kLess;
  return exchanged ? Comparison::kGreaterEqual : Comparison::kLessEqual;
}

StringValue ComparisonValue(Function function, const Expression& left, const Expression& right) {
  if (IsColumn(left) && IsColumn(right)) {
    const Expression* const both[] = {&left, &right};
    return ConditionOn(both, {.kind = PredicateKind::kCompareColumns, .op = ComparisonOf(function, false)});
  }
  const bool exchanged = !IsColumn(left);
  const Expression* const column[] = {exchanged ? &right : &left};
  return ConditionOn(column, {.kind = PredicateKind::kCompare,
                              .op = ComparisonOf(function, exchanged),
                              .values = {*(exchanged ? left : right).value}});
}

// A pattern that matches the text alone.
std::string Escaped(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (c == '%' || c == '_' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern;
}

// The condition but for its column.
Predicate LikePredicate(Function function, std::span<const Expression> arguments) {
  Predicate like{.kind = PredicateKind::kLike, .values = {*arguments[1].value}};
  std::string& pattern = like.values[0].bytes;
  if (function != Function::kLike) pattern = Escaped(pattern);
  if (function == Function::kEndsWith || function == Function::kContains) pattern.insert(0, 1, '%');
  if (function == Function::kStartsWith || function == Function::kContains) pattern += '%';
  if (arguments.size() > 2) like.escape = EscapeOf(arguments[2].value->bytes).value_or(0);
  return like;
}

StringValue LikeValue(Function function, std::span<const Expression> arguments) {
  Predicate like = LikePredicate(function, arguments);
  const Expression* const column[] = {arguments.data()};
  return ConditionOn(column, std::move(like));
}

// Appends the constants of or(equal(column,constant),..), and sets *column. Returns whether it is such an expression.
bool AddList(const Expression& e, const Expression** column, std::vector<Literal>* values) {
  if (e.kind != ExpressionKind::kCall) return false;
  if (e.function == Function::kOr) {
    return std::all_of(e.arguments.begin(), e.arguments.end(),
                       [&](const Expression& part) { return AddList(part, column, values); });
  }
  if (e.function != Function::kEqual || !IsStringType(e.arguments[0].type.id)) return false;
  const bool exchanged = !IsColumn(e.arguments[0]);
  const Expression &left = e.arguments[exchanged ? 1 : 0], &right = e.arguments[exchanged ? 0 : 1];
  if (!IsColumn(left) || !right.value.has_value()) return false;
  if (*column == nullptr) *column = &left;
  values->push_back(*right.value);
  return **column == left;
}

std::string FunctionText(const StringValue& value) {
  if (value.function == StringFunction::kCondition) return PrintCondition(value.condition->spec().where);
  if (value.function == StringFunction::kPattern) return "pattern " + value.bytes;
  if (value.function == StringFunction::kConstant) return StringText(value.bytes);
  const Function function =
      value.function == StringFunction::kOctetLength ? Function::kOctetLength : Function::kCharLength;
  return std::string(RowOf(function).text) + " of " + PrintType(value.types[0]);
}

bool IsConstant(const StringValue& value) {
  return value.function == StringFunction::kConstant || value.function == StringFunction::kPattern;
}

uint64_t BytesOf(const StringValue& value) {
  if (IsConstant(value)) return 0;
  return value.function == StringFunction::kCondition ? kMaskBytes : kMaxBatchRows * sizeof(uint64_t);
}

// ---- lengths ----

// Of rows with a value; those of others are 0.
template <Storage kStorage, class LengthOfRow>
void ReadLengths(const QuernMapArgs& args, const ColumnType& type, const QuernColumn& column, const uint8_t* validity,
                 uint64_t* lengths, LengthOfRow length_of) {
  const Storage index = type.is_dictionary ? RowOf(type.index).storage : kNoStorage;
  const QuernColumn* const values = type.is_dictionary ? column.dictionary : &column;
  for (uint32_t i = 0; i < args.num_rows; ++i) {
    lengths[i] = 0;
    if (validity != nullptr && !b::Bit(validity, i)) continue;
    const uint32_t row = b::RowAt(args.selection, args.first, i);
    const uint32_t at = index == kNoStorage ? row : TranslateRow(index, &column, row);
    lengths[i] = length_of(b::ReaderOf<kStorage>::Read(values, at));
  }
}

void ReadLengths(const QuernMapArgs& args, const StringValue& value, const QuernColumn& to) {
  auto* const lengths = static_cast<uint64_t*>(const_cast<void*>(to.values));
  const QuernColumn& column = args.columns[value.columns[0]];
  DispatchStorage(RowOf(value.types[0].id).storage, [&](auto tag) {
    constexpr Storage kStorage = decltype(tag)::value;
    if constexpr (b::IsVariableStorage(kStorage)) {
      if (value.function == StringFunction::kCharLength) {
        ReadLengths<kStorage>(args, value.types[0], column, to.validity, lengths, NumCharacters);
      } else {
        ReadLengths<kStorage>(args, value.types[0], column, to.validity, lengths,
                              [](b::Bytes s) { return uint64_t{s.length}; });
      }
    }
  });
}

}  // namespace

bool StringValue::nullable() const {
  const bool is_never_null =
      function == StringFunction::kCondition && condition->spec().where.kind == PredicateKind::kIsNull;
  return !is_never_null &&
         std::any_of(types.begin(), types.end(), [](const ColumnType& type) { return type.nullable; });
}

bool StringValue::operator==(const StringValue& other) const {
  if (function != other.function || columns != other.columns || bytes != other.bytes) return false;
  return function != StringFunction::kCondition || condition->spec() == other.condition->spec();
}

StringValue MakeStringValue(Function function, std::span<const Expression> arguments) {
  const Expression* const column[] = {arguments.data()};
  if (function == Function::kIsNull) return ConditionOn(column, {.kind = PredicateKind::kIsNull});
  if (function == Function::kOctetLength) return LengthOf(StringFunction::kOctetLength, arguments[0]);
  if (function == Function::kCharLength) return LengthOf(StringFunction::kCharLength, arguments[0]);
  if (function == Function::kEqual || function == Function::kLess || function == Function::kLessEqual)
    return ComparisonValue(function, arguments[0], arguments[1]);
  return LikeValue(function, arguments);
}

StringValue MakeStringConstant(std::string bytes) {
  StringValue value;
  value.function = StringFunction::kConstant;
  value.bytes = std::move(bytes);
  return value;
}

StringValue MakeStringPattern(Function function, std::span<const Expression> arguments) {
  Predicate like = LikePredicate(function, arguments);
  const ValueType& type = arguments[0].type;
  const CollationRule rule = RuleOf(type.collation);
  StringValue value;
  value.function = StringFunction::kPattern;
  value.pattern = std::make_shared<const LikePattern>(like.values[0].bytes, like.escape, rule,
                                                      IsTextType(type.id) ? LikeUnit::kCodePoint : LikeUnit::kByte);
  like.column = ColumnTypeOf(type);
  like.column.is_dictionary = like.column.nullable = false;
  value.bytes = PrintCondition(like);
  return value;
}

std::optional<StringValue> MakeStringList(const Expression& any) {
  const Expression* column = nullptr;
  Predicate in{.kind = PredicateKind::kIn};
  if (!AddList(any, &column, &in.values)) return std::nullopt;
  return ConditionOn({&column, 1}, std::move(in));
}

std::string PrintStringValue(size_t number, const StringValue& value) {
  const auto padded = [](std::string text, size_t width) {
    text.resize(std::max(text.size(), width), ' ');
    return text + " ";
  };
  std::string columns;
  for (const uint32_t column : value.columns) columns += (columns.empty() ? "$" : " $") + std::to_string(column);
  return padded("s" + std::to_string(number), 7) + padded(columns, 8) + FunctionText(value);
}

absl::Status StringReader::SetBatch(const std::shared_ptr<MemoryBudget>& budget) {
  scratch_.SetBudget(budget);
  if (values_.empty()) return absl::OkStatus();
  memos_.assign(values_.size(), {});
  if (buffer_.data() != nullptr) return absl::OkStatus();
  uint64_t bytes = 0;
  for (const StringValue& value : values_) bytes += BytesOf(value) + kMaskBytes;
  QUERN_ASSIGN_OR_RETURN(buffer_, HugeBuffer::Allocate(budget, bytes, /*huge_pages=*/false, Contents::kAnything));
  uint8_t* at = buffer_.data();
  for (const StringValue& value : values_) {
    QuernColumn column = {};
    column.values = at;
    if (value.function == StringFunction::kConstant) column.values = value.bytes.data();
    if (value.function == StringFunction::kPattern) column.values = value.pattern.get();
    if (IsConstant(value)) column.bit_offset = value.bytes.size();
    at += BytesOf(value);
    column.validity = value.nullable() ? at : nullptr;
    at += kMaskBytes;
    columns_.push_back(column);
  }
  return absl::OkStatus();
}

void StringReader::ReadOne(size_t number, const QuernMapArgs& args, const QuernColumn& to) {
  const StringValue& value = values_[number];
  if (IsConstant(value)) return;
  if (to.validity != nullptr) {
    auto* const valid = reinterpret_cast<uint64_t*>(const_cast<uint8_t*>(to.validity));
    std::fill_n(valid, kMaskWords, ~uint64_t{0});
    for (size_t c = 0; c < value.columns.size(); ++c) {
      if (!value.types[c].nullable) continue;
      const QuernColumn& column = args.columns[value.columns[c]];
      b::TestValid(&column, args.selection == nullptr ? args.first : 0, args.selection, args.num_rows, valid, false);
    }
  }
  if (value.function != StringFunction::kCondition) return ReadLengths(args, value, to);
  condition_columns_.clear();
  for (size_t c = 0; c < value.columns.size(); ++c) {
    const QuernColumn& column = args.columns[value.columns[c]];
    condition_columns_.push_back(args.selection == nullptr ? ColumnFrom(args.first, value.types[c], column) : column);
  }
  QuernFilterArgs filter = {};
  filter.descriptor = value.condition->get();
  filter.columns = condition_columns_.data();
  filter.selection = args.selection;
  filter.num_rows = args.num_rows;
  filter.mask = static_cast<uint64_t*>(const_cast<void*>(to.values));
  filter.memo = &memos_[number];
  filter_.mask(&filter);
}

absl::Status StringReader::Read(QuernMapArgs* args) {
  if (values_.empty()) return absl::OkStatus();
  const RefusedCalls refused;
  for (size_t i = 0; i < values_.size(); ++i) ReadOne(i, *args, columns_[i]);
  args->string_values = columns_.data();
  return refused.status();
}

}  // namespace quern
