# SPDX-License-Identifier: Apache-2.0
"""Runs the command line with -o in a folder and looks at what is there afterwards: output_file.py QUERN FOLDER."""

import fcntl
import os
import pathlib
import resource
import signal
import subprocess
import sys

QUERN, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
INPUT = FOLDER / "in.csv"
LONG_INPUT = FOLDER / "long.csv"  # with --repeat 1000, of a run that goes on for seconds
RESULT = "k\n" + "".join(f"{i}\n" for i in range(20000))


def command(output, *more):
    return [QUERN, "sort", "--by", "k", str(LONG_INPUT if "--repeat" in more else INPUT), "-o", str(output), *more]


def run(output, *more, **options):
    return subprocess.run(command(output, *more), capture_output=True, text=True, check=False, **options)


def expect(what, found, expected):
    if found != expected:
        sys.exit(f"{what}\n  expected {expected}\n  found    {found}")


def names(folder):
    return sorted(os.listdir(folder))


def fresh(name):
    folder = FOLDER / name
    folder.mkdir()
    return folder


def content(path):
    return path.read_text(encoding="utf-8").replace('"', "")


def mode(path):
    return oct(path.stat().st_mode & 0o7777)


def test_modes():
    folder = fresh("modes")
    for old in (0o600, 0o640, 0o664):
        path = folder / f"{old:o}.csv"
        path.write_text("old")
        path.chmod(old)
        expect("status", run(path).returncode, 0)
        expect("mode of a file that is replaced", mode(path), oct(old))
        expect("result", content(path), RESULT)
    run(folder / "new.csv", umask=0o027)
    expect("mode of a new file", mode(folder / "new.csv"), oct(0o640))
    if os.geteuid() == 0:
        os.chown(folder / "600.csv", 1234, 4321)
        run(folder / "600.csv")
        about = (folder / "600.csv").stat()
        expect("owner of a file that is replaced", (about.st_uid, about.st_gid), (1234, 4321))


def test_links():
    folder = fresh("links")
    (folder / "data").mkdir()
    (folder / "data" / "real.csv").write_text("old")
    (folder / "link.csv").symlink_to("data/real.csv")
    (folder / "dangling.csv").symlink_to("data/new.csv")
    (folder / "loop.csv").symlink_to("loop.csv")
    for link, target in (("link.csv", "real.csv"), ("dangling.csv", "new.csv")):
        expect("status", run(folder / link).returncode, 0)
        expect("link", (folder / link).is_symlink(), True)
        expect("result behind a link", content(folder / "data" / target), RESULT)
    expect("status of a loop", run(folder / "loop.csv").returncode, 1)
    expect("names", (names(folder), names(folder / "data")),
           (["dangling.csv", "data", "link.csv", "loop.csv"], ["new.csv", "real.csv"]))


def test_leftovers():
    folder = fresh("leftovers")
    left, alive, other = ".o.csv.0123456789abcdef.tmp", ".o.csv.fedcba9876543210.tmp", ".o.csv.1.tmp"
    for name in (left, alive, other):
        (folder / name).write_text("part of a result")
    with open(folder / alive, "r+b") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        expect("status", run(folder / "o.csv").returncode, 0)
    expect("names", names(folder), sorted([alive, other, "o.csv"]))


def test_long_names():
    folder = fresh("long")
    for length in (200, 251):
        expect("status", run(folder / ("a" * length + ".csv")).returncode, 0)
    expect("names", len(names(folder)), 2)
    expect("status", run(folder / ("a" * 252 + ".csv")).returncode, 1)
    expect("names", len(names(folder)), 2)


def test_limit_of_file_sizes():
    folder = fresh("limit")
    for name in ("o.csv", "o.parquet", "o.arrow"):
        result = run(folder / name,
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY)))
        expect("status and message", (result.returncode, result.stderr),
               (1, f"quern: error: cannot write file: {folder / name}; File too large; accepted: a limit of file sizes "
                   "that is above it\n"))
    expect("names", names(folder), [])


def wait_for_temporary(folder, process):
    while not any(name.endswith(".tmp") for name in names(folder)):
        if process.poll() is not None:
            sys.exit("the run ended before its signal: " + process.stderr.read())


# The runner of the tests may ignore signals, and quern keeps to that.
def test_signals():
    folder = fresh("signals")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU):
        with subprocess.Popen(command(folder / "o.csv", "--repeat", "1000", "--engine", "generic"), text=True,
                              stderr=subprocess.PIPE,
                              preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)) as process:
            wait_for_temporary(folder, process)
            while not is_handled(process, number):  # until then it would kill the process and leave the file
                pass
            process.send_signal(number)
            process.wait()
        expect(f"status of {number.name}", process.returncode, -number)
        expect(f"names after {number.name}", names(folder), [])


def is_handled(process, number):
    """Whether the process has a handler for the signal, or has ended."""
    if process.poll() is not None:
        return True
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    mask = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(mask >> (number - 1) & 1)


def test_ignored_signals():
    folder = fresh("ignored")
    with subprocess.Popen(command(folder / "o.csv", "--repeat", "3"), stderr=subprocess.PIPE, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
        wait_for_temporary(folder, process)
        process.send_signal(signal.SIGHUP)
        process.wait()
    expect("status under nohup", process.returncode, 0)
    expect("names", names(folder), ["o.csv"])


def test_killed():
    folder = fresh("killed")
    with subprocess.Popen(command(folder / "o.csv", "--repeat", "1000"), stderr=subprocess.PIPE, text=True) as process:
        wait_for_temporary(folder, process)
        process.kill()
        process.wait()
    expect("status", run(folder / "o.csv").returncode, 0)
    expect("names after a killed run and another", names(folder), ["o.csv"])


def test_full_device():
    with open("/dev/full", "w", encoding="utf-8") as full:
        result = subprocess.run([QUERN, "sort", "--by", "k", str(INPUT)], stdout=full, stderr=subprocess.PIPE,
                                text=True, check=False)
    expect("status and message", (result.returncode, result.stderr),
           (1, "quern: error: cannot write: standard output; No space left on device; accepted: a file or terminal "
               "that takes it\n"))


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
INPUT.write_text(RESULT, encoding="utf-8")
LONG_INPUT.write_text("k\n" + "".join(f"{i * 7919 % 200003}.5\n" for i in range(200000)), encoding="utf-8")
for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
