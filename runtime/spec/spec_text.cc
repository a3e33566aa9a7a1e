// SPDX-License-Identifier: Apache-2.0
// Parses, prints and checks one item of a list in a kernel spec: a type and its flags.
//
//     item  = type { ":" flag }                      commas and colons inside parentheses belong to the type
//     type  = name [ "(" parameter ")" ]             fixed_binary(16), utf8(utf8mb4_bin), dictionary(i32,utf8)
//
// The same text is valid in one place and invalid in another; the Role of the item decides.
// `utf8(utf8mb4_bin):nullable:nullequal` is a valid key of a join, but payload must not have the collation, and a key
// of an aggregation must not have the last flag. Flags are rows of one table, each with the roles where it has a
// meaning and with the choice that it makes: `asc` and `desc` make the same choice, so they exclude each other.
#include "runtime/spec/spec_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/collation/collation.h"
#include "runtime/collation/icu_collation.h"

namespace quern {
namespace {

constexpr uint32_t kMaxWidthBytes = 65536;
constexpr char kTypeForm[] = "TYPE(PARAMETER)";
constexpr std::string_view kDictionary = "dictionary";
constexpr std::string_view kBlanks = " \t\r\n";

}  // namespace

// ---- splitting ----

namespace {

size_t Find(std::string_view text, char separator, size_t begin) {
  size_t depth = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    if (depth == 0 && text[i] == separator) return i;
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && depth > 0) --depth;
  }
  return text.size();
}

absl::Status CheckParentheses(std::string_view text, const std::string& form) {
  size_t open = 0;
  for (char c : text) {
    if (c == '(') ++open;
    if (c == ')' && open-- == 0) return Wrong("parenthesis closed that was not opened", text, form);
  }
  return open == 0 ? absl::OkStatus() : Wrong("parenthesis not closed", text, form);
}

}  // namespace

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = Find(text, separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == text.size()) return parts;
    begin = end + 1;
  }
}

std::vector<std::string_view> SplitWords(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t begin = text.find_first_not_of(kBlanks); begin < text.size();) {
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

absl::StatusOr<NamedText> SplitName(std::string_view text, const std::string& form) {
  QUERN_RETURN_IF_ERROR(CheckParentheses(text, form));
  NamedText parts;
  parts.whole = text;
  const size_t open = text.find('(');
  parts.name = text.substr(0, open);
  if (open == std::string_view::npos) return parts;
  if (text.back() != ')') return Wrong("text behind a parenthesis", text, form);
  parts.has_parameter = true;
  parts.parameter = text.substr(open + 1, text.size() - open - 2);
  return parts;
}

// ---- types ----

namespace {

struct Alias {
  std::string_view text;
  TypeId id;
};

constexpr Alias kAliases[] = {
#define QUERN_COLUMN_TYPE(Id, text, storage, width_bytes, key_storage, arrow)
#define QUERN_COLUMN_TYPE_ALIAS(text, Id) {text, TypeId::Id},
#include "runtime/spec/column_types.def"
};

bool IsIndexType(TypeId id) { return id >= TypeId::kI8 && id <= TypeId::kU64; }

const TypeRow* FindType(std::string_view name) {
  for (const TypeRow& row : AllTypes())
    if (row.text == name) return &row;
  for (const Alias& alias : kAliases)
    if (alias.text == name) return &RowOf(alias.id);
  return nullptr;
}

Names IndexNames() {
  Names names;
  for (const TypeRow& row : AllTypes())
    if (IsIndexType(row.id)) names.push_back(row.text);
  return names;
}

// Types that are ordered by their bits or as numbers, and whose width needs no parameter.
bool IsCompared(const TypeRow& row) {
  return row.storage != kFixed && row.storage != kRowId && !IsVariable(row.storage);
}

Names ResidualNames() {
  Names names;
  for (const TypeRow& row : AllTypes())
    if (IsCompared(row)) names.push_back(row.text);
  return names;
}

Names TypeNames(bool with_dictionary, bool with_rowid) {
  Names names;
  for (const TypeRow& row : AllTypes())
    if (with_rowid || row.id != TypeId::kRowId) names.push_back(row.text);
  if (with_dictionary) names.push_back(kDictionary);
  return names;
}

absl::Status ParseWidth(const NamedText& text, ColumnType* type) {
  constexpr std::string_view kAccepted = "fixed_binary(1) to fixed_binary(65536)";
  if (!text.has_parameter) return Wrong("type without a width in bytes", text.whole, std::string(kAccepted));
  const char* const end = text.parameter.data() + text.parameter.size();
  const auto [rest, error] = std::from_chars(text.parameter.data(), end, type->width_bytes);
  if (error == std::errc() && rest == end && type->width_bytes >= 1 && type->width_bytes <= kMaxWidthBytes)
    return absl::OkStatus();
  return Wrong("width out of range", text.whole, std::string(kAccepted));
}

absl::Status ParseCollation(const NamedText& text, Role role, ColumnType* type) {
  if (!text.has_parameter) return absl::OkStatus();
  if (role == Role::kPayload) return Wrong("collation of a payload column", text.whole, std::string(text.name));
  QUERN_ASSIGN_OR_RETURN(type->collation, CollationNamed(text.parameter));
  return absl::OkStatus();
}

// A type that is not a dictionary.
absl::Status ParseValueType(const NamedText& text, Role role, const Names& accepted, ColumnType* type) {
  if (text.name.empty()) return Wrong("missing column type", text.whole, Listed(accepted));
  const TypeRow* row = FindType(text.name);
  if (row == nullptr) return Unknown("column type", text.name, accepted);
  type->id = row->id;
  if (row->id == TypeId::kFixedBinary) return ParseWidth(text, type);
  if (IsVariable(row->storage)) return ParseCollation(text, role, type);
  if (text.has_parameter) return Wrong("type takes no parameter", text.whole, std::string(text.name));
  return absl::OkStatus();
}

absl::Status ParseDictionary(const NamedText& text, Role role, ColumnType* type) {
  const std::vector<std::string_view> parts = Split(text.parameter, ',');
  if (parts.size() != 2)
    return Wrong("dictionary without an index and a value type", text.whole, "dictionary(INDEX,VALUE)");
  const TypeRow* index = FindType(parts[0]);
  if (index == nullptr || !IsIndexType(index->id)) return Unknown("index type of a dictionary", parts[0], IndexNames());
  QUERN_ASSIGN_OR_RETURN(const NamedText value, SplitName(parts[1], kTypeForm));
  const Names accepted = TypeNames(false, false);
  if (value.name == kDictionary || value.name == RowOf(TypeId::kRowId).text) {
    return Wrong("value type that a dictionary cannot have", parts[1], Listed(accepted));
  }
  type->is_dictionary = true;
  type->index = index->id;
  return ParseValueType(value, role, accepted, type);
}

absl::Status RowIdIsNoKey(std::string_view value, Role role) {
  const std::string elsewhere = role == Role::kSortKey ? "rowid in payload" : "rowid in build or probe";
  if (role == Role::kCondition) return Wrong("rowid in a condition", value, Listed(TypeNames(true, false)));
  return Wrong("rowid is no key", value, role == Role::kAggregateKey ? Listed(TypeNames(true, false)) : elsewhere);
}

absl::Status NoResidualType(std::string_view value) {
  return Wrong("column type that a residual cannot have", value, Listed(ResidualNames()));
}

absl::StatusOr<ColumnType> ParseResidualType(const NamedText& text) {
  const TypeRow* row = FindType(text.name);
  if (text.name == kDictionary || (row != nullptr && !IsCompared(*row))) return NoResidualType(text.whole);
  ColumnType type;
  QUERN_RETURN_IF_ERROR(ParseValueType(text, Role::kResidual, ResidualNames(), &type));
  return type;
}

absl::StatusOr<ColumnType> ParseType(std::string_view text, Role role) {
  QUERN_ASSIGN_OR_RETURN(const NamedText parts, SplitName(text, kTypeForm));
  if (role == Role::kResidual) return ParseResidualType(parts);
  ColumnType type;
  if (parts.name == kDictionary) {
    QUERN_RETURN_IF_ERROR(ParseDictionary(parts, role, &type));
    return type;
  }
  QUERN_RETURN_IF_ERROR(ParseValueType(parts, role, TypeNames(true, role == Role::kPayload), &type));
  if (type.id == TypeId::kRowId && role != Role::kPayload && role != Role::kArgument) return RowIdIsNoKey(text, role);
  return type;
}

// ---- flags ----

struct ComparisonRow {
  Comparison id;
  std::string_view text;
};

constexpr std::array<ComparisonRow, 6> kComparisons = {{
    {Comparison::kLess, "lt"},
    {Comparison::kLessEqual, "le"},
    {Comparison::kGreater, "gt"},
    {Comparison::kGreaterEqual, "ge"},
    {Comparison::kNotEqual, "ne"},
    {Comparison::kEqual, "eq"},
}};

std::string_view ComparisonText(Comparison op) { return kComparisons[static_cast<size_t>(op)].text; }

// Roles as bits, for the table of flags.
constexpr unsigned Bit(Role role) { return 1U << static_cast<unsigned>(role); }
constexpr unsigned kSorts = Bit(Role::kKey) | Bit(Role::kSortKey);
constexpr unsigned kJoins = Bit(Role::kKey) | Bit(Role::kJoinKey);
constexpr unsigned kResiduals = Bit(Role::kResidual);
constexpr unsigned kAggregates = Bit(Role::kAggregate);
constexpr unsigned kColumns = kSorts | kJoins | Bit(Role::kPayload) | kResiduals | Bit(Role::kAggregateKey) |
                              Bit(Role::kArgument) | Bit(Role::kCondition);

struct FlagRow {
  std::string_view text;
  unsigned roles;   // where it has a meaning
  bool is_default;  // accepted wherever its opposite is, and never printed
  size_t choice;    // at most one flag of each choice may be given
};

constexpr size_t kComparisonChoice = 4, kFilterChoice = 5, kOutChoice = 6, kNumChoices = 7;
constexpr std::array<FlagRow, 14> kFlags = {{
    {"nullable", kColumns, false, 0},
    {"nullequal", kJoins, false, 1},
    {"desc", kSorts, false, 2},
    {"asc", kSorts, true, 2},
    {"nulls_first", kSorts, false, 3},
    {"nulls_last", kSorts, true, 3},
    {"out", kSorts, false, kOutChoice},
    {kComparisons[0].text, kResiduals, false, kComparisonChoice},
    {kComparisons[1].text, kResiduals, false, kComparisonChoice},
    {kComparisons[2].text, kResiduals, false, kComparisonChoice},
    {kComparisons[3].text, kResiduals, false, kComparisonChoice},
    {kComparisons[4].text, kResiduals, false, kComparisonChoice},
    {kComparisons[5].text, kResiduals, false, kComparisonChoice},
    {"filter", kAggregates, false, kFilterChoice},
}};

bool IsAccepted(const FlagRow& flag, Role role) { return (flag.roles & Bit(role)) != 0; }

Names FlagNames(Role role) {
  Names names;
  for (const FlagRow& flag : kFlags)
    if (IsAccepted(flag, role)) names.push_back(flag.text);
  return names;
}

Names ComparisonNames() {
  Names names;
  for (const ComparisonRow& row : kComparisons) names.push_back(row.text);
  return names;
}

std::string_view RoleText(Role role) {
  switch (role) {
    case Role::kKey: return "a key";
    case Role::kJoinKey: return "a join's key";
    case Role::kPayload: return "payload";
    case Role::kResidual: return "a residual";
    case Role::kAggregateKey: return "an aggregate's key";
    case Role::kAggregate: return "an aggregate";
    case Role::kArgument: return "an aggregate's argument";
    case Role::kSortKey: return "a sort's key";
    case Role::kCondition: return "a condition's column";
  }
  return {};
}

absl::Status FlagWithoutMeaning(std::string_view flag, Role role) {
  return Wrong("flag without meaning in " + std::string(RoleText(role)), flag, Listed(FlagNames(role)));
}

absl::Status NullEqualNeedsNullable(const std::string& type) {
  return Wrong("nullequal needs nullable", type + ":nullequal", type + ":nullable:nullequal");
}

absl::StatusOr<FlagRow> FindFlag(std::string_view text, Role role) {
  for (const FlagRow& flag : kFlags) {
    if (flag.text != text) continue;
    const bool accepted = IsAccepted(flag, role) || (role == Role::kJoinKey && flag.is_default);
    if (!accepted) return FlagWithoutMeaning(text, role);
    return flag;
  }
  return Unknown("flag", text, FlagNames(role));
}

void SetFlag(std::string_view flag, Item* item) {
  if (flag == "nullable") item->key.type.nullable = true;
  if (flag == "nullequal") item->key.null_equal = true;
  if (flag == "desc") item->key.descending = true;
  if (flag == "nulls_first") item->key.nulls_first = true;
  if (flag == "out") item->key.out = true;
  if (flag == "filter") item->filtered = true;
  for (const ComparisonRow& row : kComparisons)
    if (row.text == flag) item->op = row.id;
}

}  // namespace

absl::Status ParseFlags(const std::vector<std::string_view>& parts, Role role, Item* item) {
  std::array<std::string_view, kNumChoices> given = {};  // by choice
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].empty()) return Wrong("empty flag", std::string(parts[0]) + ":", Listed(FlagNames(role)));
    QUERN_ASSIGN_OR_RETURN(const FlagRow flag, FindFlag(parts[i], role));
    std::string_view& before = given[flag.choice];
    if (before == flag.text) return Wrong("flag given twice", flag.text, "each flag once");
    if (!before.empty()) {
      return Wrong("flags exclude each other", std::string(before) + " and " + std::string(flag.text), "one of them");
    }
    before = flag.text;
    SetFlag(flag.text, item);
  }
  const KeySpec& key = item->key;
  if (role == Role::kPayload && key.type.id == TypeId::kRowId && key.type.nullable)
    return Wrong("rowid is never null", "rowid:nullable", "rowid");
  if (key.null_equal && !key.type.nullable) return NullEqualNeedsNullable(PrintType(key.type));
  if (role == Role::kResidual && given[kComparisonChoice].empty()) {
    return Wrong("residual without a comparison", parts[0],
                 "TYPE[:nullable]:OP, OP one of " + Listed(ComparisonNames()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Item> ParseItem(std::string_view text, Role role) {
  const std::vector<std::string_view> parts = Split(text, ':');
  Item item;
  QUERN_ASSIGN_OR_RETURN(item.key.type, ParseType(parts[0], role));
  QUERN_RETURN_IF_ERROR(ParseFlags(parts, role, &item));
  return item;
}

// ---- window functions ----

namespace {

constexpr std::array<std::string_view, 3> kWindowTexts = {"row_number", "rank", "dense_rank"};  // by WindowFunction

}  // namespace

absl::StatusOr<WindowFunction> ParseWindowFunction(std::string_view text) {
  const auto found = std::find(kWindowTexts.begin(), kWindowTexts.end(), text);
  if (found == kWindowTexts.end()) return Unknown("window function", text, {kWindowTexts.begin(), kWindowTexts.end()});
  return static_cast<WindowFunction>(found - kWindowTexts.begin());
}

// ---- printing ----

std::string PrintItem(const KeySpec& key) {
  std::string text = PrintType(key.type);
  if (key.type.nullable) text += ":nullable";
  if (key.null_equal) text += ":nullequal";
  if (key.descending) text += ":desc";
  if (key.nulls_first) text += ":nulls_first";
  if (key.out) text += ":out";
  return text;
}

std::string PrintItem(const ColumnType& type) { return PrintItem(KeySpec{.type = type}); }
std::string PrintItem(const ResidualSpec& residual) {
  return PrintItem(residual.type) + ":" + std::string(ComparisonText(residual.op));
}
std::string PrintItem(WindowFunction function) { return std::string(kWindowTexts[static_cast<size_t>(function)]); }

// ---- specs filled by a caller ----

namespace {

// Rejects numbers that are no enumerator: a caller may have cast them. Checked first, since all other checks look them
// up.
absl::Status CheckEnumerators(const ColumnType& type, const std::string& where) {
  const size_t last_type = AllTypes().size() - 1, last_collation = AllCollations().size() - 1;
  const size_t collation = type.collation;
  const auto outside = [&](const char* what, size_t number, size_t last) {
    return Wrong(std::string(what) + " number out of range in " + where, std::to_string(number),
                 "0 to " + std::to_string(last));
  };
  if (static_cast<size_t>(type.id) > last_type) return outside("column type", static_cast<size_t>(type.id), last_type);
  if (static_cast<size_t>(type.index) > last_type)
    return outside("index type", static_cast<size_t>(type.index), last_type);
  if (collation > last_collation && FindIcuRow(type.collation) == nullptr)
    return outside("collation", collation, last_collation);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckType(const ColumnType& type, const std::string& where) {
  QUERN_RETURN_IF_ERROR(CheckEnumerators(type, where));
  const bool is_fixed = type.id == TypeId::kFixedBinary;
  if (is_fixed ? type.width_bytes < 1 || type.width_bytes > kMaxWidthBytes : type.width_bytes != 0) {
    return Wrong("width out of range in " + where, std::to_string(type.width_bytes), is_fixed ? "1 to 65536" : "0");
  }
  if (type.collation != kCollationBinary && !IsVariable(RowOf(type.id).storage)) {
    return Wrong("collation of a type without collations in " + where, PrintType(type), "binary");
  }
  if (type.is_dictionary && type.id == TypeId::kRowId) {
    return Wrong("value type that a dictionary cannot have in " + where, "rowid", Listed(TypeNames(false, false)));
  }
  if (type.is_dictionary ? !IsIndexType(type.index) : type.index != ColumnType().index) {
    return Wrong("index type out of range in " + where, RowOf(type.index).text,
                 type.is_dictionary ? Listed(IndexNames()) : "i32");
  }
  return absl::OkStatus();
}

namespace {

// Rejects flags of sorts in a key of another operator.
absl::Status CheckUnordered(const KeySpec& key, Role role) {
  if (key.descending) return FlagWithoutMeaning("desc", role);
  if (key.nulls_first) return FlagWithoutMeaning("nulls_first", role);
  return key.out ? FlagWithoutMeaning("out", role) : absl::OkStatus();
}

}  // namespace

absl::Status CheckJoinKey(const KeySpec& key, const std::string& where) {
  QUERN_RETURN_IF_ERROR(CheckType(key.type, where));
  if (key.type.id == TypeId::kRowId) return RowIdIsNoKey(where, Role::kJoinKey);
  if (key.null_equal && !key.type.nullable) return NullEqualNeedsNullable(PrintType(key.type));
  return CheckUnordered(key, Role::kJoinKey);
}

// Nulls are always one group: descriptors read that from null_equal, as they do for joins.
absl::Status CheckAggregateKey(const KeySpec& key, const std::string& where) {
  QUERN_RETURN_IF_ERROR(CheckType(key.type, where));
  if (key.type.id == TypeId::kRowId) return RowIdIsNoKey(where, Role::kAggregateKey);
  if (key.null_equal != key.type.nullable) {
    const std::string value = where + (key.null_equal ? " is null_equal alone" : " is nullable alone");
    return Wrong("nullable and null_equal differ in an aggregate's key", value, "both or neither");
  }
  return CheckUnordered(key, Role::kAggregateKey);
}

absl::Status CheckSortKey(const KeySpec& key, const std::string& where) {
  QUERN_RETURN_IF_ERROR(CheckType(key.type, where));
  if (key.type.id == TypeId::kRowId) return RowIdIsNoKey(where, Role::kSortKey);
  return key.null_equal ? FlagWithoutMeaning("nullequal", Role::kSortKey) : absl::OkStatus();
}

absl::Status CheckPayload(const std::vector<ColumnType>& types, const char* name) {
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string where = std::string(name) + "[" + std::to_string(i) + "]";
    QUERN_RETURN_IF_ERROR(CheckType(types[i], where));
    if (types[i].id == TypeId::kRowId && types[i].nullable) return Wrong("rowid is never null", where, "rowid");
    if (types[i].collation != kCollationBinary) {
      return Wrong("collation of a payload column", PrintType(types[i]), std::string(RowOf(types[i].id).text));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckResidual(const ResidualSpec& residual, const std::string& where) {
  QUERN_RETURN_IF_ERROR(CheckType(residual.type, where));
  if (static_cast<size_t>(residual.op) >= kComparisons.size()) {
    const std::string last = std::to_string(kComparisons.size() - 1);
    return Wrong("comparison number out of range in " + where, std::to_string(static_cast<int>(residual.op)),
                 "0 to " + last);
  }
  if (residual.type.is_dictionary || !IsCompared(RowOf(residual.type.id)))
    return NoResidualType(PrintType(residual.type));
  return absl::OkStatus();
}

absl::Status CheckConditionColumn(const ColumnType& type, const std::string& where) {
  QUERN_RETURN_IF_ERROR(CheckType(type, where));
  return type.id == TypeId::kRowId ? RowIdIsNoKey(where, Role::kCondition) : absl::OkStatus();
}

absl::Status CheckWindowFunction(WindowFunction function, const std::string& where) {
  const size_t number = static_cast<size_t>(function), last = kWindowTexts.size() - 1;
  if (number <= last) return absl::OkStatus();
  return Wrong("window function number out of range in " + where, std::to_string(number),
               "0 to " + std::to_string(last));
}

}  // namespace quern
