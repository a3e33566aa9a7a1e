# SPDX-License-Identifier: Apache-2.0
"""What the arrays of all cases are made of: pseudo-random numbers, unique texts and words, and Arrow arrays over numpy
arrays.

Pseudo-random numbers come from a bijection on 64-bit words (the finaliser of SplitMix64, Steele, Lea, Flood 2014),
which makes them unique by construction: number i becomes mix(i). The numbers 0, 1, 2, 3 become 0x0, 0x5692161d100b05e5,
.. , and a text of 16 digits is the same words' bytes in hexadecimal.
"""
import numpy as np
import pyarrow as pa

VALUE_BELOW = 1 << 31  # of what is summed: 20 M such values sum up to below 2^63
NUM_WORDS = 20_000  # of texts that repeat
WAYS = 16  # of writing a word in small and capital letters
_HEX_OF_BYTE = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), dtype=np.uint16)


def mix(numbers, seed=0):
    """A bijection of 64-bit words; another one for each seed."""
    x = numbers.astype(np.uint64) + np.uint64(seed * 0x9E3779B97F4A7C15 % (1 << 64))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def texts(numbers, length):
    """A unique text of `length` hexadecimal digits (a multiple of 16) for each number: a matrix of bytes, one row
    each."""
    words = np.stack([mix(numbers, seed) for seed in range(1, length // 16 + 1)], axis=1)
    return _HEX_OF_BYTE[words.view(np.uint8)].view(np.uint8)


def _letters(number, length):
    """`length` letters, the last one first: a unique text of 4 letters for each number below 26^4 = 456,976."""
    letters = []
    for _ in range(length):
        number, letter = divmod(number, 26)
        letters.append(chr(ord("a") + letter))
    return "".join(letters)


def words(count):
    """Distinct words of 4 to 24 letters, of all these lengths equally many; for up to 456,976."""
    mixed = mix(np.arange(count)).tolist()  # 7919 has no factor in common with 26^4: all first four letters differ
    return [_letters(i * 7919 % 26**4, 4) + _letters(number >> 5, number % 21) for i, number in enumerate(mixed)]


def in_random_case(vocabulary):
    """Each word in WAYS ways, side by side: its letters are capitals where a number without a pattern has ones."""
    bits = mix(np.arange(len(vocabulary) * WAYS), 7).tolist()
    ways = ((word, bits[number * WAYS + way]) for number, word in enumerate(vocabulary) for way in range(WAYS))
    return ["".join(letter.upper() if one >> i & 1 else letter for i, letter in enumerate(word)) for word, one in ways]


def draw(rows, below, random):
    return random.integers(0, below, rows)


def arrow_array(column):
    """Numbers as they are; a matrix of bytes as utf8; Arrow arrays stay. Nothing copies the values."""
    if isinstance(column, pa.Array):
        return column
    if column.ndim == 1:
        return pa.array(column)
    rows, length = column.shape
    if rows * length >= 1 << 31:
        raise ValueError(
            f"too many bytes of text: {rows * length:,}; below 2 GiB, which is what the offsets of utf8 can say")
    offsets = np.arange(0, (rows + 1) * length, length, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(column))


def named(kind, columns):
    """{"k0": .., "k1": ..} for kind "k"."""
    return {f"{kind}{i}": arrow_array(column) for i, column in enumerate(columns)}


def row_table(numbers):
    """A result of one row."""
    return pa.table({f"a{i}": pa.array([number], type=pa.int64()) for i, number in enumerate(numbers)})
