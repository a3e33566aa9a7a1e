# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share: small tables, and rows that can be compared."""

import pyarrow as pa

import quern

ORDERS = {
    "id": [1, 2, 3, 4, None],
    "name": ["ada", "bob", None, "dora", "a text of more than 12 bytes"],
    "price": [1.5, 2.5, None, 4.5, 5.5],
}
ITEMS = {"order": [2, 3, 3, 9], "qty": [10, 20, 30, 40]}


def orders():
    return pa.table(ORDERS)


def items():
    return pa.table({"order": pa.array(ITEMS["order"], pa.int32()), "qty": ITEMS["qty"]})


def rows(result):
    """A list of tuples of any object with Arrow data."""
    table = pa.table(result)
    return list(zip(*(column.to_pylist() for column in table.columns))) if table.num_columns else [()] * table.num_rows


def sorted_rows(result):
    return sorted(rows(result), key=repr)


def message_of(error):
    return str(error.exception)


__all__ = ["ITEMS", "ORDERS", "items", "message_of", "orders", "pa", "quern", "rows", "sorted_rows"]
