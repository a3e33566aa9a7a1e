// SPDX-License-Identifier: Apache-2.0
// Facts of a file system as a table for people and as JSON. A measurement that was left out is a dash.
#include <algorithm>
#include <string>

#include "codegen/base/text_words.h"
#include "codegen/machine/device_facts.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr size_t kNameWidth = 10, kNumberWidth = 9;

std::string Padded(const std::string& text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string Size(uint64_t bytes) {
  return bytes >> 20 != 0 ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes >> 10) + " KiB";
}

// A line for each size of a block, with a number for each depth.
std::string Table(const DeviceFacts& facts, const std::string& title, bool cached, double DeviceFact::* number) {
  std::vector<uint64_t> sizes;
  std::vector<uint32_t> depths;
  for (const DeviceFact& fact : facts.facts) {
    if (fact.cached != cached) continue;
    sizes.push_back(fact.block_bytes);
    depths.push_back(fact.depth);
  }
  std::sort(depths.begin(), depths.end());
  std::sort(sizes.begin(), sizes.end());
  depths.erase(std::unique(depths.begin(), depths.end()), depths.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::string text = "\n" + title + "\n" + Padded("depth", kNameWidth);
  for (const uint32_t depth : depths) text += Padded(std::to_string(depth), kNumberWidth);
  for (const uint64_t size : sizes) {
    text += "\n" + Padded(Size(size), kNameWidth);
    for (const uint32_t depth : depths) {
      const auto found = std::find_if(facts.facts.begin(), facts.facts.end(), [&](const DeviceFact& fact) {
        return fact.block_bytes == size && fact.depth == depth && fact.cached == cached;
      });
      const double value = found == facts.facts.end() ? 0 : (*found).*number;
      text += Padded(value == 0 ? "-" : PrintFixed(value, 0), kNumberWidth);
    }
  }
  return text + "\n";
}

std::string JsonText(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) text += c;
  }
  return text + "\"";
}

std::string FactJson(const DeviceFact& fact) {
  return "{\"block_bytes\":" + std::to_string(fact.block_bytes) + ",\"depth\":" + std::to_string(fact.depth) +
         ",\"cached\":" + (fact.cached ? "true" : "false") + ",\"read_mb_s\":" + PrintFixed(fact.read_mb_s, 1) +
         ",\"read_us\":" + PrintFixed(fact.read_us, 1) + ",\"write_mb_s\":" + PrintFixed(fact.write_mb_s, 1) +
         ",\"write_us\":" + PrintFixed(fact.write_us, 1) + "}";
}

}  // namespace

std::string PrintDevice(const DeviceFacts& facts) {
  std::string text = "device      " + ShowPath(facts.folder) + ", " + facts.file_system + ", a file of " +
                     Size(facts.file_bytes) + ", page cache " +
                     (facts.passes_cache ? "bypassed" : "cannot be bypassed") + "\n";
  if (facts.passes_cache) {
    text += Table(facts, "device, reads, MB/s", false, &DeviceFact::read_mb_s);
    text += Table(facts, "device, us until a block is read", false, &DeviceFact::read_us);
    text += Table(facts, "device, writes, MB/s", false, &DeviceFact::write_mb_s);
    text += Table(facts, "device, us until a block is written", false, &DeviceFact::write_us);
  }
  text += Table(facts, "page cache, reads, MB/s", true, &DeviceFact::read_mb_s);
  text += Table(facts, "page cache, writes, MB/s", true, &DeviceFact::write_mb_s);
  return text + "depth: blocks in flight; -: left out for want of time (--seconds)\nmeasured in " +
         PrintFixed(facts.seconds, 1) + " s\n";
}

std::string DeviceJson(const DeviceFacts& facts) {
  std::string text = "{\"folder\":" + JsonText(facts.folder) + ",\"file_system\":" + JsonText(facts.file_system) +
                     ",\"file_bytes\":" + std::to_string(facts.file_bytes) +
                     ",\"passes_cache\":" + (facts.passes_cache ? "true" : "false") + ",\"blocks\":[";
  for (size_t i = 0; i < facts.facts.size(); ++i) text += (i == 0 ? "" : ",") + FactJson(facts.facts[i]);
  return text + "],\"seconds\":" + PrintFixed(facts.seconds, 3) + "}";
}

}  // namespace quern
