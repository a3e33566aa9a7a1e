// SPDX-License-Identifier: Apache-2.0
// The out-of-line blocks (out_of_line_blocks.def lists them and says why), compiled with the library: each is the
// function of blocks.h under the name to which generated code links.
#include "runtime/base/refused_calls.h"
#include "runtime/blocks/block_signatures.h"
#include "runtime/blocks/blocks.h"
#include "runtime/blocks/encode.h"
#include "runtime/collation/collation.h"

namespace b = quern::blocks;

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
  b::EncodeNulls(column, first, rows, n, words, combine, shift, null_is_one);
}

#define QUERN_CALLED_ENCODE(text, kStorage, kPart)                                                   \
  void quern_rt_encode_##text QUERN_ENCODE_PARAMETERS {                                              \
    b::EncodeColumn<kStorage, kPart>(column, first, rows, n, words, combine, nullable, shift, flip); \
  }
#define QUERN_CALLED_BYTES(text, kStorage)                    \
  void quern_rt_encode_##text QUERN_ENCODE_BYTES_PARAMETERS { \
    quern::OrNoted(0, [&] {                                   \
      b::EncodeBytes<kStorage> QUERN_ENCODE_BYTES_ARGUMENTS;  \
      return 0;                                               \
    });                                                       \
  }
#define QUERN_CALLED_HASH(text, kStorage)                                                                \
  void quern_rt_hash_##text QUERN_HASH_PARAMETERS {                                                      \
    b::HashColumn<kStorage>(column, first, rows, n, hashes, combine, nullable, rule, width_or_distance); \
  }
#define QUERN_CALLED_PACK(text, kStorage)                                                       \
  void quern_rt_pack_##text QUERN_PACK_PARAMETERS {                                             \
    b::PackColumn<kStorage>(column, first, rows, n, words, combine, nullable, shift, null_bit); \
  }
#define QUERN_CALLED_COLUMN(text, kStorage)                                                                         \
  void quern_rt_store_##text QUERN_STORE_PARAMETERS { b::StoreColumn<kStorage> QUERN_STORE_ARGUMENTS; }             \
  void quern_rt_emit_probe_##text QUERN_EMIT_PROBE_PARAMETERS {                                                     \
    b::EmitColumn<kStorage>(b::ProbeSource<kStorage>{column, rows, nullable, width}, n, out, out_row, nullable);    \
  }                                                                                                                 \
  void quern_rt_emit_build_##text QUERN_EMIT_BUILD_PARAMETERS {                                                     \
    b::EmitColumn<kStorage>(b::BuildSource<kStorage>{base, tuples, field_offset, null_offset, null_mask, width}, n, \
                            out, out_row, null_mask != 0);                                                          \
  }
#define QUERN_CALLED_STRING(text, kStorage)                                                                            \
  int64_t quern_rt_reserve_probe_##text QUERN_FIT_PROBE_PARAMETERS {                                                   \
    return b::FitStrings<kStorage>(b::ProbeSource<kStorage>{column, rows, nullable, 0}, n, out);                       \
  }                                                                                                                    \
  int64_t quern_rt_reserve_build_##text QUERN_FIT_BUILD_PARAMETERS {                                                   \
    return b::FitStrings<kStorage>(b::BuildSource<kStorage>{base, tuples, field_offset, null_offset, null_mask, 0}, n, \
                                   out);                                                                               \
  }
#include "runtime/blocks/out_of_line_blocks.def"
}
