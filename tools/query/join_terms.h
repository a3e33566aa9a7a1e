// SPDX-License-Identifier: Apache-2.0
// The terms of a join's `on`: which are keys, which compare the rows of a pair, and which test it behind the join.
#ifndef QUERN_TOOLS_QUERY_JOIN_TERMS_H_
#define QUERN_TOOLS_QUERY_JOIN_TERMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/join_spec.h"
#include "tools/frontend/expression_text.h"
#include "tools/query/flow.h"
#include "tools/query/query_text.h"

namespace quern::query {

struct JoinTerms {
  std::vector<KeySpec> keys;
  std::vector<ResidualSpec> residual;
  std::vector<uint32_t> probe_keys, build_keys, probe_residual, build_residual;  // columns of these
  std::vector<std::string> same_names;           // of keys whose columns have one name: they come out once
  std::vector<cli::ExpressionText> behind_join;  // conditions on columns of both sides
};

// Appends the maps that compute sides of terms to both flows. *Errors*: InvalidArgument: unknown columns, types that do
// not compare, no key, and conditions on both sides where the join is not inner.
absl::StatusOr<JoinTerms> AddJoinTerms(const QueryStep& step, Flow* probe, Flow* build);

}  // namespace quern::query

#endif  // QUERN_TOOLS_QUERY_JOIN_TERMS_H_
