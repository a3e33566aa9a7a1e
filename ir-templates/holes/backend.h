// SPDX-License-Identifier: Apache-2.0
// What each hole does is written once, as a function template over a *backend* that takes the descriptor and the hole's
// own parameters (tuple_holes.h, join_holes.h, sort_holes.h). There are two backends:
//
//     HoleInterpreter   ir-templates/generic/hole_interpreter.h   does it: the generic kernel
//     HoleEmitter       codegen/emit/hole_emitter.h               emits IR that does it: a compiled kernel
//
// Whatever depends on the descriptor alone is plain C++: loops over keys, tests of their storages. Values that exist
// only while a kernel runs have the type B::Value<T>, which is T itself for the interpreter and an LLVM value for the
// emitter; only operations of the backend apply to them. For
//
//     for (uint32_t k = 0; k < d.num_keys; ++k)
//       b.Call(block::Pack{d.keys[k].storage}, b.Element(keys, k, "key"), first, rows, n, words, k > 0, ..);
//
// and keys i32,i16 the interpreter makes two turns, in each of which it selects a block; the emitter emits two calls
// in a row, in which `k > 0` is a constant. The operations, and their C++ equivalents:
//
//     b.Call(block, ..)                block(..)                a block of runtime/blocks/block_table.h
//     b.Element(base, i, name)         base + i                 i is known to the emitter; Offset(..) is the same for
//                                                               bytes of a tuple
//     b.Load(p, QUERN_MEMBER(T, m))    p->m                     MemberOf(..) is &p->m
//     b.LoadElement(base, i, name)     base[i]
//     b.TestBits(p, i, mask, name)     (p[i] & mask) != 0
//     b.And(x, y, name)                x & y                    Or, Not, IsNotNull, IsZero, ..
//     b.Select(c, x, y, name)          c ? x : y                both are evaluated
//     b.Choose(c, x, f, name)          c ? x : f()
//     b.If(c, f, Changing{v, name}..)  if (c) f();              f may assign to the variables v
//     if (b.StopsUnless(c, x)) return x;        if (!c) return x;
//     if (b.StopsUnlessEqual(c, f, g, &x)) return x;              x = c ? f() : g(); if (!x.equal) return x.order();
//     return b.All(n, is_cheap, f);             return f(0) && .. && f(n - 1); in any order
//     b.ZeroWords(words, n)            memset(words, 0, n * 8)
//     b.CallsEntryPoint(symbol, ..)    false                    the emitter calls the entry point, and answers true
//     B::Variable<T> v(b, name)        T v;                     v.Set(b, x): v = x; v.Address(): &v
//
// Names are those of values in the IR. No call has two arguments that are operations themselves: C++ leaves the order
// of arguments open, and IR shall not depend on the compiler.
#ifndef QUERN_IR_TEMPLATES_HOLES_BACKEND_H_
#define QUERN_IR_TEMPLATES_HOLES_BACKEND_H_

#include <cstddef>
#include <cstdint>

#include "runtime/blocks/block_table.h"

namespace quern::holes {

template <class B, class T>
using ValueOf = typename B::template Value<T>;

// A member of an ABI struct, for Load and MemberOf.
template <auto kPointer>
struct Member {
  size_t offset;
  const char* name;
};
#define QUERN_MEMBER(Struct, member) (::quern::holes::Member<&Struct::member>{offsetof(Struct, member), #member})

// A variable that the body of an If assigns to.
template <class V>
struct Changing {
  V& value;
  const char* name;
};

// How two tuples compare by one key. order(): negative or positive, unless they are equal.
template <class Bool, class Order>
struct Comparison {
  Bool equal;
  Order order;
};

// The column that a block reads and the rows at which it reads it.
template <class B>
struct Source {
  ValueOf<B, const QuernColumn*> column;
  ValueOf<B, const uint32_t*> rows;
};

// A column and its rows; those of a dictionary column are first translated to rows of the dictionary's values, so that
// no other block has to handle dictionaries. One buffer serves all dictionaries of a hole in turn.
template <class B>
Source<B> Translate(B& b, Storage index, ValueOf<B, const QuernColumn*> column, ValueOf<B, uint64_t> first,
                    ValueOf<B, const uint32_t*> rows, ValueOf<B, uint32_t> n, typename B::RowBuffer& buffer) {
  if (index == kNoStorage) return {column, rows};
  const auto translated = b.Address(buffer);
  b.Call(block::DictionaryRows{index}, column, first, rows, n, translated);
  return {b.Load(column, QUERN_MEMBER(QuernColumn, dictionary)), translated};
}

}  // namespace quern::holes

#endif  // QUERN_IR_TEMPLATES_HOLES_BACKEND_H_
