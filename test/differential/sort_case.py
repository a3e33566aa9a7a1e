# SPDX-License-Identifier: Apache-2.0
"""One random sort: its spec, its rows, and its variants: ways to run it, all of which must give the rows in the
oracles' order.

    case = Case.generate(seed, number)            the same case for the same two numbers
    case.spec()                                   "sort keys=i32:desc:out,utf8:nullable payload=rowid limit=10 stable"
    case.variants()                               engine, plan parameters, batches, threads, thresholds, merges

A case is rows without a layout (sort_rows.py); row ids are in the order of the row numbers. A variant says how rows
come in and go out: Arrow structs or the host's own vectors with selections, how many threads append, finalise and read;
or that the rows come as sorted runs, which are merged. A reduction of a case drops rows, keys, payload, the limit or
the window functions; a failure is minimised by trying reductions.
"""
import dataclasses
import random

from random_case import OneInputCase, RandomVariant, once_each, random_schedule, without_each
from random_data import ColumnType
from random_spill import Spill, with_spills
from sort_order import row_classes, window_columns
from sort_rows import BIG_ROWS, WINDOW_FUNCTIONS, random_keys, random_limit, random_payload, random_size

BATCHES = (1, 7, 64, 1024, 4096)  # values of batch_size


@dataclasses.dataclass
class Output:
    """A column of the result."""
    type: ColumnType
    column: object       # None: row id, or a window function
    is_key: bool = False
    window: str = ""


@dataclasses.dataclass
class Case(OneInputCase):
    seed: int
    number: int
    num_rows: int
    keys: list
    payload_items: list
    limit: int           # 0: none
    stable: bool
    partition: int
    window: list
    stranger: bool       # an unbound child of a type that no kernel reads
    child_order: list    # permutation of the columns in the Arrow struct
    reduction: dict
    generated_rows: int  # these two before any reduction
    order: str
    plain: bool = False  # every variant lays its arrays out plainly
    known_classes: list | None = None

    @staticmethod
    def generate(seed, number, size=None):
        """`size`: rows, where they are not to be random."""
        rng = random.Random(f"sort/{seed}/{number}")
        num_rows = random_size(rng) if size is None else size
        keys, order = random_keys(rng, num_rows)
        window = rng.sample(WINDOW_FUNCTIONS, rng.randint(1, 3)) if rng.random() < 0.25 else []
        partition = rng.choice((0, 1, rng.randint(0, len(keys)), len(keys))) if window else 0
        case = Case(seed, number, num_rows, keys, random_payload(rng, keys, num_rows), random_limit(rng, num_rows),
                    rng.random() < 0.5, partition, window, rng.random() < 0.1, [], {}, num_rows, order)
        case._order_children(rng)
        return case

    def columns(self):
        """All columns once each, keys first."""
        return once_each([*self.keys, *self.payload()])

    def payload(self):
        """The payload as a batch brings it; None: a row id."""
        return [item.column for item in self.payload_items]

    def reduced(self, reduction):
        """A new case of the same numbers with less: {"keys": [..], "payload": [..]} that stay, {"rows": [first, end]},
        {"limit": 0}, {"window": []}, {"stable": false}, {"plain": true}. A dropped key that is payload too becomes a
        column of its own."""
        case = Case.generate(self.seed, self.number)
        case.reduction, case.plain = reduction, bool(reduction.get("plain"))
        case.payload_items = [case.payload_items[number]
                              for number in reduction.get("payload", range(len(case.payload_items)))]
        case.keys = [case.keys[number] for number in reduction.get("keys", range(len(case.keys)))]
        case.limit, case.stable = reduction.get("limit", case.limit), reduction.get("stable", case.stable)
        case.window = reduction.get("window", case.window)
        case.partition = min(case.partition, len(case.keys)) if case.window else 0
        case._keep_rows(*reduction.get("rows", (0, case.num_rows)))
        return case

    def spec(self, window=True):
        text = "sort keys=" + ",".join(key.text() for key in self.keys)
        if self.payload_items:
            text += " payload=" + ",".join(item.type.text() for item in self.payload_items)
        text += f" limit={self.limit}" if self.limit else ""
        text += " stable" if self.stable else ""
        if not self.window or not window:
            return text
        return text + (f" partition={self.partition}" if self.partition else "") + " window=" + ",".join(self.window)

    def outputs(self, window=True):
        """The result's columns: keys that come out, payload, window functions."""
        plain = lambda column_type: dataclasses.replace(column_type, index="", collation="")
        outputs = [Output(plain(key.type), key, True) for key in self.keys if key.out]
        outputs += [Output(plain(item.type) if item.column else ColumnType("u64"), item.column)
                    for item in self.payload_items]
        return outputs + [Output(ColumnType("u64"), None, window=name) for name in self.window if window]

    def classes(self):
        """The class of each row (sort_order.py), once the case is complete."""
        if self.known_classes is None:
            self.known_classes = row_classes(self.keys, self.num_rows)
        return self.known_classes

    def has_row_id(self):
        return any(item.column is None for item in self.payload_items)

    def is_ordered(self):
        """Whether an answer depends on the row ids."""
        return self.stable or self.has_row_id()

    def window_columns(self, partitions, classes):
        return window_columns(self.window, partitions, classes)

    def smaller(self):
        """Reductions one step smaller than the case's own, the big steps first."""
        now = self.reduction
        yield from self.simpler_inputs()
        for name, numbers, fewest in (("payload", self.payload_items, 0), ("keys", self.keys, 1),
                                      ("window", self.window, 0)):
            kept = now.get(name, self.window if name == "window" else list(range(len(numbers))))
            for some in without_each(list(kept), fewest):
                yield {**now, name: some}
        if self.limit:
            yield {**now, "limit": 0}
        if self.stable:
            yield {**now, "stable": False}

    def variants(self):
        """The ways to run this case: generic, compiled, both again otherwise, and a merge."""
        rng = random.Random(f"sort variants/{self.seed}/{self.number}")
        first, simple = Variant.random(rng, self), Variant.random(rng, self)
        simple = dataclasses.replace(simple, params={}, append_threads=0, whole_run=0, shuffled=False, set_threshold="",
                                     memory_limit=0)
        variants = [dataclasses.replace(first, engine="generic"), dataclasses.replace(first, engine="jit"),
                    dataclasses.replace(simple, engine="generic"), dataclasses.replace(simple, engine="jit"),
                    dataclasses.replace(Variant.random(rng, self), engine="jit"),
                    dataclasses.replace(Variant.random(rng, self),
                                        engine=rng.choice(("generic", "jit", "auto", "auto")))]
        if rng.random() < 0.3:
            runs = rng.choice((1, 2, 3, 7, 20, max(self.generated_rows, 1) if self.generated_rows < 200 else 64))
            variants[5] = dataclasses.replace(variants[5], merged_runs=runs, whole_run=0)
        spills = random.Random(f"sort variants/{self.seed}/{self.number}/spill")
        variants = list(with_spills(spills, variants, lambda variant: not variant.merged_runs
                                    and not variant.memory_limit))
        return variants[:2] + variants[4:] if self.generated_rows >= BIG_ROWS else variants


# ---- how to run it ---------------------------------------------------------------------------------------------------


def random_params(rng, case):
    params = {}
    numbers = {"batch_size": (*BATCHES, 2, 1000), "test.sort_method": ("radix", "radix", "comparison"),
               "prefix_words": (1, 2, 3, 4), "bucket_bytes": (0, 4096, 65536), "dictionary_rows": (0, 1, 100, 65536),
               "top_rows": (0, 1, 5, 1000, 262144), "huge_pages": ("on", "off"),
               "prefetch_string_bytes": (0, 64, 65536), "prefetch_word_rows": (0, 1, 512),
               "prefetch_dictionary_rows": (0, 1, 100, 128), "prefetch_merge_rows": (0, 1, 64),
               "spill_sort": ("ranges", "ranges", "runs")}
    for name, values in numbers.items():
        if rng.random() < 0.5:
            params[name] = rng.choice(values)
    if case.generated_rows > BIG_ROWS and params.get("batch_size", 64) < 64:
        params["batch_size"] = 64
    if rng.random() < 0.2:
        params["prefetch"] = "off"
    for loop in ("gather", "collision"):
        if rng.random() < 0.4:
            params[f"prefetch_{loop}"] = random_schedule(rng)
    return params


@dataclasses.dataclass
class Variant(RandomVariant):
    engine: str
    params: dict
    num_batches: int
    interfaces: dict       # of "input" and "result": "arrow" or "vectors"
    append_threads: int    # each by an input of its own; 0: this one alone
    finalise_threads: int  # 0: this one alone
    num_readers: int
    threaded_read: bool
    batch_rows: int        # of results
    copy_bytes: bool
    read_threshold: bool   # after each batch; of sorts with a limit
    set_threshold: str     # "": none; "right": a row at or after the last one that comes out; "wrong": any row
    shuffled: bool         # rows do not come in the order of their ids
    whole_run: int         # threads of quern_job_run; 0: step by step
    merged_runs: int       # 0: a sort
    memory_limit: int      # 0: none; bytes, which may be too few
    misaligned: bool
    layout_seed: int
    spill: Spill | None = None  # a memory limit, and where rows may be written

    @staticmethod
    def random(rng, case):
        batch_rows = rng.choice((1, 7, 1000, 65536, 0))
        if case.generated_rows > 5000 and batch_rows in (1, 7):
            batch_rows = 1000  # a call a row takes Python too long
        return Variant("jit", random_params(rng, case), rng.choice((1, 1, 2, 3, 7, 20)),
                       {end: rng.choice(("arrow", "vectors")) for end in ("input", "result")},
                       rng.choice((0, 0, 0, 1, 2, 2, 3)),
                       rng.choice((0, 0, 1, 2, 3)), rng.choice((1, 1, 2, 3)), rng.random() < 0.5, batch_rows,
                       rng.random() < 0.5, rng.random() < 0.5, rng.choice(("", "", "", "right", "wrong")),
                       rng.random() < 0.3, rng.choice((1, 2, 3)) if rng.random() < 0.12 else 0, 0,
                       rng.choice((1000, 20_000, 100_000, 300_000, 3_000_000)) if rng.random() < 0.1 else 0,
                       rng.random() < 0.05,
                       rng.getrandbits(32))

    def is_concurrent(self):
        """Whether two threads may bring rows at once."""
        return self.append_threads > 1 or self.whole_run > 1

    def mixes_rows(self):
        """Whether rows may come in another order than that of their ids."""
        return self.is_concurrent() or self.shuffled
