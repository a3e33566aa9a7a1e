// SPDX-License-Identifier: Apache-2.0
// --stats: what a run did, as one JSON object on one line.
#ifndef QUERN_TOOLS_RUN_STATS_JSON_H_
#define QUERN_TOOLS_RUN_STATS_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace quern::cli {

// An object under construction. Members stand in the order of the calls.
class JsonObject {
 public:
  JsonObject& Text(std::string_view name, std::string_view value);
  JsonObject& Count(std::string_view name, uint64_t value);
  JsonObject& Milliseconds(std::string_view name, double value);
  JsonObject& Json(std::string_view name, std::string_view value);  // value is JSON already
  std::string Finish() const { return text_ + "}"; }

 private:
  void Name(std::string_view name);
  std::string text_ = "{";
};

// The fields that are common to all commands that run a kernel.
struct RunStats {
  std::string spec;
  std::string plan_json;
  std::string engine;
  double compile_ms = 0;
  std::string cache;
  double read_ms = 0;  // files to columns in memory, of the kernel's types
  double run_ms = 0;   // the operator alone
  double write_ms = 0;
  uint64_t rows_in = 0;
  uint64_t rows_out = 0;
  uint64_t peak_bytes = 0;
  uint32_t threads = 1;
};

JsonObject StatsJson(const RunStats& stats);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_RUN_STATS_JSON_H_
