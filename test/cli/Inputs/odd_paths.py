# SPDX-License-Identifier: Apache-2.0
"""Everything that the command line reads and writes, in a folder of an odd name: odd_paths.py QUERN FOLDER PROFILE."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

QUERN, PROFILE = sys.argv[1], sys.argv[3]
NAME = "Kläng, 'mit' \"Raum\" & Komma; $HOME (100 %) " + "x" * 150
FOLDER = pathlib.Path(sys.argv[2]) / NAME
ROWS = "k,s\n1,a\n2,b\n"


def run(*words, status=0, **environment):
    environment = {**os.environ, "QUERN_CACHE": "off", "QUERN_PROFILE": "off", **environment}
    result = subprocess.run([QUERN, *map(str, words)], capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == status, (words, result)
    assert result.stderr == "" or len(result.stderr.splitlines()) == 1, result.stderr
    return result


def shown(path):
    """A path as messages of the library show it: whole, and in ASCII."""
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" for byte in os.fsencode(str(path)))


def files(folder):
    return sorted(os.listdir(FOLDER / folder))


def test_tables():
    for i in (1, 2):
        (FOLDER / f"part, {i}.csv").write_text(ROWS, encoding="utf-8")
    for kind in ("arrow", "parquet", "csv"):
        output = FOLDER / f"out ü.{kind}"
        run("sort", "--by", "k", FOLDER / "part, 1.csv", "-o", output)
        assert run("filter", "--where", "k>=1", output).stdout == "k  s\n1  a\n2  b\n2 rows\n", output
        assert run("join", "--on", "k", "--count", output, FOLDER / "part, 2.csv").stdout == "2\n", output
    assert run("aggregate", "--agg", "count(*) as n", FOLDER / "part, [12].csv").stdout == "n\n4\n1 row\n"
    run("dump", "asm", "join.inner keys=i64", "-o", FOLDER / "k ü.s")
    assert "quern_join" in (FOLDER / "k ü.s").read_text()


def test_messages():
    missing = FOLDER / "none ü.csv"
    assert str(missing) in run("filter", "--where", "k>1", missing, status=1).stderr
    missing = FOLDER / "none" / "out ü.csv"
    assert str(missing) in run("sort", "--by", "k", FOLDER / "part, 1.csv", "-o", missing, status=1).stderr
    missing = FOLDER / "none.profile"
    message = run("dump", "plan", "filter i64 = 5", QUERN_PROFILE=str(missing)).stderr
    assert shown(missing) in message, message
    (FOLDER / "file").touch()
    message = run("sort", "--by", "k", FOLDER / "part, 1.csv", QUERN_CAPTURE=str(FOLDER / "file")).stderr
    assert shown(FOLDER / "file") in message, message
    message = run("filter", "--engine", "jit", "--where", "k>1", FOLDER / "part, 1.csv", QUERN_CACHE="rw",
                  QUERN_CACHE_DIR=str(FOLDER / "file")).stderr
    assert str(FOLDER / "file") in message, message


def test_kept_files():
    job = ("filter", "--engine", "jit", "--where", "k>=1", "--stats", FOLDER / "part, 1.csv", "--count")
    cache = {"QUERN_CACHE": "rw", "QUERN_CACHE_DIR": str(FOLDER / "kernels ü")}
    assert '"cache":"miss"' in run(*job, **cache).stderr.replace(" ", "")
    assert '"cache":"disk"' in run(*job, **cache).stderr.replace(" ", "")
    assert str(FOLDER / "kernels ü") in run("cache", "stat", **cache).stdout
    assert len(files("kernels ü")) == 1

    profile = FOLDER / "new" / "a, ü.profile"
    run("profile", "merge", PROFILE, PROFILE, "-o", profile)
    assert profile.read_text() == pathlib.Path(PROFILE).read_text()
    assert str(profile) in run("profile", "show", profile).stdout
    assert "prefetch_probe" in run("dump", "plan", "join.inner keys=i64", "--profile", profile).stdout

    run("sort", "--by", "k", FOLDER / "part, 1.csv", QUERN_CAPTURE=str(FOLDER / "captures ü"))
    (name,) = files("captures ü")
    assert "spec=sort keys=i64" in (FOLDER / "captures ü" / name).read_text()

    run(*job[:5], FOLDER / "part, 1.csv", QUERN_DUMP=f"plan,ir:{FOLDER}/stages, ü")
    assert [re.sub(".*[.]", "", name) for name in files("stages, ü")] == ["ll", "plan"], files("stages, ü")
    edited = run(*job[:5], FOLDER / "part, 1.csv", QUERN_OVERRIDE=str(FOLDER / "stages, ü"))
    assert f'override,file="{FOLDER}/stages, ü/filter_i64' in edited.stderr, edited


def main():
    shutil.rmtree(FOLDER.parent, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    test_tables()
    test_messages()
    test_kept_files()
    left = [name for _, _, names in os.walk(FOLDER) for name in names if "tmp" in name]
    assert not left, left


if __name__ == "__main__":
    main()
