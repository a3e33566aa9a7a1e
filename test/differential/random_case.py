# SPDX-License-Identifier: Apache-2.0
"""What random cases and their variants share, whatever the operator: how a failure is named, reduced and shown.

    class Case(OneInputCase): ..      rows of one input; a join, which has two, is a RandomCase
    class Variant(RandomVariant): ..

A reduction is a dictionary of what remains of a case: {"rows": [100, 200], "keys": [0, 2], "plain": true}.
"""
import random


def without_each(numbers, fewest):
    """The list without one of its numbers, in all ways that leave `fewest`."""
    if len(numbers) <= fewest:
        return
    if len(numbers) > 2 + fewest:
        yield numbers[:len(numbers) // 2]
        yield numbers[len(numbers) // 2:]
    for number in numbers:
        yield [other for other in numbers if other != number]


def once_each(columns):
    """The columns without None and without repetition."""
    seen = []
    for column in columns:
        if column and not any(column is other for other in seen):
            seen.append(column)
    return seen


def first_rows_text(name, num_rows, columns, index_lists, most):
    """The first rows as physical values. `index_lists`: of each column the values' numbers, row by row."""
    lines = [f"{name}: {num_rows} rows; columns " + ", ".join(column.type.text() for column in columns)]
    for row in range(min(num_rows, most)):
        indices = [index_list[row] for index_list in index_lists]
        lines.append("  " + repr(tuple(None if index is None else column.values[index]
                                       for column, index in zip(columns, indices))))
    return "\n".join(lines)


class RandomCase:
    """Has seed, number, reduction and plain; _fewer_rows says how rows are dropped."""

    def replay(self):
        return {"seed": self.seed, "case": self.number, **self.reduction}

    def simpler_inputs(self):
        """The first reductions to try: plain arrays, fewer rows."""
        if not self.plain:
            yield {**self.reduction, "plain": True}
        yield from self._fewer_rows()


class OneInputCase(RandomCase):
    """Has num_rows and columns() besides."""

    def _order_children(self, rng):
        self.child_order = list(range(len(self.columns())))
        rng.shuffle(self.child_order)

    def _keep_rows(self, first, end):
        for column in self.columns():
            column.indices = column.indices[first:end]
        self.num_rows = end - first
        self._order_children(random.Random(0))

    def _fewer_rows(self):
        first, end = self.reduction.get("rows", [0, self.num_rows])
        step = (end - first) // 2
        while step > 0:
            yield {**self.reduction, "rows": [first, end - step]}
            yield {**self.reduction, "rows": [first + step, end]}
            step //= 2 if end - first > 64 else 4

    def rows_text(self, most=8):
        """The first rows: columns() in its order."""
        columns = self.columns()
        return first_rows_text("input", self.num_rows, columns, [column.indices for column in columns], most)


class RandomVariant:
    """Has engine and params."""

    def params_text(self):
        return " ".join(f"{name}={value}" for name, value in self.params.items())


def random_schedule(rng: random.Random) -> str:
    """Prefetch settings by table size, as plan parameters take them: `0@64K,all/stages=1@8M,64/hint=nta`."""
    def setting() -> str:
        text = rng.choice(("0", "1", "5", "64", "512", "all"))
        for option in ("group=1", "group=33", "batch=7", "batch=4096", "stages=1", "stages=2", "hint=t1", "hint=nta",
                       "hint=w"):
            if rng.random() < 0.1:
                text += "/" + option
        return text
    sizes = ("1K", "64K", "8M")[rng.randrange(4):]
    return ",".join([f"{setting()}@{size}" for size in sizes] + [setting()])
