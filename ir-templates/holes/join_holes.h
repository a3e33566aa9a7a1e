// SPDX-License-Identifier: Apache-2.0
// The holes that joins alone have: the residual predicate, and the output of matches, whose tuples tuple_holes.h reads.
// backend.h explains the notation. For probe=utf8 build=f64 a compiled kernel gets
//
//     void quern_hole_emit_matches(args, rows, tuples, n) {
//       quern_block_emit_probe_var32(&args->payload[0], rows, n, &args->out_probe[0], args->output.num_rows, ..);
//       quern_block_emit_field_64(args->output.tuples, tuples, n, &args->output.columns[0], args->output.num_rows, ..);
//     }
#ifndef QUERN_IR_TEMPLATES_HOLES_JOIN_HOLES_H_
#define QUERN_IR_TEMPLATES_HOLES_JOIN_HOLES_H_

#include "ir-templates/holes/backend.h"
#include "ir-templates/holes/tuple_holes.h"
#include "runtime/abi/join_abi.h"

namespace quern::holes {

template <class B>
ValueOf<B, bool> ResidualRow(B& b, const QuernJoinDescriptor& d, auto /*descriptor*/, auto payload, auto row,
                             auto tuple) {
  for (uint32_t r = 0; r < d.num_residual; ++r) {
    const QuernField& field = *ResidualFieldOf(&d, r);
    const auto column = b.Element(payload, d.num_probe + r, "residual");
    if (field.nullable) {
      const auto valid = b.Call(block::Valid{}, column, row);
      const auto stored_null = b.TestBits(tuple, field.null_offset, field.null_mask, "stored_null");
      const auto both_valid = b.And(valid, b.Not(stored_null, ""), "valid");
      if (b.StopsUnless(both_valid, false)) return false;
    }
    const auto at = b.Offset(tuple, field.tuple_offset, "field");
    const auto holds = b.Call(block::Compare{field.storage}, column, row, at, field.comparison, field.is_signed);
    if (b.StopsUnless(holds, false)) return false;
  }
  return true;
}

template <class B>
ValueOf<B, int64_t> ReserveMatches(B& b, const QuernJoinDescriptor& d, auto args, auto rows, auto tuples, auto n) {
  typename B::RowBuffer buffer;
  auto fit = b.Widen(n, "fit");
  for (uint32_t c = 0; c < d.num_probe; ++c) {
    const QuernField& field = d.probe[c];
    if (!blocks::IsVariableStorage(field.storage)) continue;
    const auto payload = b.Load(args, QUERN_MEMBER(QuernJoinProbeArgs, payload));
    const auto column = b.Element(payload, c, "payload");
    const Source<B> source = Translate(b, field.index_storage, column, uint64_t{0}, rows, n, buffer);
    const auto out = b.Element(b.Load(args, QUERN_MEMBER(QuernJoinProbeArgs, out_probe)), c, "out");
    fit = b.Call(block::ReserveProbe{field.storage}, source.column, source.rows, n, out, field.nullable);
    if (b.StopsUnless(b.IsPositive(fit, "fits"), fit)) return fit;
    n = b.Narrow(fit, "n");
  }
  const auto output = b.MemberOf(args, QUERN_MEMBER(QuernJoinProbeArgs, output));
  return ReserveFieldsOf(b, d.rows, output, tuples, n, fit);
}

template <class B>
void EmitMatches(B& b, const QuernJoinDescriptor& d, auto args, auto rows, auto tuples, auto n) {
  typename B::RowBuffer buffer;
  const auto output = b.MemberOf(args, QUERN_MEMBER(QuernJoinProbeArgs, output));
  const auto out_row = b.Load(output, QUERN_MEMBER(QuernOutputArgs, num_rows), "out_row");
  for (uint32_t c = 0; c < d.num_probe; ++c) {
    const QuernField& field = d.probe[c];
    const auto out = b.Element(b.Load(args, QUERN_MEMBER(QuernJoinProbeArgs, out_probe)), c, "out");
    if (field.storage == kRowId) {
      const auto first_row_id = b.Load(args, QUERN_MEMBER(QuernJoinProbeArgs, first_row_id));
      b.Call(block::EmitRowIds{}, rows, n, out, out_row, first_row_id, field.nullable);
      continue;
    }
    const auto payload = b.Load(args, QUERN_MEMBER(QuernJoinProbeArgs, payload));
    const auto column = b.Element(payload, c, "payload");
    const Source<B> source = Translate(b, field.index_storage, column, uint64_t{0}, rows, n, buffer);
    b.Call(block::EmitProbe{field.storage}, source.column, source.rows, n, out, out_row, field.nullable,
           field.width_bytes);
  }
  EmitFieldsTo(b, d.rows, output, tuples, n, out_row);
}

}  // namespace quern::holes

#endif  // QUERN_IR_TEMPLATES_HOLES_JOIN_HOLES_H_
