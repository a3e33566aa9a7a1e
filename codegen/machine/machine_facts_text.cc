// SPDX-License-Identifier: Apache-2.0
// Facts of a machine as text: lines of a profile, a table for people, JSON; and the memory model that is made from
// them.
//
//     fact memory bytes=268435456 huge_pages=1 latency_ns=98.120 read_ns=5.310 read_misses=32 write_ns=9.870 ..
//     fact caches l1_bytes=32768 l2_bytes=1048576 l3_bytes=16777216
//
// One list of a fact's fields serves printing and parsing. Numbers have three decimals and a decimal point in every
// locale.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "codegen/base/text_words.h"
#include "codegen/machine/machine_facts.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr double kLargestNumber = 1e9;
constexpr uint32_t kNumClasses = kLargestSizeClass - kSmallestSizeClass + 1;

// Exactly one of the pointers is set.
struct Field {
  const char* name;
  double* number = nullptr;
  uint64_t* bytes = nullptr;
  uint32_t* count = nullptr;
  bool* flag = nullptr;
};
using Fields = std::vector<Field>;

Field Number(const char* name, double* target) { return {name, target, nullptr, nullptr, nullptr}; }
Field Bytes(const char* name, uint64_t* target) { return {name, nullptr, target, nullptr, nullptr}; }
Field Count(const char* name, uint32_t* target) { return {name, nullptr, nullptr, target, nullptr}; }
Field Flag(const char* name, bool* target) { return {name, nullptr, nullptr, nullptr, target}; }

Fields FieldsOf(MemoryFact* fact) {
  return {Bytes("bytes", &fact->bytes),
          Flag("huge_pages", &fact->huge_pages),
          Number("latency_ns", &fact->latency_ns),
          Number("read_ns", &fact->read_ns),
          Count("read_misses", &fact->read_misses),
          Number("write_ns", &fact->write_ns),
          Count("write_misses", &fact->write_misses)};
}

// Facts that a machine has once.
struct Group {
  const char* name;
  Fields fields;
};

std::vector<Group> GroupsOf(MachineFacts* facts) {
  return {
      {"caches",
       {Bytes("l1_bytes", &facts->l1_bytes), Bytes("l2_bytes", &facts->l2_bytes), Bytes("l3_bytes", &facts->l3_bytes)}},
      {"sequential",
       {Number("read_gb_s", &facts->sequential_read_gb_s), Number("write_gb_s", &facts->sequential_write_gb_s),
        Number("copy_gb_s", &facts->sequential_copy_gb_s)}},
      {"stores",
       {Number("zero_fill_gb_s", &facts->zero_fill_gb_s), Number("one_fill_gb_s", &facts->one_fill_gb_s),
        Number("alternating_fill_gb_s", &facts->alternating_fill_gb_s),
        Number("alternating_control_gb_s", &facts->alternating_control_gb_s),
        Number("ones_over_zeros_gb_s", &facts->ones_over_zeros_gb_s),
        Flag("zero_stores_are_cheaper", &facts->zero_stores_are_cheaper)}},
      {"measuring", {Number("seconds", &facts->seconds)}}};
}

// ---- fields ----------------------------------------------------------------------------------------------------

std::string Fixed(double number, int decimals) { return PrintFixed(std::min(number, kLargestNumber), decimals); }

std::string Value(const Field& field) {
  if (field.number != nullptr) return Fixed(*field.number, 3);
  if (field.bytes != nullptr) return std::to_string(*field.bytes);
  if (field.count != nullptr) return std::to_string(*field.count);
  return *field.flag ? "1" : "0";
}

template <class T>
bool ParseAll(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

bool SetValue(const Field& field, std::string_view text) {
  if (field.number != nullptr) {
    double number = 0;
    if (!ParseAll(text, &number) || !std::isfinite(number) || number < 0 || number > kLargestNumber) return false;
    *field.number = number;
    return true;
  }
  if (field.bytes != nullptr) return ParseAll(text, field.bytes);
  if (field.count != nullptr) return ParseAll(text, field.count);
  *field.flag = text == "1";
  return text == "0" || text == "1";
}

std::string PrintFields(const char* name, const Fields& fields) {
  std::string text = std::string("fact ") + name;
  for (const Field& field : fields) text += std::string(" ") + field.name + "=" + Value(field);
  return text;
}

std::string FormOf(const Fields& fields) {
  std::string text = "; accepted: ";
  for (const Field& field : fields) text += std::string(field.name) + "=.. ";
  text.pop_back();
  return text + " in this order, numbers from 0 to 1e9, flags 0 or 1";
}

absl::Status ParseFields(std::string_view name, std::string_view rest, const Fields& fields) {
  for (const Field& field : fields) {
    const std::string_view word = TakeWord(&rest);
    const std::string start = std::string(field.name) + "=";
    if (word.substr(0, start.size()) != start || !SetValue(field, word.substr(start.size())))
      return InvalidArgument("bad field of fact " + std::string(name) + ": " + Show(word) + FormOf(fields));
  }
  if (const std::string_view word = TakeWord(&rest); !word.empty())
    return InvalidArgument("bad field of fact " + std::string(name) + ": " + Show(word) + FormOf(fields));
  return absl::OkStatus();
}

absl::Status ParseMemory(std::string_view rest, MachineFacts* facts) {
  MemoryFact fact;
  QUERN_RETURN_IF_ERROR(ParseFields("memory", rest, FieldsOf(&fact)));
  for (const MemoryFact& other : facts->memory) {
    if (other.bytes == fact.bytes && other.huge_pages == fact.huge_pages)
      return InvalidArgument("fact given twice: memory bytes=" + std::to_string(fact.bytes) + " huge_pages=" +
                             (fact.huge_pages ? "1" : "0") + "; accepted: each size once with and once without");
  }
  facts->memory.push_back(fact);
  return absl::OkStatus();
}

// ---- for people ------------------------------------------------------------------------------------------------

std::string Size(uint64_t bytes) {
  if (bytes == 0) return "?";
  const auto in = [&](uint32_t bits, const char* unit) {
    return (bytes & ((uint64_t{1} << bits) - 1)) == 0
               ? std::to_string(bytes >> bits) + unit
               : Fixed(std::ldexp(static_cast<double>(bytes), -static_cast<int>(bits)), 1) + unit;
  };
  if (bytes >> 30 != 0) return in(30, " GiB");
  if (bytes >> 20 != 0) return in(20, " MiB");
  return in(10, " KiB");
}

std::string Known(const std::string& text) { return text.empty() ? "unknown" : text; }

std::string Padded(const std::string& text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

const MemoryFact* FindFact(const MachineFacts& facts, uint64_t bytes, bool huge_pages) {
  for (const MemoryFact& fact : facts.memory)
    if (fact.bytes == bytes && fact.huge_pages == huge_pages) return &fact;
  return nullptr;
}

std::string MemoryColumns(const MemoryFact* fact) {
  if (fact == nullptr) return Padded("-", 11) + Padded("-", 14) + Padded("-", 14);
  const auto line = [](double ns, uint32_t misses) {
    return Padded(Fixed(ns, 2), 8) + Padded("(" + std::to_string(misses) + ")", 6);
  };
  return Padded(Fixed(fact->latency_ns, 2), 11) + line(fact->read_ns, fact->read_misses) +
         line(fact->write_ns, fact->write_misses);
}

std::string MemoryTable(const MachineFacts& facts) {
  std::vector<uint64_t> sizes;
  for (const MemoryFact& fact : facts.memory) sizes.push_back(fact.bytes);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  const bool has_huge =
      std::any_of(facts.memory.begin(), facts.memory.end(), [](const MemoryFact& fact) { return fact.huge_pages; });
  std::string text = "\nns of a random line     small pages" +
                     std::string(has_huge ? "                            huge pages" : "") + "\n" +
                     "      size    latency          read         write" +
                     (has_huge ? "    latency          read         write\n" : "\n");
  for (const uint64_t bytes : sizes) {
    text += Padded(Size(bytes), 10) + MemoryColumns(FindFact(facts, bytes, false));
    text += (has_huge ? MemoryColumns(FindFact(facts, bytes, true)) : "") + "\n";
  }
  text += "latency: of a load that the next one waits for; (n): lines prefetched at which read and write were best\n";
  if (facts.is_cut) text += "larger tables: left out for want of time or memory (--seconds)\n";
  return text + (has_huge ? "" : "huge pages: the system gave none\n");
}

// ---- JSON ------------------------------------------------------------------------------------------------------

std::string JsonText(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) text += c;
  }
  return text + "\"";
}

std::string JsonFields(const Fields& fields) {
  std::string text = "{";
  for (const Field& field : fields) {
    const std::string value = field.flag == nullptr ? Value(field) : *field.flag ? "true" : "false";
    text += (text.size() == 1 ? "" : ",") + JsonText(field.name) + ":" + value;
  }
  return text + "}";
}

std::string SignatureJson(const MachineSignature& of) {
  return "{\"cpu_name\":" + JsonText(of.cpu_name) + ",\"cpu\":" + JsonText(of.cpu) +
         ",\"microcode\":" + JsonText(of.microcode) + ",\"hypervisor\":" + JsonText(of.hypervisor) +
         ",\"cores\":" + std::to_string(of.cores) + ",\"l2_bytes\":" + std::to_string(of.l2_bytes) +
         ",\"l3_bytes\":" + std::to_string(of.l3_bytes) + ",\"huge_pages\":" + JsonText(of.huge_pages) + "}";
}

// ---- model -----------------------------------------------------------------------------------------------------

// The fact of a size class, on huge pages if there are any, since tables use them; null: not measured.
const MemoryFact* FactOfClass(const MachineFacts& facts, uint32_t size_class) {
  const MemoryFact* found = nullptr;
  for (const MemoryFact& fact : facts.memory)
    if (fact.bytes != 0 && SizeClassOf(fact.bytes) == size_class && (found == nullptr || fact.huge_pages))
      found = &fact;
  return found;
}

}  // namespace

std::vector<std::string> FactLines(const MachineFacts& facts) {
  MachineFacts copy = facts;
  std::vector<std::string> lines;
  for (MemoryFact& fact : copy.memory) lines.push_back(PrintFields("memory", FieldsOf(&fact)));
  for (const Group& group : GroupsOf(&copy)) lines.push_back(PrintFields(group.name, group.fields));
  return lines;
}

absl::Status ParseFactLine(std::string_view line, MachineFacts* facts) {
  std::string_view rest = line;
  const std::string_view first = TakeWord(&rest);
  const std::string_view name = TakeWord(&rest);
  if (first == "fact" && name == "memory") return ParseMemory(rest, facts);
  std::string names = "memory";
  for (const Group& group : GroupsOf(facts)) {
    if (first == "fact" && name == group.name) return ParseFields(name, rest, group.fields);
    names += std::string(", ") + group.name;
  }
  return InvalidArgument("unknown fact: " + Show(line) + "; accepted: fact NAME FIELD=.. with NAME one of " + names);
}

std::string PrintFacts(const MachineFacts& facts) {
  const MachineSignature& of = facts.signature;
  std::string text = "machine     " + Known(of.cpu_name) + " (" + Known(of.cpu) + "), microcode " +
                     Known(of.microcode) + ", hypervisor " + (of.hypervisor.empty() ? "none seen" : of.hypervisor) +
                     ", " + std::to_string(of.cores) + " cores, huge pages " + Known(of.huge_pages) + "\n";
  text += "features    " + Known(facts.features) + "\nsignature   " + PrintSignature(of) + "\n";
  text += "caches      L1 " + Size(facts.l1_bytes) + ", L2 " + Size(facts.l2_bytes) + ", L3 " + Size(facts.l3_bytes) +
          " measured; L2 " + Size(of.l2_bytes) + ", L3 " + Size(of.l3_bytes) + " reported\n";
  text += "sequential  read " + Fixed(facts.sequential_read_gb_s, 1) + " GB/s, write " +
          Fixed(facts.sequential_write_gb_s, 1) + ", copy " + Fixed(facts.sequential_copy_gb_s, 1) + "\n";
  text += "stores      zeros over zeros " + Fixed(facts.zero_fill_gb_s, 1) + " GB/s, ones over ones " +
          Fixed(facts.one_fill_gb_s, 1) + ", lines of zeros and ones " + Fixed(facts.alternating_fill_gb_s, 1) +
          ", of ones and twos " + Fixed(facts.alternating_control_gb_s, 1) + ", ones over zeros " +
          Fixed(facts.ones_over_zeros_gb_s, 1) + ": zeros are " +
          (facts.zero_stores_are_cheaper ? "cheaper" : "not cheaper") + "\n";
  return text + MemoryTable(facts) + "measured in " + Fixed(facts.seconds, 1) + " s\n";
}

std::string FactsJson(const MachineFacts& facts) {
  MachineFacts copy = facts;
  std::string text = "{\"signature\":" + SignatureJson(facts.signature) + ",\"features\":" + JsonText(facts.features) +
                     ",\"memory\":[";
  for (MemoryFact& fact : copy.memory) text += (&fact == copy.memory.data() ? "" : ",") + JsonFields(FieldsOf(&fact));
  text += "]";
  for (const Group& group : GroupsOf(&copy)) text += "," + JsonText(group.name) + ":" + JsonFields(group.fields);
  return text + "}";
}

MemoryModel ModelOf(const MachineFacts& facts, const Machine& machine) {
  Machine measured = machine;
  if (facts.l2_bytes != 0) measured.l2_bytes = facts.l2_bytes;
  if (facts.l3_bytes != 0) measured.l3_bytes = facts.l3_bytes;
  measured.l3_bytes = std::max(measured.l3_bytes, measured.l2_bytes);
  MemoryModel model = BelievedModel(measured);
  const MemoryFact* last = nullptr;
  for (uint32_t i = 0; i < kNumClasses; ++i) {
    const MemoryFact* fact = FactOfClass(facts, kSmallestSizeClass + i);
    // Beyond the largest measured size, memory is as fast as there, provided that size was beyond the caches.
    if (fact == nullptr && last != nullptr && last->bytes > measured.l3_bytes) fact = last;
    if (fact == nullptr) continue;
    model.latency_ns[i] = fact->latency_ns;
    model.line_ns[i] = fact->read_ns;
    last = fact;
  }
  return model;
}

}  // namespace quern
