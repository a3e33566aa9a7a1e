# SPDX-License-Identifier: Apache-2.0
"""tiny_tpch.py FOLDER: 1,500 line items of 250 orders, in the columns that tools/demo_compare.py asks for."""
import datetime
import decimal
import sys

import pyarrow as pa
import pyarrow.parquet

folder = sys.argv[1]
ROWS, ORDERS = 1500, 250
DAY = datetime.date(1992, 1, 1)
days = lambda step: [DAY + datetime.timedelta(row * step % 2500) for row in range(ROWS)]
money = lambda step: pa.array([decimal.Decimal(row * step % 10_000).scaleb(-2) for row in range(ROWS)],
                              pa.decimal128(15, 2))
line_items = {
    "l_orderkey": pa.array([row % ORDERS for row in range(ROWS)], pa.int64()),
    "l_quantity": money(7), "l_extendedprice": money(13), "l_discount": money(1),
    "l_returnflag": ["ANR"[row % 3] for row in range(ROWS)], "l_linestatus": ["FO"[row % 2] for row in range(ROWS)],
    "l_shipdate": days(3), "l_commitdate": days(5), "l_receiptdate": days(11),
    "l_shipmode": [("AIR", "RAIL", "SHIP", "TRUCK")[row % 4] for row in range(ROWS)],
}
orders = {
    "o_orderkey": pa.array(range(ORDERS), pa.int64()), "o_custkey": pa.array(range(ORDERS), pa.int64()),
    "o_orderdate": days(17)[:ORDERS], "o_orderpriority": [f"{row % 5 + 1}-PRIORITY" for row in range(ORDERS)],
}
pyarrow.parquet.write_table(pa.table(line_items), f"{folder}/lineitem.parquet")
pyarrow.parquet.write_table(pa.table(orders), f"{folder}/orders.parquet")
