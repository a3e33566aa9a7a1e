# SPDX-License-Identifier: Apache-2.0
"""One random aggregation: its spec, its rows, and its variants: ways to run it, all of which must give the oracles'
groups.

    case = Case.generate(seed, number)            the same case for the same two numbers
    case.spec()                                   "aggregate keys=i32:nullable aggs=count_star,sum(i64):filter"
    case.variants()                               engine, plan parameters, batches, threads, states: five different ways

A case is rows without a layout (aggregate_rows.py); row ids are in the order of the row numbers. A variant says how
rows come in and go out: Arrow structs or the host's own vectors with selections, in one aggregation or as states of
several, how many threads append, finalise and read. A reduction of a case drops rows, keys or aggregates; a failure is
minimised by trying reductions.
"""
import dataclasses
import random

from aggregate_functions import ORDERED
from aggregate_rows import BATCHES, BIG_ROWS, MANY_GROUPS, group_keys, random_aggregates, random_keys, random_sizes
from join_rows import WORD_BITS, key_bits
from random_case import OneInputCase, RandomVariant, once_each, random_schedule, without_each
from random_data import INTEGER_CODES, STRING_TYPES, TEMPORAL_CODES
from random_spill import Spill, with_spills

MAX_ZERO_HASH_PAIRS = 300_000  # with equal hashes every row meets every group


def _fit_word(keys):
    """Whether there are keys and they fit one packed key. For the kernel a dictionary key is a number of 32 bits."""
    bits = [32 + key.type.nullable if key.type.index else key_bits(key.type) for key in keys]
    return bool(bits) and None not in bits and sum(bits) <= WORD_BITS


@dataclasses.dataclass
class Case(OneInputCase):
    seed: int
    number: int
    num_rows: int
    keys: list
    aggregates: list
    stranger: bool        # an unbound child of a type that no kernel reads
    child_order: list     # permutation of the columns in the Arrow struct
    reduction: dict
    generated_rows: int   # these three before any reduction
    generated_groups: int
    generated_keys: list
    plain: bool = False   # every variant lays its arrays out plainly

    @staticmethod
    def generate(seed, number, sizes=None):
        """`sizes`: tuples of keys and rows, where they are not to be random."""
        rng = random.Random(f"aggregate/{seed}/{number}")
        num_tuples, num_rows = sizes or random_sizes(rng)
        keys = random_keys(rng, num_tuples, num_rows)
        if keys:
            num_rows = len(keys[0].indices)
        case = Case(seed, number, num_rows, keys, random_aggregates(rng, keys, num_rows), rng.random() < 0.1, [], {},
                    num_rows, 0, keys)
        case.generated_groups = len(set(group_keys(keys, num_rows)))
        case._order_children(rng)
        return case

    def columns(self):
        """All columns once each, keys first."""
        return once_each([*self.keys, *self.payload()])

    def payload(self):
        """The columns of all aggregates as a batch brings them."""
        return [column for aggregate in self.aggregates for column in [*aggregate.arguments, aggregate.filter]
                if column]

    def reduced(self, reduction):
        """A new case of the same numbers with less: {"keys": [..], "aggs": [..]} that stay, {"rows": [first, end]},
        {"plain": true}."""
        case = Case.generate(self.seed, self.number)
        case.reduction, case.plain = reduction, bool(reduction.get("plain"))
        case.keys = [case.keys[number] for number in reduction.get("keys", range(len(case.keys)))]
        case.aggregates = [case.aggregates[number] for number in reduction.get("aggs", range(len(case.aggregates)))]
        if not case.keys and not case.aggregates:
            raise ValueError("neither keys nor aggregates are left")
        case._keep_rows(*reduction.get("rows", (0, case.num_rows)))
        return case

    def spec(self):
        text = "aggregate"
        if self.keys:
            text += " keys=" + ",".join(dataclasses.replace(key.type, null_equal=False).text() for key in self.keys)
        if self.has_expressions():
            columns, calls = self._columns_and_calls()
            return f"{text} in={','.join(columns)} aggs={','.join(calls)}"
        return text + (" aggs=" + ",".join(aggregate.text() for aggregate in self.aggregates)
                       if self.aggregates else "")

    def has_expressions(self):
        """Whether the spec has `in`: a batch brings the same columns, and arguments are expressions of these values."""
        types = [*(argument for aggregate in self.aggregates for argument in aggregate.types),
                 *(aggregate.filter.type for aggregate in self.aggregates if aggregate.filter)]
        chooses = random.Random(f"aggregate expressions/{self.seed}/{self.number}").random() < 0.4
        return chooses and bool(types) and all(is_value_type(column_type) for column_type in types)

    def result_names(self):
        """Those that the library gives the aggregates' columns."""
        if self.has_expressions():
            return self._columns_and_calls()[1]
        return [aggregate.canonical_text() for aggregate in self.aggregates]

    def _columns_and_calls(self):
        """The list `in`, and the aggregates."""
        rng = random.Random(f"aggregate expressions of/{self.seed}/{self.number}")
        columns, calls = [], []
        for aggregate in self.aggregates:
            computes = rng.random() < 0.6 and all(may_be_computed(argument) for argument in aggregate.types)
            expressions = []
            for argument in aggregate.types:
                number = len(columns)
                expressions.append(f"coalesce(${number},${number})" if computes else f"${number}")
                columns.append(value_type_text(argument))
            condition = None
            if aggregate.filter:
                number = len(columns)
                condition = rng.choice((f"${number}", f"and(${number},${number})"))
                columns.append(dataclasses.replace(aggregate.filter.type, nullable=True).text())
            calls.append(aggregate.text_of(expressions, condition))
        return columns, calls

    def is_ordered(self):
        """Whether an answer depends on the row ids."""
        return any(aggregate.function in ORDERED for aggregate in self.aggregates)

    def fits_word(self):
        """Whether the spec may ask for the layouts that need keys of one word."""
        return _fit_word(self.keys)

    def smaller(self):
        """Reductions one step smaller than the case's own, the big steps first."""
        now = self.reduction
        yield from self.simpler_inputs()
        for name, numbers in (("aggs", self.aggregates), ("keys", self.keys)):
            for kept in without_each(now.get(name, list(range(len(numbers)))), 0):
                yield {**now, name: kept}

    def variants(self):
        """The ways to run this case: generic, compiled, and both again otherwise."""
        return variants_of(self, f"aggregate variants/{self.seed}/{self.number}")


# ---- expressions ---------------------------------------------------------------------------------------------------


def is_value_type(column_type):
    """Whether expressions have values of the type."""
    if column_type.is_decimal and not column_type.has_usual_scale:
        return False
    is_text = column_type.name in STRING_TYPES
    return column_type.name != "fixed_binary" and (is_text or not column_type.index)


def may_be_computed(column_type):
    """Whether coalesce of a column twice is that column to the bit: no NaN changes, and no text is computed."""
    return column_type.name not in STRING_TYPES and not column_type.is_float


def value_type_text(column_type):
    if not column_type.is_decimal:
        return column_type.text()
    nullable = ":nullable" if column_type.nullable else ""
    return f"{column_type.name}({column_type.precision},{column_type.scale}){nullable}"


# ---- how to run it ---------------------------------------------------------------------------------------------------


def random_params(rng, case):
    params = {}
    if rng.random() < 0.7:
        fits = _fit_word(case.generated_keys)
        params["group_layout"] = rng.choice(("auto", "dense", "open", "directory") if fits else ("auto", "directory"))
    numbers = {"batch_size": (*BATCHES, 2, 1000), "group_load_percent": (10, 33, 50, 75), "partition_bits": range(9),
               "local_groups": (1, 1, 5, 100, 1000, 100_000), "inline_group_bytes": (12, 20, 28, 60),
               "huge_pages": ("on", "off"), "states": ("vectors", "single"), "runs": ("lanes", "rows"),
               "adapt": ("on", "off"),
               "prefetch_input_rows": (0, 8, 65536),
               "prefetch_string_bytes": (0, 64, 65536),
               "prefetch_partition_bytes": (0, 64, 4096), "prefetch_scan_bytes": (0, 64, 65536),
               "prefetch_rebuild_rows": (0, 1, 512), "prefetch_state_rows": (0, 1, 256)}
    for name, values in numbers.items():
        if rng.random() < 0.5:
            params[name] = rng.choice(values)
    if case.generated_rows > BIG_ROWS and params.get("batch_size", 64) < 64:
        params["batch_size"] = 64
    if rng.random() < 0.2:
        params["prefetch"] = "off"
    for loop in ("update_dense", "update_open", "update_directory"):
        if rng.random() < 0.4:
            params[f"prefetch_{loop}"] = random_schedule(rng)
    if rng.random() < 0.3 and case.generated_rows * case.generated_groups <= MAX_ZERO_HASH_PAIRS:
        params["test.hash"] = "zero"
    return params


RANGED_TYPES = (*INTEGER_CODES, *TEMPORAL_CODES)
RANGE_HINTS = ("right", "right", "narrow", "wide", "shifted", "inverted", "whole")


def _random_hints(rng, case):
    """{"groups": a guess, "ranges": how wrong a range is, by key}; without a hint, nothing."""
    hints = {}
    if rng.random() < 0.35:
        groups = case.generated_groups
        hints["groups"] = rng.choice((groups, groups, 0, 1, groups // 3, 4 * groups, groups + 100_000))
    if rng.random() < 0.35:
        hints["ranges"] = [rng.choice(RANGE_HINTS) if rng.random() < 0.8 else None for _ in case.generated_keys]
    return hints


@dataclasses.dataclass
class Variant(RandomVariant):
    engine: str
    params: dict
    num_batches: int
    interfaces: dict       # of "input", "states" and "result": "arrow" or "vectors"
    append_threads: int    # each by an input of its own; 0: this one alone
    finalise_threads: int  # 0: this one alone
    stages: int            # aggregations that the rows go into; beyond the last one, their states
    partitions: int        # partitions by which states and results are read; 0: none
    num_readers: int
    threaded_read: bool
    batch_rows: int        # of results
    state_rows: int        # of batches of states
    hints: dict
    shuffled: bool         # rows do not come in the order of their ids
    whole_run: int         # threads of quern_job_run; 0: step by step
    misaligned: bool
    layout_seed: int
    spill: Spill | None = None  # a memory limit, and where rows may be written

    @staticmethod
    def random(rng, case):
        batch_rows = rng.choice((1, 7, 1000, 65536, 0))
        if case.generated_groups > 5000 and batch_rows in (1, 7):
            batch_rows = 1000  # a call a row takes Python too long
        return Variant("jit", random_params(rng, case), rng.choice((1, 2, 3, 7, 20)),
                       {end: rng.choice(("arrow", "vectors")) for end in ("input", "states", "result")},
                       rng.choice((0, 0, 1, 2, 2, 3, 4)),
                       rng.choice((0, 0, 1, 2, 3)), rng.choice((1, 1, 1, 2, 3)), rng.choice((0, 0, 0, 1, 3, 8)),
                       rng.choice((1, 1, 2, 3)), rng.random() < 0.5, batch_rows,
                       1000 if batch_rows in (1, 7) and rng.random() < 0.7 else batch_rows, _random_hints(rng, case),
                       rng.random() < 0.3, rng.choice((1, 2, 3)) if rng.random() < 0.12 else 0,
                       rng.random() < 0.05, rng.getrandbits(32))

    def is_concurrent(self):
        """Whether two threads may bring rows at once."""
        return self.append_threads > 1 or self.whole_run > 1

    def mixes_rows(self):
        """Whether rows may reach the groups in another order than that of their ids."""
        return self.is_concurrent() or self.shuffled or self.stages > 1

    def key_spelling(self):
        """The row whose spelling of the key a group shows: "first", or "any"."""
        return "any" if self.mixes_rows() else "first"


def variants_of(case, seed):
    rng = random.Random(seed)
    first = Variant.random(rng, case)
    simple = dataclasses.replace(Variant.random(rng, case), params={}, stages=1, append_threads=0, whole_run=0,
                                 shuffled=False)
    variants = [dataclasses.replace(first, engine="generic"), dataclasses.replace(first, engine="jit"),
                dataclasses.replace(simple, engine="generic"), dataclasses.replace(simple, engine="jit"),
                dataclasses.replace(Variant.random(rng, case), engine="jit"),
                dataclasses.replace(Variant.random(rng, case),
                                    engine=rng.choice(("generic", "jit", "auto", "auto")))]
    if not case.fits_word():  # a reduction may have left no keys
        for variant in variants:
            variant.params = {name: value for name, value in variant.params.items() if value not in ("dense", "open")}
    variants = list(with_spills(random.Random(f"{seed}/spill"), variants))
    return variants[:2] + variants[4:5] if case.generated_rows > BIG_ROWS else variants


def has_many_groups(case):
    return case.generated_groups >= MANY_GROUPS
