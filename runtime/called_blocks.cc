// SPDX-License-Identifier: Apache-2.0
// The blocks that kernels call (called_blocks.def says which and why), compiled with the library: each is the function of blocks.h under
// the name that generated code links against.
#include "runtime/block_signatures.h"
#include "runtime/blocks.h"

namespace b = quern::blocks;

extern "C" {
#define QUERN_CALLED_HASH(text, kStorage)                                                            \
  void quern_rt_hash_##text QUERN_HASH_PARAMETERS {                                                  \
    b::HashColumn<kStorage>(column, first, rows, n, hashes, combine, nullable, trims_spaces, width); \
  }
#define QUERN_CALLED_PACK(text, kStorage)                                                       \
  void quern_rt_pack_##text QUERN_PACK_PARAMETERS {                                             \
    b::PackColumn<kStorage>(column, first, rows, n, words, combine, nullable, shift, null_bit); \
  }
#define QUERN_CALLED_COLUMN(text, kStorage)                                                                                       \
  void quern_rt_store_##text QUERN_STORE_PARAMETERS { b::StoreColumn<kStorage> QUERN_STORE_ARGUMENTS; }                           \
  void quern_rt_emit_probe_##text QUERN_EMIT_PROBE_PARAMETERS {                                                                   \
    b::EmitColumn<kStorage>(b::ProbeSource<kStorage>{column, rows, nullable, width}, n, out, out_row, nullable);                  \
  }                                                                                                                               \
  void quern_rt_emit_build_##text QUERN_EMIT_BUILD_PARAMETERS {                                                                   \
    b::EmitColumn<kStorage>(b::BuildSource<kStorage>{base, tuples, field_offset, null_offset, null_mask, width}, n, out, out_row, \
                            null_mask != 0);                                                                                      \
  }
#define QUERN_CALLED_STRING(text, kStorage)                                                                                  \
  int64_t quern_rt_fit_probe_##text QUERN_FIT_PROBE_PARAMETERS {                                                             \
    return b::FitStrings<kStorage>(b::ProbeSource<kStorage>{column, rows, nullable, 0}, n, out);                             \
  }                                                                                                                          \
  int64_t quern_rt_fit_build_##text QUERN_FIT_BUILD_PARAMETERS {                                                             \
    return b::FitStrings<kStorage>(b::BuildSource<kStorage>{base, tuples, field_offset, null_offset, null_mask, 0}, n, out); \
  }
#include "runtime/called_blocks.def"
}
