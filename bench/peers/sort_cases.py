# SPDX-License-Identifier: Apache-2.0
"""The sorts that are compared: names, keys, and the target: how much faster Quern should be than the best other engine.

    sort/i32,str       10 M rows by an int32 of 1000 values, then a text of 20,000 words; both columns come out, all
                       rows, in order
    topn/i32,str       the first 100 of these rows
    sort/i64,rowid     with a column that is no key: the number of each row
    collated/sort/str  words compared without regard to case: other engines sort by lower(k0), or by a collation of
                       theirs

sort_arrays.py says what the columns look like.
"""
import dataclasses

ROWS = 10_000_000
LIMIT = 100
MIN_SCALED_ROWS = 16
_FOLDED = {"duckdb": "{} COLLATE NOCASE", "clickhouse,en": "{} COLLATE 'en'"}


@dataclasses.dataclass(frozen=True)
class SortCase:
    name: str
    keys: tuple[str, ...]  # kinds of sort_arrays.KINDS
    rows: int = ROWS
    limit: int | None = None
    has_payload: bool = False  # p0, int64, beside the keys
    target: float | None = None
    ignores_case: bool = False  # of texts

    operator = "sort"

    @property
    def sizes(self):
        return {"rows": self.rows, "out": min(self.limit or self.rows, self.rows)}

    @property
    def num_keys(self):
        return len(self.keys)

    @property
    def has_texts(self):
        return any(key.startswith("str") for key in self.keys)

    @property
    def key_names(self):
        return [f"k{i}" for i in range(self.num_keys)]

    @property
    def column_names(self):
        return self.key_names + (["p0"] if self.has_payload else [])

    def scaled(self, factor):
        return dataclasses.replace(self, rows=max(MIN_SCALED_ROWS, round(self.rows * factor)))

    def sql(self, dialect=None):
        limit = f" LIMIT {self.limit}" if self.limit else ""
        folded = _FOLDED.get(dialect, "lower({})") if self.ignores_case else "{}"
        keys = (folded.format(name) if kind.startswith("str") else name
                for name, kind in zip(self.key_names, self.keys))
        return f"SELECT {', '.join(self.column_names)} FROM facts ORDER BY {', '.join(keys)}{limit}"

    def spec(self):
        text = "utf8(utf8mb4_general_ci)" if self.ignores_case else "utf8"
        keys = ",".join((text if key.startswith("str") else key) + ":out" for key in self.keys)
        return (f"sort keys={keys}" + (" payload=i64" if self.has_payload else "")
                + (f" limit={self.limit}" if self.limit else ""))


_KEYS = {  # by the keys, the target of all rows; of the first ones it is _TOP_TARGET
    ("i64",): 1.33,
    ("i32", "str"): 3.0,
    ("str", "i64"): 3.0,
    ("f64", "i64"): 3.0,
    ("str", "str"): 4.0,
    ("i32", "str", "i64", "str"): 4.0,
    ("str",): 2.5,
    ("str16",): None,
}
_TOP_TARGET = 1.5


def _both(keys, target):
    name = ",".join(keys)
    yield SortCase(f"sort/{name}", keys, target=target)
    yield SortCase(f"topn/{name}", keys, limit=LIMIT, target=_TOP_TARGET)


CASES = (
    *(case for keys, target in _KEYS.items() for case in _both(keys, target)),
    SortCase("sort/i64,rowid", ("i64",), has_payload=True),
    SortCase("topn/i64,rowid", ("i64",), limit=LIMIT, has_payload=True),
    SortCase("collated/sort/str", ("str_cased",), ignores_case=True),
    SortCase("collated/sort/str16", ("str16_cased",), ignores_case=True),
    SortCase("collated/sort/i32,str", ("i32", "str_cased"), ignores_case=True),
    SortCase("collated/topn/str", ("str_cased",), limit=LIMIT, ignores_case=True),
)
