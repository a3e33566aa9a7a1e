# SPDX-License-Identifier: Apache-2.0
"""The rows of an aggregation or a sort as a host brings them: cut into batches, as Arrow structs with shuffled children
or as the host's own vectors with a selection, laid out as a variant says.

    Feeder(case, variant).batches()     each batch with what must live as long as its bytes

Row ids keep the order of the case's rows, in whatever order they come in: three rows at places 2 5 6 of the vectors,
under selection 6 2 5, have the ids first_row_id + 2, + 5, + 6.
"""
import array
import dataclasses
import random

import pyarrow as pa

import quern_abi
from random_data import Layout, make_array

FAR_ROW_ID = 1 << 40


@dataclasses.dataclass
class Places:
    """Where a batch's rows stand in the host's vectors."""
    total: int                     # rows of the vectors
    of_row: list | range
    selection: array.array | None


class Feeder:
    def __init__(self, case, variant):
        self.case, self.rng = case, random.Random(f"{variant.layout_seed}/input")
        # Arrow batches are numbered as they come.
        self.vectors = (variant.interfaces["input"] == "vectors" or variant.whole_run > 0 or case.is_ordered()
                        and variant.mixes_rows())
        self.layout = Layout(plain=case.plain, garbage_in_nulls=not case.plain,
                             misaligned=variant.misaligned and not case.plain)
        self.columns = case.columns()
        self.cuts = self._cuts(1 if case.plain and not variant.mixes_rows() else variant.num_batches)
        self.selects = self.vectors and not case.plain and self.rng.random() < 0.6
        self.shuffles = variant.shuffled
        self._places = [self.places(end - first) for first, end in self.cuts]
        self._first_ids = [self.rng.choice((0, 1, FAR_ROW_ID)) if self.vectors else 0]
        for places in self._places:
            self._first_ids.append(self._first_ids[-1] + places.total)

    def _cuts(self, num_batches):
        if self.case.num_rows == 0 and num_batches == 2:
            return []  # not even an empty batch
        inner = sorted(self.rng.randint(0, self.case.num_rows) for _ in range(num_batches - 1))
        bounds = [0, *inner, self.case.num_rows]
        return list(zip(bounds, bounds[1:]))

    def places(self, num_rows):
        if not self.selects:
            return Places(num_rows, range(num_rows), None)
        total = num_rows + self.rng.choice((0, 1, 10))
        of_row = sorted(self.rng.sample(range(total), num_rows))
        selection = list(of_row)
        if self.shuffles:
            self.rng.shuffle(selection)
        return Places(total, of_row, array.array("I", selection))

    def row_ids(self):
        """Of each row of the case; those of Arrow batches hold where the batches come in order, one by one."""
        return [first_id + place for first_id, places in zip(self._first_ids, self._places) for place in places.of_row]

    def batch_places(self):
        """For each batch, where its rows stand in the host's vectors."""
        return self._places

    def batches(self, in_order=False):
        """(batch, owners of its bytes)."""
        order = list(range(len(self.cuts)))
        if self.shuffles and not in_order:
            self.rng.shuffle(order)
        for number in order:
            rows = range(*self.cuts[number])
            yield (self.vector_batch(rows, self._places[number], self._first_ids[number])
                   if self.vectors else (self.arrow_batch(rows), None))

    def arrow_children(self):
        """The schema, and the child numbers of keys and payload."""
        position = {id(self.columns[column]): child for child, column in enumerate(self.case.child_order)}
        fields = [pa.field(f"c{column}", self.columns[column].type.arrow(), self.columns[column].type.nullable)
                  for column in self.case.child_order]
        if self.case.stranger:
            fields.append(pa.field("stranger", pa.list_(pa.int32())))
        return (pa.schema(fields), [position[id(key)] for key in self.case.keys],
                [-1 if column is None else position[id(column)] for column in self.case.payload()])

    def arrow_batch(self, rows):
        skip = 0 if self.case.plain else self.rng.choice((0, 0, 0, 5))  # a struct array may have an offset, too
        arrays = []
        for column in (self.columns[number] for number in self.case.child_order):
            indices = ([self.rng.randrange(len(column.values)) for _ in range(skip)]
                       + [column.indices[row] for row in rows])
            arrays.append(make_array(self.rng, column.type, column.values, indices, self.layout))
        if self.case.stranger:
            arrays.append(pa.array([[1]] * (skip + len(rows)), pa.list_(pa.int32())))
        if not arrays:
            return pa.array([{}] * len(rows), pa.struct([]))
        return pa.StructArray.from_arrays(arrays, fields=list(self.arrow_children()[0])).slice(skip)

    def vector_batch(self, rows, places, first_row_id):
        """(quern_batch, what it points to)."""
        arrays = {}
        for column in self.columns:
            indices = [column.indices[row] for row in rows]
            if places.selection is not None:
                spread = [self.rng.randrange(len(column.values)) for _ in range(places.total)]
                for place, index in zip(places.of_row, indices):
                    spread[place] = index
                indices = spread
            arrays[id(column)] = make_array(self.rng, column.type, column.values, indices, self.layout)
        keep, keys = [], [arrays[id(key)] for key in self.case.keys]
        payload = [None if column is None else arrays[id(column)] for column in self.case.payload()]
        return quern_abi.raw_batch(keys, payload, places.selection, len(rows), first_row_id, keep), keep
