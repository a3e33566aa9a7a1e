/* SPDX-License-Identifier: Apache-2.0 */
#include "quern_pg.h"

#include <math.h>

#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

/* The bytes of row `row` of a view column. */
static const char* view_bytes(const quern_column* column, uint64 row, Size* length) {
  const char* view = (const char*)column->values + 16 * row;
  uint32 size, buffer, offset;

  memcpy(&size, view, sizeof(size));
  *length = size;
  if (size <= 12) return view + 4;
  memcpy(&buffer, view + 8, sizeof(buffer));
  memcpy(&offset, view + 12, sizeof(offset));
  return (const char*)column->buffers[buffer] + offset;
}

Datum output_varlena(const quern_column* column, uint64 row) {
  Size length;

  return PointerGetDatum(view_bytes(column, row, &length));
}

/* A varlena with a header of four bytes is read by words, so that it has to be aligned. */
static Datum aligned_varlena(const quern_column* column, uint64 row) {
  Size length;
  const char* bytes = view_bytes(column, row, &length);
  char* copy;

  if (VARATT_IS_1B(bytes) || ((uintptr_t)bytes & 3) == 0) return PointerGetDatum(bytes);
  copy = palloc(length);
  memcpy(copy, bytes, length);
  return PointerGetDatum(copy);
}

static Decimal decimal_at(const quern_column* column, uint64 row) {
  Decimal decimal;

  memcpy(&decimal, (const char*)column->values + 16 * row, sizeof(decimal));
  return decimal;
}

static Datum numeric_datum(const quern_column* column, uint64 row, int scale) {
  return PointerGetDatum(numeric_of_decimal(decimal_at(column, row), scale));
}

/* As numeric_avg does: numeric / count, whose digits behind the point PostgreSQL's division decides. */
static Datum average(const quern_column* sum, const quern_column* count, uint64 row, int scale) {
  const Datum rows = DirectFunctionCall1(int8_numeric, Int64GetDatum(((const int64*)count->values)[row]));

  return DirectFunctionCall2(numeric_div, numeric_datum(sum, row, scale), rows);
}

/* A sum whose rows have fewer digits behind the point than it has room for. */
static Datum scaled(const quern_column* sum, uint64 row, int scale) {
  const int digits = ((const int32*)sum[1].values)[row];
  Decimal decimal = decimal_at(sum, row);

  for (int i = scale; i > digits; --i) decimal /= 10;
  return PointerGetDatum(numeric_of_decimal(decimal, digits));
}

static Datum value_at(const ColumnPlan* plan, const quern_column* column, uint64 row) {
  Size length;
  const char* bytes;

  switch (plan->kind) {
    case KIND_BYVALUE: return fetch_att((const char*)column->values + (Size)plan->width * row, true, plan->width);
    case KIND_FIXED: return PointerGetDatum((const char*)column->values + (Size)plan->width * row);
    case KIND_VARLENA: return aligned_varlena(column, row);
    case KIND_DECIMAL: return numeric_datum(column, row, plan->scale);
    case KIND_TEXT:
    case KIND_TRIMMED:
      bytes = view_bytes(column, row, &length);
      {
        struct varlena* text = palloc(length + VARHDRSZ);

        SET_VARSIZE(text, length + VARHDRSZ);
        memcpy(VARDATA(text), bytes, length);
        return PointerGetDatum(text);
      }
    case KIND_I64_OF_I16:
    case KIND_I64_OF_I32:
    case KIND_F64_OF_F32:
    case KIND_NUMERIC_KEY:
    case KIND_BOOL:
    case KIND_FLAG: break;
  }
  elog(ERROR, "quern: a column of kind %d does not come out", (int)plan->kind);
}

void output_fill_slot(QuernNode* node, TupleTableSlot* slot, MemoryContext memory) {
  const quern_column* columns = node->result->columns;
  const uint64 row = node->row;
  MemoryContext before;

  ExecClearTuple(slot);
  MemoryContextReset(memory);
  before = MemoryContextSwitchTo(memory);
  for (int i = 0; i < node->num_outputs; ++i) {
    const OutputPlan* output = &node->outputs[i];
    const quern_column* column = &columns[output->column];

    slot->tts_isnull[i] = column_is_null(column, row);
    if (slot->tts_isnull[i]) {
      slot->tts_values[i] = (Datum)0;
      continue;
    }
    switch (output->kind) {
      case OUT_COLUMN:
      case OUT_FLOAT: slot->tts_values[i] = value_at(&output->values, column, row); break;
      case OUT_NUMERIC: slot->tts_values[i] = numeric_datum(column, row, output->values.scale); break;
      case OUT_SCALED: slot->tts_values[i] = scaled(column, row, output->values.scale); break;
      case OUT_AVERAGE: slot->tts_values[i] = average(column, column + 1, row, output->values.scale); break;
    }
  }
  MemoryContextSwitchTo(before);
  ExecStoreVirtualTuple(slot);
}

bool output_overflowed(const QuernNode* node) {
  for (int i = 0; i < node->num_outputs; ++i) {
    const quern_column* column = &node->result->columns[node->outputs[i].column];

    if (node->outputs[i].kind != OUT_FLOAT) continue;
    for (uint64 row = 0; row < node->result->num_rows; ++row)
      if (!column_is_null(column, row) && isinf(((const float8*)column->values)[row])) return true;
  }
  return false;
}
