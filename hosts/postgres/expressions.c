/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions of PostgreSQL as expressions of a map (docs/expressions.md), where both give the same value for every
 * row. An overflow is an error in both; the node then runs PostgreSQL's own plan, for its message. Floats are only
 * compared: PostgreSQL reports their overflows.
 */
#include "quern_pg.h"

#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "common/shortest_dec.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

/* The text of an expression, and its type: PostgreSQL's, with the digits of a numeric. */
typedef struct Value {
  char* text;
  Oid type;
  int precision, scale;
  const Const* constant; /* that is not null; else NULL */
  int64 integer;         /* of a constant that is an integer, a date or a time */
} Value;

static bool compile(ExpressionMaking* making, Node* node, Value* value);

static const char* type_name(const Value* value) {
  switch (value->type) {
    case BOOLOID: return "bool";
    case INT2OID: return "i16";
    case INT4OID:
    case DATEOID: return "i32";
    case INT8OID:
    case TIMEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID: return "i64";
    case FLOAT4OID: return "f32";
    case FLOAT8OID: return "f64";
    case NUMERICOID: return psprintf("decimal128(%d,%d)", value->precision, value->scale);
    default: return "utf8_view(binary)";
  }
}

static bool is_integer(Oid type) { return type == INT2OID || type == INT4OID || type == INT8OID; }
static bool is_string(Oid type) { return type == TEXTOID || type == BPCHAROID; }

/* ---- columns and constants ---- */

static bool column_of(const Var* var, ColumnPlan* column, Value* value) {
  const char* spec;

  value->type = var->vartype;
  switch (var->vartype) {
    case BOOLOID: column->kind = KIND_BOOL, column->width = 1; break;
    case VARCHAROID:
      value->type = TEXTOID;
      column->kind = KIND_TEXT;
      break;
    case TEXTOID: column->kind = KIND_TEXT; break;
    case BPCHAROID: column->kind = KIND_TRIMMED; break;
    case CHAROID:
    case OIDOID: return false;
    default:
      if (!type_number(var->vartype, var->vartypmod, column, &spec)) return false;
      value->scale = column->scale;
      if (var->vartype == NUMERICOID) value->precision = ((var->vartypmod - VARHDRSZ) >> 16) & 0xffff;
  }
  column->expr = (Expr*)var;
  column->type = type_name(value);
  return true;
}

static int input_of(ExpressionMaking* making, const ColumnPlan* column) {
  const int index = source_column(making->columns, column);
  ListCell* cell;

  foreach (cell, making->inputs)
    if (lfirst_int(cell) == index) return foreach_current_index(cell);
  making->inputs = lappend_int(making->inputs, index);
  appendStringInfo(&making->types, "%s%s:nullable", making->types.len > 0 ? "," : "", column->type);
  return list_length(making->inputs) - 1;
}

static bool compile_var(ExpressionMaking* making, const Var* var, Value* value) {
  ColumnPlan column = {0};

  if (var->varattno <= 0 || !column_of(var, &column, value)) return false;
  if (column.kind == KIND_DECIMAL) making->can_fail = true; /* NaN */
  value->text = psprintf("$%d", input_of(making, &column));
  return true;
}

static char* quoted(const char* bytes, Size length) {
  StringInfoData text;

  initStringInfo(&text);
  appendStringInfoString(&text, "x'");
  for (Size i = 0; i < length; ++i) appendStringInfo(&text, "%02x", (uint8)bytes[i]);
  appendStringInfoChar(&text, '\'');
  return text.data;
}

/* A string constant; bytes in hex are valid for every type of strings. */
static void compile_string(const Const* constant, bool trimmed, Value* value) {
  struct varlena* text = pg_detoast_datum_packed((struct varlena*)DatumGetPointer(constant->constvalue));
  const char* bytes = VARDATA_ANY(text);
  Size length = VARSIZE_ANY_EXHDR(text);

  if (trimmed)
    while (length > 0 && bytes[length - 1] == ' ') --length;
  value->text = psprintf("%s:utf8_view(binary)", quoted(bytes, length));
}

static bool compile_numeric_constant(const Const* constant, Value* value) {
  const char* text = DatumGetCString(DirectFunctionCall1(numeric_out, constant->constvalue));
  const char* point = strchr(text, '.');

  if (strspn(text, "-0123456789.") != strlen(text)) return false;
  value->scale = point == NULL ? 0 : (int)strlen(point + 1);
  value->precision = (int)(strlen(text) - (point != NULL) - (text[0] == '-'));
  value->precision = Max(value->precision, value->scale + 1);
  if (value->precision > 38) return false;
  value->text = psprintf("%s:decimal128(%d,%d)", text, value->precision, value->scale);
  return true;
}

/* The shortest text that is read as the same number. */
static const char* float_text(float8 number, bool is_single) {
  char* text;

  if (isnan(number)) return "nan";
  if (isinf(number)) return number > 0 ? "inf" : "-inf";
  text = palloc(DOUBLE_SHORTEST_DECIMAL_LEN);
  if (is_single) float_to_shortest_decimal_buf((float4)number, text);
  else double_to_shortest_decimal_buf(number, text);
  return text;
}

static int64 integer_of(const Const* constant) {
  switch (constant->consttype) {
    case INT2OID: return DatumGetInt16(constant->constvalue);
    case INT4OID:
    case DATEOID: return DatumGetInt32(constant->constvalue);
    default: return DatumGetInt64(constant->constvalue);
  }
}

/* A null of a type that a map can compute. */
static bool compile_null(Value* value) {
  ColumnPlan column = {0};
  const char* spec;

  if (value->type == NUMERICOID) value->precision = 1;
  else if (value->type == CHAROID || value->type == OIDOID || !type_number(value->type, -1, &column, &spec))
    return false;
  value->text = psprintf("null:%s", type_name(value));
  return true;
}

static bool compile_constant(const Const* constant, Value* value) {
  value->type = constant->consttype == VARCHAROID ? TEXTOID : constant->consttype;
  if (constant->constisnull) return compile_null(value);
  value->constant = constant;
  switch (value->type) {
    case BOOLOID: value->text = psprintf("%s:bool", DatumGetBool(constant->constvalue) ? "true" : "false"); return true;
    case INT2OID:
    case INT4OID:
    case DATEOID:
    case INT8OID:
    case TIMEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
      value->integer = integer_of(constant);
      value->text = psprintf(INT64_FORMAT ":%s", value->integer, type_name(value));
      return true;
    case FLOAT4OID:
      value->text = psprintf("%s:f32", float_text(DatumGetFloat4(constant->constvalue), true));
      return true;
    case FLOAT8OID:
      value->text = psprintf("%s:f64", float_text(DatumGetFloat8(constant->constvalue), false));
      return true;
    case NUMERICOID: return compile_numeric_constant(constant, value);
    case TEXTOID:
    case BPCHAROID: compile_string(constant, value->type == BPCHAROID, value); return true;
    default: return false;
  }
}

/* ---- types of two values ---- */

static void cast(Value* value, Oid type) {
  if (value->type == type) return;
  value->type = type;
  value->text = psprintf("cast(%s,%s)", value->text, type_name(value));
}

static void cast_scale(Value* value, int scale) {
  if (value->scale == scale) return;
  value->precision = Min(38, value->precision + scale - value->scale);
  value->scale = scale;
  value->text = psprintf("cast(%s,%s)", value->text, type_name(value));
}

/* Midnight of a day, as a constant that a date is compared with. */
static bool date_of_timestamp(Value* value) {
  if (value->constant == NULL || value->type != TIMESTAMPOID) return false;
  if (TIMESTAMP_NOT_FINITE(value->integer) || value->integer % USECS_PER_DAY != 0) return false;
  value->type = DATEOID;
  value->integer /= USECS_PER_DAY;
  value->text = psprintf(INT64_FORMAT ":i32", value->integer);
  return true;
}

/* Makes two values comparable. */
static bool unify(Value* a, Value* b) {
  if (a->type == DATEOID && b->type == TIMESTAMPOID && !date_of_timestamp(b)) return false;
  if (b->type == DATEOID && a->type == TIMESTAMPOID && !date_of_timestamp(a)) return false;
  if (is_integer(a->type) && is_integer(b->type) && a->type != b->type) {
    cast(a, INT8OID);
    cast(b, INT8OID);
  }
  if (a->type == FLOAT4OID && b->type == FLOAT8OID) cast(a, FLOAT8OID);
  if (b->type == FLOAT4OID && a->type == FLOAT8OID) cast(b, FLOAT8OID);
  if (a->type != b->type) return false;
  if (a->type == NUMERICOID) {
    const int scale = Max(a->scale, b->scale);

    if (a->precision + scale - a->scale > 38 || b->precision + scale - b->scale > 38) return false;
    cast_scale(a, scale);
    cast_scale(b, scale);
  }
  return true;
}

/* ---- operators and functions ---- */

int comparison_strategy(Oid operator, Oid type, bool* negated) {
  const TypeCacheEntry* entry = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY);
  int strategy = get_op_opfamily_strategy(operator, entry->btree_opf);

  *negated = false;
  if (strategy == 0 && OidIsValid(get_negator(operator))) {
    strategy = get_op_opfamily_strategy(get_negator(operator), entry->btree_opf);
    if (strategy != BTEqualStrategyNumber) return 0;
    *negated = true;
  }
  return strategy;
}

static bool compile_comparison(ExpressionMaking* making, const OpExpr* op, Value* value) {
  static const char* const kNames[] = {NULL, "less", "less_equal", "equal", "greater_equal", "greater"};
  Value a = {0}, b = {0};
  bool negated, tie;
  const int strategy = comparison_strategy(op->opno, exprType(linitial(op->args)), &negated);

  if (strategy < BTLessStrategyNumber || strategy > BTGreaterStrategyNumber) return false;
  if (!compile(making, linitial(op->args), &a) || !compile(making, lsecond(op->args), &b) || !unify(&a, &b))
    return false;
  if (is_string(a.type)) {
    const char* collation = type_collation(op->inputcollid, &tie);
    const bool is_binary = collation != NULL && strcmp(collation, "binary") == 0;

    if (strategy != BTEqualStrategyNumber ? !is_binary : !get_collation_isdeterministic(op->inputcollid)) return false;
  }
  value->type = BOOLOID;
  value->text = psprintf("%s(%s,%s)", negated ? "not_equal" : kNames[strategy], a.text, b.text);
  return true;
}

static bool compile_arithmetic(ExpressionMaking* making, List* args, const char* name, Value* value) {
  Value a = {0}, b = {0};

  if (list_length(args) != 2 || !compile(making, linitial(args), &a) || !compile(making, lsecond(args), &b))
    return false;
  making->can_fail = true;
  if (a.type == NUMERICOID && b.type == NUMERICOID) {
    value->type = NUMERICOID;
    if (strcmp(name, "multiply") == 0) {
      value->scale = a.scale + b.scale;
      value->precision = a.precision + b.precision;
    } else {
      value->scale = Max(a.scale, b.scale);
      value->precision = Max(a.precision - a.scale, b.precision - b.scale) + value->scale + 1;
    }
    value->precision = Min(value->precision, 38);
    if (value->scale > 38) return false;
    value->text = psprintf("%s(%s,%s)", name, a.text, b.text);
    return true;
  }
  if (!is_integer(a.type) || !is_integer(b.type)) return false;
  value->type = a.type == INT8OID || b.type == INT8OID ? INT8OID : a.type == INT4OID ? INT4OID : b.type;
  cast(&a, value->type);
  cast(&b, value->type);
  value->text = psprintf("%s_checked(%s,%s)", name, a.text, b.text);
  return true;
}

/* extract(year from a date) and the like: a numeric. */
static bool compile_extract(ExpressionMaking* making, List* args, Value* value) {
  static const char* const kParts[] = {"year", "quarter", "month", "day"};
  const Const* part = linitial(args);
  Value date = {0};
  char* name;

  if (!IsA(part, Const) || part->constisnull || !compile(making, lsecond(args), &date) || date.type != DATEOID)
    return false;
  name = TextDatumGetCString(part->constvalue);
  for (int i = 0; i < lengthof(kParts); ++i) {
    if (pg_strcasecmp(name, kParts[i]) != 0) continue;
    making->can_fail = true;
    value->type = NUMERICOID;
    value->precision = 10;
    value->scale = 0;
    /* Only days from 0001-01-01 on leave the range neither way: PostgreSQL has no year 0, and knows infinite dates. */
    value->text = psprintf(
        "cast(%s(cast(add_checked(subtract_checked(%s,2146753529:i32),2146764486:i32),date32)),"
        "decimal128(10,0))",
        kParts[i], date.text);
    return true;
  }
  return false;
}

static bool compile_like(ExpressionMaking* making, List* args, const char* name, Value* value) {
  Node* argument = linitial(args);
  const Const* pattern = lsecond(args);
  Value a = {0}, b = {0};
  Size length;

  while (IsA(argument, RelabelType)) argument = (Node*)((RelabelType*)argument)->arg;
  /* Blanks at the end of a bpchar count here. */
  if (exprType(argument) == BPCHAROID || GetDatabaseEncoding() != PG_UTF8) return false;
  if (!IsA(pattern, Const) || pattern->constisnull || !compile(making, argument, &a) || a.type != TEXTOID) return false;
  compile_string(pattern, false, &b);
  length = strlen(TextDatumGetCString(pattern->constvalue));
  if (length > 0 && TextDatumGetCString(pattern->constvalue)[length - 1] == '\\') return false;
  value->type = BOOLOID;
  value->text = psprintf("%s(%s,%s)", name, a.text, b.text);
  return true;
}

static bool compile_function(ExpressionMaking* making, Oid function, List* args, Oid collation, Value* value) {
  switch (function) {
    case F_INT2PL:
    case F_INT4PL:
    case F_INT8PL:
    case F_INT24PL:
    case F_INT42PL:
    case F_INT48PL:
    case F_INT84PL:
    case F_NUMERIC_ADD: return compile_arithmetic(making, args, "add", value);
    case F_INT2MI:
    case F_INT4MI:
    case F_INT8MI:
    case F_INT24MI:
    case F_INT42MI:
    case F_INT48MI:
    case F_INT84MI:
    case F_NUMERIC_SUB: return compile_arithmetic(making, args, "subtract", value);
    case F_INT2MUL:
    case F_INT4MUL:
    case F_INT8MUL:
    case F_INT24MUL:
    case F_INT42MUL:
    case F_INT48MUL:
    case F_INT84MUL:
    case F_NUMERIC_MUL: return compile_arithmetic(making, args, "multiply", value);
    case F_INT4_INT2:
    case F_INT8_INT2:
    case F_INT8_INT4:
      if (!compile(making, linitial(args), value)) return false;
      cast(value, function == F_INT4_INT2 ? INT4OID : INT8OID);
      return true;
    case F_NUMERIC_INT2:
    case F_NUMERIC_INT4:
    case F_NUMERIC_INT8:
      if (!compile(making, linitial(args), value) || !is_integer(value->type)) return false;
      value->precision = function == F_NUMERIC_INT8 ? 19 : 10, value->scale = 0;
      cast(value, NUMERICOID);
      value->constant = NULL;
      return true;
    case F_TEXTLIKE:
    case F_LIKE_TEXT_TEXT: return get_collation_isdeterministic(collation) && compile_like(making, args, "like", value);
    case F_TEXTNLIKE:
    case F_NOTLIKE_TEXT_TEXT:
      return get_collation_isdeterministic(collation) && compile_like(making, args, "not_like", value);
    case F_TEXT_BPCHAR:
      if (!compile(making, linitial(args), value) || value->type != BPCHAROID) return false;
      value->type = TEXTOID;
      return true;
    case F_EXTRACT_TEXT_DATE: return compile_extract(making, args, value);
    default: return false;
  }
}

static bool compile_bool(ExpressionMaking* making, const BoolExpr* expr, Value* value) {
  StringInfoData text;
  ListCell* cell;

  if (list_length(expr->args) > 64) return false;
  initStringInfo(&text);
  appendStringInfoString(&text, expr->boolop == AND_EXPR ? "and(" : expr->boolop == OR_EXPR ? "or(" : "not(");
  foreach (cell, expr->args) {
    Value argument = {0};

    if (!compile(making, lfirst(cell), &argument) || argument.type != BOOLOID) return false;
    appendStringInfo(&text, "%s%s", foreach_current_index(cell) > 0 ? "," : "", argument.text);
  }
  appendStringInfoChar(&text, ')');
  value->type = BOOLOID;
  value->text = text.data;
  return true;
}

/* x IN (constants), x NOT IN (constants). */
static bool compile_in(ExpressionMaking* making, const ScalarArrayOpExpr* expr, Value* value) {
  const Const* array = lsecond(expr->args);
  Const element = {.xpr.type = T_Const};
  bool negated, *nulls, is_first = true;
  Datum* values;
  int n;
  int16 length;
  bool by_value;
  char alignment;
  StringInfoData text;

  if (!IsA(array, Const) || array->constisnull ||
      !(!OidIsValid(expr->inputcollid) || get_collation_isdeterministic(expr->inputcollid)))
    return false;
  if (comparison_strategy(expr->opno, exprType(linitial(expr->args)), &negated) != BTEqualStrategyNumber ||
      negated == expr->useOr)
    return false;
  element.consttype = ARR_ELEMTYPE(DatumGetArrayTypeP(array->constvalue));
  get_typlenbyvalalign(element.consttype, &length, &by_value, &alignment);
  deconstruct_array(DatumGetArrayTypeP(array->constvalue), element.consttype, length, by_value, alignment, &values,
                    &nulls, &n);
  if (n < 2 || n > 64) return false;
  initStringInfo(&text);
  appendStringInfoString(&text, negated ? "not(or(" : "or(");
  for (int i = 0; i < n; ++i) {
    Value a = {0}, b = {0};

    element.constvalue = values[i];
    if (nulls[i] || !compile(making, linitial(expr->args), &a) || !compile_constant(&element, &b) || !unify(&a, &b))
      return false;
    appendStringInfo(&text, "%sequal(%s,%s)", is_first ? "" : ",", a.text, b.text);
    is_first = false;
  }
  appendStringInfoString(&text, negated ? "))" : ")");
  value->type = BOOLOID;
  value->text = text.data;
  return true;
}

/* The results of a CASE, the last of which is that of ELSE, with the same digits behind the point. */
static bool compile_results(ExpressionMaking* making, const CaseExpr* expr, Value* results) {
  const int n = list_length(expr->args);
  int scale = 0;

  for (int i = 0; i <= n; ++i) {
    Expr* result = i < n ? list_nth_node(CaseWhen, expr->args, i)->result : expr->defresult;

    if (!compile(making, (Node*)result, &results[i]) || results[i].type != results[0].type) return false;
    if (is_string(results[i].type)) return false;
    scale = Max(scale, results[i].scale);
  }
  for (int i = 0; i <= n && results[0].type == NUMERICOID; ++i) {
    if (results[i].precision + scale - results[i].scale > 38) return false;
    cast_scale(&results[i], scale);
  }
  return true;
}

static bool compile_case(ExpressionMaking* making, const CaseExpr* expr, Value* value) {
  const int n = list_length(expr->args);
  Value* results = palloc0(sizeof(Value) * (n + 1));
  StringInfoData text;

  if (expr->arg != NULL || expr->defresult == NULL || n > 64 || !compile_results(making, expr, results)) return false;
  initStringInfo(&text);
  appendStringInfoString(&text, "case_when(");
  *value = results[n];
  value->constant = NULL;
  for (int i = 0; i < n; ++i) {
    Value condition = {0};

    if (!compile(making, (Node*)list_nth_node(CaseWhen, expr->args, i)->expr, &condition)) return false;
    if (condition.type != BOOLOID) return false;
    value->precision = Max(value->precision, results[i].precision);
    appendStringInfo(&text, "%s,%s,", condition.text, results[i].text);
  }
  appendStringInfo(&text, "%s)", results[n].text);
  value->text = text.data;
  return true;
}

static bool compile(ExpressionMaking* making, Node* node, Value* value) {
  check_stack_depth();
  switch (nodeTag(node)) {
    case T_Var: return compile_var(making, (const Var*)node, value);
    case T_Const: return compile_constant((const Const*)node, value);
    case T_RelabelType:
      return compile(making, (Node*)((const RelabelType*)node)->arg, value) && !(value->type == BPCHAROID) &&
             (is_string(value->type) || value->type == ((const RelabelType*)node)->resulttype);
    case T_OpExpr: {
      const OpExpr* op = (const OpExpr*)node;

      if (compile_function(making, op->opfuncid, op->args, op->inputcollid, value)) return true;
      return list_length(op->args) == 2 && op->opresulttype == BOOLOID && compile_comparison(making, op, value);
    }
    case T_FuncExpr: {
      const FuncExpr* call = (const FuncExpr*)node;

      return compile_function(making, call->funcid, call->args, call->inputcollid, value);
    }
    case T_BoolExpr: return compile_bool(making, (const BoolExpr*)node, value);
    case T_ScalarArrayOpExpr: return compile_in(making, (const ScalarArrayOpExpr*)node, value);
    case T_CaseExpr: return compile_case(making, (const CaseExpr*)node, value);
    case T_NullTest: {
      const NullTest* test = (const NullTest*)node;
      Value argument = {0};

      if (test->argisrow || !compile(making, (Node*)test->arg, &argument)) return false;
      value->type = BOOLOID;
      value->text = psprintf("%s(%s)", test->nulltesttype == IS_NULL ? "is_null" : "is_valid", argument.text);
      return true;
    }
    default: return false;
  }
}

/* x OP value as low <= x <= high. */
static bool bound_range(int strategy, int64 value, int64* low, int64* high) {
  switch (strategy) {
    case BTLessStrategyNumber: *high = value - 1; return value != PG_INT64_MIN;
    case BTLessEqualStrategyNumber: *high = value; return true;
    case BTEqualStrategyNumber: *low = *high = value; return true;
    case BTGreaterEqualStrategyNumber: *low = value; return true;
    case BTGreaterStrategyNumber: *low = value + 1; return value != PG_INT64_MAX;
    default: return false;
  }
}

bool expression_range(const Node* clause, Index relation, AttrNumber* attno, int* width, int64* low, int64* high) {
  const OpExpr* op = (const OpExpr*)clause;
  const Var* var;
  Value constant = {0};
  int strategy;
  bool negated;

  if (!IsA(op, OpExpr) || list_length(op->args) != 2) return false;
  var = linitial(op->args);
  if (!IsA(var, Var) || var->varno != relation || var->varattno <= 0 || !IsA(lsecond(op->args), Const)) return false;
  switch (var->vartype) {
    case INT4OID:
    case DATEOID: *width = 4; break;
    case INT8OID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID: *width = 8; break;
    default: return false;
  }
  strategy = comparison_strategy(op->opno, var->vartype, &negated);
  if (strategy == 0 || negated || !compile_constant(lsecond(op->args), &constant)) return false;
  if (constant.type != var->vartype && !(var->vartype == DATEOID && date_of_timestamp(&constant))) return false;
  if (constant.constant == NULL) return false;
  *attno = var->varattno;
  *low = PG_INT64_MIN;
  *high = PG_INT64_MAX;
  return bound_range(strategy, constant.integer, low, high);
}

bool expression_add(ExpressionMaking* making, Node* expr, const ColumnPlan* as) {
  Value value = {0};

  if (making->types.data == NULL) {
    initStringInfo(&making->types);
    initStringInfo(&making->results);
  }
  if (!compile(making, expr, &value)) return false;
  switch (as->kind) {
    case KIND_BOOL:
      if (value.type != BOOLOID) return false;
      break;
    case KIND_DECIMAL:
      if (value.type != NUMERICOID || value.scale != as->scale) return false;
      break;
    case KIND_BYVALUE:
      if (value.type == BOOLOID || value.type == NUMERICOID || is_string(value.type) ||
          strcmp(type_name(&value), as->type) != 0)
        return false;
      break;
    default: return false;
  }
  appendStringInfo(&making->results, "%s%s", making->results.len > 0 ? "," : "", value.text);
  return true;
}

bool expression_cannot_fail(const Node* expr, const ColumnPlan* as) {
  List* columns = NIL;
  ExpressionMaking making = {.columns = &columns};

  if (IsA(expr, Var)) return true;
  return expression_add(&making, copyObject((Node*)expr), as) && !making.can_fail;
}

char* expression_spec(const ExpressionMaking* making) {
  if (making->types.len == 0) return psprintf("map out=%s", making->results.data);
  return psprintf("map in=%s out=%s", making->types.data, making->results.data);
}
