// SPDX-License-Identifier: Apache-2.0
// Translates a filter's condition to the descriptor for which kernels are specialised: leaves, and the mask operations
// that combine them.
#ifndef QUERN_RUNTIME_FILTER_FILTER_DESCRIPTOR_H_
#define QUERN_RUNTIME_FILTER_FILTER_DESCRIPTOR_H_

#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/filter_abi.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/filter_set.h"
#include "runtime/collation/like_pattern.h"
#include "runtime/spec/filter_spec.h"

namespace quern {

// IN lists of up to this many values become as many comparisons; longer ones become a set.
constexpr size_t kMaxUnrolledValues = thresholds::kUnrolledInValues;

class FilterDescriptor {
 public:
  explicit FilterDescriptor(const FilterSpec& spec);
  FilterDescriptor(const FilterDescriptor&) = delete;
  FilterDescriptor& operator=(const FilterDescriptor&) = delete;

  const QuernFilterDescriptor* get() const { return &descriptor_; }
  const FilterSpec& spec() const { return spec_; }
  // The types of the batch's columns.
  const std::vector<ColumnType>& columns() const { return columns_; }
  // Rounded up to a multiple of 64.
  void set_batch_rows(uint32_t rows) { descriptor_.batch_rows = (rows + 63) / 64 * 64; }
  void set_prefetches(bool prefetches) { descriptor_.prefetches = prefetches; }
  void set_input_rows(uint32_t rows) { descriptor_.input_rows = rows; }

  // The mask operations as a table, as `quern dump layout` prints it.
  std::string Print() const;

 private:
  struct Node;

  Node MakeNode(const Predicate& condition, bool negated);
  Node MakeLeafNode(const Predicate& condition, bool negated);
  Node Compare(const ColumnType& type, uint32_t column, Comparison op, const Literal& value);
  Node Between(const Predicate& condition, uint32_t column, bool negated);
  Node In(const Predicate& condition, uint32_t column, bool negated);
  Node CompareColumns(const Predicate& condition, bool negated);
  Node Like(const Predicate& condition, uint32_t column, bool negated);
  Node IsNull(const Predicate& condition, uint32_t column, bool negated);
  Node Range(const ColumnType& type, uint32_t column, __int128 low, __int128 high, bool negated);
  Node CompareStrings(const ColumnType& type, uint32_t column, Comparison op, const std::string& text);

  QuernFilterLeaf NewLeaf(FilterLeafKind kind, const ColumnType& type, uint32_t column) const;
  Node AddLeaf(QuernFilterLeaf leaf, std::string constants, std::string text);
  void SetEqual(const ColumnType& type, const std::string& text, QuernFilterLeaf* leaf, std::string* constants) const;
  uint32_t AddColumn(const ColumnType& type);

  int CostOf(const Node& node) const;
  void SortByCost(Node* node) const;
  void EmitNode(const Node& node, uint32_t mask);
  void EmitLeaf(uint32_t leaf, uint32_t mask);
  void EmitOr(const Node& node, uint32_t mask);
  void AddUpdate(QuernMaskOperation step);
  std::string StepText(const QuernMaskOperation& step) const;

  FilterSpec spec_;
  std::vector<ColumnType> columns_;
  std::vector<QuernFilterLeaf> leaves_;
  std::vector<std::string> texts_;                       // by leaf, for Print
  std::vector<std::unique_ptr<std::string>> constants_;  // by leaf
  std::vector<std::unique_ptr<const LikePattern>> patterns_;
  std::vector<std::unique_ptr<const FilterSet>> sets_;
  std::vector<QuernMaskOperation> steps_;
  QuernFilterDescriptor descriptor_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_FILTER_FILTER_DESCRIPTOR_H_
