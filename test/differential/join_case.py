# SPDX-License-Identifier: Apache-2.0
"""One random join: spec, rows, and the ways to run it, all of which must give the rows that the oracle says.

    case = Case.generate(seed, number)            the same case for the same two numbers
    expected = Expected(case, DuckdbOracle())
    for variant in case.variants(): check(case, expected, run(library, case, variant))

A case is rows without a layout (random_data.py). A variant says how they come in and go out: engine, plan parameters, cut into batches,
Arrow structs or the host's own vectors with selections, one prober or two. A reduction of a case drops rows, keys or payload; minimising a
failure is trying reductions.
"""
import array
import ctypes
import dataclasses
import gc
import random
import struct

import pyarrow as pa
import pyarrow.compute as pc

import quern_abi
from oracle import count_pairs, count_table_rows, python_pairs
from random_data import (COLLATIONS, STRING_TYPES, ColumnType, GuardedBuffer, Layout, bits_array, comparable_arrow, make_array,
                         random_indices, random_type, random_values, with_nulls)

MAX_RESULT_ROWS = 200_000
MAX_ZERO_HASH_PAIRS = 2_000_000  # with equal hashes every probe row meets every build row
ROW_ID = -1
SIDES = ("build", "probe")


class Mismatch(Exception):
    """The library's answer is not the oracle's, or breaks a promise of its header."""


@dataclasses.dataclass
class Column:
    """A key (indices of both sides) or a payload column (of its side)."""
    type: ColumnType
    values: list
    indices: dict


@dataclasses.dataclass
class Payload:
    """What the spec lists under build= or probe=: a row id, a key column once more, or a column of its own."""
    type: ColumnType
    column: Column | None  # None: row id


@dataclasses.dataclass
class Side:
    name: str
    num_rows: int
    payload: list
    child_order: list      # permutation of key and payload columns in the Arrow struct
    stranger: bool         # an unbound child of a type that no kernel reads


# ---- making a case -----------------------------------------------------------------------------------------------------------------------


def _random_key_type(rng):
    key_type = random_type(rng)
    nullable = rng.random() < 0.45
    changes = {"nullable": nullable, "null_equal": nullable and rng.random() < 0.5}
    if key_type.name in STRING_TYPES and rng.random() < 0.5:
        changes["collation"] = rng.choice(COLLATIONS)
    return dataclasses.replace(key_type, **changes)


def _num_values(rng, column_type, distinct):
    few = rng.choice((1, 2, 3, 20)) if rng.random() < 0.3 else distinct
    return max(1, min(few, 50) if column_type.index in ("i8", "u8") else min(few, 5000) if column_type.index else few)


def _random_sizes(rng):
    edges = (0, 1, 2) if rng.random() < 0.15 else (6, 7, 8, 63, 64, 65, 1023, 1024, 1025, 2048, 3000, 5000)
    kind = rng.random()
    if kind < 0.02:
        return {"build": 300_000, "probe": 30_000}
    if kind < 0.03:
        return {"build": 20_000, "probe": 200_000}
    return {side: rng.choice(edges) if kind < 0.8 else rng.randint(0, 200) for side in SIDES}


def _random_keys(rng, sizes):
    """Keys whose rows are drawn from a common pool of tuples, so that several keys match at once, with a few rows changed in one key."""
    big = max(sizes.values()) > 10_000
    num_keys = rng.randint(1, 2) if big else rng.choices((1, 2, 3, 4, rng.randint(5, 16)), (40, 25, 12, 10, 8))[0]
    most = max(*sizes.values(), 1)
    distinct = most if big else rng.choice((1, 2, 10, 100, most, most, 2 * most))
    distributions = ["uniform", "uniform", "zipf", "sequential"] + ([] if big else ["equal"])
    chosen = {side: rng.choice(distributions) for side in SIDES}
    if rng.random() < 0.06:
        chosen = {"build": "low half", "probe": "high half"}
    pool_rows = {side: random_indices(rng, sizes[side], distinct, chosen[side]) for side in SIDES}
    keys = []
    for _ in range(num_keys):
        key_type = _random_key_type(rng)
        values = random_values(rng, key_type, _num_values(rng, key_type, distinct))
        values = values[:50] if key_type.index in ("i8", "u8") else values
        in_order = rng.random() < 0.6
        of_pool_row = [row % len(values) if in_order else rng.randrange(len(values)) for row in range(distinct)]
        indices = {}
        for side in SIDES:
            changed = rng.choice((0, 0, 0, 0.02, 0.3))
            rows = [of_pool_row[row] if rng.random() >= changed else rng.randrange(len(values)) for row in pool_rows[side]]
            indices[side] = with_nulls(rng, rows, rng.choice((0, 0, 0.05, 0.05, 0.1, 0.5, 0.5, 1) if key_type.nullable else (0,)))
        keys.append(Column(key_type, values, indices))
    return keys


def _random_payload(rng, keys, side, num_rows):
    payload = []
    for _ in range(rng.choice((0, 1, 1, 2, 3, 6)) if num_rows < 10_000 else rng.randint(1, 2)):
        kind = rng.random()
        if kind < 0.15:
            payload.append(Payload(ColumnType("rowid"), None))
        elif kind < 0.3:
            key = rng.choice(keys)
            payload.append(Payload(dataclasses.replace(key.type, collation="", null_equal=False), key))
        else:
            column_type = dataclasses.replace(random_type(rng), nullable=rng.random() < 0.5)
            values = random_values(rng, column_type, _num_values(rng, column_type, min(num_rows, 1000)))
            values = values[:50] if column_type.index in ("i8", "u8") else values
            rows = random_indices(rng, num_rows, len(values), rng.choice(("uniform", "sequential", "zipf", "equal")))
            rows = with_nulls(rng, rows, rng.choice((0, 0.1, 0.5, 1) if column_type.nullable else (0,)))
            payload.append(Payload(column_type, Column(column_type, values, {side: rows})))
    return payload


def _without_each(numbers, fewest):
    """The list without one of its numbers, in all ways that leave `fewest`."""
    if len(numbers) <= fewest:
        return
    if len(numbers) > 2 + fewest:
        yield numbers[:len(numbers) // 2]
        yield numbers[len(numbers) // 2:]
    for number in numbers:
        yield [other for other in numbers if other != number]


@dataclasses.dataclass
class Case:
    seed: int
    number: int
    keys: list
    sides: dict
    reduction: dict
    generated_rows: tuple  # build, probe, result; before any reduction
    plain: bool = False    # every variant lays its arrays out plainly

    @staticmethod
    def generate(seed, number):
        rng = random.Random(f"{seed}/{number}")
        sizes = _random_sizes(rng)
        keys = _random_keys(rng, sizes)
        sides = {}
        for side in SIDES:
            payload = _random_payload(rng, keys, side, sizes[side])
            sides[side] = Side(side, sizes[side], payload, [], rng.random() < 0.1)
        case = Case(seed, number, keys, sides, {}, ())
        while count_pairs(case.keys) > MAX_RESULT_ROWS:
            larger = max(SIDES, key=lambda side: case.sides[side].num_rows)
            case._keep_rows(larger, 0, case.sides[larger].num_rows // 2)
        case._order_children(rng)
        case.generated_rows = (*(case.sides[side].num_rows for side in SIDES), count_pairs(case.keys))
        return case

    def _order_children(self, rng):
        for side in self.sides.values():
            side.child_order = list(range(len(self._columns(side))))
            rng.shuffle(side.child_order)

    def _columns(self, side):
        """The side's columns once each, keys first."""
        return self.keys + [item.column for item in side.payload if item.column and not any(item.column is key for key in self.keys)]

    def _keep_rows(self, side, first, end):
        for column in self._columns(self.sides[side]):
            column.indices[side] = column.indices[side][first:end]
        self.sides[side].num_rows = end - first

    def reduced(self, reduction):
        """A new case of the same numbers with less: {"keys": [..], "build": [..], "probe": [..]} the columns that stay,
        {"build_rows": [first, end], "probe_rows": ..}, {"plain": true}. Payload that repeats a dropped key becomes a column of its own."""
        case = Case.generate(self.seed, self.number)
        case.reduction, case.plain = reduction, bool(reduction.get("plain"))
        for name, side in case.sides.items():
            side.payload = [side.payload[number] for number in reduction.get(name, range(len(side.payload)))]
        kept = [case.keys[number] for number in reduction.get("keys", range(len(case.keys)))]
        dropped = [key for key in case.keys if not any(key is other for other in kept)]
        for name, side in case.sides.items():
            for item in side.payload:
                if any(item.column is key for key in dropped):
                    item.column = Column(item.type, item.column.values, {name: item.column.indices[name]})
        case.keys = kept
        for name, side in case.sides.items():
            first, end = reduction.get(f"{name}_rows", (0, side.num_rows))
            case._keep_rows(name, first, end)
        if count_pairs(case.keys) > MAX_RESULT_ROWS:
            raise ValueError("the reduced case is too large")
        case._order_children(random.Random(0))
        return case

    def spec(self):
        text = "join.inner keys=" + ",".join(key.type.text() for key in self.keys)
        for name, side in self.sides.items():
            text += f" {name}=" + ",".join(item.type.text() for item in side.payload) if side.payload else ""
        return text

    def result_payload(self):
        """(side, payload) of each result column."""
        return [(side, item) for side in ("probe", "build") for item in self.sides[side].payload]

    def replay(self):
        return {"seed": self.seed, "case": self.number, **self.reduction}

    def smaller(self):
        """Reductions one step smaller than the case's own, the big steps first."""
        now = self.reduction
        if not self.plain:
            yield {**now, "plain": True}
        for side in SIDES:
            first, end = now.get(f"{side}_rows", [0, self.sides[side].num_rows])
            middle = (first + end) // 2
            if end - first > 1:
                yield {**now, f"{side}_rows": [first, middle]}
                yield {**now, f"{side}_rows": [middle, end]}
            if 1 < end - first <= 16:
                yield {**now, f"{side}_rows": [first + 1, end]}
                yield {**now, f"{side}_rows": [first, end - 1]}
        for side in SIDES:
            for kept in _without_each(now.get(side, list(range(len(self.sides[side].payload)))), 0):
                yield {**now, side: kept}
        for kept in _without_each(now.get("keys", list(range(len(self.keys)))), 1):
            yield {**now, "keys": kept}

    def rows_text(self, most=8):
        """The first rows of each side: keys, then payload, as physical values."""
        lines = []
        for name, side in self.sides.items():
            columns = self._columns(side)
            lines.append(f"{name}: {side.num_rows} rows; columns " + ", ".join(column.type.text() for column in columns))
            for row in range(min(side.num_rows, most)):
                indices = [column.indices[name][row] for column in columns]
                lines.append("  " + repr(tuple(None if index is None else column.values[index] for column, index in zip(columns, indices))))
        return "\n".join(lines)

    def variants(self):
        """The ways to run this case: generic, compiled, and both again otherwise."""
        rng = random.Random(f"variants/{self.seed}/{self.number}")
        first = Variant.random(rng, self)
        default = dataclasses.replace(first, params={})
        return [dataclasses.replace(first, engine="generic"), dataclasses.replace(first, engine="jit"),
                dataclasses.replace(default, engine=rng.choice(("generic", "jit"))),
                dataclasses.replace(Variant.random(rng, self), engine="jit"),
                dataclasses.replace(Variant.random(rng, self), engine=rng.choice(("generic", "jit", "auto")))]


# ---- how to run it -----------------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Variant:
    engine: str
    params: dict
    batch_rows: int        # of results
    num_batches: dict      # per side
    interfaces: dict       # per side: "arrow" or "vectors"; of "result" too
    num_probers: int
    copy_bytes: bool
    misaligned: bool
    layout_seed: int

    @staticmethod
    def random(rng, case):
        params = {}
        if rng.random() < 0.7:
            params["batch_size"] = rng.choice((1, 7, 64, 1024, 4096))
        if rng.random() < 0.5:
            params["prefetch_group"] = rng.choice((1, 3, 64, 4096))
        if rng.random() < 0.2:
            params["prefetch"] = "off"
        for cache in ("l2", "l3", "dram"):
            if rng.random() < 0.4:
                params[f"prefetch_distance_{cache}"] = rng.choice((0, 1, 5, 64, 512))
        if rng.random() < 0.3:
            params["huge_pages"] = rng.choice(("on", "off"))
        build_rows, probe_rows, result_rows = case.generated_rows  # not those of a reduction, which runs the variants of the whole case
        if rng.random() < 0.25 and build_rows * probe_rows <= MAX_ZERO_HASH_PAIRS:
            params["hash"] = "zero"
        batch_rows = rng.choice((1, 3, 1000, 65536, 0))
        if result_rows > 5000 and batch_rows in (1, 3):
            batch_rows = 1000  # a call a row takes Python too long
        return Variant("jit", params, batch_rows,
                       {side: rng.choice((1, 1, 2, 3, 7)) for side in SIDES},
                       {end: rng.choice(("arrow", "arrow", "vectors")) for end in (*SIDES, "result")}, rng.choice((1, 1, 1, 2)),
                       rng.random() < 0.5, rng.random() < 0.05, rng.getrandbits(32))

    def params_text(self):
        return " ".join(f"{name}={value}" for name, value in self.params.items())


class _Feeder:
    """One side's rows, cut into batches and laid out as the variant says."""

    def __init__(self, case, variant, name):
        self.case, self.side, self.name = case, case.sides[name], name
        self.vectors = variant.interfaces[name] == "vectors"
        self.rng = random.Random(f"{variant.layout_seed}/{name}")
        self.layout = Layout(plain=case.plain, garbage_in_nulls=not case.plain, misaligned=variant.misaligned and not case.plain)
        self.columns = case._columns(self.side)
        self.cuts = self._cuts(1 if case.plain else variant.num_batches[name])
        self.has_row_id = any(item.column is None for item in self.side.payload)
        self.selects = self.vectors and not case.plain and self.rng.random() < 0.5

    def _cuts(self, num_batches):
        inner = sorted(self.rng.randint(0, self.side.num_rows) for _ in range(num_batches - 1))
        bounds = [0, *inner, self.side.num_rows]
        return list(zip(bounds, bounds[1:]))

    def arrow_children(self):
        """Child numbers of keys and payload, and the schema."""
        position = {id(self.columns[column]): child for child, column in enumerate(self.side.child_order)}
        fields = [pa.field(f"{self.name}{column}", self.columns[column].type.arrow(), self.columns[column].type.nullable)
                  for column in self.side.child_order]
        if self.side.stranger:
            fields.append(pa.field("stranger", pa.list_(pa.int32())))
        keys = [position[id(key)] for key in self.case.keys]
        payload = [ROW_ID if item.column is None else position[id(item.column)] for item in self.side.payload]
        return pa.schema(fields), keys, payload

    def arrow_batches(self):
        schema = self.arrow_children()[0]
        for first, end in self.cuts:
            skip = 0 if self.case.plain else self.rng.choice((0, 0, 0, 5))  # a struct array may have an offset, too
            arrays = []
            for column in (self.columns[number] for number in self.side.child_order):
                rows = [self.rng.randrange(len(column.values)) for _ in range(skip)] + column.indices[self.name][first:end]
                arrays.append(make_array(self.rng, column.type, column.values, rows, self.layout))
            if self.side.stranger:
                arrays.append(pa.array([[1]] * (skip + end - first), pa.list_(pa.int32())))
            yield pa.StructArray.from_arrays(arrays, fields=list(schema)).slice(skip)

    def _selection(self, first, num_rows):
        """(rows of the host's vectors, which take part). Where row ids are asked for, a range, so that they are those of the case."""
        total = num_rows + self.rng.choice((0, 1, 10))
        if self.has_row_id:
            skipped = min(first, total - num_rows)
            return total, list(range(skipped, skipped + num_rows))
        selection = self.rng.sample(range(total), num_rows)
        return total, sorted(selection) if self.rng.random() < 0.7 else selection

    def vector_batches(self):
        """(quern_batch, what it points to)."""
        for first, end in self.cuts:
            num_rows, first_row_id = end - first, first
            total, selection = self._selection(first, num_rows) if self.selects else (num_rows, None)
            if selection and self.has_row_id:
                first_row_id = first - selection[0]
            arrays = {}
            for column in self.columns:
                rows = column.indices[self.name][first:end]
                if selection is not None:
                    spread = [self.rng.randrange(len(column.values)) for _ in range(total)]
                    for position, index in zip(selection, rows):
                        spread[position] = index
                    rows = spread
                arrays[id(column)] = make_array(self.rng, column.type, column.values, rows, self.layout)
            keep = []
            payload = [None if item.column is None else arrays[id(item.column)] for item in self.side.payload]
            selected = None if selection is None else array.array("I", selection)
            yield quern_abi.raw_batch([arrays[id(key)] for key in self.case.keys], payload, selected, num_rows, first_row_id,
                                      keep), keep


def _string_at(address, num_bytes):
    if num_bytes and not address:
        raise Mismatch(f"a result column has {num_bytes} bytes but no pointer to them")
    return ctypes.string_at(address, num_bytes) if num_bytes else b""


def _result_array(column, column_type, num_rows):
    """A quern_result_column, copied."""
    if not column_type.nullable and column.validity:
        raise Mismatch("a result column that the spec calls not nullable has a validity bitmap")
    validity = pa.py_buffer(_string_at(column.validity, (num_rows + 7) // 8)) if column.validity else None
    bits_type = column_type.bits_arrow()
    if column_type.name.endswith("_view"):
        buffers = [_string_at(column.values, 16 * num_rows), _string_at(column.bytes, column.num_bytes)]
    elif column_type.name in STRING_TYPES:
        offset_bytes = 8 if column_type.name.startswith("large") else 4
        buffers = [_string_at(column.offsets, offset_bytes * (num_rows + 1)), _string_at(column.values, column.num_bytes)]
        if struct.unpack_from("<q" if offset_bytes == 8 else "<i", buffers[0], offset_bytes * num_rows)[0] != column.num_bytes:
            raise Mismatch("the last offset of a result column is not its num_bytes")
    else:
        num_bytes = (num_rows + 7) // 8 if column_type.name == "bool" else bits_type.bit_width // 8 * num_rows
        buffers = [_string_at(column.values, num_bytes)]
    result = pa.Array.from_buffers(bits_type, num_rows, [validity, *map(pa.py_buffer, buffers)], column.null_count)
    result.validate(full=True)
    return result


class _ResultReader:
    def __init__(self, case, variant):
        self.types = [dataclasses.replace(item.type, index="") if item.column else ColumnType("u64") for _, item in case.result_payload()]
        self.fields = [pa.field(f"c{number}", column_type.bits_arrow()) for number, column_type in enumerate(self.types)]
        self.vectors = variant.interfaces["result"] == "vectors"
        self.limit = variant.batch_rows or 65536
        self.batches, self.num_rows = [], 0

    def read(self, prober):
        more = True
        while more:
            if self.vectors:
                result, more = prober.next()
                num_rows = result.num_rows
                if result.num_columns != len(self.types):
                    raise Mismatch(f"a result has {result.num_columns} columns; the spec has {len(self.types)}")
                columns = [_result_array(result.columns[number], column_type, num_rows) for number, column_type in enumerate(self.types)]
            else:
                exported, more = prober.next_arrow()
                num_rows = exported.length
                batch = pa.RecordBatch._import_from_c(ctypes.addressof(exported), pa.schema(self.fields))
                batch.validate(full=True)
                columns = batch.columns
            if self.types and num_rows > self.limit:
                raise Mismatch(f"a result has {num_rows} rows; batch_rows is {self.limit}")
            self.num_rows += num_rows
            if self.types and num_rows:
                self.batches.append([_comparable(column) for column in columns])

    def table(self):
        columns = []
        for number, field in enumerate(self.fields):
            columns.append(pa.chunked_array([batch[number] for batch in self.batches], comparable_arrow(field.type)))
        return pa.table(columns, names=[field.name for field in self.fields]) if columns else None


def _comparable(column):
    return column if column.type == comparable_arrow(column.type) else column.cast(comparable_arrow(column.type))


def _bind(join, build, probe):
    schemas = {feeder.name: feeder.arrow_children() for feeder in (build, probe)}
    join.bind_arrow(*schemas["build"], *schemas["probe"])
    return schemas


def _check_result_schema(join, case, schemas):
    fields = list(join.result_schema())
    expected = case.result_payload()
    if len(fields) != len(expected):
        raise Mismatch(f"the result schema has {len(fields)} fields; the spec has {len(expected)} payload columns")
    positions = schemas["probe"][2] + schemas["build"][2]
    for field, (side, item), child in zip(fields, expected, positions):
        arrow_type = item.type.value_arrow() if item.column else pa.uint64()
        if field.type != arrow_type or field.nullable != item.type.nullable:
            raise Mismatch(f"result field {field!r} (nullable: {field.nullable}); expected {arrow_type}, nullable: {item.type.nullable}")
        if item.column and field.name != schemas[side][0].field(child).name:
            raise Mismatch(f"result field {field.name}; expected the input's name {schemas[side][0].field(child).name}")


def _append_all(join, feeder, copy_bytes, keep):
    if not feeder.vectors:
        for batch in feeder.arrow_batches():
            join.append_arrow(batch)
        return
    for batch, owners in feeder.vector_batches():
        join.append(batch, copy_bytes)
        if not copy_bytes:
            keep.append(owners)


def _probe_all(join, feeder, variant, reader):
    """Feeds the batches to the probers in turn; one prober where it counts row ids itself."""
    counts = feeder.has_row_id and not feeder.vectors
    probers = [join.prober(variant.batch_rows) for _ in range(1 if counts else variant.num_probers)]
    try:
        batches = feeder.vector_batches() if feeder.vectors else ((batch, None) for batch in feeder.arrow_batches())
        for number, (batch, owners) in enumerate(batches):
            prober = probers[number % len(probers)]
            prober.input(batch) if feeder.vectors else prober.input_arrow(batch)
            del batch
            reader.read(prober)
            del owners
    finally:
        for prober in probers:
            prober.close()


@dataclasses.dataclass
class Answer:
    num_rows: int
    table: pa.Table | None
    table_rows: int
    build_rows: int


def run(library, case, variant):
    """Compiles, builds, probes; answers the rows as bits. Raises QuernError or Mismatch."""
    build, probe = (_Feeder(case, variant, side) for side in SIDES)
    reader, keep = _ResultReader(case, variant), []
    with library.compile(case.spec(), variant.engine, variant.params_text() or None) as kernel:
        if variant.engine != "auto" and kernel.text("engine") != variant.engine:
            raise Mismatch(f"asked for engine {variant.engine}, got {kernel.text('engine')}")
        with kernel.join() as join:
            if not (build.vectors and probe.vectors and reader.vectors):
                _check_result_schema(join, case, _bind(join, build, probe))
            _append_all(join, build, variant.copy_bytes, keep)
            join.finalise()
            _probe_all(join, probe, variant, reader)
            stats = join.stats()
    answer = Answer(reader.num_rows, reader.table(), stats.table_rows, stats.build_rows)
    del keep, build, probe, join, kernel
    if len(GuardedBuffer.live):
        gc.collect()  # a reference cycle of Python's own may hold them
    if len(GuardedBuffer.live):
        held = len(GuardedBuffer.live)
        GuardedBuffer.live.clear()
        raise Mismatch(f"{held} input buffers are still held after join and probers were destroyed")
    return answer


def check_compiles_twice(library, case, variant):
    """The same spec gives the same kernel, text by text, when it is made anew."""
    texts = []
    for _ in range(2):
        library.clear_cache()
        with library.compile(case.spec(), variant.engine, variant.params_text() or None) as kernel:
            texts.append({name: kernel.text(name) for name in ("spec", "plan", "layout", "engine", "code_bytes")})
    for name, text in texts[0].items():
        if text != texts[1][name]:
            raise Mismatch(f"compiled twice, `{name}` differs: {text!r} and {texts[1][name]!r}")
        if text is None:
            raise Mismatch(f"a kernel has no text `{name}`")
    with library.compile(texts[0]["spec"], "generic") as kernel:
        if kernel.text("spec") != texts[0]["spec"]:
            raise Mismatch(f"the canonical spec prints otherwise when parsed again: {texts[0]['spec']!r} and {kernel.text('spec')!r}")


# ---- what it must answer -----------------------------------------------------------------------------------------------------------------


class Expected:
    """The oracles' rows, sorted; checks answers against them."""

    def __init__(self, case, duckdb_oracle):
        num_rows = {side: case.sides[side].num_rows for side in SIDES}
        rows = dict(zip(("probe", "build"), duckdb_oracle.pairs(case.keys, num_rows)))
        if sum(num_rows.values()) <= 20_000:
            _cross_check(python_pairs(case.keys), rows)
        self.num_rows = len(rows["probe"])
        self.table_rows, self.build_rows = count_table_rows(case.keys), num_rows["build"]
        columns = []
        for side, item in case.result_payload():
            if item.column is None:
                columns.append(rows[side].cast(pa.uint64()))
            else:
                columns.append(bits_array(item.type, item.column.values, item.column.indices[side]).take(rows[side]))
        self.table = _sorted(pa.table(columns, names=[f"c{number}" for number in range(len(columns))])) if columns else None
        self._seen = None

    def check(self, answer):
        if answer.build_rows != self.build_rows or answer.table_rows != self.table_rows:
            raise Mismatch(f"stats say build_rows {answer.build_rows}, table_rows {answer.table_rows}; "
                           f"expected {self.build_rows} and {self.table_rows}")
        if self.table is not None and self._seen is not None and answer.table.equals(self._seen):
            return  # row by row what was checked before
        if answer.num_rows != self.num_rows:
            raise Mismatch(f"{answer.num_rows} result rows; expected {self.num_rows}{_first_differences(answer.table, self.table)}")
        if self.table is not None:
            if not _sorted(answer.table).equals(self.table):
                raise Mismatch(f"result rows differ{_first_differences(answer.table, self.table)}")
            self._seen = answer.table


def _cross_check(pairs, rows):
    from_duckdb = sorted(zip(rows["probe"].to_pylist(), rows["build"].to_pylist()))
    if from_duckdb != sorted(pairs):
        different = sorted(set(from_duckdb) ^ set(pairs))[:5]
        raise AssertionError(f"the oracles disagree (a defect of this harness): pairs (probe row, build row) {different}")


def _sorted(table):
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names])
    return table.take(order).combine_chunks()


def _first_differences(answer, expected):
    """The first rows that only one side has, as text."""
    if answer is None or expected is None:
        return ""
    counts = {}
    for table, sign in ((answer, 1), (expected, -1)):
        for row in zip(*(column.to_pylist() for column in table.columns)):
            counts[row] = counts.get(row, 0) + sign
    extra = [row for row, count in counts.items() if count > 0]
    missing = [row for row, count in counts.items() if count < 0]
    lines = [f"\n  {len(extra)} distinct rows too many, {len(missing)} missing"]
    lines += [f"  unexpected: {row}" for row in extra[:3]] + [f"  missing:    {row}" for row in missing[:3]]
    return "\n".join(lines)
