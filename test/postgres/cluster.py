# SPDX-License-Identifier: Apache-2.0
"""Scratch clusters of PostgreSQL: a server that listens on a socket in a temporary folder, and is gone afterwards.

    cluster.py [--library QUERN.SO] [--set NAME=VALUE]... [--icu LOCALE] [--preload session|shared] [PSQL ARGUMENTS]

runs psql on a new cluster; without arguments, psql reads what is typed. In Python:

    with Cluster(library="build/lib/postgres/quern.so", settings={"work_mem": "1MB"}) as cluster:
        with cluster.session() as session:
            print(session.rows("select 1, null"))        # [("1", None)]

PostgreSQL refuses to run as root: there, the server runs as the user postgres. The kernel stops a server whose parent
has ended (PR_SET_PDEATHSIG), however that ended.

The extension is loaded from where it was built, without an installation: LOAD and the preload settings take a path.
Where the server's user cannot read that path, the folder of the cluster has a copy."""

import argparse
import atexit
import collections
import contextlib
import ctypes
import os
import pathlib
import pwd
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

DATABASE = "postgres"
VERSIONS = range(15, 19)
PORT = "5432"  # names the socket; nothing listens on the network
FIELD, RECORD = "\x1f", "\x1e"
NULL = "\x02"  # how psql prints null
PR_SET_PDEATHSIG = 1

DEFAULTS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "8GB",
    "autovacuum": "off",  # statistics and plans change when a test says so
    "jit": "off",
    "timezone": "UTC",
    "extra_float_digits": "3",
    "log_line_prefix": "%m [%p] ",
}


class Failed(Exception):
    """A statement failed that a caller wants to succeed, or a server did not start."""


class Crashed(Exception):
    """The server closed the connection, or did not answer in time."""


def _version(folder):
    """The major version of the server in a folder of programs; None where there is none."""
    postgres, initdb = (os.path.join(folder, name) for name in ("postgres", "initdb"))
    if not os.access(postgres, os.X_OK) or not os.access(initdb, os.X_OK):
        return None
    asked = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\) (\d+)", asked.stdout)
    return int(found[1]) if found else None


def bindir(library=None):
    """The folder of PostgreSQL's programs; None where there is none. A built extension has the name of its server's
    pg_config beside it; else QUERN_PG_CONFIG may name one."""
    known = pathlib.Path(library).parent / "pg_config.path" if library else None
    if known and known.is_file():
        names = [known.read_text(encoding="utf-8").strip()]
    else:
        names = [os.environ.get("QUERN_PG_CONFIG"), "/usr/lib/postgresql/15/bin/pg_config", "pg_config"]
    for pg_config in names:
        if not pg_config or not shutil.which(pg_config):
            continue
        asked = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=False)
        folder = asked.stdout.strip()
        if asked.returncode == 0 and _version(folder) in VERSIONS:
            return folder
    return None


def version(library=None):
    """The major version of the server in bindir()."""
    folder = bindir(library)
    return folder and _version(folder)


def _with_parent():
    """Between fork and exec: SIGQUIT, an immediate shutdown, when the parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


class Result:
    """Of one statement: rows of text, None for null; or the SQLSTATE and the message of an error."""

    def __init__(self, rows, sqlstate, message):
        self.rows, self.sqlstate, self.message = rows, sqlstate, message

    @property
    def failed(self):
        return self.sqlstate != "00000"

    def __repr__(self):
        return f"{self.sqlstate}: {self.message}" if self.failed else f"{len(self.rows)} rows"


class Session:
    """One psql process, hence one backend. A script of many statements is one round trip to it."""

    def __init__(self, cluster, database):
        self._folder = tempfile.mkdtemp(prefix="psql-", dir=cluster.folder)
        self._out = os.path.join(self._folder, "out")
        self._mark = 0
        command = [os.path.join(cluster.bin, "psql"), "-h", cluster.sockets, "-p", PORT, "-U", cluster.user, "-X", "-q",
                   "-A", "-t", "-F", FIELD, "-R", RECORD, "-P", f"null={NULL}", "-d", database]
        environment = {**os.environ, "PGCLIENTENCODING": "UTF8", "LC_ALL": "C.UTF-8", "PGOPTIONS": ""}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.PIPE, env=environment)
        self._stderr = b""
        self.notices = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._process.poll() is None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _until(self, mark, seconds):
        """What stands on standard error before the mark."""
        end = time.monotonic() + seconds
        while mark not in self._stderr:
            ready, _, _ = select.select([self._process.stderr], [], [], max(0, end - time.monotonic()))
            if not ready:
                self._process.kill()
                raise Crashed(f"no answer in {seconds} s; {self._stderr.decode(errors='replace')[:2000]}")
            read = os.read(self._process.stderr.fileno(), 1 << 16)
            if not read:
                raise Crashed(self._stderr.decode(errors="replace").strip() or "psql ended")
            self._stderr += read
        before, _, self._stderr = self._stderr.partition(mark)
        return before.decode(errors="replace")

    def script(self, text, seconds=600):
        """Runs statements and psql's commands; returns all that they print. Errors are in `notices` alone."""
        self._mark += 1
        mark = f"@end {self._mark}@"
        # \o closes the file, so that it is complete; \warn writes at once.
        whole = f"\\o '{self._out}'\n{text}\n;\n\\o\n\\warn {mark}\n"
        self._send(whole.encode(), mark.encode() + b"\n", seconds)
        with open(self._out, encoding="utf-8", newline="") as out:
            return out.read()

    def _send(self, data, mark, seconds):
        """Writes while it reads, so that neither side waits for room in a pipe."""
        descriptor = self._process.stdin.fileno()
        os.set_blocking(descriptor, False)
        end, noted = time.monotonic() + seconds, b""
        while data:
            left = max(0, end - time.monotonic())
            readable, writable, _ = select.select([self._process.stderr], [descriptor], [], left)
            if not readable and not writable:
                self._process.kill()
                raise Crashed(f"no answer in {seconds} s")
            if readable:
                read = os.read(self._process.stderr.fileno(), 1 << 16)
                if not read:
                    raise Crashed((self._stderr + noted).decode(errors="replace").strip() or "psql ended")
                noted += read
            if writable:
                try:
                    data = data[os.write(descriptor, data[:1 << 16]):]
                except BrokenPipeError:
                    data = b""
        self._stderr += noted
        self.notices = self._until(mark, seconds)

    def results(self, statements, seconds=600):
        """The Result of each statement; a statement that fails does not end the list."""
        parts = []
        for statement in statements:
            told = "\\qecho @state@ :SQLSTATE :LAST_ERROR_MESSAGE\n\\qecho @next@"
            parts.append(statement.strip().rstrip(";") + "\n;\n" + told)
        # LAST_ERROR_MESSAGE keeps the message of the last error, so that it counts only where the state says so.
        printed = self.script("\n".join(parts), seconds)
        found = []
        for piece in printed.split("@next@\n")[:len(statements)]:
            rows, _, state = piece.rpartition("@state@ ")
            sqlstate, _, message = state.strip().partition(" ")
            found.append(Result(_rows(rows), sqlstate, message if sqlstate != "00000" else ""))
        return found

    def execute(self, *statements, seconds=600):
        """Runs statements that succeed; returns the rows of the last one."""
        found = self.results(statements, seconds)
        for statement, result in zip(statements, found):
            if result.failed:
                raise Failed(f"{result.sqlstate}: {result.message}: {statement[:2000]}")
        return found[-1].rows

    rows = execute

    def value(self, statement):
        return self.execute(statement)[0][0]


def _rows(printed):
    """psql ends each result by a newline, and each of its records but the last by RECORD."""
    if not printed:
        return []
    text = printed[:-1] if printed.endswith("\n") else printed
    return [tuple(None if field == NULL else field for field in record.split(FIELD)) for record in text.split(RECORD)]


class Cluster:
    """A cluster that runs from the constructor to close(), or for a with statement."""

    def __init__(self, settings=None, library=None, locale="C.UTF-8", icu=None, preload="session", folder=None):
        self.bin = bindir(library)
        if self.bin is None:
            raise Failed("no PostgreSQL: no pg_config of 15 to 18; Debian's package postgresql-15 has it")
        self._server = None
        self._log = None
        self.user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        self._as_user = {}
        if os.geteuid() == 0:
            entry = pwd.getpwnam(self.user)
            self._as_user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        # The name of a socket has at most 107 bytes, so that build folders are too deep for it.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-pg-", dir=folder or "/tmp"))
        self._closed = False
        atexit.register(self.close)
        try:
            self._make(settings or {}, library, locale, icu, preload)
            self.start()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def data(self):
        return self.folder / "data"

    @property
    def sockets(self):
        return str(self.folder)

    @property
    def log(self):
        """What the server wrote, the newest last."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _make(self, settings, library, locale, icu, preload):
        if self._as_user:
            shutil.chown(self.folder, self._as_user["user"], self._as_user["group"])
        where = ["--locale", locale, "--lc-messages", "C"]
        where += (["--locale-provider=icu", f"--icu-locale={icu}"] if icu else [])
        made = subprocess.run([os.path.join(self.bin, "initdb"), "-D", str(self.data), "-U", self.user, "-A", "trust",
                               "-E", "UTF8", "--no-sync", "--no-instructions", *where], cwd=self.folder,
                              env=self._environment(), capture_output=True, text=True, check=False, **self._as_user)
        if made.returncode:
            raise Failed(f"initdb failed: {made.stderr.strip()}")
        given = {**DEFAULTS, "unix_socket_directories": self.sockets, "port": PORT}
        if library:
            self.library = self._readable(pathlib.Path(library).resolve())
            given[f"{preload}_preload_libraries"] = str(self.library)
        given.update(settings)
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as conf:
            for name, value in given.items():
                conf.write(f"{name} = '{value}'\n")

    def give(self, *paths):
        """Makes the server's user the owner of files or folders."""
        for path in paths:
            if self._as_user:
                shutil.chown(path, self._as_user["user"], self._as_user["group"])

    def run_as_server(self, command):
        """Runs a command as the server's user, as subprocess.run."""
        return subprocess.run(command, check=False, cwd="/", capture_output=True, text=True, **self._as_user)

    def _readable(self, library):
        if not library.is_file():
            raise Failed(f"no such library: {library}")
        seen = subprocess.run(["test", "-r", str(library)], check=False, cwd="/", **self._as_user).returncode == 0
        if seen:
            return library
        mine = self.folder / "lib"
        mine.mkdir()
        mine.chmod(0o755)
        for path in [library, *library.parent.parent.glob("libquern.so*")]:
            shutil.copy(path, mine / path.name)
            (mine / path.name).chmod(0o755)
        return mine / library.name

    def _environment(self):
        # LOCPATH: where the C library finds locales that a test has made.
        kept = {name: value for name, value in os.environ.items()
                if name.startswith(("QUERN_", "ASAN_", "UBSAN_", "LOCPATH"))}
        return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", "HOME": str(self.folder),
                "LD_LIBRARY_PATH": str(self.folder / "lib"), **kept}

    def start(self):
        """Starts the server, and waits until it accepts connections."""
        with open(self.folder / "log", "ab") as log:
            self._server = subprocess.Popen([os.path.join(self.bin, "postgres"), "-D", str(self.data)], stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL, cwd=self.data,
                                            env=self._environment(), preexec_fn=_with_parent, start_new_session=True,
                                            **self._as_user)
        ready = [os.path.join(self.bin, "pg_isready"), "-q", "-h", self.sockets, "-p", PORT, "-U", self.user]
        while subprocess.run(ready, check=False).returncode:
            if self._server.poll() is not None:
                raise Failed(f"the server did not start: {self.log[-2000:]}")
            time.sleep(0.02)

    def stop(self, how=signal.SIGINT):
        """Stops the server: SIGINT is a fast shutdown, SIGQUIT an immediate one."""
        if self._server is None or self._server.poll() is not None:
            return
        self._server.send_signal(how)
        try:
            self._server.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._server.send_signal(signal.SIGQUIT)
            try:
                self._server.wait(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(self._server.pid, signal.SIGKILL)
                self._server.wait()

    def is_running(self):
        return self._server is not None and self._server.poll() is None

    def close(self):
        """Stops the server at once and removes the folder."""
        if self._closed:
            return
        self._closed = True
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.close)

    def session(self, database=DATABASE):
        return Session(self, database)

    def psql(self, *arguments, database=DATABASE, **keywords):
        """Runs psql with arguments, as subprocess.run."""
        server = ["-h", self.sockets, "-p", PORT, "-U", self.user, "-d", database]
        return subprocess.run([os.path.join(self.bin, "psql"), "-X", *server, *arguments], check=False, **keywords)


def node_types(plan_rows):
    """How often each type of node stands in the rows of EXPLAIN: {"QuernJoin": 2, "Hash Join": 1, ..}."""
    found = collections.Counter()
    for (line,) in plan_rows:
        node = re.match(r"(?:\s*->\s+)?(?=\S)(.*)", line)
        if not node or (line.startswith(" ") and "->" not in line[:node.start(1)]):
            continue
        custom = re.match(r"(?:Parallel )?Custom Scan \((\w+)\)", node[1])
        name = custom[1] if custom else re.split(r" on | using |  \(", node[1])[0]
        name = re.sub(r"^(Parallel|Partial|Finalize) ", "", name)
        found[re.sub(r"^(Hash|Merge) \w+( Anti)? Join$", r"\1 Join", name)] += 1
    return found


def end_on_signals():
    """SIGTERM and SIGHUP end Python as exit() does, so that clusters are closed."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda signum, _: sys.exit(128 + signum))


def main():
    parser = argparse.ArgumentParser(description="Runs psql on a scratch cluster; arguments after -- are psql's.")
    parser.add_argument("--library", help="the built quern.so, to be preloaded")
    parser.add_argument("--preload", choices=("session", "shared"), default="session")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a line of postgresql.conf")
    parser.add_argument("--icu", metavar="LOCALE", help="the default collation is this one of ICU")
    parser.add_argument("psql", nargs="*", metavar="PSQL ARGUMENT")
    options = parser.parse_args()
    end_on_signals()
    settings = dict(pair.split("=", 1) for pair in options.set)
    with Cluster(settings, options.library, icu=options.icu, preload=options.preload) as cluster:
        ended = cluster.psql(*options.psql)
        if not cluster.is_running():
            sys.exit(f"cluster: error: the server ended: {cluster.log[-2000:]}")
    sys.exit(ended.returncode)


if __name__ == "__main__":
    main()
