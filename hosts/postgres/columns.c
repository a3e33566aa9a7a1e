/* SPDX-License-Identifier: Apache-2.0 */
#include "quern_pg.h"

#include "utils/builtins.h"

/* A view, as Arrow has it: up to 12 bytes in place, others in the arena. */
typedef struct View {
  uint32 length;
  char prefix[4];
  uint32 buffer, offset;
} View;

enum { kInlineBytes = 12 };

static int width_of(const ColumnPlan* plan) {
  switch (plan->kind) {
    case KIND_BYVALUE:
    case KIND_FIXED: return plan->width;
    case KIND_I64_OF_I16:
    case KIND_I64_OF_I32:
    case KIND_F64_OF_F32: return 8;
    case KIND_BOOL:
    case KIND_FLAG: return 1;
    case KIND_VARLENA:
    case KIND_TEXT:
    case KIND_TRIMMED:
    case KIND_DECIMAL:
    case KIND_NUMERIC_KEY: return 16;
  }
  return 16;
}

static bool has_bytes(ColumnKind kind) {
  return kind == KIND_VARLENA || kind == KIND_TEXT || kind == KIND_TRIMMED || kind == KIND_NUMERIC_KEY;
}

Columns* columns_create(const List* plans, int capacity) {
  Columns* columns = palloc0(sizeof(Columns));
  const int n = list_length(plans);

  columns->num_columns = n;
  columns->capacity = capacity;
  columns->buffers = palloc0(sizeof(ColumnBuffer) * (n + 1));
  columns->vectors = palloc0(sizeof(quern_column) * (n + 1));
  columns->bytes.size = 1024;
  columns->bytes.data = palloc(columns->bytes.size);
  for (int i = 0; i < n; ++i) {
    const ColumnPlan* plan = list_nth(plans, i);
    ColumnBuffer* buffer = &columns->buffers[i];

    buffer->kind = plan->kind;
    buffer->width = width_of(plan);
    buffer->scale = plan->scale;
    buffer->values = palloc_extended((Size)buffer->width * capacity, MCXT_ALLOC_HUGE);
    buffer->validity = palloc((capacity + 7) / 8);
  }
  return columns;
}

void columns_clear(Columns* columns) {
  columns->bytes.used = 0;
  columns->inexact = false;
  for (int i = 0; i < columns->num_columns; ++i) columns->buffers[i].has_nulls = false;
}

/* Makes the view of the arena's last bytes, from `begin` on. Bytes that fit the view leave the arena again. */
static void put_view(Columns* columns, ColumnBuffer* column, int row, Size begin) {
  View* view = (View*)column->values + row;
  const Size length = columns->bytes.used - begin;

  view->length = (uint32)length;
  if (length <= kInlineBytes) {
    memset(view->prefix, 0, kInlineBytes);
    memcpy(view->prefix, columns->bytes.data + begin, length);
    columns->bytes.used = begin;
  } else {
    memcpy(view->prefix, columns->bytes.data + begin, sizeof(view->prefix));
    view->buffer = 0;
    view->offset = (uint32)begin;
  }
}

/* A header of one byte up to 126 bytes in all, of four above: the one form that equal values share. */
static void append_varlena(Bytes* bytes, const char* data, Size length) {
  const bool is_short = length + VARHDRSZ_SHORT <= VARATT_SHORT_MAX;
  const Size header = is_short ? VARHDRSZ_SHORT : VARHDRSZ;
  char* out = bytes_reserve(bytes, length + header);

  if (is_short) SET_VARSIZE_1B(out, length + header);
  else SET_VARSIZE_4B(out, length + header);
  memcpy(out + header, data, length);
  bytes->used += length + header;
}

static void put_bytes(Columns* columns, ColumnBuffer* column, int row, struct varlena* value) {
  const char* data = VARDATA_ANY(value);
  Size length = VARSIZE_ANY_EXHDR(value);
  const Size begin = columns->bytes.used;

  switch (column->kind) {
    case KIND_VARLENA: append_varlena(&columns->bytes, data, length); break;
    case KIND_NUMERIC_KEY: numeric_append_key(value, &columns->bytes); break;
    default:
      if (column->kind == KIND_TRIMMED)
        while (length > 0 && data[length - 1] == ' ') --length;
      memcpy(bytes_reserve(&columns->bytes, length), data, length);
      columns->bytes.used += length;
  }
  put_view(columns, column, row, begin);
}

/* A value that is neither compressed nor stored elsewhere. */
static void put_plain(Columns* columns, ColumnBuffer* column, int row, struct varlena* value) {
  if (column->kind == KIND_DECIMAL) {
    Decimal decimal = 0;

    if (!decimal_of_numeric(value, column->scale, &decimal)) columns->inexact = true;
    memcpy(column->values + (Size)16 * row, &decimal, 16);
  } else {
    put_bytes(columns, column, row, value);
  }
}

static void put_varlena(Columns* columns, ColumnBuffer* column, int row, struct varlena* stored) {
  struct varlena* plain;

  if (likely(!VARATT_IS_EXTENDED(stored) || (VARATT_IS_1B(stored) && !VARATT_IS_1B_E(stored)))) {
    put_plain(columns, column, row, stored);
    return;
  }
  plain = pg_detoast_datum_packed(stored);
  put_plain(columns, column, row, plain);
  if (plain != stored) pfree(plain);
}

void columns_put_stored(Columns* columns, ColumnBuffer* column, int row, const char* at) {
  switch (column->kind) {
    case KIND_BYVALUE:
      switch (column->width) {
        case 1: ((uint8*)column->values)[row] = *(const uint8*)at; break;
        case 2: ((uint16*)column->values)[row] = *(const uint16*)at; break;
        case 4: ((uint32*)column->values)[row] = *(const uint32*)at; break;
        default: ((uint64*)column->values)[row] = *(const uint64*)at; break;
      }
      break;
    case KIND_I64_OF_I16: ((int64*)column->values)[row] = *(const int16*)at; break;
    case KIND_I64_OF_I32: ((int64*)column->values)[row] = *(const int32*)at; break;
    case KIND_F64_OF_F32: ((float8*)column->values)[row] = *(const float4*)at; break;
    case KIND_FIXED: memcpy(column->values + (Size)column->width * row, at, column->width); break;
    case KIND_VARLENA:
    case KIND_TEXT:
    case KIND_TRIMMED:
    case KIND_DECIMAL:
    case KIND_NUMERIC_KEY: put_varlena(columns, column, row, (struct varlena*)at); break;
    case KIND_BOOL: column->values[row] = *at != 0; break;
    case KIND_FLAG: column->values[row] = 0; break;
  }
}

void columns_put(Columns* columns, ColumnBuffer* column, int row, Datum value) {
  switch (column->kind) {
    case KIND_BYVALUE:
      switch (column->width) {
        case 1: ((uint8*)column->values)[row] = (uint8)value; break;
        case 2: ((uint16*)column->values)[row] = (uint16)value; break;
        case 4: ((uint32*)column->values)[row] = (uint32)value; break;
        default: ((uint64*)column->values)[row] = (uint64)value; break;
      }
      break;
    case KIND_I64_OF_I16: ((int64*)column->values)[row] = DatumGetInt16(value); break;
    case KIND_I64_OF_I32: ((int64*)column->values)[row] = DatumGetInt32(value); break;
    case KIND_F64_OF_F32: ((float8*)column->values)[row] = DatumGetFloat4(value); break;
    case KIND_BOOL: column->values[row] = DatumGetBool(value); break;
    case KIND_FLAG: column->values[row] = 0; break;
    case KIND_FIXED:
    case KIND_VARLENA:
    case KIND_TEXT:
    case KIND_TRIMMED:
    case KIND_DECIMAL:
    case KIND_NUMERIC_KEY: columns_put_stored(columns, column, row, DatumGetPointer(value)); break;
  }
}

void columns_put_null(Columns* columns, ColumnBuffer* column, int row) {
  if (!column->has_nulls) {
    memset(column->validity, 0xff, (columns->capacity + 7) / 8);
    column->has_nulls = true;
  }
  column->validity[row >> 3] &= (uint8) ~(1 << (row & 7));
  memset(column->values + (Size)column->width * row, 0, column->width);
}

void columns_finish(Columns* columns) {
  columns->arena = (const uint8*)columns->bytes.data;
  for (int i = 0; i < columns->num_columns; ++i) {
    const ColumnBuffer* buffer = &columns->buffers[i];
    quern_column* vector = &columns->vectors[i];

    vector->values = buffer->values;
    vector->validity = buffer->has_nulls ? buffer->validity : NULL;
    vector->flags = buffer->kind == KIND_BOOL ? QUERN_COLUMN_BYTES : 0;
    vector->buffers = has_bytes(buffer->kind) ? &columns->arena : NULL;
  }
}
