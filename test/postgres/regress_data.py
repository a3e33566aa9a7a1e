# SPDX-License-Identifier: Apache-2.0
"""Files of rows for PostgreSQL's regression suite: regress_data.py FOLDER

The suite's own data files are not in the package that its statements come from. These have the same columns, and
columns of the same meaning where the statements rely on it: unique1 of tenk1 is a permutation, unique2 counts rows,
hundred is unique1 % 100."""

import json
import pathlib
import random
import sys

SEED = 1995


def wisconsin(rng, rows):
    """Tables of the Wisconsin benchmark."""
    numbers = list(range(rows))
    rng.shuffle(numbers)
    for i, number in enumerate(numbers):
        odd = number % 100 * 2
        yield [number, i, *(number % n for n in (2, 4, 10, 20, 100, 1000, 2000, 5000, 10000)), odd, odd + 1,
               letters(number), letters(i), ("AAAA", "HHHH", "OOOO", "VVVV")[i % 4] + "xx"]


def letters(number):
    """The number in base 26, its lowest digit first, as the suite's names have it."""
    text = ""
    while number:
        text += chr(ord("A") + number % 26)
        number //= 26
    return text.ljust(6, "A")


def point(rng):
    return f"({rng.randint(0, 20)},{rng.randint(0, 20)})"


def path(rng):
    x, y = rng.uniform(-122.3, -121.6), rng.uniform(37.3, 37.9)
    steps = ((x + i * rng.uniform(-0.01, 0.01), y + i * rng.uniform(-0.01, 0.01)) for i in range(rng.randint(2, 12)))
    return "[" + ",".join(f"({a:.4f},{b:.4f})" for a, b in steps) + "]"


def streets(rng):
    kinds = ["I- {}", "State Hwy {}", "{}th St", "{}th Ave", "Road {}", "Canyon Road {}"]
    return [[rng.choice(kinds).format(rng.choice((5, 13, 24, 77, 80, 84, 92, 123, 205, 580, 680, 880))), path(rng)]
            for _ in range(600)]


def city(rng, name):
    box = [rng.uniform(-122, -121.7), rng.uniform(37.5, 37.7)]
    corners = [(box[0] + dx, box[1] + dy) for dx, dy in ((0, 0), (0.1, 0), (0.1, 0.1), (0, 0.1))]
    return [rng.randint(1000, 400000), name, "(" + ",".join(f"({x:.4f},{y:.4f})" for x, y in corners) + ")"]


def people(rng, count):
    names = "mike alex karen zena tom sandra pat leah nan zola sumi joe ann bob carol diane jean fred larry teresa"
    return [[rng.choice(names.split()), rng.randint(18, 88), point(rng)] for _ in range(count)]


def keys(rng):
    return [[i, rng.choice((rng.randint(0, 2**31 - 1), rng.randint(0, 2000)))] for i in range(10000)]


def rectangle(rng):
    x, y = rng.randint(0, 8000), rng.randint(0, 8000)
    return [f"({x + rng.randint(0, 1200)},{y + rng.randint(0, 1200)}),({x},{y})"]


def array(values, form=str):
    return "{" + ",".join(form(value) for value in values) + "}"


def arrays(rng):
    for i in range(100):
        numbers = [rng.randint(0, 99) for _ in range(rng.randint(0, 8))]
        texts = [f"AAAAAAAA{rng.randint(0, 99):02}" for _ in range(rng.randint(0, 6))]
        yield [i + 1, array(numbers), array(texts)]
    yield [101, "{}", "{}"]
    yield [102, "{NULL}", "{NULL}"]


def documents(rng):
    for i in range(1000):
        document = {"line": i, "date": f"CB{rng.randint(1, 40)}", "node": f"CC{rng.randint(0, 9)}"}
        for name, value in (("abstract", f"A{i % 9}"), ("wait", rng.choice((None, "CC", "CBA"))), ("pos", i % 20),
                            ("indexed", rng.random() < 0.5), ("public", rng.random() < 0.5), ("age", i % 50),
                            ("status", i % 7), ("array", ["foo", "bar"]), ("user_name", f"u{i % 30}")):
            if rng.random() < 0.4:
                document[name] = value
        yield [json.dumps(document)]


def vectors(rng):
    words = [first + second for first in "qwerty" for second in "asdfghuiop"] + ["wr", "qh", "eq", "yt", "qe", "fox"]
    for _ in range(500):
        if rng.random() < 0.02:
            yield ["", ""]
            continue
        chosen = rng.choices(words, k=rng.randint(1, 60))
        yield [" ".join(chosen), " ".join(f"'{word}':{i + 1}{rng.choice(('', 'A', 'B', 'C'))}"
                                          for i, word in enumerate(chosen))]


def files():
    """Rows of each file by its name."""
    rng = random.Random(SEED)
    managers = ["sharon", "bill", "teresa", "linda"]
    yield "onek", list(wisconsin(rng, 1000))
    yield "tenk", list(wisconsin(rng, 10000))
    yield "person", people(rng, 50)
    yield "emp", [[*person, rng.randint(5, 30) * 100, rng.choice(managers)] for person in people(rng, 3)]
    yield "student", [[*person, round(rng.uniform(1, 4), 1)] for person in people(rng, 2)]
    yield "stud_emp", [[*person, rng.randint(5, 30) * 100, rng.choice(managers), round(rng.uniform(1, 4), 1),
                        rng.choice((r"\N", 50))] for person in people(rng, 3)]
    yield "streets", streets(rng)
    yield "real_city", [city(rng, name) for name in ("Oakland", "Oakland", "Berkeley", "Lafayette")]
    yield "agg", [[56, 7.8], [100, 99.097], [0, 0.09561], [42, 324.78]]
    yield "array", list(arrays(rng))
    yield "desc", sorted(keys(rng), key=lambda row: -row[1])
    yield "hash", keys(rng)
    yield "rect", [rectangle(rng) for _ in range(3100)]
    yield "constro", [[4, "!check failed", 5], [5, "next one", 4]]
    yield "constrf", [[7, "check ok", 4], [8, "fails", 6]]
    yield "jsonb", list(documents(rng))
    yield "tsearch", list(vectors(rng))


def write(folder):
    for name, rows in files():
        text = "".join("\t".join(map(str, row)) + "\n" for row in rows)
        pathlib.Path(folder, f"{name}.data").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1])
