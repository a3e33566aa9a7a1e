// SPDX-License-Identifier: Apache-2.0
// Which columns the steps of a query mention, from its end to its beginning: what no later step mentions is neither
// read nor carried along.
#ifndef QUERN_TOOLS_QUERY_WANTED_NAMES_H_
#define QUERN_TOOLS_QUERY_WANTED_NAMES_H_

#include <set>
#include <string>
#include <vector>

#include "tools/frontend/expression_text.h"
#include "tools/query/query_text.h"

namespace quern::query {

// Names of columns in small letters, or all that there are.
struct WantedNames {
  bool all = false;
  std::set<std::string> names;

  bool Has(const std::string& name) const;
  void Add(const std::string& name);
  void Add(const WantedNames& other);
  void Add(const cli::ExpressionText& expression);  // the columns that it mentions
};

// Adds what the terms of a join want of both sides. Which columns a term mentions is known, but not of which side they
// are, where it is no comparison of two columns.
void AddJoinNames(const QueryStep& step, WantedNames* of_probe, WantedNames* of_build);

// By relation and step: what is wanted of the rows behind the step.
std::vector<std::vector<WantedNames>> FindWantedNames(const QueryText& text);

// What is wanted of a table.
WantedNames WantedOfTable(const QueryText& text, const std::string& table);

// The number of the relation that a step of relation `before` names; npos: it names a table.
size_t FindRelation(const QueryText& text, const std::string& name, size_t before);

}  // namespace quern::query

#endif  // QUERN_TOOLS_QUERY_WANTED_NAMES_H_
