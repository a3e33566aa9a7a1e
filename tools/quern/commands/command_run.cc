// SPDX-License-Identifier: Apache-2.0
// quern run: a query of several steps, in the order of its text, in pipelines of kernels made for it.
//
//     $ cat top.quern
//     scan orders
//     filter qty > 1
//     aggregate sum(price * qty) as total by name
//     sort total desc limit 3
//     $ quern run top.quern --table orders=orders.csv
//     name  total
//     bob   12.00
//     1 row
//
// The steps are those of every command that runs (run_command.h). Here: read the command line and the query's text
// (tools/query/query_text.h); the rest is file_query.h.
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/query/file_query.h"
#include "tools/quern/run/arguments.h"
#include "tools/quern/run/run_command.h"

namespace quern::cli {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 20;

// The text of a file; "-" is standard input.
absl::StatusOr<std::string> TextOfFile(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::ifstream("/dev/stdin").rdbuf();
  } else {
    const std::ifstream file(path);
    if (!file) return DataError("cannot read file: " + path + "; accepted: a file with the text of a query, or -");
    text << file.rdbuf();
  }
  if (text.str().size() > kMaxTextBytes)
    return CommandError("query too long: " + std::to_string(text.str().size()) + " bytes; accepted: up to 1 MiB");
  return text.str();
}

absl::StatusOr<std::vector<QueryTableFile>> TablesOf(const std::vector<std::string>& texts) {
  std::vector<QueryTableFile> tables;
  for (const std::string& text : texts) {
    QUERN_ASSIGN_OR_RETURN(auto assignment, ParseAssignment("--table", text));
    QUERN_RETURN_IF_ERROR(FormatOfFile("--table", assignment.second).status());
    for (const QueryTableFile& table : tables)
      if (table.name == assignment.first)
        return CommandError("two tables of one name: " + table.name + "; accepted: different names");
    tables.push_back({std::move(assignment.first), std::move(assignment.second)});
  }
  return tables;
}

}  // namespace

absl::StatusOr<int> RunQuery(const std::vector<std::string>& words) {
  RunOptions options;
  std::string path;
  std::vector<std::string> table_texts;
  Arguments arguments(
      "run",
      "Runs a query over files. QUERY is a file of steps, one a line, in the order in which they run: scan, "
      "filter,\nselect, join, aggregate, sort, limit (docs/queries.md). Rows pass from step to step in "
      "the cache, without tables between\nthem.",
      "quern run q3.quern --table customer=customer.parquet --table orders=orders.parquet --table "
      "lineitem=lineitem.parquet");
  arguments.Positional("QUERY", &path, "file with the text of the query; - for standard input");
  arguments.Values("--table", &table_texts, "NAME=FILE",
                   "a table that the query scans or joins: .parquet, .csv or .arrow file, or a quoted pattern");
  options.AddTo(&arguments);
  QUERN_ASSIGN_OR_RETURN(const bool go_on, arguments.Parse(words));
  if (!go_on) return kExitOk;
  QUERN_RETURN_IF_ERROR(options.Check());
  QUERN_ASSIGN_OR_RETURN(std::vector<QueryTableFile> tables, TablesOf(table_texts));
  QUERN_ASSIGN_OR_RETURN(const std::string text, TextOfFile(path));
  absl::StatusOr<query::QueryText> query = query::QueryText::Parse(text);
  if (!query.ok()) return CommandError(path + ": " + std::string(query.status().message()));
  FileQuery job(*std::move(query), path, std::move(tables), options);
  return RunJob("run", words, options, &job);
}

}  // namespace quern::cli
