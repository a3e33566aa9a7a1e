# SPDX-License-Identifier: Apache-2.0
"""Random columns for every column type of a kernel spec, from a seeded random.Random alone.

A column is made in three steps, so that the same rows can be laid out in many ways and every oracle can read them:

    values   the column's value list, *physical* values: int (of integers, dates, times, durations, decimals of up to 64
             bits; the bits of a float; 0 or 1 of a bool) or bytes
    indices  one entry a row: a number into `values`, or None for null
    array    a pyarrow array of some of the rows, in buffers of our own making: any offset, garbage under nulls,
             dictionaries with nulls, views in several buffers

For example values [7, -1], indices [0, None, 1, 1] are the rows 7, null, -1, -1.

Every buffer lies between pages that cannot be read, mostly against the one behind it, some against the one before it,
and is unmapped when its last reader lets go. A kernel that reads one byte beyond a buffer, or a batch that it has
released, crashes at once instead of being right by luck. GuardedBuffer.live counts the buffers that are still held,
which finds leaks.
"""
import array
import ctypes
import dataclasses
import itertools
import mmap
import struct
import weakref

import pyarrow as pa

import collated_strings
import collation_oracle

# ---- types -----------------------------------------------------------------------------------------------------------

INTEGER_CODES = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
TEMPORAL_CODES = {"date32": "i", "date64": "q", "time32": "i", "time64": "q", "timestamp": "q", "duration": "q"}
FLOAT_CODES = {"f32": "I", "f64": "Q"}  # their bits
NARROW_DECIMAL_CODES = {"decimal32": "i", "decimal64": "q"}  # unscaled; values of decimal128 are its 16 bytes
DECIMAL_DIGITS = {"decimal32": 9, "decimal64": 18, "decimal128": 38}  # that each has at most, from narrow to wide
DECIMALS = tuple(DECIMAL_DIGITS)
STRING_TYPES = ("binary", "utf8", "large_binary", "large_utf8", "binary_view", "utf8_view")
SCALAR_TYPES = ("bool", *INTEGER_CODES, *FLOAT_CODES, *DECIMALS, *TEMPORAL_CODES, "fixed_binary", *STRING_TYPES)
INDEX_TYPES = tuple(INTEGER_CODES)
COLLATIONS = tuple(collation_oracle.COLLATIONS)
_UNITS = {"time32": ("s", "ms"), "time64": ("us", "ns"), "timestamp": ("s", "ms", "us", "ns"),
          "duration": ("s", "ms", "us", "ns")}
_ZONES = ("", "UTC", "Europe/Berlin")
FIXED_WIDTHS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40)

_ARROW_TYPES = {
    "bool": pa.bool_(), "i8": pa.int8(), "i16": pa.int16(), "i32": pa.int32(), "i64": pa.int64(), "u8": pa.uint8(),
    "u16": pa.uint16(), "u32": pa.uint32(), "u64": pa.uint64(), "f32": pa.float32(), "f64": pa.float64(),
    "date32": pa.date32(), "date64": pa.date64(), "binary": pa.binary(), "utf8": pa.utf8(),
    "large_binary": pa.large_binary(), "large_utf8": pa.large_utf8(), "binary_view": pa.binary_view(),
    "utf8_view": pa.string_view(), }
_DECIMAL_TYPES = {"decimal32": pa.decimal32, "decimal64": pa.decimal64, "decimal128": pa.decimal128}
_BYTES_TYPES = {"utf8": pa.binary(), "large_utf8": pa.large_binary(), "utf8_view": pa.binary_view()}
_BITS_TYPES = {"b": pa.int8(), "h": pa.int16(), "i": pa.int32(), "q": pa.int64(), "B": pa.uint8(), "H": pa.uint16(),
               "I": pa.uint32(), "Q": pa.uint64()}


@dataclasses.dataclass(frozen=True)
class ColumnType:
    """A type as a spec writes it, plus what Arrow needs to know beyond that (unit, time zone, precision, scale)."""
    name: str
    width: int = 0            # fixed_binary
    index: str = ""           # dictionary: its index type
    collation: str = ""
    nullable: bool = False
    null_equal: bool = False
    unit: str = ""            # time, timestamp, duration
    zone: str = ""            # timestamp
    precision: int = 0        # decimals
    scale: int = 0

    def text(self):
        text = f"fixed_binary({self.width})" if self.name == "fixed_binary" else self.name
        text += f"({self.collation})" if self.collation else ""
        text = f"dictionary({self.index},{text})" if self.index else text
        return text + (":nullable" if self.nullable else "") + (":nullequal" if self.null_equal else "")

    def value_arrow(self):
        """The Arrow type of a value, dictionaries decoded."""
        if self.is_decimal:
            return _DECIMAL_TYPES[self.name](self.precision, self.scale)
        if self.name == "time32":
            return pa.time32(self.unit)
        if self.name == "time64":
            return pa.time64(self.unit)
        if self.name == "timestamp":
            return pa.timestamp(self.unit, self.zone or None)
        if self.name == "duration":
            return pa.duration(self.unit)
        return pa.binary(self.width) if self.name == "fixed_binary" else _ARROW_TYPES[self.name]

    def arrow(self):
        return pa.dictionary(_ARROW_TYPES[self.index], self.value_arrow()) if self.index else self.value_arrow()

    def bits_arrow(self):
        """The Arrow type with the same layout and without its meaning: results are read and compared in it."""
        if self.name == "bool":
            return pa.bool_()
        if self.name in ("fixed_binary", "decimal128"):
            return pa.binary(self.value_bytes())
        if self.name in STRING_TYPES:
            return _BYTES_TYPES.get(self.name, _ARROW_TYPES[self.name])
        return _BITS_TYPES[self.code()]

    def code(self):
        return {**INTEGER_CODES, **TEMPORAL_CODES, **FLOAT_CODES, **NARROW_DECIMAL_CODES}[self.name]

    def value_bytes(self):
        return 16 if self.name == "decimal128" else self.width

    def number_bytes(self):
        return struct.calcsize(self.code())

    def unscaled(self, value):
        """A decimal's physical value as a number."""
        return from_wide(value) if self.name == "decimal128" else value

    def decimal_value(self, number):
        """The physical value of an unscaled number."""
        return wide(number) if self.name == "decimal128" else number

    @property
    def is_float(self):
        return self.name in FLOAT_CODES

    @property
    def is_decimal(self):
        return self.name in DECIMAL_DIGITS

    @property
    def has_usual_scale(self):
        """Of decimals: whether the scale is one that expressions and SQL have."""
        return 0 <= self.scale <= self.precision

    @property
    def is_utf8(self):
        return "utf8" in self.name

    @property
    def is_collated(self):
        """Whether its strings compare otherwise than by their bytes."""
        return not collation_oracle.is_plain(self.collation)


def wide(number):
    """A number as the bytes of a decimal128."""
    return number.to_bytes(16, "little", signed=True)


def from_wide(value):
    return int.from_bytes(value, "little", signed=True)


def random_type(rng, dictionaries=True, names=SCALAR_TYPES):
    """A type without collation and null flags."""
    name = rng.choice(names)
    index = rng.choice(INDEX_TYPES) if dictionaries and rng.random() < 0.15 else ""
    precision = rng.randint(1, DECIMAL_DIGITS[name]) if name in DECIMAL_DIGITS else 0
    return ColumnType(name, width=rng.choice(FIXED_WIDTHS) if name == "fixed_binary" else 0, index=index,
                      unit=rng.choice(_UNITS.get(name, ("",))), zone=rng.choice(_ZONES) if name == "timestamp" else "",
                      precision=precision, scale=rng.choice((0, precision // 2, precision, -2)) if precision else 0)


# ---- values ----------------------------------------------------------------------------------------------------------


def random_values(rng, column_type, count):
    """`count` physical values, in one of the type's styles; they need not be distinct. Never empty."""
    count = max(count, 1)
    if column_type.name == "bool":
        return [0, 1] if rng.random() < 0.8 else [rng.randrange(2)]
    if column_type.is_float:
        return _random_floats(rng, column_type, count)
    if column_type.is_decimal:
        return list(map(column_type.decimal_value, _random_integers(rng, *integer_bounds(column_type), count)))
    if column_type.name == "fixed_binary":
        return _random_fixed(rng, column_type.width, count)
    if column_type.name in STRING_TYPES:
        return (_random_collated(rng, column_type, count)
                if column_type.collation else _random_strings(rng, column_type.is_utf8, count))
    return _random_integers(rng, *integer_bounds(column_type), count)


def integer_bounds(column_type):
    """The least and the greatest value of an integer or temporal type, or unscaled number of a decimal type: as many
    digits as it has, but any bits in narrow ones that no expression reads."""
    if column_type.name == "decimal128" or column_type.is_decimal and column_type.has_usual_scale:
        most = 10 ** column_type.precision - 1
        return -most, most
    bits = column_type.number_bytes() * 8
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if column_type.code().islower() else (0, (1 << bits) - 1)


def integer_run(rng, low, high, count):
    """`count` neighbours, or as many as there are: from 0 or 1, across zero, at an end of the type, or anywhere."""
    count = min(count, high - low + 1)
    first = rng.choice((0, 1, -(count // 2), low, high - count + 1, rng.randint(low, high)))
    first = max(low, min(first, high - count + 1))
    return list(range(first, first + count))


def _random_integers(rng, low, high, count):
    style = rng.choice(("dense", "dense", "sparse", "sparse", "extreme", "shifted", "equal"))
    if style == "equal":
        return [rng.choice((0, low, high, rng.randint(low, high)))]
    if style == "extreme":
        near = [base + step for base in (0, low, high, *(1 << power for power in range(0, 128, 7)))
                for step in (-2, -1, 0, 1, 2)]
        near += [-value for value in near]
        return [value for value in dict.fromkeys(near) if low <= value <= high][:count] or [low]
    if style == "sparse":
        return [rng.randint(low, high) for _ in range(count)]
    shift = 0 if style == "dense" else rng.choice((3, 8, 16, 32, 48))  # low bits all zero: bad for a weak hash
    width = (high - low) >> shift
    if width < 1:
        return [rng.randint(low, high) for _ in range(count)]
    first = rng.choice((0, -3, low >> shift, (high >> shift) - count))
    return [low + ((((first + step) << shift) - low) % (high - low + 1)) for step in range(count)]


FLOAT_BITS = {
    # +0, -0, 1, -1, +inf, -inf, quiet NaNs, signalling NaN, negative NaN, least denormal, greatest denormal, least
    # normal, greatest
    "f32": (0, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7FC12345, 0x7F800001,
            0xFFC00000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF),
    "f64": (0, 1 << 63, 0x3FF0000000000000, 0xBFF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000,
            0x7FF8000000000000, 0x7FF8DEADBEEF1234, 0x7FF0000000000001, 0xFFF8000000000000, 1, 1 << 63 | 1,
            0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x7FEFFFFFFFFFFFFF),
}


def float_bits(column_type, value):
    bits, real = ("<I", "<f") if column_type.name == "f32" else ("<Q", "<d")
    return struct.unpack(bits, struct.pack(real, value))[0]


def normalised_float(column_type, bits):
    """One NaN, no -0: what a float is as a key."""
    exponent, sign = (0x7F800000, 1 << 31) if column_type.name == "f32" else (0x7FF0000000000000, 1 << 63)
    if bits & (sign - 1) > exponent:
        return "NaN"
    return 0 if bits == sign else bits


def _random_floats(rng, column_type, count):
    special = list(FLOAT_BITS[column_type.name])
    style = rng.choice(("special", "integers", "bits", "mixed"))
    bits = 32 if column_type.name == "f32" else 64
    if style == "special":
        return special
    if style == "integers":
        return [float_bits(column_type, step - count // 2) for step in range(count)]
    values = [rng.getrandbits(bits) for _ in range(count)]
    return values if style == "bits" else values + special


def _random_fixed(rng, width, count):
    style = rng.choice(("bytes", "one byte", "last byte", "counter"))
    if style == "bytes":
        return [rng.randbytes(width) for _ in range(count)]
    if style == "counter":
        return [(step % (1 << 8 * width)).to_bytes(width, rng.choice(("little", "big"))) for step in range(count)]
    base, values = bytearray(rng.randbytes(width)), []
    position = width - 1 if style == "last byte" else rng.randrange(width)
    for step in range(min(count, 256)):
        base[position] = step
        values.append(bytes(base))
    return values


_UTF8_ALPHABETS = ("ab", "abcdefghijklmnopqrstuvwxyz0123456789", "a \0", " ", "a \t\u00a0", "é漢😀z",
                   "".join(map(chr, range(32, 127))))
_ILL_FORMED = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80", b"\x00", b" ",
               b"\xc2\xa0")


def _random_text(rng, utf8, alphabet, num_bytes):
    if not utf8 and rng.random() < 0.3:
        return rng.randbytes(num_bytes)
    text = b""
    while len(text) < num_bytes:
        part = rng.choice(_ILL_FORMED) if not utf8 and rng.random() < 0.1 else rng.choice(alphabet).encode()
        if len(text) + len(part) > num_bytes:
            part = b"a"
        text += part
    return text


def _random_strings(rng, utf8, count):
    style = rng.choice(("lengths", "lengths", "inline limit", "spaces", "shared prefix", "shared suffix", "numbers",
                        "numbers", "long", "every length"))
    alphabet = rng.choice(_UTF8_ALPHABETS)
    text = lambda num_bytes: _random_text(rng, utf8, alphabet, num_bytes)
    if style == "numbers":
        prefix = rng.choice((b"", b"a", b"key#", b"0123456789ab"))
        return [prefix + str(step).encode() for step in range(count)]
    if count > 20000:
        return [str(rng.getrandbits(80)).encode() for _ in range(count)]
    if style == "lengths":
        return [text(rng.randint(0, 40)) for _ in range(count)]
    if style == "every length":
        return [b"a" * (step % 70) for step in range(count)]
    if style == "inline limit":
        return [text(rng.choice((3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17, 31, 32, 33))) for _ in range(count)]
    if style == "spaces":
        stems = [text(rng.choice((0, 1, 3, 8, 11, 12, 13, 16))) for _ in range(max(count // 4, 1))]
        return [rng.choice(stems) + b" " * rng.choice((0, 0, 1, 2, 5, 9, 20)) for _ in range(count)]
    if style == "long":
        return [text(rng.choice((64, 255, 256, 300, 1000))) for _ in range(min(count, 50))]
    shared = text(rng.choice((4, 8, 12, 13, 16, 32)))
    tails = [text(rng.choice((0, 1, 4, 8))) for _ in range(count)]
    return [shared + tail if style == "shared prefix" else tail + shared for tail in tails]


def _random_collated(rng, column_type, count):
    if count <= 5000 and rng.random() < 0.7:
        return collated_strings.random_strings(rng, column_type.collation, column_type.is_utf8, count)
    return collated_strings.restricted(rng, column_type.collation, _random_strings(rng, column_type.is_utf8, count))


# ---- rows ------------------------------------------------------------------------------------------------------------


def random_indices(rng, num_rows, num_values, distribution):
    """Which value each row has. Distributions: uniform, zipf (few values take most rows), equal, sequential, low half,
    high half."""
    if num_rows == 0:
        return []
    if distribution == "equal":
        return [rng.randrange(num_values)] * num_rows
    if distribution == "sequential":
        return [row % num_values for row in range(num_rows)]
    if distribution == "zipf":
        weights = list(itertools.accumulate(1.0 / (rank + 1) for rank in range(num_values)))
        return rng.choices(range(num_values), cum_weights=weights, k=num_rows)
    half = max(num_values // 2, 1)
    first, last = {"low half": (0, half),
                   "high half": (half if half < num_values else 0, num_values)}.get(distribution, (0, num_values))
    return rng.choices(range(first, last), k=num_rows)


def with_nulls(rng, indices, density):
    if density == 0:
        return indices
    return [None if rng.random() < density else index for index in indices]


# ---- buffers ---------------------------------------------------------------------------------------------------------

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_PAGE = mmap.PAGESIZE
_PROT_NONE = 0


class GuardedBuffer:
    """Bytes that end where an unreadable page begins, or begin where one ends; unmapped when the last reader is
    gone."""
    live = weakref.WeakSet()

    def __init__(self, content, at_start=False):
        size = len(content)
        self._bytes = (size + _PAGE - 1) // _PAGE * _PAGE + 2 * _PAGE
        self._address = _LIBC.mmap(None, self._bytes, mmap.PROT_READ | mmap.PROT_WRITE,
                                   mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if self._address in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(f"mmap of {self._bytes} bytes failed: errno {ctypes.get_errno()}")
        for page in (self._address, self._address + self._bytes - _PAGE):
            _LIBC.mprotect(page, _PAGE, _PROT_NONE)
        self.address = self._address + (_PAGE if at_start else self._bytes - _PAGE - size)
        ctypes.memmove(self.address, bytes(content), size)
        self.size = size
        GuardedBuffer.live.add(self)

    def __del__(self):
        if getattr(self, "_address", None):
            _LIBC.munmap(self._address, self._bytes)


def guarded(content, at_start=False):
    buffer = GuardedBuffer(content, at_start)
    return pa.foreign_buffer(buffer.address, buffer.size, base=buffer)


def bitmap(bits):
    """Bits as an Arrow bitmap; the unused bits of the last byte are ones, which must not be counted."""
    bits = list(bits)
    digits = "".join("1" if bit else "0" for bit in reversed(bits))
    padding = -len(bits) % 8
    return int("1" * padding + digits or "0", 2).to_bytes((len(bits) + 7) // 8, "little")


def pack(code, numbers):
    return array.array(code, numbers).tobytes()


# ---- arrays ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Layout:
    """How arrays are laid out: nothing of it changes a row."""
    plain: bool = False             # offset 0, no tricks
    garbage_in_nulls: bool = True   # indices and views under nulls are out of range
    misaligned: bool = False


def make_array(rng, column_type, values, indices, layout):
    """The rows `indices` as a pyarrow array of the type, perhaps in the middle of longer buffers."""
    before = 0 if layout.plain else rng.choice((0, 0, 0, 1, 3, 7, 8, 9, 13, 64, 65))
    after = 0 if layout.plain else rng.choice((0, 0, 1, 5))
    has_nulls = any(index is None for index in indices)
    with_bitmap = has_nulls or (not layout.plain and rng.random() < 0.3)
    padded = ([rng.randrange(len(values)) for _ in range(before)] + list(indices)
              + [rng.randrange(len(values)) for _ in range(after)])
    valid = [index is not None for index in padded]
    if with_bitmap:
        for row in itertools.chain(range(before), range(before + len(indices), len(padded))):
            valid[row] = rng.random() < 0.5
    if column_type.index:
        return _dictionary_array(rng, column_type, values, padded, valid, with_bitmap, before, len(indices), layout)
    filled = [rng.randrange(len(values)) if index is None else index for index in padded]
    validity = guarded(bitmap(valid)) if with_bitmap else None
    buffers = _value_buffers(rng, column_type, [values[index] for index in filled], valid, layout)
    return pa.Array.from_buffers(column_type.value_arrow(), len(indices), [validity, *buffers], -1, before)


def _value_buffers(rng, column_type, rows, valid, layout):
    """The buffers behind the validity of rows without nulls (where null, any value)."""
    if column_type.name == "bool":
        return [guarded(bitmap(rows))]
    if column_type.name in ("fixed_binary", "decimal128"):
        return [_fixed_buffer(b"".join(rows), layout)]
    if column_type.name.endswith("_view"):
        return _view_buffers(rng, rows, valid, layout)
    if column_type.name in STRING_TYPES:
        skipped = b"" if layout.plain else b"?" * rng.choice((0, 0, 3))  # the first offset need not be 0
        offsets = list(itertools.accumulate(map(len, rows), initial=len(skipped)))
        code = "q" if column_type.name.startswith("large") else "i"
        return [_fixed_buffer(pack(code, offsets), layout), guarded(skipped + b"".join(rows), rng.random() < 0.3)]
    return [_fixed_buffer(pack(column_type.code(), rows), layout)]


def _fixed_buffer(content, layout):
    """Elements of fixed width; `misaligned`: at an address that no element's alignment divides."""
    return guarded(content + b"\0")[:len(content)] if layout.misaligned else guarded(content)


def _view_buffers(rng, rows, valid, layout):
    """Views into up to three data buffers; equal values may share their bytes."""
    data = [bytearray() for _ in range(rng.choice((1, 1, 2, 3)))]
    views, known = bytearray(), {}
    for value, is_valid in zip(rows, valid):
        if not is_valid and layout.garbage_in_nulls and rng.random() < 0.3:
            views += struct.pack("<iIii", 1 << 30, 0xDEADBEEF, 99, 1 << 30)
        elif len(value) <= 12:
            views += struct.pack("<i12s", len(value), value)
        else:
            if value not in known or rng.random() < 0.2:
                number = rng.randrange(len(data))
                known[value] = (number, len(data[number]))
                data[number] += value
            views += struct.pack("<i4sii", len(value), value[:4], *known[value])
    return [_fixed_buffer(bytes(views), layout), *(guarded(bytes(part), rng.random() < 0.3) for part in data)]


def index_limit(column_type):
    """How many dictionary entries the index type can number, kept small enough for tests."""
    return {"i8": 127, "u8": 255}.get(column_type.index, 30000)


def _dictionary_array(rng, column_type, values, padded, valid, with_bitmap, before, num_rows, layout):
    """Rows through a dictionary of this batch alone: used entries in any order, unused ones, duplicates, nulls among
    them."""
    used = list(dict.fromkeys(index for index in padded if index is not None))
    limit = index_limit(column_type)
    assert len(used) <= limit, f"{len(used)} distinct values do not fit index type {column_type.index}"
    entries = list(used)
    if not layout.plain:
        entries += [rng.randrange(len(values)) for _ in range(min(rng.choice((0, 0, 1, 5)), limit - len(entries)))]
        rng.shuffle(entries)
    has_null_rows = any(index is None for index in padded)
    use_null_entry = (not layout.plain and len(entries) < limit and
                      rng.random() < (0.8 if has_null_rows else 0.1))  # an unused null entry makes no row null
    if use_null_entry:
        entries.insert(rng.randint(0, len(entries)), None)
    position = {entry: number for number, entry in enumerate(entries)}
    numbers, with_bitmap = [], with_bitmap and not (use_null_entry and rng.random() < 0.3)
    for row, index in enumerate(padded):
        if index is None and (not with_bitmap or use_null_entry and rng.random() < 0.5):
            valid[row] = True
            numbers.append(position[None])
        elif index is None:
            wild = layout.garbage_in_nulls and rng.random() < 0.3
            numbers.append(limit if wild else 0)
        else:
            numbers.append(position[index])
    validity = guarded(bitmap(valid)) if with_bitmap else None
    value_type = dataclasses.replace(column_type, index="")
    dictionary = make_array(rng, value_type, values, entries, layout)
    indices = _fixed_buffer(pack(INTEGER_CODES[column_type.index], numbers), layout)
    return pa.DictionaryArray.from_buffers(column_type.arrow(), num_rows, [validity, indices], dictionary, -1, before)


def bits_array(column_type, values, indices):
    """The rows as an array of column_type.bits_arrow() with strings as large_binary and bools as uint8: what results
    are compared as."""
    rows = [None if index is None else values[index] for index in indices]
    return pa.array(rows, comparable_arrow(column_type.bits_arrow()))


def comparable_arrow(bits_type):
    if pa.types.is_boolean(bits_type):
        return pa.uint8()
    if pa.types.is_fixed_size_binary(bits_type):
        return bits_type
    return bits_type if pa.types.is_integer(bits_type) else pa.large_binary()
