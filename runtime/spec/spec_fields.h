// SPDX-License-Identifier: Apache-2.0
// Fields of a spec's text, by a table of each operator:
//
//     field = name "=" [ item { "," item } ] | name "=" number | name           each name at most once, in any order
#ifndef QUERN_RUNTIME_SPEC_SPEC_FIELDS_H_
#define QUERN_RUNTIME_SPEC_SPEC_FIELDS_H_

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/status.h"
#include "runtime/spec/spec_text.h"

namespace quern {

// NAME=ITEM,ITEM,.., NAME=NUMBER, or the name alone.
enum class FieldForm : uint8_t { kList, kNumber, kWord };

template <class Spec>
struct Field {
  std::string_view name;
  std::string_view item;  // one item, and several, in messages
  std::string_view items;
  // For a list `item` is one item, otherwise the text behind '='.
  absl::Status (*append)(std::string_view item, Spec* spec);
  FieldForm form = FieldForm::kList;

  std::string Form() const {
    const std::string of(name), one(item);
    if (form == FieldForm::kList) return of + "=" + one + "," + one + ",..";
    return form == FieldForm::kNumber ? of + "=" + one : of;
  }
};

// The type of a result column: results have plain values, whatever their source.
inline ColumnType DecodedType(ColumnType type) {
  type.is_dictionary = false;
  type.index = ColumnType().index;
  return type;
}

// ---- appending an item to the field's member ----

template <Role kRole, class Spec>
absl::Status AppendKey(std::string_view text, Spec* spec) {
  QUERN_ASSIGN_OR_RETURN(Item item, ParseItem(text, kRole));
  if (kRole == Role::kAggregateKey) item.key.null_equal = item.key.type.nullable;
  spec->keys.push_back(item.key);
  return absl::OkStatus();
}

template <class Spec, std::vector<ColumnType> Spec::* kColumns>
absl::Status AppendPayload(std::string_view text, Spec* spec) {
  QUERN_ASSIGN_OR_RETURN(const Item item, ParseItem(text, Role::kPayload));
  (spec->*kColumns).push_back(item.key.type);
  return absl::OkStatus();
}

template <class Number>
bool ReadNumber(std::string_view text, Number* number) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && rest == end;
}

// ---- parsing ----

template <class Spec>
absl::Status CheckForm(std::string_view word, const Field<Spec>& field) {
  const bool has_value = word.size() > field.name.size(), is_word = field.form == FieldForm::kWord;
  if (has_value != is_word) return absl::OkStatus();
  return Wrong(is_word ? "field that takes no value" : "field without a value", word, field.Form());
}

template <class Spec>
absl::Status ParseValue(std::string_view word, const Field<Spec>& field, Spec* spec) {
  if (field.form == FieldForm::kWord) return field.append({}, spec);
  const std::string_view value = word.substr(field.name.size() + 1);
  if (field.form == FieldForm::kNumber) return field.append(value, spec);
  if (value.empty()) return absl::OkStatus();
  for (const std::string_view item : Split(value, ',')) {
    if (item.empty()) return Wrong("empty item in a list", word, std::string(field.items) + " separated by ','");
    QUERN_RETURN_IF_ERROR(field.append(item, spec));
  }
  return absl::OkStatus();
}

// `given`: the names of the fields before this one.
template <class Spec>
absl::Status ParseField(std::string_view word, std::span<const Field<Spec>> fields, Names* given, Spec* spec) {
  const std::string_view name = word.substr(0, word.find('='));
  Names names;
  for (const Field<Spec>& field : fields) {
    names.push_back(field.name);
    if (field.name != name) continue;
    QUERN_RETURN_IF_ERROR(CheckForm(word, field));
    if (std::find(given->begin(), given->end(), name) != given->end())
      return Wrong("field given twice", name, "each field once");
    given->push_back(name);
    return ParseValue(word, field, spec);
  }
  return Unknown("field", name, names);
}

// Reads what stands behind the operator's name.
template <class Spec>
absl::Status ParseFields(std::string_view text, std::span<const Field<Spec>> fields, Spec* spec) {
  Names given;
  for (const std::string_view word : SplitWords(text)) QUERN_RETURN_IF_ERROR(ParseField(word, fields, &given, spec));
  return absl::OkStatus();
}

// ---- checking ----

absl::Status CheckCount(std::string_view what, size_t n, size_t min, size_t max);

// Checks each item of a list; `name` is the list's name, as in "keys[0]".
template <class Items, class Check>
absl::Status CheckEach(const Items& items, const std::string& name, Check check) {
  for (size_t i = 0; i < items.size(); ++i)
    QUERN_RETURN_IF_ERROR(check(items[i], name + "[" + std::to_string(i) + "]"));
  return absl::OkStatus();
}

// An operator whose text must have keys.
absl::Status CheckKeysGiven(const std::vector<KeySpec>& keys);

// ---- printing ----

template <class Items>
void AppendField(const char* name, const Items& items, std::string* text) {
  for (size_t i = 0; i < items.size(); ++i) *text += (i == 0 ? name : ",") + PrintItem(items[i]);
}

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_SPEC_FIELDS_H_
