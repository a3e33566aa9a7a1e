# SPDX-License-Identifier: Apache-2.0
"""Strings with their ranks in other systems, from test/collations: equal strings have equal ranks; smaller ranks sort
first.

    for corpus in corpora(folder):
        corpus.name, corpus.collation      "MariaDB+MySQL", "utf8mb4_general_ci"
        corpus.strings, corpus.ranks       bytes and dense ranks, of those strings that the system could hold

The files are lines of columns between tabs. Ranks are written as differences to the rank before, '-' where there is
none; code points likewise, in front of a ':' unless the difference is 1:

    utf8_bin  MySQL  4 -1 - 2          ranks 4, 3, none, 5
    utf8_bin  MySQL  65:0 1 2:-1       A has rank 0, B 1, D 0
"""
import dataclasses
import gzip
import pathlib


@dataclasses.dataclass
class Corpus:
    name: str
    collation: str
    strings: list
    ranks: list
    is_text: bool = True  # well-formed UTF-8


def dense(ranks):
    place = {rank: number for number, rank in enumerate(sorted(set(ranks)))}
    return [place[rank] for rank in ranks]


def _lines(folder, name):
    with gzip.open(pathlib.Path(folder) / f"{name}.txt.gz", "rt", encoding="ascii") as file:
        return file.read().split("\n")[:-1]


def _ranked(folder):
    strings = [bytes.fromhex(line) for line in _lines(folder, "strings")]
    for line in _lines(folder, "ranks"):
        collation, systems, steps = line.split("\t")
        rank, some, ranks = 0, [], []
        for string, step in zip(strings, steps.split()):
            if step != "-":
                rank += int(step)
                some.append(string)
                ranks.append(rank)
        yield Corpus(systems, collation, some, dense(ranks))


def _is_padding(collation, code, rank_of):
    """What is cut from a string's end, and yet ranked by its weight there."""
    if collation.startswith("tidb."):
        return code == 0x20
    return not collation.startswith("utf8mb4_0900") and rank_of[code] == rank_of[0x20]


def _code_points(folder):
    for line in _lines(folder, "codepoints"):
        collation, systems, steps = line.split("\t")
        code, rank, rank_of = 0, 0, {}
        for step in steps.split():
            ahead, _, difference = step.rpartition(":")
            code, rank = code + int(ahead or 1), rank + int(difference)
            rank_of[code] = rank
        rows = [(chr(code).encode(), rank) for code, rank in rank_of.items()
                if not _is_padding(collation, code, rank_of)]
        yield Corpus(f"code points of {systems}", collation, [row[0] for row in rows], dense([row[1] for row in rows]))


def _ill_formed(folder):
    names, *rows = [line.split("\t") for line in _lines(folder, "ill_formed")]
    strings = [bytes.fromhex(row[0]) for row in rows]
    for column, collation in enumerate(names[1:], 1):
        yield Corpus("ill-formed of TiDB", collation, strings, dense([bytes.fromhex(row[column]) for row in rows]),
                     False)


def corpora(folder):
    for read in (_ranked, _code_points, _ill_formed):
        yield from read(folder)


def like_cases(folder):
    """Of each collation (pattern, escape, string, whether it is like that)."""
    header, *rows = [line.split("\t") for line in _lines(folder, "like")]
    for place, collation in enumerate(header[3].split()):
        for pattern, string, escape, answers in rows:
            yield collation, bytes.fromhex(pattern), escape, bytes.fromhex(string), answers.split()[place] == "1"
