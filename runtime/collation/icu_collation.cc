// SPDX-License-Identifier: Apache-2.0
// A collator of ICU is opened when its tag is used first, and never closed: kernels contain its number as a constant,
// and callers hold references to rows of collations. The number is a hash of the tag in ICU's form, so that it is the
// same in every process:
//
//     "icu:DE-u-CO-phonebk"  ->  locale de@collation=phonebook  ->  "icu:de-u-co-phonebk"  ->  2^26 + hash below 2^26
//
// Two tags with the same hash cannot be open at once; opening the second one is an error. For a hundred tags in one
// process the chance is 1 in 13,000. Open collators are in an open-addressing table of pointers, each written once, so
// that readers take no lock.
//
// ICU accepts every tag and uses the root's rules where it has none for it. Here such a tag is an error, since it is
// misspelt or requests rules that do not exist. Collators are only read, which any number of threads may do.
#include "runtime/collation/icu_collation.h"

#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"

#ifdef QUERN_HAS_ICU
#include <unicode/putil.h>
#include <unicode/ucol.h>
#include <unicode/uloc.h>
#include <unicode/ustring.h>
#include <unicode/uversion.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>
#endif

namespace quern {

#ifndef QUERN_HAS_ICU

std::string_view IcuVersion() { return {}; }
void IgnoreIcuFolder(std::string_view /*folder*/) {}
absl::StatusOr<Collation> OpenIcuCollation(std::string_view tag) {
  const std::string name = std::string(kIcuPrefix) + std::string(tag);
  return InvalidArgument("collation of ICU in a build without ICU: " + Show(name) +
                         "; accepted: names that do not begin with icu:");
}
const CollationRow* FindIcuRow(Collation /*id*/) { return nullptr; }
void AppendIcuKey(Collation /*collation*/, blocks::Bytes /*s*/, std::string* /*key*/) {}
int CompareIcu(Collation /*collation*/, blocks::Bytes /*a*/, blocks::Bytes /*b*/) { return 0; }
std::string IcuRulesVersion(Collation /*collation*/) { return {}; }

#else

namespace {

struct OpenCollation {
  std::string name;
  CollationRow row;
  const UCollator* collator;
};

constexpr uint32_t kMaxOpen = 1024;
// The longest string; bytes beyond it are ignored. ICU's lengths, and those of keys, have 31 bits.
constexpr uint32_t kMaxBytes = 1u << 26;
constexpr uint32_t kNumSlots = 4 * kMaxOpen;
std::array<std::atomic<const OpenCollation*>, kNumSlots> open_collations;
uint32_t num_open = 0;
ForkSafeMutex open_mutex;  // for writers

// Its slot, or the empty slot for it.
std::atomic<const OpenCollation*>& SlotOf(Collation id) {
  for (uint32_t i = id;; ++i) {
    std::atomic<const OpenCollation*>& slot = open_collations[i % kNumSlots];
    const OpenCollation* const open = slot.load(std::memory_order_acquire);
    if (open == nullptr || open->row.id == id) return slot;
  }
}

// The same in each process, since cached kernels hold it: so is the hash.
Collation IdOf(const std::string& name) {
  const uint64_t hash =
      blocks::HashBytes(reinterpret_cast<const uint8_t*>(name.data()), name.size(), blocks::kPublicHash);
  return static_cast<Collation>(kFirstIcuCollation + hash % kFirstIcuCollation);
}

bool IsOpen(const std::string& name) {
  const OpenCollation* const open = SlotOf(IdOf(name)).load(std::memory_order_acquire);
  return open != nullptr && open->name == name;
}

const UCollator* CollatorOf(Collation id) { return SlotOf(id).load(std::memory_order_acquire)->collator; }

absl::Status UnknownTag(std::string_view tag) {
  const std::string name = std::string(kIcuPrefix) + std::string(tag);
  return InvalidArgument(
      "unknown collation of ICU: " + Show(name) +
      "; accepted: icu: and a BCP 47 tag that ICU has rules for, as icu:und, icu:de-u-co-phonebk, icu:und-u-ks-level1");
}

constexpr int32_t kMaxTagBytes = 200;

struct Locale {
  char name[kMaxTagBytes * 2];  // "de@collation=phonebook"
  char tag[kMaxTagBytes * 2];   // "de-u-co-phonebk"
};

// What a failure of ICU says about a tag.
absl::Status FailureOf(std::string_view tag, UErrorCode code) {
  return code == U_MEMORY_ALLOCATION_ERROR ? OutOfMemory() : UnknownTag(tag);
}

// ICU's forms of a tag; ICU must understand all of it.
absl::StatusOr<Locale> ReadTag(std::string_view tag) {
  if (tag.empty() || tag.size() > kMaxTagBytes || tag.find('\0') != std::string_view::npos) return UnknownTag(tag);
  const std::string text(tag);
  Locale locale;
  UErrorCode code = U_ZERO_ERROR;
  int32_t read = 0;
  uloc_forLanguageTag(text.c_str(), locale.name, sizeof(locale.name), &read, &code);
  if (code != U_ZERO_ERROR || read != static_cast<int32_t>(tag.size())) return FailureOf(tag, code);
  uloc_toLanguageTag(locale.name, locale.tag, sizeof(locale.tag), true, &code);
  if (code != U_ZERO_ERROR) return FailureOf(tag, code);
  return locale;
}

std::string Keyword(const char* locale, const char* keyword) {
  char value[kMaxTagBytes] = {};
  UErrorCode code = U_ZERO_ERROR;
  const int32_t size = uloc_getKeywordValue(locale, keyword, value, sizeof(value), &code);
  return U_SUCCESS(code) && size < kMaxTagBytes ? std::string(value, static_cast<size_t>(size)) : std::string();
}

// Whether the collator has rules for the locale's language and its collation type.
bool HasRules(const UCollator* collator, const Locale& locale) {
  UErrorCode code = U_ZERO_ERROR;
  const char* const valid = ucol_getLocaleByType(collator, ULOC_VALID_LOCALE, &code);
  if (U_FAILURE(code) || valid == nullptr) return false;
  char language[kMaxTagBytes] = {};
  uloc_getLanguage(locale.name, language, sizeof(language), &code);
  const bool is_root = language[0] == '\0' || std::strcmp(language, "root") == 0 || std::strcmp(language, "und") == 0;
  if (!is_root && (valid[0] == '@' || valid[0] == '\0' || std::strncmp(valid, "root", 4) == 0)) return false;
  const std::string type = Keyword(locale.name, "collation");
  return type.empty() || type == "standard" || type == Keyword(valid, "collation");
}

// Whether all bytes are U+0020 to U+007E.
bool IsPlain(blocks::Bytes s) {
  uint32_t num_others = 0;
  for (uint32_t i = 0; i < s.length; ++i) num_others += static_cast<uint8_t>(s.data[i] - ' ') > '~' - ' ';
  return num_others == 0;
}

// Makes what ICU makes when a collator is first used, now and not in a job that a fork would not wait for.
void UseOnce(const UCollator* collator) {
  constexpr UChar kText[] = {'a', 'Z', '1', 0xe9, 'e', 0x301, 0x323, 0x4e00, 0xac00, 0xd83d, 0xde00};
  uint8_t key[128];
  ucol_getSortKey(collator, kText, static_cast<int32_t>(std::size(kText)), key, sizeof(key));
  UErrorCode code = U_ZERO_ERROR;
  ucol_strcollUTF8(collator, "a\u0301", -1, "\u00e1", -1, &code);
}

using OwnedCollator = std::unique_ptr<UCollator, decltype(&ucol_close)>;

// Adds an opened collator, or finds the one that is there. Called with the mutex held.
absl::StatusOr<Collation> Register(const std::string& name, Collation id, OwnedCollator collator) {
  std::atomic<const OpenCollation*>& slot = SlotOf(id);
  const OpenCollation* const there = slot.load(std::memory_order_relaxed);
  if (there != nullptr || num_open == kMaxOpen) {
    if (there != nullptr && there->name == name) return id;
    if (there != nullptr)
      return InvalidArgument("collation of ICU whose number another one has: " + name + "; accepted: others than " +
                             name + " in a process that uses " + there->name);
    return InvalidArgument("too many collations of ICU: " + name + "; accepted: " + std::to_string(kMaxOpen) +
                           " in one process");
  }
  auto* const open = new OpenCollation{name, {}, nullptr};
  open->collator = collator.release();
  open->row = {id, open->name, PadRule::kNoPad, Weights::kIcu, Weights::kIcu};
  ++num_open;
  slot.store(open, std::memory_order_release);
  return id;
}

}  // namespace

std::string_view IcuVersion() { return U_ICU_VERSION; }

void IgnoreIcuFolder(std::string_view folder) {
  if (u_getDataDirectory() == folder) u_setDataDirectory("");
}

absl::StatusOr<Collation> OpenIcuCollation(std::string_view tag) {
  const NoFork no_fork;  // ICU has locks and tables of its own, which it makes at their first use
  // A tag in ICU's own form is found without ICU, whose functions do not all tell when memory was refused to them.
  const std::string given = std::string(kIcuPrefix) + std::string(tag);
  if (IsOpen(given)) return IdOf(given);
  QUERN_ASSIGN_OR_RETURN(const Locale locale, ReadTag(tag));
  const std::string name = std::string(kIcuPrefix) + locale.tag;
  if (IsOpen(name)) return IdOf(name);
  const std::lock_guard lock(open_mutex);
  UErrorCode code = U_ZERO_ERROR;
  OwnedCollator collator(ucol_open(locale.name, &code), &ucol_close);
  if (U_FAILURE(code)) return FailureOf(tag, code);
  if (!HasRules(collator.get(), locale)) return UnknownTag(tag);
  UseOnce(collator.get());
  return Register(name, IdOf(name), std::move(collator));
}

const CollationRow* FindIcuRow(Collation id) {
  if (id < kFirstIcuCollation) return nullptr;
  const OpenCollation* const open = SlotOf(id).load(std::memory_order_acquire);
  return open == nullptr ? nullptr : &open->row;
}

void AppendIcuKey(Collation collation, blocks::Bytes s, std::string* key) {
  constexpr size_t kStack = 512;
  s.length = std::min(s.length, kMaxBytes);
  UChar stack[kStack];
  std::vector<UChar> heap;
  if (s.length > kStack) heap.resize(s.length);  // UTF-16 never has more units than UTF-8 has bytes
  UChar* const units = s.length > kStack ? heap.data() : stack;
  const auto length = static_cast<int32_t>(s.length);
  int32_t num_units = 0;
  UErrorCode code = U_ZERO_ERROR;
  u_strFromUTF8WithSub(units, length, &num_units, reinterpret_cast<const char*>(s.data), length, 0xfffd, nullptr,
                       &code);
  const size_t begin = key->size();
  key->resize(begin + size_t{s.length} * 4 + 16);
  const UCollator* const collator = CollatorOf(collation);
  const auto write = [&] {
    return ucol_getSortKey(collator, units, num_units, reinterpret_cast<uint8_t*>(key->data()) + begin,
                           static_cast<int32_t>(key->size() - begin));
  };
  const auto size = static_cast<size_t>(write());
  if (begin + size > key->size()) {
    key->resize(begin + size);
    write();
  }
  if (size == 0) throw std::bad_alloc();  // every key ends with a zero: ICU was refused memory
  key->resize(begin + size - 1);
}

// Sort keys decide. ICU's own comparison, which is faster, does not always agree with them: under icu:und-u-ka-shifted,
// U+FF62 and U+FF62 U+FF9E have the same key but compare unequal. For U+0020 to U+007E, where no mark follows a letter,
// it does agree.
int CompareIcu(Collation collation, blocks::Bytes a, blocks::Bytes b) {
  if (a.length == b.length && blocks::EqualBytes(a.data, b.data, a.length)) return 0;
  if (IsPlain(a) && IsPlain(b)) {
    a.length = std::min(a.length, kMaxBytes);
    b.length = std::min(b.length, kMaxBytes);
    UErrorCode code = U_ZERO_ERROR;
    const UCollationResult order =
        ucol_strcollUTF8(CollatorOf(collation), reinterpret_cast<const char*>(a.data), static_cast<int32_t>(a.length),
                         reinterpret_cast<const char*>(b.data), static_cast<int32_t>(b.length), &code);
    if (U_FAILURE(code)) throw std::bad_alloc();
    return order;
  }
  std::string x, y;
  AppendIcuKey(collation, a, &x);
  AppendIcuKey(collation, b, &y);
  return x.compare(y);
}

std::string IcuRulesVersion(Collation collation) {
  UVersionInfo version = {};
  ucol_getVersion(CollatorOf(collation), version);
  char text[U_MAX_VERSION_STRING_LENGTH] = {};
  u_versionToString(version, text);
  return text;
}

#endif

}  // namespace quern
