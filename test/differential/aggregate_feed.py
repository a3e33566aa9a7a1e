# SPDX-License-Identifier: Apache-2.0
"""An aggregation's rows as a host brings them: cut into batches, as Arrow structs with shuffled children or as the host's own vectors with
a selection, laid out as a variant says.

    Feeder(case, variant).batches()     each batch with what must live as long as its bytes

The row ids of vectors are such that the rows of the case are in their order, whatever the order they come in: three rows in the vector's
places 2 5 6, of which selection 6 2 5 tells, have the ids first_row_id + 2, + 5, + 6.
"""
import array
import random

import pyarrow as pa

import quern_abi
from random_data import Layout, make_array

FAR_ROW_ID = 1 << 40


class Feeder:
    def __init__(self, case, variant):
        self.case, self.rng = case, random.Random(f"{variant.layout_seed}/input")
        # Arrow batches are numbered as they come.
        self.vectors = variant.interfaces["input"] == "vectors" or variant.whole_run > 0 or case.is_ordered() and variant.mixes_rows()
        self.layout = Layout(plain=case.plain, garbage_in_nulls=not case.plain, misaligned=variant.misaligned and not case.plain)
        self.columns = case.columns()
        self.cuts = self._cuts(1 if case.plain and not variant.mixes_rows() else variant.num_batches)
        self.selects = self.vectors and not case.plain and self.rng.random() < 0.6
        self.shuffles = variant.shuffled
        self.first_row_id = self.rng.choice((0, 1, FAR_ROW_ID))

    def _cuts(self, num_batches):
        if self.case.num_rows == 0 and num_batches == 2:
            return []  # not even an empty batch
        inner = sorted(self.rng.randint(0, self.case.num_rows) for _ in range(num_batches - 1))
        bounds = [0, *inner, self.case.num_rows]
        return list(zip(bounds, bounds[1:]))

    def batches(self):
        """(batch, owners of its bytes)."""
        return self._vector_batches() if self.vectors else ((batch, None) for batch in self._arrow_batches())

    def arrow_children(self):
        """The schema, and the child numbers of keys and payload."""
        position = {id(self.columns[column]): child for child, column in enumerate(self.case.child_order)}
        fields = [pa.field(f"c{column}", self.columns[column].type.arrow(), self.columns[column].type.nullable)
                  for column in self.case.child_order]
        if self.case.stranger:
            fields.append(pa.field("stranger", pa.list_(pa.int32())))
        return (pa.schema(fields), [position[id(key)] for key in self.case.keys],
                [position[id(column)] for column in self.case.payload()])

    def _ordered_cuts(self):
        cuts = list(enumerate(self.cuts))
        if self.shuffles:
            self.rng.shuffle(cuts)
        return cuts

    def _arrow_batches(self):
        schema = self.arrow_children()[0]
        for _, (first, end) in self._ordered_cuts():
            skip = 0 if self.case.plain else self.rng.choice((0, 0, 0, 5))  # a struct array may have an offset, too
            arrays = []
            for column in (self.columns[number] for number in self.case.child_order):
                rows = [self.rng.randrange(len(column.values)) for _ in range(skip)] + column.indices[first:end]
                arrays.append(make_array(self.rng, column.type, column.values, rows, self.layout))
            if self.case.stranger:
                arrays.append(pa.array([[1]] * (skip + end - first), pa.list_(pa.int32())))
            if arrays:
                yield pa.StructArray.from_arrays(arrays, fields=list(schema)).slice(skip)
            else:
                yield pa.array([{}] * (end - first), pa.struct([]))

    def _places(self, num_rows):
        """(rows of the host's vectors, which of them each row of the case is, the selection)."""
        if not self.selects:
            return num_rows, range(num_rows), None
        total = num_rows + self.rng.choice((0, 1, 10))
        places = sorted(self.rng.sample(range(total), num_rows))
        selection = list(places)
        if self.shuffles:
            self.rng.shuffle(selection)
        return total, places, array.array("I", selection)

    def _vector_batches(self):
        """(quern_batch, what it points to)."""
        sizes = [self._places(end - first) for first, end in self.cuts]
        first_ids = [self.first_row_id]
        for total, _, _ in sizes:
            first_ids.append(first_ids[-1] + total)
        for number, (first, end) in self._ordered_cuts():
            total, places, selection = sizes[number]
            arrays = {}
            for column in self.columns:
                rows = column.indices[first:end]
                if selection is not None:
                    spread = [self.rng.randrange(len(column.values)) for _ in range(total)]
                    for place, index in zip(places, rows):
                        spread[place] = index
                    rows = spread
                arrays[id(column)] = make_array(self.rng, column.type, column.values, rows, self.layout)
            keep = []
            keys, payload = [arrays[id(key)] for key in self.case.keys], [arrays[id(column)] for column in self.case.payload()]
            yield quern_abi.raw_batch(keys, payload, selection, end - first, first_ids[number], keep), keep
