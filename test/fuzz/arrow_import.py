#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the Arrow calls of libquern.so with ill-formed arrays and schemas: they are refused, or do no harm.

    arrow_import.py --lib build/lib/libquern.so --seed 1 --seconds 20

A correct batch is copied into structs of our own (OwnedArray), one field is broken, and it is appended, probed, sorted
or merged. The C data interface does not give the sizes of most buffers, so some errors cannot be detected (a length
beyond the buffers of all children); only detectable ones are tried here. A breakage marked REFUSE must be refused; the
others may be accepted as long as nothing is read out of bounds: all buffers end at a page that cannot be read. Refused
or not, an array is released exactly once.
"""
import array
import ctypes
import dataclasses
import sys

import watched
import pyarrow as pa
import quern_abi
from quern_abi import BUILD, DONE, PROBE, ROWS, ArrowArray, QuernError
from random_data import (INTEGER_CODES, STRING_TYPES, Layout, make_array, random_indices, random_type, random_values,
                         with_nulls)

REFUSE, HARMLESS = "refuse", "harmless"
INT64_MAX, INT64_MIN, INT32_MAX = 2**63 - 1, -2**63, 2**31 - 1


# ---- arrays that we may break ----------------------------------------------------------------------------------------


class OwnedArray:
    """A copy of the structs of a pyarrow array, not of its buffers. `released` counts the calls of the top release
    callback."""

    def __init__(self, source):
        self._source = quern_abi.export_batch(source)
        self._keep = []
        self.released = 0
        self._release_top = quern_abi.RELEASE_ARRAY(self._on_release)
        self._release_child = quern_abi.RELEASE_ARRAY(lambda pointer: setattr(pointer.contents, "release", None))
        self.struct = self._copy(self._source, self._release_top)
        self.children = [self.struct.children[number].contents for number in range(self.struct.n_children)]

    def _copy(self, source, release):
        copied = ArrowArray()
        ctypes.memmove(ctypes.byref(copied), ctypes.byref(source), ctypes.sizeof(ArrowArray))
        copied.buffers = self.pointers([source.buffers[number] for number in range(source.n_buffers)])
        children = [self._copy(source.children[number].contents, self._release_child)
                    for number in range(source.n_children)]
        copied.children = (ctypes.POINTER(ArrowArray) * max(len(children), 1))(*map(ctypes.pointer, children))
        if source.dictionary:
            copied.dictionary = ctypes.pointer(self._copy(source.dictionary.contents, self._release_child))
        copied.release = ctypes.cast(release, ctypes.c_void_p).value
        copied.private_data = None
        self._keep.append((copied, children))
        return copied

    def pointers(self, addresses):
        """An array of buffer pointers, followed by NULLs in case too many are read."""
        made = (ctypes.c_void_p * (len(addresses) + 4))(*addresses)
        self._keep.append(made)
        return ctypes.cast(made, ctypes.POINTER(ctypes.c_void_p))

    def numbers(self, code, values):
        made = array.array(code, values)
        self._keep.append(made)
        return made.buffer_info()[0]

    def _on_release(self, pointer):
        self.released += 1
        pointer.contents.release = None

    def close(self):
        quern_abi.release_array(self._source)


def _set_buffer(owned, column, number, address):
    addresses = [column.buffers[buffer] for buffer in range(column.n_buffers)]
    addresses[number] = address
    column.buffers = owned.pointers(addresses)


# ---- breakages: (owned, column, its type, rng) -> REFUSE, HARMLESS or None (does not apply) --------------------------
# Each is named in the input's text, so a docstring would say it twice.


def struct_length_negative(owned, column, column_type, rng):
    owned.struct.length = rng.choice((-1, INT64_MIN))
    return REFUSE


def struct_offset_wrong(owned, column, column_type, rng):
    owned.struct.offset = rng.choice((-1, INT64_MIN, INT64_MAX))
    return REFUSE


def struct_with_fewer_children(owned, column, column_type, rng):
    owned.struct.n_children = rng.choice((0, -1, owned.struct.n_children - 1))
    return REFUSE


def struct_with_more_children(owned, column, column_type, rng):
    many = [*map(ctypes.pointer, owned.children), None, None]
    made = (ctypes.POINTER(ArrowArray) * len(many))(*many)
    owned._keep.append(made)
    owned.struct.children = made
    owned.struct.n_children += 1
    return HARMLESS  # the binding names children by number; of others nothing is known


def struct_without_children_pointer(owned, column, column_type, rng):
    owned.struct.children = None
    return REFUSE


def struct_released(owned, column, column_type, rng):
    owned.struct.release = None
    return REFUSE


def struct_buffers_wrong(owned, column, column_type, rng):
    owned.struct.n_buffers = rng.choice((0, 2, -1, INT64_MAX))
    return REFUSE if owned.struct.n_buffers != 0 else HARMLESS


def struct_with_null_rows(owned, column, column_type, rng):
    owned.struct.buffers = owned.pointers([owned.numbers("B", [0] * (owned.struct.length // 8 + 10))])
    owned.struct.null_count = rng.choice((-1, owned.struct.length))
    return REFUSE


def child_missing(owned, column, column_type, rng):
    number = owned.children.index(column)
    made = (ctypes.POINTER(ArrowArray) * len(owned.children))(*map(ctypes.pointer, owned.children))
    made[number] = None
    owned._keep.append(made)
    owned.struct.children = made
    return REFUSE


def child_too_short(owned, column, column_type, rng):
    column.length = rng.choice((-1, INT64_MIN, 0, owned.struct.offset + owned.struct.length - 1))
    return REFUSE


def child_offset_wrong(owned, column, column_type, rng):
    column.offset = rng.choice((-1, INT64_MIN, INT64_MAX, INT64_MAX - owned.struct.length + 1))
    return REFUSE


def null_count_wrong(owned, column, column_type, rng):
    column.null_count = rng.choice((-2, column.length + 1, INT64_MIN, INT64_MAX))
    return REFUSE


def null_count_lies(owned, column, column_type, rng):
    if not column.buffers[0]:
        return None
    bits = int.from_bytes(ctypes.string_at(column.buffers[0], (column.offset + column.length + 7) // 8),
                          "little") >> column.offset
    nulls = column.length - (bits & (1 << column.length) - 1).bit_count()
    column.null_count = nulls + 1 if nulls < column.length else nulls - 1
    return REFUSE


def nulls_without_bitmap(owned, column, column_type, rng):
    column.null_count = 1
    _set_buffer(owned, column, 0, None)
    return REFUSE


def number_of_buffers_wrong(owned, column, column_type, rng):
    wrong = [0, -1, 1, INT64_MIN]
    if not column_type.name.endswith("_view") or column_type.index:
        wrong += [column.n_buffers + 1, INT64_MAX]
    column.n_buffers = rng.choice(wrong)
    return REFUSE


def buffers_pointer_missing(owned, column, column_type, rng):
    column.buffers = None
    return REFUSE


def values_missing(owned, column, column_type, rng):
    _set_buffer(owned, column, 1, None)
    return REFUSE


def bytes_missing(owned, column, column_type, rng):
    if column_type.index or column_type.name not in STRING_TYPES[:4]:
        return None
    offsets = owned.numbers("i" if not column_type.name.startswith("large") else "q",
                            range(column.offset + column.length + 1))
    _set_buffer(owned, column, 1, offsets)
    _set_buffer(owned, column, 2, None)
    return REFUSE


def offsets_wrong(owned, column, column_type, rng):
    if column_type.index or column_type.name not in STRING_TYPES[:4]:
        return None
    wide = column_type.name.startswith("large")
    offsets_type = ctypes.c_int64 if wide else ctypes.c_int32
    offsets = (offsets_type * (column.offset + column.length + 1)).from_address(column.buffers[1])
    first, last = column.offset + owned.struct.offset, column.offset + owned.struct.offset + owned.struct.length
    row = rng.randint(first, last - 1)
    kind = rng.randrange(3)
    if kind == 0:
        offsets[first] = rng.choice((-1, INT64_MIN if wide else -INT32_MAX - 1))
    elif kind == 1:
        offsets[row] = INT64_MAX if wide else INT32_MAX
    else:
        offsets[row + 1] = -1
    return REFUSE


def _view_rows(owned, column, column_type):
    """Number of a row with a value, and its view's fields."""
    first = column.offset + owned.struct.offset
    for row in range(first, first + owned.struct.length):
        if column.buffers[0] and not ctypes.c_uint8.from_address(column.buffers[0] + row // 8).value >> row % 8 & 1:
            continue
        yield (ctypes.c_int32 * 4).from_address(column.buffers[1] + 16 * row)


def view_wrong(owned, column, column_type, rng):
    if column_type.index or not column_type.name.endswith("_view"):
        return None
    views = list(_view_rows(owned, column, column_type))
    if not views:
        return None
    view = rng.choice(views)
    num_data = column.n_buffers - 3
    kind = rng.randrange(4)
    if kind == 0:
        view[0] = rng.choice((-1, -INT32_MAX - 1, INT32_MAX))
    elif kind == 1:
        view[0], view[2], view[3] = 20, rng.choice((-1, num_data, INT32_MAX, -INT32_MAX - 1)), 0
    elif kind == 2:
        view[0], view[2], view[3] = 13, rng.randrange(max(num_data, 1)), rng.choice(
            (-1, INT32_MAX, INT32_MAX - 12, -INT32_MAX - 1))
    elif view[0] > 12:
        view[1] ^= 0x01010101  # the prefix lies
        return HARMLESS
    else:
        return None
    return REFUSE


def view_sizes_wrong(owned, column, column_type, rng):
    if column_type.index or not column_type.name.endswith("_view"):
        return None
    num_data = column.n_buffers - 3
    if num_data < 1:
        return None
    sizes = rng.choice((None, owned.numbers("q", [rng.choice((-1, INT64_MIN))] * num_data)))
    _set_buffer(owned, column, column.n_buffers - 1, sizes)
    return REFUSE


def view_data_missing(owned, column, column_type, rng):
    if column_type.index or not column_type.name.endswith("_view"):
        return None
    long = [view for view in _view_rows(owned, column, column_type) if view[0] > 12]
    if not long:
        return None
    _set_buffer(owned, column, 2 + long[0][2], None)
    return REFUSE


def dictionary_missing(owned, column, column_type, rng):
    if not column_type.index:
        return None
    column.dictionary = None
    return REFUSE


def dictionary_where_none_belongs(owned, column, column_type, rng):
    if column_type.index:
        return None
    column.dictionary = ctypes.pointer(owned.children[0])
    return HARMLESS


def dictionary_index_wrong(owned, column, column_type, rng):
    if not column_type.index:
        return None
    code = INTEGER_CODES[column_type.index]
    bits = 8 * array.array(code).itemsize
    entries = column.dictionary.contents.length
    most = (1 << bits - 1) - 1 if code.islower() else (1 << bits) - 1
    wrong = [number for number in (entries, most, -1 if code.islower() else most, -most - 1 if code.islower() else most)
             if number <= most and not 0 <= number < entries]
    index_type = getattr(ctypes, f"c_{'int' if code.islower() else 'uint'}{bits}")
    first = column.offset + owned.struct.offset
    row = rng.randrange(first, first + owned.struct.length)
    if (column.buffers[0] and not ctypes.c_uint8.from_address(column.buffers[0] + row // 8).value >> row % 8 & 1
            or not wrong):
        return None
    index_type.from_address(column.buffers[1] + row * bits // 8).value = rng.choice(wrong)
    return REFUSE


def dictionary_struct_wrong(owned, column, column_type, rng):
    if not column_type.index:
        return None
    dictionary, kind = column.dictionary.contents, rng.randrange(5)
    if kind == 0:
        dictionary.length = rng.choice((-1, INT64_MIN))
    elif kind == 1:
        dictionary.offset = rng.choice((-1, INT64_MAX))
    elif kind == 2:
        dictionary.n_buffers = rng.choice((0, -1, 1))
    elif kind == 3:
        dictionary.buffers = None
    else:
        dictionary.null_count = rng.choice((-2, dictionary.length + 1))
    return REFUSE


def too_many_rows(owned, column, column_type, rng):
    simple = all(not child.dictionary and not child.buffers[0] and child.n_buffers == 2 for child in owned.children)
    if not simple:
        return None
    for struct in (owned.struct, *owned.children):
        struct.length = 1 << rng.choice((33, 40, 62))
    return REFUSE if len({child.length for child in owned.children} | {owned.struct.length}) == 1 else HARMLESS


def nothing(owned, column, column_type, rng):
    return HARMLESS


BREAKAGES = (
    struct_length_negative, struct_offset_wrong, struct_with_fewer_children, struct_with_more_children,
    struct_without_children_pointer, struct_released, struct_buffers_wrong, struct_with_null_rows, child_missing,
    child_too_short, child_offset_wrong, null_count_wrong, null_count_lies, nulls_without_bitmap,
    number_of_buffers_wrong, buffers_pointer_missing, values_missing, bytes_missing, offsets_wrong, offsets_wrong,
    view_wrong, view_wrong, view_sizes_wrong, view_data_missing, dictionary_missing, dictionary_where_none_belongs,
    dictionary_index_wrong, dictionary_index_wrong, dictionary_struct_wrong, too_many_rows, nothing)


# ---- running them ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Batch:
    types: list      # key, payload
    schema: pa.Schema
    struct: pa.StructArray


def random_batch(rng, types, num_rows):
    layout = Layout(plain=rng.random() < 0.3, garbage_in_nulls=False)
    skip = rng.choice((0, 0, 3))
    arrays = []
    for column_type in types:
        values = random_values(rng, column_type, 20)[:50]
        rows = random_indices(rng, num_rows + skip, len(values), "uniform")
        arrays.append(make_array(rng, column_type, values, with_nulls(rng, rows, 0.2 if column_type.nullable else 0),
                                 layout))
    fields = [pa.field(f"c{number}", column_type.arrow(), column_type.nullable)
              for number, column_type in enumerate(types)]
    return Batch(types, pa.schema(fields), pa.StructArray.from_arrays(arrays, fields=fields).slice(skip))


def _random_types(rng):
    names = rng.choice((STRING_TYPES, ("bool", "i32", "i64", "f64", "decimal128", "fixed_binary"), STRING_TYPES[4:]))
    types = [dataclasses.replace(random_type(rng, False, names), index=rng.choice(("", "", "i8", "u8", "i32", "u64")),
                                 nullable=rng.random() < 0.5) for _ in range(2)]
    return types


def _read_all(output):
    """Answers the last result."""
    for result, array in output.results(as_arrow=True):
        quern_abi.release_array(array)
    return result


def _feed_join(join, side, owned, right):
    """Gives the broken batch to one side and runs the join to its end. Answers the error that refused it."""
    try:
        join.append(BUILD, [owned.struct] if side == "build" else [])
    except QuernError as error:
        return error
    join.finalise()
    with join.output(PROBE) as output:
        try:
            output.push(owned.struct if side == "probe" else right.struct)
        except QuernError as error:
            return error
        _read_all(output)
    return None


def _feed_sort(sort, owned):
    try:
        sort.append(ROWS, [owned.struct])
    except QuernError as error:
        return error
    sort.finalise()
    with sort.output(ROWS) as output:
        _read_all(output)
    return None


def _feed_merge(merge, owned):
    """As the first batch of the only run; its rows are hardly in order, which is found when they meet."""
    with merge.input(ROWS, 0) as run, merge.output(ROWS) as output:
        try:
            run.append(owned.struct)
            while _read_all(output).state != DONE:
                run.finish()
        except QuernError as error:
            return error
    return None


def _run(library, side, types, batch, owned, right):
    """Appends, probes, sorts or merges the broken batch. Answers the error that refused it."""
    is_join = side in ("build", "probe")
    with (library.compile(_spec(side, types), "generic") as kernel,
          kernel.job(num_runs=1 if side == "merge" else 0) as job):
        for port in (BUILD, PROBE) if is_join else (ROWS,):
            job.bind_arrow(port, batch.schema, [0], [1])
        if is_join:
            return _feed_join(job, side, owned, right)
        return _feed_sort(job, owned) if side == "sort" else _feed_merge(job, owned)


def _spec(side, types):
    if side in ("build", "probe"):
        return f"join.inner keys={types[0].text()} build={types[1].text()} probe={types[1].text()}"
    return f"sort keys={types[0].text()}:out payload={types[1].text()}"


def arrays_case(library, rng):
    types = _random_types(rng)
    batch, right = random_batch(rng, types, rng.choice((1, 2, 8, 70))), random_batch(rng, types, 5)
    breakage, number = rng.choice(BREAKAGES), rng.randrange(2)
    side = rng.choice(("build", "probe", "sort", "merge"))
    yield f"{_spec(side, types)} {breakage.__name__} in column {number} of {side}"
    owned = OwnedArray(batch.struct)
    expected = breakage(owned, owned.children[number], types[number], rng)
    given = bool(owned.struct.release)
    refused = None
    if expected is not None:
        refused = _run(library, side, types, batch, owned, right)
    else:
        quern_abi.release_array(owned.struct)
    released = owned.released
    owned.close()
    if refused:
        watched.check_error(refused, (quern_abi.INVALID_ARGUMENT, quern_abi.UNIMPLEMENTED))
        if breakage is nothing and not (side == "merge" and "not in order" in refused.text):
            raise watched.Failure(f"a right batch was refused: {refused.text}")
    elif expected == REFUSE:
        raise watched.Failure("an ill-formed array was accepted")
    if released != int(given):
        raise watched.Failure(f"the array was released {released} times; expected: {int(given)}")


FORMATS = (b"", b"w:", b"w:-1", b"w:0", b"w:99999999999", b"w:4x", b"d:", b"d:38", b"d:38,2,256", b"d:38,2,64", b"tt",
           b"tdx", b"ts", b"+s", b"+l", b"n", b"i", b"\xff\n", b"u" * 5000, None)


def schemas_case(library, rng):
    types = _random_types(rng)
    schema = random_batch(rng, types, 1).schema
    keys, payload = [0], [1]
    exported = [quern_abi.export_schema(schema) for _ in range(2)]
    broken, kind = exported[rng.randrange(2)], rng.randrange(7)
    original = ctypes.string_at(ctypes.byref(broken), ctypes.sizeof(broken))
    child = broken.children[0].contents
    child_original = ctypes.string_at(ctypes.byref(child), ctypes.sizeof(child))
    spec = f"join.inner keys={types[0].text()} build={types[1].text()} probe={types[1].text()}"
    yield f"{spec} schema breakage {kind}"
    if kind == 0:
        keys = [rng.choice((-1, 2, INT32_MAX, -INT32_MAX))]
    elif kind == 1:
        payload = [rng.choice((-1, -2, 2, INT32_MAX))]
    elif kind == 2:
        child.format = rng.choice([text for text in FORMATS if text != child.format])
    elif kind == 3:
        broken.n_children = rng.choice((0, 1, -1))
    elif kind == 4:
        broken.format = rng.choice((b"i", b"", None, b"+l"))
    elif kind == 5:
        broken.children = None
    else:
        kinds = [dataclasses.replace(column_type, nullable=False).text() for column_type in types]
        keys, payload = [0], [0] if kinds[0] != kinds[1] else [5]
    refused = None
    try:
        with library.compile(spec, "generic") as kernel, kernel.job() as join:
            sides = list(zip((BUILD, PROBE), exported))
            for port, each in sides if broken is exported[0] else reversed(sides):
                library.call("quern_job_bind_arrow", join.handle, port, ctypes.byref(each), quern_abi.int32s(keys),
                             quern_abi.int32s(payload))
    except QuernError as error:
        refused = error
    ctypes.memmove(ctypes.byref(child), child_original, len(child_original))
    ctypes.memmove(ctypes.byref(broken), original, len(original))
    for each in exported:
        quern_abi.release_schema(each)
    if not refused:
        raise watched.Failure("an ill-formed schema or binding was accepted")
    watched.check_error(refused)


def one_case(library, rng):
    yield from (schemas_case if rng.random() < 0.2 else arrays_case)(library, rng)


if __name__ == "__main__":
    sys.exit(watched.main(__doc__, one_case))
