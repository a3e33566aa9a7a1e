// SPDX-License-Identifier: Apache-2.0
// Random conditions: printing and parsing are inverse for every kind of predicate, type and constant, and damaged texts
// are rejected with an error.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>

#include "runtime/spec/condition.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/spec/spec_texts.h"

namespace quern {
namespace {

using spec_texts::ExpectDamageIsAnswered;
using spec_texts::ExpectParseInvertsPrint;
using spec_texts::Random;
using spec_texts::RandomKeyType;

constexpr uint64_t kMaxWidthBytes = 20;  // of fixed_binary, whose constants have that length

std::string RandomBytes(Random* random, size_t size) {
  const bool is_ascii = random->Coin();
  std::string bytes;
  while (bytes.size() < size) bytes += static_cast<char>(is_ascii ? 0x20 + random->Below(0x5F) : random->Below(256));
  return bytes;
}

// Numbers of all magnitudes and bit patterns.
double RandomReal(Random* random, bool is_float) {
  const uint64_t bits = random->Bits();
  if (random->Coin())
    return static_cast<double>(static_cast<int64_t>(bits >> random->Below(64))) / (is_float ? 1u << 30 : 8);
  return is_float ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)))
                  : std::bit_cast<double>(bits);
}

__int128 RandomInteger(Random* random, TypeId id) {
  const __int128 bits = static_cast<__int128>(random->Bits()) << 64 | random->Bits();
  if (id == TypeId::kDecimal128) return bits >> random->Below(128);
  const uint32_t width = RowOf(id).width_bytes * 8;
  if (id == TypeId::kBool) return bits & 1;
  if (id >= TypeId::kU8 && id <= TypeId::kU64) return bits & ((__int128{1} << width) - 1);
  return static_cast<int64_t>(bits) >> (64 - width);
}

Literal RandomLiteral(Random* random, const ColumnType& type) {
  Literal literal;
  const Storage storage = RowOf(type.id).storage;
  const bool is_float = type.id == TypeId::kF32;
  if (is_float || type.id == TypeId::kF64) {
    literal.real = RandomReal(random, is_float);
    if (is_float && std::isfinite(literal.real)) literal.real = static_cast<float>(literal.real);
  } else if (IsVariable(storage) || storage == kFixed) {
    literal.bytes = RandomBytes(random, storage == kFixed ? type.width_bytes : random->Below(20));
  } else {
    literal.number = RandomInteger(random, type.id);
  }
  return literal;
}

Predicate RandomLeaf(Random* random) {
  constexpr auto kFirst = static_cast<uint64_t>(PredicateKind::kCompare),
                 kLast = static_cast<uint64_t>(PredicateKind::kIsNull);
  Predicate leaf;
  leaf.kind = static_cast<PredicateKind>(kFirst + random->Below(kLast - kFirst + 1));
  leaf.column = RandomKeyType(random, kMaxWidthBytes);
  const bool compares = leaf.kind == PredicateKind::kCompare || leaf.kind == PredicateKind::kCompareColumns;
  if (leaf.kind == PredicateKind::kLike) {
    while (!IsVariable(RowOf(leaf.column.id).storage)) leaf.column = RandomKeyType(random, kMaxWidthBytes);
    constexpr char32_t kEscapes[] = {U'\\', 0, U'!', U'\'', 1, 0xDF, 0x4E00, 0x1F600};
    leaf.escape = kEscapes[random->Below(std::size(kEscapes))];
  }
  if (compares) leaf.op = static_cast<Comparison>(random->Below(6));
  else leaf.negated = random->Coin();
  if (leaf.kind == PredicateKind::kCompareColumns) {
    leaf.other = leaf.column;
    leaf.other.nullable = random->Coin();
  }
  size_t num_values = leaf.kind == PredicateKind::kCompare || leaf.kind == PredicateKind::kLike ? 1 : 0;
  if (leaf.kind == PredicateKind::kBetween) num_values = 2;
  if (leaf.kind == PredicateKind::kIn) num_values = 1 + random->Below(8);
  while (leaf.values.size() < num_values) leaf.values.push_back(RandomLiteral(random, leaf.column));
  return leaf;
}

Predicate RandomCondition(Random* random, int depth) {
  if (depth == 0 || random->Below(3) == 0) return RandomLeaf(random);
  Predicate whole;
  whole.kind = static_cast<PredicateKind>(random->Below(3));
  const size_t num_children = whole.kind == PredicateKind::kNot ? 1 : 2 + random->Below(3);
  while (whole.children.size() < num_children) {
    Predicate child = RandomCondition(random, depth - 1);
    if (child.kind != whole.kind || child.kind == PredicateKind::kNot) whole.children.push_back(std::move(child));
  }
  return whole;
}

FilterSpec RandomSpec(Random* random) {
  FilterSpec spec;
  spec.where = RandomCondition(random, 4);
  return spec;
}

TEST(FilterSpecRandom, ParseIsTheInverseOfPrint) { ExpectParseInvertsPrint(4000, RandomSpec); }

TEST(FilterSpecRandom, DamagedTextsAreAnswered) { ExpectDamageIsAnswered(6000, "()'=<>x \n0-,:", RandomSpec); }

}  // namespace
}  // namespace quern
