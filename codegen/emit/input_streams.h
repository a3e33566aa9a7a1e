// SPDX-License-Identifier: Apache-2.0
// Prefetches of columns that loops read row after row, some thousand rows ahead: random accesses to groups hide such
// reads from the processor's prefetchers, and these begin anew in each block of rows.
#ifndef QUERN_CODEGEN_EMIT_INPUT_STREAMS_H_
#define QUERN_CODEGEN_EMIT_INPUT_STREAMS_H_

#include <cstdint>
#include <set>
#include <vector>

#include "codegen/emit/emitter.h"
#include "runtime/abi/map_abi.h"

namespace quern {

constexpr uint32_t kRowsPerPrefetch = 8;  // that one call of Prefetch is for

class InputStreams {
 public:
  // rows_ahead: the distance; 0: nothing is prefetched.
  InputStreams(uint32_t rows_ahead, Emitter* emitter) : rows_ahead_(rows_ahead), e_(*emitter) {}

  // In front of the loops: the values[] or offsets[] of a QuernColumn whose elements are whole bytes; others are too
  // small to be worth a prefetch.
  void Add(llvm::Value* column, Storage storage);
  // The columns of `columns`, QuernColumns, that a map loads, each once, without those of `others`. map: may be null.
  void AddColumnsOf(const QuernMapDescriptor* map, llvm::Value* columns, std::set<uint32_t> others);
  bool empty() const { return streams_.empty(); }

  // In a loop, once every kRowsPerPrefetch rows: one cache line of eight-byte values, two of decimals, for the rows
  // that are rows_ahead behind `row`, an i64.
  void Prefetch(llvm::Value* row);

 private:
  struct Stream {
    llvm::Value* begin;
    uint32_t bytes;  // of an element
  };

  const uint32_t rows_ahead_;
  Emitter& e_;
  std::vector<Stream> streams_;
};

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_INPUT_STREAMS_H_
