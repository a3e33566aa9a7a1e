// SPDX-License-Identifier: Apache-2.0
// JSON by hand, because it is 40 lines and the object is flat:
//
//     {"spec":"join.inner keys=i64","plan":{"layout":"unchained",...},"engine":"jit","compile_ms":8.125,...}
//
// Milliseconds have three decimals, that is, microseconds; counts are whole numbers. In strings, quotes, backslashes
// and control characters are escaped; the rest passes unchanged, and all texts here are UTF-8.
#include "tools/quern/run/stats_json.h"

#include <cstdio>

namespace quern::cli {
namespace {

std::string Quoted(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      text += escaped;
    } else {
      text += c;
    }
  }
  return text + "\"";
}

}  // namespace

void JsonObject::Name(std::string_view name) { text_ += (text_.size() == 1 ? "" : ",") + Quoted(name) + ":"; }

JsonObject& JsonObject::Text(std::string_view name, std::string_view value) { return Json(name, Quoted(value)); }

JsonObject& JsonObject::Count(std::string_view name, uint64_t value) { return Json(name, std::to_string(value)); }

JsonObject& JsonObject::Milliseconds(std::string_view name, double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f", value);
  return Json(name, text);
}

JsonObject& JsonObject::Json(std::string_view name, std::string_view value) {
  Name(name);
  text_ += value;
  return *this;
}

JsonObject StatsJson(const RunStats& stats) {
  JsonObject object;
  object.Text("spec", stats.spec).Json("plan", stats.plan_json).Text("engine", stats.engine);
  object.Milliseconds("compile_ms", stats.compile_ms).Text("cache", stats.cache);
  object.Milliseconds("read_ms", stats.read_ms)
      .Milliseconds("run_ms", stats.run_ms)
      .Milliseconds("write_ms", stats.write_ms);
  object.Count("rows_in", stats.rows_in).Count("rows_out", stats.rows_out).Count("peak_bytes", stats.peak_bytes);
  object.Count("threads", stats.threads);
  return object;
}

}  // namespace quern::cli
