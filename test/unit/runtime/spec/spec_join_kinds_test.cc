// SPDX-License-Identifier: Apache-2.0
// What join kinds and residual predicates add to specs: their texts, the result columns, and every message in full.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/spec/spec.h"
#include "test/unit/runtime/spec/spec_texts.h"

namespace quern {
namespace {

using spec_texts::Error;
using spec_texts::kAllOperators;
using spec_texts::Parsed;
using spec_texts::Repeated;
using spec_texts::Text;
using spec_texts::Types;

std::string OutputOf(std::string_view text) { return Types(JoinOutputTypes(Parsed<JoinSpec>(text))); }

constexpr char kResidualTypes[] =
    "bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, decimal32, decimal64, decimal128, date32, date64, time32, "
    "time64, timestamp, "
    "duration";

// ---- kinds ----

TEST(JoinKinds, TheTableAnswersForItself) {
  ASSERT_EQ(AllJoinKinds().size(), 11u);
  for (size_t i = 0; i < AllJoinKinds().size(); ++i) {
    const JoinKindRow& row = AllJoinKinds()[i];
    EXPECT_EQ(static_cast<size_t>(row.id), i);
    EXPECT_EQ(&RowOf(row.id), &row);
    EXPECT_TRUE(row.has_probe_columns() || row.has_build_columns()) << row.text;
  }
  EXPECT_TRUE(RowOf(JoinKind::kFull).nulls_probe_columns() && RowOf(JoinKind::kFull).nulls_build_columns());
  EXPECT_TRUE(RowOf(JoinKind::kRightSemi).flags_matched_rows() && !RowOf(JoinKind::kSingle).flags_matched_rows());
}

TEST(JoinKinds, EveryKindParsesAndPrints) {
  for (const JoinKindRow& row : AllJoinKinds()) {
    const std::string text = "join." + std::string(row.text) + " keys=i64:nullable" +
                             (row.has_build_columns() ? " build=f64" : "") +
                             (row.has_probe_columns() ? " probe=i8" : "");
    EXPECT_EQ(Parsed<JoinSpec>(text).kind, row.id);
    EXPECT_EQ(PrintSpec(Parsed<JoinSpec>(text)), text);
  }
}

TEST(JoinKinds, NearestOperatorIsNamed) {
  const std::string all = "accepted: " + std::string(kAllOperators);
  EXPECT_EQ(Error("join.rihgt keys=i64"), "unknown operator: join.rihgt; did you mean join.right? " + all);
  EXPECT_EQ(Error("join.rightsemi keys=i64"), "unknown operator: join.rightsemi; did you mean join.right_semi? " + all);
  EXPECT_EQ(Error("join. keys=i64"), "unknown operator: join.; " + all);
  EXPECT_EQ(Error("JOIN.LEFT keys=i64"), "unknown operator: JOIN.LEFT; did you mean join.left? " + all);
}

TEST(JoinKinds, OutputColumns) {
  EXPECT_EQ(OutputOf("join.inner keys=i64:nullable build=f64,utf8:nullable probe=i32,rowid"),
            "i32 rowid f64 utf8:nullable");
  EXPECT_EQ(OutputOf("join.left keys=i64 build=f64,rowid probe=i32,rowid"), "i32 rowid f64:nullable rowid:nullable");
  EXPECT_EQ(OutputOf("join.single keys=i64 build=f64 probe=i32"), "i32 f64:nullable");
  EXPECT_EQ(OutputOf("join.right keys=i64 build=f64,rowid probe=i32,rowid"), "i32:nullable rowid:nullable f64 rowid");
  EXPECT_EQ(OutputOf("join.full keys=i64 build=f64 probe=i32,rowid"), "i32:nullable rowid:nullable f64:nullable");
  for (const char* kind : {"semi", "anti", "anti_null_aware"}) {
    EXPECT_EQ(OutputOf("join." + std::string(kind) + " keys=i64:nullable probe=i32,u8:nullable"), "i32 u8:nullable");
  }
  for (const char* kind : {"right_semi", "right_anti"}) {
    EXPECT_EQ(OutputOf("join." + std::string(kind) + " keys=i64:nullable build=rowid,u8"), "rowid u8");
  }
  EXPECT_EQ(OutputOf("join.left keys=i64 build=dictionary(u8,utf8) probe=dictionary(i16,f64)"), "f64 utf8:nullable");
  EXPECT_EQ(OutputOf("join.inner keys=i64 residual=i8:lt"), "");
}

TEST(JoinKinds, TheMarkIsNullableWhereAnAnswerMayBeUnknown) {
  EXPECT_EQ(OutputOf("join.mark keys=i64 probe=i32,utf8"), "i32 utf8 bool");
  EXPECT_EQ(OutputOf("join.mark keys=i64:nullable probe=i32"), "i32 bool:nullable");
  EXPECT_EQ(OutputOf("join.mark keys=i64:nullable:nullequal probe=i32"), "i32 bool");
  EXPECT_EQ(OutputOf("join.mark keys=i64,utf8:nullable:nullequal residual=i8:nullable:lt"), "bool");
}

TEST(JoinKinds, PayloadOfTheSideThatStaysInside) {
  for (const char* kind : {"semi", "anti", "anti_null_aware", "mark"}) {
    EXPECT_EQ(Error("join." + std::string(kind) + " keys=i64 build=f64,rowid probe=i8"),
              "payload of a side that does not come out of join." + std::string(kind) +
                  ": build=f64,rowid; accepted: probe=TYPE,TYPE,..");
  }
  for (const char* kind : {"right_semi", "right_anti"}) {
    EXPECT_EQ(Error("join." + std::string(kind) + " keys=i64 build=f64 probe=i8:nullable"),
              "payload of a side that does not come out of join." + std::string(kind) +
                  ": probe=i8:nullable; accepted: build=TYPE,TYPE,..");
  }
  EXPECT_EQ(Error("join.semi keys=i64 build="), "no error");
}

TEST(JoinKinds, UnknownAnswersHangOnOneKey) {
  const std::string otherwise = ", or keys without nullable or with nullequal";
  EXPECT_EQ(Error("join.anti_null_aware keys=i64,i64"), "number of keys of join.anti_null_aware: 2; accepted: 1");
  EXPECT_EQ(Error("join.anti_null_aware keys=i64 residual=i64:lt"),
            "residual of join.anti_null_aware: residual=i64:lt; accepted: none");
  EXPECT_EQ(Error("join.mark keys=i64,i8:nullable"),
            "number of keys of join.mark with a key that may be null: 2; accepted: 1" + otherwise);
  EXPECT_EQ(Error("join.mark keys=i64:nullable residual=i8:nullable:eq"),
            "residual of join.mark with a key that may be null: residual=i8:nullable:eq; accepted: none" + otherwise);
  EXPECT_EQ(Error("join.mark keys=i64,i8:nullable:nullequal residual=i8:eq"), "no error");
}

// ---- residuals ----

TEST(Residual, EveryTypeAndComparison) {
  const JoinSpec spec = Parsed<JoinSpec>("join.inner keys=i64 residual=i64:lt,f64:nullable:ge");
  ASSERT_EQ(spec.residual.size(), 2u);
  EXPECT_EQ(spec.residual[0], (ResidualSpec{{.id = TypeId::kI64}, Comparison::kLess}));
  EXPECT_EQ(spec.residual[1], (ResidualSpec{{.id = TypeId::kF64, .nullable = true}, Comparison::kGreaterEqual}));
  std::string types = std::string(kResidualTypes) + ", ";
  for (const char* op : {"lt", "le", "gt", "ge", "ne", "eq"}) {
    for (size_t begin = 0, end; (end = types.find(", ", begin)) != std::string::npos; begin = end + 2) {
      const std::string text = "join.full keys=i64 residual=" + types.substr(begin, end - begin) + ":nullable:" + op;
      EXPECT_EQ(PrintSpec(Parsed<JoinSpec>(text)), text);
    }
  }
}

TEST(Residual, FlagsInAnyOrder) {
  EXPECT_EQ(PrintSpec(Parsed<JoinSpec>("join.inner residual=time:ne:nullable keys=i64")),
            "join.inner keys=i64 residual=time64:nullable:ne");
  EXPECT_EQ(PrintSpec(Parsed<JoinSpec>("join.inner residual= keys=i64")), "join.inner keys=i64");
}

TEST(ResidualErrors, Types) {
  const std::string types = kResidualTypes;
  for (const char* type : {"utf8", "binary_view", "utf8(utf8mb4_bin)", "fixed_binary(8)", "dictionary(i32,i64)",
                           "rowid", "large_binary"}) {
    EXPECT_EQ(Error("join.inner keys=i64 residual=" + std::string(type) + ":lt"),
              "column type that a residual cannot have: " + std::string(type) + "; accepted: " + types);
  }
  EXPECT_EQ(Error("join.inner keys=i64 residual=i65:lt"),
            "unknown column type: i65; did you mean i64? accepted: " + types);
  EXPECT_EQ(Error("join.inner keys=i64 residual=:lt"), "missing column type: \"\"; accepted: " + types);
  EXPECT_EQ(Error("join.inner keys=i64 residual=i64(8):lt"), "type takes no parameter: i64(8); accepted: i64");
}

TEST(ResidualErrors, Comparisons) {
  EXPECT_EQ(Error("join.inner keys=i64 residual=i64:nullable"),
            "residual without a comparison: i64; accepted: TYPE[:nullable]:OP, OP one of lt, le, gt, ge, ne, eq");
  EXPECT_EQ(Error("join.inner keys=i64 residual=i64:lt:lt"), "flag given twice: lt; accepted: each flag once");
  EXPECT_EQ(Error("join.inner keys=i64 residual=i64:lt:ge"),
            "flags exclude each other: lt and ge; accepted: one of them");
  EXPECT_EQ(Error("join.inner keys=i64 residual=i64:less"),
            "unknown flag: less; accepted: nullable, lt, le, gt, ge, ne, eq");
  EXPECT_EQ(Error("join.inner keys=i64 residual=i64:lt:nullequal"),
            "flag without meaning in a residual: nullequal; accepted: nullable, lt, le, gt, ge, ne, eq");
  EXPECT_EQ(Error("join.inner keys=i64:lt"), "flag without meaning in a join's key: lt; accepted: nullable, nullequal");
  EXPECT_EQ(Error("join.inner keys=i64 probe=i64:lt"), "flag without meaning in payload: lt; accepted: nullable");
  EXPECT_EQ(
      Text(ParseKey("i64:lt").status()),
      "flag without meaning in a key: lt; accepted: nullable, nullequal, desc, asc, nulls_first, nulls_last, out");
}

TEST(ResidualErrors, Counts) {
  EXPECT_EQ(Error("join.inner keys=i64 residual=" + Repeated("i8:lt", 16)), "no error");
  EXPECT_EQ(Error("join.inner keys=i64 residual=" + Repeated("i8:lt", 17)),
            "number of residual columns out of range: 17; accepted: 0 to 16");
}

TEST(ResidualErrors, FilledByACaller) {
  JoinSpec spec = Parsed<JoinSpec>("join.inner keys=i64 residual=i64:lt");
  const auto error = [&](const ColumnType& type, int op) {
    spec.residual[0] = {type, static_cast<Comparison>(op)};
    return Text(ValidateSpec(spec));
  };
  EXPECT_EQ(error({}, 6), "comparison number out of range in residual[0]: 6; accepted: 0 to 5");
  EXPECT_EQ(error({.id = static_cast<TypeId>(77)}, 0),
            "column type number out of range in residual[0]: 77; accepted: 0 to 27");
  EXPECT_EQ(error({.width_bytes = 3}, 0), "width out of range in residual[0]: 3; accepted: 0");
  const std::string refused = "column type that a residual cannot have: ",
                    accepted = "; accepted: " + std::string(kResidualTypes);
  EXPECT_EQ(error({.id = TypeId::kUtf8}, 0), refused + "utf8" + accepted);
  EXPECT_EQ(error({.id = TypeId::kRowId}, 0), refused + "rowid" + accepted);
  EXPECT_EQ(error({.is_dictionary = true}, 0), refused + "dictionary(i32,i64)" + accepted);
}

}  // namespace
}  // namespace quern
