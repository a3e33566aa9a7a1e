// SPDX-License-Identifier: Apache-2.0
// Makes from a sort's spec the descriptor for which kernels are specialised: which bits of which word each key takes,
// and what a tuple holds.
#ifndef QUERN_RUNTIME_SORT_SORT_DESCRIPTOR_H_
#define QUERN_RUNTIME_SORT_SORT_DESCRIPTOR_H_

#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/sort_abi.h"
#include "runtime/rows/row_layout.h"
#include "runtime/sort/sort_options.h"
#include "runtime/spec/sort_spec.h"

namespace quern {

// Which entry points a kernel of this descriptor has (sort_entry_points.def).
struct NeededSortEntryPoints {
#define QUERN_SORT_ENTRY(field, result, parameters) bool field;
#include "runtime/abi/sort_entry_points.def"
};
NeededSortEntryPoints EntryPointsOf(const QuernSortDescriptor& descriptor);

// Where a column of the result comes from.
struct SortColumn {
  enum class Source : uint8_t {
    kField,  // field number `index` of the tuple
    kWords,  // key number `index`, decoded from its words
    kRowId,
    kRowNumber,
    kRank,
    kDenseRank,
  };
  Source source;
  uint32_t index = 0;
};

// Where a field of a tuple comes from: a batch's key column, or its payload column.
struct SortFieldSource {
  bool is_key;
  uint32_t index;
};

class SortDescriptor {
 public:
  explicit SortDescriptor(const SortSpec& spec, SortMethod method = SortMethod::kRadix);
  SortDescriptor(const SortDescriptor&) = delete;
  SortDescriptor& operator=(const SortDescriptor&) = delete;

  // A descriptor with the same words and tuples whose result is all that a later merge needs: every key (`out` or not),
  // the row id where the spec is stable, and the payload.
  std::shared_ptr<const SortDescriptor> WithAllColumns() const;

  const QuernSortDescriptor* get() const { return &descriptor_; }
  QuernSortDescriptor* mutable_tuning() { return &descriptor_; }
  const SortSpec& spec() const { return spec_; }
  SortMethod method() const { return method_; }
  // By column of SortOutputTypes(spec).
  const std::vector<SortColumn>& columns() const { return columns_; }
  // By field: first those that come out.
  const std::vector<SortFieldSource>& fields() const { return fields_; }
  // Whether tuples have any field at all.
  bool has_tuples() const { return !fields_.empty(); }
  // The field with this index in fields().
  const QuernField& field(uint32_t f) const { return rows_.fields()[f]; }
  // Whether all fields are keys whose original values words may hold: floats, and strings that have dictionary codes
  // and no collation.
  bool may_drop_tuples() const { return may_drop_tuples_; }

  // The words and the tuple as tables, as `quern dump layout` prints them.
  std::string Print() const;

 private:
  void PlaceParts();
  void PlacePart(QuernSortPart part, uint32_t* used_bits);
  void PlaceBytes(uint32_t key, uint32_t num_bytes, uint32_t* used_bits);
  void PlaceFields();

  SortSpec spec_;
  SortMethod method_;
  std::vector<QuernSortKey> keys_;
  std::vector<QuernSortPart> parts_;
  std::vector<ColumnType> field_types_;
  std::vector<SortFieldSource> fields_;
  std::vector<SortColumn> columns_;
  bool may_drop_tuples_ = false;
  QuernSortDescriptor descriptor_;
  RowLayout rows_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SORT_DESCRIPTOR_H_
