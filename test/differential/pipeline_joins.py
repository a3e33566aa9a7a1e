# SPDX-License-Identifier: Apache-2.0
"""Random joins one side of which are rows in flight: those that a pipeline probes a table with, or those that it builds
a table of. The other side is drawn to match them.

    join = random_join(rng, rows, "probe", KINDS.values())
    join.case(rows)              a join_case.Case: what its oracle, its feeder and its readers take
    join.spec                    "join.left keys=i32 build=utf8 probe=rowid"
    join.keys_read(), .payload_read()         numbers of columns of the rows, as brackets have them

The other side keeps values, not numbers into the columns of the rows, so that a case with fewer rows has it, too.
"""
import dataclasses
import random

import join_case
from join_kinds import has_one_key
from join_rows import COMPARISONS, RESIDUAL_TYPES, SIDES, Payload, Residual, own_payload
from join_rows import Column as SharedColumn
from oracle import count_pairs, rows_of_first_keys
from pipeline_rows import as_compared, maybe_nullable
from random_data import ColumnType, random_values, with_nulls

MOST_PAIRS = 20_000
_ROW_ID = ColumnType("rowid")
# How often a key of the rows in flight stands on the other side.
_ARRANGEMENTS = ("unique", "unique", "unique", "unique", "few", "few", "few", "many", "many", "none", "misses",
                 "large")


@dataclasses.dataclass
class Shared:
    """A key or a residual's column: of the rows in flight by its number, of the other side its values."""
    number: int
    type: ColumnType
    values: list
    indices: list
    op: str = ""

    def column(self, rows, flow_side):
        flow = rows.columns[self.number]
        other_side = SIDES[flow_side == "build"]
        shift = len(flow.values)
        others = [None if index is None else index + shift for index in self.indices]
        return SharedColumn(self.type, flow.values + self.values, {flow_side: flow.indices, other_side: others})


@dataclasses.dataclass
class FlowJoin:
    kind: object
    flow_side: str        # "probe" or "build": which side the rows in flight are
    keys: list
    residuals: list
    flow_payload: list    # (number, type) each; the type of a row id: _ROW_ID
    other_payload: list   # join_rows.Payload of the other side, or the number of a key that comes once more
    num_other: int        # rows
    name: tuple           # seed and number: of the case
    first_row_id: int
    place: int = 0          # of the step, before any reduction, and its rows then: of both sides, of the result at most
    generated_rows: tuple = ()
    spec: str = ""

    def other_side(self):
        return SIDES[self.flow_side == "build"]

    def keys_read(self):
        return [key.number for key in self.keys]

    def payload_read(self):
        return [number for number, _ in self.flow_payload] + [residual.number for residual in self.residuals]

    def has_flow_row_ids(self):
        return any(column_type is _ROW_ID for _, column_type in self.flow_payload)

    def case(self, rows, for_spec=False):
        """With row ids of the rows in flight as numbers, which they are to whatever reads them; for_spec: as such."""
        keys = [key.column(rows, self.flow_side) for key in self.keys]
        residuals = [Residual(one.type, one.column(rows, self.flow_side), one.op) for one in self.residuals]
        flow = [self._flow_payload(rows, number, column_type, for_spec) for number, column_type in self.flow_payload]
        other = [Payload(dataclasses.replace(keys[one].type, collation="", null_equal=False), keys[one])
                 if isinstance(one, int) else one for one in self.other_payload]
        sides = {side: join_case.Side(side, rows.num_rows if side == self.flow_side else self.num_other,
                                      flow if side == self.flow_side else other, [], False) for side in SIDES}
        case = join_case.Case(*self.name, self.kind, keys, residuals, sides, {}, ())
        case._order_children(random.Random(f"pipeline children/{self.name}"))
        case.generated_rows = self.generated_rows or (*(sides[side].num_rows for side in SIDES), MOST_PAIRS)
        return case

    def _flow_payload(self, rows, number, column_type, for_spec):
        if column_type is not _ROW_ID:
            flow = rows.columns[number]
            return Payload(column_type, SharedColumn(column_type, flow.values, {self.flow_side: flow.indices}))
        if for_spec:
            return Payload(_ROW_ID, None)
        ids = [self.first_row_id + row for row in rows.ids]
        number_type = ColumnType("u64")
        return Payload(number_type, SharedColumn(number_type, ids or [0], {self.flow_side: list(range(len(ids)))}))

    def keep_other_rows(self, numbers):
        """Drops the other side's other rows."""
        for column in [*self.keys, *self.residuals]:
            column.indices = [column.indices[row] for row in numbers]
        for payload in self.other_payload:
            if not isinstance(payload, int) and payload.column:
                indices = payload.column.indices
                indices[self.other_side()] = [indices[self.other_side()][row] for row in numbers]
        self.num_other = len(numbers)


# ---- keys ------------------------------------------------------------------------------------------------------------


def _other_rows(rng, rows):
    """The other side: for each row, the row in flight whose values it has; None: a row of none of them."""
    style, n = rng.choice(_ARRANGEMENTS), rows.num_rows
    if style == "none":
        return style, []
    most = min(n, 3000)
    if style == "misses" or not most:
        return style, [None] * rng.choice((1, 2, 100))
    some = rng.sample(range(n), rng.randint(1, most))
    if style == "few":
        some += rng.choices(some, k=rng.randint(1, len(some)))
    elif style == "many":
        some = rng.choices(some[:rng.choice((1, 3, 30))], k=rng.choice((5, 100, 3000)))
    some += [None] * (rng.choice((4000, 9000)) if style == "large" else rng.choice((0, 0, 1, len(some) // 3 + 1)))
    rng.shuffle(some)
    return style, some


def _as_key(rng, column, may_equal_null):
    column_type = as_compared(rng, column)
    return dataclasses.replace(column_type, null_equal=may_equal_null and column_type.nullable and rng.random() < 0.4)


def _shared(rng, column, column_type, of_rows, op=""):
    """What the other side has in a key's or a residual's column."""
    known = not column_type.collation  # random values may have weights that the oracle does not know
    misses = (random_values(rng, column.type, rng.choice((1, 3, 20))) if known else column.values)[:20]
    values = column.values + misses
    indices = [rng.randrange(len(column.values), len(values)) if row is None else column.indices[row]
               for row in of_rows]
    if not column_type.nullable:
        indices = [rng.randrange(len(values)) if index is None else index for index in indices]
    used = sorted({index for index in indices if index is not None})
    place = {index: number for number, index in enumerate(used)}
    values, indices = [values[index] for index in used], [None if index is None else place[index] for index in indices]
    nulls = rng.choice((0, 0, 0.02, 0.3)) if column_type.nullable and values else 0
    return Shared(column.number, column_type, values, with_nulls(rng, indices, nulls), op)


def _fit_to_kind(rng, kind, types, num_residuals):
    """(types of the keys, number of residuals) that the kind allows."""
    if has_one_key(rng, kind):
        return [dataclasses.replace(types[0], null_equal=False)], 0
    if kind.marks and (len(types) > 1 or num_residuals):
        return [dataclasses.replace(key, null_equal=key.nullable) for key in types], num_residuals
    return types, num_residuals


def _random_shared(rng, rows, kind, flow_side):
    """(arrangement, keys, residuals, number of the other side's rows)."""
    columns = rng.sample(rows.columns, min(rng.choice((1, 1, 1, 1, 2, 2, 3, 5)), len(rows.columns)))
    usable = [column for column in rows.columns if column.type.name in RESIDUAL_TYPES and not column.type.index]
    types, num_residuals = _fit_to_kind(rng, kind, [_as_key(rng, column, True) for column in columns],
                                        rng.choices((0, 1, 2), (70, 20, 10))[0] if usable else 0)
    style, of_rows = _other_rows(rng, rows)
    if flow_side == "probe" and kind.name == "single" and rng.random() < 0.7:
        style = "unique"
    keys = [_shared(rng, column, column_type, of_rows) for column, column_type in zip(columns, types)]
    residuals = []
    for column in (rng.choice(usable) for _ in range(num_residuals)):
        column_type = dataclasses.replace(maybe_nullable(rng, column.type), null_equal=False)
        residuals.append(_shared(rng, column, column_type, of_rows, rng.choice(COMPARISONS)))
    return style, keys, residuals, len(of_rows)


# ---- payload ---------------------------------------------------------------------------------------------------------


def _random_flow_payload(rng, rows, kind, flow_side):
    if not kind.has_columns(flow_side) or not rows.columns:
        return []
    count = len(rows.columns)
    numbers = rng.choice((rng.sample(range(count), rng.randint(min(count, 1), count)),
                          list(range(count)), list(range(count)),
                          rng.choices(range(count), k=rng.randint(1, count + 1)),
                          [] if rng.random() < 0.2 else [rng.randrange(count)]))[:12]
    plain = lambda column_type: dataclasses.replace(column_type, collation="", null_equal=False)
    payload = [(number, plain(maybe_nullable(rng, rows.columns[number].type))) for number in numbers]
    # Behind a probe that copies rows these are counted in the order of their matches, which nobody promises.
    if rows.ids is not None and rng.random() < 0.12:
        payload.insert(rng.randint(0, len(payload)), (rng.randrange(count), _ROW_ID))
    return payload


def _random_other_payload(rng, kind, side, num_keys, num_rows):
    if not kind.has_columns(side):
        return []
    payload = []
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3))):
        style = rng.random()
        if style < 0.1:
            payload.append(Payload(_ROW_ID, None))
        elif style < 0.3:
            payload.append(rng.randrange(num_keys))
        else:
            made = own_payload(rng, side, num_rows)
            if made.type.name == "date32":  # of years that have four digits: pipeline_rows.py
                made.column.values[:] = [rng.randint(-700_000, 2_900_000) for _ in made.column.values]
            payload.append(made)
    return payload


def random_join(rng, rows, flow_side, kinds, name, first_row_id):
    """`rows`: some columns. `name`: seed and number of the case. first_row_id: of the source's row 0."""
    kind = rng.choice(list(kinds))
    style, keys, residuals, num_other = _random_shared(rng, rows, kind, flow_side)
    other_side = SIDES[flow_side == "build"]
    other = _random_other_payload(rng, kind, other_side, len(keys), num_other)
    join = FlowJoin(kind, flow_side, keys, residuals, _random_flow_payload(rng, rows, kind, flow_side), other,
                    num_other, name, first_row_id)
    if style == "unique":
        join.keep_other_rows(rows_of_first_keys(join.case(rows).keys, other_side))
    while count_pairs(join.case(rows).keys) > MOST_PAIRS:
        join.keep_other_rows(range(join.num_other // 2))
    case = join.case(rows, for_spec=True)
    join.spec, join.generated_rows = case.spec(), case.generated_rows
    return join
