# SPDX-License-Identifier: Apache-2.0
"""Makes the arrays of a sort, with numpy, as one pyarrow table of one chunk: keys k0, k1, .., and p0, the number of
each row, where a case has it.

    i64        64-bit numbers without a pattern; negative ones too
    i32        one of 1000 values, so that the next key matters; every 2,000,000th number
    f64        from -500 to 500
    str        one of 20,000 words of 4 to 24 letters
    str16      16 random hexadecimal digits
    .._cased   the same texts, each letter small or capital, of str in one of sixteen ways a word

Rows without a pattern have no two equal keys, so that there is one right result also where a case has p0; with the
other kinds, rows with equal keys are equal as a whole.
"""
import numpy as np
import pyarrow as pa
from columns import NUM_WORDS, WAYS, draw, in_random_case, mix, named, texts, words
from digest import answer_in_order as answer  # noqa: F401: compare.py asks for it here

KINDS = {
    "i64": lambda rows, random: mix(np.arange(rows), int(random.integers(1, 1 << 30))).view(np.int64),
    "i32": lambda rows, random: ((draw(rows, 1000, random) - 500) * 2_000_000).astype(np.int32),
    "f64": lambda rows, random: random.random(rows) * 1000.0 - 500.0,
    "str": lambda rows, random: pa.array(words(NUM_WORDS)).take(pa.array(draw(rows, NUM_WORDS, random))),
    "str16": lambda rows, random: texts(draw(rows, 1 << 62, random), 16),
    "str_cased": lambda rows, random: _cased_words(rows, random),
    "str16_cased": lambda rows, random: _in_random_case(texts(draw(rows, 1 << 62, random), 16), random),
}


def _cased_words(rows, random):
    ways = draw(rows, NUM_WORDS, random) * WAYS + draw(rows, WAYS, random)
    return pa.array(in_random_case(words(NUM_WORDS))).take(pa.array(ways))


def _in_random_case(digits, random):
    """Of a matrix of small hexadecimal digits. Capitals are 32 below."""
    is_capital = (digits >= ord("a")) & (random.integers(0, 2, digits.shape, dtype=np.uint8) == 1)
    return np.where(is_capital, digits - np.uint8(32), digits)


# ---- what compare.py calls -------------------------------------------------------------------------------------------


def make_tables(case, seed):
    """The table of a case by its name. Cost: some seconds for the largest."""
    random = np.random.default_rng(seed)
    keys = named("k", [KINDS[key](case.rows, random) for key in case.keys])
    payload = named("p", [np.arange(case.rows)] if case.has_payload else [])
    return {"facts": pa.table(keys | payload)}
