# SPDX-License-Identifier: Apache-2.0
"""The Parquet files of spill_compare.py, which are made once, and the check of a result.

    spill_cases.py make FOLDER ROWS NAME..    makes files; prints their paths by name, as JSON
    spill_cases.py answer CASE PATH           prints the answer that a result gives, as JSON

spill_compare.py calls it as a program, so that it stays small itself: the peak memory of a child is at least that of
the process that has started it.

A row's number decides on its columns. `mix` maps different numbers to different 64-bit values, so that keys are sparse
and the rows of a result are known by number."""
import json
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import spill_catalogue

BATCH_ROWS = 1 << 20
ROW_GROUP_ROWS = 1 << 18
TEXT_BYTES = 16
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz012345", dtype=np.uint8)


def mix(values):
    """The finaliser of SplitMix64, a permutation of 64-bit numbers."""
    values = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def texts(numbers):
    """Different texts of 16 bytes for different numbers."""
    bits = mix(numbers)
    letters = np.empty((len(numbers), TEXT_BYTES), dtype=np.uint8)
    for i in range(TEXT_BYTES):
        letters[:, i] = LETTERS[bits >> np.uint64(59)]
        bits = (bits << np.uint64(5)) | (bits >> np.uint64(59))
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * TEXT_BYTES
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(letters))


def integers(values):
    return pa.array(values.view(np.int64))


def sort_rows(rows, num_rows):
    """t: a quarter as many texts as rows. k: 64 random bits, all different. p: the row."""
    drawn = mix(rows + np.uint64(1 << 62)) % np.uint64(max(num_rows // 4, 1))
    return {"t": texts(drawn), "k": integers(mix(rows)), "p": integers(rows)}


def build_rows(rows, _num_rows):
    return {"k": integers(mix(rows)), "b": integers(rows)}


def probe_rows(rows, num_rows):
    """Each number below num_rows / 2 twice, in an order without order."""
    numbers = rows * np.uint64(2654435761) % np.uint64(max(num_rows // 2, 1))
    return {"k": integers(mix(numbers)), "p": integers(rows)}


FILES = {"sort": (sort_rows, 1), "build": (build_rows, 2), "probe": (probe_rows, 1)}  # and 1/n of the rows


def make_files(folder, num_rows, names):
    """The paths of the files by their names; makes those that are not there."""
    paths = {}
    for name in names:
        make, share = FILES[name]
        paths[name] = os.path.join(folder, f"{name}-{num_rows}.parquet")
        if os.path.exists(paths[name]):
            continue
        writer = None
        for first in range(0, num_rows // share, BATCH_ROWS):
            rows = np.arange(first, min(first + BATCH_ROWS, num_rows // share), dtype=np.uint64)
            table = pa.table(make(rows, num_rows))
            writer = writer or pq.ParquetWriter(paths[name] + ".part", table.schema)
            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        writer.close()
        os.rename(paths[name] + ".part", paths[name])
    return paths


def words_of(column):
    """A column as arrays of 64-bit numbers that compare as its values do: one of integers, two of texts."""
    if pa.types.is_integer(column.type):
        return [column.cast(pa.int64()).to_numpy(zero_copy_only=False)]
    column = column.cast(pa.string())
    begin, end = column.offset * TEXT_BYTES, (column.offset + len(column)) * TEXT_BYTES
    parts = np.frombuffer(column.buffers()[2], dtype=np.uint8)[begin:end].view(">u8").astype(np.uint64)
    return [parts[0::2], parts[1::2]]


def is_sorted(key_words):
    """Whether rows whose words are these, the most significant first, do not descend."""
    equal = np.ones(len(key_words[0]) - 1, dtype=bool)
    for values in key_words:
        if np.any(equal & (values[:-1] > values[1:])):
            return False
        equal &= values[:-1] == values[1:]
    return True


def answer(case, path):
    """The number of rows of a result and a checksum over them, in which the order of rows does not count.
    *Errors*: ValueError for rows out of order."""
    num_rows, checksum, last = 0, np.uint64(0), None
    for batch in pq.ParquetFile(path).iter_batches(BATCH_ROWS, columns=list(case.columns)):
        by_column = [words_of(batch.column(batch.schema.get_field_index(name))) for name in case.columns]
        row = np.zeros(batch.num_rows, dtype=np.uint64)
        for values in (values for each in by_column for values in each):
            row = mix(row ^ values.astype(np.uint64))
        with np.errstate(over="ignore"):
            checksum += row.sum(dtype=np.uint64)
        num_rows += batch.num_rows
        if case.keys and batch.num_rows:
            keys = [values for name in case.keys for values in by_column[case.columns.index(name)]]
            if last is not None:
                keys = [np.concatenate((before, values)) for before, values in zip(last, keys)]
            if not is_sorted(keys):
                raise ValueError(f"rows of {case.name} are out of order")
            last = [values[-1:] for values in keys]
    return num_rows, int(checksum)


def main(command, *words):
    if command == "make":
        print(json.dumps(make_files(words[0], int(words[1]), words[2:])))
        return
    case = next(case for case in spill_catalogue.CASES if case.name == words[0])
    try:
        print(json.dumps(answer(case, words[1])))
    except ValueError as error:
        print(json.dumps(str(error)))


if __name__ == "__main__":
    main(*sys.argv[1:])
