# SPDX-License-Identifier: Apache-2.0
"""Makes the arrays of a set operation, with numpy, as two pyarrow tables of one chunk, lhs and rhs: keys k0, k1, ..

A row's keys follow from one number, which the left side draws from [0, key_values) and the right side from
[key_values / 2, key_values * 3 / 2): int64 spread over its positive half, or words of 4 to 24 letters.
"""
import numpy as np
import pyarrow as pa
from aggregate_arrays import sparse
from columns import draw, named, words
from digest import answer  # noqa: F401: compare.py asks for it here

# ---- what compare.py calls -------------------------------------------------------------------------------------------


def make_tables(case, seed):
    """The tables of a case by name. Cost: some seconds for the largest."""
    random = np.random.default_rng(seed)
    half = case.key_values // 2
    vocabulary = pa.array(words(case.key_values + half)) if case.has_texts else None
    make = {"i64": sparse, "utf8": lambda numbers: vocabulary.take(pa.array(numbers))}
    sides = {"lhs": draw(case.rows, case.key_values, random), "rhs": half + draw(case.rows, case.key_values, random)}
    return {name: pa.table(named("k", [make[key](numbers) for key in case.keys])) for name, numbers in sides.items()}
