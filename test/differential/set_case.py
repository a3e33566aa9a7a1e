# SPDX-License-Identifier: Apache-2.0
"""One random set operation: its spec, its rows on both sides, and its variants: ways to run it, all of which must give
the oracles' rows.

    case = Case.generate(seed, number)            the same case for the same two numbers
    case.spec()                                   "set.except_all keys=i32:nullable,utf8(ascii_ci)"
    case.side("left")                             its rows alone, as a Feeder takes them
    case.variants()                               as those of an aggregation, whose groups a set operation has

All rows are drawn as those of one aggregation without aggregates (aggregate_case.py); `is_left` puts each of them on
one side. Half of the cases then copy rows to the other side, since most random rows are met once.
"""
import dataclasses
import random

import aggregate_case
from aggregate_case import variants_of
from aggregate_rows import group_keys, random_keys, random_sizes
from random_case import once_each

KINDS = ("union", "intersect", "except", "intersect_all", "except_all")
SIDES = ("left", "right")


def _random_sides(rng, num_rows):
    """Whether each row is on the left: at random, or up to some row."""
    share = rng.choice((0, 0.01, 0.3, 0.5, 0.5, 0.7, 0.99, 1))
    if rng.random() < 0.3:
        return [row < share * num_rows for row in range(num_rows)]
    return [rng.random() < share for _ in range(num_rows)]


@dataclasses.dataclass
class Case(aggregate_case.Case):
    kind: str = "union"
    is_left: list = dataclasses.field(default_factory=list)  # of each row

    @staticmethod
    def generate(seed, number, sizes=None):
        """`sizes`: tuples of keys and rows, where they are not to be random."""
        rng = random.Random(f"set/{seed}/{number}")
        kind, (num_tuples, num_rows), keys = rng.choice(KINDS), sizes or random_sizes(rng), []
        while not keys:
            keys = random_keys(rng, num_tuples, num_rows)
        is_left = _random_sides(rng, len(keys[0].indices))
        if rng.random() < 0.5:
            share = rng.choice((0.1, 0.5, 1))
            copied = [row for row in range(len(is_left)) if rng.random() < share]
            is_left += [not is_left[row] for row in copied]
            for key in once_each(keys):
                key.indices += [key.indices[row] for row in copied]
        case = Case(seed, number, len(is_left), keys, [], rng.random() < 0.1, [], {}, len(is_left), 0, keys, False,
                    kind, is_left)
        case.generated_groups = len(set(group_keys(keys, case.num_rows)))
        case._order_children(rng)
        return case

    def side(self, name):
        """The rows of a side."""
        rows = [row for row, is_left in enumerate(self.is_left) if is_left == (name == "left")]
        keys = [dataclasses.replace(key, indices=[key.indices[row] for row in rows]) for key in self.keys]
        order = self.child_order if name == "left" else self.child_order[::-1]
        return dataclasses.replace(self, keys=keys, num_rows=len(rows), child_order=order)

    def reduced(self, reduction):
        """A new case of the same numbers with less: {"keys": [..]} that stay, {"rows": [first, end]} of both sides,
        {"plain": true}."""
        case = Case.generate(self.seed, self.number)
        case.reduction, case.plain = reduction, bool(reduction.get("plain"))
        case.keys = [case.keys[number] for number in reduction.get("keys", range(len(case.keys)))]
        if not case.keys:
            raise ValueError("no keys are left")
        first, end = reduction.get("rows", (0, case.num_rows))
        case.is_left = case.is_left[first:end]
        case._keep_rows(first, end)
        return case

    def spec(self):
        types = [dataclasses.replace(key.type, null_equal=False).text() for key in self.keys]
        return f"set.{self.kind} keys={','.join(types)}"

    def rows_text(self, most=8):
        return "\n".join(f"{name} {super(Case, self.side(name)).rows_text(most)}" for name in SIDES)

    def variants(self):
        return variants_of(self, f"set variants/{self.seed}/{self.number}")
