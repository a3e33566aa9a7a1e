// SPDX-License-Identifier: Apache-2.0
// Rows with a column of each storage, and files that fail.
#ifndef QUERN_TEST_UNIT_RUNTIME_SPILL_SPILL_TEST_ROWS_H_
#define QUERN_TEST_UNIT_RUNTIME_SPILL_SPILL_TEST_ROWS_H_

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/blocks/blocks.h"
#include "runtime/rows/batch_view.h"
#include "runtime/spec/column_type.h"
#include "runtime/spill/spill_context.h"
#include "runtime/spill/spill_store.h"

namespace quern {

inline ColumnType TypeOf(TypeId id, bool nullable = false, uint32_t width = 0) {
  ColumnType type;
  type.id = id;
  type.nullable = nullable;
  type.width_bytes = width;
  return type;
}

// Row r of the columns i64 (nullable), bool, utf8 (nullable), large_utf8, utf8_view, fixed_binary(3), and a dictionary
// of utf8 with i8 as index, all of which follow from r.
class TestRows {
 public:
  explicit TestRows(uint32_t num_rows) {
    bits_.resize(num_rows / 8 + 1);
    validity_.resize(num_rows / 8 + 1);
    offsets_.push_back(0);
    large_offsets_.push_back(0);
    for (uint32_t r = 0; r < num_rows; ++r) {
      numbers_.push_back(NumberOf(r));
      if (BoolOf(r)) bits_[r / 8] |= static_cast<uint8_t>(1 << r % 8);
      if (!IsNull(r)) validity_[r / 8] |= static_cast<uint8_t>(1 << r % 8);
      const std::string text = TextOf(r);
      strings_ += text;
      offsets_.push_back(static_cast<int32_t>(strings_.size()));
      large_offsets_.push_back(static_cast<int64_t>(strings_.size()));
      for (int i = 0; i < 3; ++i) fixed_.push_back(static_cast<uint8_t>(r >> 8 * i));
      codes_.push_back(static_cast<int8_t>(r % 3));
    }
    for (uint32_t r = 0; r < num_rows; ++r) views_.push_back(ViewAt(r));
    const std::string words[] = {"", "an entry of more than twelve bytes", "short"};
    dictionary_offsets_.push_back(0);
    for (const std::string& word : words) {
      dictionary_bytes_ += word;
      dictionary_offsets_.push_back(static_cast<int32_t>(dictionary_bytes_.size()));
    }
    dictionary_.values = dictionary_bytes_.data();
    dictionary_.offsets = dictionary_offsets_.data();
    buffer_ = reinterpret_cast<const uint8_t*>(strings_.data());
    batch_.num_rows = num_rows;
    batch_.first_row_id = 0;
    AddColumn(numbers_.data(), nullptr, validity_.data());
    AddColumn(bits_.data(), nullptr, nullptr);
    AddColumn(strings_.data(), offsets_.data(), validity_.data());
    AddColumn(strings_.data(), large_offsets_.data(), nullptr);
    AddColumn(views_.data(), nullptr, nullptr);
    batch_.keys.back().buffers = &buffer_;
    AddColumn(fixed_.data(), nullptr, nullptr);
    AddColumn(codes_.data(), nullptr, nullptr);
    batch_.keys.back().dictionary = &dictionary_;
  }
  TestRows(const TestRows&) = delete;
  TestRows& operator=(const TestRows&) = delete;

  static std::vector<ColumnType> Types() {
    ColumnType dictionary = TypeOf(TypeId::kUtf8);
    dictionary.is_dictionary = true;
    dictionary.index = TypeId::kI8;
    return {TypeOf(TypeId::kI64, true),
            TypeOf(TypeId::kBool),
            TypeOf(TypeId::kUtf8, true),
            TypeOf(TypeId::kLargeUtf8),
            TypeOf(TypeId::kUtf8View),
            TypeOf(TypeId::kFixedBinary, false, 3),
            dictionary};
  }

  static int64_t NumberOf(uint32_t r) { return static_cast<int64_t>(r) * 0x10001 - 7; }
  static bool BoolOf(uint32_t r) { return r % 5 < 2; }
  static bool IsNull(uint32_t r) { return r % 11 == 3; }
  static std::string TextOf(uint32_t r) { return std::string(r % 29, 'a') + std::to_string(r); }

  const BatchView& batch() const { return batch_; }

  // The row as a text, of a batch as it comes back.
  static std::string RowText(const BatchView& batch, uint32_t r) {
    const auto string = [&](size_t c, auto tag) {
      return blocks::IsValid(&batch.keys[c], r) ? Text(blocks::ReaderOf<tag.value>::Read(&batch.keys[c], r)) : "null";
    };
    std::string text = blocks::IsValid(batch.keys.data(), r)
                           ? std::to_string(static_cast<const int64_t*>(batch.keys[0].values)[r])
                           : "null";
    text += blocks::BitReader::Read(&batch.keys[1], r) != 0 ? " t " : " f ";
    text += string(2, std::integral_constant<Storage, kVar32>());
    text += " " + string(3, std::integral_constant<Storage, kVar64>());
    text += " " + string(4, std::integral_constant<Storage, kView>());
    const auto* const fixed = static_cast<const uint8_t*>(batch.keys[5].values) + size_t{3} * r;
    text += " " + std::to_string(fixed[0] + fixed[1] * 256 + fixed[2] * 65536);
    return text + " " + string(6, std::integral_constant<Storage, kVar32>());
  }

  static std::string ExpectedText(uint32_t r) {
    const std::string words[] = {"", "an entry of more than twelve bytes", "short"};
    return (IsNull(r) ? "null" : std::to_string(NumberOf(r))) + (BoolOf(r) ? " t " : " f ") +
           (IsNull(r) ? "null" : TextOf(r)) + " " + TextOf(r) + " " + TextOf(r) + " " + std::to_string(r) + " " +
           words[r % 3];
  }

 private:
  static std::string Text(const blocks::Bytes& bytes) { return {bytes.data, bytes.data + bytes.length}; }

  void AddColumn(const void* values, const void* offsets, const uint8_t* validity) {
    QuernColumn column = {};
    column.values = values;
    column.offsets = offsets;
    column.validity = validity;
    batch_.keys.push_back(column);
  }

  struct View {
    uint32_t length;
    uint8_t bytes[12];
  };
  View ViewAt(uint32_t r) const {
    View view = {};
    view.length = static_cast<uint32_t>(offsets_[r + 1] - offsets_[r]);
    const char* const text = strings_.data() + offsets_[r];
    std::memcpy(view.bytes, text, view.length <= 12 ? view.length : 4);
    if (view.length > 12) std::memcpy(view.bytes + 8, &offsets_[r], sizeof(offsets_[r]));
    return view;
  }

  BatchView batch_;
  std::vector<int64_t> numbers_;
  std::vector<uint8_t> bits_, validity_, fixed_;
  std::vector<int32_t> offsets_, dictionary_offsets_;
  std::vector<int64_t> large_offsets_;
  std::vector<View> views_;
  std::vector<int8_t> codes_;
  std::string strings_, dictionary_bytes_;
  QuernColumn dictionary_ = {};
  const uint8_t* buffer_ = nullptr;
};

// How a call that fails does so.
enum class Fault : uint8_t { kError, kShort, kNothing, kOtherBytes };

// The calls of the system, of which number `fails_at` (from 0, over all kinds) is disturbed.
class FaultyCalls final : public FileCalls {
 public:
  explicit FaultyCalls(int64_t fails_at = -1, Fault fault = Fault::kError) : fails_at_(fails_at), fault_(fault) {}

  int Open(const char* folder) override {
    if (Fails() && fault_ == Fault::kError) return Error(ENOENT);
    const int file = FileCalls::Open(folder);
    if (file >= 0) ++num_open;
    return file;
  }
  ssize_t Write(int file, const iovec* pieces, int num_pieces, off_t offset) override {
    if (Fails()) {
      if (fault_ == Fault::kError) return Error(ENOSPC);
      if (fault_ == Fault::kNothing) return 0;
      if (fault_ == Fault::kShort) {
        const iovec half = {pieces[0].iov_base, (pieces[0].iov_len + 1) / 2};
        return FileCalls::Write(file, &half, 1, offset);
      }
    }
    return FileCalls::Write(file, pieces, num_pieces, offset);
  }
  ssize_t Read(int file, void* bytes, size_t num_bytes, off_t offset) override {
    const bool fails = Fails();
    if (fails && fault_ == Fault::kError) return Error(EIO);
    if (fails && fault_ == Fault::kNothing) return 0;
    if (fails && fault_ == Fault::kShort) num_bytes = (num_bytes + 1) / 2;
    const ssize_t n = FileCalls::Read(file, bytes, num_bytes, offset);
    if (fails && fault_ == Fault::kOtherBytes && n > 0) static_cast<uint8_t*>(bytes)[n / 2] ^= 4;
    return n;
  }
  int64_t HasRead(void* bytes, int64_t result) override {
    if (!Fails()) return result;
    if (fault_ == Fault::kError) return -EIO;
    if (fault_ == Fault::kNothing) return 0;
    if (fault_ == Fault::kShort) return (result + 1) / 2;
    if (result > 0) static_cast<uint8_t*>(bytes)[result / 2] ^= 4;
    return result;
  }
  int PunchHole(int file, off_t offset, off_t num_bytes) override {
    if (Fails() && fault_ == Fault::kError) return Error(EOPNOTSUPP);
    return FileCalls::PunchHole(file, offset, num_bytes);
  }
  int Close(int file) override {
    --num_open;
    return FileCalls::Close(file);
  }

  std::atomic<int64_t> num_calls{0};
  std::atomic<int64_t> num_open{0};

 private:
  bool Fails() { return num_calls++ == fails_at_; }
  static int Error(int error) {
    errno = error;
    return -1;
  }
  const int64_t fails_at_;
  const Fault fault_;
};

// Files that count the blocks that are free again.
class CountedFrees final : public SpillStore {
 public:
  // Both are not owned.
  CountedFrees(FileCalls* calls, std::atomic<uint32_t>* num_freed) : files_("/tmp", 0, calls), num_freed_(num_freed) {}
  absl::StatusOr<StoredBlock> Write(std::span<const iovec> pieces) override { return files_.Write(pieces); }
  absl::Status Read(const StoredBlock& block, uint8_t* bytes) override { return files_.Read(block, bytes); }
  void Free(const StoredBlock& block) override {
    ++*num_freed_;
    files_.Free(block);
  }

 private:
  TemporaryFiles files_;
  std::atomic<uint32_t>* const num_freed_;
};

inline std::shared_ptr<SpillContext> TestContext(const std::shared_ptr<MemoryBudget>& budget,
                                                 FileCalls* calls = SystemFileCalls(),
                                                 const SpillSettings& settings = {}, uint64_t max_bytes = 0) {
  return std::make_shared<SpillContext>(std::make_unique<TemporaryFiles>("/tmp", max_bytes, calls), budget, settings);
}

}  // namespace quern

#endif  // QUERN_TEST_UNIT_RUNTIME_SPILL_SPILL_TEST_ROWS_H_
