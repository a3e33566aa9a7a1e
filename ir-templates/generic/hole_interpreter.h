// SPDX-License-Identifier: Apache-2.0
// The backend that does what a hole says (ir-templates/holes/backend.h has the list of operations). A block is selected
// by a switch over the storage, once per batch and column; row holes select once per row and column:
//
//     b.Call(block::Hash{key.storage}, ..)    switch (key.storage) { case k64: Hash::Run<k64>(..); .. }
//
// A compiled kernel saves that switch and the loops over the descriptor.
#ifndef QUERN_IR_TEMPLATES_GENERIC_HOLE_INTERPRETER_H_
#define QUERN_IR_TEMPLATES_GENERIC_HOLE_INTERPRETER_H_

#include <type_traits>

#include "ir-templates/holes/backend.h"
#include "runtime/abi/join_abi.h"
#include "runtime/abi/sort_abi.h"
#include "runtime/blocks/storage_dispatch.h"

namespace quern {
namespace {  // each file has its own, which its compiler can inline into the hole

class HoleInterpreter {
 public:
  template <class T>
  using Value = T;

  struct RowBuffer {
    uint32_t rows[kMaxBatchRows];
  };
  static QUERN_INLINE uint32_t* Address(RowBuffer& buffer) { return buffer.rows; }

  template <class T>
  struct Variable {
    T value;
    Variable(HoleInterpreter& /*b*/, const char* /*name*/) {}
    QUERN_INLINE void Set(HoleInterpreter& /*b*/, T x) { value = x; }
    QUERN_INLINE T* Address() { return &value; }
  };

  template <class Block, class... A>
  static QUERN_INLINE auto Call(const Block& block, const A&... arguments) {
    if constexpr (requires { block.storage; }) {
      return DispatchStorage(block.storage, [&](auto tag) {
        constexpr Storage kStorage = decltype(tag)::value;
        // No field has a storage whose block does not exist.
        if constexpr (Block::template kExists<kStorage>) return Block::template Run<kStorage>(arguments...);
        else return decltype(Block::template Run<k64>(arguments...))();
      });
    } else {
      return Block::Run(arguments...);
    }
  }

  template <class... A>
  static constexpr bool CallsEntryPoint(const char* /*symbol*/, A... /*arguments*/) {
    return false;
  }

  template <class T>
  static QUERN_INLINE T* Element(T* base, uint32_t i, const char* /*name*/) {
    return base + i;
  }
  static QUERN_INLINE const uint8_t* Offset(const uint8_t* base, uint32_t bytes, const char* /*name*/) {
    return base + bytes;
  }
  template <class T, auto kPointer>
  static QUERN_INLINE auto Load(T* from, holes::Member<kPointer> /*member*/, const char* /*name*/ = "") {
    return from->*kPointer;
  }
  template <class T, auto kPointer>
  static QUERN_INLINE auto MemberOf(T* of, holes::Member<kPointer> /*member*/) {
    return &(of->*kPointer);
  }
  template <class T>
  static QUERN_INLINE T LoadElement(const T* base, uint32_t i, const char* /*name*/) {
    return base[i];
  }
  static QUERN_INLINE bool TestBits(const uint8_t* p, uint32_t i, uint8_t mask, const char* /*name*/) {
    return (p[i] & mask) != 0;
  }
  static QUERN_INLINE void ZeroWords(uint64_t* words, uint32_t n) {
    __builtin_memset(words, 0, uint64_t{n} * sizeof(uint64_t));
  }

  static QUERN_INLINE bool And(bool x, bool y, const char* /*name*/) { return x && y; }
  static QUERN_INLINE bool Or(bool x, bool y, const char* /*name*/) { return x || y; }
  static QUERN_INLINE bool Not(bool x, const char* /*name*/) { return !x; }
  static QUERN_INLINE bool IsNotNull(const void* p, const char* /*name*/) { return p != nullptr; }
  static QUERN_INLINE bool IsZero(int32_t x, const char* /*name*/) { return x == 0; }
  static QUERN_INLINE bool IsPositive(int64_t x, const char* /*name*/) { return x > 0; }
  static QUERN_INLINE int64_t Widen(uint32_t n, const char* /*name*/) { return n; }
  static QUERN_INLINE uint32_t Narrow(int64_t n, const char* /*name*/) { return static_cast<uint32_t>(n); }

  template <class T>
  static QUERN_INLINE T Select(bool condition, T if_true, std::type_identity_t<T> if_false, const char* /*name*/) {
    return condition ? if_true : if_false;
  }
  template <class T, class F>
  static QUERN_INLINE T Choose(bool condition, T if_true, F&& otherwise, const char* /*name*/) {
    return condition ? if_true : otherwise();
  }
  template <class F, class... V>
  static QUERN_INLINE void If(bool condition, F&& body, holes::Changing<V>... /*variables*/) {
    if (condition) body();
  }
  template <class T>
  static QUERN_INLINE bool StopsUnless(bool condition, T /*value*/) {
    return !condition;
  }
  template <class F, class G>
  static QUERN_INLINE bool StopsUnlessEqual(bool condition, F&& if_true, G&& if_false, int32_t* order) {
    const auto order_of = [](const auto& x) { return x.equal ? 0 : x.order(); };
    *order = condition ? order_of(if_true()) : order_of(if_false());
    return *order != 0;
  }
  template <class IsCheap, class F>
  static QUERN_INLINE bool All(uint32_t n, IsCheap&& /*is_cheap*/, F&& holds) {
    for (uint32_t i = 0; i < n; ++i)
      if (!holds(i)) return false;
    return true;
  }
};

// The layout or descriptor that a hole's first parameter brings.
inline const QuernRowLayout& DescriptorOf(const QuernRowLayout* layout) { return *layout; }
inline const QuernRowLayout& DescriptorOf(const QuernOutputArgs* args) { return *args->layout; }
inline const QuernJoinDescriptor& DescriptorOf(const QuernJoinDescriptor* descriptor) { return *descriptor; }
inline const QuernJoinDescriptor& DescriptorOf(const QuernJoinProbeArgs* args) { return *args->descriptor; }
inline const QuernSortDescriptor& DescriptorOf(const QuernSortDescriptor* descriptor) { return *descriptor; }

// Calls a hole's function with an interpreter, the descriptor and the hole's own arguments.
template <class F>
struct Interpreted {
  F function;
  template <class First, class... A>
  QUERN_INLINE auto operator()(First first, A... arguments) const {
    HoleInterpreter b;
    return function(b, DescriptorOf(first), first, arguments...);
  }
};
#define QUERN_INTERPRET(Function, arguments)                                                   \
  return quern::Interpreted {                                                                  \
    [](auto&... all) __attribute__((always_inline)) { return quern::holes::Function(all...); } \
  }                                                                                            \
  arguments

}  // namespace
}  // namespace quern

#endif  // QUERN_IR_TEMPLATES_GENERIC_HOLE_INTERPRETER_H_
