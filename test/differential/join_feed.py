# SPDX-License-Identifier: Apache-2.0
"""One side's rows as a host brings them: cut into batches, as Arrow structs with shuffled children or as the host's own
vectors with a selection, laid out as a variant says.

    Feeder(case, variant, "probe").batches()     each batch with what must live as long as its bytes
"""
import array
import random

import pyarrow as pa

import quern_abi
from random_data import Layout, make_array

ROW_ID = -1


class Feeder:
    def __init__(self, case, variant, name):
        self.case, self.side, self.name = case, case.sides[name], name
        self.vectors = variant.interfaces[name] == "vectors"
        self.rng = random.Random(f"{variant.layout_seed}/{name}")
        self.layout = Layout(plain=case.plain, garbage_in_nulls=not case.plain,
                             misaligned=variant.misaligned and not case.plain)
        self.columns = case.columns(self.side)
        # Batches bring the residual predicate's columns after the payload.
        self.payload = [item.column for item in self.side.payload] + [conjunct.column for conjunct in case.residuals]
        self.cuts = self._cuts(1 if case.plain else variant.num_batches[name])
        self.has_row_id = any(column is None for column in self.payload)
        self.selects = self.vectors and not case.plain and self.rng.random() < 0.5

    def _cuts(self, num_batches):
        if self.side.num_rows == 0 and num_batches == 2:
            return []  # not even an empty batch
        inner = sorted(self.rng.randint(0, self.side.num_rows) for _ in range(num_batches - 1))
        bounds = [0, *inner, self.side.num_rows]
        return list(zip(bounds, bounds[1:]))

    def batches(self):
        """(batch, owners of its bytes)."""
        return self.vector_batches() if self.vectors else ((batch, None) for batch in self.arrow_batches())

    def arrow_children(self):
        """The schema, and the child numbers of keys and payload."""
        position = {id(self.columns[column]): child for child, column in enumerate(self.side.child_order)}
        fields = [pa.field(f"{self.name}{column}", self.columns[column].type.arrow(),
                           self.columns[column].type.nullable)
                  for column in self.side.child_order]
        if self.side.stranger:
            fields.append(pa.field("stranger", pa.list_(pa.int32())))
        keys = [position[id(key)] for key in self.case.keys]
        return pa.schema(fields), keys, [ROW_ID if column is None else position[id(column)] for column in self.payload]

    def arrow_batches(self):
        schema = self.arrow_children()[0]
        for first, end in self.cuts:
            skip = 0 if self.case.plain else self.rng.choice((0, 0, 0, 5))  # a struct array may have an offset, too
            arrays = []
            for column in (self.columns[number] for number in self.side.child_order):
                rows = [self.rng.randrange(len(column.values))
                        for _ in range(skip)] + column.indices[self.name][first:end]
                arrays.append(make_array(self.rng, column.type, column.values, rows, self.layout))
            if self.side.stranger:
                arrays.append(pa.array([[1]] * (skip + end - first), pa.list_(pa.int32())))
            yield pa.StructArray.from_arrays(arrays, fields=list(schema)).slice(skip)

    def _selection(self, first, num_rows):
        """(rows of the host's vectors, which take part). A range where the result has row ids, so that they are those
        of the case."""
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
            payload = [None if column is None else arrays[id(column)] for column in self.payload]
            selected = None if selection is None else array.array("I", selection)
            yield quern_abi.raw_batch([arrays[id(key)] for key in self.case.keys], payload, selected, num_rows,
                                      first_row_id, keep), keep
