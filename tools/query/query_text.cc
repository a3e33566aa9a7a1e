// SPDX-License-Identifier: Apache-2.0
// Lines become steps, steps are read by the parsers of the command line's options:
//
//     "  filter x > 5   -- few"      filter, "x > 5"
//     "    and y < 3"                the same step: "x > 5 and y < 3"
//
// A filter's text is a condition over columns where it can be, since filters test those without computing anything.
// Otherwise its terms are split at `and`; each is a condition where it can be, or an expression:
//
//     price * qty > 100 and name like 'a%'     condition: name like 'a%'; computed: price * qty > 100
#include "tools/query/query_text.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "tools/frontend/computed_key.h"
#include "tools/frontend/condition_text.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/list_parser.h"

namespace quern::query {
namespace {

constexpr const char* kOnForm = "SIDE = SIDE [and SIDE < SIDE ..], each a column or an expression, with = < <= > >= !=";
constexpr const char* kSteps = "scan, filter, select, join, aggregate, sort, limit";

struct Line {
  size_t number;
  std::string_view text;  // without comment and blanks around it
};

bool IsBlank(char c) { return cli::IsBlank(c) || c == '\r'; }

// Up to the comment; quotes of either kind protect what is in them, up to the end of the line.
std::string_view WithoutComment(std::string_view line) {
  char quote = '\0';
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#' || (c == '-' && line.substr(i, 2) == "--")) {
      return line.substr(0, i);
    }
  }
  return line;
}

std::vector<Line> LinesOf(std::string_view text) {
  std::vector<Line> lines;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = cli::Trimmed(WithoutComment(text.substr(0, end)));
    if (!line.empty()) lines.push_back({number, line});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string_view FirstWord(std::string_view text) {
  const auto end = std::find_if(text.begin(), text.end(), IsBlank);
  return text.substr(0, static_cast<size_t>(end - text.begin()));
}

// The step that a line begins with; nullopt: it continues the one before.
std::optional<StepKind> KindOf(std::string_view line) {
  const std::string word = cli::LowerCase(std::string(FirstWord(line)));
  if (word == "scan") return StepKind::kScan;
  if (word == "filter") return StepKind::kFilter;
  if (word == "select") return StepKind::kSelect;
  if (word == "join" || word.substr(0, 5) == "join.") return StepKind::kJoin;
  if (word == "aggregate") return StepKind::kAggregate;
  if (word == "sort") return StepKind::kSort;
  if (word == "limit") return StepKind::kLimit;
  return std::nullopt;
}

// ---- parts of steps ----

// Finds the last of a step's words that stands outside quotes and parentheses; npos if there is none.
size_t FindWord(std::string_view text, std::string_view word) {
  size_t found = std::string_view::npos;
  char quote = '\0';
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
      continue;
    }
    if (c == '"' || c == '\'') quote = c;
    if (c == '(') ++depth;
    if (c == ')') --depth;
    const bool begins = i == 0 || IsBlank(text[i - 1]) || text[i - 1] == ')';
    const bool ends = i + word.size() >= text.size() || IsBlank(text[i + word.size()]);
    if (depth == 0 && begins && ends && cli::LowerCase(std::string(text.substr(i, word.size()))) == word) found = i;
  }
  return found;
}

absl::StatusOr<uint64_t> NumberOf(std::string_view what, std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return Wrong(what, text, "a whole number from 0 to 18446744073709551615");
}

// "10 offset 5"
absl::Status ParseLimit(std::string_view text, QueryStep* step) {
  const size_t offset = FindWord(text, "offset");
  QUERN_ASSIGN_OR_RETURN(step->limit, NumberOf("limit", cli::Trimmed(text.substr(0, offset))));
  if (step->limit == 0) return Wrong("limit", "0", "a whole number above 0");
  if (offset == std::string_view::npos) return absl::OkStatus();
  const std::string_view given = cli::Trimmed(text.substr(offset + 6));
  QUERN_ASSIGN_OR_RETURN(step->offset, NumberOf("offset", given));
  if (step->offset > UINT64_MAX - step->limit) return Wrong("limit and offset", text, "a sum below 2^64");
  return absl::OkStatus();
}

absl::StatusOr<std::string> NameOf(std::string_view what, std::string_view text) {
  QUERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, cli::ParsePlainNames(what, text));
  if (names.size() != 1) return Wrong(what, text, "one name");
  return names.front();
}

// ---- filter ----

// A term that may be read in two ways is an expression: odd names stand in double quotes here.
absl::Status ParseFilter(std::string_view text, QueryStep* step) {
  QUERN_ASSIGN_OR_RETURN(cli::ConditionText condition, cli::ParseCondition("filter", text));
  for (cli::ConditionTerm& term : condition.terms) {
    if (term.expression.has_value()) step->expressions.push_back(*std::move(term.expression));
    else step->conditions.push_back(*std::move(term.comparison));
  }
  return absl::OkStatus();
}

// ---- join ----

absl::StatusOr<JoinKind> JoinKindOf(std::string_view word) {
  if (word.size() <= 5) return JoinKind::kInner;
  const std::string kind = cli::LowerCase(std::string(word.substr(5)));
  Names accepted;
  for (const JoinKindRow& row : AllJoinKinds()) {
    if (row.text == kind) return row.id;
    accepted.push_back(row.text);
  }
  return Unknown("kind of join", kind, accepted);
}

absl::Status ParseJoin(std::string_view line, std::string_view text, QueryStep* step) {
  QUERN_ASSIGN_OR_RETURN(step->join, JoinKindOf(FirstWord(line)));
  const size_t on = FindWord(text, "on");
  if (on == std::string_view::npos) return Wrong("join without on", text, "join NAME on SIDE = SIDE [and ..]");
  QUERN_ASSIGN_OR_RETURN(step->relation, NameOf("join", cli::Trimmed(text.substr(0, on))));
  cli::ListParser parser("on", kOnForm, cli::Trimmed(text.substr(on + 2)), cli::kEndsInTests);
  do {
    QUERN_ASSIGN_OR_RETURN(cli::JoinTermText term, cli::ParseJoinTerm("on", &parser, {"and"}));
    if (!term.collation.empty() && term.op != Comparison::kEqual)
      return Wrong("collation of a comparison", term.collation, "collations of keys, which are equal");
    step->on.push_back(std::move(term));
  } while (parser.ReadWord("and") || parser.Take(','));
  return parser.AtEnd() ? absl::OkStatus() : parser.Bad();
}

// ---- aggregate, sort ----

absl::Status ParseAggregate(std::string_view text, QueryStep* step) {
  const size_t by = FindWord(text, "by");
  const std::string_view calls = cli::Trimmed(text.substr(0, by));
  if (!calls.empty()) {
    QUERN_ASSIGN_OR_RETURN(step->aggregates, cli::ParseAggregates("aggregate", calls));
  }
  if (by != std::string_view::npos) {
    QUERN_ASSIGN_OR_RETURN(step->keys, cli::ParseComputedKeys("by", cli::Trimmed(text.substr(by + 2))));
  }
  if (step->keys.empty() && step->aggregates.empty())
    return Wrong("aggregation of nothing", "aggregate", "aggregate [CALLS] [by KEYS]");
  return absl::OkStatus();
}

absl::Status ParseSort(std::string_view text, QueryStep* step) {
  const size_t limit = FindWord(text, "limit");
  if (limit != std::string_view::npos) QUERN_RETURN_IF_ERROR(ParseLimit(cli::Trimmed(text.substr(limit + 5)), step));
  QUERN_ASSIGN_OR_RETURN(step->sort_keys, cli::ParseSortKeys("sort", cli::Trimmed(text.substr(0, limit))));
  return absl::OkStatus();
}

absl::StatusOr<QueryStep> ParseStep(StepKind kind, size_t number, std::string_view line) {
  QueryStep step;
  step.kind = kind;
  step.line = number;
  step.text = cli::WithNormalisedBlanks(line);
  const std::string_view text = cli::Trimmed(line.substr(FirstWord(line).size()));
  absl::Status status;
  switch (kind) {
    case StepKind::kScan: {
      QUERN_ASSIGN_OR_RETURN(step.relation, NameOf("scan", text));
      break;
    }
    case StepKind::kFilter: status = ParseFilter(text, &step); break;
    case StepKind::kSelect: {
      QUERN_ASSIGN_OR_RETURN(step.select, cli::ParseSelect("select", text));
      break;
    }
    case StepKind::kJoin: status = ParseJoin(line, text, &step); break;
    case StepKind::kAggregate: status = ParseAggregate(text, &step); break;
    case StepKind::kSort: status = ParseSort(text, &step); break;
    case StepKind::kLimit: status = ParseLimit(text, &step); break;
  }
  if (!status.ok()) return status;
  return step;
}

// ---- relations ----

// Reads the lines one after the other.
class Reading {
 public:
  absl::Status Add(const Line& line);
  absl::StatusOr<QueryText> Finish();

 private:
  absl::Status EndStep();
  absl::Status BeginRelation(const Line& line);

  QueryText query_;
  std::string step_;  // the lines of the step so far
  size_t step_line_ = 0;
};

absl::Status Reading::EndStep() {
  if (step_.empty()) return absl::OkStatus();
  absl::StatusOr<QueryStep> step = ParseStep(*KindOf(step_), step_line_, step_);
  if (!step.ok()) return AtLine(step_line_, step.status());
  step_.clear();
  if (query_.relations.empty()) query_.relations.push_back({"result", step->line, {}});
  std::vector<QueryStep>& steps = query_.relations.back().steps;
  if (steps.empty() != (step->kind == StepKind::kScan)) {
    const bool is_first = steps.empty();
    return AtLine(step->line, Wrong(is_first ? "first step of a relation" : "step within a relation", step->text,
                                    is_first ? "scan NAME" : "filter, select, join, aggregate, sort, limit"));
  }
  steps.push_back(*std::move(step));
  return absl::OkStatus();
}

absl::Status Reading::BeginRelation(const Line& line) {
  absl::StatusOr<std::string> name = NameOf("relation", cli::Trimmed(line.text.substr(0, line.text.size() - 1)));
  if (!name.ok()) return AtLine(line.number, name.status());
  for (const QueryRelation& relation : query_.relations)
    if (relation.name == *name)
      return AtLine(line.number, Wrong("two relations of one name", cli::QuoteName(*name), "different names"));
  query_.relations.push_back({*std::move(name), line.number, {}});
  return absl::OkStatus();
}

absl::Status Reading::Add(const Line& line) {
  const bool is_step = KindOf(line.text).has_value();
  if (is_step || line.text.back() == ':') QUERN_RETURN_IF_ERROR(EndStep());
  if (is_step) {
    step_ = line.text;
    step_line_ = line.number;
    return absl::OkStatus();
  }
  if (line.text.back() == ':') return BeginRelation(line);
  if (step_.empty())
    return AtLine(line.number, Wrong("step", line.text, std::string(kSteps) + ", or NAME: for a relation"));
  step_ += " " + std::string(line.text);
  return absl::OkStatus();
}

absl::StatusOr<QueryText> Reading::Finish() {
  QUERN_RETURN_IF_ERROR(EndStep());
  if (query_.relations.empty()) return Wrong("query", "no steps", "scan NAME, then other steps, one a line");
  for (const QueryRelation& relation : query_.relations)
    if (relation.steps.empty())
      return AtLine(relation.line, Wrong("relation without steps", cli::QuoteName(relation.name), "scan NAME, .."));
  return std::move(query_);
}

}  // namespace

absl::Status AtLine(size_t line, const absl::Status& status) {
  // A step of a relation that this one names is wrong: its own line is the one.
  if (std::string(status.message()).starts_with("line ")) return status;
  return absl::Status(status.code(), "line " + std::to_string(line) + ": " + std::string(status.message()));
}

absl::StatusOr<QueryText> QueryText::Parse(std::string_view text) {
  Reading reading;
  for (const Line& line : LinesOf(text)) QUERN_RETURN_IF_ERROR(reading.Add(line));
  return reading.Finish();
}

}  // namespace quern::query
