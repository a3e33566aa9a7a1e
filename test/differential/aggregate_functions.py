# SPDX-License-Identifier: Apache-2.0
"""The aggregate functions: runtime/spec/aggregate_functions.def, which self_check.py compares with this table.

    FUNCTIONS["avg"].result_type([ColumnType("i32", nullable=True)])       f64
"""
import dataclasses

from random_data import DECIMAL_DIGITS, DECIMALS, FLOAT_CODES, INTEGER_CODES, SCALAR_TYPES, STRING_TYPES, ColumnType

ACCEPTED = {
    "anything": SCALAR_TYPES,
    "numbers": (*INTEGER_CODES, *FLOAT_CODES, *DECIMALS),
    "plain_numbers": (*INTEGER_CODES, *FLOAT_CODES),
    "integers": tuple(INTEGER_CODES),
    "booleans": ("bool",),
    "texts": STRING_TYPES,
}
# What values of strings are compared under a collation.
COMPARING = ("min", "max", "any", "first", "last", "count_distinct", "approx_count_distinct")
# Whose answer hangs on the row ids.
ORDERED = ("first", "last", "string_agg")
ALWAYS_NULLABLE = ("var_samp", "stddev_samp", "covar_pop", "covar_samp", "corr", "host")
# host.NAME that the harness registers: the exclusive or of both arguments over all rows, null of none.
HOST_NAME = "xor_of_both"
HOST_ARGUMENT = "i64"
RESULT_DIGITS = DECIMAL_DIGITS["decimal128"]


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    num_arguments: int
    accepts: str
    result: str

    def result_type(self, arguments, nullable=False):
        first = arguments[0] if arguments else None
        if self.result == "count":
            return ColumnType("i64")
        if self.result == "double" or self.result == "average_of" and not first.is_decimal:
            return ColumnType("f64", nullable=nullable)
        if self.result == "decimal":
            return ColumnType("decimal128", precision=RESULT_DIGITS, nullable=nullable)
        if self.result == "of_host":
            return ColumnType(HOST_ARGUMENT, nullable=True)
        if self.result in ("sum_of", "average_of"):
            if first.is_decimal:
                return ColumnType("decimal128", precision=RESULT_DIGITS, scale=first.scale, nullable=nullable)
            return ColumnType("f64" if first.is_float else "i64" if first.name.startswith("i") else "u64",
                              nullable=nullable)
        return dataclasses.replace(first, index="", collation="", nullable=nullable)


FUNCTIONS = {function.name: function for function in (
    Function("count_star", 0, "anything", "count"),
    Function("count", 1, "anything", "count"),
    Function("sum", 1, "numbers", "sum_of"),
    Function("sum128", 1, "integers", "decimal"),
    Function("avg", 1, "numbers", "average_of"),
    Function("min", 1, "anything", "same"),
    Function("max", 1, "anything", "same"),
    Function("any", 1, "anything", "same"),
    Function("first", 1, "anything", "same"),
    Function("last", 1, "anything", "same"),
    Function("bool_and", 1, "booleans", "same"),
    Function("bool_or", 1, "booleans", "same"),
    Function("bit_and", 1, "integers", "same"),
    Function("bit_or", 1, "integers", "same"),
    Function("bit_xor", 1, "integers", "same"),
    Function("var_pop", 1, "plain_numbers", "double"),
    Function("var_samp", 1, "plain_numbers", "double"),
    Function("stddev_pop", 1, "plain_numbers", "double"),
    Function("stddev_samp", 1, "plain_numbers", "double"),
    Function("covar_pop", 2, "plain_numbers", "double"),
    Function("covar_samp", 2, "plain_numbers", "double"),
    Function("corr", 2, "plain_numbers", "double"),
    Function("count_distinct", 1, "anything", "count"),
    Function("sum_distinct", 1, "numbers", "sum_of"),
    Function("median", 1, "plain_numbers", "double"),
    Function("quantile", 1, "plain_numbers", "double"),
    Function("approx_count_distinct", 1, "anything", "count"),
    Function("string_agg", 1, "texts", "same"),
    Function("host", 0, "anything", "of_host"),
)}

# What quern_job_stats may say of the layout of an aggregation.
LAYOUTS = ("single", "dense", "open", "sorted", "directory", "spilled")
