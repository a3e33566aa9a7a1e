# SPDX-License-Identifier: Apache-2.0
"""Makes the arrays of a filter as one pyarrow table of one chunk.

    tpch l_comment     c0: that column of TPC-H's line items, or an o_ column of its orders (tpch.py)
    words              i0: int64, one of the 1000 numbers from -500 to 499
                       s0: one of 20,000 words of 4 to 24 letters, and of four words that conditions name
                       s1: as s0, in a quarter of the rows the same word
                       c0: s0, each letter in small or capital at random, in one of sixteen ways a word

Only the columns that a case reads are made.
"""
import numpy as np
import pyarrow as pa
import tpch
from columns import NUM_WORDS, WAYS, draw, in_random_case, words

NAMED_WORDS = ["marketplace", "apple", "zebra", "warehouse"]


def _words(case, random):
    vocabulary = NAMED_WORDS + words(NUM_WORDS - len(NAMED_WORDS))
    first, names = draw(case.rows, len(vocabulary), random), set(case.columns)
    make = {
        "i0": lambda: pa.array(draw(case.rows, 1000, random) - 500),
        "s0": lambda: pa.array(vocabulary).take(pa.array(first)),
        "s1": lambda: pa.array(vocabulary).take(
            pa.array(np.where(draw(case.rows, 4, random) == 0, first, draw(case.rows, len(vocabulary), random)))),
        "c0": lambda: pa.array(in_random_case(vocabulary)).take(pa.array(first * WAYS + draw(case.rows, WAYS, random))),
    }
    return {name: make[name]() for name in make if name in names}


# ---- what compare.py calls -------------------------------------------------------------------------------------------


def make_tables(case, seed):
    """The table of a case by its name. Cost: some seconds for the largest; for TPC-H once the making of its files."""
    if case.data.startswith("tpch "):
        return {"facts": pa.table({"c0": tpch.text_column(case.data.removeprefix("tpch "), case.rows)})}
    return {"facts": pa.table(_words(case, np.random.default_rng(seed)))}


def answer(_case, table):
    """How many rows passed."""
    return (int(table.column(0)[0].as_py()),)
