# SPDX-License-Identifier: Apache-2.0
"""Maps as an operator that run.py can test: what the variants of a case have in common, DuckDB's answer, and the
coverage of a run.

All variants must give a row the same results, or all of them none: a row that has failed in one must not come out of
another. DuckDB computes the expressions that have SQL (map_expressions.py): for all rows that came out at once, which
must not fail, and for each row that failed, which must. Texts of floats are those of map_string_sql.float_text.
"""
import dataclasses

import duckdb
import pyarrow as pa

import run_coverage
from map_case import Case, Variant  # noqa: F401
from map_expressions import ALL_FUNCTIONS, NUMBER_FUNCTIONS, TYPES, sql_type
from map_run import check_compiles_twice, run  # noqa: F401
from map_string_sql import STRING_TYPES, float_text, is_string
from oracle import duckdb_column
from random_data import from_wide, normalised_float
from result_columns import Mismatch

ENGINES = ("generic", "jit")
MAX_DUCKDB_ROWS = 2000


def _comparable(column_type, values):
    """Python values that are equal where the results are: one NaN, no -0."""
    if not column_type.is_float:
        return values
    return [None if value is None else normalised_float(column_type, value) for value in values]


class Oracle:
    def __init__(self):
        self._connection, self.error = duckdb.connect(), None
        self._connection.execute("SET threads = 1; SET disabled_optimizers = 'common_subexpressions'")

    def results(self, case, expressions, rows):
        """The values of these expressions for these rows; None where DuckDB fails."""
        columns = {f"c{number}": duckdb_column(dataclasses.replace(column.type, collation=""), column.values,
                                               [column.indices[row] for row in rows])
                   for number, column in enumerate(case.keys)}
        self._connection.register("input", pa.table({"row_id": pa.array(range(len(rows)), pa.int64()), **columns}))
        wanted = ", ".join(f"CAST({one.sql()} AS {sql_type(one.type)}) AS r{place}"
                           for place, one in enumerate(expressions))
        try:
            table = self._connection.sql(f"SELECT {wanted} FROM input ORDER BY row_id").to_arrow_table()
        except duckdb.Error as error:
            self.error = error
            return None
        finally:
            self._connection.unregister("input")
        return [_physical(one.type, table.column(place)) for place, one in enumerate(expressions)]


def _physical(column_type, column):
    if column_type.name == "bool":
        return column.cast(pa.uint8()).to_pylist()
    if is_string(column_type):
        return column.cast(pa.large_binary()).to_pylist()
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    if column_type.is_decimal:  # all of DuckDB's have 128 bits
        wides = array.view(pa.binary(16)).to_pylist()
        return [None if value is None else column_type.decimal_value(from_wide(value)) for value in wides]
    bits = array.view(column_type.bits_arrow()) if column_type.is_float else array
    return _comparable(column_type, bits.to_pylist())


class Expected:
    def __init__(self, case, oracle):
        self.case, self.oracle = case, oracle
        self.results, self.errors = {}, {}  # by row of the case
        self._asked = set()

    def check(self, answer):
        columns = [_comparable(result.type, answer.table.column(place).to_pylist())
                   for place, result in enumerate(self.case.results)]
        for row, *values in zip(answer.rows, *columns):
            if row in self.errors:
                raise Mismatch(f"row {row} has a result; in another variant it had none: {self.errors[row]}")
            if self.results.setdefault(row, values) != values:
                raise Mismatch(f"row {row} is {values}; in another variant it was {self.results[row]}")
        if answer.failed is not None:
            if answer.failed in self.results:
                raise Mismatch(f"row {answer.failed} failed, {answer.error}; another variant had a result")
            self.errors[answer.failed] = answer.error
        self._ask_duckdb()
        for place, result in enumerate(self.case.results):
            if result.function == "cast" and is_string(result.type) and result.arguments[0].type.is_float:
                self._check_texts(answer, place)

    def _check_texts(self, answer, place):
        """Of a column of floats."""
        argument = self.case.results[place].arguments[0]
        if argument.function != "$":
            return
        column = self.case.keys[argument.arguments[0]]
        texts = [float_text(column.type.name, bits).encode() for bits in column.values]
        for row in answer.rows:
            wanted = None if column.indices[row] is None else texts[column.indices[row]]
            if self.results[row][place] != wanted:
                raise Mismatch(f"row {row}: {self.case.results[place].text()} is {self.results[row][place]}, "
                               f"the text of the float is {wanted}")

    def _ask_duckdb(self):
        expressions = [one for one in self.case.results if one.sql()]
        places = [place for place, one in enumerate(self.case.results) if one.sql()]
        rows = [row for row in self.results if row not in self._asked][:MAX_DUCKDB_ROWS]
        if rows and expressions:
            theirs = self.oracle.results(self.case, expressions, rows)
            if theirs is None:
                raise Mismatch(f"DuckDB fails, on one of {len(rows)} rows that have results: {self.oracle.error}")
            for place, values in zip(places, theirs):
                for row, value in zip(rows, values):
                    if self.results[row][place] != value:
                        raise Mismatch(f"row {row}: {self.case.results[place].text()} is {self.results[row][place]}, "
                                       f"DuckDB's {value}: {self.case.results[place].sql()}")
        # What is null in every row makes a call of DuckDB null before its other arguments are computed.
        must_fail = (len(expressions) == len(self.case.results)
                     and not any(one.has_constant_null() for one in expressions))
        for row in self.errors.keys() - self._asked if must_fail else ():
            if self.oracle.results(self.case, expressions, [row]):
                raise Mismatch(f"row {row} failed, {self.errors[row]}; DuckDB has a result")
        self._asked.update(rows, self.errors)


# ---- what a run shows ------------------------------------------------------------------------------------------------


def _marks(case, variant):
    for result in case.results:
        yield from (("function", call.function, variant.engine) for call in result.calls())
        yield from (("in DuckDB", call.function) for call in result.calls() if result.sql())
        yield "result", result.type.name, variant.engine
    yield from (("column", column.type.name, variant.engine) for column in case.keys)
    yield from ((name, form) for name, form in variant.interfaces.items())


_NOT_IN_DUCKDB = ("modulo_checked", "modulo_or_null", "divide",
                  *(name for name, (sql, *_) in NUMBER_FUNCTIONS.items() if sql is None))


def _wanted():
    for engine in ENGINES:
        for name, values in (("function", ALL_FUNCTIONS), ("result", (*TYPES, *STRING_TYPES)),
                             ("column", (*TYPES, *STRING_TYPES))):
            yield from ((name, value, engine) for value in values)
    yield from (("in DuckDB", name) for name in ALL_FUNCTIONS if name not in _NOT_IN_DUCKDB)
    yield from ((name, form) for name in ("input", "result") for form in ("arrow", "vectors"))
    yield from (("rows", what) for what in ("all have results", "one has none"))


class Coverage(run_coverage.Coverage):
    def __init__(self):
        end = lambda answer: "all have results" if answer.failed is None else "one has none"
        super().__init__("rows", _marks, _wanted(), end, rare_end="one has none")
