// SPDX-License-Identifier: Apache-2.0
// The text form of specs: that printing and parsing are inverse, and every message in full.
#include "runtime/spec/spec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/collation/icu_collation.h"
#include "test/unit/runtime/spec/spec_texts.h"

namespace quern {
namespace {

using spec_texts::Canonical;
using spec_texts::Error;
using spec_texts::ExpectDamageIsAnswered;
using spec_texts::ExpectParseInvertsPrint;
using spec_texts::kAllButRowId;
using spec_texts::kAllOperators;
using spec_texts::Parsed;
using spec_texts::Random;
using spec_texts::RandomKeyType;
using spec_texts::RandomPayloadType;
using spec_texts::Repeated;
using spec_texts::Text;

std::string KeyError(std::string_view text) { return Text(ParseKey(text).status()); }
std::string ValidationError(const KernelSpec& spec) { return Text(ValidateSpec(spec)); }

// ---- what parses ----

TEST(Spec, ExampleIsCanonical) {
  const std::string text = "join.inner keys=i64,utf8(utf8mb4_bin):nullable build=f64,utf8 probe=i32";
  const JoinSpec spec = Parsed<JoinSpec>(text);
  ASSERT_EQ(spec.keys.size(), 2u);
  EXPECT_EQ(spec.keys[0].type.id, TypeId::kI64);
  EXPECT_FALSE(spec.keys[0].type.nullable);
  EXPECT_EQ(spec.keys[1].type.id, TypeId::kUtf8);
  EXPECT_EQ(spec.keys[1].type.collation, kCollationUtf8mb4Bin);
  EXPECT_TRUE(spec.keys[1].type.nullable);
  ASSERT_EQ(spec.build.size(), 2u);
  EXPECT_EQ(spec.build[0].id, TypeId::kF64);
  ASSERT_EQ(spec.probe.size(), 1u);
  EXPECT_EQ(PrintSpec(spec), text);
}

TEST(Spec, OrderAndBlanksAndDefaultsAreNotPrinted) {
  EXPECT_EQ(Canonical(" \tjoin.inner  probe=i32\tbuild= keys=utf8(binary):nullequal:nulls_last:asc:nullable\r\n"),
            "join.inner keys=utf8:nullable:nullequal probe=i32");
  EXPECT_EQ(Canonical("join.inner keys=time"), "join.inner keys=time64");
  EXPECT_EQ(Canonical("join.inner keys=fixed_binary(016)"), "join.inner keys=fixed_binary(16)");
}

TEST(Spec, Dictionaries) {
  const JoinSpec spec = Parsed<JoinSpec>(
      "join.inner keys=dictionary(u8,utf8(utf8mb4_bin)):nullable build=dictionary(i64,fixed_binary(3)),rowid");
  EXPECT_TRUE(spec.keys[0].type.is_dictionary);
  EXPECT_EQ(spec.keys[0].type.index, TypeId::kU8);
  EXPECT_EQ(spec.keys[0].type.id, TypeId::kUtf8);
  EXPECT_EQ(spec.keys[0].type.collation, kCollationUtf8mb4Bin);
  EXPECT_EQ(spec.build[0].width_bytes, 3u);
  EXPECT_EQ(PrintSpec(spec),
            "join.inner keys=dictionary(u8,utf8(utf8mb4_bin)):nullable build=dictionary(i64,fixed_binary(3)),rowid");
}

TEST(Spec, EveryTypeAndCollation) {
  for (const TypeRow& row : AllTypes()) {
    const std::string type = std::string(row.text) + (row.id == TypeId::kFixedBinary ? "(65536)" : "");
    EXPECT_EQ(Canonical("join.inner keys=i64 build=" + type + " probe=" + type),
              "join.inner keys=i64 build=" + type + " probe=" + type);
    if (row.id == TypeId::kRowId) continue;
    EXPECT_EQ(Canonical("join.inner keys=" + type), "join.inner keys=" + type);
    EXPECT_EQ(Canonical("join.inner keys=dictionary(i16," + type + ")"),
              "join.inner keys=dictionary(i16," + type + ")");
    if (!IsVariable(row.storage)) continue;
    for (const CollationRow& collation : AllCollations()) {
      const auto key = ParseKey(type + "(" + std::string(collation.text) + ")");
      ASSERT_TRUE(key.ok());
      EXPECT_EQ(key->type.collation, collation.id);
    }
  }
}

TEST(Spec, KeyOfAnyOperator) {
  const auto key = ParseKey("utf8(ascii_bin):nulls_first:out:desc:nullable");
  ASSERT_TRUE(key.ok());
  EXPECT_TRUE(key->descending && key->nulls_first && key->out && key->type.nullable && !key->null_equal);
  EXPECT_TRUE(ParseKey("i64:nullable:nullequal").value().null_equal);
  EXPECT_EQ(ParseKey("i64:asc:nulls_last").value(), KeySpec());
}

// ---- messages ----

TEST(SpecErrors, Operator) {
  EXPECT_EQ(Error("foo"), "unknown operator: foo; accepted: " + std::string(kAllOperators));
  EXPECT_EQ(Error("join.iner keys=i64"),
            "unknown operator: join.iner; did you mean join.inner? accepted: " + std::string(kAllOperators));
  EXPECT_EQ(Error(""), "missing operator: \"\"; accepted: " + std::string(kAllOperators));
  EXPECT_EQ(Error(" \n"), "missing operator: \"\"; accepted: " + std::string(kAllOperators));
}

TEST(SpecErrors, Fields) {
  EXPECT_EQ(Error("join.inner"), "missing field: keys; accepted: keys=TYPE,TYPE,.. with 1 to 16 types");
  EXPECT_EQ(Error("join.inner keys="), "missing field: keys; accepted: keys=TYPE,TYPE,.. with 1 to 16 types");
  EXPECT_EQ(Error("join.inner kyes=i64"),
            "unknown field: kyes; did you mean keys? accepted: keys, build, probe, residual");
  EXPECT_EQ(Error("join.inner payload=i64"), "unknown field: payload; accepted: keys, build, probe, residual");
  EXPECT_EQ(Error("join.inner keys"), "field without a value: keys; accepted: keys=TYPE,TYPE,..");
  EXPECT_EQ(Error("join.inner keys=i64 build=i8 build=i8"), "field given twice: build; accepted: each field once");
  EXPECT_EQ(Error("join.inner keys=i64,,i32"), "empty item in a list: keys=i64,,i32; accepted: types separated by ','");
  EXPECT_EQ(Error("join.inner keys=i64, i32"), "empty item in a list: keys=i64,; accepted: types separated by ','");
}

TEST(SpecErrors, Counts) {
  EXPECT_EQ(Error("join.inner keys=" + Repeated("i64", 16)), "no error");
  EXPECT_EQ(Error("join.inner keys=" + Repeated("i64", 17)), "number of keys out of range: 17; accepted: 1 to 16");
  EXPECT_EQ(Error("join.inner keys=i64 build=" + Repeated("i8", 1024)), "no error");
  EXPECT_EQ(Error("join.inner keys=i64 build=" + Repeated("i8", 1025)),
            "number of build columns out of range: 1025; accepted: 0 to 1024");
  EXPECT_EQ(Error("join.inner keys=i64 probe=" + Repeated("i8", 1025)),
            "number of probe columns out of range: 1025; accepted: 0 to 1024");
  EXPECT_EQ(Error("join.inner keys=i64" + std::string(65517, ' ')), "no error");
  EXPECT_EQ(Error("join.inner keys=i64" + std::string(65518, ' ')),
            "kernel spec too long: 65537 bytes; accepted: up to 65536");
  EXPECT_EQ(KeyError(std::string(65537, 'i')), "kernel spec too long: 65537 bytes; accepted: up to 65536");
}

TEST(SpecErrors, Types) {
  const std::string keys = kAllButRowId, payload = keys + ", rowid";
  EXPECT_EQ(Error("join.inner keys=utf9"),
            "unknown column type: utf9; did you mean utf8? accepted: " + keys + ", dictionary");
  EXPECT_EQ(Error("join.inner keys=i65"),
            "unknown column type: i65; did you mean i64? accepted: " + keys + ", dictionary");
  EXPECT_EQ(Error("join.inner keys=UTF8"),
            "unknown column type: UTF8; did you mean utf8? accepted: " + keys + ", dictionary");
  EXPECT_EQ(Error("join.inner keys=i64 build=rowids"),
            "unknown column type: rowids; did you mean rowid? accepted: " + payload + ", dictionary");
  EXPECT_EQ(Error("join.inner keys=string"), "unknown column type: string; accepted: " + keys + ", dictionary");
  EXPECT_EQ(Error("join.inner keys=:nullable"), "missing column type: \"\"; accepted: " + keys + ", dictionary");
  EXPECT_EQ(Error("join.inner keys=(3)"), "missing column type: (3); accepted: " + keys + ", dictionary");
  EXPECT_EQ(Error("join.inner keys=i64(3)"), "type takes no parameter: i64(3); accepted: i64");
  EXPECT_EQ(Error("join.inner keys=i64()"), "type takes no parameter: i64(); accepted: i64");
  EXPECT_EQ(Error("join.inner keys=i64 probe=rowid(1)"), "type takes no parameter: rowid(1); accepted: rowid");
  EXPECT_EQ(Error("join.inner keys=i64,rowid"), "rowid is no key: rowid; accepted: rowid in build or probe");
  EXPECT_EQ(Error("join.inner keys=i64 build=rowid:nullable"), "rowid is never null: rowid:nullable; accepted: rowid");
}

TEST(SpecErrors, Parentheses) {
  EXPECT_EQ(Error("join.inner keys=utf8(binary,i64"),
            "parenthesis not closed: utf8(binary,i64; accepted: TYPE(PARAMETER)");
  EXPECT_EQ(Error("join.inner keys=utf8)"), "parenthesis closed that was not opened: utf8); accepted: TYPE(PARAMETER)");
  EXPECT_EQ(Error("join.inner keys=utf8(binary)x"),
            "text behind a parenthesis: utf8(binary)x; accepted: TYPE(PARAMETER)");
  EXPECT_EQ(Error("join.inner keys=dictionary(i8,utf8(binary)x)"),
            "text behind a parenthesis: utf8(binary)x; accepted: TYPE(PARAMETER)");
}

TEST(SpecErrors, Widths) {
  EXPECT_EQ(Error("join.inner keys=fixed_binary"),
            "type without a width in bytes: fixed_binary; accepted: fixed_binary(1) to fixed_binary(65536)");
  for (const char* type : {"fixed_binary(0)", "fixed_binary(65537)", "fixed_binary()", "fixed_binary(-1)",
                           "fixed_binary(4x)", "fixed_binary(99999999999999999999)"}) {
    EXPECT_EQ(Error("join.inner keys=" + std::string(type)),
              "width out of range: " + std::string(type) + "; accepted: fixed_binary(1) to fixed_binary(65536)");
  }
}

TEST(SpecErrors, Collations) {
  std::string accepted = "accepted: ";
  for (const CollationRow& row : AllCollations()) accepted += std::string(row.text) + ", ";
  if (IcuVersion().empty()) accepted.resize(accepted.size() - 2);
  else accepted += "icu:TAG";
  EXPECT_EQ(Error("join.inner keys=utf8(utf8mb4_bni)"),
            "unknown collation: utf8mb4_bni; did you mean utf8mb4_bin? " + accepted);
  EXPECT_EQ(Error("join.inner keys=utf8(klingon)"), "unknown collation: klingon; " + accepted);
  EXPECT_EQ(Error("join.inner keys=utf8()"), "unknown collation: \"\"; " + accepted);
  EXPECT_EQ(Error("join.inner keys=i64 build=utf8(utf8mb4_bin)"),
            "collation of a payload column: utf8(utf8mb4_bin); accepted: utf8");
  EXPECT_EQ(Error("join.inner keys=i64 probe=dictionary(i8,utf8(ascii_bin))"),
            "collation of a payload column: utf8(ascii_bin); accepted: utf8");
}

TEST(SpecErrors, Dictionaries) {
  const std::string values = kAllButRowId, indices = "accepted: i8, i16, i32, i64, u8, u16, u32, u64";
  EXPECT_EQ(Error("join.inner keys=dictionary"),
            "dictionary without an index and a value type: dictionary; accepted: dictionary(INDEX,VALUE)");
  EXPECT_EQ(Error("join.inner keys=dictionary(i32)"),
            "dictionary without an index and a value type: dictionary(i32); accepted: dictionary(INDEX,VALUE)");
  EXPECT_EQ(
      Error("join.inner keys=dictionary(i32,utf8,utf8)"),
      "dictionary without an index and a value type: dictionary(i32,utf8,utf8); accepted: dictionary(INDEX,VALUE)");
  EXPECT_EQ(Error("join.inner keys=dictionary(f64,utf8)"),
            "unknown index type of a dictionary: f64; did you mean i64? " + indices);
  EXPECT_EQ(Error("join.inner keys=dictionary(utf8,i32)"), "unknown index type of a dictionary: utf8; " + indices);
  EXPECT_EQ(Error("join.inner keys=dictionary(i32,utf9)"),
            "unknown column type: utf9; did you mean utf8? accepted: " + values);
  EXPECT_EQ(Error("join.inner keys=dictionary(i32,)"), "missing column type: \"\"; accepted: " + values);
  EXPECT_EQ(Error("join.inner keys=dictionary(i32,dictionary(i8,utf8))"),
            "value type that a dictionary cannot have: dictionary(i8,utf8); accepted: " + values);
  EXPECT_EQ(Error("join.inner keys=i8 build=dictionary(i32,rowid)"),
            "value type that a dictionary cannot have: rowid; accepted: " + values);
}

TEST(SpecErrors, Flags) {
  const std::string all = "nullable, nullequal, desc, asc, nulls_first, nulls_last, out";
  EXPECT_EQ(Error("join.inner keys=i64:nulable"),
            "unknown flag: nulable; did you mean nullable? accepted: nullable, nullequal");
  EXPECT_EQ(Error("join.inner keys=i64:unique"), "unknown flag: unique; accepted: nullable, nullequal");
  EXPECT_EQ(KeyError("i64:unique"), "unknown flag: unique; accepted: " + all);
  EXPECT_EQ(Error("join.inner keys=i64 build=i8:unique"), "unknown flag: unique; accepted: nullable");
  EXPECT_EQ(Error("join.inner keys=i64:desc"),
            "flag without meaning in a join's key: desc; accepted: nullable, nullequal");
  EXPECT_EQ(Error("join.inner keys=i64:nulls_first"),
            "flag without meaning in a join's key: nulls_first; accepted: nullable, nullequal");
  EXPECT_EQ(Error("join.inner keys=i64:out"),
            "flag without meaning in a join's key: out; accepted: nullable, nullequal");
  EXPECT_EQ(Error("join.inner keys=i64 probe=i8:nullequal"),
            "flag without meaning in payload: nullequal; accepted: nullable");
  EXPECT_EQ(Error("join.inner keys=i64:nullable:"), "empty flag: i64:; accepted: nullable, nullequal");
  EXPECT_EQ(Error("join.inner keys=i64:nullable:nullable"), "flag given twice: nullable; accepted: each flag once");
  EXPECT_EQ(KeyError("i64:desc:asc"), "flags exclude each other: desc and asc; accepted: one of them");
  EXPECT_EQ(KeyError("i64:nulls_last:nulls_first"),
            "flags exclude each other: nulls_last and nulls_first; accepted: one of them");
  EXPECT_EQ(Error("join.inner keys=i64:nullequal"),
            "nullequal needs nullable: i64:nullequal; accepted: i64:nullable:nullequal");
}

TEST(SpecErrors, AnyBytesAreShownOnOneLine) {
  EXPECT_EQ(Error(std::string_view("join.inner keys=\0\n\xff", 19)),
            "unknown column type: \\x00; accepted: " + std::string(kAllButRowId) + ", dictionary");
  EXPECT_EQ(Error("j\xc3\xb6in"), "unknown operator: j\\xc3\\xb6in; accepted: " + std::string(kAllOperators));
  EXPECT_EQ(Error(std::string(100, 'x')),
            "unknown operator: " + std::string(80, 'x') + "..; accepted: " + kAllOperators);
}

// ---- specs that were filled by a caller ----

TEST(SpecValidation, KeysAndFlags) {
  JoinSpec spec;
  EXPECT_EQ(ValidationError(spec), "number of keys out of range: 0; accepted: 1 to 16");
  spec.keys.resize(1);
  EXPECT_EQ(ValidationError(spec), "no error");
  spec.keys[0].null_equal = true;
  EXPECT_EQ(ValidationError(spec), "nullequal needs nullable: i64:nullequal; accepted: i64:nullable:nullequal");
  spec.keys[0] = {.type = {}, .descending = true};
  EXPECT_EQ(ValidationError(spec), "flag without meaning in a join's key: desc; accepted: nullable, nullequal");
  spec.keys[0] = {.type = {}, .nulls_first = true};
  EXPECT_EQ(ValidationError(spec), "flag without meaning in a join's key: nulls_first; accepted: nullable, nullequal");
  spec.keys[0] = {.type = {}, .out = true};
  EXPECT_EQ(ValidationError(spec), "flag without meaning in a join's key: out; accepted: nullable, nullequal");
  spec.keys[0] = {.type = {.id = TypeId::kRowId}};
  EXPECT_EQ(ValidationError(spec), "rowid is no key: keys[0]; accepted: rowid in build or probe");
}

TEST(SpecValidation, Enumerators) {
  const std::string types = std::to_string(AllTypes().size() - 1),
                    collations = std::to_string(AllCollations().size() - 1);
  JoinSpec spec = Parsed<JoinSpec>("join.inner keys=i64");
  spec.kind = static_cast<JoinKind>(77);
  EXPECT_EQ(ValidationError(spec), "join kind out of range: 77; accepted: 0 to 10");
  spec.kind = JoinKind::kInner;
  spec.build = {{.id = static_cast<TypeId>(77)}};
  EXPECT_EQ(ValidationError(spec), "column type number out of range in build[0]: 77; accepted: 0 to " + types);
  spec.build = {{.index = static_cast<TypeId>(77)}};
  EXPECT_EQ(ValidationError(spec), "index type number out of range in build[0]: 77; accepted: 0 to " + types);
  spec.build = {{.collation = static_cast<Collation>(77)}};
  EXPECT_EQ(ValidationError(spec), "collation number out of range in build[0]: 77; accepted: 0 to " + collations);
}

TEST(SpecValidation, Types) {
  JoinSpec spec = Parsed<JoinSpec>("join.inner keys=i64");
  const auto error = [&](const ColumnType& type) {
    spec.probe = {{}, type};
    return ValidationError(spec);
  };
  EXPECT_EQ(error({.id = TypeId::kFixedBinary}), "width out of range in probe[1]: 0; accepted: 1 to 65536");
  EXPECT_EQ(error({.id = TypeId::kFixedBinary, .width_bytes = 65537}),
            "width out of range in probe[1]: 65537; accepted: 1 to 65536");
  EXPECT_EQ(error({.id = TypeId::kI64, .width_bytes = 8}), "width out of range in probe[1]: 8; accepted: 0");
  EXPECT_EQ(error({.id = TypeId::kI64, .collation = kCollationAsciiBin}),
            "collation of a type without collations in probe[1]: i64(ascii_bin); accepted: binary");
  EXPECT_EQ(error({.id = TypeId::kUtf8, .collation = kCollationAsciiBin}),
            "collation of a payload column: utf8(ascii_bin); accepted: utf8");
  EXPECT_EQ(error({.id = TypeId::kUtf8, .is_dictionary = true, .index = TypeId::kF64}),
            "index type out of range in probe[1]: f64; accepted: i8, i16, i32, i64, u8, u16, u32, u64");
  EXPECT_EQ(error({.id = TypeId::kUtf8, .index = TypeId::kI8}),
            "index type out of range in probe[1]: i8; accepted: i32");
  EXPECT_EQ(error({.id = TypeId::kRowId, .nullable = true}), "rowid is never null: probe[1]; accepted: rowid");
  EXPECT_EQ(error({.id = TypeId::kRowId, .is_dictionary = true}),
            "value type that a dictionary cannot have in probe[1]: rowid; accepted: " + std::string(kAllButRowId));
}

TEST(SpecValidation, TextThatWouldNotParseAgain) {
  JoinSpec spec = Parsed<JoinSpec>("join.inner keys=i64");
  spec.build.assign(1024, {.id = TypeId::kFixedBinary, .is_dictionary = true, .width_bytes = 65536, .nullable = true});
  spec.probe = spec.build;
  EXPECT_EQ(ValidationError(spec), "kernel spec too long: 92191 bytes; accepted: up to 65536");
}

// ---- random ----

ResidualSpec RandomResidual(Random* random) {
  ResidualSpec residual;
  do residual.type.id = AllTypes()[random->Below(AllTypes().size())].id;
  while (IsVariable(RowOf(residual.type.id).storage) || residual.type.id == TypeId::kFixedBinary ||
         residual.type.id == TypeId::kRowId);
  residual.type.nullable = random->Below(2) == 0;
  residual.op = static_cast<Comparison>(random->Below(6));
  return residual;
}

// The kinds with three-valued results take one key and no residual (or, in a mark join, one without nullable columns).
JoinSpec RandomSpec(Random* random) {
  JoinSpec spec;
  spec.kind = static_cast<JoinKind>(random->Below(AllJoinKinds().size()));
  const JoinKindRow& kind = RowOf(spec.kind);
  const bool one_key = kind.id == JoinKind::kAntiNullAware || kind.id == JoinKind::kMark;
  spec.keys.resize(one_key ? 1 : 1 + random->Below(kMaxKeys));
  for (KeySpec& key : spec.keys) {
    key.type = RandomKeyType(random);
    key.null_equal = key.type.nullable && random->Below(2) == 0;
  }
  if (kind.has_build_columns()) spec.build.resize(random->Below(8));
  if (kind.has_probe_columns()) spec.probe.resize(random->Below(8));
  for (std::vector<ColumnType>* payload : {&spec.build, &spec.probe})
    for (ColumnType& type : *payload) type = RandomPayloadType(random);
  if (!one_key) spec.residual.resize(random->Below(4));
  for (ResidualSpec& residual : spec.residual) residual = RandomResidual(random);
  return spec;
}

TEST(SpecRandom, ParseIsTheInverseOfPrint) { ExpectParseInvertsPrint(2000, RandomSpec); }

TEST(SpecRandom, DamagedTextsAreAnswered) { ExpectDamageIsAnswered(5000, "(),:= \t\n0x", RandomSpec); }

}  // namespace
}  // namespace quern
