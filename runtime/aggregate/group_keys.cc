// SPDX-License-Identifier: Apache-2.0
// A key comes from one of three places: its tuple's word, a field of its own, or, for dictionary keys, the value that
// its number stands for. Each is a source for the output blocks (blocks.h). The tuple holds a PAD SPACE key without
// trailing spaces, and the result gets back as many as the group's first row had: ("a  ", "a") is one group, and its
// key is "a  ".
#include "runtime/aggregate/group_keys.h"

#include <algorithm>
#include <string>
#include <type_traits>

#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"
#include "runtime/blocks/storage_dispatch.h"

namespace quern {
namespace {

using blocks::Bytes;

constexpr bool FitsWord(Storage storage) { return blocks::HasLanes(storage) || storage == kBit; }

uint64_t WordAt(const QuernRowLayout& group, const uint8_t* tuple) {
  return group.packed_bytes == 4 ? blocks::Load<uint32_t>(tuple) : blocks::Load<uint64_t>(tuple);
}

bool IsNull(const QuernRowLayout& group, const QuernField& key, const uint8_t* tuple) {
  if (!key.nullable) return false;
  if (group.packed_bytes != 0) return (WordAt(group, tuple) >> key.packed_null_bit & 1) != 0;
  return (tuple[key.null_offset] & key.null_mask) != 0;
}

struct WordSource {
  const QuernRowLayout& group;
  const QuernField& key;
  uint8_t* const* tuples;
  uint32_t width = 0;

  bool Valid(uint32_t i) const { return !IsNull(group, key, tuples[i]); }
  Bytes ReadString(uint32_t) const { return {nullptr, 0}; }
  template <class T>
  T ReadValue(uint32_t i) const {
    const uint64_t bits = WordAt(group, tuples[i]) >> key.packed_shift;
    return static_cast<T>(key.storage == kBit ? bits & 1 : bits);
  }
  const uint8_t* ReadFixed(uint32_t) const { return nullptr; }
};

struct FieldSource {
  const QuernRowLayout& group;
  const QuernField& key;
  uint8_t* const* tuples;
  uint32_t width;          // of kFixed
  uint32_t spaces_offset;  // 0: none were cut off
  mutable std::string padded = {};

  bool Valid(uint32_t i) const { return !IsNull(group, key, tuples[i]); }
  Bytes ReadString(uint32_t i) const {
    const Bytes bytes = blocks::BytesOf(tuples[i] + key.tuple_offset, key.width_bytes);
    const uint32_t num_spaces = spaces_offset == 0 ? 0 : blocks::Load<uint32_t>(tuples[i] + spaces_offset);
    if (num_spaces == 0) return bytes;
    padded.assign(reinterpret_cast<const char*>(bytes.data), bytes.length);
    padded.append(num_spaces, ' ');
    return {reinterpret_cast<const uint8_t*>(padded.data()), static_cast<uint32_t>(padded.size())};
  }
  template <class T>
  T ReadValue(uint32_t i) const {
    return blocks::Load<T>(tuples[i] + key.tuple_offset);
  }
  const uint8_t* ReadFixed(uint32_t i) const { return tuples[i] + key.tuple_offset; }
};

struct DictionarySource {
  const QuernRowLayout& group;
  const QuernField& key;
  uint8_t* const* tuples;
  uint32_t width;
  const KeyDictionaries& dictionaries;
  size_t number;

  bool Valid(uint32_t i) const { return !IsNull(group, key, tuples[i]); }
  std::string_view ValueOf(uint32_t i) const {
    const uint32_t code = group.packed_bytes != 0 ? static_cast<uint32_t>(WordAt(group, tuples[i]) >> key.packed_shift)
                                                  : blocks::Load<uint32_t>(tuples[i] + key.tuple_offset);
    return dictionaries.ValueOf(number, code);
  }
  Bytes ReadString(uint32_t i) const { return {ReadFixed(i), static_cast<uint32_t>(ValueOf(i).size())}; }
  template <class T>
  T ReadValue(uint32_t i) const {
    return blocks::Load<T>(ValueOf(i).data());
  }
  const uint8_t* ReadFixed(uint32_t i) const { return reinterpret_cast<const uint8_t*>(ValueOf(i).data()); }
};

// Makes room for n strings and returns how many fit.
template <Storage kStorage, class Source>
absl::StatusOr<uint32_t> Fit(const Source& source, uint32_t n, QuernOutColumn* out) {
  const int64_t fit = blocks::FitStrings<kStorage>(source, n, out);
  if (fit == kQuernValueTooLarge) {
    return absl::ResourceExhaustedError(
        "value too large for an output column: above 2147483647 bytes; accepted: large_utf8, large_binary");
  }
  if (fit < 0)
    return absl::ResourceExhaustedError("memory limit exceeded: result strings; accepted: a higher memory limit");
  return static_cast<uint32_t>(fit);
}

template <Storage kStorage, class Source>
absl::StatusOr<uint32_t> Write(const Source& source, uint32_t n, QuernOutColumn* out, uint64_t out_row) {
  if constexpr (blocks::IsVariableStorage(kStorage)) {
    QUERN_ASSIGN_OR_RETURN(n, Fit<kStorage>(source, n, out));
  }
  blocks::EmitColumn<kStorage>(source, n, out, out_row, out->validity != nullptr);
  return n;
}

// Strings of a key without nulls and without removed spaces, which most groups hold in their own fields.
struct HeldSource {
  uint8_t* const* tuples;
  uint32_t field_offset;
  uint32_t width;

  static bool Valid(uint32_t) { return true; }
  Bytes ReadString(uint32_t i) const {
    return {nullptr, blocks::Load<uint32_t>(tuples[i] + field_offset)};
  }  // its length only
};

bool IsHeld(const QuernField& key, uint32_t spaces_offset) {
  return !key.nullable && spaces_offset == 0 && key.width_bytes >= 16 && key.width_bytes <= blocks::kShortBytes;
}

// Copies the whole field of a string that fits it, in two overlapping pieces; the next string overwrites the excess. No
// branch depends on a length.
template <Storage kStorage>
absl::StatusOr<uint32_t> WriteHeld(const HeldSource& source, uint32_t n, QuernOutColumn* out, uint64_t out_row) {
  typedef uint64_t U64x2 __attribute__((vector_size(16)));
  using Offset = std::conditional_t<kStorage == kVar32, int32_t, int64_t>;
  static_assert(blocks::kCopySlackBytes >= blocks::kShortBytes);
  QUERN_ASSIGN_OR_RETURN(n, Fit<kStorage>(source, n, out));
  const uint32_t last = source.width - 16;
  uint8_t* const bytes = out->bytes;
  Offset* const ends = static_cast<Offset*>(out->offsets) + out_row + 1;
  uint64_t end = out->num_bytes;
  for (uint32_t i = 0; i < n; ++i) {
    const uint8_t* const field = source.tuples[i] + source.field_offset;
    const uint32_t length = blocks::Load<uint32_t>(field);
    if (__builtin_expect(length > source.width, 0)) {
      blocks::CopyBytes(bytes + end, blocks::Load<const uint8_t*>(field + 8), length);
    } else {
      const U64x2 front = blocks::Load<U64x2>(field + 4), back = blocks::Load<U64x2>(field + 4 + last);
      blocks::Store(bytes + end, front);
      blocks::Store(bytes + end + last, back);
    }
    end += length;
    ends[i] = static_cast<Offset>(end);
  }
  out->num_bytes = end;
  return n;
}

// Partition numbers follow from these hashes, and processes exchange groups by partition. Rows get the same numbers
// from their columns (key_partitions.cc).
constexpr const blocks::HashSecret& kPublic = blocks::kPublicHash;

// Maps a value to 64 bits that are the same for equal keys.
template <Storage kStorage, class Source>
uint64_t HashOf(const Source& source, uint32_t i, CollationRule rule) {
  if (!source.Valid(i)) return blocks::kNullInput;
  if constexpr (blocks::IsVariableStorage(kStorage)) {
    const Bytes bytes = blocks::Trimmed(source.ReadString(i), rule);
    return (rule & kWeighsEquality) != 0 ? blocks::HashCollated(bytes, rule, kPublic)
                                         : blocks::HashBytes(bytes.data, bytes.length, kPublic);
  } else if constexpr (kStorage == kFixed) {
    return blocks::HashBytes(source.ReadFixed(i), source.width, kPublic);
  } else {
    const auto value = source.template ReadValue<typename blocks::ReaderOf<kStorage>::Value>(i);
    if constexpr (kStorage == k128)
      return blocks::Combine(static_cast<uint64_t>(value), static_cast<uint64_t>(value >> 64), kPublic);
    else return value;
  }
}

}  // namespace

void HashKeys(const AggregateDescriptor& descriptor, const KeyDictionaries& dictionaries, uint8_t* const* tuples,
              uint32_t n, uint64_t* hashes) {
  const QuernRowLayout& group = *descriptor.group();
  std::fill_n(hashes, n, uint64_t{0});
  for (size_t key = 0; key < group.num_keys; ++key) {
    const QuernField& field = group.keys[key];
    const ColumnType& type = descriptor.spec().keys[key].type;
    const CollationRule rule = RuleOf(type.collation);
    DispatchStorage(RowOf(type.id).key_storage, [&](auto tag) {
      constexpr Storage kStorage = decltype(tag)::value;
      const auto add = [&](const auto& source) {
        for (uint32_t i = 0; i < n; ++i)
          hashes[i] = blocks::Combine(hashes[i], HashOf<kStorage>(source, i, rule), kPublic);
      };
      if (dictionaries.has(key)) add(DictionarySource{group, field, tuples, type.width_bytes, dictionaries, key});
      else if (group.packed_bytes == 0) add(FieldSource{group, field, tuples, type.width_bytes, 0});
      if constexpr (FitsWord(kStorage)) {
        if (!dictionaries.has(key) && group.packed_bytes != 0) add(WordSource{group, field, tuples});
      }
    });
  }
}

absl::StatusOr<uint32_t> WriteKey(const AggregateDescriptor& descriptor, const KeyDictionaries& dictionaries,
                                  size_t key, uint8_t* const* tuples, uint32_t n, QuernOutColumn* out,
                                  uint64_t out_row) {
  const QuernRowLayout& group = *descriptor.group();
  const QuernField& field = group.keys[key];
  const ColumnType& type = descriptor.spec().keys[key].type;
  return DispatchStorage(RowOf(type.id).key_storage, [&](auto tag) -> absl::StatusOr<uint32_t> {
    constexpr Storage kStorage = decltype(tag)::value;
    if (dictionaries.has(key)) {
      return Write<kStorage>(DictionarySource{group, field, tuples, type.width_bytes, dictionaries, key}, n, out,
                             out_row);
    }
    if constexpr (FitsWord(kStorage)) {
      if (group.packed_bytes != 0) return Write<kStorage>(WordSource{group, field, tuples}, n, out, out_row);
    }
    if constexpr (kStorage == kVar32 || kStorage == kVar64) {
      if (IsHeld(field, descriptor.spaces_offset(key)) && out->validity == nullptr) {
        return WriteHeld<kStorage>({tuples, field.tuple_offset, field.width_bytes}, n, out, out_row);
      }
    }
    return Write<kStorage>(FieldSource{group, field, tuples, type.width_bytes, descriptor.spaces_offset(key)}, n, out,
                           out_row);
  });
}

}  // namespace quern
