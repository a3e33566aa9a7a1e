# SPDX-License-Identifier: Apache-2.0
"""The rooms of the house: which folder may include which. `rooms.py check SOURCE_ROOT` prints each include that breaks
the order; `rooms.py write SOURCE_ROOT` writes the table into docs/architecture.md, and `check` also reports where that
page differs.

A file may include its own room and the rooms in rows above it, never one below. The rooms of one row never include each
other. A room is a folder with the folders below it, unless such a folder is a room of its own. Anything may be included
by test/, which is no room."""

import pathlib
import re
import subprocess
import sys

# Rows from the ground up. Each room: folder, what it holds.
ROWS = [
    [("runtime/abi", "what compiled code and the library agree on: structs, entry points, storages")],
    [("runtime/base", "status, messages, memory budgets, arenas, tasks for threads, counters, hashes")],
    [("runtime/collation", "collations: names, weights, keys, ICU, LIKE patterns")],
    [("runtime/spec", "the kernel spec and its text form: types, join kinds, aggregate functions, conditions")],
    [("runtime/blocks", "blocks, the smallest pieces of a kernel; the calls that compiled code may make")],
    [("runtime/rows", "row layouts, tuple storage, batches, Arrow import, output, prefetch settings")],
    [("runtime/spill", "rows in files: writing, reading ahead, memory that is set aside")],
    [("runtime/sink", "what operators that need all rows share: local states, appending, finalising")],
    [("runtime/filter", "filters")],
    [("runtime/map", "maps: columns computed by expressions")],
    [("runtime/join", "hash joins; `tables/` find tuples"),
     ("runtime/aggregate", "hash aggregations; `tables/` find groups, `accumulators/` run out of line"),
     ("runtime/sort", "sorts and merges of sorted runs; `spilling/` sorts more than memory holds")],
    [("runtime/pipeline", "rows through several operators, piece by piece"),
     ("runtime/observe", "what a job's keys are like, for capture")],
    [("ir-templates", "the loops in C++ with holes, and the blocks, compiled to bitcode")],
    [("ir-templates/generic", "the generic kernels: the same loops, holes that interpret")],
    [("codegen/base", "environment variables, log, private folders, the end of the process")],
    [("codegen/machine", "the machine: CPU, caches, measured facts, tuning profiles")],
    [("codegen/plan", "the plan: every choice, made here and printed")],
    [("codegen/kernel", "a ready kernel and how it was asked for")],
    [("codegen/emit", "LLVM IR for the holes of each operator"),
     ("codegen/listeners", "perf, gdb, VTune: who hears of new code")],
    [("codegen/llvm", "instantiate, optimise, generate code, load it; code memory")],
    [("codegen/cache", "kernels in memory and on disk")],
    [("codegen/tier", "generic first, compiled once that pays: policy, queue, swap")],
    [("codegen/inspect", "dump, stage files, capture, verbose lines")],
    [("codegen", "the compiler: the whole way behind one call (compiler.h)")],
    [("codegen/tuning", "the tuner: jobs, search, replay")],
    [("tools/report", "proof, report and charts of tuning, llvm-mca: not in the library that hosts link"),
     ("tools/frontend", "the user's grammars: column lists, conditions, aggregates, sort keys")],
    [("tools/query", "queries of several steps: their text, their plan, running them")],
    [("hosts/c", "the C ABI"), ("bench/common", "what benches share")],
    [("hosts/cpp", "its C++ wrapper"), ("hosts/python", "the Python package"),
     ("hosts/postgres", "the PostgreSQL extension"),
     ("hosts/rust", "the Rust crates, and DataFusion on them"),
     ("tools/quern/files", "files to tables to batches"), ("bench/join", "bench of joins"),
     ("bench/aggregate", "bench of aggregations"), ("bench/sort", "bench of sorts"),
     ("bench/spill", "bench of jobs under a memory limit"),
     ("bench/jobs", "bench of small jobs, through the C ABI"),
     ("bench/pipelines", "bench of whole queries; loops in C++ for some of them")],
    [("tools/quern/stream", "batches to operators, from files that are read piece by piece too")],
    [("tools/quern/run", "running a kernel over files: options, progress, statistics")],
    [("tools/quern/join", "`quern join`"), ("tools/quern/aggregate", "`quern aggregate`"),
     ("tools/quern/sort", "`quern sort`"), ("tools/quern/filter", "`quern filter`"),
     ("tools/quern/set", "`quern set`"), ("tools/quern/map", "`quern map`"),
     ("tools/quern/query", "`quern run`"),
     ("bench/collation", "bench of collations"), ("bench/compile", "benches of compiling"),
     ("bench/prefetch", "bench of prefetching")],
    [("tools/quern/commands", "the commands of the command line")],
    [("tools/quern", "its main function")],
]
# From outside: who may not include what, by the beginning of the name between <> or "".
FORBIDDEN = {"runtime": ("llvm/", "llvm-c/", "clang/"), "ir-templates": ("llvm/", "llvm-c/")}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)
MAX_FILES = 40
PAGE, BEGIN, END = "docs/architecture.md", "<!-- rooms: begin -->\n", "<!-- rooms: end -->\n"

ROW_OF = {folder: number for number, row in enumerate(ROWS) for folder, _ in row}


def room_of(name):
    parts = name.split("/")[:-1]
    for length in range(len(parts), 0, -1):
        folder = "/".join(parts[:length])
        if folder in ROW_OF:
            return folder
    return None


def code_files(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True,
                            text=True)
    names = (listed.stdout.splitlines()
             if listed.returncode == 0 else [p.relative_to(root).as_posix() for p in root.rglob("*")])
    names = [n for n in names if not n.startswith(("build", ".git/", "test/"))]
    return sorted(n for n in set(names) if n.endswith((".h", ".hpp", ".cc", ".c", ".def")) and (root / n).is_file())


def breaks_of_order(root):
    for name in code_files(root):
        room = room_of(name)
        if room is None:
            yield f"{name}: a file of no room; accepted: {', '.join(ROW_OF)}"
            continue
        for bracket, included in INCLUDE.findall((root / name).read_text()):
            other = room_of(included) if bracket == '"' else None
            if any(name.startswith(top + "/") and included.startswith(prefixes) for top, prefixes in FORBIDDEN.items()):
                yield f"{name}: include that runtime/ and ir-templates/ may not have: {included}"
            elif other is not None and other != room and ROW_OF[other] >= ROW_OF[room]:
                yield f"{name}: include of a room that is not above {room}: {included}; see test/style/rooms.py"


def crowded_folders(root):
    folders = {}
    for name in code_files(root):
        folder = name.rpartition("/")[0]
        folders[folder] = folders.get(folder, 0) + 1
    return [f"{folder}: too many files: {n}; at most {MAX_FILES}" for folder, n in folders.items() if n > MAX_FILES]


def table():
    lines = ["| row | room | holds |", "|---|---|---|"]
    for number, row in enumerate(ROWS, 1):
        lines += [f"| {number} | `{folder}/` | {text} |" for folder, text in row]
    return "\n".join(lines) + "\n"


def page_with_table(root):
    text = (root / PAGE).read_text()
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{PAGE}: no place for the table of rooms; accepted: the lines {BEGIN.strip()} and {END.strip()}")
    return text, head + begin + table() + end + tail


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("check", "write"):
        sys.exit("usage: rooms.py check|write SOURCE_ROOT")
    root = pathlib.Path(sys.argv[2]).resolve()
    old, new = page_with_table(root) if (root / PAGE).exists() else ("", "")
    if sys.argv[1] == "write":
        (root / PAGE).write_text(new)
        return
    breaks = [*breaks_of_order(root), *crowded_folders(root)]
    if old != new:
        breaks.append(
            f"{PAGE}: its table of rooms is not that of test/style/rooms.py; to repair: test/style/rooms.py write .")
    print("\n".join(breaks) or f"rooms: {len(code_files(root))} files, all keep the order")
    sys.exit(1 if breaks else 0)


if __name__ == "__main__":
    main()
