// SPDX-License-Identifier: Apache-2.0
// Specs of sorts: what parses, the one canonical text, the result columns, and every message in full.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/spec/spec.h"
#include "test/unit/runtime/spec/spec_texts.h"

namespace quern {
namespace {

using spec_texts::Canonical;
using spec_texts::Error;
using spec_texts::ExpectDamageIsAnswered;
using spec_texts::ExpectParseInvertsPrint;
using spec_texts::kAllButRowId;
using spec_texts::Parsed;
using spec_texts::Random;
using spec_texts::RandomKeyType;
using spec_texts::RandomPayloadType;
using spec_texts::Repeated;
using spec_texts::Text;
using spec_texts::Types;

constexpr char kFields[] = "keys, payload, limit, stable, partition, window";
constexpr char kFlags[] = "nullable, desc, asc, nulls_first, nulls_last, out";

// ---- what parses ----

TEST(SortSpec, ExampleIsCanonical) {
  const std::string text =
      "sort keys=i32:nullable:desc:nulls_first:out,utf8(utf8mb4_bin):nullable payload=i64,rowid limit=100 stable "
      "partition=1 "
      "window=row_number,rank,dense_rank";
  const SortSpec spec = Parsed<SortSpec>(text);
  ASSERT_EQ(spec.keys.size(), 2u);
  EXPECT_EQ(
      spec.keys[0],
      (KeySpec{.type = {.id = TypeId::kI32, .nullable = true}, .descending = true, .nulls_first = true, .out = true}));
  EXPECT_EQ(spec.keys[1],
            (KeySpec{.type = {.id = TypeId::kUtf8, .collation = kCollationUtf8mb4Bin, .nullable = true}}));
  EXPECT_EQ(spec.payload, (std::vector<ColumnType>{{.id = TypeId::kI64}, {.id = TypeId::kRowId}}));
  EXPECT_EQ(spec.limit, 100u);
  EXPECT_TRUE(spec.stable);
  EXPECT_EQ(spec.partition, 1u);
  EXPECT_EQ(spec.window, (std::vector{WindowFunction::kRowNumber, WindowFunction::kRank, WindowFunction::kDenseRank}));
  EXPECT_EQ(PrintSpec(spec), text);
}

TEST(SortSpec, OrderAndDefaultsAreNotPrinted) {
  EXPECT_EQ(
      Canonical("sort window=rank stable\tpayload=rowid  limit=007 partition=0 keys=i64:out:nulls_last:asc:nullable\n"),
      "sort keys=i64:nullable:out payload=rowid limit=7 stable window=rank");
  EXPECT_EQ(Canonical("sort keys=time:nulls_first:desc,utf8(binary) payload= window="),
            "sort keys=time64:desc:nulls_first,utf8");
  EXPECT_EQ(Canonical("sort keys=i64 window=dense_rank,row_number"), "sort keys=i64 window=dense_rank,row_number");
  EXPECT_EQ(Canonical("sort keys=i64 limit=9223372036854775807"), "sort keys=i64 limit=9223372036854775807");
  EXPECT_EQ(Canonical("sort keys=i64,i8 partition=2 window=rank"), "sort keys=i64,i8 partition=2 window=rank");
}

TEST(SortSpec, EveryTypeAndCollation) {
  for (const TypeRow& row : AllTypes()) {
    const std::string type = std::string(row.text) + (row.id == TypeId::kFixedBinary ? "(3)" : "");
    EXPECT_EQ(Canonical("sort keys=i8 payload=" + type), "sort keys=i8 payload=" + type);
    if (row.id == TypeId::kRowId) continue;
    for (const std::string& key : {type, "dictionary(u16," + type + "):nullable:desc"})
      EXPECT_EQ(Canonical("sort keys=" + key), "sort keys=" + key);
    if (!IsVariable(row.storage)) continue;
    for (const CollationRow& collation : AllCollations())
      EXPECT_EQ(Parsed<SortSpec>("sort keys=" + type + "(" + std::string(collation.text) + ")").keys[0].type.collation,
                collation.id);
  }
}

TEST(SortSpec, ColumnsOfTheResult) {
  const SortSpec spec = Parsed<SortSpec>(
      "sort keys=dictionary(i8,utf8(ascii_bin)):nullable:out,i64,fixed_binary(3):out "
      "payload=rowid,f64:nullable,dictionary(i16,utf8) "
      "window=rank,row_number");
  EXPECT_EQ(Types(SortOutputTypes(spec)), "utf8:nullable fixed_binary(3) rowid f64:nullable utf8 u64 u64");
  EXPECT_EQ(Types(SortKeyTypes(spec)), "utf8:nullable i64 fixed_binary(3)");
  EXPECT_EQ(Types(SortOutputTypes(Parsed<SortSpec>("sort keys=i64"))), "");
}

// ---- messages ----

TEST(SortSpecErrors, Fields) {
  const std::string fields = kFields;
  EXPECT_EQ(Error("sort"), "missing field: keys; accepted: keys=TYPE,TYPE,.. with 1 to 16 types");
  EXPECT_EQ(Error("sort keys= limit=3"), "missing field: keys; accepted: keys=TYPE,TYPE,.. with 1 to 16 types");
  for (const char* field : {"build", "probe", "residual", "aggs"})
    EXPECT_EQ(Error("sort keys=i64 " + std::string(field) + "=i64"),
              "unknown field: " + std::string(field) + "; accepted: " + fields);
  EXPECT_EQ(Error("sort keys=i64 limits=3"), "unknown field: limits; did you mean limit? accepted: " + fields);
  EXPECT_EQ(Error("sort keys=i64 stabel"), "unknown field: stabel; did you mean stable? accepted: " + fields);
  EXPECT_EQ(Error("sort keys"), "field without a value: keys; accepted: keys=TYPE,TYPE,..");
  EXPECT_EQ(Error("sort keys=i64 limit"), "field without a value: limit; accepted: limit=N");
  EXPECT_EQ(Error("sort keys=i64 window"), "field without a value: window; accepted: window=FUNCTION,FUNCTION,..");
  EXPECT_EQ(Error("sort keys=i64 stable=true"), "field that takes no value: stable=true; accepted: stable");
  EXPECT_EQ(Error("sort keys=i64 stable="), "field that takes no value: stable=; accepted: stable");
  EXPECT_EQ(Error("sort keys=i64 stable stable"), "field given twice: stable; accepted: each field once");
  EXPECT_EQ(Error("sort limit=1 keys=i64 limit=1"), "field given twice: limit; accepted: each field once");
  EXPECT_EQ(Error("srot keys=i64").substr(0, 45), "unknown operator: srot; did you mean sort? ac");
}

TEST(SortSpecErrors, FieldsOfASortElsewhere) {
  for (const char* field : {"payload=i64", "limit=1", "stable", "partition=1", "window=rank"}) {
    const std::string text = field, name = text.substr(0, text.find('='));
    EXPECT_EQ(Error("join.inner keys=i64 " + text),
              "unknown field: " + name + "; accepted: keys, build, probe, residual");
    EXPECT_EQ(Error("aggregate keys=i64 " + text), "unknown field: " + name + "; accepted: keys, aggs");
  }
}

TEST(SortSpecErrors, Flags) {
  const std::string flags = kFlags;
  EXPECT_EQ(Error("sort keys=i64:asc:desc"), "flags exclude each other: asc and desc; accepted: one of them");
  EXPECT_EQ(Error("sort keys=i64:nulls_first:nulls_last"),
            "flags exclude each other: nulls_first and nulls_last; accepted: one of them");
  EXPECT_EQ(Error("sort keys=i64:desc:desc"), "flag given twice: desc; accepted: each flag once");
  EXPECT_EQ(Error("sort keys=i64:out:out"), "flag given twice: out; accepted: each flag once");
  EXPECT_EQ(Error("sort keys=i64:nullable:nullequal"),
            "flag without meaning in a sort's key: nullequal; accepted: " + flags);
  EXPECT_EQ(Error("sort keys=i64:lt"), "flag without meaning in a sort's key: lt; accepted: " + flags);
  EXPECT_EQ(Error("sort keys=i64:null_first"),
            "unknown flag: null_first; did you mean nulls_first? accepted: " + flags);
  EXPECT_EQ(Error("sort keys=i64:desc:"), "empty flag: i64:; accepted: " + flags);
  EXPECT_EQ(Error("sort keys=i64 payload=i64:desc"), "flag without meaning in payload: desc; accepted: nullable");
  EXPECT_EQ(Error("sort keys=i64 payload=i64:out"), "flag without meaning in payload: out; accepted: nullable");
  EXPECT_EQ(Error("aggregate keys=i64:out"), "flag without meaning in an aggregate's key: out; accepted: nullable");
}

TEST(SortSpecErrors, Types) {
  EXPECT_EQ(Error("sort keys=rowid"), "rowid is no key: rowid; accepted: rowid in payload");
  EXPECT_EQ(Error("sort keys=i65"),
            "unknown column type: i65; did you mean i64? accepted: " + std::string(kAllButRowId) + ", dictionary");
  EXPECT_EQ(Error("sort keys=utf8 payload=utf8(utf8mb4_bin)"),
            "collation of a payload column: utf8(utf8mb4_bin); accepted: utf8");
  EXPECT_EQ(Error("sort keys=utf8 payload=rowid:nullable"), "rowid is never null: rowid:nullable; accepted: rowid");
  EXPECT_EQ(Error("sort keys=utf8 payload=i8,"), "empty item in a list: payload=i8,; accepted: types separated by ','");
}

TEST(SortSpecErrors, Counts) {
  EXPECT_EQ(Error("sort keys=" + Repeated("i64", 16)), "no error");
  EXPECT_EQ(Error("sort keys=" + Repeated("i64", 17)), "number of keys out of range: 17; accepted: 1 to 16");
  EXPECT_EQ(Error("sort keys=i64 payload=" + Repeated("i8", 1024)), "no error");
  EXPECT_EQ(Error("sort keys=i64 payload=" + Repeated("i8", 1025)),
            "number of payload columns out of range: 1025; accepted: 0 to 1024");
}

TEST(SortSpecErrors, Limit) {
  for (const char* limit :
       {"0", "-1", "+1", "1e3", "0x10", "1,2", "9223372036854775808", "99999999999999999999", "ten"})
    EXPECT_EQ(Error("sort keys=i64 limit=" + std::string(limit)),
              "limit out of range: " + std::string(limit) + "; accepted: 1 to 9223372036854775807");
  EXPECT_EQ(Error("sort keys=i64 limit="), "limit out of range: \"\"; accepted: 1 to 9223372036854775807");
}

TEST(SortSpecErrors, Partition) {
  EXPECT_EQ(Error("sort keys=i64,i8 partition=3 window=rank"), "partition out of range: 3; accepted: 0 to 2");
  EXPECT_EQ(Error("sort keys=i64,i8 partition=2"),
            "partition without window functions: 2; accepted: 0, or window=FUNCTION,FUNCTION,..");
  EXPECT_EQ(Error("sort partition=x keys=i64"), "partition out of range: x; accepted: 0 to the number of keys");
  EXPECT_EQ(Error("sort partition=4294967296 keys=i64"),
            "partition out of range: 4294967296; accepted: 0 to the number of keys");
  EXPECT_EQ(Error("sort partition= keys=i64"), "partition out of range: \"\"; accepted: 0 to the number of keys");
}

TEST(SortSpecErrors, Window) {
  EXPECT_EQ(Error("sort keys=i64 window=rnak"),
            "unknown window function: rnak; did you mean rank? accepted: row_number, rank, dense_rank");
  EXPECT_EQ(Error("sort keys=i64 window=rank:desc"),
            "unknown window function: rank:desc; accepted: row_number, rank, dense_rank");
  EXPECT_EQ(Error("sort keys=i64 window=rank,,rank"),
            "empty item in a list: window=rank,,rank; accepted: functions separated by ','");
  EXPECT_EQ(Error("sort keys=i64 window=rank,row_number,rank"),
            "window function given twice: rank; accepted: each window function once");
}

// ---- specs that were filled by a caller ----

TEST(SortSpecValidation, Keys) {
  SortSpec spec;
  EXPECT_EQ(Text(ValidateSpec(spec)), "number of keys out of range: 0; accepted: 1 to 16");
  spec.keys.resize(17);
  EXPECT_EQ(Text(ValidateSpec(spec)), "number of keys out of range: 17; accepted: 1 to 16");
  spec.keys.resize(1);
  EXPECT_EQ(Text(ValidateSpec(spec)), "no error");
  spec.keys[0].null_equal = true;
  EXPECT_EQ(Text(ValidateSpec(spec)),
            "flag without meaning in a sort's key: nullequal; accepted: " + std::string(kFlags));
  spec.keys[0] = {.type = {.id = TypeId::kRowId}};
  EXPECT_EQ(Text(ValidateSpec(spec)), "rowid is no key: keys[0]; accepted: rowid in payload");
  spec.keys[0] = {.type = {.id = TypeId::kI64, .width_bytes = 3}};
  EXPECT_EQ(Text(ValidateSpec(spec)), "width out of range in keys[0]: 3; accepted: 0");
}

TEST(SortSpecValidation, Payload) {
  SortSpec spec = Parsed<SortSpec>("sort keys=i64");
  spec.payload = {{}, {.id = TypeId::kFixedBinary}};
  EXPECT_EQ(Text(ValidateSpec(spec)), "width out of range in payload[1]: 0; accepted: 1 to 65536");
  spec.payload = {{.id = TypeId::kRowId, .nullable = true}};
  EXPECT_EQ(Text(ValidateSpec(spec)), "rowid is never null: payload[0]; accepted: rowid");
  spec.payload.assign(1025, {});
  EXPECT_EQ(Text(ValidateSpec(spec)), "number of payload columns out of range: 1025; accepted: 0 to 1024");
}

TEST(SortSpecValidation, LimitAndWindow) {
  SortSpec spec = Parsed<SortSpec>("sort keys=i64");
  spec.limit = uint64_t{1} << 63;
  EXPECT_EQ(Text(ValidateSpec(spec)), "limit out of range: 9223372036854775808; accepted: 1 to 9223372036854775807");
  spec.limit = 0;
  spec.partition = 1;
  EXPECT_EQ(Text(ValidateSpec(spec)),
            "partition without window functions: 1; accepted: 0, or window=FUNCTION,FUNCTION,..");
  spec.partition = 2;
  EXPECT_EQ(Text(ValidateSpec(spec)), "partition out of range: 2; accepted: 0 to 1");
  spec.partition = 0;
  spec.window = {WindowFunction::kRank, WindowFunction::kRank};
  EXPECT_EQ(Text(ValidateSpec(spec)), "window function given twice: rank; accepted: each window function once");
  spec.window = {WindowFunction::kRank, static_cast<WindowFunction>(7)};
  EXPECT_EQ(Text(ValidateSpec(spec)), "window function number out of range in window[1]: 7; accepted: 0 to 2");
}

// ---- random ----

SortSpec RandomSpec(Random* random) {
  SortSpec spec;
  spec.keys.resize(1 + random->Below(kMaxKeys));
  for (KeySpec& key : spec.keys) key = {RandomKeyType(random), false, random->Coin(), random->Coin(), random->Coin()};
  spec.payload.resize(random->Below(8));
  for (ColumnType& type : spec.payload) type = RandomPayloadType(random);
  if (random->Coin()) spec.limit = 1 + random->Below(~uint64_t{0} >> (1 + random->Below(63)));
  spec.stable = random->Coin();
  for (const int function : {2, 0, 1})
    if (random->Coin()) spec.window.push_back(static_cast<WindowFunction>(function));
  if (!spec.window.empty()) spec.partition = static_cast<uint32_t>(random->Below(spec.keys.size() + 1));
  return spec;
}

TEST(SortSpecRandom, ParseIsTheInverseOfPrint) {
  ExpectParseInvertsPrint(2000, [](Random* random) {
    SortSpec spec = RandomSpec(random);
    EXPECT_EQ(SortKeyTypes(spec).size(), spec.keys.size());
    return spec;
  });
}

TEST(SortSpecRandom, DamagedTextsAreAnswered) { ExpectDamageIsAnswered(3000, "(),:= \t\n09x", RandomSpec); }

}  // namespace
}  // namespace quern
