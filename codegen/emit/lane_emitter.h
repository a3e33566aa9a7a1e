// SPDX-License-Identifier: Apache-2.0
// Emits the values of eight rows: loads of columns, and the instructions of a map. Values are local structs
// (QuernLanes), which become vector registers once the blocks are inlined.
#ifndef QUERN_CODEGEN_EMIT_LANE_EMITTER_H_
#define QUERN_CODEGEN_EMIT_LANE_EMITTER_H_

#include <cstdint>
#include <map>
#include <vector>

#include "codegen/emit/emitter.h"
#include "runtime/abi/map_abi.h"

namespace quern {

class LaneEmitter {
 public:
  // map: null where values are columns alone.
  LaneEmitter(const QuernMapDescriptor* map, Emitter* emitter) : map_(map), e_(*emitter) {}

  // In front of all loops: makes room for all values, and copies the columns that the map loads. columns,
  // string_values: of QuernColumn; the latter may be null where the map has none.
  void Begin(llvm::Value* columns, llvm::Value* string_values);
  // Likewise, for other columns: a copy of a column, which stores cannot alias, and room for a value.
  llvm::Value* CopyColumn(llvm::Value* columns, uint32_t column, const char* name);
  llvm::Value* NewValue(const llvm::Twine& name);

  // In a loop: the rows at i, i + 1, .., up to `end`, of those that begin at `first` or that `selection` names.
  void BeginRows(llvm::Value* selection, llvm::Value* first, llvm::Value* i, llvm::Value* end);
  // Likewise, the eight rows at `first`. The map has no string values.
  void BeginAdjacentRows(llvm::Value* first);
  // Reads a column in these rows.
  void Load(llvm::Value* column, Storage storage, bool nullable, bool is_signed, llvm::Value* out);
  // Reads which rows of a nullable column have a value.
  void LoadValid(llvm::Value* column, llvm::Value* out);
  // Computes an instruction of the map, which is no store, and all those before it have been computed.
  void EmitValue(uint32_t instruction);
  // The value of an instruction.
  llvm::Value* value(uint32_t instruction) const { return values_[instruction]; }

  // Forgets that decimals did not fit 64 bits; the rows whose decimals did not since, one bit a row of eight; and
  // whether there were any.
  void ForgetEscaped();
  llvm::Value* EscapedRows();
  llvm::Value* Escaped();

 private:
  void CopyColumns(LaneFunction function, llvm::Value* columns, const char* name, std::vector<llvm::Value*>* copies);
  void EmitFunction(uint32_t k, const QuernMapInstruction& i);
  void LoadFrom(llvm::Value* column, llvm::Value* rows, const QuernMapInstruction& i, llvm::Value* out);

  const QuernMapDescriptor* const map_;
  Emitter& e_;
  llvm::Value *escaped_ = nullptr, *buffer_ = nullptr, *rows_ = nullptr, *string_rows_ = nullptr;
  std::vector<llvm::Value*> columns_, string_values_, values_;  // by column, by column; by instruction
};

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_LANE_EMITTER_H_
