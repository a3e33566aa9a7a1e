// SPDX-License-Identifier: Apache-2.0
// string_agg: a group's strings, joined by a separator in the order of their row ids. Rows reach a thread in order, but
// the batches of one group are spread over threads, so each state keeps row ids beside its strings and is sorted at the
// end unless it is already in order:
//
//     thread 1: | 17, 3, "abc" | 19, 1, "d" |       entries of 12 bytes (row id, length) and the bytes
//     thread 2: | 4, 2, "xy" |
//     merged:   | 17, 3, "abc" | 19, 1, "d" | 4, 2, "xy" |    4 after 19: not in order
//     result:   "xy, abc, d"
//
// Merging appends the shorter list to the longer one, so a list that meets many others is copied few times. Sorting
// needs an array of addresses, 8 bytes a string, for one group at a time.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/aggregate/accumulators/out_of_line_kinds.h"

namespace quern {
namespace {

namespace b = blocks;
using b::Bytes;

constexpr uint64_t kEntryBytes = sizeof(uint64_t) + sizeof(uint32_t);  // before the string's own

struct StringList {
  Piece entries;
  uint64_t used_bytes;
  uint64_t num_strings;
  uint64_t last_row_id;
  uint64_t is_unordered;
};

uint64_t RowIdAt(const uint8_t* entry) { return b::Load<uint64_t>(entry); }
Bytes StringAt(const uint8_t* entry) { return {entry + kEntryBytes, b::Load<uint32_t>(entry + sizeof(uint64_t))}; }
const uint8_t* EntryAfter(const uint8_t* entry) { return entry + kEntryBytes + StringAt(entry).length; }

absl::Status Append(uint64_t row_id, Bytes s, StringList* list, AccumulatorMemory* memory) {
  const uint64_t used_bytes = list->used_bytes + kEntryBytes + s.length;
  QUERN_RETURN_IF_ERROR(list->entries.Grow(list->used_bytes, used_bytes, memory));
  uint8_t* const to = list->entries.data + list->used_bytes;
  b::Store(to, row_id);
  b::Store(to + sizeof(uint64_t), s.length);
  if (s.length > 0) std::memcpy(to + kEntryBytes, s.data, s.length);
  list->is_unordered |= list->num_strings > 0 && row_id < list->last_row_id;
  list->last_row_id = row_id;
  list->used_bytes = used_bytes;
  ++list->num_strings;
  return absl::OkStatus();
}

absl::Status AppendAll(const StringList& from, StringList* list, AccumulatorMemory* memory) {
  if (from.num_strings == 0) return absl::OkStatus();
  QUERN_RETURN_IF_ERROR(list->entries.Grow(list->used_bytes, list->used_bytes + from.used_bytes, memory));
  std::memcpy(list->entries.data + list->used_bytes, from.entries.data, from.used_bytes);
  list->is_unordered |= from.is_unordered | (list->num_strings > 0 && RowIdAt(from.entries.data) < list->last_row_id);
  list->last_row_id = from.last_row_id;
  list->used_bytes += from.used_bytes;
  list->num_strings += from.num_strings;
  return absl::OkStatus();
}

template <Storage kStorage>
absl::Status AppendBlock(const ValueRows& values, AccumulatorMemory* memory) {
  const RowsToCome states(values.prefetch_rows, values.n);
  AddedRows added(values.num_added);
  for (uint32_t& i = added.n; i < values.n; ++i) {
    states.Before(i, [&](uint32_t row) { return values.states[row]; });
    const Bytes s = b::ReadBytes<kStorage>(&values.column, values.rows[i], 0, 0);
    QUERN_RETURN_IF_ERROR(Append(values.RowId(i), s, StateAt<StringList>(values.states[i]), memory));
  }
  return absl::OkStatus();
}

class Joiner {
 public:
  explicit Joiner(std::string_view separator) : separator_(separator) {}

  uint64_t JoinedBytes(const StringList& list) const {
    if (list.num_strings == 0) return 0;
    return list.used_bytes - list.num_strings * kEntryBytes + (list.num_strings - 1) * separator_.size();
  }

  // Writes JoinedBytes(list) bytes.
  void Join(const StringList& list, uint8_t* to) {
    const uint8_t* entry = list.entries.data;
    if (list.is_unordered == 0) {
      for (uint64_t i = 0; i < list.num_strings; ++i, entry = EntryAfter(entry))
        to = Write(StringAt(entry), i == 0, to);
      return;
    }
    sorted_.clear();
    for (uint64_t i = 0; i < list.num_strings; ++i, entry = EntryAfter(entry)) sorted_.push_back(entry);
    std::sort(sorted_.begin(), sorted_.end(),
              [](const uint8_t* x, const uint8_t* y) { return RowIdAt(x) < RowIdAt(y); });
    for (const uint8_t* next : sorted_) to = Write(StringAt(next), next == sorted_.front(), to);
  }

 private:
  uint8_t* Write(Bytes s, bool is_first, uint8_t* to) const {
    if (!is_first) to = std::copy(separator_.begin(), separator_.end(), to);
    return std::copy_n(s.data, s.length, to);
  }

  std::string_view separator_;
  std::vector<const uint8_t*> sorted_;
};

// Lists as the source of an output column, as FitStrings requires.
struct JoinedStrings {
  struct Length {
    uint64_t length;
  };
  const uint8_t* const* states;
  const Joiner* joiner;

  const StringList& At(uint32_t i) const { return StateAt<StringList>(states[i]); }
  bool Valid(uint32_t i) const { return At(i).num_strings > 0; }
  Length ReadString(uint32_t i) const { return {joiner->JoinedBytes(At(i))}; }
};

// Joins the strings at their final address. A view's short string lies in the view itself.
template <Storage kStorage>
void WriteJoined(const StringList& list, Joiner* joiner, QuernOutColumn* out, uint64_t row) {
  const uint64_t length = joiner->JoinedBytes(list);
  if constexpr (kStorage == kView) {
    if (length <= kInlineStringBytes) {
      uint8_t bytes[kInlineStringBytes];
      joiner->Join(list, bytes);
      return b::WriteString<kStorage>({bytes, static_cast<uint32_t>(length)}, out, row);
    }
  }
  uint8_t* const to = out->bytes + out->num_bytes;
  joiner->Join(list, to);
  if constexpr (kStorage == kView) {
    StringRef view = b::MakeStringRef({to, static_cast<uint32_t>(length)});
    view.bytes =
        reinterpret_cast<const char*>(out->num_bytes << 32);  // buffer 0 in the low half, offset in the high half
    b::Store(static_cast<uint8_t*>(out->values) + row * sizeof(view), view);
  }
  out->num_bytes += length;
  if constexpr (kStorage == kVar32) static_cast<int32_t*>(out->offsets)[row + 1] = static_cast<int32_t>(out->num_bytes);
  if constexpr (kStorage == kVar64) static_cast<int64_t*>(out->offsets)[row + 1] = static_cast<int64_t>(out->num_bytes);
}

template <class F>
auto DispatchString(Storage storage, F&& f) {
  if (storage == kVar32) return f(StorageTag<kVar32>{});
  if (storage == kVar64) return f(StorageTag<kVar64>{});
  return f(StorageTag<kView>{});
}

class StringAgg final : public SpecAccumulator {
 public:
  explicit StringAgg(const AggregateSpec& spec) : SpecAccumulator(spec) {}

  uint32_t state_bytes() const override { return sizeof(StringList); }

  absl::Status Update(const AccumulatorRows& rows, AccumulatorMemory* memory) const override {
    return DispatchString(storage(), [&](auto tag) {
      return ForEachBlock(type(), rows,
                          [&](const ValueRows& values) { return AppendBlock<decltype(tag)::value>(values, memory); });
    });
  }

  absl::Status Merge(uint8_t* const* into, uint8_t* const* from, uint32_t n, AccumulatorMemory* memory) const override {
    for (uint32_t i = 0; i < n; ++i) {
      auto *to = StateAt<StringList>(into[i]), *other = StateAt<StringList>(from[i]);
      if (other->used_bytes > to->used_bytes) std::swap(*to, *other);
      QUERN_RETURN_IF_ERROR(AppendAll(*other, to, memory));
      other->entries.GiveBack(memory);
      *other = {};
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint32_t> Finalise(const uint8_t* const* states, uint32_t n, QuernOutColumn* out, uint64_t out_row,
                                    void* /*host*/) const override {
    Joiner joiner(spec().separator);
    const JoinedStrings source = {states, &joiner};
    return DispatchString(storage(), [&](auto tag) -> absl::StatusOr<uint32_t> {
      constexpr Storage kStorage = decltype(tag)::value;
      QUERN_ASSIGN_OR_RETURN(const uint32_t fit, FitOf(b::FitStrings<kStorage>(source, n, out)));
      for (uint32_t i = 0; i < fit; ++i) {
        WriteValidity(out, out_row + i, source.Valid(i));
        WriteJoined<kStorage>(source.At(i), &joiner, out, out_row + i);
      }
      return fit;
    });
  }

  // 8 bytes for the number of strings; for each string 8 bytes of row id, 4 of length, and the bytes.
  void Save(const uint8_t* state, std::string* bytes) const override {
    const auto& list = StateAt<StringList>(state);
    AppendValue(list.num_strings, bytes);
    if (list.used_bytes > 0) bytes->append(reinterpret_cast<const char*>(list.entries.data), list.used_bytes);
  }

  absl::Status MergeSaved(uint8_t* state, std::string_view bytes, AccumulatorMemory* memory) const override {
    if (!IsIntact(bytes)) return Damaged(bytes);
    SavedReader reader(bytes);
    auto* const list = StateAt<StringList>(state);
    auto left = reader.Read<uint64_t>();
    QUERN_RETURN_IF_ERROR(list->entries.Grow(list->used_bytes, list->used_bytes + reader.num_bytes_left(), memory));
    for (; left > 0; --left) {
      const auto row_id = reader.Read<uint64_t>();
      const auto length = reader.Read<uint32_t>();
      QUERN_RETURN_IF_ERROR(Append(row_id, {reader.ReadBytes(length), length}, list, memory));
    }
    return absl::OkStatus();
  }

 private:
  static bool IsIntact(std::string_view bytes) {
    SavedReader reader(bytes);
    for (auto left = reader.Read<uint64_t>(); left > 0 && reader.ok(); --left) {
      reader.Read<uint64_t>();
      reader.ReadBytes(reader.Read<uint32_t>());
    }
    return reader.IsAtEnd();
  }
};

}  // namespace

std::unique_ptr<OutOfLineAggregate> MakeStringAgg(const AggregateSpec& spec) {
  return std::make_unique<StringAgg>(spec);
}

}  // namespace quern
