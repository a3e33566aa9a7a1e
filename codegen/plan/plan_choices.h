// SPDX-License-Identifier: Apache-2.0
// The plan's choices as enums, and the words that stand for them in parameters (plan_choices.def).
#ifndef QUERN_CODEGEN_PLAN_PLAN_CHOICES_H_
#define QUERN_CODEGEN_PLAN_PLAN_CHOICES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/aggregate/aggregate_options.h"
#include "runtime/join/join_options.h"
#include "runtime/sort/sort_options.h"

namespace quern {

// clang-format off
#define QUERN_PLAN_CHOICES_ALONE
#define QUERN_CHOICE_BEGIN(Type) enum class Type : uint8_t {
#define QUERN_CHOICE(value, word) value,
#define QUERN_CHOICE_END };
#include "codegen/plan/plan_choices.def"

// The word for a choice. The compiler warns about an enumerator that is missing from the table.
#define QUERN_CHOICE_BEGIN(Type)                  \
  constexpr std::string_view WordOf(Type choice) { \
    using enum Type;                              \
    switch (choice) {
#define QUERN_CHOICE(value, word) case value: return word;
#define QUERN_CHOICE_END } return {}; }
#include "codegen/plan/plan_choices.def"

template <class Choice>
struct ChoicesOf;  // kAll: in the order of the table
#define QUERN_CHOICE_BEGIN(Type)  \
  template <>                     \
  struct ChoicesOf<Type> {        \
    using enum Type;              \
    static constexpr Type kAll[] = {
#define QUERN_CHOICE(value, word) value,
#define QUERN_CHOICE_END }; };
#include "codegen/plan/plan_choices.def"
// clang-format on

template <class Choice>
std::optional<Choice> ParseChoice(std::string_view word) {
  for (const Choice choice : ChoicesOf<Choice>::kAll)
    if (WordOf(choice) == word) return choice;
  return std::nullopt;
}

// "auto, dense, open".
template <class Choice>
std::string ChoiceWords() {
  std::string words;
  for (const Choice choice : ChoicesOf<Choice>::kAll)
    words += (words.empty() ? "" : ", ") + std::string(WordOf(choice));
  return words;
}

}  // namespace quern

#endif  // QUERN_CODEGEN_PLAN_PLAN_CHOICES_H_
