// SPDX-License-Identifier: Apache-2.0
// What maps take from columns of strings: the truth of a condition, which is that of a filter, or a length, of each
// row. They are computed before a map's kernel runs, into columns that it loads like others (map_abi.h). Beside them
// are the constants of functions of strings: bytes, and patterns of `like`.
#ifndef QUERN_RUNTIME_MAP_STRING_VALUES_H_
#define QUERN_RUNTIME_MAP_STRING_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/abi/filter_abi.h"
#include "runtime/abi/map_abi.h"
#include "runtime/base/memory.h"
#include "runtime/blocks/filter_leaves.h"
#include "runtime/blocks/string_scratch.h"
#include "runtime/collation/like_pattern.h"
#include "runtime/filter/filter_descriptor.h"
#include "runtime/spec/expression.h"

namespace quern {

enum class StringFunction : uint8_t { kCondition, kOctetLength, kCharLength, kConstant, kPattern };

struct StringValue {
  StringFunction function = StringFunction::kCondition;
  std::vector<uint32_t> columns;                           // of the map, in the order in which the condition has them
  std::vector<ColumnType> types;                           // theirs
  std::shared_ptr<const FilterDescriptor> condition = {};  // kCondition
  std::string bytes;                                       // kConstant; kPattern: its text, as PrintStringValue has it
  std::shared_ptr<const LikePattern> pattern = {};         // kPattern

  // Whether it is null where one of its columns is.
  bool nullable() const;
  bool operator==(const StringValue& other) const;
};

// What a function computes of strings: equal, less, less_equal, like, starts_with, ends_with, contains, is_null,
// octet_length, char_length. arguments: no constant among them is null.
StringValue MakeStringValue(ExpressionFunction function, std::span<const Expression> arguments);
// The bytes of a constant.
StringValue MakeStringConstant(std::string bytes);
// The pattern of like, starts_with, ends_with or contains, for strings that are no column's.
StringValue MakeStringPattern(ExpressionFunction function, std::span<const Expression> arguments);
// One condition for or(equal(column,constant),equal(column,constant),..); nullopt for any other `or`.
std::optional<StringValue> MakeStringList(const Expression& any);

// "s0      $1       utf8 = 'MAIL'", as a line of `quern dump layout`.
std::string PrintStringValue(size_t number, const StringValue& value);

// Computes them for the rows of a batch. *Threads*: one.
class StringReader {
 public:
  // filter: evaluates conditions. *Ownership*: `values` must outlive it.
  StringReader(const std::vector<StringValue>& values, const QuernFilterEntryPoints& filter)
      : values_(values), filter_(filter) {}

  // The memory of strings that the kernel computes. *Lifetime*: that of the reader, after SetBatch.
  StringScratch* scratch() { return &scratch_; }

  // Starts on a batch. *Errors*: ResourceExhausted.
  absl::Status SetBatch(const std::shared_ptr<MemoryBudget>& budget);
  // Computes the values of the rows of `args`, up to kMaxBatchRows, and sets args->string_values to them; they are
  // valid until the next call. *Errors*: ResourceExhausted for a collation's keys.
  absl::Status Read(QuernMapArgs* args);

 private:
  void ReadOne(size_t number, const QuernMapArgs& args, const QuernColumn& to);

  const std::vector<StringValue>& values_;
  const QuernFilterEntryPoints filter_;
  HugeBuffer buffer_;
  StringScratch scratch_;
  std::vector<QuernColumn> columns_;            // by value
  std::vector<FilterMemo> memos_;               // likewise; of the batch
  std::vector<QuernColumn> condition_columns_;  // of the condition that is read, from the first row on
};

}  // namespace quern

#endif  // QUERN_RUNTIME_MAP_STRING_VALUES_H_
