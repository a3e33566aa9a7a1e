# SPDX-License-Identifier: Apache-2.0
"""The queries: queries/SUITE/NUMBER.sql for the other engines and queries/SUITE/NUMBER.quern for Quern. A query is
named SUITE.NUMBER, such as tpch.3 or ssb.1_1, and those of suite seam SUITE/KEYS, as joins of bench/peers are named.
Their columns have names: the engines' answers are compared by them.

The .quern texts give the steps of each query: filters first, joins in the order that DuckDB plans at scale factor 1
(EXPLAIN), and the side with fewer rows in the hash table. A join that only tests a unique key is a semi join. The .sql
texts are the standard ones, TPC-H's with its validation parameters; an ORDER BY stands only before a LIMIT.
"""
import dataclasses
import os
import re

import steps_sql

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "queries")
SUITES = ("tpch", "ssb", "seam")
OPERATOR = "query"  # in place of an operator of bench/peers, whose engines ask for it


@dataclasses.dataclass(frozen=True)
class Query:
    suite: str
    number: str

    @property
    def name(self):
        return f"{self.suite}{'/' if self.suite == 'seam' else '.'}{self.number}"

    @property
    def sql(self):
        return self._text("sql")

    @property
    def steps(self):
        return self._text("quern")

    @property
    def sql_of_steps(self):
        """SQL with the joins in the order of the .quern text."""
        return steps_sql.to_sql(self.steps)

    def _text(self, ending):
        with open(os.path.join(FOLDER, self.suite, f"{self.number}.{ending}")) as file:
            return file.read()


@dataclasses.dataclass(frozen=True)
class Suite:
    """What the engines of bench/peers ask a case when they load its tables."""
    name: str
    operator: str = OPERATOR
    has_texts: bool = True


def _numbers(suite):
    names = [name.removesuffix(".sql") for name in os.listdir(os.path.join(FOLDER, suite)) if name.endswith(".sql")]
    return sorted(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])


QUERIES = [Query(suite, number) for suite in SUITES for number in _numbers(suite)]


def matching(names):
    """The queries of `names`, suites or queries, in the order of QUERIES. ValueError for a name that is neither."""
    known = {*SUITES, *(query.name for query in QUERIES)}
    for name in names:
        if name not in known:
            raise ValueError(f"unknown query: {name}; accepted: {', '.join(SUITES)}, "
                             f"{', '.join(query.name for query in QUERIES)}")
    return [query for query in QUERIES if query.suite in names or query.name in names]


def columns_read(suite, schemas):
    """{table: columns} that any query of the suite mentions, in the order of `schemas`, {table: columns}."""
    mentioned = {word for query in QUERIES if query.suite == suite for word in re.findall(r"\w+", query.sql)}
    return {table: [name for name in names if name in mentioned] for table, names in schemas.items()}
