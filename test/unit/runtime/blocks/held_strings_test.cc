// SPDX-License-Identifier: Apache-2.0
// A key's field of any width stores a string of any length and finds it equal to the same string alone. Neither reads a
// byte outside the string or the field, nor writes one behind the field.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/blocks/blocks.h"
#include "test/templates/guarded_buffer.h"

namespace quern {
namespace {

using test::Guard;
using test::GuardedBuffer;

constexpr uint32_t kMostHeld = 68;
constexpr Guard kGuards[] = {Guard::kBehind, Guard::kInFront};

// Different bytes at any two places, so that a piece from a wrong place shows.
std::vector<uint8_t> SomeBytes(uint32_t length) {
  std::vector<uint8_t> bytes(length);
  for (uint32_t i = 0; i < length; ++i) bytes[i] = static_cast<uint8_t>(i + 1);
  return bytes;
}

struct Text {
  Text(const std::vector<uint8_t>& bytes, Guard guard) : buffer(GuardedBuffer::Of(bytes, guard)) {}
  blocks::Bytes bytes() const { return {buffer.data(), static_cast<uint32_t>(buffer.bytes())}; }

  GuardedBuffer buffer;
};

// Calls check(text's bytes, field, held bytes, guard), with the text stored in the field.
template <class Check>
void ForAllFields(Check check) {
  for (uint32_t held = kInlineStringBytes; held <= kMostHeld; held += 8) {
    for (uint32_t length = 0; length <= held + 2; ++length) {
      for (const Guard guard : kGuards) {
        SCOPED_TRACE("held " + std::to_string(held) + ", length " + std::to_string(length));
        const std::vector<uint8_t> bytes = SomeBytes(length);
        const Text text(bytes, guard);
        const GuardedBuffer field(held + 4, guard);
        blocks::StoreString(text.bytes(), field.data(), held);
        check(bytes, field.data(), held, guard);
      }
    }
  }
}

TEST(HeldStrings, AreTheStringsThatWereStored) {
  ForAllFields([](const std::vector<uint8_t>& bytes, const uint8_t* field, uint32_t held, Guard guard) {
    const blocks::Bytes stored = blocks::BytesOf(field, held);
    EXPECT_EQ(std::vector<uint8_t>(stored.data, stored.data + stored.length), bytes);
    EXPECT_TRUE(blocks::EqualString(Text(bytes, guard).bytes(), field, held));
  });
}

TEST(HeldStrings, DifferWhereAnyByteDoes) {
  ForAllFields([](std::vector<uint8_t> bytes, const uint8_t* field, uint32_t held, Guard guard) {
    for (uint8_t& byte : bytes) {
      byte ^= 0x80;
      EXPECT_FALSE(blocks::EqualString(Text(bytes, guard).bytes(), field, held)) << &byte - bytes.data();
      byte ^= 0x80;
    }
  });
}

TEST(HeldStrings, DifferWhereLengthsDo) {
  ForAllFields([](const std::vector<uint8_t>& bytes, const uint8_t* field, uint32_t held, Guard guard) {
    for (uint32_t length = 0; length <= kMostHeld + 4; ++length) {
      if (length == bytes.size()) continue;
      EXPECT_FALSE(blocks::EqualString(Text(SomeBytes(length), guard).bytes(), field, held)) << length;
    }
  });
}

}  // namespace
}  // namespace quern
