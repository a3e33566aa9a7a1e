// SPDX-License-Identifier: Apache-2.0
// The out-of-line blocks (out_of_line_blocks.def lists them and says why), compiled with the library: each is the
// block of block_table.h under the name to which generated code links.
#include "runtime/base/refused_calls.h"
#include "runtime/blocks/block_table.h"
#include "runtime/collation/collation.h"

namespace b = quern::blocks;
namespace block = quern::block;

extern "C" {
int32_t quern_rt_order_string(const uint8_t* a, const uint8_t* b, CollationRule rule) {
  b::Bytes x = b::BytesOf(a, 0), y = b::BytesOf(b, 0);
  if ((rule & kTrimsSpaces) != 0) {
    x = b::TrimSpaces(x);
    y = b::TrimSpaces(y);
  }
  if ((rule & kWeighsOrder) == 0) return b::OrderBytes(x, y, 0, rule);
  return quern::OrNoted(0, [&] { return quern::CompareStrings(x, y, rule); });
}

void quern_rt_encode_nulls QUERN_ENCODE_NULLS_PARAMETERS {
  block::EncodeNulls::Run(column, first, rows, n, words, combine, shift, null_is_one);
}

#define QUERN_CALLED_ENCODE(text, kStorage, kPart) \
  void quern_rt_encode_##text QUERN_ENCODE_PARAMETERS { b::EncodeColumn<kStorage, kPart> QUERN_ENCODE_ARGUMENTS; }
#define QUERN_CALLED_BYTES(text, kStorage)                            \
  void quern_rt_encode_##text QUERN_ENCODE_BYTES_PARAMETERS {         \
    quern::OrNoted(0, [&] {                                           \
      block::EncodeBytes::Run<kStorage> QUERN_ENCODE_BYTES_ARGUMENTS; \
      return 0;                                                       \
    });                                                               \
  }
#define QUERN_CALLED_HASH(text, kStorage) \
  void quern_rt_hash_##text QUERN_HASH_PARAMETERS { block::Hash::Run<kStorage> QUERN_HASH_ARGUMENTS; }
#define QUERN_CALLED_PACK(text, kStorage) \
  void quern_rt_pack_##text QUERN_PACK_PARAMETERS { block::Pack::Run<kStorage> QUERN_PACK_ARGUMENTS; }
#define QUERN_CALLED_COLUMN(text, kStorage)                                                                \
  void quern_rt_store_##text QUERN_STORE_PARAMETERS { block::Store::Run<kStorage> QUERN_STORE_ARGUMENTS; } \
  void quern_rt_emit_probe_##text QUERN_EMIT_PROBE_PARAMETERS {                                            \
    block::EmitProbe::Run<kStorage> QUERN_EMIT_PROBE_ARGUMENTS;                                            \
  }                                                                                                        \
  void quern_rt_emit_field_##text QUERN_EMIT_FIELD_PARAMETERS {                                            \
    block::EmitField::Run<kStorage> QUERN_EMIT_FIELD_ARGUMENTS;                                            \
  }
#define QUERN_CALLED_STRING(text, kStorage)                              \
  int64_t quern_rt_reserve_probe_##text QUERN_FIT_PROBE_PARAMETERS {     \
    return block::ReserveProbe::Run<kStorage> QUERN_FIT_PROBE_ARGUMENTS; \
  }                                                                      \
  int64_t quern_rt_reserve_field_##text QUERN_FIT_FIELD_PARAMETERS {     \
    return block::ReserveField::Run<kStorage> QUERN_FIT_FIELD_ARGUMENTS; \
  }
#include "runtime/blocks/out_of_line_blocks.def"
}
