// SPDX-License-Identifier: Apache-2.0
// A key comes out of one of three places: the word of its tuple, a field of its own, or, for dictionary keys, the value that its number
// stands for. Each is a source as the output blocks (blocks.h) want one. A PAD SPACE key lies in its tuple without trailing spaces, and
// gets as many back as its group's first row had: ("a  ", "a") is one group, and its key is "a  ".
#include "runtime/group_keys.h"

#include <string>

#include "runtime/blocks.h"
#include "runtime/status.h"
#include "runtime/storage_dispatch.h"

namespace quern {
namespace {

using blocks::Bytes;

constexpr bool FitsWord(Storage storage) { return blocks::HasLanes(storage) || storage == kBit; }

uint64_t WordAt(const QuernJoinShape& group, const uint8_t* tuple) {
  return group.word_bytes == 4 ? blocks::Load<uint32_t>(tuple) : blocks::Load<uint64_t>(tuple);
}

bool IsNull(const QuernJoinShape& group, const QuernField& key, const uint8_t* tuple) {
  if (!key.nullable) return false;
  if (group.word_bytes != 0) return (WordAt(group, tuple) >> key.word_null_bit & 1) != 0;
  return (tuple[key.null_offset] & key.null_mask) != 0;
}

struct WordSource {
  const QuernJoinShape& group;
  const QuernField& key;
  uint8_t* const* tuples;
  uint32_t width = 0;

  bool Valid(uint32_t i) const { return !IsNull(group, key, tuples[i]); }
  Bytes ReadString(uint32_t) const { return {nullptr, 0}; }
  template <class T>
  T ReadValue(uint32_t i) const {
    const uint64_t bits = WordAt(group, tuples[i]) >> key.word_shift;
    return static_cast<T>(key.storage == kBit ? bits & 1 : bits);
  }
  const uint8_t* ReadFixed(uint32_t) const { return nullptr; }
};

struct FieldSource {
  const QuernJoinShape& group;
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
  const QuernJoinShape& group;
  const QuernField& key;
  uint8_t* const* tuples;
  uint32_t width;
  const KeyDictionaries& dictionaries;
  size_t number;

  bool Valid(uint32_t i) const { return !IsNull(group, key, tuples[i]); }
  std::string_view ValueOf(uint32_t i) const {
    const uint32_t code = group.word_bytes != 0 ? static_cast<uint32_t>(WordAt(group, tuples[i]) >> key.word_shift)
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

template <Storage kStorage, class Source>
absl::StatusOr<uint32_t> Write(const Source& source, uint32_t n, QuernOutColumn* out, uint64_t out_row) {
  if constexpr (blocks::IsVariableStorage(kStorage)) {
    const int64_t fit = blocks::FitStrings<kStorage>(source, n, out);
    if (fit == kQuernValueTooLarge) {
      return absl::ResourceExhaustedError(
          "value too large for an output column: above 2147483647 bytes; accepted: large_utf8, large_binary");
    }
    if (fit < 0) return absl::ResourceExhaustedError("memory limit exceeded: result strings; accepted: a higher memory limit");
    n = static_cast<uint32_t>(fit);
  }
  blocks::EmitColumn<kStorage>(source, n, out, out_row, out->validity != nullptr);
  return n;
}

// One value as 64 bits that equal keys have in common.
template <Storage kStorage, class Source>
uint64_t HashOf(const Source& source, uint32_t i, CollationRule rule) {
  if (!source.Valid(i)) return blocks::kNullInput;
  if constexpr (blocks::IsVariableStorage(kStorage)) {
    const Bytes bytes = blocks::Trimmed(source.ReadString(i), rule);
    return (rule & kWeighsEquality) != 0 ? blocks::HashCollated(bytes, rule) : blocks::HashBytes(bytes.data, bytes.length);
  } else if constexpr (kStorage == kFixed) {
    return blocks::HashBytes(source.ReadFixed(i), source.width);
  } else {
    const auto value = source.template ReadValue<typename blocks::ReaderOf<kStorage>::Value>(i);
    if constexpr (kStorage == k128) return blocks::Combine(static_cast<uint64_t>(value), static_cast<uint64_t>(value >> 64));
    else return value;
  }
}

}  // namespace

void HashKeys(const AggregateShape& shape, const KeyDictionaries& dictionaries, uint8_t* const* tuples, uint32_t n, uint64_t* hashes) {
  const QuernJoinShape& group = *shape.group();
  for (size_t key = 0; key < group.num_keys; ++key) {
    const QuernField& field = group.keys[key];
    const ColumnType& type = shape.spec().keys[key].type;
    const CollationRule rule = RuleOf(type.collation);
    DispatchStorage(RowOf(type.id).key_storage, [&](auto tag) {
      constexpr Storage kStorage = decltype(tag)::value;
      const auto add = [&](const auto& source) {
        for (uint32_t i = 0; i < n; ++i) hashes[i] = blocks::Combine(key == 0 ? uint64_t{0} : hashes[i], HashOf<kStorage>(source, i, rule));
      };
      if (dictionaries.has(key)) add(DictionarySource{group, field, tuples, type.width_bytes, dictionaries, key});
      else if (group.word_bytes == 0) add(FieldSource{group, field, tuples, type.width_bytes, 0});
      if constexpr (FitsWord(kStorage)) {
        if (!dictionaries.has(key) && group.word_bytes != 0) add(WordSource{group, field, tuples});
      }
    });
  }
}

absl::StatusOr<uint32_t> WriteKey(const AggregateShape& shape, const KeyDictionaries& dictionaries, size_t key, uint8_t* const* tuples,
                                  uint32_t n, QuernOutColumn* out, uint64_t out_row) {
  const QuernJoinShape& group = *shape.group();
  const QuernField& field = group.keys[key];
  const ColumnType& type = shape.spec().keys[key].type;
  return DispatchStorage(RowOf(type.id).key_storage, [&](auto tag) -> absl::StatusOr<uint32_t> {
    constexpr Storage kStorage = decltype(tag)::value;
    if (dictionaries.has(key)) {
      return Write<kStorage>(DictionarySource{group, field, tuples, type.width_bytes, dictionaries, key}, n, out, out_row);
    }
    if constexpr (FitsWord(kStorage)) {
      if (group.word_bytes != 0) return Write<kStorage>(WordSource{group, field, tuples}, n, out, out_row);
    }
    return Write<kStorage>(FieldSource{group, field, tuples, type.width_bytes, shape.spaces_offset(key)}, n, out, out_row);
  });
}

}  // namespace quern
