# SPDX-License-Identifier: Apache-2.0
"""Random ends of pipelines, which are those of other operators over rows in flight:

    end = random_end(rng, rows, name, first_row_id, has_steps)
    end.text()               "aggregate keys=i64 aggs=sum(i64) [$1; $0]"
    end.bind(rows)           end.case: the case of an aggregation, a sort or a join with these rows
    end.expected()           what its answer is compared with, as that operator does it
    end.compared(answer)     the answer with NaNs and zeros as in the rows in flight

Behind a probe rows are numbered as they come out, in an order that nobody promises. There a stable sort is compared as
one that is not, `first` and `last` as `any`, and neither row ids nor string_agg are drawn.
"""
import collections
import dataclasses

import pyarrow as pa

import aggregate_case
import aggregate_expected
import join_expected
import sort_case
import sort_expected
from aggregate_functions import ACCEPTED, COMPARING, FUNCTIONS, HOST_ARGUMENT, ORDERED
from aggregate_rows import Aggregate, group_keys
from join_kinds import KINDS
from pipeline_joins import FlowJoin, random_join
from pipeline_rows import as_compared, bound, bracketed, comparable_values, maybe_nullable, oracles
from random_data import ColumnType
from result_columns import Mismatch
from sort_rows import WINDOW_FUNCTIONS, Key, Payload, key_flags, random_limit

_AS_THEY_COME = ("any", "first", "last")  # whose answer is a value of the rows


def _with_compared_table(answer, columns):
    """The answer with floats that maps have computed as they are compared. columns: of its table; None: one that is no
    column of the rows in flight."""
    for place, column in enumerate(columns if answer.table is not None else ()):
        if column is not None and column.computed and column.type.is_float:
            found = answer.table.column(place)
            values = pa.array(comparable_values(column, found.to_pylist()), found.type)
            answer.table = answer.table.set_column(place, answer.table.field(place), values)
    return answer


# ---- aggregations ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class AggregateEnd:
    keys: list
    aggregates: list
    name: tuple
    num_rows: int = 0
    generated: tuple = ()  # rows, groups and keys, before any reduction
    case: object = None
    word = "aggregate"

    def _case(self, aggregates):
        rows, groups, keys = self.generated or (0, 0, self.keys)
        return aggregate_case.Case(*self.name, self.num_rows, self.keys, aggregates, False, [], {}, rows, groups, keys)

    def text(self):
        case = self._case(self.aggregates)
        return f"{case.spec()} {bracketed([key.number for key in self.keys], self._payload())}"

    def _payload(self):
        return [column.number for aggregate in self.aggregates
                for column in [*aggregate.arguments, aggregate.filter] if column]

    def bind(self, rows):
        self.num_rows, self.keys = rows.num_rows, [bound(key, rows) for key in self.keys]
        for aggregate in self.aggregates:
            aggregate.arguments = [bound(column, rows) for column in aggregate.arguments]
            aggregate.filter = aggregate.filter and bound(aggregate.filter, rows)
        if not self.generated:
            self.generated = rows.num_rows, len(set(group_keys(self.keys, rows.num_rows))), self.keys
        known = [dataclasses.replace(aggregate, function="any")
                 if rows.ids is None and aggregate.function in ("first", "last") else aggregate
                 for aggregate in self.aggregates]
        self.case = self._case(known)

    def is_ordered(self):
        """Whether an answer depends on the row ids of the source."""
        return any(aggregate.function in ORDERED for aggregate in self.case.aggregates)

    def may_fail(self):
        return any(aggregate.function in ("sum", "sum_distinct", "avg") for aggregate in self.aggregates)

    def expected(self):
        return aggregate_expected.Expected(self.case, oracles().groups)

    def compared(self, answer):
        for place, aggregate in enumerate(self.aggregates, len(self.keys)):
            if aggregate.function in _AS_THEY_COME:
                values = comparable_values(aggregate.arguments[0], [row[place] for row in answer.rows])
                answer.rows = [(*row[:place], value, *row[place + 1:]) for row, value in zip(answer.rows, values)]
        return answer

    def reduce(self, reduction):
        self.keys = [self.keys[number] for number in reduction.get("keys", range(len(self.keys)))]
        self.aggregates = [self.aggregates[number] for number in reduction.get("aggs", range(len(self.aggregates)))]
        if not self.keys and not self.aggregates:
            raise ValueError("neither keys nor aggregates are left")

    def parts(self):
        """What a reduction may drop: its name, how many there are, how many must stay."""
        return ("aggs", len(self.aggregates), 0), ("keys", len(self.keys), 0)


def _random_argument(rng, rows, function):
    """A column as the function reads it; None where there is none."""
    names = (HOST_ARGUMENT,) if function.name == "host" else ACCEPTED[function.accepts]
    usable = [column for column in rows.columns if column.type.name in names
              and not (function.name == "host" and column.type.index)]
    if not usable:
        return None
    column = rng.choice(usable)
    read = as_compared(rng, column) if function.name in COMPARING else maybe_nullable(rng, column.type)
    return dataclasses.replace(column, type=read)


def _random_aggregate(rng, rows):
    while True:
        function = FUNCTIONS[rng.choice(list(FUNCTIONS))]
        if rows.ids is None and function.name == "string_agg":
            continue
        arguments = [_random_argument(rng, rows, function)
                     for _ in range(2 if function.name == "host" else function.num_arguments)]
        if None not in arguments:
            break
    bools = [column for column in rows.columns if column.type.name == "bool" and not column.type.index]
    condition = rng.choice(bools) if bools and rng.random() < 0.3 else None
    if condition:
        condition = dataclasses.replace(condition, type=ColumnType("bool", nullable=True))
    return Aggregate(function.name, [column.type for column in arguments], arguments, condition,
                     rng.choice(("0", "1", "0.5", "0.9", repr(round(rng.random(), 3)))),
                     rng.choice((b"", b",", b"|", b"[", b"-" * 40)) if function.name == "string_agg" else b"")


def _random_aggregation(rng, rows, name):
    count = 0 if rng.random() < 0.15 else min(rng.choice((1, 1, 1, 2, 3)), len(rows.columns))
    keys = [dataclasses.replace(column, type=as_compared(rng, column)) for column in rng.sample(rows.columns, count)]
    for key in keys:
        key.type = dataclasses.replace(key.type, null_equal=key.type.nullable)
    fewest = 0 if keys else 1
    aggregates = [_random_aggregate(rng, rows) for _ in range(max(rng.choice((0, 1, 1, 2, 3, 4, 6)), fewest))]
    return AggregateEnd(keys, aggregates, name)


# ---- sorts -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class SortEnd:
    keys: list           # (number, Key) each
    payload: list        # (number, Payload) each
    limit: int
    stable: bool
    partition: int
    window: list
    name: tuple
    generated_rows: int | None = None  # before any reduction
    case: object = None
    columns: list = ()   # of the rows in flight, those of which the results are
    word = "sort"

    def _case(self, num_rows, stable):
        return sort_case.Case(*self.name, num_rows, [key for _, key in self.keys], [one for _, one in self.payload],
                              self.limit, stable, self.partition, self.window, False, [], {},
                              self.generated_rows or 0, "as they come")

    def text(self):
        numbers = [[number for number, _ in of] for of in (self.keys, self.payload)]
        return f"{self._case(0, self.stable).spec()} {bracketed(*numbers)}"

    def bind(self, rows):
        flow = rows.columns
        self.keys = [(number, dataclasses.replace(key, values=flow[number].values, indices=flow[number].indices))
                     for number, key in self.keys]
        self.payload = [(number, dataclasses.replace(one, column=one.column and bound(one.column, rows)))
                        for number, one in self.payload]
        if self.generated_rows is None:
            self.generated_rows = rows.num_rows
        self.columns = [flow[number] for number, key in self.keys if key.out]
        self.columns += [one.column for _, one in self.payload]
        self.case = self._case(rows.num_rows, self.stable and rows.ids is not None)

    def is_ordered(self):
        return self.case.stable or self.case.has_row_id()

    def may_fail(self):
        return False

    def expected(self):
        return sort_expected.Expected(self.case, oracles().order)

    def compared(self, answer):
        return _with_compared_table(answer, self.columns)

    def reduce(self, reduction):
        self.payload = [self.payload[number] for number in reduction.get("payload", range(len(self.payload)))]
        self.keys = [self.keys[number] for number in reduction.get("keys", range(len(self.keys)))]
        self.window = [self.window[number] for number in reduction.get("window", range(len(self.window)))]
        self.limit = reduction.get("limit", [self.limit])[0]
        self.partition = min(self.partition, len(self.keys)) if self.window else 0

    def parts(self):
        return ("payload", len(self.payload), 0), ("window", len(self.window), 0), ("keys", len(self.keys), 1)


def _random_sort(rng, rows, name):
    keys, payload = [], []
    for column in rng.sample(rows.columns, min(rng.choice((1, 1, 2, 3, 5)), len(rows.columns))):
        key_type = as_compared(rng, column)
        keys.append((column.number, Key(key_type, column.values, column.indices, *key_flags(rng, key_type))))
    for column in rng.choices(rows.columns, k=rng.choice((0, 1, 2, len(rows.columns)))):
        column = dataclasses.replace(column, type=maybe_nullable(rng, column.type))
        payload.append((column.number, Payload(column.type, column)))
    if rows.ids is not None and rng.random() < 0.2:
        payload.append((rng.randrange(len(rows.columns)), Payload(ColumnType("rowid"), None)))
    window = rng.sample(WINDOW_FUNCTIONS, rng.randint(1, 3)) if rng.random() < 0.2 else []
    return SortEnd(keys, payload, random_limit(rng, rows.num_rows), rng.random() < 0.4,
                   rng.choice((0, 1, len(keys))) if window else 0, window, name)


# ---- rows for the host -----------------------------------------------------------------------------------------------


@dataclasses.dataclass
class EmitAnswer:
    rows: list
    stops_after: int | None = None  # calls, after which the host wanted no more rows


class EmittedRows:
    def __init__(self, rows):
        self.rows = collections.Counter(rows)

    def check(self, answer):
        found = collections.Counter(answer.rows)
        extra, missing = list((found - self.rows).items()), list((self.rows - found).items())
        if extra or missing and answer.stops_after is None:
            raise Mismatch(f"{len(answer.rows)} rows came, expected {sum(self.rows.values())}; {len(extra)} distinct "
                           f"rows too many, {len(missing)} missing; (row, how often)\n  unexpected: {extra[:3]}\n  "
                           f"missing:    {missing[:3]}")


@dataclasses.dataclass
class EmitEnd:
    numbers: list
    columns: list = ()
    num_rows: int = 0
    word = "emit"

    def text(self):
        return f"emit {bracketed(self.numbers)}"

    def bind(self, rows):
        self.columns, self.num_rows = [rows.columns[number] for number in self.numbers], rows.num_rows

    def is_ordered(self):
        return False

    def may_fail(self):
        return False

    def expected(self):
        if not self.columns:
            return EmittedRows([()] * self.num_rows)
        values = [[None if index is None else column.values[index] for index in column.indices]
                  for column in self.columns]
        return EmittedRows(zip(*values))

    def compared(self, answer):
        if self.columns:
            columns = list(zip(*answer.rows)) or [()] * len(self.columns)
            answer.rows = list(zip(*(comparable_values(column, of) for column, of in zip(self.columns, columns))))
        return answer

    def reduce(self, reduction):
        self.numbers = [self.numbers[number] for number in reduction.get("emit", range(len(self.numbers)))]

    def parts(self):
        return (("emit", len(self.numbers), 0),)


# ---- tables ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class BuildEnd:
    """A table, which rows of its own then probe."""
    join: FlowJoin
    case: object = None
    columns: list = ()
    word = "build"

    def text(self):
        return f"build {self.join.spec} {bracketed(self.join.keys_read(), self.join.payload_read())}"

    def bind(self, rows):
        self.case = self.join.case(rows)
        of_rows = iter(self.join.flow_payload)
        read = [next(of_rows) if output.side == "build" else (0, None) for output in self.case.outputs()]
        self.columns = [rows.columns[number] if column_type and column_type.name != "rowid" else None
                        for number, column_type in read]

    def is_ordered(self):
        return False

    def may_fail(self):
        return self.join.kind.name == "single"

    def expected(self):
        return join_expected.Expected(self.case, oracles().join)

    def compared(self, answer):
        return _with_compared_table(answer, self.columns)

    def reduce(self, reduction):
        pass

    def parts(self):
        return ()


# ---- any end ---------------------------------------------------------------------------------------------------------


def random_end(rng, rows, name, first_row_id, has_steps):
    words = ["aggregate"] * 7 + ["sort"] * 5 + ["build"] * 4 + ["emit"] * 4
    word = rng.choice(words if rows.columns else ["aggregate", "emit"])
    if word == "emit" and not has_steps:  # which is refused
        word = "aggregate"
    if word == "emit":
        count = len(rows.columns)
        end = EmitEnd(rng.choice((list(range(count)), rng.choices(range(count), k=rng.randint(0, count)) if count
                                  else [])))
    elif word == "aggregate":
        end = _random_aggregation(rng, rows, name)
    elif word == "sort":
        end = _random_sort(rng, rows, name)
    else:
        end = BuildEnd(random_join(rng, rows, "build", KINDS.values(), name, first_row_id))
    end.bind(rows)
    return end
