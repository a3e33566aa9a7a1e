# SPDX-License-Identifier: Apache-2.0
"""A .quern text as texts of one operator each, so that every operator runs alone over whole tables:

    scan lineitem                                    rows = lineitem
    filter l_shipdate > date '1995-03-15'            rows = scan rows / filter l_shipdate > ..
    join open_orders on l_orderkey = o_orderkey      rows = scan rows / join open_orders on ..
    aggregate sum(l_extendedprice * (1 - l_discount) rows = scan rows / select .., l_extendedprice * (1 - l_discount)
        as revenue by l_orderkey                            as v0
                                                     rows = scan rows / aggregate sum(v0) as revenue by l_orderkey

Behind each step a `select` keeps the columns that the rest of the query mentions. It costs nothing, since it only says
which columns the operator writes.
"""
import re

import steps_sql

_CALL = re.compile(r"(\w+)\((.*?)\)(\s+filter\s+\(.*\))?\s+as\s+(\w+)$")
_KEY = re.compile(r"(.*\S)\s+as\s+(\w+)$")
_WORD = re.compile(r"\w+")


def _computed(rest):
    """What an aggregation computes: ([(expression, name)], the aggregation without expressions)."""
    calls, _, keys = rest.rpartition(" by ") if " by " in rest else (rest, "", "")
    names, calls_left, keys_left = {}, [], []
    for call in steps_sql.split(calls):
        function, argument, condition, name = _CALL.match(call).groups()
        if argument != "*" and not _WORD.fullmatch(argument):
            argument = names.setdefault(argument, f"v{len(names)}")
        calls_left.append(f"{function}({argument}){condition or ''} as {name}")
    expressions = list(names.items())
    for key in steps_sql.split(keys) if keys else []:
        expression = _KEY.match(key)
        if expression:
            expressions.append(expression.groups())
        keys_left.append(expression[2] if expression else key)
    return expressions, ", ".join(calls_left) + (f" by {', '.join(keys_left)}" if keys_left else "")


class Steps:
    """The steps of a text, one after the other. `run(text, tables)` runs a text over tables by their names and returns
    rows; `names(rows)` has the names of their columns."""

    def __init__(self, text, run, names):
        self._relations, self._run, self._names = steps_sql.relations(text), run, names

    def result(self, tables):
        """The rows of the last relation."""
        tables, rows = dict(tables), None
        rests = [[rest for _, rest in steps] for _, steps in self._relations]
        for i, (relation, steps) in enumerate(self._relations):
            later = [rest for other in rests[i + 1:] for rest in other]
            rows = tables[steps[0][1]]
            for j, (word, rest) in enumerate(steps[1:], 1):
                wanted = set(_WORD.findall(" ".join(rests[i][j + 1:] + later)))
                is_last = i + 1 == len(rests) and j + 1 == len(steps)
                rows = self._step(word, rest, rows, tables, None if is_last else wanted)
            tables[relation] = rows
        return rows

    def _step(self, word, rest, rows, tables, wanted):
        """Rows with the columns `wanted`; None: all."""
        if word == "aggregate":
            expressions, rest = _computed(rest)
            if expressions:
                mentioned = set(_WORD.findall(rest))
                columns = [name for name in self._names(rows) if name in mentioned]
                columns += [f"{expression} as {name}" for expression, name in expressions]
                rows = self._run(f"scan step_rows\nselect {', '.join(columns)}", {"step_rows": rows})
        used = {"step_rows": rows}
        columns = list(self._names(rows))
        if word.startswith("join"):
            relation = rest.partition(" on ")[0]
            used[relation] = tables[relation]
            columns += [] if word.endswith("semi") else self._names(used[relation])
        text = f"scan step_rows\n{word} {rest}"
        if wanted is not None and word in ("filter", "join", "join.semi"):
            text += f"\nselect {', '.join([name for name in columns if name in wanted] or columns[:1])}"
        return self._run(text, used)
