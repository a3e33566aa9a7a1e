# SPDX-License-Identifier: Apache-2.0
"""One random join: its spec, its rows, and its variants: ways to run it, all of which must give the oracles' rows.

    case = Case.generate(seed, number)            the same case for the same two numbers
    case.spec()                                   "join.left keys=i32:nullable build=utf8 probe=rowid residual=f64:lt"
    case.variants()                               engine, plan parameters, batches, threads: five different ways

A case is rows without a layout (join_rows.py). A variant says how they come in and go out: Arrow structs or the host's
own vectors with selections, how many threads append, finalise and probe. A reduction of a case drops rows, keys,
conjuncts or payload, or makes the join an inner one; a failure is minimised by trying reductions.
"""
import dataclasses
import random

from join_kinds import KINDS, NEVER, Kind, has_one_key
from join_rows import SIDES, Column, fit_word, mixed_keys, narrow_keys, random_payload, random_residuals, random_sizes
from oracle import count_pairs, rows_of_first_keys
from random_case import RandomCase, RandomVariant, first_rows_text, once_each, random_schedule, without_each
from random_data import ColumnType, with_nulls
from random_spill import Spill, with_spills

MAX_RESULT_ROWS = 200_000
MAX_ZERO_HASH_PAIRS = 2_000_000  # with equal hashes every probe row meets every build row
# Plan parameters that came with the kinds, besides `layout`; a library before them has none of these.
PARAMS_OF_KINDS = {"partition_bits": range(11), "open_load_percent": (10, 40, 60, 75),
                   "inline_key_bytes": (12, 20, 28, 36, 60, 68)}
BIG_ROWS = 20_000                # above it Python is slow: fewer variants


@dataclasses.dataclass
class Side:
    name: str
    num_rows: int
    payload: list
    child_order: list      # permutation of the side's columns in the Arrow struct
    stranger: bool         # an unbound child of a type that no kernel reads


@dataclasses.dataclass
class Output:
    """A column of the result."""
    side: str              # "probe", "build", or "mark": no column of an input
    column: Column | None  # None: row id, mark
    type: ColumnType


def _random_kind(rng):
    return KINDS["inner"] if rng.random() < 0.2 else rng.choice(list(KINDS.values()))


def _fit_to_kind(rng, kind, keys, residuals):
    """Keys and conjuncts that the kind allows. Kinds whose answer a null makes unknown get one key, with nulls more
    often than elsewhere."""
    if has_one_key(rng, kind):
        key = _with_type(keys[0], null_equal=False)
        return [_with_nulls(rng, key) if rng.random() < 0.4 else key], []
    if kind.marks and (len(keys) > 1 or residuals):
        keys = [_with_type(key, null_equal=key.type.nullable) for key in keys]
    return keys, residuals


def _with_type(key, **changes):
    key.type = dataclasses.replace(key.type, **changes)
    return key


def _with_nulls(rng, key):
    for side in SIDES:
        key.indices[side] = with_nulls(rng, key.indices[side], rng.choice((0, 0.001, 0.1, 0.5)))
    return _with_type(key, nullable=True)


@dataclasses.dataclass
class Case(RandomCase):
    seed: int
    number: int
    kind: Kind
    keys: list
    residuals: list
    sides: dict
    reduction: dict
    generated_rows: tuple  # build, probe, result at most; before any reduction
    plain: bool = False    # every variant lays its arrays out plainly

    @staticmethod
    def generate(seed, number, sizes=None):
        """`sizes`: of each side, where they are not to be random."""
        rng = random.Random(f"{seed}/{number}")
        kind, sizes = _random_kind(rng), dict(sizes) if sizes else random_sizes(rng)
        keys = narrow_keys(rng, sizes) if rng.random() < 0.55 else mixed_keys(rng, sizes)
        keys, residuals = _fit_to_kind(rng, kind, keys, random_residuals(rng, keys, sizes))
        shared = keys + [conjunct.column for conjunct in residuals]
        sides = {}
        for side in SIDES:
            payload = random_payload(rng, shared, side, sizes[side]) if kind.has_columns(side) else []
            sides[side] = Side(side, sizes[side], payload, [], rng.random() < 0.1)
        case = Case(seed, number, kind, keys, residuals, sides, {}, ())
        if kind.name == "single" and rng.random() < 0.35:
            case._keep_rows("build", rows_of_first_keys(case.keys, "build"))
        while count_pairs(case.keys) > MAX_RESULT_ROWS:
            larger = max(SIDES, key=lambda side: case.sides[side].num_rows)
            case._keep_rows(larger, range(case.sides[larger].num_rows // 2))
        case._order_children(rng)
        case.generated_rows = (*(case.sides[side].num_rows for side in SIDES), case._most_result_rows())
        return case

    def _most_result_rows(self):
        alone = sum(self.sides[side].num_rows for side in SIDES if self.kind.alone(side) != NEVER)
        return alone + count_pairs(self.keys)  # whatever the kind: a reduction may make it an inner join

    def _order_children(self, rng):
        for side in self.sides.values():
            side.child_order = list(range(len(self.columns(side))))
            rng.shuffle(side.child_order)

    def columns(self, side):
        """The side's columns once each, keys first."""
        return once_each([*self.keys, *(item.column for item in side.payload),
                          *(conjunct.column for conjunct in self.residuals)])

    def _keep_rows(self, side, rows):
        for column in self.columns(self.sides[side]):
            indices = column.indices[side]
            column.indices[side] = [indices[row] for row in rows]
        self.sides[side].num_rows = len(rows)

    def reduced(self, reduction):
        """A new case of the same numbers with less: {"kind": "inner"}, {"keys": [..], "residual": [..], "build": [..],
        "probe": [..]} the columns that stay, {"build_rows": [first, end], "probe_rows": ..}, {"plain": true}. What
        repeats a dropped key becomes a column of its own."""
        case = Case.generate(self.seed, self.number)
        case.reduction, case.plain = reduction, bool(reduction.get("plain"))
        case.kind = KINDS[reduction.get("kind", case.kind.name)]
        case.residuals = [case.residuals[number] for number in reduction.get("residual", range(len(case.residuals)))]
        for name, side in case.sides.items():
            side.payload = [side.payload[number] for number in reduction.get(name, range(len(side.payload)))]
        case._keep_keys(reduction.get("keys", range(len(case.keys))))
        for name, side in case.sides.items():
            case._keep_rows(name, range(*reduction.get(f"{name}_rows", (0, side.num_rows))))
        if count_pairs(case.keys) > MAX_RESULT_ROWS:
            raise ValueError("the reduced case is too large")
        case._order_children(random.Random(0))
        return case

    def _keep_keys(self, numbers):
        kept = [self.keys[number] for number in numbers]
        for dropped in (key for key in self.keys if not any(key is other for other in kept)):
            users = [item for side in self.sides.values() for item in side.payload] + self.residuals
            own = Column(dataclasses.replace(dropped.type, collation="", null_equal=False), dropped.values,
                         dropped.indices)
            for user in users:
                if user.column is dropped:
                    user.column = own
        self.keys = kept

    def spec(self):
        text = f"join.{self.kind.name} keys=" + ",".join(key.type.text() for key in self.keys)
        for name, side in self.sides.items():
            text += f" {name}=" + ",".join(item.type.text() for item in side.payload) if side.payload else ""
        return text + (" residual=" + ",".join(conjunct.text() for conjunct in self.residuals)
                       if self.residuals else "")

    def outputs(self):
        """The result's columns: probe payload, a mark, build payload."""
        outputs = []
        for side in ("probe", "build"):
            for item in self.sides[side].payload:
                nullable = item.type.nullable or self.kind.nulls_columns(side)
                outputs.append(Output(side, item.column, dataclasses.replace(item.type, nullable=nullable)))
            if side == "probe" and self.kind.marks:
                nullable = any(key.type.nullable and not key.type.null_equal for key in self.keys)
                outputs.append(Output("mark", None, ColumnType("bool", nullable=nullable)))
        return outputs

    def fits_word(self):
        """Whether the spec may ask for the layouts that need keys of one word."""
        return fit_word(self.keys)

    def smaller(self):
        """Reductions one step smaller than the case's own, the big steps first."""
        now = self.reduction
        yield from self.simpler_inputs()
        for side in SIDES:
            for kept in without_each(now.get(side, list(range(len(self.sides[side].payload)))), 0):
                yield {**now, side: kept}
        for name, numbers, fewest in (("residual", self.residuals, 0), ("keys", self.keys, 1)):
            for kept in without_each(now.get(name, list(range(len(numbers)))), fewest):
                yield {**now, name: kept}
        if self.kind.name != "inner":
            yield {**now, "kind": "inner"}

    def _fewer_rows(self):
        now = self.reduction
        for side in SIDES:
            first, end = now.get(f"{side}_rows", [0, self.sides[side].num_rows])
            middle = (first + end) // 2
            if end - first > 1:
                yield {**now, f"{side}_rows": [first, middle]}
                yield {**now, f"{side}_rows": [middle, end]}
            if 1 < end - first <= 16:
                yield {**now, f"{side}_rows": [first + 1, end]}
                yield {**now, f"{side}_rows": [first, end - 1]}

    def rows_text(self, most=8):
        """The first rows of each side: keys, then payload and residual, as physical values."""
        texts = []
        for name, side in self.sides.items():
            columns = self.columns(side)
            texts.append(first_rows_text(name, side.num_rows, columns, [column.indices[name] for column in columns],
                                         most))
        return "\n".join(texts)

    def variants(self):
        """The ways to run this case: generic, compiled, and both again otherwise."""
        rng = random.Random(f"variants/{self.seed}/{self.number}")
        first = Variant.random(rng, self)
        default = dataclasses.replace(first, params={})
        variants = [dataclasses.replace(first, engine="generic"), dataclasses.replace(first, engine="jit"),
                    dataclasses.replace(default, engine=rng.choice(("generic", "jit"))),
                    dataclasses.replace(Variant.random(rng, self), engine="jit"),
                    dataclasses.replace(Variant.random(rng, self),
                                        engine=rng.choice(("generic", "jit", "auto", "auto")))]
        variants = list(with_spills(random.Random(f"variants/{self.seed}/{self.number}/spill"), variants))
        return variants[:3] if max(self.generated_rows) > BIG_ROWS else variants


# ---- how to run it ---------------------------------------------------------------------------------------------------


def random_params(rng, case):
    params = {}
    if rng.random() < 0.7:
        layouts = ("auto", "unchained", "dense", "dense", "open", "open") if case.fits_word() else ("auto", "unchained")
        params["layout"] = rng.choice(layouts)
    if rng.random() < 0.7:
        params["batch_size"] = rng.choice((1, 7, 64, 1024, 1024, 4096))
    if rng.random() < 0.5:
        params["prefetch_group"] = rng.choice((1, 3, 64, 4096))
    if rng.random() < 0.2:
        params["prefetch"] = "off"
    for loop in ("build_dense", "build_open", "build_unchained", "probe_dense", "probe_open", "probe_unchained"):
        if rng.random() < 0.4:
            params[f"prefetch_{loop}"] = random_schedule(rng)
    for name, distances in (("string_bytes", (0, 64, 65536)), ("partition_bytes", (0, 64, 4096))):
        if rng.random() < 0.3:
            params[f"prefetch_{name}"] = rng.choice(distances)
    if rng.random() < 0.3:
        params["huge_pages"] = rng.choice(("on", "off"))
    for name, values in PARAMS_OF_KINDS.items():
        if rng.random() < 0.3:
            params[name] = rng.choice(values)
    build_rows, probe_rows = case.generated_rows[:2]  # not those of a reduction, which runs the variants of the whole
                                                      # case
    if rng.random() < 0.25 and build_rows * max(build_rows, probe_rows) <= MAX_ZERO_HASH_PAIRS:
        params["test.hash"] = "zero"
    return params


@dataclasses.dataclass
class Variant(RandomVariant):
    engine: str
    params: dict
    batch_rows: int        # of results
    num_batches: dict      # per side
    interfaces: dict       # per side: "arrow" or "vectors"; of "result" too
    append_threads: int    # each by an input of its own; 0: this one alone
    finalise_threads: int  # 0: this one alone
    num_probers: int
    threaded_probe: bool   # a thread for each prober; otherwise they take turns
    copy_bytes: bool
    misaligned: bool
    layout_seed: int
    spill: Spill | None = None  # a memory limit, and where rows may be written

    @staticmethod
    def random(rng, case):
        params = random_params(rng, case)
        batch_rows = rng.choice((1, 3, 1000, 65536, 0))
        if case.generated_rows[2] > 5000 and batch_rows in (1, 3):
            batch_rows = 1000  # a call a row takes Python too long
        return Variant("jit", params, batch_rows, {side: rng.choice((1, 1, 2, 3, 7)) for side in SIDES},
                       {end: rng.choice(("arrow", "arrow", "vectors")) for end in (*SIDES, "result")},
                       rng.choice((0, 0, 1, 2, 3)),
                       rng.choice((0, 0, 1, 2, 3)), rng.choice((1, 1, 2, 3)), rng.random() < 0.5, rng.random() < 0.5,
                       rng.random() < 0.05, rng.getrandbits(32))
