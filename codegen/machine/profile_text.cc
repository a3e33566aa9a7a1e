// SPDX-License-Identifier: Apache-2.0
// The text of a profile: one item a line, so that `grep`, `sort` and a text editor work on it.
//
//     quern-profile 1
//     machine cpu_name="AMD EPYC 9R45" cpu=znver5 ..                   the signature (machine_facts.h)
//     fact ..                                                          the machine's facts, if they were measured
//     spill ..                                                         how rows are spilled, if it was measured
//     pieces ..                                                        rows of a piece of a pipeline, likewise
//     input ..                                                         how far ahead columns are prefetched, likewise
//     entry probe_open packed 2^24 pipeline=1 threads=1 setting=64 ns=3.1 default_ns=3.9 off_ns=9.2 noise=0.01
//     entry probe_open packed 2^15 pipeline=1 threads=1 setting=default ns=0.9 default_ns=0.9 off_ns=0.9 noise=0.02
//     end 2
//
// Empty lines and lines that begin with '#' are ignored. The last line has the number of entries, so that a truncated
// file is detected; one wrong line rejects the whole file. A number is written with six digits and reads back as
// written, in every locale.
#include <algorithm>
#include <cstddef>
#include <iterator>

#include "codegen/base/text_words.h"
#include "codegen/machine/profile.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr uint64_t kVersion = 1;
constexpr uint32_t kMaxPipeline = 64;
constexpr uint32_t kMaxThreads = 1024;
constexpr KeyClass kKeyClasses[] = {KeyClass::kPacked, KeyClass::kFixed, KeyClass::kString};
constexpr const char* kEntryForm =
    "entry LOOP KEYS 2^SIZE pipeline=N threads=N setting=SETTING ns=N default_ns=N off_ns=N noise=N";

absl::Status Bad(const char* what, std::string_view value, const std::string& accepted) {
  return InvalidArgument(std::string(what) + ": " + Show(value) + "; accepted: " + accepted);
}

std::string LoopNames() {
  std::string names;
  for (size_t i = 0; i < kNumPrefetchLoops; ++i)
    names += (i == 0 ? "" : ", ") + std::string(LoopText(static_cast<PrefetchLoop>(i)));
  return names;
}

absl::Status ReadLoop(std::string_view word, PrefetchLoop* loop) {
  for (size_t i = 0; i < kNumPrefetchLoops; ++i) {
    *loop = static_cast<PrefetchLoop>(i);
    if (word == LoopText(*loop)) return absl::OkStatus();
  }
  return Bad("unknown loop", word, LoopNames());
}

absl::Status ReadKeys(std::string_view word, KeyClass* keys) {
  const auto* const found =
      std::find_if(std::begin(kKeyClasses), std::end(kKeyClasses), [&](KeyClass k) { return word == KeyClassText(k); });
  if (found == std::end(kKeyClasses)) return Bad("unknown key class", word, "packed, fixed, string");
  *keys = *found;
  return absl::OkStatus();
}

absl::Status ReadSizeClass(std::string_view word, uint32_t* size_class) {
  uint64_t bits = 0;
  if (word.substr(0, 2) != "2^" || !ReadCount(word.substr(2), kSmallestSizeClass, kLargestSizeClass, &bits)) {
    return Bad("bad table size", word,
               "2^" + std::to_string(kSmallestSizeClass) + " to 2^" + std::to_string(kLargestSizeClass));
  }
  *size_class = static_cast<uint32_t>(bits);
  return absl::OkStatus();
}

// The fields of an entry after its cell's three words.
class EntryFields {
 public:
  explicit EntryFields(ProfileEntry* entry) : entry_(entry) {}

  absl::Status Read(std::string_view word) {
    const size_t equals = std::min(word.find('='), word.size());
    const std::string_view name = word.substr(0, equals);
    const std::string_view value = word.substr(std::min(equals + 1, word.size()));
    const auto* const field = std::find(std::begin(kNames), std::end(kNames), name);
    if (field == std::end(kNames) || equals == word.size()) {
      return Bad("unknown field of an entry", word, "pipeline=, threads=, setting=, ns=, default_ns=, off_ns=, noise=");
    }
    const auto number = static_cast<size_t>(field - std::begin(kNames));
    if (seen_[number]) return Bad("field of an entry twice", name, "each once");
    seen_[number] = true;
    return Set(number, name, value);
  }
  absl::Status CheckComplete() const {
    const auto* const missing = std::find(std::begin(seen_), std::end(seen_), false);
    if (missing == std::end(seen_)) return absl::OkStatus();
    return Bad("missing field of an entry", kNames[missing - std::begin(seen_)], kEntryForm);
  }

 private:
  static constexpr std::string_view kNames[] = {"pipeline",   "threads", "setting", "ns",
                                                "default_ns", "off_ns",  "noise"};

  absl::Status Set(size_t number, std::string_view name, std::string_view value) {
    if (number < 2)
      return SetCount(number == 0 ? kMaxPipeline : kMaxThreads, name, value,
                      number == 0 ? &entry_->cell.pipeline : &entry_->cell.threads);
    if (number == 2) return SetSetting(value);
    double* const reals[] = {&entry_->ns, &entry_->default_ns, &entry_->off_ns, &entry_->noise};
    if (ReadReal(value, reals[number - 3])) return absl::OkStatus();
    return Bad(("bad " + std::string(name) + " of an entry").c_str(), value, "a number of 0 or more");
  }
  static absl::Status SetCount(uint32_t max, std::string_view name, std::string_view value, uint32_t* target) {
    uint64_t count = 0;
    if (!ReadCount(value, 1, max, &count)) {
      return Bad(("bad " + std::string(name) + " of an entry").c_str(), value, "1 to " + std::to_string(max));
    }
    *target = static_cast<uint32_t>(count);
    return absl::OkStatus();
  }
  absl::Status SetSetting(std::string_view value) {
    entry_->is_default = value == "default";
    const PrefetchHint hint = DefaultHint(entry_->cell.loop);
    entry_->setting.hint = hint;
    if (entry_->is_default) return absl::OkStatus();
    QUERN_ASSIGN_OR_RETURN(entry_->setting, ParseSetting(value, hint));
    return absl::OkStatus();
  }

  ProfileEntry* entry_;
  bool seen_[std::size(kNames)] = {};
};

std::string PrintEntry(const ProfileEntry& entry) {
  return "entry " + PrintCell(entry.cell) +
         " setting=" + (entry.is_default ? "default" : PrintSetting(entry.setting, DefaultHint(entry.cell.loop))) +
         " ns=" + PrintReal(entry.ns) + " default_ns=" + PrintReal(entry.default_ns) +
         " off_ns=" + PrintReal(entry.off_ns) + " noise=" + PrintReal(entry.noise) + "\n";
}

// Reads lines one by one; `profile` is complete after the last one.
class Reader {
 public:
  explicit Reader(Profile* profile) : profile_(profile) {}

  absl::Status ReadLine(std::string_view line) {
    std::string_view rest = line;
    const std::string_view word = TakeWord(&rest);
    if (word.empty() || word[0] == '#') return absl::OkStatus();
    if (has_end_) return Bad("line behind the end of a profile", line, "nothing behind end");
    if (!has_version_) return ReadVersion(line, word, rest);
    if (word == "machine") return ReadMachine(rest);
    if (word != "fact" && word != "spill" && word != "pieces" && word != "input" && word != "entry" && word != "end")
      return Bad("unknown line of a profile", word, "machine, fact, spill, pieces, input, entry, end");
    if (!has_machine_) return Bad("line before the machine of a profile", word, "machine NAME=VALUE ..");
    if (word == "fact") return ReadFact(line);
    if (word == "spill") return ReadSpill(rest);
    if (word == "pieces") return ReadPieces(rest);
    if (word == "input") return ReadInput(rest);
    return word == "entry" ? ReadEntry(rest) : ReadEnd(rest);
  }

  absl::Status CheckComplete() const {
    if (has_end_) return absl::OkStatus();
    return Bad("profile without its last line", has_version_ ? "cut off" : "empty",
               "a whole one, from quern-profile 1 to end COUNT");
  }

 private:
  absl::Status ReadVersion(std::string_view line, std::string_view word, std::string_view rest) {
    if (word != "quern-profile")
      return Bad("not a profile", line, "quern-profile " + std::to_string(kVersion) + " as first line");
    uint64_t version = 0;
    const std::string_view text = TakeWord(&rest);
    if (!ReadCount(text, kVersion, kVersion, &version) || !TakeWord(&rest).empty()) {
      return Bad("version of a profile", text, std::to_string(kVersion) + "; quern tune makes a new one");
    }
    has_version_ = true;
    return absl::OkStatus();
  }
  absl::Status ReadMachine(std::string_view rest) {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    if (has_machine_) return Bad("machine of a profile twice", rest, "one");
    QUERN_ASSIGN_OR_RETURN(profile_->machine, ParseSignature(rest));
    has_machine_ = true;
    return absl::OkStatus();
  }
  absl::Status ReadFact(std::string_view line) {
    if (!profile_->facts.has_value()) {
      profile_->facts.emplace();
      profile_->facts->signature = profile_->machine;
    }
    return ParseFactLine(line, &*profile_->facts);
  }
  absl::Status ReadSpill(std::string_view rest) {
    if (profile_->spill.has_value()) return Bad("spill line of a profile twice", rest, "one");
    QUERN_ASSIGN_OR_RETURN(profile_->spill, ParseSpillLine(rest));
    return absl::OkStatus();
  }
  absl::Status ReadPieces(std::string_view rest) {
    if (profile_->pieces.has_value()) return Bad("pieces line of a profile twice", rest, "one");
    QUERN_ASSIGN_OR_RETURN(profile_->pieces, ParsePiecesLine(rest));
    return absl::OkStatus();
  }
  absl::Status ReadInput(std::string_view rest) {
    if (profile_->input.has_value()) return Bad("input line of a profile twice", rest, "one");
    QUERN_ASSIGN_OR_RETURN(profile_->input, ParseInputLine(rest));
    return absl::OkStatus();
  }
  absl::Status ReadEntry(std::string_view rest) {
    ProfileEntry entry;
    QUERN_RETURN_IF_ERROR(ReadLoop(TakeWord(&rest), &entry.cell.loop));
    QUERN_RETURN_IF_ERROR(ReadKeys(TakeWord(&rest), &entry.cell.keys));
    QUERN_RETURN_IF_ERROR(ReadSizeClass(TakeWord(&rest), &entry.cell.size_class));
    EntryFields fields(&entry);
    for (std::string_view word = TakeWord(&rest); !word.empty(); word = TakeWord(&rest))
      QUERN_RETURN_IF_ERROR(fields.Read(word));
    QUERN_RETURN_IF_ERROR(fields.CheckComplete());
    const size_t before = profile_->entries.size();
    profile_->Put({entry});
    if (profile_->entries.size() == before) return Bad("entry twice", PrintCell(entry.cell), "each once");
    return absl::OkStatus();
  }
  absl::Status ReadEnd(std::string_view rest) {
    uint64_t count = 0;
    const std::string_view text = TakeWord(&rest);
    if (!ReadCount(text, 0, UINT64_MAX, &count) || !TakeWord(&rest).empty() || count != profile_->entries.size()) {
      return Bad("number of entries of a profile", text,
                 std::to_string(profile_->entries.size()) + ", as many as there are");
    }
    has_end_ = true;
    return absl::OkStatus();
  }

  Profile* profile_;
  bool has_version_ = false, has_machine_ = false, has_end_ = false;
};

}  // namespace

std::string PrintCell(const TuningCell& cell) {
  return std::string(LoopText(cell.loop)) + " " + KeyClassText(cell.keys) + " 2^" + std::to_string(cell.size_class) +
         " pipeline=" + std::to_string(cell.pipeline) + " threads=" + std::to_string(cell.threads);
}

absl::StatusOr<Profile> Profile::Parse(std::string_view text, std::string_view name) {
  Profile profile;
  Reader reader(&profile);
  QUERN_RETURN_IF_ERROR(ReadLines(text, name, &reader));
  return profile;
}

std::string Profile::Print() const {
  std::string text = "quern-profile " + std::to_string(kVersion) + "\nmachine " + PrintSignature(machine) + "\n";
  if (facts.has_value())
    for (const std::string& line : FactLines(*facts)) text += line + "\n";
  if (spill.has_value()) text += PrintSpillLine(*spill) + "\n";
  if (pieces.has_value()) text += PrintPiecesLine(*pieces) + "\n";
  if (input.has_value()) text += PrintInputLine(*input) + "\n";
  for (const ProfileEntry& entry : entries) text += PrintEntry(entry);
  return text + "end " + std::to_string(entries.size()) + "\n";
}

}  // namespace quern
