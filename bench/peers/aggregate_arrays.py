# SPDX-License-Identifier: Apache-2.0
"""Makes the arrays of an aggregation, with numpy, as one pyarrow table of one chunk: keys k0, k1, .., and the columns
that are aggregated.

A row's keys follow from one number that is drawn from [0, key_values), uniformly but for users and counters:

    dense       that number
    sparse      that number times an odd constant modulo 2^63: every number to another one, spread over all of int64's
                positive half
    words       a word of 4 to 24 letters for each number
    cased       as words, each letter small or capital, in one of sixteen ways a word
    pairs       of number 57: the first integer 57 // 10 = 5, a further one of 1000 at random, a text one of 2000 words
                of the 7th tenth of 20,000: rows with one integer differ in their texts, so that as many groups come out
                as numbers were drawn
    tpch        l_returnflag and l_linestatus of TPC-H's line items (tpch.py)
    users       as ClickBench's hits (clickbench.com), but without its 14 GB: the r-th user (i64) has a probability
                proportional to r^-0.8; 85 of 100 rows have no search phrase (utf8); the r-th phrase has a probability
                proportional to 1/r, and three of four phrases end with one to three blanks, without which they would
                equal another phrase; minutes (i32) are drawn uniformly
    counters    as users, but keys are sites (i64, a thousandth as many as users) and search engines (i32), both with
                Zipf's distribution, sources of traffic (i16, mostly few) and the days of July 2013 (date32)

Integers that are summed are in [0, 2^31). Floats are quarters in [0, 2^20): a sum of 20 M of them is exact in any order
(below 2^45, a multiple of 2^-2), so that all engines must give equal sums. The floats of TPC-H are not; digest.py says
how they are compared.
"""
import numpy as np
import pyarrow as pa
import tpch
from columns import NUM_WORDS, VALUE_BELOW, WAYS, draw, in_random_case, mix, named, words
from digest import answer  # noqa: F401: compare.py asks for it here

ODD_CONSTANT = 0x5851F42D4C957F2D  # Knuth's multiplier for MMIX
NUM_FLOATS = 1 << 22
FIRST_DAY = (2013 - 1970) * 365 + 11 + 181  # 2013-07-01 as days since 1970-01-01; eleven leap days; 181 days until July


def sparse(numbers):
    """Distinct numbers below 2^63 to distinct ones."""
    return (numbers.astype(np.uint64) * np.uint64(ODD_CONSTANT) & np.uint64((1 << 63) - 1)).view(np.int64)


def _zipf(rows, values, exponent, random):
    """Ranks in [0, values) with a probability that falls as rank^-exponent: the inverse of the continuous
    distribution's integral."""
    uniform, power = random.random(rows), 1.0 - exponent
    if power == 0.0:
        ranks = np.exp(uniform * np.log(values + 1.0))
    else:
        ranks = (1.0 + uniform * ((values + 1.0) ** power - 1.0)) ** (1.0 / power)
    return (ranks.astype(np.int64) - 1).clip(0, values - 1)


# ---- kinds of data: case, random -> key columns ----------------------------------------------------------------------


def _dense(case, random):
    return [draw(case.rows, case.key_values, random)]


def _sparse(case, random):
    return [sparse(draw(case.rows, case.key_values, random))]


def _words(case, random):
    return [pa.array(words(case.key_values)).take(pa.array(draw(case.rows, case.key_values, random)))]


def _cased(case, random):
    ways = draw(case.rows, case.key_values, random) * WAYS + draw(case.rows, WAYS, random)
    return [pa.array(in_random_case(words(case.key_values))).take(pa.array(ways))]


def _pairs(case, random):
    pairs, vocabulary, columns = draw(case.rows, case.key_values, random), pa.array(words(NUM_WORDS)), []
    first_integer = next(i for i, key in enumerate(case.keys) if key != "utf8")
    for i, key in enumerate(case.keys):
        if key == "utf8":
            tenth, within = pairs % 10, mix(pairs, i) % np.uint64(NUM_WORDS // 10)
            columns.append(vocabulary.take(pa.array(tenth * (NUM_WORDS // 10) + within.astype(np.int64))))
        else:
            numbers = pairs // 10 if i == first_integer else (mix(pairs, i) % np.uint64(1000)).astype(np.int64)
            columns.append(sparse(numbers) if key == "i64" else numbers.astype(np.int32))
    return columns


def _phrases(case, random):
    """Two words and up to three blanks; each of four phrases in a row differs from the others by nothing but blanks."""
    count, vocabulary = max(case.key_values // 16, 4), words(NUM_WORDS)
    second = (mix(np.arange(count // 4 + 1)) % np.uint64(NUM_WORDS)).tolist()
    phrases = [""] + [f"{vocabulary[i // 4 % NUM_WORDS]} {vocabulary[second[i // 4]]}" + " " * (i % 4)
                      for i in range(count)]
    ranks = 1 + _zipf(case.rows, count, 1.0, random)
    return pa.array(phrases).take(pa.array(np.where(random.random(case.rows) < 0.85, 0, ranks)))


def _hits(case, first_integer, second_integer, random):
    make = {
        "i64": lambda: sparse(first_integer),
        "i32": lambda: second_integer.astype(np.int32),
        "utf8": lambda: _phrases(case, random),
        "i16": lambda: _zipf(case.rows, 20, 1.5, random).astype(np.int16) - np.int16(1),
        "date32": lambda: pa.array((FIRST_DAY + draw(case.rows, 31, random)).astype(np.int32)).cast(pa.date32()),
    }
    return [make[key]() for key in case.keys]


def _users(case, random):
    return _hits(case, _zipf(case.rows, case.key_values, 0.8, random), draw(case.rows, 60, random), random)


def _counters(case, random):
    return _hits(case, _zipf(case.rows, max(case.key_values // 1000, 10), 1.0, random),
                 _zipf(case.rows, 40, 1.5, random), random)


KINDS = {"dense": _dense, "sparse": _sparse, "words": _words, "cased": _cased, "pairs": _pairs, "users": _users,
         "counters": _counters}


# ---- what compare.py calls -------------------------------------------------------------------------------------------


def make_tables(case, seed):
    """The table of a case by its name. Cost: some seconds for the largest; for TPC-H once the making of its files."""
    if case.data == "tpch":
        return {"facts": tpch.line_items(case.rows)}
    random = np.random.default_rng(seed)
    keys = named("k", KINDS[case.data](case, random))
    make = {"i0": lambda: draw(case.rows, VALUE_BELOW, random), "f0": lambda: draw(case.rows, NUM_FLOATS, random) / 4.0}
    return {"facts": pa.table(keys | {name: pa.array(make[name]()) for name in case.columns})}
