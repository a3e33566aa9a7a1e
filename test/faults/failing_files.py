# SPDX-License-Identifier: Apache-2.0
"""Whatever call on a file fails, a run ends with one line that names the file and the reason, or does without it.

    failing_files.py QUERN SHIM FOLDER [--all]

Runs small jobs of the command line. In each run one call fails (failing_calls.c): the first one of its kind, then the
second one, until the job makes no further such call. Without --all, only the first two of each kind fail, and in fewer
ways. A job that must write its file either does so, or ends with status 1 and leaves what was there. A job beside
which something is kept (kernels, captures, stages) succeeds, each problem is one warning, and what it leaves is whole.
No job leaves a temporary file, hangs or crashes, and each succeeds once nothing fails."""

import dataclasses
import errno
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable

QUERN, SHIM, FOLDER = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
ALL = sys.argv[4:] == ["--all"]
IN, OUT, HIT = FOLDER / "in", FOLDER / "out", FOLDER / "hit"
OLD = b"what was there before\n"
# Longer than any run, even on a machine that does much else: what takes so long, hangs.
HANGS_AFTER_S = 120

# What a call does: an error, once or from then on (+), or part of its work. A close of a file that was read has
# nothing to lose.
FAULTS = {
    "write": ["ENOSPC", "zero+", "short+"] + (["EIO", "EDQUOT", "EINTR", "ENOSPC+", "short", "zero"] if ALL else []),
    "open": ["EACCES"] + (["EMFILE", "EINTR", "ENOSPC", "EACCES+"] if ALL else []),
    "close": ["EIO"] + (["EINTR", "EDQUOT", "EIO+"] if ALL else []),
    "rename": ["EIO"] + (["ENOSPC", "EACCES"] if ALL else []),
    "mkdir": ["ENOSPC"] + (["EACCES"] if ALL else []),
    "fchmod": ["EPERM"],
    "ftruncate": ["EIO"],
    "fsync": ["EIO"],
    "mmap": ["ENOMEM"],
}
READING = {
    "open": ["EACCES"] + (["EMFILE", "EINTR", "ENOENT"] if ALL else []),
    "read": ["EIO", "short"] + (["EINTR", "EIO+", "short+"] if ALL else []),
    "mmap": ["ENOMEM"],
}


@dataclasses.dataclass
class Job:
    name: str
    words: list[str]
    # The file that the job must write, in OUT; None: it succeeds whatever happens to the files beside it.
    output: str | None = None
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    faults: dict[str, list[str]] = dataclasses.field(default_factory=lambda: FAULTS)
    below: pathlib.Path = OUT
    # True for a file that a run without faults may leave, given its name, content, and what that run left.
    is_whole: Callable[[str, bytes, dict[str, bytes]], bool] = lambda name, content, good: good.get(name) == content
    before: Callable[[], None] = lambda: None
    may_fail: bool = False


def is_capture(name, content, good):
    lines = content.decode().splitlines()
    return name.endswith(".capture") and lines[0] == "quern-capture 1" and lines[-1] == f"end {len(lines) - 2}"


def is_jit_dump(name, content, good):
    """Records are appended. One that did not fit is removed again, so that the file ends where the last one says."""
    at = int.from_bytes(content[8:12], "little")  # the size of the header
    while at < len(content):
        at += int.from_bytes(content[at + 4:at + 8], "little") or len(content)
    return re.fullmatch(r"jit-\d+\.dump", name) is not None and at == len(content)


def fill_cache():
    shutil.copytree(FOLDER / "kernels", OUT / "kernels")


SORT = ["sort", "--by", "k", "--threads", "1", str(IN / "in.csv")]
FILTER = ["filter", "--engine", "jit", "--where", "k>=2", "--threads", "1", str(IN / "in.csv")]
CACHE = {"QUERN_CACHE": "rw", "QUERN_CACHE_DIR": str(OUT / "kernels")}
PROFILE = str(pathlib.Path(__file__).parent.parent / "profiles" / "good.profile")
JOBS = [
    *(Job(f"output.{kind}", [*SORT, "-o", str(OUT / f"r.{kind}")], f"r.{kind}")
      for kind in ("csv", "arrow", "parquet")),
    Job("dump", ["dump", "layout", "join.inner keys=i64", "-o", str(OUT / "k.txt")], "k.txt"),
    Job("profile", ["profile", "merge", PROFILE, PROFILE, "-o", str(OUT / "p.profile")], "p.profile"),
    Job("cache", FILTER, environment=CACHE),
    Job("cached", FILTER, environment=CACHE, faults=READING, before=fill_cache),
    Job("capture", SORT, environment={"QUERN_CAPTURE": str(OUT / "captures")}, is_whole=is_capture),
    Job("stages", FILTER, environment={"QUERN_DUMP": f"plan,layout:{OUT}/stages"}),
    Job("jitdump", FILTER, environment={"QUERN_JIT_PROFILE": "jitdump", "JITDUMPDIR": str(OUT)}, is_whole=is_jit_dump),
    Job("mca", ["dump", "mca", "filter i64 = 5", "--machine", "znver4"], environment={"TMPDIR": str(OUT)},
        may_fail=True),
    *(Job(f"input.{kind}", ["sort", "--by", "k", "--threads", "1", str(IN / f"in.{kind}")], faults=READING, below=IN,
          may_fail=True) for kind in ("csv", "arrow", "parquet")),
]


def run(job, fault=None, file_limit=None):
    environment = {**os.environ, **job.environment}
    HIT.unlink(missing_ok=True)
    if fault is not None:
        environment |= {"LD_PRELOAD": SHIM, "QUERN_FAULT": f"{fault}:{job.below}", "QUERN_FAULT_HIT": str(HIT)}
    limit = None if file_limit is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    job.before()
    if job.output is not None:
        (OUT / job.output).write_bytes(OLD)
    try:
        return subprocess.run([QUERN, *job.words], capture_output=True, text=True, check=False, env=environment,
                              timeout=HANGS_AFTER_S, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(job.words, "of a run that hangs", "", "")


def files():
    return {str(path.relative_to(OUT)): path.read_bytes() for path in OUT.rglob("*") if path.is_file()}


def problem_of(job, result, reason, is_lasting, good, good_stdout):
    """What is wrong with a run; "" if nothing is. reason: as strerror says it; is_lasting: later calls failed too."""
    lines, left = result.stderr.splitlines(), files()
    if result.returncode not in (0, 1) or (result.returncode == 1 and job.output is None and not job.may_fail):
        return f"status {result.returncode}"
    # What fails from then on may be two problems, as of a folder that takes no file and then does not open.
    if len(lines) > (2 if is_lasting and not result.returncode else 1) or (result.returncode == 1 and not lines):
        return f"{len(lines)} lines of messages"
    if any(str(FOLDER) not in line for line in lines):
        return "a message without the path"
    if any(reason not in line for line in lines):
        return f"a message without the reason, {reason}"
    if result.returncode == 0 and result.stdout != good_stdout:
        return "another result"
    if job.output is not None and left != ({job.output: OLD} if result.returncode else good):
        return f"files: {sorted(left)}"
    broken = [name for name, content in left.items() if job.output is None and not job.is_whole(name, content, good)]
    return f"left in part: {broken}" if broken else ""


def try_faults(job, good, good_stdout, fail):
    """Returns the number of runs in which a call failed."""
    tried = 0
    for kind, kinds_of_fault in job.faults.items():
        for what in kinds_of_fault:
            name = what.rstrip("+")
            code = name if name in ("short", "zero") else getattr(errno, name)
            reason = os.strerror(errno.ENOSPC if code == name else code)
            for n in range(1, 1 << 20 if ALL else 3):
                result = run(job, f"{kind}:{code}:{n}{what[len(name):]}")
                if not HIT.exists():
                    break
                tried += 1
                if problem := problem_of(job, result, reason, what != name, good, good_stdout):
                    fail(f"{kind} {n} {what}", problem, result)
    return tried


def main():
    os.environ.pop("QUERN_CACHE_DIR", None)
    os.environ |= {"QUERN_CACHE": "off", "QUERN_PROFILE": "off"}
    shutil.rmtree(FOLDER, ignore_errors=True)
    IN.mkdir(parents=True)
    (IN / "in.csv").write_text("k,s\n" + "".join(f"{i * 7 % 5},text {i}\n" for i in range(20)), encoding="utf-8")
    for kind in ("arrow", "parquet"):
        output = str(IN / f"in.{kind}")
        subprocess.run([QUERN, "filter", "--where", "k>=0", str(IN / "in.csv"), "-o", output], check=True)
    num_failed = 0
    for job in JOBS:
        good_run = run(job)
        good, good_stdout, tried = files(), good_run.stdout, 0

        def fail(what, problem, result):
            nonlocal num_failed
            num_failed += 1
            print(f"FAILED: {job.name}, {what}: {problem}\n{result.stderr}", end="", flush=True)

        if good_run.returncode or good_run.stderr:
            fail("nothing fails", "it does not succeed", good_run)
        if job.name == "cache":
            shutil.copytree(OUT / "kernels", FOLDER / "kernels")
        tried += try_faults(job, good, good_stdout, fail)
        if job.below == OUT and job.faults is FAULTS:
            sizes = sorted({0, *(max(len(content) - 1, 0) for content in good.values())})
            for limit in sizes if ALL else sizes[:2]:
                tried += 1
                result = run(job, file_limit=limit)
                if problem := problem_of(job, result, os.strerror(errno.EFBIG), False, good, good_stdout):
                    fail(f"files of {limit} bytes", problem, result)
        again = run(job)
        if again.returncode or again.stderr or again.stdout != good_stdout:
            fail("nothing fails any more", "it does not succeed", again)
        print(f"{job.name}: {tried} faults")
    print(f"{num_failed} failed")
    sys.exit(num_failed > 0)


if __name__ == "__main__":
    main()
