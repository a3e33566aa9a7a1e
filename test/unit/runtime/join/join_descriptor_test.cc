// SPDX-License-Identifier: Apache-2.0
// Where fields lie in tuples: some layouts in full, and for random specs a check that no two fields overlap.
#include "runtime/join/join_descriptor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/rows/row_layout.h"
#include "runtime/spec/spec.h"

namespace quern {
namespace {

JoinSpec Parsed(const std::string& text) {
  const auto spec = ParseSpecOf<JoinSpec>(text);
  EXPECT_TRUE(spec.ok()) << text;
  return spec.ok() ? *spec : JoinSpec();
}

TEST(JoinDescriptor, PrintsTheLayout) {
  const JoinDescriptor descriptor(
      Parsed("join.inner keys=i32,utf8(utf8mb4_bin):nullable:nullequal build=u16:nullable,f64 probe=i8:nullable"));
  EXPECT_EQ(descriptor.Print(),
            "offset  bytes  field      type               storage\n"
            "     0     16  keys[1]    utf8(utf8mb4_bin)  var32\n"
            "    16      4  keys[0]    i32                32\n"
            "    24      8  build[1]   f64                64\n"
            "    32      2  build[0]   u16                16\n"
            "    34      1  null bits  of keys[1], build[0]\n"
            "tuple_bytes 40\n");
}

TEST(JoinDescriptor, OneKeyAlone) {
  const JoinDescriptor descriptor(Parsed("join.inner keys=bool"));
  EXPECT_EQ(descriptor.Print(),
            "offset  bytes  field       type    storage\n"
            "     0      4  packed key  1 bits  keys[0] from bit 0\n"
            "tuple_bytes 4\n");
  EXPECT_EQ(descriptor.rows()->num_keys, 1u);
  EXPECT_EQ(descriptor.rows()->num_fields, 0u);
  EXPECT_EQ(descriptor.get()->batch_rows, 1024u);
  EXPECT_EQ(descriptor.get()->group_rows, 64u);
  EXPECT_FALSE(descriptor.rows()->zero_hashes);
}

TEST(JoinDescriptor, PrintsWordResidualAndMark) {
  const JoinDescriptor descriptor(
      Parsed("join.right_anti keys=i32,i16:nullable:nullequal,bool build=f64:nullable residual=i64:lt,u8:nullable:ne"));
  EXPECT_EQ(descriptor.Print(),
            "offset  bytes  field         type     storage\n"
            "     0      8  packed key    50 bits  keys[0] from bit 0, keys[1] from bit 32 (null: bit 48), keys[2] "
            "from bit 49\n"
            "     8      8  build[0]      f64      64\n"
            "    16      8  residual[0]   i64      64\n"
            "    24      1  residual[1]   u8       8\n"
            "    25      1  null bits     of build[0], residual[1]\n"
            "    26      1  matched flag  set once a probe row matched\n"
            "tuple_bytes 32\n");
}

TEST(JoinDescriptor, KeysThatFitOneWordArePacked) {
  const auto bits = [](const char* keys) { return WordBits(Parsed(std::string("join.inner keys=") + keys).keys); };
  EXPECT_EQ(bits("i64"), 64u);
  EXPECT_EQ(bits("i64:nullable"), 64u);           // a null key is never stored
  EXPECT_EQ(bits("i64:nullable:nullequal"), 0u);  // 65 bits
  EXPECT_EQ(bits("f64"), 64u);
  EXPECT_EQ(bits("i32,u16,bool,i8"), 57u);
  EXPECT_EQ(bits("i32,i32"), 64u);
  EXPECT_EQ(bits("i32,i32,bool"), 0u);
  EXPECT_EQ(bits("i32:nullable:nullequal"), 33u);
  EXPECT_EQ(bits("date32,bool:nullable:nullequal"), 34u);
  EXPECT_EQ(bits("dictionary(i8,i64)"), 64u);
  for (const char* keys : {"decimal128", "fixed_binary(4)", "utf8", "dictionary(i8,utf8)", "i8,utf8"})
    EXPECT_EQ(bits(keys), 0u) << keys;
  const JoinDescriptor narrow(Parsed("join.inner keys=u8,u16 build=i8")),
      wide(Parsed("join.inner keys=i32,bool build=i8"));
  EXPECT_EQ(narrow.rows()->packed_bytes, 4u);
  EXPECT_EQ(narrow.rows()->tuple_bytes, 8u);
  EXPECT_EQ(wide.rows()->packed_bytes, 8u);
  EXPECT_EQ(wide.rows()->keys[1].packed_shift, 32);
  EXPECT_EQ(wide.rows()->fields[0].tuple_offset, 8u);
  EXPECT_FALSE(narrow.rows()->packed_sign_bit);
  EXPECT_TRUE(JoinDescriptor(Parsed("join.inner keys=i16")).rows()->packed_sign_bit);
  EXPECT_FALSE(JoinDescriptor(Parsed("join.inner keys=f32")).rows()->packed_sign_bit);
}

TEST(JoinDescriptor, EntryPointsAreThoseWithWorkToDo) {
  const auto needed = [](const char* text) {
    const JoinDescriptor descriptor(Parsed(text));
    const NeededEntryPoints entries = EntryPointsOf(*descriptor.get());
    std::string names;
#define QUERN_JOIN_ENTRY(field, result, parameters) \
  if (entries.field) names += #field " ";
#include "runtime/abi/join_entry_points.def"
    return names;
  };
  EXPECT_EQ(needed("join.inner keys=i64"), "pack ");
  EXPECT_EQ(needed("join.inner keys=i64:nullable probe=i8"), "filter pack emit ");
  EXPECT_EQ(needed("join.inner keys=i64 build=utf8"), "pack store reserve_output emit ");
  EXPECT_EQ(needed("join.right_semi keys=i64"), "pack store ");  // the matched flag
  EXPECT_EQ(needed("join.inner keys=i64 residual=i64:lt"), "pack store filter_residual ");
  EXPECT_EQ(needed("join.inner keys=utf8:nullable:nullequal"), "hash store check_tags compare ");
  EXPECT_EQ(needed("join.left keys=utf8:nullable build=rowid"), "filter hash store check_tags compare emit ");
}

TEST(JoinDescriptor, RowsStopWhereOneMatchIsEnough) {
  for (const JoinKindRow& kind : AllJoinKinds()) {
    const JoinDescriptor descriptor(Parsed("join." + std::string(kind.text) + " keys=i64"));
    EXPECT_EQ(descriptor.get()->stops_at_first, !kind.pairs && !kind.flags_matched_rows()) << kind.text;
    EXPECT_EQ(descriptor.get()->stops_at_matched, !kind.pairs && kind.flags_matched_rows()) << kind.text;
    EXPECT_EQ(descriptor.get()->matched_offset != 0, kind.flags_matched_rows()) << kind.text;
    if (kind.id == JoinKind::kAntiNullAware) continue;
    const JoinDescriptor refined(Parsed("join." + std::string(kind.text) + " keys=i64 residual=i64:lt"));
    EXPECT_FALSE(refined.get()->stops_at_first || refined.get()->stops_at_matched) << kind.text;
  }
}

TEST(JoinDescriptor, KeysAreReadAsKeysAndPayloadAsIs) {
  const JoinDescriptor descriptor(
      Parsed("join.inner keys=f64,utf8(ascii_bin),utf8(utf8mb4_0900_bin) build=f64 probe=f32"));
  EXPECT_EQ(descriptor.rows()->keys[0].storage, kF64);
  EXPECT_TRUE(descriptor.rows()->keys[1].rule & kTrimsSpaces);
  EXPECT_FALSE(descriptor.rows()->keys[2].rule & kTrimsSpaces);
  EXPECT_EQ(descriptor.rows()->fields[0].storage, k64);
  EXPECT_EQ(descriptor.get()->probe[0].storage, k32);
  EXPECT_EQ(descriptor.get()->probe[0].tuple_offset, 0u);
  EXPECT_EQ(descriptor.rows()->keys[0].index_storage, kNoStorage);
}

TEST(JoinDescriptor, Dictionaries) {
  const JoinDescriptor descriptor(
      Parsed("join.inner keys=dictionary(i8,f32) build=dictionary(u64,fixed_binary(5)):nullable"));
  const QuernField& key = descriptor.rows()->keys[0];
  EXPECT_EQ(key.storage, kF32);
  EXPECT_EQ(key.index_storage, k8);
  EXPECT_TRUE(key.index_is_signed);
  const QuernField& column = descriptor.rows()->fields[0];
  EXPECT_EQ(column.storage, kFixed);
  EXPECT_EQ(column.width_bytes, 5u);
  EXPECT_EQ(column.index_storage, k64);
  EXPECT_FALSE(column.index_is_signed);
  EXPECT_EQ(column.tuple_offset, 4u);
  EXPECT_EQ(column.null_offset, 9u);
  EXPECT_EQ(column.null_mask, 1);
  EXPECT_EQ(descriptor.rows()->tuple_bytes, 12u);
}

TEST(JoinDescriptor, OnlyNullsThatAreStoredHaveBits) {
  const JoinDescriptor descriptor(
      Parsed("join.inner keys=i64:nullable,i32:nullable:nullequal build=i8,i8:nullable probe=i8:nullable"));
  EXPECT_EQ(descriptor.rows()->keys[0].null_mask, 0);
  EXPECT_EQ(descriptor.rows()->keys[1].null_mask, 1);
  EXPECT_EQ(descriptor.rows()->fields[0].null_mask, 0);
  EXPECT_EQ(descriptor.rows()->fields[1].null_mask, 2);
  EXPECT_EQ(descriptor.get()->probe[0].null_mask, 0);
  EXPECT_EQ(descriptor.rows()->null_bits_offset, 14u);
  EXPECT_EQ(descriptor.rows()->null_bits_bytes, 1u);
  EXPECT_EQ(descriptor.rows()->tuple_bytes, 16u);
}

TEST(JoinDescriptor, NullBitsGoOnInTheNextByte) {
  std::string build = "i8:nullable";
  for (int i = 1; i < 17; ++i) build += ",i8:nullable";
  const JoinDescriptor descriptor(Parsed("join.inner keys=i64 build=" + build));
  EXPECT_EQ(descriptor.rows()->null_bits_offset, 25u);
  EXPECT_EQ(descriptor.rows()->null_bits_bytes, 3u);
  EXPECT_EQ(descriptor.rows()->fields[7].null_mask, 0x80);
  EXPECT_EQ(descriptor.rows()->fields[7].null_offset, 25u);
  EXPECT_EQ(descriptor.rows()->fields[16].null_mask, 1);
  EXPECT_EQ(descriptor.rows()->fields[16].null_offset, 27u);
}

TEST(JoinDescriptor, WidestFirstAndStable) {
  const JoinDescriptor descriptor(Parsed("join.inner keys=i8,i64,decimal128,i64 build=fixed_binary(3),i16,rowid"));
  const QuernRowLayout& s = *descriptor.rows();
  EXPECT_EQ(s.keys[2].tuple_offset, 0u);
  EXPECT_EQ(s.keys[1].tuple_offset, 16u);
  EXPECT_EQ(s.keys[3].tuple_offset, 24u);
  EXPECT_EQ(s.keys[0].tuple_offset, 32u);
  EXPECT_EQ(s.fields[2].tuple_offset, 40u);
  EXPECT_EQ(s.fields[0].tuple_offset, 48u);
  EXPECT_EQ(s.fields[1].tuple_offset, 52u);
  EXPECT_EQ(s.fields[2].storage, kRowId);
  EXPECT_EQ(s.tuple_bytes, 56u);
}

TEST(JoinDescriptor, FieldsOfEveryTypeDoNotOverlap) {
  std::string types;
  for (const TypeRow& row : AllTypes()) {
    if (row.id == TypeId::kRowId) continue;
    types += (types.empty() ? "" : ",") + std::string(row.text) + (row.id == TypeId::kFixedBinary ? "(13)" : "") +
             ":nullable";
  }
  const JoinDescriptor descriptor(Parsed("join.inner keys=fixed_binary(7),u16,bool build=" + types));
  const QuernRowLayout& s = *descriptor.rows();
  std::vector<int> uses(s.tuple_bytes, 0);
  const auto use = [&](uint32_t begin, uint32_t bytes) {
    for (uint32_t i = begin; i < begin + bytes; ++i) ++uses.at(i);
  };
  const auto use_field = [&](const QuernField& field) {
    use(field.tuple_offset, field.storage == kFixed ? field.width_bytes : StorageFieldBytes(field.storage));
  };
  std::for_each(s.keys, s.keys + s.num_keys, use_field);
  std::for_each(s.fields, s.fields + s.num_fields, use_field);
  use(s.null_bits_offset, s.null_bits_bytes);
  for (size_t i = 0; i < uses.size(); ++i) EXPECT_LE(uses[i], 1) << "byte " << i;
  EXPECT_EQ(s.tuple_bytes % 8, 0u);
}

}  // namespace
}  // namespace quern
