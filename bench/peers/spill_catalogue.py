# SPDX-License-Identifier: Apache-2.0
"""The jobs of spill_compare.py, in SQL and in the words of Quern's command line. spill_cases.py makes their tables."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class SpillCase:
    name: str
    tables: tuple  # names of FILES
    sql: str
    command: tuple  # of quern; names of tables in braces
    columns: tuple  # of the result
    keys: tuple = ()  # by which its rows are sorted

    def quern(self, paths):
        return [word.format(**paths) for word in self.command]


CASES = (
    SpillCase("sort/i64", ("sort",), "SELECT k, p FROM sort ORDER BY k",
              ("sort", "--by", "k", "--select", "k,p", "{sort}"), ("k", "p"), ("k",)),
    SpillCase("sort/text,i64", ("sort",), "SELECT t, k FROM sort ORDER BY t, k",
              ("sort", "--by", "t,k", "--select", "t,k", "{sort}"), ("t", "k"), ("t", "k")),
    SpillCase("join/i64", ("probe", "build"),
              "SELECT probe.k AS k, p, b FROM probe JOIN build ON probe.k = build.k",
              ("join", "--on", "k", "--select", "probe.k,p,b", "{probe}", "{build}"), ("k", "p", "b")),
    SpillCase("aggregate/i64", ("probe",), "SELECT k, count(*) AS n, CAST(sum(p) AS BIGINT) AS s FROM probe GROUP BY k",
              ("aggregate", "--by", "k", "--agg", "count(*) as n, sum(p) as s", "{probe}"), ("k", "n", "s")),
)
