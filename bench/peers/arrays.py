# SPDX-License-Identifier: Apache-2.0
"""Makes the arrays of a case, with numpy, as two pyarrow tables of one chunk: keys k0 (and k1), and on the build side x0, x1, ..

    int32      0 .. n-1, each once, in random order; the probe side draws from them uniformly
    textN      N random hexadecimal digits, unique; the probe side draws uniformly
    i64sparse  64-bit numbers without a pattern, unique; the probe side draws uniformly
    hit10%     i64sparse, of which one probe row in ten has a match
    zipf1.5    i64sparse; the probe side draws the r-th key (of a random order) with a probability proportional to r^-1.5
    dup4       i64sparse with four build rows per key; the probe side draws uniformly
    i64,str    two keys, of which neither alone is unique: each number and each 16-digit text stands in four build rows
    selfjoin   int32 0 .. n-1 in order, joined with itself

Numbers without a pattern come from a bijection on 64-bit words (the finaliser of SplitMix64, Steele, Lea, Flood 2014), so that they are
unique without a search: key i is Mix(i). With n = 4 the keys 0, 1, 2, 3 become 0x0, 0x5692161d100b05e5, .. , and text16 is the same
words' bytes in hexadecimal.
"""
import numpy as np
import pyarrow as pa

EXTRA_BELOW = 1 << 31  # 20 M matches of such values sum up to below 2^63
_HEX_OF_BYTE = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), dtype=np.uint16)


def mix(numbers, seed=0):
    """A bijection of 64-bit words; another one for each seed."""
    x = numbers.astype(np.uint64) + np.uint64(seed * 0x9E3779B97F4A7C15 % (1 << 64))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def sparse(numbers):
    return mix(numbers).view(np.int64)


def texts(numbers, length):
    """A unique text of `length` hexadecimal digits (a multiple of 16) for each number: a matrix of bytes, one row each."""
    words = np.stack([mix(numbers, seed) for seed in range(1, length // 16 + 1)], axis=1)
    return _HEX_OF_BYTE[words.view(np.uint8)].view(np.uint8)


def draw(rows, from_rows, random):
    return random.integers(0, from_rows, rows)


# ---- kinds of keys: build rows, probe rows, random -> columns of the build side, columns of the probe side -------------------------------


def _int32(build_rows, probe_rows, random):
    return [random.permutation(build_rows).astype(np.int32)], [draw(probe_rows, build_rows, random).astype(np.int32)]


def _text(length):
    def make(build_rows, probe_rows, random):
        build = texts(np.arange(build_rows), length)
        return [build], [build.view(f"V{length}")[draw(probe_rows, build_rows, random)].view(np.uint8).reshape(probe_rows, length)]

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
    "int32": _int32, "text16": _text(16), "text64": _text(64), "i64sparse": _i64sparse, "hit10%": _hit10, "zipf1.5": _zipf,
    "dup4": _dup4, "i64,str": _i64_str, "selfjoin": _selfjoin,
}


# ---- Arrow -------------------------------------------------------------------------------------------------------------------------------


def arrow_array(column):
    """Numbers as they are; a matrix of bytes as utf8. Neither copies the values."""
    if column.ndim == 1:
        return pa.array(column)
    rows, length = column.shape
    if rows * length >= 1 << 31:
        raise ValueError(f"too many bytes of text: {rows * length:,}; below 2 GiB, which is what the offsets of utf8 can say")
    offsets = np.arange(0, (rows + 1) * length, length, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(column))


def make_tables(case, seed):
    """(build, probe) of a case. Cost: some seconds for the largest."""
    random = np.random.default_rng(seed)
    build, probe = KINDS[case.keys](case.build_rows, case.probe_rows, random)
    named = lambda columns: {f"k{i}": arrow_array(column) for i, column in enumerate(columns)}
    extra = {f"x{i}": pa.array(random.integers(0, EXTRA_BELOW, len(build[0]))) for i in range(case.num_extra)}
    return pa.table(named(build) | extra), pa.table(named(probe))
