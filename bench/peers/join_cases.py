# SPDX-License-Identifier: Apache-2.0
"""The joins that are compared: names, sizes, and the target: how much faster Quern should be than the best other
engine.

    join/int32/build100000/extra4     keys int32, 100,000 build rows, four int64 columns of the build side summed over
                                      the result
    join/i64sparse/dup4               without extra columns the result is counted

join_arrays.py says what each kind of key looks like.
"""
import dataclasses

INTEGER_PROBE_ROWS = 20_000_000
TEXT_PROBE_ROWS = 10_000_000
MIN_SCALED_ROWS = 16  # below it, kinds of keys that need several rows per value would have none


@dataclasses.dataclass(frozen=True)
class JoinCase:
    name: str
    keys: str  # a kind of join_arrays.KINDS; one with a comma has two key columns
    build_rows: int
    probe_rows: int
    num_extra: int = 0  # int64 columns of the build side that are summed; 0: the result is counted
    target: float | None = None

    operator = "join"
    ignores_case = False

    @property
    def num_keys(self):
        return self.keys.count(",") + 1

    @property
    def sizes(self):
        return {"build": self.build_rows, "probe": self.probe_rows}

    @property
    def has_texts(self):
        return "text" in self.keys or "str" in self.keys

    def scaled(self, factor):
        rows = [max(MIN_SCALED_ROWS, round(rows * factor)) for rows in (self.build_rows, self.probe_rows)]
        return dataclasses.replace(self, build_rows=rows[0], probe_rows=rows[1])

    def sql(self, _dialect=None):
        result = ", ".join(f"sum(x{i}) AS a{i}" for i in range(self.num_extra)) or "count(*) AS a0"
        keys = " AND ".join(f"probe.k{i} = build.k{i}" for i in range(self.num_keys))
        return f"SELECT {result} FROM probe JOIN build ON {keys}"


def _grid(keys, probe_rows, targets):
    """The table of build sizes and extra columns of one kind of key. `targets`: by (build rows, extra columns)."""
    for build_rows in (1_000, 100_000, 10_000_000):
        for num_extra in (0, 4):
            name = f"join/{keys}/build{build_rows}/extra{num_extra}"
            yield JoinCase(name, keys, build_rows, probe_rows, num_extra, targets.get((build_rows, num_extra)))


# A small table fits in a cache, and leaves nothing to win but must not lose.
_SMALL = {(1_000, 0): 1.0, (1_000, 4): 1.0}

CASES = (
    *_grid("int32", INTEGER_PROBE_ROWS, {**_SMALL, (10_000_000, 0): 4.0}),
    *_grid("text16", TEXT_PROBE_ROWS, {**_SMALL, (10_000_000, 0): 3.0}),
    *(case for case in _grid("text64", TEXT_PROBE_ROWS, _SMALL) if case.name != "join/text64/build10000000/extra4"),
    JoinCase("join/i64sparse/build10000000", "i64sparse", 10_000_000, INTEGER_PROBE_ROWS, target=5.0),
    JoinCase("join/i64sparse/build100000", "i64sparse", 100_000, INTEGER_PROBE_ROWS),
    JoinCase("join/i64sparse/hit10%", "hit10%", 10_000_000, INTEGER_PROBE_ROWS),
    JoinCase("join/i64sparse/zipf1.5", "zipf1.5", 10_000_000, INTEGER_PROBE_ROWS, target=3.0),
    JoinCase("join/i64sparse/dup4", "dup4", 10_000_000, INTEGER_PROBE_ROWS, target=3.0),
    JoinCase("join/i64,str/build2M", "i64,str", 2_000_000, TEXT_PROBE_ROWS, target=4.0),
    JoinCase("join/selfjoin20M", "selfjoin", 20_000_000, 20_000_000),
)
