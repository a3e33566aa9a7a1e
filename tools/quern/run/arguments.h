// SPDX-License-Identifier: Apache-2.0
// The command line of one command: options and positionals, parsed by CLI11 under our rules for errors and help.
#ifndef QUERN_TOOLS_RUN_ARGUMENTS_H_
#define QUERN_TOOLS_RUN_ARGUMENTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/status.h"

namespace quern::cli {

// The options and positionals of a command. The targets are written by Parse and must outlive it.
class Arguments {
 public:
  // `example` is a command line that --help shows.
  Arguments(const std::string& command, const std::string& summary, const std::string& example);
  ~Arguments();

  void Flag(const std::string& names, bool* target, const std::string& meaning);
  void Value(const std::string& names, std::optional<std::string>* target, const std::string& placeholder,
             const std::string& meaning);
  // May be given several times.
  void Values(const std::string& names, std::vector<std::string>* target, const std::string& placeholder,
              const std::string& meaning);
  void Positional(const std::string& name, std::string* target, const std::string& meaning);
  // Takes all remaining words, at least one.
  void PositionalRest(const std::string& name, std::vector<std::string>* target, const std::string& meaning);
  // The same, or none.
  void OptionalRest(const std::string& name, std::vector<std::string>* target, const std::string& meaning);

  // Returns false if --help was given and printed: nothing more is to be done. *Errors*: those of the command, in our
  // form.
  absl::StatusOr<bool> Parse(const std::vector<std::string>& words);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

// The lists of an option that may be given several times, as one. `parse` takes the option and the text of one list.
template <class Item>
absl::Status ParseLists(std::string_view option, const std::vector<std::string>& texts,
                        absl::StatusOr<std::vector<Item>> (*parse)(std::string_view, std::string_view),
                        std::vector<Item>* items) {
  for (const std::string& text : texts) {
    QUERN_ASSIGN_OR_RETURN(const std::vector<Item> parsed, parse(option, text));
    items->insert(items->end(), parsed.begin(), parsed.end());
  }
  return absl::OkStatus();
}

// A whole number with bounds; `what` names the option or variable. "too large: ..." and "no number" are one error, that
// names the bounds.
absl::StatusOr<uint64_t> ParseNumber(std::string_view what, std::string_view text, uint64_t min, uint64_t max);

// "512M", "2G", "1KiB", "4096": bytes; K, M, G, T are powers of 1024 with or without "iB" or "B".
absl::StatusOr<uint64_t> ParseBytes(std::string_view what, std::string_view text);

// "name=value".
absl::StatusOr<std::pair<std::string, std::string>> ParseAssignment(std::string_view what, std::string_view text);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_RUN_ARGUMENTS_H_
