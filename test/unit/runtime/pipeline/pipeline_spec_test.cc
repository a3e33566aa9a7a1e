// SPDX-License-Identifier: Apache-2.0
// The spec of a pipeline: its text parses and prints to the same spec, and what is wrong with one is said in full.
#include "runtime/pipeline/pipeline_spec.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "test/unit/seed.h"

namespace quern {
namespace {

// The canonical text, or the error.
std::string Canonical(const std::string& text) {
  const absl::StatusOr<PipelineSpec> spec = ParsePipeline(text);
  if (!spec.ok()) return std::string(spec.status().message());
  const std::string printed = PrintPipeline(*spec);
  const absl::StatusOr<PipelineSpec> again = ParsePipeline(printed);
  EXPECT_TRUE(again.ok()) << again.status() << "\n" << printed;
  if (again.ok()) {
    EXPECT_EQ(*again, *spec) << printed;
  }
  return printed;
}

void ExpectSame(const std::string& text) { EXPECT_EQ(Canonical(text), text); }

// ---- texts ----------------------------------------------------------------------------------------------------------

TEST(PipelineSpec, TextsThatAreCanonical) {
  for (const char* text : {
           "pipeline | aggregate aggs=count_star []",
           "pipeline in=i64 | sort keys=i64 [$0]",
           "pipeline in=i32,i64,i64,i64 | filter i32 >= 20 [$0]"
           " | map in=i64,i64 out=multiply_checked($0,subtract_checked(100:i64,$1)) [$2, $3]"
           " | probe join.inner keys=i64 build=i64 probe=i64 [$1; $4] | aggregate keys=i64 aggs=sum(i64) [$1; $0]",
           "pipeline in=decimal128(15,2):nullable,decimal128,fixed_binary(7),dictionary(i32,utf8):nullable"
           " | aggregate keys=fixed_binary(7) aggs=max(decimal128:nullable) [$2; $0]",
           "pipeline in=i64 | reduce join.inner keys=i64 build=i64 [$0] | emit [$0, $0]",
           "pipeline in=i64,f64 | build join.left keys=i64 build=f64,rowid probe=i64 [$0; $1, $0]",
       }) {
    ExpectSame(text);
  }
}

TEST(PipelineSpec, BlanksMayStandAnywhereBetweenParts) {
  EXPECT_EQ(Canonical("  pipeline \t in=i64\n|\n filter   i64 > 1   [ $0 ]|emit[$0 ,\t$0 ; ]  \r\n"),
            "pipeline in=i64 | filter i64 > 1 [$0] | emit [$0, $0]");
  EXPECT_EQ(Canonical("pipeline in= | aggregate aggs=count_star [;]"), "pipeline | aggregate aggs=count_star []");
  EXPECT_EQ(Canonical("pipeline in=i64 | sort keys=i64 [$00]"), "pipeline in=i64 | sort keys=i64 [$0]");
}

TEST(PipelineSpec, StringsMayContainWhatDividesSteps) {
  ExpectSame("pipeline in=utf8 | filter utf8 = 'a | [b'' ]; $1' [$0] | emit [$0]");
  ExpectSame("pipeline in=utf8 | filter utf8 = '''' [$0] | emit [$0]");
  ExpectSame("pipeline in=utf8 | filter utf8 in ('|', '[', ']', '''|') [$0] | emit [$0]");
  ExpectSame("pipeline in=utf8 | map in=utf8 out=concat($0,'|[;]''':utf8) [$0] | emit [$1]");
  ExpectSame("pipeline in=utf8 | aggregate aggs=string_agg(utf8,x'7c5b') [; $0]");
  EXPECT_EQ(Canonical("pipeline in=utf8 | filter utf8 = 'a | [$0] | emit [$0]"),
            "step of a pipeline without its columns: filter utf8 = 'a | [$0] | emit [$0]; accepted: [$K,$K,..; "
            "$P,$P,..] behind the spec, keys first");
}

TEST(PipelineSpec, FirstWordIsPipeline) {
  EXPECT_TRUE(IsPipelineText(" \n pipeline"));
  EXPECT_TRUE(IsPipelineText("pipeline\tin=i64"));
  for (const char* text : {"", " ", "pipelines", "pipeline|", "Pipeline", "sort pipeline"}) {
    EXPECT_FALSE(IsPipelineText(text)) << text;
  }
}

TEST(PipelineSpec, StepsOneByOne) {
  const absl::StatusOr<PipelineSpec> spec = ParsePipeline(
      "pipeline in=i64 | filter i64 > 1 [$0] | probe join.semi keys=i64 probe=i64 [$0; $0]"
      " | reduce join.semi keys=i64 probe=i64 [$0] | build join.semi keys=i64 [$0]");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(PrintPipelineStep(*spec, 0), "filter i64 > 1 [$0]");
  EXPECT_EQ(PrintPipelineStep(*spec, 1), "probe join.semi keys=i64 probe=i64 [$0; $0]");
  EXPECT_EQ(PrintPipelineStep(*spec, 2), "reduce join.semi keys=i64 probe=i64 [$0]");
  EXPECT_EQ(PrintPipelineStep(*spec, 3), "build join.semi keys=i64 [$0]");
}

// ---- random pipelines -----------------------------------------------------------------------------------------------

class RandomText {
 public:
  explicit RandomText(std::mt19937_64* random) : random_(random) {}

  std::string Make() {
    std::string text = "pipeline in=";
    for (uint64_t i = 1 + Draw(5); i != 0; --i) {
      types_.push_back(Draw(3) == 0 ? Drawn({"utf8:nullable", "decimal128(15,2)", "date32", "bool"})
                                    : Drawn(Numbers()));
      text += (types_.size() == 1 ? "" : ",") + types_.back();
    }
    types_.push_back("i64");
    text += ",i64";
    for (uint64_t i = Draw(6); i != 0; --i) text += Bar() + Step();
    return text + Bar() + End();
  }

 private:
  static std::vector<std::string> Numbers() { return {"i64", "i64:nullable"}; }
  uint64_t Draw(uint64_t n) { return (*random_)() % n; }
  std::string Drawn(const std::vector<std::string>& words) { return words[Draw(words.size())]; }
  std::string Blank() { return Drawn({"", " ", "  ", "\t", "\n"}); }
  std::string Bar() { return Blank() + "|" + Blank(); }
  uint32_t Column() { return static_cast<uint32_t>(Draw(types_.size())); }
  uint32_t Number() {
    for (uint32_t at = Column();; at = (at + 1) % static_cast<uint32_t>(types_.size()))
      if (types_[at].starts_with("i64")) return at;
  }
  std::string Listed(const std::vector<uint32_t>& numbers) {
    std::string text;
    for (const uint32_t number : numbers)
      text += (text.empty() ? "" : Blank() + "," + Blank()) + "$" + std::to_string(number);
    return text;
  }
  std::string Bracketed(const std::vector<uint32_t>& keys, const std::vector<uint32_t>& payload) {
    const bool has_semicolon = !payload.empty() || Draw(4) == 0;
    return Blank() + "[" + Blank() + Listed(keys) + Blank() + (has_semicolon ? ";" + Blank() + Listed(payload) : "") +
           Blank() + "]";
  }
  // As a reader of plain columns has it.
  static std::string Plain(const std::string& type) {
    return type.starts_with("decimal128") ? "decimal128" + (type.ends_with(":nullable") ? std::string(":nullable") : "")
                                          : type;
  }
  std::string Step() {
    const uint32_t column = Number();
    switch (Draw(4)) {
      case 0:
        return "filter " + types_[column] + Drawn({" > 5", " is not null", " in (1,2)"}) + Bracketed({column}, {});
      case 1: {
        const std::string text = "map in=" + types_[column] + " out=add($0,1:i64),coalesce($0,7:i64)";
        types_.push_back(types_[column]);
        types_.emplace_back("i64");
        return text + Bracketed({column}, {});
      }
      case 2: return "reduce join.inner keys=" + types_[column] + " build=utf8" + Bracketed({column}, {});
      default: return Probe(column);
    }
  }
  std::string Probe(uint32_t column) {
    const std::string kind = Drawn({"inner", "left", "right", "full", "semi", "mark", "right_anti"});
    const bool has_probe = kind != "right_anti", has_build = kind != "semi" && kind != "mark";
    std::vector<uint32_t> payload;
    std::vector<std::string> types;
    std::string text = "probe join." + kind + " keys=" + types_[column] + (has_build ? " build=i64" : "");
    if (has_probe) {
      payload.push_back(Number());
      for (uint64_t i = Draw(3); i != 0; --i) payload.push_back(Column());
      for (const uint32_t number : payload) {
        text += (types.empty() ? " probe=" : ",") + Plain(types_[number]);
        const bool is_nulled = (kind == "right" || kind == "full") && !types_[number].ends_with(":nullable");
        types.push_back(types_[number] + (is_nulled ? ":nullable" : ""));
      }
    }
    if (kind == "mark") types.emplace_back("bool");
    if (kind == "mark" && types_[column].ends_with(":nullable")) types.back() += ":nullable";
    if (has_build) types.emplace_back(kind == "left" || kind == "full" ? "i64:nullable" : "i64");
    text += Bracketed({column}, payload);
    types_ = std::move(types);
    return text;
  }
  std::string End() {
    const uint32_t key = Number(), column = Column();
    const std::string payload = Plain(types_[column]);
    switch (Draw(3)) {
      case 0:
        return "aggregate keys=" + types_[key] + " aggs=count(" + payload + "),count_star" + Bracketed({key}, {column});
      case 1:
        return "sort keys=" + types_[key] + ":desc:out payload=" + payload + ",rowid" + Bracketed({key}, {column, key});
      default:
        return "build join.left keys=" + types_[key] + " build=" + payload + " probe=i64" + Bracketed({key}, {column});
    }
  }

  std::mt19937_64* const random_;
  std::vector<std::string> types_;
};

TEST(PipelineSpec, RandomTextsPrintAndParse) {
  std::mt19937_64 random(test::SeedOfTest());
  for (int i = 0; i < 2000; ++i) {
    const std::string text = RandomText(&random).Make();
    const absl::StatusOr<PipelineSpec> spec = ParsePipeline(text);
    ASSERT_TRUE(spec.ok()) << spec.status() << "\n" << text;
    const std::string printed = PrintPipeline(*spec);
    EXPECT_EQ(printed.find('\n'), std::string::npos);
    const absl::StatusOr<PipelineSpec> again = ParsePipeline(printed);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
    ASSERT_EQ(*again, *spec) << printed;
    ASSERT_EQ(PrintPipeline(*again), printed);
  }
}

// A text that is cut or changed anywhere is refused or parses: it never ends the process.
TEST(PipelineSpec, TextsThatAreDamaged) {
  std::mt19937_64 random(test::SeedOfTest());
  const std::string characters = "|[];$,' 019()=:ab";
  for (int i = 0; i < 4000; ++i) {
    std::string text = RandomText(&random).Make();
    for (uint64_t changes = 1 + random() % 3; changes != 0; --changes) {
      const size_t at = random() % text.size();
      if (random() % 3 == 0) text.erase(at, 1);
      else text[at] = characters[random() % characters.size()];
    }
    const absl::StatusOr<PipelineSpec> spec = ParsePipeline(text);
    if (spec.ok()) Canonical(text);
    else EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

// ---- errors ---------------------------------------------------------------------------------------------------------

struct Refusal {
  const char* text;
  const char* error;
};

TEST(PipelineSpec, ErrorsOfTheText) {
  const char* const no_columns = "accepted: [$K,$K,..; $P,$P,..] behind the spec, keys first";
  const std::string nothing = std::string("step of a pipeline without its columns: nothing; ") + no_columns;
  const std::string three = std::string("columns of a pipeline's step: [$0;$0;$0]; ") + no_columns;
  const std::string missing = std::string("step of a pipeline without its columns: sort keys=i64; ") + no_columns;
  const Refusal refusals[] = {
      {"", "pipeline spec: \"\"; accepted: pipeline in=.. | STEP | .."},
      {"sort keys=i64", "pipeline spec: sort keys=i64; accepted: pipeline in=.. | STEP | .."},
      {"pipeline", "end of a pipeline: nothing; accepted: aggregate, sort, build, emit"},
      {"pipeline in=i64", "end of a pipeline: nothing; accepted: aggregate, sort, build, emit"},
      {"pipeline in=i64 | sort keys=i64 [$0] |", "end of a pipeline: nothing; accepted: aggregate, sort, build, emit"},
      {"pipeline i64 | emit [$0]", "columns of a pipeline: i64; accepted: in=TYPE,TYPE,.."},
      {"pipeline in=i64, i64 | emit [$0]", "columns of a pipeline: in=i64, i64; accepted: in=TYPE,TYPE,.."},
      {"pipeline in=rowid | sort keys=u64 [$0]", "type of a pipeline's column: rowid; accepted: types of columns"},
      {"pipeline in=decimal128(40,2) | sort keys=i64 [$0]",
       "decimal type: decimal128(40,2); accepted: decimal128(DIGITS,SCALE), 1 to 38 digits, a scale from 0 to the "
       "digits"},
      {"pipeline in=utf8(utf8mb4_bin) | sort keys=utf8 [$0]",
       "collation of a payload column: utf8(utf8mb4_bin); accepted: utf8"},
      {"pipeline in=i64 | sort keys=i64", missing.c_str()},
      {"pipeline in=i64 | | sort keys=i64 [$0]", nothing.c_str()},
      {"pipeline in=i64 | filter i64 > 1 [$0] |", "end of a pipeline: nothing; accepted: aggregate, sort, build, emit"},
      {"pipeline in=i64 | sort keys=i64 [$0;$0;$0]", three.c_str()},
      {"pipeline in=i64 | sort keys=i64 [0]", "column of a pipeline: 0; accepted: $0, $1, .."},
      {"pipeline in=i64 | sort keys=i64 [$0,]", "column of a pipeline: $0,; accepted: $0, $1, .."},
      {"pipeline in=i64 | sort keys=i64 [$x]", "column of a pipeline: $x; accepted: $0, $1, .."},
      {"pipeline in=i64 | sort keys=i64 [$-1]", "column of a pipeline: $-1; accepted: $0, $1, .."},
      {"pipeline in=i64 | sort keys=i64 [$+0]", "column of a pipeline: $+0; accepted: $0, $1, .."},
      {"pipeline in=i64 | sort keys=i64 [$4294967296]", "column of a pipeline: $4294967296; accepted: $0, $1, .."},
      {"pipeline in=i64 | sort keys=i64 [$0]]", "column of a pipeline: $0]; accepted: $0, $1, .."},
      {"pipeline in=i64 | sort keys=i64 [$0] | sort keys=i64 [$0]",
       "step of a pipeline in front of others: sort; accepted: filter, map, probe, reduce"},
      {"pipeline in=i64 | join.inner keys=i64 [$0] | sort keys=i64 [$0]",
       "step of a pipeline in front of others: join.inner; accepted: filter, map, probe, reduce"},
      {"pipeline in=i64 | filter i64 > 1 [$0]",
       "last step of a pipeline: filter; accepted: aggregate, sort, build, emit"},
      {"pipeline in=i64 | reduce join.inner keys=i64 [$0]",
       "last step of a pipeline: reduce; accepted: aggregate, sort, build, emit"},
      {"pipeline in=i64 | set.union keys=i64 [$0]",
       "step of a pipeline: set.union; accepted: filter, map, probe, reduce; at its end aggregate, sort, build, emit"},
      {"pipeline in=i64 | [$0]",
       "step of a pipeline: \"\"; accepted: filter, map, probe, reduce; at its end aggregate, sort, build, emit"},
      {"pipeline in=i64 | emit [$0]", "emit of a pipeline without steps: emit; accepted: filter, map, probe, reduce"},
      {"pipeline in=i64 | filter i64 > 1 [$0] | emit i64 [$0]",
       "emit with a spec or a payload: emit i64; accepted: emit [$0,$1,..]"},
      {"pipeline in=i64 | filter i64 > 1 [$0] | emit [$0; $0]",
       "emit with a spec or a payload: emit; accepted: emit [$0,$1,..]"},
      {"pipeline in=i64 | sort keys=i64 [[$0]",
       "unknown field: [; accepted: keys, payload, limit, stable, partition, window"},
  };
  for (const Refusal& refusal : refusals) EXPECT_EQ(Canonical(refusal.text), refusal.error) << refusal.text;
}

TEST(PipelineSpec, ErrorsOfColumns) {
  const auto error_of = [](const std::string& in, const std::string& steps) {
    return Canonical("pipeline in=" + in + " | " + steps);
  };
  EXPECT_EQ(error_of("i64", "filter i64 > 1 [$1] | emit [$0]"), "columns of step 0[0]: column 1; accepted: 0 to 0");
  EXPECT_EQ(error_of("f64", "filter i64 > 1 [$0] | emit [$0]"), "columns of step 0[0]: column 0 of f64; accepted: i64");
  EXPECT_EQ(error_of("i64:nullable", "filter i64 > 1 [$0] | emit [$0]"),
            "columns of step 0[0]: column 0 of i64:nullable; accepted: i64");
  EXPECT_EQ(error_of("i64", "filter i64 > 1 [$0, $0] | emit [$0]"), "number of columns of step 0: 2; accepted: 1");
  EXPECT_EQ(error_of("i64", "filter i64 > 1 [$0; $0] | emit [$0]"), "number of payload of step 0: 1; accepted: 0");
  EXPECT_EQ(error_of("i64", "map in=i64 out=negate($0) [$0; $7] | emit [$0]"),
            "number of payload of step 0: 1; accepted: 0");
  EXPECT_EQ(error_of("i64", "filter i64 > 1 [$0] | emit [$1]"),
            "columns that are emitted[0]: column 1; accepted: 0 to 0");
  EXPECT_EQ(error_of("i64", "probe join.inner keys=i64 build=i64 probe=i64 [$0] | emit [$0]"),
            "number of payload of step 0: 0; accepted: 1");
  EXPECT_EQ(error_of("i64", "reduce join.inner keys=i64 build=i64 [$0; $0] | emit [$0]"),
            "number of payload of step 0: 1; accepted: 0");
  EXPECT_EQ(error_of("i64,i32", "sort keys=i64 payload=i64 [$0; $1]"),
            "payload of the end[0]: column 1 of i32; accepted: i64");
  EXPECT_EQ(error_of("i64,i32", "sort keys=i64 [$1]"), "keys of the end[0]: column 1 of i32; accepted: i64");
  EXPECT_EQ(error_of("i64", "probe join.right_anti keys=i64 [$0] | sort keys=i64 [$0]"),
            "keys of the end[0]: column 0; accepted: none");
}

TEST(PipelineSpec, Limits) {
  const std::string filter = " | filter i64 > 1 [$0]", sort = " | sort keys=i64 [$0]";
  std::string most = "pipeline in=i64";
  for (size_t i = 0; i + 1 < kMaxPipelineSteps; ++i) most += filter;
  EXPECT_TRUE(ParsePipeline(most + sort).ok());
  EXPECT_EQ(Canonical(most + filter + sort), "number of steps of a pipeline out of range: 257; accepted: 1 to 256");
  std::string columns = "pipeline in=i64";
  for (size_t i = 1; i < kMaxPipelineColumns; ++i) columns += ",i64";
  EXPECT_TRUE(ParsePipeline(columns + sort).ok());
  EXPECT_EQ(Canonical(columns + ",i64" + sort),
            "number of columns of a pipeline out of range: 1025; accepted: 0 to 1024");
  const std::string text = "pipeline in=i64" + sort;
  EXPECT_TRUE(ParsePipeline(text + std::string(kMaxPipelineTextBytes - text.size(), ' ')).ok());
  EXPECT_EQ(Canonical(text + std::string(kMaxPipelineTextBytes - text.size() + 1, ' ')),
            "pipeline spec too long: 4194305 bytes; accepted: up to 4194304");
}

// ---- types ----------------------------------------------------------------------------------------------------------

// Digits and scale pass on where they are known: of the source, of maps, of a probe's payload.
TEST(PipelineSpec, DecimalsWithDigits) {
  const auto result = [](const std::string& in, const std::string& steps) {
    const std::string text = "pipeline in=" + in + " | " + steps + " | emit [$0]", printed = Canonical(text);
    return printed == text ? "" : printed;
  };
  EXPECT_EQ(result("decimal128(15,2)", "map in=decimal128(15,2) out=negate($0) [$0]"), "");
  EXPECT_EQ(result("decimal128(15,2)", "map in=decimal128(18,2) out=negate($0) [$0]"), "");
  EXPECT_EQ(result("decimal128", "map in=decimal128(15,2) out=negate($0) [$0]"), "");
  EXPECT_EQ(result("decimal128(15,2)", "map in=decimal128(15,3) out=negate($0) [$0]"),
            "columns of step 0[0]: column 0 of decimal128(15,2); accepted: decimal128(15,3)");
  EXPECT_EQ(result("decimal128(15,2)", "map in=decimal128(12,2) out=negate($0) [$0]"),
            "columns of step 0[0]: column 0 of decimal128(15,2); accepted: decimal128(12,2)");
  EXPECT_EQ(result("decimal128(15,2)",
                   "map in=decimal128(15,2) out=multiply($0,$0) [$0]"
                   " | map in=decimal128(30,2) out=negate($0) [$1]"),
            "columns of step 1[0]: column 1 of decimal128(30,4); accepted: decimal128(30,2)");
  const std::string probe = " build=decimal128 probe=decimal128 [$0; $1] | ";
  EXPECT_EQ(result("i64,decimal128(15,2)",
                   "probe join.inner keys=i64" + probe + "map in=decimal128(15,3) out=negate($0) [$0]"),
            "columns of step 1[0]: column 0 of decimal128(15,2); accepted: decimal128(15,3)");
  EXPECT_EQ(result("i64,decimal128(15,2)",
                   "probe join.right keys=i64" + probe + "map in=decimal128(15,3):nullable out=negate($0) [$0]"),
            "columns of step 1[0]: column 0 of decimal128(15,2):nullable; accepted: decimal128(15,3):nullable");
  // Those of a table are not known.
  EXPECT_EQ(result("i64,decimal128(15,2)",
                   "probe join.inner keys=i64" + probe + "map in=decimal128(15,3) out=negate($0) [$1]"),
            "");
  EXPECT_EQ(Canonical("pipeline in=decimal128(15,2) | aggregate in=decimal128(15,3) aggs=sum($0) [; $0]"),
            "payload of the end[0]: column 0 of decimal128(15,2); accepted: decimal128(15,3)");
}

// A row id takes the place of any column, and has no digits of that.
TEST(PipelineSpec, RowIdsAreNumbersBehindAProbe) {
  ExpectSame(
      "pipeline in=i64,utf8 | probe join.inner keys=i64 build=rowid probe=rowid [$0; $1]"
      " | sort keys=u64:out payload=u64,rowid [$0; $1, $0]");
  EXPECT_EQ(Canonical("pipeline in=i64 | sort keys=i64 payload=rowid [$0; $1]"),
            "payload of the end[0]: column 1; accepted: 0 to 0");
  const absl::StatusOr<PipelineSpec> spec = ParsePipeline(
      "pipeline in=i64,decimal128(15,2) | probe join.inner keys=i64 build=i64 probe=rowid,decimal128 [$0; $1, $1]"
      " | emit [$0]");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto columns = ColumnsOfPipeline(*spec);
  ASSERT_TRUE(columns.ok());
  EXPECT_EQ(columns->back()[0].digits, 0);
  EXPECT_EQ(columns->back()[1].digits, 15);
}

TEST(PipelineSpec, ColumnsOfResidualsStandBehindThePayload) {
  const std::string join = "join.inner keys=i64 build=i64 probe=i64 residual=i32:lt";
  ExpectSame("pipeline in=i64,i32 | probe " + join + " [$0; $0, $1] | emit [$1]");
  ExpectSame("pipeline in=i64,i32 | build " + join + " [$0; $0, $1]");
  EXPECT_EQ(Canonical("pipeline in=i64,i32 | build " + join + " [$0; $0]"),
            "number of payload of the end: 1; accepted: 2");
  EXPECT_EQ(Canonical("pipeline in=i64,i32 | probe " + join + " [$0; $0, $0] | emit [$1]"),
            "payload of step 0[1]: column 0 of i64; accepted: i32");
  ExpectSame("pipeline in=i64,i32 | reduce " + join + " [$0] | emit [$1]");
}

TEST(PipelineSpec, ColumnsInFrontOfEachStep) {
  const absl::StatusOr<PipelineSpec> spec = ParsePipeline(
      "pipeline in=i64,utf8 | filter i64 > 1 [$0] | map in=i64 out=add($0,1:i64) [$0]"
      " | reduce join.inner keys=i64 build=f64 [$0] | probe join.full keys=i64 build=f64 probe=utf8 [$2; $1]"
      " | probe join.mark keys=f64:nullable probe=utf8:nullable [$1; $0] | emit [$1]");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto columns = ColumnsOfPipeline(*spec);
  ASSERT_TRUE(columns.ok());
  std::string text;
  for (const std::vector<PipelineColumn>& of_step : *columns) {
    for (const PipelineColumn& column : of_step) text += PrintPipelineColumn(column) + " ";
    text += "/ ";
  }
  EXPECT_EQ(text,
            "i64 utf8 / i64 utf8 / i64 utf8 i64 / i64 utf8 i64 / utf8:nullable f64:nullable / utf8:nullable "
            "bool:nullable / ");
}

}  // namespace
}  // namespace quern
