# SPDX-License-Identifier: Apache-2.0
"""One random filter: its condition, its rows, and its variants: ways to run it, all of which must pass the oracles'
rows.

    case = Case.generate(seed, number)            the same case for the same two numbers
    case.spec()                                   "filter utf8(ascii_ci):nullable like 'a%' or not i32 in (1, 2)"
    case.variants()                               engine, batches, selections, the form of the output: rows, bits or
                                                  their number

A case is rows without a layout (filter_rows.py). A reduction of a case drops rows or leaves; a failure is minimised by
trying reductions.
"""
import dataclasses
import random

from filter_conditions import Leaf, Node
from filter_rows import BIG_ROWS, random_condition, random_size
from random_case import OneInputCase, RandomVariant, once_each

OUTPUTS = ("select", "mask", "count")


def _without(condition, dropped):
    """The tree without the leaves of these numbers; None if nothing is left."""
    number = -1

    def keep(node):
        nonlocal number
        if isinstance(node, Leaf):
            number += 1
            return None if number in dropped else node
        children = [child for child in map(keep, node.children) if child]
        if not children:
            return None
        if node.kind == "not":
            return Node("not", children)
        flat = []
        for child in children:
            flat += child.children if isinstance(child, Node) and child.kind == node.kind else [child]
        return flat[0] if len(flat) == 1 else Node(node.kind, flat)

    return keep(condition)


@dataclasses.dataclass
class Case(OneInputCase):
    seed: int
    number: int
    num_rows: int
    condition: object
    stranger: bool       # an unbound child of a type that no kernel reads
    child_order: list    # permutation of the columns in the Arrow struct
    reduction: dict
    generated_rows: int  # before any reduction
    plain: bool = False  # every variant lays its arrays out plainly
    partition: int = 0

    @staticmethod
    def generate(seed, number, size=None):
        """`size`: rows, where they are not to be random."""
        rng = random.Random(f"filter/{seed}/{number}")
        num_rows = random_size(rng) if size is None else size
        case = Case(seed, number, num_rows, random_condition(rng, num_rows), rng.random() < 0.1, [], {}, num_rows)
        case._order_children(rng)
        return case

    @property
    def keys(self):
        """The condition's columns as it mentions them, some of them twice."""
        return self.condition.columns()

    def payload(self):
        return []

    def columns(self):
        """All columns once each."""
        return once_each(self.keys)

    def is_ordered(self):
        return False

    def reduced(self, reduction):
        """A new case of the same numbers with less: {"without": [..]} leaves, {"rows": [first, end]}, {"plain":
        true}."""
        case = Case.generate(self.seed, self.number)
        case.reduction, case.plain = reduction, bool(reduction.get("plain"))
        case.condition = _without(case.condition, reduction.get("without", ()))
        if case.condition is None:
            raise ValueError("no leaf is left")
        case._keep_rows(*reduction.get("rows", (0, case.num_rows)))
        return case

    def spec(self):
        """The spec as a host may write it: with redundant parentheses, and constants in hex."""
        return "filter " + self.condition.text(random.Random(f"filter text/{self.seed}/{self.number}"))

    def canonical_spec(self):
        """As the library prints it: the collation that is the default anyway is left out. None where floats are
        printed."""
        if any(column.type.is_float for column in self.keys):
            return None
        return "filter " + self.condition.text().replace("(binary)", "")

    def smaller(self):
        """Reductions one step smaller than the case's own, the big steps first."""
        now = self.reduction
        yield from self.simpler_inputs()
        dropped = now.get("without", [])
        whole = len(Case.generate(self.seed, self.number).condition.leaves())
        kept = [number for number in range(whole) if number not in dropped]
        if len(kept) > 2:
            yield {**now, "without": sorted(dropped + kept[len(kept) // 2:])}
            yield {**now, "without": sorted(dropped + kept[:len(kept) // 2])}
        for number in kept if len(kept) > 1 else ():
            yield {**now, "without": sorted([*dropped, number])}

    def variants(self):
        """The ways to run this case: generic, compiled, and both again otherwise."""
        rng = random.Random(f"filter variants/{self.seed}/{self.number}")
        first = Variant.random(rng)
        variants = [dataclasses.replace(first, engine="generic"), dataclasses.replace(first, engine="jit")]
        variants += [dataclasses.replace(Variant.random(rng), engine="jit"),
                     dataclasses.replace(Variant.random(rng), engine=rng.choice(("generic", "jit", "auto", "auto")))]
        return variants[:3] if self.generated_rows >= BIG_ROWS else variants


# ---- how to run it ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Variant(RandomVariant):
    engine: str
    params: dict
    num_batches: int
    interfaces: dict      # of "input": "arrow" or "vectors"
    output: str           # of OUTPUTS
    threads: int          # 0: the calling thread; otherwise the number of threads that use one filter at the same time
    shuffled: bool        # selections are not ascending
    misaligned: bool
    layout_seed: int
    append_threads: int = 0
    whole_run: int = 0    # which row_feed.py reads of every variant

    @staticmethod
    def random(rng):
        return Variant("jit", {}, rng.choice((1, 1, 2, 3, 7)), {"input": rng.choice(("arrow", "vectors"))},
                       rng.choice(OUTPUTS), rng.choice((0, 0, 0, 2, 3)), rng.random() < 0.3, rng.random() < 0.05,
                       rng.getrandbits(32))

    def mixes_rows(self):
        return self.shuffled
