# SPDX-License-Identifier: Apache-2.0
"""Digests of results, so that engines can be compared. The digest of an aggregation does not depend on the order of its
groups:

    (groups, sum of h modulo 2^64, then for each aggregate: sum of value * weight)

h is a hash of a group's keys. The weight is h with its last bit set for integers (modulo 2^64), and 1 + h / 2^64 for
floats: a value in the wrong group changes the sum. For two groups with hashes 4 and 7 and sums 10 and 20 the digest is
(2, 11, 10 * 5 + 20 * 7 = 190). The hash of a text covers its length, its first 8 bytes and its last 8: texts that
differ only in the middle count as equal.

Integers must be equal. Floats may differ by report.RELATIVE_ERROR: engines add in different orders, and each of n
additions rounds by up to 2^-53 of the sum so far. For the 1.5 M values of a sum in TPC-H's first query that is 2e-10 at
worst, and around 1e-13 in practice.

The digest of a sort depends on the order of rows, which is its result:

    (rows, sum of h * w modulo 2^64, and with a column that is no key: the sum of value * h)

h is a hash of a row's keys, floats by their bits, and w is an odd pseudo-random number for the row's position in the
result. Rows with equal keys may change places. Where a case ignores case, texts are hashed in lower case.
"""
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from columns import mix

MASK_OF_LENGTH = np.array([(1 << 8 * length) - 1 for length in range(9)], dtype=np.uint64)


def _text_hash(array, ignores_case):
    """Of each text, by three words; a word that would reach beyond the text is cut."""
    array = array.cast(pa.large_string())
    if ignores_case:
        array = pc.ascii_lower(array)
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int64)[array.offset:array.offset + len(array) + 1]
    start = offsets[0]
    bytes_ = np.frombuffer(array.buffers()[2] or b"", dtype=np.uint8)[start:offsets[-1]]
    words = np.lib.stride_tricks.sliding_window_view(np.concatenate([bytes_, np.zeros(8, np.uint8)]), 8)
    lengths = np.diff(offsets)
    first, masks = offsets[:-1] - start, MASK_OF_LENGTH[np.minimum(lengths, 8)]
    last = np.maximum(offsets[1:] - start - 8, first)
    word_at = lambda where: np.ascontiguousarray(words[where]).view(np.uint64).ravel() & masks
    return mix(mix(word_at(first)) ^ word_at(last), 1) ^ mix(lengths, 2)


def _integers(column):
    """As int64: dates are days, and decimals (DuckDB's sums of int64) have no digits behind the point."""
    return column.cast(pa.int32() if pa.types.is_date(column.type) else pa.int64()).cast(pa.int64()).to_numpy()


def _is_text(arrow_type):
    return pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type) or pa.types.is_string_view(arrow_type)


def _numbers(column):
    return column.to_numpy().view(np.int64) if pa.types.is_floating(column.type) else _integers(column)


def _key_hash(columns, ignores_case):
    total = np.zeros(len(columns[0]), np.uint64)
    for i, column in enumerate(columns):
        total = mix(total ^ (_text_hash(column, ignores_case)
                             if _is_text(column.type) else mix(_numbers(column), i + 3)), i)
    return total


def _weighed(column, key_hash):
    if column.null_count:
        raise ValueError(f"nulls in a result: {column.null_count} of {len(column)}; none, since no input has any")
    if pa.types.is_floating(column.type):
        return float(np.sum(column.to_numpy() * (1.0 + key_hash * 2.0**-64)))
    return int(np.sum(_integers(column).view(np.uint64) * (key_hash | np.uint64(1))))


def answer(case, table):
    """A result's digest. Cost: some 0.2 s per million groups with texts."""
    names = [f"a{i}" for i in range(len(case.aggregates))]
    totals = [0] * (1 + len(names))
    for batch in table.to_batches():
        key_hash = _key_hash([batch.column(f"k{i}") for i in range(case.num_keys)], case.ignores_case)
        totals[0] += int(np.sum(key_hash))
        for i, name in enumerate(names, 1):
            totals[i] += _weighed(batch.column(name), key_hash)
    return (table.num_rows, *(total % (1 << 64) if isinstance(total, int) else total for total in totals))


def answer_in_order(case, table):
    """A sorted result's digest. Cost: as answer()."""
    totals, num_rows = [0] * (2 if case.has_payload else 1), 0
    for batch in table.to_batches():
        key_hash = _key_hash([batch.column(name) for name in case.key_names], case.ignores_case)
        places = mix(np.arange(num_rows, num_rows + batch.num_rows), 9) | np.uint64(1)
        totals[0] += int(np.sum(key_hash * places))
        if case.has_payload:
            totals[1] += _weighed(batch.column("p0"), key_hash)
        num_rows += batch.num_rows
    return (num_rows, *(total % (1 << 64) for total in totals))
