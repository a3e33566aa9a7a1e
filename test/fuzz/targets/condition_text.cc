// SPDX-License-Identifier: Apache-2.0
// The grammars of the command line and the Python package: each text is read as a condition, as a list of aggregates,
// of keys, of names, and so on. A name survives being quoted.
#include <string>
#include <string_view>
#include <vector>

#include "test/fuzz/targets/fuzz_target.h"
#include "tools/frontend/aggregate_text.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/join_text.h"
#include "tools/frontend/sort_text.h"
#include "tools/frontend/where_text.h"

namespace {

using quern::fuzz::Require;

template <class Result>
void Check(const absl::StatusOr<Result>& result) {
  if (!result.ok()) quern::fuzz::RequireRefusal(result.status());
}

void CheckQuotedName(const std::string& name) {
  const std::string quoted = quern::cli::QuoteName(name);
  const absl::StatusOr<std::vector<std::string>> names = quern::cli::ParsePlainNames("--select", quoted);
  Require(names.ok() && names->size() == 1 && names->front() == name, "a quoted name is the name", quoted);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Check(quern::cli::ParseWhere("--where", text));
  Check(quern::cli::ParseAllWheres("--filter", {std::string(text), std::string(text)}));
  Check(quern::cli::ParseAggregates("--agg", text));
  Check(quern::cli::ParseSortKeys("--by", text));
  Check(quern::cli::ParseWindows("--window", text));
  Check(quern::cli::ParseKeys("--by", text));
  Check(quern::cli::ParseKeyPairs("--on", text));
  Check(quern::cli::ParseComparisons("--residual", text));
  Check(quern::cli::ParseNames("--select", text));
  const absl::StatusOr<std::vector<std::string>> names = quern::cli::ParsePlainNames("--select", text);
  Check(names);
  if (names.ok())
    for (const std::string& name : *names) CheckQuotedName(name);
  return 0;
}
