// SPDX-License-Identifier: Apache-2.0
// A compiled kernel that meets a decimal beyond 64 bits says so, and the generic kernel computes the piece. The next
// pieces then begin with the generic kernel, every sixteenth one excepted, so that wide decimals cost a sixteenth more
// than without a compiled kernel. Pieces are counted over batches, as a pipeline sends many batches of one piece.
//
// A row without a result is computed once more by itself, with all values kept, to find the part of the expression that
// failed:
//
//     row 17: add_checked($0,1:i32) of 2147483647 and 1: overflow of i32; accepted: rows for which the type has the
//     result
//
// The values are those of the call's own arguments. A call may be several instructions, and the one that failed may
// have values of other ones: cast($0,decimal128(5,2)) of a column with four digits behind the point divides by 100, and
// then refuses the quotient.
#include "runtime/map/map_run.h"

#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/decimal_lanes.h"
#include "runtime/blocks/string_functions.h"

namespace quern {
namespace {

bool HasFailed(const QuernLanes& lanes) { return (lanes.failed & 1) != 0; }
bool IsTrue(const QuernLanes& lanes) { return (lanes.valid & lanes.truth & 1) != 0; }

// The argument whose failure is that of instruction i; i itself if it is its own.
uint32_t Culprit(const QuernMapDescriptor& descriptor, const QuernLanes* values, uint32_t i) {
  const QuernMapInstruction& instruction = descriptor.instructions[i];
  const uint32_t* arguments = instruction.arguments;
  if (instruction.function == kSelectLanes || instruction.function == kStringSelectLanes) {
    if (HasFailed(values[arguments[0]])) return arguments[0];
    return IsTrue(values[arguments[0]]) ? arguments[1] : arguments[2];
  }
  for (uint32_t k = 0; k < NumArguments(instruction); ++k)
    if (HasFailed(values[arguments[k]])) return arguments[k];
  return i;
}

// Its first bytes, where it is long.
std::string ShownString(uint64_t address, uint64_t length, const ValueType& type) {
  constexpr uint64_t kMostBytes = 60;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(address);
  uint64_t shown = std::min(length, kMostBytes);
  while (shown < length && shown > kMostBytes - 4 && !BeginsCharacter(bytes[shown])) --shown;
  Literal literal;
  literal.bytes.assign(reinterpret_cast<const char*>(bytes), shown);
  return ConstantText(literal, type) + (shown < length ? ".." : "");
}

std::string ValueText(const QuernLanes& lanes, const ValueType& type) {
  if ((lanes.valid & 1) == 0) return "null";
  Literal literal;
  if (IsStringType(type.id)) return ShownString(lanes.low[0], lanes.high[0], type);
  if (type.id == TypeId::kBool) literal.number = lanes.truth & 1;
  else if (IsFloat(type.id)) literal.real = std::bit_cast<double>(lanes.low[0]);
  else if (IsDecimal(type.id)) literal.number = blocks::WideAt(lanes, 0);
  else if (IsInteger(type.id) && !IsSigned(type.id)) literal.number = lanes.low[0];
  else literal.number = static_cast<int64_t>(lanes.low[0]);
  return ConstantText(literal, type);
}

std::string ReasonText(const Expression& e, const QuernMapInstruction& instruction, const QuernLanes* divisor) {
  const bool divides = instruction.function == kDivideLanes || instruction.function == kModuloLanes ||
                       instruction.function == kFloatDivideLanes;
  if (divides && (divisor->low[0] << 1) == 0) return "division by 0";
  if (instruction.function == kDecimalDivideLanes && blocks::WideAt(*divisor, 0) == 0) return "division by 0";
  const bool is_logarithm = instruction.function == kFloatLnLanes || instruction.function == kFloatLog10Lanes;
  if (is_logarithm) return "logarithm of no number above 0";
  if (instruction.function == kSubstringLanes) return "length below 0";
  if (instruction.function == kConcatLanes || instruction.function == kReplaceLanes) return "string of 4 GiB or more";
  ValueType type = e.type;
  type.nullable = false;
  if (instruction.function >= kStringToIntegerLanes && instruction.function <= kStringToDateLanes)
    return "no " + PrintValueType(type) + " in the text";
  if (instruction.function == kFloatPowerLanes) return "no power that " + PrintValueType(type) + " holds";
  return "overflow of " + PrintValueType(type);
}

// How far the results were before a call, where a call that does not count has to be taken back: bytes of strings are
// appended, while all else is written in place.
class ResultsBefore {
 public:
  explicit ResultsBefore(const QuernMapArgs& args) {
    const std::span results(args.results, args.descriptor->num_results);
    if (std::none_of(results.begin(), results.end(), [](const QuernOutColumn& r) { return r.bytes != nullptr; }))
      return;
    for (const QuernOutColumn& result : results) before_.emplace_back(result.num_bytes, result.null_count);
  }
  void TakeBack(QuernMapArgs* args) const {
    for (size_t r = 0; r < before_.size(); ++r)
      std::tie(args->results[r].num_bytes, args->results[r].null_count) = before_[r];
  }

 private:
  std::vector<std::pair<uint64_t, uint64_t>> before_;
};

}  // namespace

absl::Status FailedRow(const MapDescriptor& map, const QuernMapEntryPoints& generic, const QuernMapArgs& args,
                       std::optional<uint64_t> first_row, StringReader* strings) {
  QuernMapDescriptor descriptor = *map.get();
  std::vector<QuernMapInstruction> instructions(descriptor.instructions,
                                                descriptor.instructions + descriptor.num_instructions);
  for (uint32_t i = 0; i < descriptor.num_instructions; ++i) instructions[i].place = i;
  descriptor.instructions = instructions.data();
  std::vector<QuernLanes> values(size_t{descriptor.num_instructions} * kPieceLanes);
  const uint64_t at = args.failed_row;
  const uint32_t row = args.selection != nullptr ? args.selection[at] : static_cast<uint32_t>(args.first + at);
  QuernMapArgs one = args;
  one.descriptor = &descriptor;
  one.selection = &row;
  one.num_rows = 1;
  one.places = values.data();
  const StringScratch::Use use(strings->scratch());
  QUERN_RETURN_IF_ERROR(strings->Read(&one));
  generic.rows(&one);

  std::vector<QuernLanes> lanes;  // of each instruction
  for (uint32_t i = 0; i < descriptor.num_instructions; ++i) lanes.push_back(values[size_t{i} * kPieceLanes]);
  const std::string begin = first_row.has_value() ? "row " + std::to_string(*first_row + row) + ": " : "";
  for (const QuernMapInstruction& store : instructions) {
    if (store.function != kStoreLanes || !HasFailed(lanes[store.arguments[0]])) continue;
    uint32_t failed = store.arguments[0];
    for (uint32_t next = Culprit(descriptor, lanes.data(), failed); next != failed;
         next = Culprit(descriptor, lanes.data(), failed))
      failed = next;
    const Expression& e = map.SourceOf(failed);
    std::string text = begin + PrintExpression(e);
    const QuernMapInstruction& instruction = instructions[failed];
    for (const Expression& part : e.arguments) {
      text += &part == e.arguments.data() ? " of " : " and ";
      const std::optional<uint32_t> value = map.ValueOf(part);
      if (part.kind == ExpressionKind::kConstant) text += ConstantText(part.value, part.type);
      else text += value.has_value() ? ValueText(lanes[*value], part.type) : PrintExpression(part);
    }
    const QuernLanes* divisor = NumArguments(instruction) == 2 ? &lanes[instruction.arguments[1]] : nullptr;
    return absl::OutOfRangeError(text + ": " + ReasonText(e, instruction, divisor) +
                                 "; accepted: rows for which the type has the result");
  }
  return Internal(begin + "a compiled kernel failed where the generic one does not; accepted: none");
}

absl::StatusOr<MapEnd> RunMap(const QuernMapEntryPoints& now, const QuernMapEntryPoints& generic, StringReader* strings,
                              QuernMapArgs* args, uint64_t* wide_calls) {
  QUERN_RETURN_IF_ERROR(strings->Read(args));
  const RefusedCalls refused;
  const StringScratch::Use use(strings->scratch());
  const ResultsBefore before(*args);
  const uint64_t calls_since_try = *wide_calls % thresholds::kWideRetryCalls;
  int32_t code = calls_since_try == 0 ? now.rows(args) : kQuernTooWide;
  const bool is_wide = code == kQuernTooWide;
  *wide_calls = is_wide ? calls_since_try + 1 : 0;
  if (is_wide) {
    before.TakeBack(args);
    code = generic.rows(args);
  }
  QUERN_RETURN_IF_ERROR(strings->scratch()->status());
  QUERN_RETURN_IF_ERROR(refused.status());
  if (code == kQuernRowFailed) return MapEnd::kRowFailed;
  if (!strings->scratch()->is_too_large()) return MapEnd::kDone;
  before.TakeBack(args);
  return MapEnd::kTooLarge;
}

}  // namespace quern
