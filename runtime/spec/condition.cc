// SPDX-License-Identifier: Apache-2.0
// Parses conditions by recursive descent, and prints them. Each rule of the grammar in condition.h is a function
// here:
//
//     i64 >= 5 and (utf8(utf8mb4_general_ci) like 'a!%%' escape '!' or not bool)
//
//     Or                 parses its parts by And, And by Not, Not by Leaf or, in parentheses, by Or again
//     kAnd               { i64 >= 5 , kOr { utf8(..) like .. , kNot { bool = true } } }
//
// Each text gives one tree, and each tree one text, so that the text can be a cache key: `a and (b and c)` is one kAnd
// of three, and parentheses are printed only where they are needed.
//
// A type ends where its parameter and its flags end, `utf8(icu:de-u-co-phonebk):nullable`, and contains no blank. A
// literal's type is that of the column on its left. Depth is limited, for texts as well as for structs of a caller,
// because both are walked by recursion.
#include "runtime/spec/condition.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/spec/spec_scanner.h"
#include "runtime/spec/spec_text.h"

namespace quern {
namespace {

constexpr char32_t kDefaultEscape = U'\\';
constexpr char kLeafForms[] =
    "TYPE OP LITERAL, TYPE OP TYPE, TYPE [not] in (LITERAL,..), TYPE [not] between LITERAL and LITERAL, TYPE [not] "
    "like 'PATTERN' "
    "[escape 'C'], TYPE is [not] null, bool, not CONDITION, (CONDITION)";
constexpr char kEscapeForm[] = "one character, or '' for none";

struct SignRow {
  std::string_view text;
  Comparison op;
};

// In the order of matching, longer signs first; the first sign of each comparison is the one that is printed.
constexpr SignRow kSigns[] = {
    {"<>", Comparison::kNotEqual},     {"<=", Comparison::kLessEqual}, {"<", Comparison::kLess},
    {">=", Comparison::kGreaterEqual}, {">", Comparison::kGreater},    {"==", Comparison::kEqual},
    {"=", Comparison::kEqual},         {"!=", Comparison::kNotEqual},
};

std::string_view SignText(Comparison op) {
  switch (op) {
    case Comparison::kLess: return "<";
    case Comparison::kLessEqual: return "<=";
    case Comparison::kGreater: return ">";
    case Comparison::kGreaterEqual: return ">=";
    case Comparison::kNotEqual: return "<>";
    case Comparison::kEqual: return "=";
  }
  return {};
}

constexpr std::string_view kReserved[] = {"and", "or",   "not",  "in",    "between", "like", "escape",
                                          "is",  "null", "true", "false", "nan",     "inf"};

// ---- reading ----

class ConditionParser : private SpecScanner {
 public:
  explicit ConditionParser(std::string_view text) : SpecScanner(text, "end of the condition") {}
  absl::StatusOr<Predicate> Whole();

 private:
  absl::StatusOr<Predicate> Or();
  absl::StatusOr<Predicate> And();
  absl::StatusOr<Predicate> Not();
  absl::StatusOr<Predicate> InParentheses();
  absl::StatusOr<Predicate> Leaf();
  absl::StatusOr<Predicate> ComparisonOf(Predicate leaf);
  absl::StatusOr<Predicate> MembershipOf(Predicate leaf);
  absl::StatusOr<Predicate> RangeOf(Predicate leaf);
  absl::StatusOr<Predicate> MatchOf(Predicate leaf);
  absl::StatusOr<Predicate> NullnessOf(Predicate leaf);
  absl::Status WrongOperator(const ColumnType& type) const;
  absl::Status AddLiteral(const ColumnType& type, Predicate* leaf);
  absl::Status Nest();
  absl::StatusOr<ColumnType> Type();
  absl::StatusOr<char32_t> Escape();

  size_t depth_ = 0;  // open `not`s and parentheses
  size_t num_leaves_ = 0;
};

absl::StatusOr<Predicate> ConditionParser::Whole() {
  QUERN_ASSIGN_OR_RETURN(Predicate condition, Or());
  if (rest_.empty()) return condition;
  if (const std::string_view word = Word(); !word.empty())
    return Unknown("word behind a condition", word, {"and", "or"});
  return Wrong("text behind a condition", rest_, "and, or");
}

// Appends a part to *whole; parts of the same kind are merged.
void AddPart(Predicate part, Predicate* whole) {
  if (part.kind == whole->kind)
    std::move(part.children.begin(), part.children.end(), std::back_inserter(whole->children));
  else whole->children.push_back(std::move(part));
}

absl::StatusOr<Predicate> ConditionParser::Or() {
  QUERN_ASSIGN_OR_RETURN(Predicate first, And());
  if (LowerCase(Word()) != "or") return first;
  Predicate whole{.kind = PredicateKind::kOr};
  AddPart(std::move(first), &whole);
  while (ReadWord("or")) {
    QUERN_ASSIGN_OR_RETURN(Predicate next, And());
    AddPart(std::move(next), &whole);
  }
  return whole;
}

absl::StatusOr<Predicate> ConditionParser::And() {
  QUERN_ASSIGN_OR_RETURN(Predicate first, Not());
  if (LowerCase(Word()) != "and") return first;
  Predicate whole{.kind = PredicateKind::kAnd};
  AddPart(std::move(first), &whole);
  while (ReadWord("and")) {
    QUERN_ASSIGN_OR_RETURN(Predicate next, Not());
    AddPart(std::move(next), &whole);
  }
  return whole;
}

absl::Status TooDeep(std::string_view shown) {
  return Wrong("condition nested too deep", shown, "up to " + std::to_string(kMaxPredicateDepth) + " levels");
}

absl::Status ConditionParser::Nest() { return ++depth_ < kMaxPredicateDepth ? absl::OkStatus() : TooDeep(rest_); }

absl::StatusOr<Predicate> ConditionParser::Not() {
  if (rest_.starts_with('(')) return InParentheses();
  if (!ReadWord("not")) return Leaf();
  QUERN_RETURN_IF_ERROR(Nest());
  QUERN_ASSIGN_OR_RETURN(Predicate negated, Not());
  --depth_;
  Predicate whole{.kind = PredicateKind::kNot};
  whole.children.push_back(std::move(negated));
  return whole;
}

absl::StatusOr<Predicate> ConditionParser::InParentheses() {
  const std::string_view begin = rest_;
  Take(1);
  QUERN_RETURN_IF_ERROR(Nest());
  QUERN_ASSIGN_OR_RETURN(Predicate condition, Or());
  --depth_;
  if (ReadSign(")")) return condition;
  if (rest_.empty()) return Wrong("parenthesis not closed", begin, "')'");
  return Wrong("text in parentheses behind a condition", rest_, "and, or, ')'");
}

// ---- leaves ----

absl::StatusOr<ColumnType> ConditionParser::Type() {
  const std::string_view word = Word();
  const bool is_reserved =
      std::find(std::begin(kReserved), std::end(kReserved), LowerCase(word)) != std::end(kReserved);
  if (word.empty() || is_reserved || IsDigit(word[0])) return Wrong("condition expected", Near(), kLeafForms);
  QUERN_ASSIGN_OR_RETURN(const Item item, ParseItem(Take(EndOfType()), Role::kCondition));
  return item.key.type;
}

absl::Status ConditionParser::WrongOperator(const ColumnType& type) const {
  const std::string behind = "behind " + PrintType(type);
  if (const std::string_view word = Word(); !word.empty())
    return Unknown("comparison " + behind, word,
                   {"=", "<>", "<", "<=", ">", ">=", "in", "between", "like", "is", "not"});
  return Wrong("comparison expected " + behind, Near(), "=, <>, <, <=, >, >=, in, between, like, is, not");
}

absl::StatusOr<Predicate> ConditionParser::Leaf() {
  if (++num_leaves_ > kMaxPredicateLeaves)
    return Wrong("condition of too many comparisons", rest_, "up to " + std::to_string(kMaxPredicateLeaves));
  Predicate leaf;
  QUERN_ASSIGN_OR_RETURN(leaf.column, Type());
  for (const SignRow& sign : kSigns) {
    if (!ReadSign(sign.text)) continue;
    leaf.op = sign.op;
    return ComparisonOf(std::move(leaf));
  }
  if (ReadWord("is")) return NullnessOf(std::move(leaf));
  leaf.negated = ReadWord("not");
  if (ReadWord("in")) return MembershipOf(std::move(leaf));
  if (ReadWord("between")) return RangeOf(std::move(leaf));
  if (ReadWord("like")) return MatchOf(std::move(leaf));
  if (leaf.negated) return Wrong("comparison expected behind not", Near(), "in, between, like");
  const std::string word = LowerCase(Word());
  const bool ends = rest_.empty() || rest_.starts_with(')') || word == "and" || word == "or";
  if (!ends || leaf.column.id != TypeId::kBool) return WrongOperator(leaf.column);
  leaf.kind = PredicateKind::kCompare;
  leaf.op = Comparison::kEqual;
  leaf.values.push_back({.number = 1});
  return leaf;
}

absl::Status DifferentTypes(const ColumnType& left, const ColumnType& right) {
  return Wrong("types that differ in a comparison of columns", PrintType(left) + " and " + PrintType(right),
               "one type, nullable or not");
}

// The same type except for nulls.
bool SameValues(ColumnType left, const ColumnType& right) {
  left.nullable = right.nullable;
  return left == right;
}

absl::StatusOr<Predicate> ConditionParser::ComparisonOf(Predicate leaf) {
  if (rest_.empty())
    return Wrong("constant of " + PrintType(leaf.column), Near(),
                 AcceptedLiteral(leaf.column) + ", or a column's type");
  if (StartsLiteral()) {
    leaf.kind = PredicateKind::kCompare;
    QUERN_RETURN_IF_ERROR(AddLiteral(leaf.column, &leaf));
    return leaf;
  }
  leaf.kind = PredicateKind::kCompareColumns;
  QUERN_ASSIGN_OR_RETURN(leaf.other, Type());
  if (!SameValues(leaf.column, leaf.other)) return DifferentTypes(leaf.column, leaf.other);
  return leaf;
}

absl::Status CheckNumValues(size_t n) {
  if (n <= kMaxInValues) return absl::OkStatus();
  return Wrong("list of too many constants", std::to_string(n), "1 to " + std::to_string(kMaxInValues));
}

absl::StatusOr<Predicate> ConditionParser::MembershipOf(Predicate leaf) {
  leaf.kind = PredicateKind::kIn;
  if (!ReadSign("(")) return Wrong("list expected behind in", Near(), "(LITERAL,..)");
  do {
    QUERN_RETURN_IF_ERROR(AddLiteral(leaf.column, &leaf));
    QUERN_RETURN_IF_ERROR(CheckNumValues(leaf.values.size()));
  } while (ReadSign(","));
  if (ReadSign(")")) return leaf;
  return Wrong("list not closed", Near(), "',' and a literal, or ')'");
}

absl::StatusOr<Predicate> ConditionParser::RangeOf(Predicate leaf) {
  leaf.kind = PredicateKind::kBetween;
  QUERN_RETURN_IF_ERROR(AddLiteral(leaf.column, &leaf));
  if (!ReadWord("and")) return Wrong("upper bound expected behind between", Near(), "and LITERAL");
  QUERN_RETURN_IF_ERROR(AddLiteral(leaf.column, &leaf));
  return leaf;
}

absl::Status LikeOfNoStrings(const ColumnType& type) {
  Names names;
  for (const TypeRow& row : AllTypes())
    if (IsVariable(row.storage)) names.push_back(row.text);
  return Wrong("like on a column without strings", PrintType(type), Listed(names));
}

absl::StatusOr<Predicate> ConditionParser::MatchOf(Predicate leaf) {
  leaf.kind = PredicateKind::kLike;
  if (!IsVariable(RowOf(leaf.column.id).storage)) return LikeOfNoStrings(leaf.column);
  QUERN_RETURN_IF_ERROR(AddLiteral(leaf.column, &leaf));
  if (!ReadWord("escape")) return leaf;
  QUERN_ASSIGN_OR_RETURN(leaf.escape, Escape());
  return leaf;
}

absl::StatusOr<Predicate> ConditionParser::NullnessOf(Predicate leaf) {
  leaf.kind = PredicateKind::kIsNull;
  leaf.negated = ReadWord("not");
  if (ReadWord("null")) return leaf;
  return Wrong(leaf.negated ? "null expected behind is not" : "null expected behind is", Near(),
               leaf.negated ? "null" : "null, not null");
}

// ---- literals ----

absl::Status ConditionParser::AddLiteral(const ColumnType& type, Predicate* leaf) {
  QUERN_ASSIGN_OR_RETURN(Literal literal, Constant(type));
  leaf->values.push_back(std::move(literal));
  return absl::OkStatus();
}

absl::StatusOr<char32_t> ConditionParser::Escape() {
  if (!StartsString()) return Wrong("escape of like", Near(), kEscapeForm);
  QUERN_ASSIGN_OR_RETURN(const std::string text, String());
  return EscapeOf(text);
}

// ---- writing ----

// How tightly each kind binds.
int PrecedenceOf(PredicateKind kind) { return kind == PredicateKind::kOr ? 0 : kind == PredicateKind::kAnd ? 1 : 2; }

std::string EscapeText(char32_t escape) {
  std::string character;
  if (escape != 0) AppendCharacter(escape, &character);
  return " escape " + StringText(character);
}

void PrintList(const Predicate& leaf, std::string* text) {
  for (size_t i = 0; i < leaf.values.size(); ++i)
    *text += (i == 0 ? "" : ", ") + LiteralText(leaf.values[i], leaf.column);
}

void PrintLeaf(const Predicate& leaf, std::string* text) {
  const auto value = [&](size_t i) { return LiteralText(leaf.values[i], leaf.column); };
  const std::string negation = leaf.negated ? " not" : "";
  *text += PrintItem(leaf.column);
  switch (leaf.kind) {
    case PredicateKind::kCompare: {
      const bool is_bare =
          leaf.column.id == TypeId::kBool && leaf.op == Comparison::kEqual && leaf.values[0].number != 0;
      if (!is_bare) *text += " " + std::string(SignText(leaf.op)) + " " + value(0);
      break;
    }
    case PredicateKind::kCompareColumns:
      *text += " " + std::string(SignText(leaf.op)) + " " + PrintItem(leaf.other);
      break;
    case PredicateKind::kBetween: *text += negation + " between " + value(0) + " and " + value(1); break;
    case PredicateKind::kIn:
      *text += negation + " in (";
      PrintList(leaf, text);
      *text += ")";
      break;
    case PredicateKind::kLike:
      *text += negation + " like " + value(0) + (leaf.escape == kDefaultEscape ? "" : EscapeText(leaf.escape));
      break;
    case PredicateKind::kIsNull: *text += " is" + negation + " null"; break;
    case PredicateKind::kAnd:
    case PredicateKind::kOr:
    case PredicateKind::kNot: break;
  }
}

void Print(const Predicate& condition, std::string* text) {
  const bool is_not = condition.kind == PredicateKind::kNot;
  if (!is_not && condition.kind != PredicateKind::kAnd && condition.kind != PredicateKind::kOr)
    return PrintLeaf(condition, text);
  for (size_t i = 0; i < condition.children.size(); ++i) {
    const Predicate& child = condition.children[i];
    const bool inside = PrecedenceOf(child.kind) < PrecedenceOf(condition.kind);
    if (is_not) *text += "not ";
    else if (i > 0) *text += condition.kind == PredicateKind::kAnd ? " and " : " or ";
    if (inside) *text += "(";
    Print(child, text);
    if (inside) *text += ")";
  }
}

// ---- structs filled by a caller ----

std::string_view FieldsOf(PredicateKind kind) {
  switch (kind) {
    case PredicateKind::kAnd:
    case PredicateKind::kOr: return "children, two or more";
    case PredicateKind::kNot: return "children, one";
    case PredicateKind::kCompare: return "column, op, values, one";
    case PredicateKind::kCompareColumns: return "column, other, op";
    case PredicateKind::kBetween: return "column, negated, values, two";
    case PredicateKind::kIn: return "column, negated, values, 1 to 65536";
    case PredicateKind::kLike: return "column, negated, values, one, escape";
    case PredicateKind::kIsNull: return "column, negated";
  }
  return {};
}

struct Count {
  size_t min, max;
};

Count NumChildren(PredicateKind kind) {
  if (kind == PredicateKind::kNot) return {1, 1};
  const bool joins = kind == PredicateKind::kAnd || kind == PredicateKind::kOr;
  return joins ? Count{2, kMaxPredicateLeaves} : Count{0, 0};
}

Count NumValues(PredicateKind kind) {
  if (kind == PredicateKind::kBetween) return {2, 2};
  if (kind == PredicateKind::kIn) return {1, kMaxInValues};
  return kind == PredicateKind::kCompare || kind == PredicateKind::kLike ? Count{1, 1} : Count{0, 0};
}

bool IsLeaf(PredicateKind kind) { return NumChildren(kind).max == 0; }
bool IsBetween(size_t n, Count count) { return n >= count.min && n <= count.max; }

// The first field that does not apply to the kind, or that has too many or too few values; nullptr if there is none.
const char* MisusedField(const Predicate& p) {
  const PredicateKind kind = p.kind;
  const bool compares = kind == PredicateKind::kCompare || kind == PredicateKind::kCompareColumns;
  if (!IsBetween(p.children.size(), NumChildren(kind))) return "children";
  if (!IsBetween(p.values.size(), NumValues(kind))) return "values";
  if (!IsLeaf(kind) && p.column != ColumnType()) return "column";
  if (kind != PredicateKind::kCompareColumns && p.other != ColumnType()) return "other";
  if (!compares && p.op != Comparison()) return "op";
  if ((compares || !IsLeaf(kind)) && p.negated) return "negated";
  return kind != PredicateKind::kLike && p.escape != kDefaultEscape ? "escape" : nullptr;
}

class ConditionCheck {
 public:
  absl::Status Check(const Predicate& condition, size_t depth) {
    constexpr auto kLast = static_cast<size_t>(PredicateKind::kIsNull);
    if (depth >= kMaxPredicateDepth) return TooDeep(std::to_string(depth + 1));
    if (static_cast<size_t>(condition.kind) > kLast) {
      return Wrong("predicate kind out of range", std::to_string(static_cast<int>(condition.kind)),
                   "0 to " + std::to_string(kLast));
    }
    if (const char* field = MisusedField(condition); field != nullptr) {
      return Wrong("field of a predicate of kind " + std::to_string(static_cast<int>(condition.kind)), field,
                   std::string(FieldsOf(condition.kind)));
    }
    if (IsLeaf(condition.kind)) return CheckLeaf(condition);
    for (const Predicate& child : condition.children) {
      if (child.kind == condition.kind && child.kind != PredicateKind::kNot)
        return Wrong("child of its parent's kind", PrintCondition(child), "its children in its place");
      QUERN_RETURN_IF_ERROR(Check(child, depth + 1));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckColumn(const ColumnType& type) {
    return CheckConditionColumn(type, "column " + std::to_string(num_columns_++) + " of the condition");
  }

  absl::Status CheckLeaf(const Predicate& leaf) {
    constexpr auto kLast = static_cast<size_t>(Comparison::kEqual);
    if (++num_leaves_ > kMaxPredicateLeaves) {
      return Wrong("condition of too many comparisons", std::to_string(num_leaves_),
                   "up to " + std::to_string(kMaxPredicateLeaves));
    }
    QUERN_RETURN_IF_ERROR(CheckColumn(leaf.column));
    if (static_cast<size_t>(leaf.op) > kLast)
      return Wrong("comparison number out of range in a condition", std::to_string(static_cast<int>(leaf.op)),
                   "0 to " + std::to_string(kLast));
    if (leaf.kind == PredicateKind::kCompareColumns) {
      QUERN_RETURN_IF_ERROR(CheckColumn(leaf.other));
      if (!SameValues(leaf.column, leaf.other)) return DifferentTypes(leaf.column, leaf.other);
    }
    if (leaf.kind == PredicateKind::kLike && !IsVariable(RowOf(leaf.column.id).storage))
      return LikeOfNoStrings(leaf.column);
    if (!IsScalar(leaf.escape))
      return Wrong("escape of like", std::to_string(static_cast<uint32_t>(leaf.escape)),
                   "a Unicode scalar value, or 0 for none");
    for (const Literal& literal : leaf.values) QUERN_RETURN_IF_ERROR(CheckLiteral(literal, leaf.column));
    return absl::OkStatus();
  }

  size_t num_leaves_ = 0, num_columns_ = 0;
};

void AppendColumns(const Predicate& condition, std::vector<ColumnType>* columns) {
  if (IsLeaf(condition.kind)) columns->push_back(condition.column);
  if (condition.kind == PredicateKind::kCompareColumns) columns->push_back(condition.other);
  for (const Predicate& child : condition.children) AppendColumns(child, columns);
}

}  // namespace

std::vector<ColumnType> ColumnsOf(const Predicate& condition) {
  std::vector<ColumnType> columns;
  AppendColumns(condition, &columns);
  return columns;
}

absl::StatusOr<Predicate> ParseCondition(std::string_view text) {
  QUERN_ASSIGN_OR_RETURN(Predicate condition, ConditionParser(text).Whole());
  QUERN_RETURN_IF_ERROR(ValidateCondition(condition));
  return condition;
}

std::string PrintCondition(const Predicate& condition) {
  std::string text;
  Print(condition, &text);
  return text;
}

absl::StatusOr<char32_t> EscapeOf(std::string_view text) {
  char32_t escape = 0;
  if (text.empty() || (CharacterBytes(text, &escape) == text.size() && escape != 0)) return escape;
  return Wrong("escape of like", StringText(text), kEscapeForm);
}

absl::Status ValidateCondition(const Predicate& condition) { return ConditionCheck().Check(condition, 0); }

}  // namespace quern
