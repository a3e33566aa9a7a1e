// SPDX-License-Identifier: Apache-2.0
// One call of a block for each load and each instruction:
//
//     quern_block_lanes_rows(selection, first, i, end, buffer, &rows);
//     quern_block_lanes_load_64(&column0, &rows, /*nullable=*/false, /*is_signed=*/true, &$0, &escaped);
//     quern_block_lanes_load_64(&column1, &rows, false, true, &$1, &escaped);
//     quern_block_lanes_multiply(&$0, &$1, &$0, &"multiply($0,$1)", 64, true, false, kErrorsIgnored, 0, 0, &escaped);
//
// Values are named after the columns and expressions that they hold, which a dump shows.
#include "codegen/emit/lane_emitter.h"

#include <cstddef>
#include <string>

#include "codegen/emit/value_names.h"
#include "runtime/base/bytes.h"
#include "runtime/map/map_descriptor.h"
#include "runtime/spec/column_type.h"

namespace quern {

using llvm::Value;

using blocks::kLanes;

void LaneEmitter::Begin(Value* columns, Value* string_values) {
  escaped_ = e_.Local(e_.ir().getInt8Ty(), "escaped");
  ForgetEscaped();
  buffer_ = e_.Local(llvm::ArrayType::get(e_.ir().getInt32Ty(), kLanes), "last_rows");
  rows_ = e_.Local(llvm::ArrayType::get(e_.ir().getInt64Ty(), 2), "eight_rows");
  if (map_ == nullptr) return;
  string_rows_ = e_.Local(llvm::ArrayType::get(e_.ir().getInt64Ty(), 2), "string_rows");
  CopyColumns(kLoadLanes, columns, "column", &columns_);
  CopyColumns(kLoadStringsLanes, columns, "column", &columns_);
  CopyColumns(kLoadStringValueLanes, string_values, "string_value", &string_values_);
  CopyColumns(kStringConstantLanes, string_values, "string_value", &string_values_);
  const bool has_names = !e_.ir().getContext().shouldDiscardValueNames();
  std::vector<std::string> names(map_->num_instructions);
  for (uint32_t k = 0; k < map_->num_instructions; ++k) {
    if (has_names) names[k] = NameOfInstruction(map_->instructions[k], names);
    values_.push_back(map_->instructions[k].function == kStoreLanes ? nullptr : NewValue(names[k]));
  }
}

Value* LaneEmitter::CopyColumn(Value* columns, uint32_t column, const char* name) {
  Value* from = e_.Element(columns, column, sizeof(QuernColumn), name + llvm::Twine(column));
  return e_.CopyOfColumn(from, llvm::Twine("local_") + name + llvm::Twine(column));
}

Value* LaneEmitter::NewValue(const llvm::Twine& name) {
  Value* value = e_.Local(llvm::ArrayType::get(e_.ir().getInt64Ty(), sizeof(QuernLanes) / 8), name);
  llvm::cast<llvm::AllocaInst>(value)->setAlignment(llvm::Align(alignof(QuernLanes)));
  return value;
}

void LaneEmitter::CopyColumns(LaneFunction function, Value* columns, const char* name, std::vector<Value*>* copies) {
  for (uint32_t k = 0; k < map_->num_instructions; ++k) {
    const QuernMapInstruction& i = map_->instructions[k];
    if (i.function != function) continue;
    if (copies->size() <= i.column) copies->resize(i.column + 1, nullptr);
    if ((*copies)[i.column] == nullptr) (*copies)[i.column] = CopyColumn(columns, i.column, name);
  }
}

void LaneEmitter::BeginRows(Value* selection, Value* first, Value* i, Value* end) {
  e_.Call("lanes_rows", {selection, first, i, end, buffer_, rows_});
  if (map_->writes_strings) e_.Call("lanes_empty_strings", {});
  if (string_values_.empty()) return;
  // EightRows string_rows = {i, nullptr}: string values have the rows of the call alone.
  e_.ir().CreateStore(e_.ir().CreateZExt(i, e_.ir().getInt64Ty()), string_rows_);
  e_.ir().CreateStore(llvm::ConstantPointerNull::get(e_.ir().getPtrTy()),
                      e_.Element(string_rows_, 1, sizeof(uint64_t), "no_rows"));
}

void LaneEmitter::BeginAdjacentRows(Value* first) {
  e_.ir().CreateStore(first, rows_);
  e_.ir().CreateStore(llvm::ConstantPointerNull::get(e_.ir().getPtrTy()),
                      e_.Element(rows_, 1, sizeof(uint64_t), "no_rows"));
}

void LaneEmitter::Load(Value* column, Storage storage, bool nullable, bool is_signed, Value* out) {
  QuernMapInstruction load = {};
  load.storage = storage;
  load.nullable = nullable;
  load.parameters.is_signed = is_signed;
  LoadFrom(column, rows_, load, out);
}

void LaneEmitter::LoadValid(Value* column, Value* out) { e_.Call("lanes_load_valid", {column, rows_, out}); }

void LaneEmitter::LoadFrom(Value* column, Value* rows, const QuernMapInstruction& i, Value* out) {
  e_.Call("lanes_load_" + std::string(StorageText(i.storage)),
          {column, rows, e_.Bool(i.nullable), e_.Bool(i.parameters.is_signed), out, escaped_});
}

void LaneEmitter::EmitValue(uint32_t k) {
  const QuernMapInstruction& i = map_->instructions[k];
  if (i.function == kLoadLanes) LoadFrom(columns_[i.column], rows_, i, values_[k]);
  else if (i.function == kLoadStringValueLanes) LoadFrom(string_values_[i.column], string_rows_, i, values_[k]);
  else if (i.function == kStringConstantLanes) e_.Call("lanes_string_constant", {string_values_[i.column], values_[k]});
  else if (i.function == kLoadStringsLanes)
    e_.Call("lanes_load_strings", {columns_[i.column], rows_, e_.I8(i.storage),
                                   e_.I8(static_cast<uint8_t>(i.parameters.low)), e_.Bool(i.nullable), values_[k]});
  else EmitFunction(k, i);
}

void LaneEmitter::EmitFunction(uint32_t k, const QuernMapInstruction& i) {
  const QuernLaneParameters& p = i.parameters;
  std::vector<Value*> arguments;
  for (uint32_t a = 0; a < 3; ++a) arguments.push_back(a < NumArguments(i) ? values_[i.arguments[a]] : values_[k]);
  arguments.insert(arguments.end(), {values_[k], e_.I8(p.bits), e_.Bool(p.is_signed), e_.Bool(p.from_signed),
                                     e_.I8(p.errors), e_.I64(p.low), e_.I64(p.high), escaped_});
  e_.Call("lanes_" + std::string(LaneFunctionText(i.function)), arguments);
}

void LaneEmitter::ForgetEscaped() { e_.ir().CreateStore(e_.I8(0), escaped_); }

Value* LaneEmitter::EscapedRows() { return e_.ir().CreateLoad(e_.ir().getInt8Ty(), escaped_, "too_wide"); }

Value* LaneEmitter::Escaped() { return e_.ir().CreateICmpNE(EscapedRows(), e_.I8(0), "is_too_wide"); }

}  // namespace quern
