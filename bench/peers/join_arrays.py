# SPDX-License-Identifier: Apache-2.0
"""Makes the arrays of a join, with numpy, as two pyarrow tables of one chunk: keys k0 (and k1), and on the build side
x0, x1, ..

    int32      0 .. n-1, each once, in random order; the probe side draws from them uniformly
    textN      N random hexadecimal digits, unique; the probe side draws uniformly
    i64sparse  64-bit numbers without a pattern, unique; the probe side draws uniformly
    hit10%     i64sparse, of which one probe row in ten has a match
    zipf1.5    i64sparse; the probe side draws the r-th key (of a random order) with a probability proportional to
               r^-1.5
    dup4       i64sparse with four build rows per key; the probe side draws uniformly
    i64,str    two keys, of which neither alone is unique: each number and each 16-digit text stands in four build rows
    selfjoin   int32 0 .. n-1 in order, joined with itself
"""
import numpy as np
import pyarrow as pa
from columns import VALUE_BELOW, draw, mix, named, texts


def sparse(numbers):
    return mix(numbers).view(np.int64)


# ---- kinds of keys: build rows, probe rows, random -> columns of the build side, columns of the probe side -----------


def _int32(build_rows, probe_rows, random):
    return [random.permutation(build_rows).astype(np.int32)], [draw(probe_rows, build_rows, random).astype(np.int32)]


def _text(length):
    def make(build_rows, probe_rows, random):
        build = texts(np.arange(build_rows), length)
        return [build], [build.view(f"V{length}")[draw(probe_rows, build_rows,
                                                       random)].view(np.uint8).reshape(probe_rows, length)]

    return make


def _i64sparse(build_rows, probe_rows, random):
    return [sparse(np.arange(build_rows))], [sparse(draw(probe_rows, build_rows, random))]


def _hit10(build_rows, probe_rows, random):
    present = draw(probe_rows, build_rows, random)
    absent = np.arange(build_rows, build_rows + probe_rows)
    return [sparse(np.arange(build_rows))], [sparse(np.where(random.random(probe_rows) < 0.1, present, absent))]


def _zipf(build_rows, probe_rows, random):
    weights = np.cumsum(np.arange(1, build_rows + 1, dtype=np.float64) ** -1.5)
    ranks = np.searchsorted(weights, random.random(probe_rows) * weights[-1]).clip(max=build_rows - 1)
    return [sparse(random.permutation(build_rows))], [sparse(ranks)]


def _dup4(build_rows, probe_rows, random):
    return [sparse(random.permutation(build_rows) // 4)], [sparse(draw(probe_rows, (build_rows + 3) // 4, random))]


def _i64_str(build_rows, probe_rows, random):
    # Row i has number i // 4 and text i % (n / 4): rows with one number have four texts, so that each pair stands once.
    build_rows -= build_rows % 4
    columns = lambda row: [sparse(row // 4), texts(row % (build_rows // 4), 16)]
    return columns(random.permutation(build_rows)), columns(draw(probe_rows, build_rows, random))


def _selfjoin(build_rows, _probe_rows, _random):
    keys = [np.arange(build_rows, dtype=np.int32)]
    return keys, keys


KINDS = {
    "int32": _int32, "text16": _text(16), "text64": _text(64), "i64sparse": _i64sparse, "hit10%": _hit10,
    "zipf1.5": _zipf, "dup4": _dup4, "i64,str": _i64_str, "selfjoin": _selfjoin,
}


# ---- what compare.py calls -------------------------------------------------------------------------------------------


def make_tables(case, seed):
    """The tables of a case by name. Cost: some seconds for the largest."""
    random = np.random.default_rng(seed)
    build, probe = KINDS[case.keys](case.build_rows, case.probe_rows, random)
    extra = named("x", (draw(len(build[0]), VALUE_BELOW, random) for _ in range(case.num_extra)))
    return {"build": pa.table(named("k", build) | extra), "probe": pa.table(named("k", probe))}


def answer(_case, table):
    """What all engines must agree on: the one row of the result."""
    return tuple(int(column[0].as_py()) for column in table.columns)
