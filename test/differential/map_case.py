# SPDX-License-Identifier: Apache-2.0
"""One random map: its expressions, its rows, and its variants, which must all give the same rows.

    case = Case.generate(seed, number)            the same case for the same two numbers
    case.spec()                                   "map in=i64:nullable out=add($0,1:i64)"

A reduction of a case drops rows or results.
"""
import dataclasses
import random

from aggregate_rows import Column
from filter_rows import BIG_ROWS, random_size
from map_dates import DateMaker
from map_expressions import Maker, physical_values, random_value_type, type_text
from map_numbers import NumberMaker
from map_strings import string_columns, string_results, text_columns, text_results
from random_case import OneInputCase, RandomVariant, without_each
from random_data import random_indices, random_values, with_nulls


def _column(rng, num_rows):
    column_type = random_value_type(rng)
    values = physical_values(rng, column_type, random_values(rng, column_type, rng.choice((1, 2, 5, 30, 300))))
    rows = random_indices(rng, num_rows, len(values), rng.choice(("uniform", "uniform", "sequential", "zipf", "equal")))
    return Column(column_type, values,
                  with_nulls(rng, rows, rng.choice((0, 0.02, 0.3, 0.9, 1)) if column_type.nullable else 0))


@dataclasses.dataclass
class Case(OneInputCase):
    seed: int
    number: int
    num_rows: int
    keys: list
    results: list
    stranger: bool       # an unbound child of a type that no kernel reads
    child_order: list    # permutation of the columns in the Arrow struct
    reduction: dict
    generated_rows: int  # before any reduction
    plain: bool = False  # every variant lays its arrays out plainly
    partition: int = 0

    @staticmethod
    def generate(seed, number):
        rng = random.Random(f"map/{seed}/{number}")
        num_rows = random_size(rng)
        columns = [_column(rng, num_rows) for _ in range(rng.choice((0, 1, 2, 3, 6)))]
        maker = Maker(rng, [column.type for column in columns])
        results = [maker.any(rng.choice((0, 1, 2, 3))) for _ in range(rng.choice((1, 1, 2, 4)))]
        case = Case(seed, number, num_rows, columns, results, rng.random() < 0.1, [], {}, num_rows)
        case._order_children(rng)
        later = random.Random(f"map dates/{seed}/{number}")  # draws of its own, so that the others stay as they are
        if later.random() < 0.5:
            results.append(DateMaker(later, [column.type for column in columns]).any())
        of_numbers = random.Random(f"map numbers/{seed}/{number}")
        if of_numbers.random() < 0.5:
            results.append(NumberMaker(of_numbers, [column.type for column in columns]).any())
        case._add_strings(random.Random(f"map strings/{seed}/{number}"))
        case._add_texts(random.Random(f"map texts/{seed}/{number}"))
        return case

    def _add_strings(self, rng):
        if rng.random() < 0.5:
            return
        first = len(self.keys)
        self.keys += string_columns(rng, self.num_rows)
        self.results += string_results(rng, [column.type for column in self.keys], first)
        self._order_later_children(rng, first)

    def _add_texts(self, rng):
        """Strings that are results, and arguments of all functions."""
        if rng.random() < 0.4:
            return
        first = len(self.keys)
        columns, kinds = text_columns(rng, self.num_rows)
        self.keys += columns
        results = text_results(rng, self.keys, kinds)
        self.results = results if rng.random() < 0.5 else self.results + results
        self._order_later_children(rng, first)

    def _order_later_children(self, rng, first):
        for child in range(first, len(self.keys)):
            self.child_order.insert(rng.randint(0, child), child)

    def payload(self):
        return []

    def columns(self):
        return self.keys

    def is_ordered(self):
        return False

    def reduced(self, reduction):
        """A new case of the same numbers with less: {"results": [..]}, {"calls": [..]} (which call of the one result,
        of that the one in its place, ..), {"rows": [first, end]}, {"plain": true}."""
        case = Case.generate(self.seed, self.number)
        case.reduction, case.plain = reduction, bool(reduction.get("plain"))
        case.results = [case.results[place] for place in reduction.get("results", range(len(case.results)))]
        for number in reduction.get("calls", ()):
            case.results = [case.results[0].calls()[number]]
        case._keep_rows(*reduction.get("rows", (0, case.num_rows)))
        return case

    def spec(self):
        columns = ",".join(type_text(column.type) + ":nullable" * column.type.nullable for column in self.keys)
        return f"map{' in=' * bool(columns)}{columns} out={','.join(result.text() for result in self.results)}"

    def smaller(self):
        """Reductions one step smaller than the case's own, the big steps first."""
        yield from self.simpler_inputs()
        for kept in without_each(self.reduction.get("results", list(range(len(self.results)))), 1):
            yield {**self.reduction, "results": kept}
        for number in range(1, len(self.results[0].calls()) if len(self.results) == 1 else 0):
            yield {**self.reduction, "calls": [*self.reduction.get("calls", ()), number]}

    def variants(self):
        """The ways to run this case: generic, compiled, and both again otherwise."""
        rng = random.Random(f"map variants/{self.seed}/{self.number}")
        first = Variant.random(rng)
        variants = [dataclasses.replace(first, engine="generic"), dataclasses.replace(first, engine="jit"),
                    dataclasses.replace(Variant.random(rng), engine="jit"),
                    dataclasses.replace(Variant.random(rng), engine=rng.choice(("generic", "auto")))]
        return variants[:3] if self.generated_rows >= BIG_ROWS else variants


@dataclasses.dataclass
class Variant(RandomVariant):
    engine: str
    params: dict
    num_batches: int
    interfaces: dict      # of "input" and "result": "arrow" or "vectors"
    batch_rows: int
    shuffled: bool        # selections are not ascending
    misaligned: bool
    layout_seed: int
    append_threads: int = 0
    whole_run: int = 0    # which row_feed.py reads of every variant

    @staticmethod
    def random(rng):
        return Variant("jit", {}, rng.choice((1, 1, 2, 3, 7)),
                       {name: rng.choice(("arrow", "vectors")) for name in ("input", "result")},
                       rng.choice((0, 0, 1, 7, 8, 1000, 5000)), rng.random() < 0.3, rng.random() < 0.05,
                       rng.getrandbits(32))

    def mixes_rows(self):
        return self.shuffled
