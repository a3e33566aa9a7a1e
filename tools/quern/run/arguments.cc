// SPDX-License-Identifier: Apache-2.0
// CLI11 finds options, values and positionals; this file adds our rules. Each option takes exactly one word as its
// value (CLI11's own habit of letting a repeatable option swallow all words after it would take the positionals of
// `join --on k a.csv b.csv`), an option that is not repeatable may be given once, and CLI11's exceptions become
// one-line statuses here and go no further:
//
//     quern join --cuont a b     ->  unknown option: --cuont; did you mean --count? accepted: --on, --type, ...
//     quern join --threads       ->  option without a value: --threads; accepted: --threads N
//
// Values are taken as text and read by the functions at the end, because their errors can then name what is accepted.
#include "tools/quern/run/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <limits>
#include <utility>

#include "tools/frontend/errors.h"

namespace quern::cli {
namespace {

// All our positionals are required; CLI11 would put those in brackets that it does not check itself.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = "\nUsage: " + name + " [OPTIONS]";
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_positional()) usage += " " + option->get_name(true);
    }
    return usage + "\n";
  }
  std::string make_footer(const CLI::App* app) const override { return "Example:\n  " + app->get_footer() + "\n"; }
};

}  // namespace

struct Arguments::Parser {
  struct Positional {
    std::string name;
    std::string* one;  // one of the two is set
    std::vector<std::string>* rest;
    bool Missing() const { return one != nullptr ? one->empty() : rest->empty(); }
  };

  Parser(const std::string& command, const std::string& summary) : app(summary, "quern " + command) {}

  CLI::App app;
  std::vector<Positional> positionals;
  std::vector<std::pair<std::string, std::string>> placeholders;  // option as CLI11 names it -> "--threads N"

  std::vector<std::string> OptionNames() const;
  std::string PositionalNames() const;
  absl::Status Unexpected() const;
  absl::Status Mismatch(const std::string& message) const;
};

std::vector<std::string> Arguments::Parser::OptionNames() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string Arguments::Parser::PositionalNames() const {
  std::string text;
  for (const Positional& positional : positionals) text += (text.empty() ? "" : " ") + positional.name;
  return text.empty() ? "options only" : text;
}

// CLI11 keeps what it could not place; an option among it explains the words behind it.
absl::Status Arguments::Parser::Unexpected() const {
  const std::vector<std::string> rest = app.remaining();
  const auto option =
      std::find_if(rest.begin(), rest.end(), [](const std::string& word) { return word.size() > 1 && word[0] == '-'; });
  if (option != rest.end())
    return CommandError(UnknownWord("option", option->substr(0, option->find('=')), OptionNames()));
  return CommandError("unexpected argument: " + (rest.empty() ? "" : rest[0]) + "; accepted: " + PositionalNames());
}

// CLI11's text begins with the option's name.
absl::Status Arguments::Parser::Mismatch(const std::string& message) const {
  const std::string word = message.substr(0, message.find_first_of(": "));
  const std::string name = word[0] == '-' ? word : "--" + word;  // it says "count" of a flag
  std::string accepted = name;
  for (const auto& [option, text] : placeholders) {
    if (option == name) accepted = text;
  }
  if (message.find("flag override") != std::string::npos)
    return CommandError("option takes no value: " + name + "; accepted: " + name);
  if (message.find("missing") != std::string::npos || message.find("At least") != std::string::npos) {
    return CommandError("option without a value: " + name + "; accepted: " + accepted);
  }
  return CommandError("option given more than once: " + name + "; accepted: " + accepted + ", once");
}

Arguments::Arguments(const std::string& command, const std::string& summary, const std::string& example)
    : parser_(std::make_unique<Parser>(command, summary)) {
  parser_->app.set_help_flag("-h,--help", "print this and stop");
  parser_->app.formatter(std::make_shared<HelpFormatter>());
  parser_->app.footer(example);
}

Arguments::~Arguments() = default;

void Arguments::Flag(const std::string& names, bool* target, const std::string& meaning) {
  CLI::Option* option = parser_->app.add_flag(names, *target, meaning);
  option->disable_flag_override()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Arguments::Value(const std::string& names, std::optional<std::string>* target, const std::string& placeholder,
                      const std::string& meaning) {
  CLI::Option* option = parser_->app.add_option_function<std::string>(
      names, [target](const std::string& text) { *target = text; }, meaning);
  option->option_text(placeholder);
  parser_->placeholders.emplace_back(option->get_name(), option->get_name() + " " + placeholder);
}

void Arguments::Values(const std::string& names, std::vector<std::string>* target, const std::string& placeholder,
                       const std::string& meaning) {
  CLI::Option* option = parser_->app.add_option(names, *target, meaning);
  option->allow_extra_args(false)->option_text(placeholder);
  parser_->placeholders.emplace_back(option->get_name(), option->get_name() + " " + placeholder);
}

void Arguments::Positional(const std::string& name, std::string* target, const std::string& meaning) {
  parser_->app.add_option(name, *target, meaning)->option_text(" ");
  parser_->positionals.push_back({name, target, nullptr});
}

void Arguments::PositionalRest(const std::string& name, std::vector<std::string>* target, const std::string& meaning) {
  parser_->app.add_option(name, *target, meaning)->option_text(" ");
  parser_->positionals.push_back({name, nullptr, target});
}

void Arguments::OptionalRest(const std::string& name, std::vector<std::string>* target, const std::string& meaning) {
  parser_->app.add_option("[" + name + "...]", *target, meaning)->option_text(" ");
}

absl::StatusOr<bool> Arguments::Parse(const std::vector<std::string>& words) {
  CLI::App& app = parser_->app;
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes the words last first
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::ExtrasError&) {
    return parser_->Unexpected();
  } catch (const CLI::Error& error) {
    // An unknown option shifts the words behind it, so that the mismatch CLI11 found first may only be its echo.
    return app.remaining().empty() ? parser_->Mismatch(error.what()) : parser_->Unexpected();
  }
  for (const Parser::Positional& positional : parser_->positionals) {
    if (positional.Missing()) {
      return CommandError("missing argument: " + positional.name + "; accepted: " + app.get_name() + " " +
                          parser_->PositionalNames());
    }
  }
  return true;
}

absl::StatusOr<uint64_t> ParseNumber(std::string_view what, std::string_view text, uint64_t min, uint64_t max) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < min || number > max) {
    return CommandError("bad value of " + std::string(what) + ": " + std::string(text) +
                        "; accepted: " + std::to_string(min) + " to " + std::to_string(max));
  }
  return number;
}

absl::StatusOr<uint64_t> ParseBytes(std::string_view what, std::string_view text) {
  const absl::Status bad = CommandError("bad value of " + std::string(what) + ": " + std::string(text) +
                                        "; accepted: bytes, as 4096, 1KiB, 512M, 2G or 1T");
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [suffix_begin, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || number == 0) return bad;
  std::string suffix(suffix_begin, end);
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (suffix.empty() || suffix == "B") return number;
  const size_t power = std::string_view("KMGT").find(suffix[0]);
  const std::string unit = suffix.substr(1);
  if (power == std::string_view::npos || !(unit.empty() || unit == "B" || unit == "IB")) return bad;
  const uint64_t factor = uint64_t{1} << (10 * (power + 1));
  if (number > std::numeric_limits<uint64_t>::max() / factor) return bad;
  return number * factor;
}

absl::StatusOr<std::pair<std::string, std::string>> ParseAssignment(std::string_view what, std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return CommandError("bad value of " + std::string(what) + ": " + std::string(text) + "; accepted: NAME=VALUE");
  }
  return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

}  // namespace quern::cli
