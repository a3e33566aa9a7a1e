#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which function of expressions is which engine's behaviour: asks Quern, DuckDB, DataFusion, ClickHouse and, where it
is installed, PostgreSQL the same, and compares the answers with the table of docs/expressions.md.

    expression_engines.py --lib build/lib/libquern.so --page docs/expressions.md      exit status 1 where a row differs
    expression_engines.py --lib build/lib/libquern.so                                 prints the rows

A cell has the names of the functions that answer as the engine does ("yes" in a row of one function), or else the
engine's own answer.
"""
import argparse
import ctypes
import pathlib
import sys

sys.dont_write_bytecode = True

import chdb
import datafusion
import duckdb
import pyarrow as pa

import quern_abi
from quern_abi import ROWS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "postgres"))
import cluster

_I8, _F64, _D = "CAST({} AS TINYINT)", "CAST('{}' AS DOUBLE)", "CAST('{}' AS DECIMAL({}))"


def _integers(sign, left, right, wide):
    """The last two values are those of the same question for i16: PostgreSQL has no i8."""
    sql = f"{_I8.format(left)} {sign} {_I8.format(right)}"
    postgres_sql = f"CAST({wide[0]} AS SMALLINT) {sign} CAST({wide[1]} AS SMALLINT)"
    return {"DuckDB": sql, "DataFusion": sql, "PostgreSQL": postgres_sql}, f"toInt8({left}) {sign} toInt8({right})"


def _of_engine(sql, engine):
    if engine == "PostgreSQL" and (isinstance(sql, str) or engine not in sql):
        return _of_engine(sql, "DataFusion").replace(" AS DOUBLE)", " AS DOUBLE PRECISION)")
    return sql if isinstance(sql, str) else sql[engine]


# (question, name of a function -> its expression, SQL of the others, SQL of ClickHouse). PostgreSQL is asked what
# DataFusion is asked where nothing else is given.
QUESTIONS = (
    ("127 + 1 of i8", {name: f"{name}(127:i8,1:i8)" for name in ("add", "add_checked", "add_or_null")},
     *_integers("+", 127, 1, (32767, 1))),
    ("-128 - 1 of i8", {name: f"{name}(-128:i8,1:i8)"
                        for name in ("subtract", "subtract_checked", "subtract_or_null")},
     *_integers("-", -128, 1, (-32768, 1))),
    ("100 * 3 of i8", {name: f"{name}(100:i8,3:i8)" for name in ("multiply", "multiply_checked", "multiply_or_null")},
     *_integers("*", 100, 3, (300, 300))),
    ("i64: 2^63", {name: f"{name}(9223372036854775807:i64,1:i64)"
                            for name in ("add", "add_checked", "add_or_null")},
     "CAST(9223372036854775807 AS BIGINT) + CAST(1 AS BIGINT)", "toInt64(9223372036854775807) + toInt64(1)"),
    ("1 / 0 of integers", {name: f"{name}(1:i32,0:i32)" for name in ("divide_checked", "divide_or_null")},
     {"DuckDB": "CAST(1 AS INT) // CAST(0 AS INT)", "DataFusion": "CAST(1 AS INT) / CAST(0 AS INT)"},
     "intDiv(toInt32(1), toInt32(0))"),
    ("-7 / 2 of integers", {"divide_checked": "divide_checked(-7:i32,2:i32)"},
     {"DuckDB": "CAST(-7 AS INT) // CAST(2 AS INT)", "DataFusion": "CAST(-7 AS INT) / CAST(2 AS INT)"},
     "intDiv(toInt32(-7), toInt32(2))"),
    ("1 / 0 of f64", {name: f"{name}(1:f64,0:f64)" for name in ("divide", "divide_checked", "divide_or_null")},
     f"{_F64.format(1)} / {_F64.format(0)}", "toFloat64(1) / toFloat64(0)"),
    ("-7 modulo 3", {"modulo_checked": "modulo_checked(-7:i32,3:i32)"},
     "CAST(-7 AS INT) % CAST(3 AS INT)", "toInt32(-7) % toInt32(3)"),
    ("7 modulo 0", {name: f"{name}(7:i32,0:i32)" for name in ("modulo_checked", "modulo_or_null")},
     "CAST(7 AS INT) % CAST(0 AS INT)", "toInt32(7) % toInt32(0)"),
    ("-128 modulo -1 of i8", {"modulo_checked": "modulo_checked(-128:i8,-1:i8)"},
     *_integers("%", -128, -1, (-32768, -1))),
    *(("f64 2.7 to i32", {name: expression}, f"CAST({_F64.format(2.7)} AS INT)", "CAST(toFloat64(2.7) AS Int32)")
      for name, expression in (("cast", "cast(2.7:f64,i32)"),
                               ("cast(round_half_to_even(..))", "cast(round_half_to_even(2.7:f64),i32)"))),
    ("decimal 2.5 to i32", {"cast": "cast(2.5:decimal128(5,1),i32)"},
     f"CAST({_D.format(2.5, '5,1')} AS INT)", "CAST(toDecimal32('2.5', 1) AS Int32)"),
    ("decimal 2.45 to scale 1", {"cast": "cast(2.45:decimal128(5,2),decimal128(5,1))"},
     f"CAST({_D.format(2.45, '5,2')} AS DECIMAL(5,1))", "CAST(toDecimal32('2.45', 2) AS Decimal(5, 1))"),
    ("300 to i8", {"cast": "cast(300:i32,i8)", "cast_or_null": "cast_or_null(300:i32,i8)"},
     {"DuckDB": "CAST(CAST(300 AS INT) AS TINYINT)", "DataFusion": "CAST(CAST(300 AS INT) AS TINYINT)",
      "PostgreSQL": "CAST(CAST(70000 AS INT) AS SMALLINT)"}, "CAST(toInt32(300) AS Int8)"),
    ("NaN = NaN", {"equal": "equal(nan:f64,nan:f64)"}, f"{_F64.format('nan')} = {_F64.format('nan')}",
     "toFloat64(nan) = toFloat64(nan)"),
    ("NaN > 1", {"greater": "greater(nan:f64,1:f64)"}, f"{_F64.format('nan')} > {_F64.format(1)}",
     "toFloat64(nan) > toFloat64(1)"),
    ("least of 1, null, 3", {"least": "least(1:i32,null:i32,3:i32)"}, "least(1, NULL, 3)", "least(1, NULL, 3)"),
    ("square root of -1", {"sqrt": "sqrt(-1:f64)"}, f"sqrt({_F64.format(-1)})", "sqrt(toFloat64(-1))"),
    ("sign of NaN", {"sign": "sign(nan:f64)"},
     {"DuckDB": "sign(CAST('nan' AS DOUBLE))", "DataFusion": "signum(CAST('nan' AS DOUBLE))",
      "PostgreSQL": "sign(CAST('nan' AS DOUBLE PRECISION))"}, "sign(toFloat64(nan))"),
    *((f"{question} of {value}", {name: f"{name}({value}:f64)" for name in (f, f + "_checked", f + "_or_null")},
       f"{f}({_F64.format(value)})", f"{'log' if f == 'ln' else f}(toFloat64({value}))")
      for f, question in (("ln", "natural logarithm"), ("log10", "base 10 logarithm")) for value in (0, -1)),
    ("e to the power of 1000", {name: f"{name}(1000:f64)" for name in ("exp", "exp_checked")},
     f"exp({_F64.format(1000)})", "exp(toFloat64(1000))"),
    *((f"{x} to the power of {y}",
       {f"power{form}": f"power{form}({x}:f64,{y}:f64)" for form in ("", "_checked", "_or_null")},
       f"power({_F64.format(x)}, {_F64.format(y)})", f"pow(toFloat64({x}), toFloat64({y}))")
      for x, y in ((0, -1), (-8, 0.5))),
    ("2024-01-31 plus one month", {"add_months": "add_months(19753:date32,1:i32)"},
     "CAST(DATE '2024-01-31' + INTERVAL '1' MONTH AS DATE)", "addMonths(toDate('2024-01-31'), 1)"),
    ("week of 2021-01-01", {"iso_week": "iso_week(18628:date32)"},
     "date_part('week', DATE '2021-01-01')", "toISOWeek(toDate('2021-01-01'))"),
    *(("day of week of a Sunday", {name: f"{name}(18630:date32)"},
       "date_part('dow', DATE '2021-01-03')", "toDayOfWeek(toDate('2021-01-03'))")
      for name in ("iso_day_of_week", "sunday_day_of_week")),
    ("Monday of 2021-01-03", {"date_trunc_week": "date_trunc_week(18630:date32)"},
     "CAST(date_trunc('week', DATE '2021-01-03') AS DATE)", "toMonday(toDate('2021-01-03'))"),
    ("date of -1 second", {"timestamp_to_date": "timestamp_to_date(-1:timestamp,1:i64)"},
     "CAST(TIMESTAMP '1969-12-31 23:59:59' AS DATE)", "toDate32(toDateTime64('1969-12-31 23:59:59', 0, 'UTC'))"),
    ("second of 23:59:59.9", {"second": "second(86399900:timestamp,1000:i64)"},
     "date_part('second', TIMESTAMP '1970-01-01 23:59:59.9')", "toSecond(toDateTime64(86399.9, 1, 'UTC'))"),
    ("substring of 'abcdef' at -1 of length 4", {"substring": "substring('abcdef':utf8,-1:i64,4:i64)"},
     "substring('abcdef', -1, 4)", "substring('abcdef', -1, 4)"),
    ("substring of length -1", {"substring": "substring('abcdef':utf8,2:i64,-1:i64)"},
     "substring('abcdef', 2, -1)", "substring('abcdef', 2, -1)"),
    ("replace '' in 'abc' by 'x'", {"replace": "replace('abc':utf8,'':utf8,'x':utf8)"}, "replace('abc', '', 'x')",
     "replaceAll('abc', '', 'x')"),
    ("'a' followed by null", {"concat": "concat('a':utf8,null:utf8)"}, "'a' || CAST(NULL AS VARCHAR)",
     "'a' || CAST(NULL AS Nullable(String))"),
    ("length of a trimmed tab", {"trim": "char_length(trim('\t':utf8))"}, "char_length(trim(chr(9)))",
     "length(trim(char(9)))"),
    ("'É' in lower case", {"ascii_lower": "ascii_lower('É':utf8)"},
     {"DuckDB": "lower('É')", "DataFusion": "lower('É')", "PostgreSQL": 'lower(\'É\' COLLATE "und-x-icu")'},
     "lower('É')"),
    *((f"text '{text}' to i32", {name: f"{name}('{text}':utf8,i32)" for name in ("cast", "cast_or_null")},
       f"CAST('{text}' AS INT)", f"CAST('{text}' AS Int32)") for text in (" 12", "1.5")),
    *((f"f64 {value} to text", {"cast": f"cast({value}:f64,utf8)"}, f"CAST({_F64.format(value)} AS VARCHAR)",
       f"CAST(toFloat64('{value}') AS String)") for value in ("0.1", "100000", "1e+15")),
    ("true to text", {"cast": "cast(true:bool,utf8)"}, "CAST(TRUE AS VARCHAR)", "CAST(true AS String)"),
    ("type of (15,2) + (10,4)", {"add": "add(1.00:decimal128(15,2),1.0000:decimal128(10,4))"},
     f"{_D.format(1, '15,2')} + {_D.format(1, '10,4')}",
     "toTypeName(CAST(1 AS Decimal(15,2)) + CAST(1 AS Decimal(10,4)))"),
    ("type of (15,2) * (15,2)", {"multiply": "multiply(1.00:decimal128(15,2),1.00:decimal128(15,2))"},
     f"{_D.format(1, '15,2')} * {_D.format(1, '15,2')}",
     "toTypeName(CAST(1 AS Decimal(15,2)) * CAST(1 AS Decimal(15,2)))"),
)


def text_of(value, arrow_type, asks_type):
    """An answer as the page has it."""
    if asks_type:
        return f"({arrow_type.precision},{arrow_type.scale})"
    if value is None:
        return "null"
    return value if isinstance(value, str) else str(value).lower().removesuffix(".0")


def ask_quern(library, expression, asks_type):
    with library.compile(f"map out={expression}") as kernel, kernel.job() as job:
        job.bind_arrow(ROWS, pa.schema([]), [], [])
        schema, keep = job.result_schema(ROWS), []
        with job.output(ROWS) as output:
            output.push(quern_abi.raw_batch([], [], None, 1, 0, keep))
            try:
                _, array = output.next_arrow()
            except quern_abi.QuernError as error:
                if error.status != quern_abi.OUT_OF_RANGE:
                    raise
                return "error"
            column = pa.RecordBatch._import_from_c(ctypes.addressof(array), schema).column(0)
    return text_of(column[0].as_py(), column.type, asks_type)


def _of_table(table, asks_type):
    column = table.column(0)
    return text_of(column[0].as_py(), column.type, asks_type)


def ask_duckdb(sql, asks_type):
    try:
        return _of_table(duckdb.sql(f"SELECT {sql} AS v").to_arrow_table(), asks_type)
    except duckdb.Error:
        return "error"


def ask_datafusion(sql, asks_type):
    try:
        return _of_table(datafusion.SessionContext().sql(f"SELECT {sql} AS v").to_arrow_table(), asks_type)
    except Exception as error:  # which class it has differs from version to version
        if "DataFusion error" not in str(error) and "Arrow error" not in str(error):
            raise
        return "error"


def ask_clickhouse(sql, asks_type):
    try:
        answer = str(chdb.query(f"SELECT {sql}", "TSV")).strip()
    except RuntimeError:
        return "error"
    if asks_type:
        return answer.removeprefix("Decimal").replace(" ", "")
    is_truth = any(f" {sign} toFloat64" in sql for sign in ("=", ">"))
    return {"0": "false", "1": "true"}[answer] if is_truth else answer.replace("\\N", "null")


def _shortened(name):
    for ending in ("_checked", "_or_null"):
        if name.endswith(ending):
            return ending
    return name


def ask_postgres():
    """The answers to all questions; a list of None where PostgreSQL is not installed."""
    if cluster.bindir() is None:
        return [None] * len(QUESTIONS)
    asked = [_of_engine(sql, "PostgreSQL") for _, _, sql, _ in QUESTIONS]
    with cluster.Cluster({"timezone": "UTC"}, locale="C") as server, server.session() as session:
        values = [f"pg_typeof({sql})" if _asks_type(question) else sql
                  for sql, (question, *_) in zip(asked, QUESTIONS)]
        answers = session.results([f"select ({value})::text" for value in values])
    values = ["error" if answer.failed else text_of(answer.rows[0][0], None, False) for answer in answers]
    return [{"NaN": "nan"}.get(value, value) for value in values]


def _asks_type(question):
    return question.startswith("type of")


def _names_of(answer, ours):
    same = [name for name, one in ours.items() if one == answer]
    return "yes" if same and len(ours) == 1 else ", ".join(f"`{_shortened(name)}`" for name in same)


def row_of(library, of_postgres, question, functions, sql, clickhouse):
    asks_type = _asks_type(question)
    ours = {name: ask_quern(library, expression, asks_type) for name, expression in functions.items()}
    theirs = [ask_duckdb(_of_engine(sql, "DuckDB"), asks_type),
              ask_datafusion(_of_engine(sql, "DataFusion"), asks_type), ask_clickhouse(clickhouse, asks_type)]
    if of_postgres is not None:
        theirs.append(of_postgres)
    cells = [_names_of(one, ours) or one for one in theirs]
    answers = ", ".join(f"`{_shortened(name)}` {answer}" for name, answer in ours.items())
    return f"| {question} | {answers} | {' | '.join(cells)} |"


def without_postgres(line):
    """A row of the page without its last column."""
    return line.rstrip("|").rpartition("|")[0] + "|" if line.startswith("|") else line


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lib", help="libquern.so; default: $QUERN_LIB")
    parser.add_argument("--page")
    options = parser.parse_args()
    library = quern_abi.Library(options.lib)
    of_postgres = ask_postgres()
    is_asked = of_postgres[0] is not None
    rows = [row_of(library, answer, *question) for answer, question in zip(of_postgres, QUESTIONS)]
    if options.page is None:
        print("\n".join(rows))
        return 0
    with open(options.page, encoding="utf-8") as page:
        lines = page.read().splitlines()
    on_page = set(lines if is_asked else map(without_postgres, lines))
    for row in rows:
        if row not in on_page:
            print(f"not on the page: {row}")
    print(f"{len(rows)} questions" + ("" if is_asked else "; PostgreSQL is not installed: not asked"))
    return 0 if on_page.issuperset(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
