# SPDX-License-Identifier: Apache-2.0
"""What PostgreSQL answers to queries of one value: its stand-alone backend, which needs no server and no port.

PostgreSQL refuses to run as root, which a container often is: its programs then run as the user nobody.
"""
import glob
import os
import re
import shutil
import subprocess
import tempfile


def folder():
    """Where the newest PostgreSQL of Debian's packages has its programs; None where it is not installed."""
    folders = [os.path.dirname(path) for path in glob.glob("/usr/lib/postgresql/*/bin/postgres")]
    return max(folders, key=lambda path: int(path.split(os.sep)[-2]), default=None)


class Cluster:
    """A scratch cluster with UTF-8, collation C, in a folder that lives as long as this object."""

    def __init__(self):
        self._bin = folder()
        self._user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
        # The user nobody cannot enter a folder for temporary files that is root's alone.
        self._folder = tempfile.mkdtemp(prefix="quern-postgres-", dir="/tmp" if self._user else None)
        self._data = os.path.join(self._folder, "data")
        if self._user:
            shutil.chown(self._folder, "nobody")
        try:
            self._run("initdb", "-D", self._data, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program, *arguments, text=""):
        done = subprocess.run([os.path.join(self._bin, program), *arguments], input=text, capture_output=True,
                              text=True, cwd=self._folder, check=False, **self._user)
        if done.returncode != 0:
            raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def ask(self, expressions):
        """The value of each expression as text; None for null, "error" where PostgreSQL refuses it."""
        # A query a line. What follows a marker is the answer to its question; of a null only the column is printed.
        lines = []
        for at, expression in enumerate(expressions):
            if "\n" in expression:
                raise ValueError(f"{expression!r} has more than one line")
            lines += [f"SELECT 'question {at}' AS marker;", f"SELECT ({expression})::text AS answer;"]
        printed = self._run("postgres", "--single", "-D", self._data, "-c", "TimeZone=UTC", "postgres",
                            text="\n".join(lines) + "\n")
        answers = []
        for part in re.split(r'marker = "question \d+"', printed)[1:]:
            value = re.search(r'answer = "(.*)"\s+\(typeid', part)
            is_null = value is None and re.search(r"\banswer\s+\(typeid", part)
            answers.append(value.group(1) if value else None if is_null else "error")
        if len(answers) != len(expressions):
            raise RuntimeError(f"{len(expressions)} questions have {len(answers)} answers: {printed}")
        return answers
