# SPDX-License-Identifier: Apache-2.0
"""Random calls of functions of numbers that were added behind those of map_expressions.FUNCTIONS, over arguments that
map_expressions.Maker makes, and as arguments of other functions:

    ln_checked($0)      least(power_or_null($0,2:f64),exp($1))      multiply(sign($2),$3)
"""
from map_expressions import FLOATS, NUMBER_FUNCTIONS, Expression, Maker, value_type
from random_data import DECIMAL_DIGITS


class NumberMaker:
    """Calls over columns of these types."""

    def __init__(self, rng, types):
        self.rng, self.inner = rng, Maker(rng, types)

    def any(self):
        rng, made = self.rng, self._call(self.rng.choice(tuple(NUMBER_FUNCTIONS)))
        if made.type.name not in FLOATS or rng.random() < 0.7:
            return made
        other = self.inner.of(made.type, 0)
        nullable = made.type.nullable and other.type.nullable
        return Expression("least", (made, other), value_type(made.type.name, nullable))

    def _call(self, function):
        rng, (_, accepts, num_arguments) = self.rng, NUMBER_FUNCTIONS[function]
        name = rng.choice(accepts)
        source = value_type(name, True, *((min(15, DECIMAL_DIGITS[name]), 2) if name in DECIMAL_DIGITS else ()))
        arguments = tuple(self.inner.of(source, rng.choice((0, 0, 1))) for _ in range(num_arguments))
        nullable = any(argument.type.nullable for argument in arguments) or function.endswith("or_null")
        return Expression(function, arguments, value_type("i32" if function == "sign" else name, nullable))
