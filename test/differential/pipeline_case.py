# SPDX-License-Identifier: Apache-2.0
"""One random pipeline: its source, its steps and its end, and its variants, which must all give DuckDB's rows.

    case = Case.generate(seed, number)            the same case for the same two numbers
    case.spec()                                   "pipeline in=i32,f64 | filter i32 >= 20 [$0] | aggregate .. [$0; $1]"
    case.stages                                   the rows in front of each step, and of the end

A case is drawn step by step, with the rows in front of the step at hand: so conditions, keys and divisors have values
that these rows have. A reduction drops rows of the source or of tables, steps, or parts of the end; behind fewer steps
all columns are emitted.
"""
import dataclasses
import random

import aggregate_case
import join_case
import sort_case
from map_expressions import type_text
from pipeline_ends import EmitEnd, random_end
from pipeline_rows import BIG_ROWS, is_value, random_size, random_source
from pipeline_steps import (ReduceStep, random_filter, random_guarded_division, random_map, random_probe,
                            reduction_places)
from random_case import OneInputCase, RandomVariant, first_rows_text, without_each
from random_spill import STORES, Spill, with_spills

MOST_STEPS = 5
ROWS_PER_BATCH = (1, 7, 1000, 65536)
# Batches of one row take Python too long where there are many.
_MOST_BATCHES = 300


def _random_steps(rng, rows, name, first_row_id):
    """(steps, the rows behind them)."""
    steps, count = [], rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5))
    while len(steps) < count and not rows.failed_at:
        words = ["map"] if not rows.columns else ["filter"] * 4 + ["map"] * 5 + ["probe"] * 6 + ["division"]
        word = rng.choice(words)
        if word == "filter":
            made = [random_filter(rng, rows, name)]
        elif word == "probe":
            made = [random_probe(rng, rows, name, first_row_id)]
        else:
            made = random_guarded_division(rng, rows, name) if word == "division" else None
            made = made or [random_map(rng, rows, name)]
        behind = rows
        for step in made:
            behind = step.apply(behind)
        if rows.num_rows and not behind.num_rows and rng.random() < 0.85:
            continue  # few cases are to have no rows
        rows = behind
        for step in made:
            if step.word == "probe":
                step.join.place = len(steps)
                _add_reduction(rng, steps, step)
            steps.append(step)
    return steps, rows


def _add_reduction(rng, steps, step):
    places = reduction_places(steps, step) if rng.random() < 0.35 else []
    if places:
        place, keys = rng.choice(places)
        steps.insert(place, ReduceStep(step, keys))


@dataclasses.dataclass
class Case(OneInputCase):
    seed: int
    number: int
    source: object         # Rows
    with_digits: list      # whether the spec has digits and scale of a decimal column of the source
    steps: list
    end: object
    first_row_id: int      # of the source's row 0, where row ids come out
    stranger: bool         # an unbound child of a type that no kernel reads
    child_order: list      # permutation of the source's columns in the Arrow struct
    reduction: dict
    stages: list
    generated_rows: list   # of each stage, before any reduction
    plain: bool = False    # every variant lays its arrays out plainly
    partition: int = 0

    @staticmethod
    def generate(seed, number):
        rng, name = random.Random(f"pipeline/{seed}/{number}"), (seed, number)
        source = random_source(rng, random_size(rng))
        with_digits = [is_value(column.type) and rng.random() < 0.7 for column in source.columns]
        first_row_id = rng.choice((0, 0, 0, 5, 1 << 40))
        steps, rows = _random_steps(rng, source, name, first_row_id)
        end = random_end(rng, rows, name, first_row_id, bool(steps))
        case = Case(seed, number, source, with_digits, steps, end, first_row_id, rng.random() < 0.1, [], {}, [],
                    [])
        case._order_children(rng)
        case._pass_rows()
        case.generated_rows = [stage.num_rows for stage in case.stages]
        return case

    def _pass_rows(self):
        """The rows in front of each step, and of the end, which gets its own."""
        self.stages = [self.source]
        for step in self.steps:
            self.stages.append(step.apply(self.stages[-1]))
        self.end.bind(self.stages[-1])

    # ---- what a feeder of the source asks ----

    @property
    def keys(self):
        return self.source.columns

    @property
    def num_rows(self):
        return self.source.num_rows

    @num_rows.setter
    def num_rows(self, num_rows):
        self.source.num_rows, self.source.ids = num_rows, list(range(num_rows))

    def payload(self):
        return []

    def columns(self):
        return self.keys

    def tells_row_ids(self):
        """Whether row ids of the source come out, or are compared with others."""
        joins = [step.join for step in self.steps if step.word == "probe"]
        joins += [self.end.join] if self.end.word == "build" else []
        return any(join.has_flow_row_ids() for join in joins)

    def is_ordered(self):
        """Whether an answer depends on the row ids."""
        return self.end.is_ordered() or self.tells_row_ids()

    # ---- what comes out ----

    @property
    def failed_at(self):
        """The step at which a row has no result; None where all rows have one."""
        return self.stages[-1].failed_at

    def may_fail(self):
        """Whether the pipeline may end in an error of these rows."""
        return bool(self.failed_at) or self.end.may_fail()

    def tables(self):
        """The join of each step that probes or reduces, in order."""
        return [step.table for step in self.steps if step.table]

    def spec(self):
        types = [type_text(column.type) + ":nullable" * column.type.nullable if digits else column.type.text()
                 for column, digits in zip(self.source.columns, self.with_digits)]
        return " | ".join([f"pipeline in={','.join(types)}", *(step.text() for step in self.steps), self.end.text()])

    # ---- reductions ----

    def reduced(self, reduction):
        """A new case of the same numbers with less: {"steps": 2} the first steps, behind which all columns are emitted;
        {"without": [..]} steps that keep the columns; {"tables": [[step, first, end], ..]} rows of tables; {"aggs":
        [..], "keys": [..], ..} parts of the end; {"rows": [first, end]}, {"plain": true}."""
        case = Case.generate(self.seed, self.number)
        case.reduction, case.plain = reduction, bool(reduction.get("plain"))
        if "steps" in reduction:
            case._emit_behind(reduction["steps"])
        case.end.reduce(reduction)
        for step, first, end in reduction.get("tables", ()):
            case.steps[step].join.keep_other_rows(range(first, end))
        dropped = reduction.get("without", ())
        case.steps = [step for place, step in enumerate(case.steps) if place not in dropped]
        if not case.steps and case.end.word == "emit":
            raise ValueError("neither a step nor an end is left")
        case._keep_rows(*reduction.get("rows", (0, case.num_rows)))
        case._pass_rows()
        return case

    def _emit_behind(self, count):
        self.steps = self.steps[:count]
        probes = [step for step in self.steps if step.word == "probe"]
        if not self.steps or any(step.word == "reduce" and not any(step.probe is probe for probe in probes)
                                 for step in self.steps):
            raise ValueError("a reduction without the probe that it is for")
        self.end = EmitEnd(list(range(len(self.stages[count].columns))))

    def smaller(self):
        """Reductions one step smaller than the case's own, the big steps first."""
        now = self.reduction
        yield from self.simpler_inputs()
        whole = now.get("steps", len(Case.generate(self.seed, self.number).steps))
        if "without" not in now and "tables" not in now:
            for count in range(1, whole + ("steps" not in now)):
                yield {**{name: now[name] for name in ("rows", "plain") if name in now}, "steps": count}
        dropped = list(now.get("without", ()))
        kept = [place for place in range(whole) if place not in dropped]
        for place, step in zip(kept, self.steps):
            if step.word in ("filter", "reduce"):
                yield {**now, "without": sorted([*dropped, place])}
        for place, step in zip(kept, self.steps):
            if step.word == "probe" and step.join.num_other > 1:
                yield from self._fewer_table_rows(place, step.join.num_other)
        for name, count, fewest in self.end.parts():
            for some in without_each(list(now.get(name, range(count))), fewest):
                yield {**now, name: some}

    def _fewer_table_rows(self, place, num_rows):
        others = [table for table in self.reduction.get("tables", ()) if table[0] != place]
        first = next((table[1] for table in self.reduction.get("tables", ()) if table[0] == place), 0)
        for cut in sorted({num_rows // 2, 1}, reverse=True):
            yield {**self.reduction, "tables": [*others, [place, first, first + num_rows - cut]]}
            yield {**self.reduction, "tables": [*others, [place, first + cut, first + num_rows]]}

    def rows_text(self, most=8):
        texts = [first_rows_text("source", self.num_rows, self.keys, [key.indices for key in self.keys], most)]
        for step, rows in zip(self.steps, self.stages):
            if step.word == "probe":
                case = step.join.case(rows)
                columns = case.columns(case.sides["build"])
                texts.append(first_rows_text(f"table of {step.join.spec}", step.join.num_other, columns,
                                             [column.indices["build"] for column in columns], most))
        sizes = [rows.num_rows for rows in self.stages]
        return "\n".join([*texts, f"rows in front of each step and of the end: {sizes}"])

    def variants(self):
        """The ways to run this case: generic, compiled, and both again otherwise."""
        rng, name = random.Random(f"pipeline variants/{self.seed}/{self.number}"), f"{self.seed}/{self.number}"
        first = Variant.random(rng, self)
        variants = [dataclasses.replace(first, engine="generic"), dataclasses.replace(first, engine="jit"),
                    dataclasses.replace(Variant.random(rng, self), engine="jit"),
                    dataclasses.replace(Variant.random(rng, self),
                                        engine=rng.choice(("generic", "jit", "auto", "auto")))]
        spills = random.Random(f"pipeline variants/{name}/spill")
        variants = list(with_spills(spills, variants, lambda variant: self.end.word != "emit"))
        variants = [variant.of_ends() for variant in variants]
        return variants[:3] if max(self.generated_rows) >= BIG_ROWS else variants


# ---- how to run it ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class EmitVariant(RandomVariant):
    engine: str = ""
    params: dict = dataclasses.field(default_factory=dict)
    stops_after: int | None = None  # batches, after which the host wants no more rows

    @staticmethod
    def random(rng):
        return EmitVariant(stops_after=rng.choice((1, 2, 5)) if rng.random() < 0.1 else None)


_OF_ENDS = {"aggregate": aggregate_case.Variant, "sort": sort_case.Variant, "build": join_case.Variant}
# Members of a variant that its end's variant has, too.
_SHARED = ("engine", "append_threads", "finalise_threads", "shuffled", "whole_run", "misaligned", "layout_seed",
           "copy_bytes", "spill")


@dataclasses.dataclass
class Variant(RandomVariant):
    engine: str
    params: dict
    num_batches: int       # of random sizes, some empty
    rows_per_batch: int    # 0: num_batches of them
    spread: int            # a selection's rows lie among so many times as many
    interfaces: dict       # of "input": "arrow" or "vectors"
    append_threads: int    # each by an input of its own; 0: this one alone
    finalise_threads: int  # 0: this one alone
    shuffled: bool         # rows do not come in the order of their ids
    whole_run: int         # threads of quern_job_run; 0: step by step
    copy_bytes: bool
    memory_limit: int      # of the pipeline's job, which has no place to write rows to; 0: none
    refused_share: float   # of the pipeline's requests for memory: the host's account refuses some, of which
    most_refused: int      # so many at most
    misaligned: bool
    layout_seed: int
    tables: dict           # join_case.Variant of each table, by the place of the step that probes it
    built_by: dict         # of each: "join", or "pipeline"
    rooms: dict            # of some: bytes of the host's account while a table is built, which then writes the others
    end: object            # a variant of the end's operator
    spill: Spill | None = None  # of the end: a memory limit, and where rows may be written

    @staticmethod
    def random(rng, case):
        params = {}
        if rng.random() < 0.6:
            params["piece_rows"] = rng.choice((1, 7, 64, 1000, 4096, 65536))
        if rng.random() < 0.4:
            params["fuse"] = rng.choice(("auto", "off", "off"))
        if max(case.generated_rows) > 3000 and params.get("piece_rows", 64) < 64:
            params["piece_rows"] = 64
        num_rows = case.generated_rows[0]
        sizes = [0, 0, 0] + [size for size in ROWS_PER_BATCH if num_rows <= size * _MOST_BATCHES]
        variant = Variant("jit", params, rng.choice((1, 2, 3, 7)), rng.choice(sizes),
                          rng.choice((1, 1, 1, 3, 40)) if num_rows <= 2000 else 1,
                          {"input": rng.choice(("arrow", "vectors", "vectors"))},
                          rng.choice((0, 0, 0, 1, 2, 3)), rng.choice((0, 0, 1, 2, 3)), rng.random() < 0.25,
                          rng.choice((1, 2, 3)) if rng.random() < 0.15 else 0, rng.random() < 0.5,
                          rng.choice((1000, 20_000, 100_000, 300_000, 3_000_000)) if rng.random() < 0.04 else 0,
                          rng.choice((0.02, 0.1, 0.5)) if rng.random() < 0.2 else 0, rng.choice((1, 3, 20)),
                          rng.random() < 0.05, rng.getrandbits(32), {}, {}, {}, None)
        variant._draw_tables(case)
        variant._draw_end(case)
        return variant

    def _draw_tables(self, case):
        """With draws of their own for each, so that those of a reduced case are the same."""
        for step, rows in zip(case.steps, case.stages):
            if step.word == "probe":
                rng = random.Random(f"table {step.join.place} of {self.layout_seed}")
                table = join_case.Variant.random(rng, step.join.case(rows))
                place = step.join.place
                self.tables[place], = with_spills(rng, [table])
                self.built_by[place] = rng.choice(("join", "pipeline"))
                if rng.random() < 0.25:
                    self.rooms[place] = rng.choice((0, 1000, 3000, 10_000, 100_000))
                    spill = Spill(0, rng.choice((0, 4096, 10_000)), rng.choice(STORES))
                    self.tables[place] = dataclasses.replace(table, spill=spill)

    def _draw_end(self, case):
        rng = random.Random(f"end of {self.layout_seed}")
        if case.end.word == "emit":
            self.whole_run, self.end = 0, EmitVariant.random(rng)
        else:
            self.end = _OF_ENDS[case.end.word].random(rng, case.end.case)
        self.params = {**self.params, **self.end.params}

    def of_ends(self):
        """With the same members in the variant of the end."""
        same = {name: getattr(self, name) for name in _SHARED if hasattr(self.end, name)}
        if self.end.__class__ is aggregate_case.Variant:
            same["stages"] = 1
        params = self.params
        if self.spill and self.layout_seed % 4:  # the steps take memory, too: little for small pieces
            params = {**params, "piece_rows": 64}
        elif self.spill and self.layout_seed % 8:
            more = 1 << 19 + self.layout_seed % 5
            same["spill"] = dataclasses.replace(self.spill, memory_limit=self.spill.memory_limit + more)
        end = dataclasses.replace(self.end, **same, params=params)
        if (self.refused_share or self.rooms) and self.end.__class__ is not EmitVariant:
            # The memory of an array would be released when Python drops it, perhaps with an exception on its way, in
            # which no function of Python's may be called.
            end.interfaces = {**end.interfaces, "result": "vectors"}
        tables = {place: dataclasses.replace(table, engine=self.engine) for place, table in self.tables.items()}
        return dataclasses.replace(self, params=params, end=end, tables=tables, spill=same.get("spill"),
                                   memory_limit=0 if self.spill else self.memory_limit)

    def is_concurrent(self):
        """Whether two threads may bring rows at once."""
        return max(self.append_threads, self.whole_run) > 1

    def num_threads(self):
        """That work together, on the pipeline or on one of its tables."""
        of_tables = [max(table.append_threads, table.finalise_threads) for table in self.tables.values()]
        return max(self.append_threads, self.whole_run, self.finalise_threads, *of_tables, 0)

    def mixes_rows(self):
        """Whether rows may come in another order than that of their ids."""
        return self.is_concurrent() or self.shuffled
