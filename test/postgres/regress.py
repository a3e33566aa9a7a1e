# SPDX-License-Identifier: Apache-2.0
"""Runs the statements of PostgreSQL's regression suite with and without Quern's nodes and compares what psql prints:

    regress.py --library QUERN.SO --cache FOLDER [--only join,aggregates | --part] [--set NAME=VALUE] [--keep FOLDER]
    regress.py --fetch --cache FOLDER

The statements come from the source package of pglast, which has libpg_query and with it the suite of one version of
PostgreSQL, without its expected output and its data files. regress_data.py makes such data. Two clusters run the same
files in the order of the suite, one with quern.enabled = off, the other one with force, and psql has the options that
pg_regress gives it. Their output has to be the same, but for

    the output of EXPLAIN, times, and what else is another in each run (VOLATILE),
    the order of rows where the statement has no ORDER BY, or where the rows have equal keys,
    the differences of DIFFERENCES, each with its reason.

The number of nodes that ran is counted in the server's log (quern.log_nodes)."""

import argparse
import collections
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

import cluster
import random_queries
import regress_data
import regress_order

# Versions of pglast by the version of PostgreSQL whose suite they have, and the checksums of their source packages.
PACKAGES = {
    15: ("5.10", "e890582fbc18f01b00bc1724f17fff1396cc94d24ab37fba96aacc8fe742ed68"),
    16: ("6.17", "37d2fa080f22a73fb575c2655b6e28f1e3a084cf0466f96b15d227b4cfffc45e"),
    17: ("7.22", "d7ee5b5161cf31913a06fdab8615e9e02144761761c481002789f968b446d653"),
    18: ("8.8", "ff9998ec6bac4f30f84db6b6edb28a0fb03b1eda5c8ad211ab8362f5a08b833b"),
}
FOLDER = "libpg_query/test/sql/postgres_regress/"
DATABASE = "regression"
SETTINGS = {"shared_buffers": "128MB", "max_prepared_transactions": "2", "quern.min_rows": "0",
            "quern.log_nodes": "on", "log_min_messages": "log", "log_statement": "none"}
PSQL = ["-X", "-a", "-q", "-v", "HIDE_TABLEAM=on", "-v", "HIDE_TOAST_COMPRESSION=on"]
ENVIRONMENT = {"PGTZ": "PST8PDT", "PGDATESTYLE": "Postgres, MDY", "PGOPTIONS": "-c intervalstyle=postgres_verbose",
               "LC_ALL": "C.UTF-8", "PG_LIBDIR": "/nowhere", "PG_DLSUFFIX": ".so"}
NODES = re.compile(r"LOG:  quern: (\w+) ran as (a kernel|PostgreSQL's own node)")
CRASHED = re.compile(r"PANIC:|TRAP:|terminated by signal|server process .* exited with exit code")
SECONDS = 600  # of one file


def package(version, folder):
    return pathlib.Path(folder, f"pglast-{PACKAGES[version][0]}.tar.gz")


def has_package(version, folder):
    path = package(version, folder) if version in PACKAGES else None
    return path is not None and path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == PACKAGES[version][1]


def fetch(version, folder):
    """Has the package in the folder. Returns why that is impossible, or None."""
    if has_package(version, folder):
        return None
    number, checksum = PACKAGES[version]
    with tempfile.TemporaryDirectory() as made:
        wanted = pathlib.Path(made, "requirements.txt")
        wanted.write_text(f"pglast=={number} --hash=sha256:{checksum}\n", encoding="ascii")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--no-binary", ":all:", "--require-hashes", "--requirement", wanted, "--dest", folder]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if has_package(version, folder):
        return None
    return f"no source package of pglast {number}: {(ended.stderr.strip().splitlines() or ['pip says nothing'])[-1]}"


def statements(version, folder):
    """The text of each file of the suite by its name, without .sql."""
    with tarfile.open(package(version, folder)) as archive:
        found = {member.name: archive.extractfile(member) for member in archive.getmembers()
                 if FOLDER in member.name and member.name.endswith(".sql")}
        texts = {pathlib.Path(name).stem: file.read().decode("utf-8", "surrogateescape")
                 for name, file in found.items()}
    return {name: regress_order.without_lines(name, text) for name, text in texts.items()}


# Running.

class Side:
    """One of the two clusters."""

    def __init__(self, mode, options):
        given = dict(pair.split("=", 1) for pair in options.set)
        self.pg = cluster.Cluster({**SETTINGS, "quern.enabled": mode, **given}, options.library)
        self.mode, self.output, self.nodes, self.failure = mode, {}, {}, None
        self.folder = self.pg.folder / "regress"
        for name in ("data", "results"):
            (self.folder / name).mkdir(parents=True)
        self.pg.give(self.folder, self.folder / "results")
        regress_data.write(self.folder / "data")
        with self.pg.session() as session:
            session.execute(f"create database {DATABASE} template template0")
            for setting in ("lc_messages to 'C'", "lc_monetary to 'C'", "lc_numeric to 'C'", "lc_time to 'C'",
                            "bytea_output to 'hex'", "timezone_abbreviations to 'Default'"):
                session.execute(f"alter database {DATABASE} set {setting}")

    def run(self, files, order):
        try:
            for name in order:
                self.run_file(name, files[name])
        except (OSError, cluster.Failed) as error:
            self.failure = f"{self.mode}: {error}"

    def run_file(self, name, text):
        environment = {**os.environ, **ENVIRONMENT, "PG_ABS_SRCDIR": str(self.folder),
                       "PG_ABS_BUILDDIR": str(self.folder)}
        logged = os.path.getsize(self.pg.folder / "log")
        try:
            ended = self.pg.psql(*PSQL, database=DATABASE, input=text.encode("utf-8", "surrogateescape"),
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, cwd=self.folder,
                                 timeout=SECONDS)
            printed = ended.stdout
        except subprocess.TimeoutExpired as error:
            printed = (error.stdout or b"") + f"\n{self.mode}: no end after {SECONDS} s\n".encode()
        if b"server closed the connection" in printed:
            self.wait_for_recovery()
        self.output[name] = printed.decode("utf-8", "surrogateescape").replace(str(self.pg.folder), "@folder@")
        with open(self.pg.folder / "log", "rb") as log:
            log.seek(logged)
            written = log.read().decode(errors="replace")
        self.nodes[name] = collections.Counter(NODES.findall(written))
        crashes = [line for line in written.splitlines() if CRASHED.search(line)]
        if crashes:
            self.output[name] += "\n".join([f"{self.mode}: the server's log:", *crashes, ""])

    def wait_for_recovery(self):
        time.sleep(1)  # the server may not know yet
        while self.pg.is_running():
            if self.pg.psql("-c", "select 1", capture_output=True, database=DATABASE).returncode == 0:
                return
            time.sleep(0.1)
        raise cluster.Failed(f"the server ended: {self.pg.log[-2000:]}")

    def left_files(self):
        with self.pg.session() as session:
            return session.rows("select name from pg_ls_tmpdir()")


# Comparing.

Piece = collections.namedtuple("Piece", "line statement output")


def is_complete(statement):
    """Whether the last line ends a statement: lines within a function's body do not."""
    text = "\n".join(statement)
    return len(re.findall(r"\$\w*\$", text)) % 2 == 0 and re.search(r";\s*(--.*)?$|^\\\S+.*$", statement[-1])


def pieces(text, output):
    """What psql printed after each line of a file. It repeats the lines (-a), but neither empty ones nor the rows of a
    COPY, unless that has failed."""
    echoed = [line for line in text.split("\n") if line]
    found, statement, printed, number, behind_rows = [], [], [], 0, None
    for line in output.split("\n"):
        at = next((i for i in (number, behind_rows) if i is not None and i < len(echoed) and echoed[i] == line), None)
        if at is None:
            printed.append(line)
            continue
        if printed:
            found.append(Piece(number, "\n".join(statement), printed))
            statement, printed = [], []
        if statement and is_complete(statement):
            statement = []
        statement.append(line)
        number = at + 1
        if behind_rows is not None and number > behind_rows:
            behind_rows = None
        if is_complete(statement) and re.search(r"\bfrom\s+stdin\b", "\n".join(statement), re.IGNORECASE):
            behind_rows = next((i + 1 for i in range(number, len(echoed)) if echoed[i] == "\\."), None)
    found.append(Piece(number, "\n".join(statement), printed))
    return found


def without_comments(statement):
    return re.sub(r"--[^\n]*|/\*.*?\*/", " ", statement, flags=re.DOTALL)


def outermost(statement):
    """The statement without what is in parentheses."""
    kept, depth = [], 0
    for char in without_comments(statement):
        depth -= char == ")"
        if depth <= 0:
            kept.append(char)
        depth += char == "("
    return "".join(kept)


class Table:
    """Rows of a result as psql aligns them."""

    def __init__(self, header, rule, rows):
        self.ends = [0, *(match.end() for match in re.finditer(r"\+", rule)), len(rule) + 1]
        self.names = [name.strip() for name in self.cells(header)]
        self.header, self.rows = header, rows

    def cells(self, row):
        return [row[start:end - 1] for start, end in zip(self.ends, self.ends[1:])]


def blocks(lines):
    """A list of lines and Tables."""
    found, i = [], 0
    while i < len(lines):
        if i + 1 < len(lines) and re.fullmatch(r"-[-+]*", lines[i + 1]) and not re.fullmatch(r"-[-+]*", lines[i]):
            last = i + 2
            while last < len(lines) and not re.fullmatch(r"\(\d+ rows?\)", lines[last]):
                last += 1
            found.append(Table(lines[i], lines[i + 1], lines[i + 2:last]))
            i = last
        else:
            found.append(lines[i])
            i += 1
    return found


def sort_keys(statement, names):
    """The leading keys of the outermost ORDER BY that are columns of the result, as positions; None without one."""
    orders = re.split(r"\border\s+by\b", outermost(statement), flags=re.IGNORECASE)
    if len(orders) == 1:
        return None
    keys = []
    tail = re.split(r"\b(?:limit|offset|fetch|for)\b|;", orders[-1], maxsplit=1, flags=re.IGNORECASE)[0]
    for part in tail.split(","):
        key = re.split(r"\s+(?:asc|desc|nulls|collate|using)\b", part.strip(), maxsplit=1, flags=re.IGNORECASE)[0]
        name = key.split(".")[-1].strip('" ').lower()
        if key.isdigit() and int(key) <= len(names):
            keys.append(int(key) - 1)
        elif names.count(name) == 1:
            keys.append(names.index(name))
        else:
            break
    return keys


def tables_differ(off, force, statement):
    if off.header.split() != force.header.split() or len(off.rows) != len(force.rows):
        return True
    squeezed = [[re.sub(r"\s+", " ", row) for row in table.rows] for table in (off, force)]
    if sorted(squeezed[0]) != sorted(squeezed[1]):
        return True
    keys = sort_keys(statement, off.names)
    if keys is None:
        return False
    if not keys:
        return off.rows != force.rows
    ordered = [[tuple(table.cells(row)[key].strip() for key in keys) for row in table.rows] for table in (off, force)]
    return ordered[0] != ordered[1]


def masked(lines):
    return [mask.sub(instead, line) if mask.search(line) else line
            for line in lines for mask, instead in [(VOLATILE, "@volatile@")]]


VOLATILE = re.compile(r"\d+\.\d+ ms|pg_temp_\d+|pg_toast_temp_\d+|PID \d+")


def outputs_differ(off, force, statement):
    if off == force or re.search(r"\bexplain", statement, re.IGNORECASE):
        return False
    ones, others = blocks(masked(off)), blocks(masked(force))
    if len(ones) != len(others):
        return True
    for one, other in zip(ones, others):
        if isinstance(one, Table) and isinstance(other, Table):
            if tables_differ(one, other, statement):
                return True
        elif isinstance(one, Table) or isinstance(other, Table) or one != other:
            return True
    return False


def errors(lines):
    return [line for line in lines if re.match("ERROR:|WARNING:|FATAL:|PANIC:|psql|server|off:|force:", line)]


class Comparison:
    """Of all files."""

    def __init__(self, version):
        self.version, self.bad, self.known, self.num_pieces = version, [], collections.Counter(), 0
        self.num_statements = 0

    def file(self, name, text, off, force):
        self.num_statements += len(re.findall(r";\s*(?:--.*)?$", text, flags=re.MULTILINE))
        ones, others = pieces(text, off), pieces(text, force)
        self.num_pieces += len(ones)
        by_line = {piece.line: piece for piece in others}
        for piece in ones:
            other = by_line.pop(piece.line, None)
            found = other.output if other else []
            if outputs_differ(piece.output, found, piece.statement):
                self.differs(name, piece.line, piece.statement, piece.output, found)
        for piece in by_line.values():
            if outputs_differ([], piece.output, piece.statement):
                self.differs(name, piece.line, piece.statement, [], piece.output)

    def differs(self, name, line, statement, off, force):
        reason = regress_order.reason_of(name, statement)
        if reason and errors(off) == errors(force) and regress_order.allows(reason, off, force):
            self.known[reason] += 1
            return
        self.bad.append(f"{name}, after {line} lines:\n{statement}\n--- off\n" + "\n".join(off[:40]) + "\n--- force\n" +
                        "\n".join(force[:40]))


def run(options, version):
    files = statements(version, options.cache)
    only = options.only.split(",") if options.only else regress_order.PART if options.part else None
    order = [name for name in regress_order.order_of(files) if not only or name in only or name == "test_setup"]
    left_out = [name for name in order if name in regress_order.LEFT_OUT]
    order = [name for name in order if name not in left_out]
    sides = [Side(mode, options) for mode in ("off", "force")]
    threads = [threading.Thread(target=side.run, args=(files, order)) for side in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    off, force = sides
    comparison = Comparison(version)
    comparison.bad += [side.failure for side in sides if side.failure]
    for name in order:
        if options.keep:
            for side in sides:
                pathlib.Path(options.keep, f"{name}.{side.mode}").write_text(side.output.get(name, ""), "utf-8",
                                                                             "surrogateescape")
        comparison.file(name, files[name], off.output.get(name, ""), force.output.get(name, ""))
    comparison.bad += [f"temporary files are left: {files}" for files in [force.left_files()] if files]
    nodes = sum(force.nodes.values(), collections.Counter())
    if options.verbose:
        for name in order:
            print(f"{name}: {sum(force.nodes.get(name, {}).values())} nodes")
    for side in sides:
        side.pg.close()
    return order, comparison, nodes, sum(sum(count.values()) for count in off.nodes.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", help="the built quern.so")
    parser.add_argument("--fetch", action="store_true", help="have the package in the cache, and end")
    parser.add_argument("--part", action="store_true", help="files that join, aggregate and sort")
    parser.add_argument("--cache", required=True, metavar="FOLDER", help="has the package, or gets it")
    parser.add_argument("--only", metavar="FILES", help="names of files, with commas between them; test_setup runs too")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a line of postgresql.conf")
    parser.add_argument("--keep", metavar="FOLDER", help="where both outputs of each file are written")
    parser.add_argument("--verbose", action="store_true", help="print how many nodes each file had")
    options = parser.parse_args()
    cluster.end_on_signals()
    for folder in filter(None, (options.cache, options.keep)):
        os.makedirs(folder, exist_ok=True)
    version = cluster.version(options.library)
    if version not in PACKAGES:
        sys.exit(f"regress: error: no suite of PostgreSQL {version}; accepted: {', '.join(map(str, PACKAGES))}")
    why = fetch(version, options.cache)
    if why or options.fetch:
        sys.exit(why and f"regress: error: {why}")
    order, comparison, nodes, stock = run(options, version)
    print(f"PostgreSQL {version}: {len(order)} files, {comparison.num_statements} statements")
    for name in random_queries.NODES:
        kernel, own = nodes[name, "a kernel"], nodes[name, "PostgreSQL's own node"]
        print(f"{name}: {kernel} ran as a kernel, {own} as PostgreSQL's own node")
    for reason, count in sorted(comparison.known.items()):
        print(f"known: {count}: {reason}")
    for text in comparison.bad:
        print(f"FAILED {text}\n")
    missing = [name for name in random_queries.NODES if not nodes[name, "a kernel"]]
    if stock or missing:
        comparison.bad.append(f"nodes with off: {stock}; none with force: {missing}")
        print(f"FAILED {comparison.bad[-1]}")
    print(f"{len(comparison.bad)} differences")
    sys.exit(bool(comparison.bad))


if __name__ == "__main__":
    main()
