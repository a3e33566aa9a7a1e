/* SPDX-License-Identifier: Apache-2.0 */
#include "quern_pg.h"

#include <gnu/libc-version.h>

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/pg_locale.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* Types that are numbers to a kernel: as they lie in memory. */
static bool plain_type(Oid type, ColumnPlan* column, const char** spec) {
  column->kind = KIND_BYVALUE;
  switch (type) {
    case BOOLOID:
    case CHAROID: column->width = 1, *spec = "u8"; return true;
    case INT2OID: column->width = 2, *spec = "i16"; return true;
    case INT4OID:
    case DATEOID: column->width = 4, *spec = "i32"; return true;
    case OIDOID: column->width = 4, *spec = "u32"; return true;
    case FLOAT4OID: column->width = 4, *spec = "f32"; return true;
    case INT8OID:
    case TIMEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID: column->width = 8, *spec = "i64"; return true;
    case FLOAT8OID: column->width = 8, *spec = "f64"; return true;
    default: return false;
  }
}

bool type_carried(Oid type, ColumnPlan* column, const char** spec) {
  int16 length;
  bool by_value;

  if (plain_type(type, column, spec)) return true;
  get_typlenbyval(type, &length, &by_value);
  if (by_value) {
    static const char* const kNames[] = {NULL, "u8", "u16", NULL, "u32", NULL, NULL, NULL, "u64"};

    if (length < 1 || length > 8 || kNames[length] == NULL) return false;
    column->kind = KIND_BYVALUE, column->width = length, *spec = kNames[length];
    return true;
  }
  if (length > 0) {
    column->kind = KIND_FIXED, column->width = length, *spec = psprintf("fixed_binary(%d)", length);
    return true;
  }
  if (length != -1) return false;
  column->kind = KIND_VARLENA, *spec = "binary_view";
  return true;
}

/* numeric(p, s), whose values all have s digits behind the point and at most 38 in all. */
static bool decimal_type(int32 typmod, ColumnPlan* column, const char** spec) {
  int precision, scale;

  if (typmod < (int32)VARHDRSZ) return false;
  precision = ((typmod - VARHDRSZ) >> 16) & 0xffff;
  scale = (((typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024;
  if (precision > 38 || scale < 0 || scale > 38) return false;
  column->kind = KIND_DECIMAL, column->scale = scale, *spec = "decimal128";
  return true;
}

static bool is_deterministic(Oid collation) {
  return OidIsValid(collation) && get_collation_isdeterministic(collation);
}

bool type_group_key(Oid type, int32 typmod, Oid equality, Oid collation, ColumnPlan* column, const char** spec) {
  const TypeCacheEntry* entry = lookup_type_cache(type, TYPECACHE_EQ_OPR);

  if (entry->eq_opr != equality) return false;
  if (plain_type(type, column, spec)) return true;
  switch (type) {
    case TEXTOID:
    case VARCHAROID:
      if (!is_deterministic(collation)) return false;
      column->kind = KIND_VARLENA, *spec = "binary_view";
      return true;
    case BPCHAROID:
      /* char(n) is padded to n characters, so that equal values are equal bytes. */
      if (typmod < (int32)VARHDRSZ || !is_deterministic(collation)) return false;
      column->kind = KIND_VARLENA, *spec = "binary_view";
      return true;
    case BYTEAOID: column->kind = KIND_VARLENA, *spec = "binary_view"; return true;
    case UUIDOID: column->kind = KIND_FIXED, column->width = 16, *spec = "fixed_binary(16)"; return true;
    case NUMERICOID: return decimal_type(typmod, column, spec);
    default:
      if (!type_is_enum(type)) return false;
      column->kind = KIND_BYVALUE, column->width = 4, *spec = "u32";
      return true;
  }
}

static void both(ColumnPlan columns[2], ColumnKind kind, int width) {
  columns[0].kind = columns[1].kind = kind;
  columns[0].width = columns[1].width = width;
}

bool type_join_keys(Oid equality, Oid collation, ColumnPlan columns[2], const char** spec) {
  switch (get_opcode(equality)) {
    case F_BOOLEQ:
    case F_CHAREQ: both(columns, KIND_BYVALUE, 1), *spec = "u8"; return true;
    case F_INT2EQ: both(columns, KIND_BYVALUE, 2), *spec = "i16"; return true;
    case F_INT4EQ:
    case F_DATE_EQ: both(columns, KIND_BYVALUE, 4), *spec = "i32"; return true;
    case F_OIDEQ:
    case F_ENUM_EQ: both(columns, KIND_BYVALUE, 4), *spec = "u32"; return true;
    case F_INT8EQ:
    case F_TIME_EQ:
    case F_TIMESTAMP_EQ:
    case F_TIMESTAMPTZ_EQ: both(columns, KIND_BYVALUE, 8), *spec = "i64"; return true;
    case F_FLOAT4EQ: both(columns, KIND_BYVALUE, 4), *spec = "f32"; return true;
    case F_FLOAT8EQ: both(columns, KIND_BYVALUE, 8), *spec = "f64"; return true;
    case F_INT24EQ:
    case F_INT42EQ:
    case F_INT28EQ:
    case F_INT82EQ:
    case F_INT48EQ:
    case F_INT84EQ: {
      const Oid function = get_opcode(equality);
      const ColumnKind wide = KIND_BYVALUE;

      both(columns, wide, 8), *spec = "i64";
      if (function == F_INT24EQ || function == F_INT28EQ) columns[0].kind = KIND_I64_OF_I16;
      if (function == F_INT42EQ || function == F_INT48EQ) columns[0].kind = KIND_I64_OF_I32;
      if (function == F_INT42EQ || function == F_INT82EQ) columns[1].kind = KIND_I64_OF_I16;
      if (function == F_INT24EQ || function == F_INT84EQ) columns[1].kind = KIND_I64_OF_I32;
      return true;
    }
    case F_FLOAT48EQ:
    case F_FLOAT84EQ:
      both(columns, KIND_BYVALUE, 8), *spec = "f64";
      columns[get_opcode(equality) == F_FLOAT84EQ].kind = KIND_F64_OF_F32;
      return true;
    case F_TEXTEQ:
      if (!is_deterministic(collation)) return false;
      both(columns, KIND_VARLENA, 0), *spec = "binary_view";
      return true;
    case F_BPCHAREQ:
      if (!is_deterministic(collation)) return false;
      both(columns, KIND_TRIMMED, 0), *spec = "binary_view";
      return true;
    case F_BYTEAEQ: both(columns, KIND_VARLENA, 0), *spec = "binary_view"; return true;
    case F_UUID_EQ: both(columns, KIND_FIXED, 16), *spec = "fixed_binary(16)"; return true;
    case F_NUMERIC_EQ: both(columns, KIND_NUMERIC_KEY, 0), *spec = "binary_view"; return true;
    default: return false;
  }
}

/* Digits behind the point of a numeric constant; -1: it is NaN or infinite. */
static int scale_of_const(const Const* value) {
  const char* text;
  const char* point;

  if (value->constisnull) return -1;
  text = DatumGetCString(DirectFunctionCall1(numeric_out, value->constvalue));
  if (strspn(text, "-0123456789.") != strlen(text)) return -1;
  point = strchr(text, '.');
  return point == NULL ? 0 : (int)strlen(point + 1);
}

static int scale_of_call(Oid function, List* args) {
  int scales[2] = {-1, -1};

  switch (function) {
    case F_NUMERIC_INT2:
    case F_NUMERIC_INT4:
    case F_NUMERIC_INT8:
    case F_EXTRACT_TEXT_DATE: return 0;
    case F_NUMERIC_ADD:
    case F_NUMERIC_SUB:
    case F_NUMERIC_MUL:
    case F_NUMERIC_UMINUS:
    case F_NUMERIC_UPLUS: break;
    default: return -1;
  }
  for (int i = 0; i < list_length(args); ++i) {
    scales[i] = decimal_scale_of(list_nth(args, i));
    if (scales[i] < 0) return -1;
  }
  if (list_length(args) == 1) return scales[0];
  return function == F_NUMERIC_MUL ? scales[0] + scales[1] : Max(scales[0], scales[1]);
}

static bool is_null_constant(const Expr* expr) { return IsA(expr, Const) && ((const Const*)expr)->constisnull; }

/* That of all results of a CASE but nulls; -1: they differ. */
static int scale_of_case(const CaseExpr* expr) {
  int scale = -1;
  ListCell* cell;

  if (expr->defresult == NULL) return -1;
  if (!is_null_constant(expr->defresult)) scale = decimal_scale_of((Node*)expr->defresult);
  foreach (cell, expr->args) {
    Expr* result = lfirst_node(CaseWhen, cell)->result;
    const bool is_first = foreach_current_index(cell) == 0 && is_null_constant(expr->defresult);

    if (is_null_constant(result)) return -1;
    if (is_first) scale = decimal_scale_of((Node*)result);
    else if (decimal_scale_of((Node*)result) != scale) return -1;
  }
  return scale;
}

int decimal_scale_of(Node* expr) {
  ColumnPlan column = {0};
  const char* spec;
  int scale = -1;

  if (exprType(expr) != NUMERICOID) return -1;
  if (decimal_type(exprTypmod(expr), &column, &spec)) return column.scale;
  if (IsA(expr, Const)) scale = scale_of_const((const Const*)expr);
  if (IsA(expr, RelabelType)) scale = decimal_scale_of((Node*)((RelabelType*)expr)->arg);
  if (IsA(expr, OpExpr)) scale = scale_of_call(((OpExpr*)expr)->opfuncid, ((OpExpr*)expr)->args);
  if (IsA(expr, FuncExpr)) scale = scale_of_call(((FuncExpr*)expr)->funcid, ((FuncExpr*)expr)->args);
  if (IsA(expr, CaseExpr)) scale = scale_of_case((const CaseExpr*)expr);
  return scale > 38 ? -1 : scale;
}

bool type_number(Oid type, int32 typmod, ColumnPlan* column, const char** spec) {
  return plain_type(type, column, spec) || (type == NUMERICOID && decimal_type(typmod, column, spec));
}

/* ICU's name of a collation as a BCP 47 tag, or NULL where it is no plain tag. */
static const char* icu_name(const char* locale) {
  const char* version;
  const char* name = psprintf("icu:%s", locale);

  for (const char* c = locale; *c; ++c)
    if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '-')) return NULL;
  return quern_collation_version(name, &version, NULL) == QUERN_OK ? name : NULL;
}

static const char* icu_of_row(HeapTuple tuple, int cache, AttrNumber attribute, AttrNumber rules) {
  bool is_null, has_no_rules = true;
  const Datum locale = SysCacheGetAttr(cache, tuple, attribute, &is_null);

  if (rules != 0) (void)SysCacheGetAttr(cache, tuple, rules, &has_no_rules);
  return is_null || !has_no_rules ? NULL : icu_name(TextDatumGetCString(locale));
}

/* Whether a locale of the C library orders strings by their code points, which is by their bytes in UTF-8. glibc's
 * C.UTF-8 does from version 2.35 on. */
static bool is_code_point_order(const char* locale) {
  int major = 0, minor = 0;

  if (pg_strcasecmp(locale, "C.UTF-8") != 0 && pg_strcasecmp(locale, "C.utf8") != 0) return false;
  sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor);
  return GetDatabaseEncoding() == PG_UTF8 && (major > 2 || (major == 2 && minor >= 35));
}

static bool locale_is_binary(HeapTuple tuple, int cache, AttrNumber attribute) {
  bool is_null;
  const Datum locale = SysCacheGetAttr(cache, tuple, attribute, &is_null);

  return !is_null && is_code_point_order(TextDatumGetCString(locale));
}

static const char* order_of_row(HeapTuple tuple, int cache, char provider, AttrNumber libc, AttrNumber icu,
                                AttrNumber rules) {
  if (provider == COLLPROVIDER_LIBC) return locale_is_binary(tuple, cache, libc) ? "binary" : NULL;
  return provider == COLLPROVIDER_ICU ? icu_of_row(tuple, cache, icu, rules) : NULL;
}

static const char* order_of_database(void) {
  HeapTuple tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
  const char* name;

  if (!HeapTupleIsValid(tuple)) return NULL;
  name = order_of_row(tuple, DATABASEOID, ((Form_pg_database)GETSTRUCT(tuple))->datlocprovider,
                      Anum_pg_database_datcollate, kIcuOfDatabase, kRulesOfDatabase);
  ReleaseSysCache(tuple);
  return name;
}

const char* type_collation(Oid collation, bool* tie) {
  HeapTuple tuple;
  const char* name;

  *tie = true;
  if (!OidIsValid(collation)) return NULL;
  if (collation_is_c(collation)) return "binary";
  if (collation == DEFAULT_COLLATION_OID) return order_of_database();
  tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
  if (!HeapTupleIsValid(tuple)) return NULL;
  *tie = ((Form_pg_collation)GETSTRUCT(tuple))->collisdeterministic;
  name = order_of_row(tuple, COLLOID, ((Form_pg_collation)GETSTRUCT(tuple))->collprovider,
                      Anum_pg_collation_collcollate, kIcuOfCollation, kRulesOfCollation);
  ReleaseSysCache(tuple);
  return name;
}
