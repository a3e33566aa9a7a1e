// SPDX-License-Identifier: Apache-2.0
// What tests of the Arrow calls share: refusals, which take the array over too, and exported arrays as text.
#ifndef QUERN_TEST_HOSTS_ARROW_RESULTS_H_
#define QUERN_TEST_HOSTS_ARROW_RESULTS_H_

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "test/hosts/arrow_arrays.h"
#include "test/hosts/host_tables.h"

namespace quern_test {

// What a call answers that refuses an array: it must take the array over all the same.
template <class Call>
auto RefusalOf(TestArrayPtr batch, Call&& call) {
  auto status = call(&batch->array);
  EXPECT_EQ(batch->times_released, 1);
  EXPECT_EQ(batch->array.release, nullptr);
  return status;
}

inline quern_column AsResultColumn(const ArrowArray& child, char kind) {
  quern_column column = {};
  column.validity = static_cast<const uint8_t*>(child.buffers[0]);
  column.values = child.buffers[kind == 's' ? 2 : 1];
  if (kind == 's') column.offsets = child.buffers[1];
  return column;
}

// Rows of an exported struct array, which is released; the children are moved out first, as a consumer may.
inline Lines TakeLines(ArrowArray* result, std::string_view kinds) {
  EXPECT_EQ(result->n_children, static_cast<int64_t>(kinds.size()));
  std::vector<ArrowArray> children;
  std::vector<quern_column> columns;
  for (size_t i = 0; i < kinds.size(); ++i) {
    EXPECT_EQ(result->children[i]->length, result->length);
    children.push_back(*result->children[i]);
    result->children[i]->release = nullptr;
    columns.push_back(AsResultColumn(children[i], kinds[i]));
  }
  quern_result rows = {};
  rows.num_rows = static_cast<uint64_t>(result->length);
  rows.num_columns = columns.size();
  rows.columns = columns.data();
  result->release(result);
  EXPECT_EQ(result->release, nullptr);
  Lines lines;
  AddLines(rows, kinds, &lines);
  for (ArrowArray& child : children) child.release(&child);
  return lines;
}

// All rows of an output of the C++ wrapper, as arrays, in their order.
template <class Output>
Lines ArrowLines(Output* output, std::string_view kinds) {
  Lines lines;
  while (true) {
    ArrowArray rows;
    auto next = output->NextArrow(&rows);
    EXPECT_EQ(next.status().text(), "");
    if (!next.ok()) return lines;
    EXPECT_EQ((*next)->num_rows, static_cast<uint64_t>(rows.length));
    EXPECT_EQ((*next)->num_columns, 0u);
    for (const std::string& line : TakeLines(&rows, kinds)) lines.push_back(line);
    if ((*next)->state != QUERN_RESULT_MORE) return lines;
  }
}

// "name:format" of each field, a '?' after those that may be null; the schema is released.
inline std::string TakeFields(ArrowSchema* schema) {
  std::string text;
  for (int64_t i = 0; i < schema->n_children; ++i) {
    const ArrowSchema& field = *schema->children[i];
    text +=
        std::string(i == 0 ? "" : " ") + field.name + ":" + field.format + (field.flags == kArrowNullable ? "?" : "");
  }
  schema->release(schema);
  return text;
}

}  // namespace quern_test

#endif  // QUERN_TEST_HOSTS_ARROW_RESULTS_H_
