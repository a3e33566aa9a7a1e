# SPDX-License-Identifier: Apache-2.0
"""Changes bytes of small Arrow files and runs the command line over them: arrow_files.py QUERN FOLDER SEED CASES.

Texts of a result must be bytes of the damaged file, one after the other: an offset that leads out of its buffer and is
followed would bring other memory of the process into the result."""

import csv
import pathlib
import random
import struct
import subprocess
import sys

import pyarrow as pa

QUERN, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
TEXTS = ["text", "large", "view", "word"]
OPERATORS = [
    ["sort", "--by", "key", "--select", ",".join(TEXTS)],
    ["sort", "--by", "text,view desc,word", "--select", ",".join(TEXTS)],
    ["filter", "--where", "key >= 0 or text like '%a%' or word is null", "--select", ",".join(TEXTS)],
    ["aggregate", "--by", "text,large,view,word", "--agg", "sum(amount), count(*), max(real)"],
    ["aggregate", "--by", "flag", "--agg", "min(text), max(large), string_agg(view, ''), first(word)"],
    ["aggregate", "--agg", "count(*), count(nothing)"],
    ["join", "--on", "key", "--select", ",".join("probe." + name for name in TEXTS)],
    ["join", "--on", "text=view", "--type", "left", "--select", "probe.text,probe.large,build.view,build.word"],
]


def table(draw):
    def texts():
        return [None if draw.random() < 0.1 else "".join(draw.choices("abcdefgh", k=draw.randrange(20)))
                for _ in range(40)]

    words = pa.DictionaryArray.from_arrays(pa.array([draw.randrange(3) for _ in range(40)], pa.int8()),
                                           ["red", "green", "blue"])
    return pa.table({
        "key": pa.array([draw.randrange(100) for _ in range(40)]),
        "text": pa.array(texts(), pa.string()),
        "large": pa.array(texts(), pa.large_string()),
        "view": pa.array(texts(), pa.string_view()),
        "word": words,
        "flag": pa.array([draw.random() < 0.5 for _ in range(40)]),
        "real": pa.array([draw.random() for _ in range(40)]),
        "amount": pa.array([draw.randrange(1000) for _ in range(40)]).cast(pa.decimal128(21, 2)),
        "nothing": pa.nulls(40),
    })


def file_bytes(rows, new_writer, compression):
    sink = pa.BufferOutputStream()
    with new_writer(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(rows, max_chunksize=25)
    return sink.getvalue().to_pybytes()


def damaged(draw, original):
    data = bytearray(original)
    for _ in range(draw.choice([1, 1, 1, 2, 5])):
        kind = draw.randrange(6)
        place = draw.randrange(len(data))
        if kind == 0:
            data[place] ^= 1 << draw.randrange(8)
        elif kind == 1:
            data[place] = draw.randrange(256)
        elif kind == 2:
            number = draw.choice([-1, 0, 1, 3000, 2**24, 2**31 - 1, -2**31])
            place = min(place & ~3, len(data) - 4)
            data[place:place + 4] = struct.pack("<i", number)
        elif kind == 3:
            number = draw.choice([-1, 3000, 2**31, 2**40, 2**62, 2**63 - 1, -2**63])
            place = min(place & ~7, len(data) - 8)
            data[place:place + 8] = struct.pack("<q", number)
        elif kind == 4:
            other = draw.randrange(len(data))
            size = draw.randrange(1, 64)
            data[place:place + size] = data[other:other + size]
        else:
            del data[max(place, 16):]
    return bytes(data)


def foreign_text(data, result):
    """A text of the result that is not in the file; None: all are."""
    with open(result, newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        header = next(rows)
        columns = [i for i, name in enumerate(header) if name in TEXTS or name.startswith(("min", "max(l", "first"))]
        return next((row[i] for row in rows for i in columns if row and row[i].encode() not in data), None)


def main():
    draw = random.Random(int(sys.argv[3]))
    rows = table(draw)
    originals = [file_bytes(rows, pa.ipc.new_file, None), file_bytes(rows, pa.ipc.new_stream, None),
                 file_bytes(rows, pa.ipc.new_file, "lz4")]
    good, bad, result = FOLDER / "good.arrow", FOLDER / "bad.arrow", FOLDER / "result.csv"
    good.write_bytes(originals[0])
    statuses = {0: 0, 1: 0, 2: 0}
    for case in range(int(sys.argv[4])):
        original = draw.randrange(len(originals))
        data = damaged(draw, originals[original])
        bad.write_bytes(data)
        words = draw.choice(OPERATORS)
        inputs = [str(bad), str(good)] if words[0] == "join" else [str(bad)]
        run = subprocess.run([QUERN, *words, *inputs, "-o", str(result), "--engine", "generic", "--threads", "2"],
                             capture_output=True, text=True, errors="replace", check=False)
        failure = None
        if run.returncode not in statuses:
            failure = f"status {run.returncode}: {run.stderr}"
        elif run.returncode != 0 and (not run.stderr.startswith("quern: error: ") or run.stderr.count("\n") != 1):
            failure = f"message: {run.stderr}"
        elif run.returncode == 0 and originals[original] is not originals[2]:
            text = foreign_text(data + originals[0] if words[0] == "join" else data, result)
            failure = None if text is None else f"a text from outside the file: {text[:200]!r}"
        if failure:
            sys.exit(f"case {case}, {' '.join(words)}: {failure}\nthe file is {bad}")
        statuses[run.returncode] += 1
    print("runs by exit status:", statuses)
    if not all(statuses[status] for status in (0, 1)):
        sys.exit("the cases do not meet good and bad files")


main()
