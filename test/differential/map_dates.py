# SPDX-License-Identifier: Apache-2.0
"""Random calls of functions of dates and timestamps, over arguments that map_expressions.Maker makes.

    add_months($0,-7:i32)          (CAST((DATE '1970-01-01' + c0) + to_months(CAST('-7' AS INTEGER)) AS DATE) - ..)

DuckDB's timestamps end earlier than ours, and some are infinite: only timestamps of the years around 1843 to 2096 have
SQL, and only small numbers of days and months. Such a timestamp is least(greatest(t, low), high), which is never null.
"""
import dataclasses

from map_expressions import DATE_FUNCTIONS, Expression, Maker, value_type

_LIMIT = 4 * 10**15
_UNITS = 10**6


def _constant(text, name):
    return Expression(":", (str(text),), value_type(name))


class DateMaker:
    """Calls over columns of these types."""

    def __init__(self, rng, types):
        self.rng, self.inner = rng, Maker(rng, types)

    def any(self):
        rng, function = self.rng, self.rng.choice(tuple(DATE_FUNCTIONS))
        _, accepts, result = DATE_FUNCTIONS[function]
        in_sql = rng.random() < 0.7
        arguments = [self._timestamp(in_sql) if accepts[0] == "timestamp" else self._date()]
        if accepts[1:] == ("i32",):
            arguments.append(self._number(in_sql))
        elif accepts[1:] == ("units",):
            units = _UNITS if in_sql else rng.choice((1, 1000, 10**6, 10**9))
            # A timestamp that is made of a date has the unit that the call names; columns here have microseconds.
            arguments.append(_constant(_UNITS if result == "timestamp" and accepts[0] == "date32" else units, "i64"))
        elif accepts[1:]:
            arguments.append(self._date())
        nullable = any(argument.type.nullable for argument in arguments)
        return Expression(function, tuple(arguments), value_type(result, nullable), in_sql)

    def _date(self):
        return self.inner.of(value_type("date32", True), self.rng.choice((0, 0, 1)))

    def _number(self, is_small):
        if is_small:
            return _constant(self.rng.choice((0, 1, -1, 12, self.rng.randint(-500, 500))), "i32")
        return self.inner.of(value_type("i32", True), 1)

    def _timestamp(self, is_clamped):
        made = self.inner.of(value_type("timestamp", True), 0)
        if not is_clamped:
            return made
        for function, limit in (("greatest", -_LIMIT), ("least", _LIMIT)):
            bound = self.rng.randint(limit - 10**12, limit)
            made = Expression(function, (made, *[_constant(bound, "timestamp")] * 2),
                              dataclasses.replace(made.type, nullable=False))
        return made
