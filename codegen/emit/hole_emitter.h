// SPDX-License-Identifier: Apache-2.0
// The backend that emits what a hole says (ir-templates/holes/backend.h has the list of operations). Its values have
// the types that they would have in C++, so that the C++ compiler checks the arguments of blocks; constants become LLVM
// values where they are used:
//
//     b.Call(block::Pack{k32}, b.Element(keys, 0, "key"), first, rows, n, words, false, false, 0, 0)
//     call void @quern_block_pack_32(ptr %keys, i64 %first, ptr %rows, i32 %n, ptr %words, i1 false, i1 false, ..)
#ifndef QUERN_CODEGEN_EMIT_HOLE_EMITTER_H_
#define QUERN_CODEGEN_EMIT_HOLE_EMITTER_H_

#include <concepts>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "codegen/emit/emitter.h"
#include "ir-templates/holes/backend.h"
#include "runtime/spec/column_type.h"

namespace quern {

// A value of type T in a kernel: an LLVM value or, where that is null, a constant.
template <class T>
struct Emitted {
  llvm::Value* value = nullptr;
  T constant = {};

  Emitted() = default;
  explicit Emitted(llvm::Value* v) : value(v) {}
  template <class U>
    requires(std::integral<U> && std::integral<T> && std::same_as<U, bool> == std::same_as<T, bool>)
  Emitted(U u) : constant(static_cast<T>(u)) {}  // NOLINT(google-explicit-constructor): as a constant converts in C++
  template <class U>
    requires(std::is_pointer_v<T> && std::is_convertible_v<U, T> && !std::same_as<U, T>)
  Emitted(const Emitted<U>& u) : value(u.value) {}  // NOLINT(google-explicit-constructor): as a pointer to const
};

// Emits the body of one hole.
class HoleEmitter {
 public:
  template <class T>
  using Value = Emitted<T>;

  explicit HoleEmitter(Emitter* emitter) : e_(*emitter) {}

  // An array on the stack, made where it is first used.
  struct RowBuffer {
    Emitted<uint32_t*> rows;
  };
  Emitted<uint32_t*> Address(RowBuffer& buffer) {
    if (buffer.rows.value == nullptr)
      buffer.rows =
          Emitted<uint32_t*>(e_.Local(llvm::ArrayType::get(e_.ir().getInt32Ty(), kMaxBatchRows), "translated"));
    return buffer.rows;
  }

  template <class T>
  struct Variable {
    Emitted<T*> address;
    Variable(HoleEmitter& b, const char* name) : address(b.e_.ir().CreateAlloca(b.Type<T>(), nullptr, name)) {}
    void Set(HoleEmitter& b, const Emitted<T>& x) { b.e_.ir().CreateStore(b.Of(x), address.value); }
    Emitted<T*> Address() const { return address; }
  };

  template <class Block, class... A>
  auto Call(const Block& block, const A&... arguments) {
    std::string name = Block::kName;
    if constexpr (requires { block.storage; }) name += "_" + std::string(StorageText(block.storage));
    return CallAs<Block>(name, static_cast<typename Block::Signature*>(nullptr), arguments...);
  }

  template <class... A>
  bool CallsEntryPoint(const char* symbol, const Emitted<A>&... arguments) {
    llvm::Function* entry = e_.function()->getParent()->getFunction(symbol);
    if (entry == nullptr) return false;
    e_.ir().CreateCall(entry, {Of(arguments)...});
    return true;
  }

  template <class T>
  Emitted<T*> Element(const Emitted<T*>& base, uint32_t i, const char* name) {
    return Emitted<T*>(e_.Element(base.value, i, sizeof(T), llvm::Twine(name) + llvm::Twine(i)));
  }
  Emitted<const uint8_t*> Offset(const Emitted<const uint8_t*>& base, uint32_t bytes, const char* name) {
    return Emitted<const uint8_t*>(e_.Element(base.value, bytes, 1, name));
  }
  template <class T, auto kPointer>
  auto Load(const Emitted<T*>& from, const holes::Member<kPointer>& member, const char* name = nullptr) {
    using M = std::remove_cvref_t<decltype(std::declval<T*>()->*kPointer)>;
    return Emitted<M>(e_.Load(Type<M>(), from.value, member.offset, name != nullptr ? name : member.name));
  }
  template <class T, auto kPointer>
  auto MemberOf(const Emitted<T*>& of, const holes::Member<kPointer>& member) {
    using M = std::remove_cvref_t<decltype(std::declval<T*>()->*kPointer)>;
    return Emitted<M*>(e_.Element(of.value, member.offset, 1, member.name));
  }
  template <class T>
  Emitted<T> LoadElement(const Emitted<T const*>& base, uint32_t i, const char* name) {
    return Emitted<T>(e_.Load(Type<T>(), base.value, i * sizeof(T), name));
  }
  Emitted<bool> TestBits(const Emitted<const uint8_t*>& p, uint32_t i, uint8_t mask, const char* name) {
    llvm::Value* byte = e_.Load(e_.ir().getInt8Ty(), p.value, i, "null_byte");
    return Emitted<bool>(e_.ir().CreateICmpNE(e_.ir().CreateAnd(byte, e_.I8(mask)), e_.I8(0), name));
  }
  void ZeroWords(const Emitted<uint64_t*>& words, const Emitted<uint32_t>& n) {
    llvm::Value* bytes = e_.ir().CreateShl(e_.ir().CreateZExt(n.value, e_.ir().getInt64Ty()), 3, "bytes");
    e_.ir().CreateMemSet(words.value, e_.I8(0), bytes, llvm::MaybeAlign(8));
  }

  Emitted<bool> And(const Emitted<bool>& x, const Emitted<bool>& y, const char* name) {
    return Emitted<bool>(e_.ir().CreateAnd(Of(x), Of(y), name));
  }
  Emitted<bool> Or(const Emitted<bool>& x, const Emitted<bool>& y, const char* name) {
    return Emitted<bool>(e_.ir().CreateOr(Of(x), Of(y), name));
  }
  Emitted<bool> Not(const Emitted<bool>& x, const char* name) { return Emitted<bool>(e_.ir().CreateNot(Of(x), name)); }
  template <class T>
  Emitted<bool> IsNotNull(const Emitted<T*>& p, const char* name) {
    return Emitted<bool>(e_.ir().CreateIsNotNull(p.value, name));
  }
  Emitted<bool> IsZero(const Emitted<int32_t>& x, const char* name) {
    return Emitted<bool>(e_.ir().CreateICmpEQ(Of(x), e_.I32(0), name));
  }
  Emitted<bool> IsPositive(const Emitted<int64_t>& x, const char* name) {
    return Emitted<bool>(e_.ir().CreateICmpSGT(Of(x), e_.I64(0), name));
  }
  Emitted<int64_t> Widen(const Emitted<uint32_t>& n, const char* name) {
    return Emitted<int64_t>(e_.ir().CreateZExt(n.value, e_.ir().getInt64Ty(), name));
  }
  Emitted<uint32_t> Narrow(const Emitted<int64_t>& n, const char* name) {
    return Emitted<uint32_t>(e_.ir().CreateTrunc(n.value, e_.ir().getInt32Ty(), name));
  }

  template <class T>
  Emitted<T> Select(const Emitted<bool>& condition, const Emitted<T>& if_true,
                    const std::type_identity_t<Emitted<T>>& if_false, const char* name) {
    return Emitted<T>(e_.ir().CreateSelect(Of(condition), Of(if_true), Of(if_false), name));
  }

  template <class T, class F>
  Emitted<T> Choose(const Emitted<bool>& condition, const Emitted<T>& if_true, F&& otherwise, const char* name) {
    llvm::BasicBlock *before = e_.ir().GetInsertBlock(), *values = e_.NewBlock("values"),
                     *chosen = e_.NewBlock("chosen");
    e_.ir().CreateCondBr(Of(condition), chosen, values);
    e_.ir().SetInsertPoint(values);
    const Emitted<T> other = otherwise();
    llvm::BasicBlock* values_end = e_.ir().GetInsertBlock();
    e_.ir().CreateBr(chosen);
    e_.ir().SetInsertPoint(chosen);
    return Merge(if_true, before, other, values_end, name);
  }

  template <class F, class... V>
  void If(const Emitted<bool>& condition, F&& body, const holes::Changing<V>&... variables) {
    const auto old = std::make_tuple(variables.value...);
    llvm::BasicBlock *before = e_.ir().GetInsertBlock(), *then = e_.NewBlock("then"), *next = e_.NewBlock("next");
    e_.ir().CreateCondBr(Of(condition), then, next);
    e_.ir().SetInsertPoint(then);
    body();
    llvm::BasicBlock* then_end = e_.ir().GetInsertBlock();
    e_.ir().CreateBr(next);
    e_.ir().SetInsertPoint(next);
    std::apply(
        [&](const auto&... was) {
          ((variables.value = Merge(was, before, variables.value, then_end, variables.name)), ...);
        },
        old);
  }

  // Holes that stop with the same constant share the block that returns it.
  template <class T>
  bool StopsUnless(const Emitted<bool>& condition, const T& value) {
    if constexpr (std::integral<T>) {
      if (stop_ == nullptr) stop_ = e_.NewBlock("stop");
      stop_value_ = Of(Emitted<T>(value));
      Continue(condition, stop_);
    } else {
      ReturnUnless(condition, [&] { return value; });
    }
    return false;
  }

  template <class F, class G>
  bool StopsUnlessEqual(const Emitted<bool>& condition, F&& if_true, G&& if_false, Emitted<int32_t>* /*order*/) {
    const auto stop_unless_equal = [&](const auto& x) { ReturnUnless(x.equal, x.order); };
    if (condition.value == nullptr && !condition.constant) {
      stop_unless_equal(if_false());
      return false;
    }
    llvm::BasicBlock *first = e_.NewBlock("first"), *second = e_.NewBlock("second"), *done = e_.NewBlock("done");
    e_.ir().CreateCondBr(Of(condition), first, second);
    e_.ir().SetInsertPoint(first);
    stop_unless_equal(if_true());
    e_.ir().CreateBr(done);
    e_.ir().SetInsertPoint(second);
    stop_unless_equal(if_false());
    e_.ir().CreateBr(done);
    e_.ir().SetInsertPoint(done);
    return false;
  }

  // Cheap conditions first, without branches between them; then each of the others, only if all before it hold.
  template <class IsCheap, class F>
  Emitted<bool> All(uint32_t n, IsCheap&& is_cheap, F&& holds) {
    Emitted<bool> all = true;
    for (uint32_t i = 0; i < n; ++i) {
      if (!is_cheap(i)) continue;
      const Emitted<bool> one = holds(i);
      all = all.value == nullptr ? one : And(all, one, "words_equal");
    }
    if (all.value != nullptr) StopsUnless(all, false);
    for (uint32_t i = 0; i < n; ++i)
      if (!is_cheap(i)) StopsUnless(holds(i), false);
    return true;
  }

  // Ends the hole.
  template <class T>
  void Return(const Emitted<T>& result) {
    e_.ir().CreateRet(Of(result));
    if (stop_ == nullptr) return;
    e_.ir().SetInsertPoint(stop_);
    e_.ir().CreateRet(stop_value_);
  }
  void Return() { e_.ir().CreateRetVoid(); }

 private:
  template <class T>
  llvm::Type* Type() {
    if constexpr (std::is_pointer_v<T>) return e_.ir().getPtrTy();
    else if constexpr (std::same_as<T, bool>) return e_.ir().getInt1Ty();
    else return e_.ir().getIntNTy(sizeof(T) * 8);
  }

  template <class T>
  llvm::Value* Of(const Emitted<T>& x) {
    if (x.value != nullptr) return x.value;
    if constexpr (std::is_pointer_v<T>) return llvm::ConstantPointerNull::get(e_.ir().getPtrTy());
    else return llvm::ConstantInt::get(Type<T>(), static_cast<uint64_t>(x.constant));
  }

  template <class Block, class R, class... P>
  auto CallAs(const std::string& name, R (* /*signature*/)(P...),
              const std::type_identity_t<Emitted<P>>&... arguments) {
    if constexpr (std::is_void_v<R>) e_.Call(name, {Of(arguments)...});
    else return Emitted<R>(e_.Call(name, {Of(arguments)...}, Block::kValue, std::same_as<R, bool> ? 1 : sizeof(R) * 8));
  }

  template <class T>
  Emitted<T> Merge(const Emitted<T>& a, llvm::BasicBlock* from_a, const Emitted<T>& b, llvm::BasicBlock* from_b,
                   const char* name) {
    llvm::PHINode* phi = e_.ir().CreatePHI(Type<T>(), 2, name);
    phi->addIncoming(Of(a), from_a);
    phi->addIncoming(Of(b), from_b);
    return Emitted<T>(phi);
  }

  llvm::BasicBlock* Continue(const Emitted<bool>& condition, llvm::BasicBlock* stop) {
    llvm::BasicBlock* next = e_.NewBlock("next");
    e_.ir().CreateCondBr(Of(condition), next, stop);
    e_.ir().SetInsertPoint(next);
    return next;
  }

  template <class F>
  void ReturnUnless(const Emitted<bool>& condition, F&& value) {
    llvm::BasicBlock* stop = e_.NewBlock("stop");
    llvm::BasicBlock* next = Continue(condition, stop);
    e_.ir().SetInsertPoint(stop);
    e_.ir().CreateRet(Of(value()));
    e_.ir().SetInsertPoint(next);
  }

  Emitter& e_;
  llvm::BasicBlock* stop_ = nullptr;
  llvm::Value* stop_value_ = nullptr;
};

// Defines quern_hole_<name>, if the template has it, as `function`, which is called with an emitter and the hole's
// parameters. parameters: their names, as "(descriptor, tuple)".
template <class F, class R, class... P>
void EmitHole(Emitter* emitter, std::string_view name, std::string_view parameters, R (* /*signature*/)(P...),
              F&& function) {
  const std::vector<llvm::Value*> values = emitter->Begin(name, parameters);
  if (values.empty()) return;
  HoleEmitter b(emitter);
  size_t i = 0;
  const auto next = [&] { return values[i++]; };
  const std::tuple<Emitted<P>...> arguments = {Emitted<P>(next())...};
  std::apply(
      [&](const auto&... all) {
        if constexpr (std::is_void_v<R>) {
          function(b, all...);
          b.Return();
        } else {
          b.Return(Emitted<R>(function(b, all...)));
        }
      },
      arguments);
}

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_HOLE_EMITTER_H_
