// SPDX-License-Identifier: Apache-2.0
// The text is split at each `|`, and a step from its columns at the last `[`, neither of which counts between quotes.
#include "runtime/pipeline/pipeline_spec.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/pipeline/added_columns.h"
#include "runtime/spec/condition.h"
#include "runtime/spec/spec_fields.h"

namespace quern {
namespace {

constexpr std::string_view kPipeline = "pipeline", kIn = "in=", kBlanks = " \t\r\n";
constexpr const char* kSteps = "filter, map, probe, reduce";
constexpr const char* kEnds = "aggregate, sort, build, emit";

std::string_view Trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::string_view FirstWord(std::string_view text) { return text.substr(0, text.find_first_of(kBlanks)); }
std::string_view Behind(std::string_view word, std::string_view text) { return Trimmed(text.substr(word.size())); }

// Calls f(position) for each byte that stands outside quotes; a quote within quotes is doubled.
template <class F>
void ForEachOutsideQuotes(std::string_view text, const F& f) {
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'') is_quoted = !is_quoted;
    else if (!is_quoted) f(i);
  }
}

std::vector<std::string_view> SplitSteps(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  ForEachOutsideQuotes(text, [&](size_t i) {
    if (text[i] != '|') return;
    parts.push_back(Trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  });
  parts.push_back(Trimmed(text.substr(begin)));
  return parts;
}

// ---- columns behind a spec: [$0,$1; $2] ----

constexpr const char* kColumnForm = "[$K,$K,..; $P,$P,..] behind the spec, keys first";

absl::StatusOr<std::vector<uint32_t>> ParseNumbers(std::string_view text) {
  std::vector<uint32_t> numbers;
  text = Trimmed(text);
  if (text.empty()) return numbers;
  for (std::string_view one : Split(text, ',')) {
    one = Trimmed(one);
    uint32_t number = 0;
    if (!one.starts_with('$') || !ReadNumber(one.substr(1), &number))
      return Wrong("column of a pipeline", one.empty() ? text : one, "$0, $1, ..");
    numbers.push_back(number);
  }
  return numbers;
}

struct StepText {
  std::string_view spec;
  StepColumns columns;
};

absl::StatusOr<StepText> SplitColumns(std::string_view text) {
  size_t open = std::string_view::npos;
  ForEachOutsideQuotes(text, [&](size_t i) { open = text[i] == '[' ? i : open; });
  if (open == std::string_view::npos || !text.ends_with(']'))
    return Wrong("step of a pipeline without its columns", text.empty() ? "nothing" : text, kColumnForm);
  StepText step{Trimmed(text.substr(0, open)), {}};
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  const std::vector<std::string_view> lists = Split(inside, ';');
  if (lists.size() > 2) return Wrong("columns of a pipeline's step", text.substr(open), kColumnForm);
  QUERN_ASSIGN_OR_RETURN(step.columns.keys, ParseNumbers(lists[0]));
  if (lists.size() == 1) return step;
  QUERN_ASSIGN_OR_RETURN(step.columns.payload, ParseNumbers(lists[1]));
  return step;
}

std::string PrintNumbers(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (const uint32_t number : numbers) text += (text.empty() ? "$" : ", $") + std::to_string(number);
  return text;
}

std::string PrintColumns(const StepColumns& columns) {
  std::string text = " [" + PrintNumbers(columns.keys);
  if (!columns.payload.empty()) text += "; " + PrintNumbers(columns.payload);
  return text + "]";
}

// ---- steps ----

absl::StatusOr<std::optional<PipelineStepSpec>> ParseStep(const StepText& text) {
  const std::string_view word = FirstWord(text.spec);
  std::optional<PipelineStepSpec> step = PipelineStepSpec{{}, text.columns};
  if (word == "filter" || word == "map") {
    QUERN_ASSIGN_OR_RETURN(step->spec, ParseSpec(text.spec));
    return step;
  }
  if (word != "probe" && word != "reduce") return std::nullopt;
  QUERN_ASSIGN_OR_RETURN(step->spec, ParseSpecOf<JoinSpec>(Behind(word, text.spec)));
  step->is_reduction = word == "reduce";
  return step;
}

absl::Status ParseEnd(const StepText& text, PipelineSpec* spec) {
  const std::string_view word = FirstWord(text.spec);
  spec->end_columns = text.columns;
  if (word == "emit") {
    if (spec->steps.empty()) return Wrong("emit of a pipeline without steps", text.spec, kSteps);
    if (!Behind(word, text.spec).empty() || !text.columns.payload.empty())
      return Wrong("emit with a spec or a payload", text.spec, "emit [$0,$1,..]");
    return absl::OkStatus();
  }
  if (word == "build") {
    QUERN_ASSIGN_OR_RETURN(spec->end, ParseSpecOf<JoinSpec>(Behind(word, text.spec)));
    return absl::OkStatus();
  }
  if (word == "aggregate" || word == "sort") {
    QUERN_ASSIGN_OR_RETURN(spec->end, ParseSpec(text.spec));
    return absl::OkStatus();
  }
  if (word == "filter" || word == "map" || word == "probe" || word == "reduce")
    return Wrong("last step of a pipeline", word, kEnds);
  return Wrong("step of a pipeline", word.empty() ? text.spec : word, std::string(kSteps) + "; at its end " + kEnds);
}

absl::Status ParseSource(std::string_view text, PipelineSpec* spec) {
  text = Behind(kPipeline, text);
  if (text.empty()) return absl::OkStatus();
  if (!text.starts_with(kIn) || text.find_first_of(kBlanks) != std::string_view::npos)
    return Wrong("columns of a pipeline", text, "in=TYPE,TYPE,..");
  QUERN_ASSIGN_OR_RETURN(spec->source, ParsePipelineColumns(text.substr(kIn.size())));
  return absl::OkStatus();
}

}  // namespace

bool IsPipelineText(std::string_view text) { return FirstWord(Trimmed(text)) == kPipeline; }

absl::StatusOr<PipelineSpec> ParsePipeline(std::string_view text) {
  if (text.size() > kMaxPipelineTextBytes) {
    return Wrong("pipeline spec too long", std::to_string(text.size()) + " bytes",
                 "up to " + std::to_string(kMaxPipelineTextBytes));
  }
  const std::vector<std::string_view> parts = SplitSteps(text);
  if (FirstWord(parts.front()) != kPipeline) return Wrong("pipeline spec", parts.front(), "pipeline in=.. | STEP | ..");
  PipelineSpec spec;
  QUERN_RETURN_IF_ERROR(ParseSource(parts.front(), &spec));
  if (parts.size() == 1 || parts.back().empty()) return Wrong("end of a pipeline", "nothing", kEnds);
  QUERN_RETURN_IF_ERROR(CheckCount("steps of a pipeline", parts.size() - 1, 1, kMaxPipelineSteps));
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    QUERN_ASSIGN_OR_RETURN(const StepText step_text, SplitColumns(parts[i]));
    QUERN_ASSIGN_OR_RETURN(std::optional<PipelineStepSpec> step, ParseStep(step_text));
    if (!step.has_value()) {
      const std::string_view word = FirstWord(step_text.spec);
      return Wrong("step of a pipeline in front of others", word.empty() ? parts[i] : word, kSteps);
    }
    spec.steps.push_back(*std::move(step));
  }
  QUERN_ASSIGN_OR_RETURN(const StepText end_text, SplitColumns(parts.back()));
  QUERN_RETURN_IF_ERROR(ParseEnd(end_text, &spec));
  QUERN_RETURN_IF_ERROR(ColumnsOfPipeline(spec).status());
  return spec;
}

std::string PrintPipelineStep(const PipelineSpec& spec, size_t step) {
  if (step == spec.steps.size()) {
    const std::string columns = PrintColumns(spec.end_columns);
    if (!spec.end.has_value()) return "emit" + columns;
    return (Is<JoinSpec>(*spec.end) ? "build " : "") + PrintSpec(*spec.end) + columns;
  }
  const PipelineStepSpec& of = spec.steps[step];
  const char* const word = !Is<JoinSpec>(of.spec) ? "" : of.is_reduction ? "reduce " : "probe ";
  return word + PrintSpec(of.spec) + PrintColumns(of.columns);
}

std::string PrintPipeline(const PipelineSpec& spec) {
  std::string text(kPipeline);
  for (size_t i = 0; i < spec.source.size(); ++i) text += (i == 0 ? " in=" : ",") + PrintPipelineColumn(spec.source[i]);
  for (size_t i = 0; i <= spec.steps.size(); ++i) text += " | " + PrintPipelineStep(spec, i);
  return text;
}

absl::StatusOr<std::vector<std::vector<PipelineColumn>>> ColumnsOfPipeline(const PipelineSpec& spec) {
  QUERN_RETURN_IF_ERROR(CheckCount("columns of a pipeline", spec.source.size(), 0, kMaxPipelineColumns));
  std::vector<std::vector<PipelineColumn>> columns = {spec.source};
  for (size_t i = 0; i < spec.steps.size(); ++i) {
    const PipelineStepSpec& step = spec.steps[i];
    std::vector<ColumnType> filtered;
    StepTypes types{.is_reduction = step.is_reduction};
    if (const auto* filter = std::get_if<FilterSpec>(&step.spec)) filtered = ColumnsOf(filter->where);
    if (Is<FilterSpec>(step.spec)) types.filter = &filtered;
    types.map = std::get_if<MapSpec>(&step.spec);
    types.join = std::get_if<JoinSpec>(&step.spec);
    columns.push_back(columns.back());
    if (!Is<JoinSpec>(step.spec)) {
      QUERN_RETURN_IF_ERROR(
          CheckColumns(step.columns.payload, {}, columns.back(), "payload of step " + std::to_string(i)));
    }
    QUERN_RETURN_IF_ERROR(PassStep(types, step.columns, i, &columns.back()));
  }
  if (!spec.end.has_value()) {
    std::vector<ColumnType> emitted;
    QUERN_RETURN_IF_ERROR(TakeTypes(spec.end_columns.keys, columns.back(), "columns that are emitted", &emitted));
    return columns;
  }
  const EndTypes end = EndTypesOf(*spec.end);
  QUERN_RETURN_IF_ERROR(CheckEndColumns(spec.end_columns, end.keys, end.payload, end.values, columns.back(), "end"));
  return columns;
}

EndTypes EndTypesOf(const KernelSpec& end) {
  EndTypes types;
  for (const KeySpec& key : KeysOf(end)) types.keys.push_back(key.type);
  if (const auto* join = std::get_if<JoinSpec>(&end)) {
    types.payload = join->build;
    for (const ResidualSpec& residual : join->residual) types.payload.push_back(residual.type);
    types.reads_row_ids = join->host_residual;
  } else if (const auto* aggregation = std::get_if<AggregationSpec>(&end)) {
    types.payload = AggregateInputTypes(*aggregation);
    types.values = aggregation->columns;
    types.only_added = AddedColumnsOf(*aggregation);
  } else if (const auto* sort = std::get_if<SortSpec>(&end)) {
    types.payload = sort->payload;
    types.reads_row_ids = sort->stable;
  }
  return types;
}

}  // namespace quern
