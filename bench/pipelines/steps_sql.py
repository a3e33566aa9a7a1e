# SPDX-License-Identifier: Apache-2.0
"""A .quern text as SQL that keeps its steps in their order, for engines that plan joins as SQL names them. Every step
is a subquery of the one before:

    building:
    scan customer                          s1 AS (SELECT * FROM customer)
    result:
    scan orders                            s2 AS (SELECT * FROM orders)
    filter o_orderdate < date '1995-03-15' s3 AS (SELECT * FROM s2 WHERE o_orderdate < date '1995-03-15')
    join.semi building on o_custkey = ..   s4 AS (SELECT * FROM s3 LEFT SEMI JOIN s1 ON o_custkey = ..)

It reads the steps that the texts of queries/ use, and no others: joins are inner or semi joins.
"""
import re

_STEP = re.compile(r"(scan|filter|select|join(?:\.\w+)?|aggregate|sort)\s+(.*)")
_JOINS = {"join": "JOIN", "join.semi": "LEFT SEMI JOIN"}


def relations(text):
    """[(name, [(word, rest)])] in the order of the text."""
    relations = []
    for line in text.splitlines():
        line = line.partition("--")[0].strip()
        if not line:
            continue
        if line.endswith(":"):
            relations.append((line[:-1], []))
            continue
        if not relations:
            relations.append(("result", []))
        steps, step = relations[-1][1], _STEP.match(line)
        if step:
            steps.append(step.groups())
        else:
            steps[-1] = (steps[-1][0], f"{steps[-1][1]} {line}")
    return relations


def split(text):
    """At the commas outside parentheses."""
    return [part.strip() for part in re.split(r",\s*(?![^()]*\))", text)]


def _aggregate(rest, rows):
    calls, _, keys = rest.rpartition(" by ") if " by " in rest else (rest, "", "")
    groups = [re.sub(r" as \w+$", "", key) for key in split(keys)] if keys else []
    columns = ", ".join(filter(None, (keys, calls)))
    return f"SELECT {columns} FROM {rows}" + (f" GROUP BY {', '.join(groups)}" if groups else "")


def _subquery(word, rest, rows, names):
    """The step over `rows`, a subquery; `names` has the subqueries of earlier relations."""
    if word == "scan":
        return f"SELECT * FROM {names.get(rest, rest)}"
    if word == "filter":
        return f"SELECT * FROM {rows} WHERE {rest}"
    if word == "select":
        return f"SELECT {rest} FROM {rows}"
    if word == "aggregate":
        return _aggregate(rest, rows)
    if word == "sort":
        return f"SELECT * FROM {rows} ORDER BY {rest}"
    if word in _JOINS:
        relation, _, condition = rest.partition(" on ")
        return f"SELECT * FROM {rows} {_JOINS[word]} {names.get(relation, relation)} ON {condition}"
    raise ValueError(f"unknown step: {word}; accepted: scan, filter, select, aggregate, sort, {', '.join(_JOINS)}")


def to_sql(text):
    subqueries, names, rows = [], {}, None
    for relation, steps in relations(text):
        for word, rest in steps:
            query = _subquery(word, rest, rows, names)
            rows = f"s{len(subqueries) + 1}"
            subqueries.append(f"{rows} AS ({query})")
        names[relation] = rows
    text = f"WITH {', '.join(subqueries)} SELECT * FROM {rows}"
    return re.sub(r"\byear\((\w+)\)", r"extract(YEAR FROM \1)", text)
