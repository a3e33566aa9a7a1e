# SPDX-License-Identifier: Apache-2.0
"""The tables and queries of the PostgreSQL hackers' thread about prefetching in hash joins, and aggregates and sorts of
like sizes.

The thread joins a probe table of 10 M rows with a build table of 1,000, 100,000 or 10 M: keys are an int or a text of
8, 16, 32 or 64 bytes, and the build table has 0, 2 or 4 further columns that the query reads. It also joins a table of
20 M ints with itself. Each case here names its tables, so that those of one case can be dropped before the next.

A text of 8 bytes is the key times an odd number, modulo 2^32, in hexadecimal digits: different keys have different
texts. Longer ones have digits of the key's MD5 before that."""

import dataclasses

KEYS = ("int", "text8", "text16", "text32", "text64")
COLUMNS = ("a", "b", "c", "d")
PROBE_ROWS, SELF_ROWS, GROUP_ROWS, SORT_ROWS, TEXT_SORT_ROWS = 10_000_000, 20_000_000, 20_000_000, 10_000_000, 5_000_000


@dataclasses.dataclass
class Case:
    name: str
    title: str
    tables: dict  # name -> SELECT that makes it
    sql: str


def key_of(kind, number):
    """The SQL of a key."""
    if kind == "int":
        return number
    digits = f"lpad(to_hex(({number}::int8 * 2654435761) % 4294967296), 8, '0')"
    more = int(kind.removeprefix("text")) - 8
    return digits if more == 0 else f"substr(repeat(md5(({number})::text), 2), 1, {more}) || {digits}"


def scaled(rows, scale):
    return max(1, round(rows * scale))


def joins(scale, keys, builds, columns):
    probe_rows = scaled(PROBE_ROWS, scale)
    for kind in keys:
        for full in builds:
            build_rows = min(full, probe_rows)
            build, probe = f"build_{kind}_{full}", f"probe_{kind}_{full}"
            payload = ", ".join(f"g + {i} as {name}" for i, name in enumerate(COLUMNS))
            tables = {
                build: f"select {key_of(kind, 'g')} as k, {payload} from generate_series(1, {build_rows}) g "
                       "order by random()",
                probe: f"select {key_of(kind, 'n')} as k, n as a from (select 1 + floor(random() * {build_rows})::int "
                       f"as n from generate_series(1, {probe_rows}) g offset 0) numbers",
            }
            for width in columns:
                read = ", ".join(f"sum(build.{name})" for name in COLUMNS[:width])
                yield Case(f"join/{kind}/{full}/{width}",
                           f"{probe_rows:,} x {build_rows:,} {kind}, {width} columns", tables,
                           f"select {read or 'count(*)'} from {probe} probe join {build} build using (k)")


def self_join(scale):
    rows = scaled(SELF_ROWS, scale)
    yield Case("join/self", f"self join of {rows:,} int", {"self": f"select g as i from generate_series(1, {rows}) g"},
               "select count(*) from self t1 join self t2 using (i)")


def groups(scale):
    rows = scaled(GROUP_ROWS, scale)
    tables = {"groups": "select " + ", ".join(f"floor(random() * {scaled(n, scale)})::int8 as k{n}"
                                              for n in (10_000, 1_000_000, 10_000_000))
              + f", floor(random() * 1000)::int as v, random() as f from generate_series(1, {rows}) g"}
    for number in (10_000, 1_000_000, 10_000_000):
        yield Case(f"aggregate/{number}", f"{rows:,} rows, {scaled(number, scale):,} groups", tables,
                   "select count(*), max(c), max(s), min(m) from "
                   f"(select k{number}, count(*) c, sum(v) s, max(v) m from groups group by k{number} offset 0) made")
    probe = scaled(PROBE_ROWS, scale)
    tables = {"facts": f"select 1 + floor(random() * {probe})::int as k, g as v from generate_series(1, {probe}) g",
              "keys": f"select g as k, g / 2 as part from generate_series(1, {probe}) g order by random()"}
    yield Case("aggregate/join", f"join of {probe:,} x {probe:,}, {probe // 2:,} groups", tables,
               "select count(*), max(c), max(s) from (select part, count(*) c, sum(v) s from facts join keys using (k) "
               "group by part offset 0) made")


def sorts(scale):
    rows, texts = scaled(SORT_ROWS, scale), scaled(TEXT_SORT_ROWS, scale)
    numbers = {"numbers": "select floor(random() * 1e9)::int8 as k, random() as f, g as a "
                          f"from generate_series(1, {rows}) g"}
    words = {"words": "select substr(md5(random()::text), 1, 16) as k, (array['apple', 'Äpfel', 'banana', 'Birne', "
                      "'cherry', 'Zebra', 'école', 'Ecole'])[1 + floor(random() * 8)::int] || ' ' || "
                      f"substr(md5(random()::text), 1, 8) as w, g as a from generate_series(1, {texts}) g"}
    for name, title, tables, column, order in (
            ("int8", f"{rows:,} int8", numbers, "k", "k"),
            ("float8-int8", f"{rows:,} float8 and int8", numbers, "f", "f, k"),
            ("text16-c", f"{texts:,} texts of 16 bytes, C", words, "k", 'k collate "C"'),
            ("text16-icu", f"{texts:,} texts of 16 bytes, ICU", words, "k", 'k collate "und-x-icu"'),
            ("words-c", f"{texts:,} texts of two words, C", words, "w", 'w collate "C"'),
            ("words-icu", f"{texts:,} texts of two words, ICU", words, "w", 'w collate "und-x-icu"')):
        table = next(iter(tables))
        read = "*" if table == "numbers" else f"{column}, a"
        # The extension drops a sort whose order does not matter. With an offset it does.
        yield Case(f"sort/{name}", f"sort of {title}", tables,
                   f"select count({column}), count(a) from (select {read} from {table} order by {order} offset 1) made")


def cases(scale, keys=KEYS, builds=(1_000, 100_000, 10_000_000), columns=(0, 2, 4)):
    return [*self_join(scale), *joins(scale, keys, builds, columns), *groups(scale), *sorts(scale)]
