# SPDX-License-Identifier: Apache-2.0
"""Whatever call on a file of spilled rows fails, a run has the right answer, or ends with one line that says why.

    spilled_files.py QUERN SHIM FOLDER [--all]

Runs a sort, an aggregation and a join of the command line under a memory limit that makes them spill. In each run one
call on the folder for spilled rows fails, comes short, or reads another byte than was written (failing_calls.c). A run
that fails leaves the result file as it was. Whatever happens, a kill -9 too, no file is left in the folder. Without
--all, the first and the tenth call of each kind fail; with it, the first 40 and then every hundredth. Rows are read by
threads, and by io_uring, compressed, where the kernel allows it."""

import ctypes
import errno
import hashlib
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq

QUERN, SHIM, FOLDER = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
ALL = sys.argv[4:] == ["--all"]
INPUT, SPILL, OUT, HIT = (FOLDER / name for name in ("in.parquet", "spill", "out.csv", "hit"))
OLD = b"what was there before\n"
NUM_ROWS = 300_000  # some 25 MB as they are sorted or grouped
LIMIT = "16M"
HANGS_AFTER_S = 300
JOBS = {
    "sort": ["sort", "--by", "s desc, k", str(INPUT)],
    "aggregate": ["aggregate", "--by", "k, s", "--agg", "count(*), sum(k)", str(INPUT)],
    "join": ["join", "--on", "k, s", "--select", "probe.k, probe.s", str(INPUT), str(INPUT)],
}
# By kind of call, what may happen, and what the message then says; None: the answer is right.
FAULTS = {
    "open": {"ENOSPC": os.strerror(errno.ENOSPC), "EMFILE": os.strerror(errno.EMFILE)},
    "write": {"ENOSPC": os.strerror(errno.ENOSPC), "EIO": os.strerror(errno.EIO), "zero": os.strerror(errno.ENOSPC),
              "short": None, "EINTR": None},
    "read": {"EIO": os.strerror(errno.EIO), "zero": "too short", "wrong": "checksum", "short": None, "EINTR": None},
    "fallocate": {"EOPNOTSUPP": None, "EIO": None},
    "close": {"EIO": None},
}
# A read of io_uring that fails is done again by pread, which does not.
RING_FAULTS = {"read": {"EIO": None, "zero": None, "wrong": "checksum", "short": None}}


def has_rings():
    """Whether the kernel lets this process have an io_uring."""
    setup, parameters = 425, ctypes.create_string_buffer(120)
    ring = ctypes.CDLL(None).syscall(setup, 1, parameters)
    if ring >= 0:
        os.close(ring)
    return ring >= 0


CODECS = {"threads": "none", "ring": "lz4"}  # of blocks, by who reads them
FAULTS_OF_READERS = {"threads": FAULTS} | ({"ring": RING_FAULTS} if has_rings() else {})


def environment_of(fault):
    if fault is None:
        return dict(os.environ)
    return {**os.environ, "LD_PRELOAD": SHIM, "QUERN_FAULT": f"{fault}:{SPILL}", "QUERN_FAULT_HIT": str(HIT)}


def start(job, fault=None, file_limit=None, reads="threads"):
    shutil.rmtree(SPILL, ignore_errors=True)
    SPILL.mkdir()
    HIT.unlink(missing_ok=True)
    OUT.write_bytes(OLD)
    limit = None if file_limit is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    return subprocess.Popen([QUERN, *JOBS[job], "--memory-limit", LIMIT, "--spill-dir", str(SPILL), "--threads", "2",
                             "--param", f"spill_reads={reads}", "--param", f"spill_codec={CODECS[reads]}", "--quiet",
                             "-o", str(OUT)], stderr=subprocess.PIPE,
                            text=True, env=environment_of(fault), preexec_fn=limit)


def digest():
    """Of the result's lines; groups come in any order."""
    return hashlib.sha256(b"\n".join(sorted(OUT.read_bytes().split(b"\n")))).hexdigest()


def problem_of(child, stderr, wanted, reason):
    """"" where the run is as it should be: has the answer, or ends with a line that has the reason. `reason` None: it
    has the answer; "": either."""
    if left := os.listdir(SPILL) if SPILL.is_dir() else []:
        return f"files are left: {left}"
    if child.returncode == 0:
        if reason:
            return "no error"
        return "" if digest() == wanted and not stderr else f"another result, or a message: {stderr}"
    if child.returncode != 1 or reason is None:
        return f"status {child.returncode}: {stderr}"
    if len(stderr.splitlines()) != 1 or "spilled rows: " not in stderr or reason not in stderr:
        return f"not one line with the reason, {reason}: {stderr}"
    return "" if OUT.read_bytes() == OLD else "the result file has changed"


class Runs:
    def __init__(self):
        self.num_failed = 0

    def check(self, job, what, child, wanted, reason, may_miss=False):
        """Answers whether a call failed. may_miss: where none did, the answer is right."""
        try:
            stderr = child.communicate(timeout=HANGS_AFTER_S)[1]
        except subprocess.TimeoutExpired:
            child.kill()
            stderr = child.communicate()[1] + "it hangs"
        if problem := problem_of(child, stderr, wanted, None if may_miss and not HIT.exists() else reason):
            self.num_failed += 1
            print(f"FAILED: {job}, {what}: {problem}", flush=True)
        return HIT.exists()


def stopped(child):
    """Whether the process stops in the call, rather than ends without it."""
    _, status = os.waitpid(child.pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return True
    child.returncode = os.waitstatus_to_exitcode(status)
    return False


def try_calls(runs, job, wanted, reads):
    """Returns the number of runs in which a call failed."""
    tried = 0
    for kind, kinds_of_fault in FAULTS_OF_READERS[reads].items():
        for name, reason in kinds_of_fault.items():
            code = name if name.islower() else getattr(errno, name)
            for n in (*range(1, 41), *range(100, 100_000, 100)) if ALL else (1, 10):
                child = start(job, f"{kind}:{code}:{n}", reads=reads)
                if not runs.check(job, f"{kind} {n} {name} by {reads}", child, wanted, reason, True):
                    break
                tried += 1
    return tried


def try_ends(runs, job, wanted):
    """A disk that is full for good, a folder that goes away, kill -9."""
    runs.check(job, "a full disk", start(job, f"write:{errno.ENOSPC}:3+"), wanted, os.strerror(errno.ENOSPC))
    runs.check(job, "files of 1 MB", start(job, file_limit=1 << 20), wanted, "")
    for kind, n, reason in (("open", 1, os.strerror(errno.ENOENT)), ("write", 20, "")):
        child = start(job, f"{kind}:stop:{n}")
        if not stopped(child):
            runs.num_failed += 1
            print(f"FAILED: {job}: no {kind} {n}")
            continue
        SPILL.rmdir()
        os.kill(child.pid, signal.SIGCONT)
        runs.check(job, f"a folder that goes away before {kind} {n}", child, wanted, reason)
    kills = (("write", 2), ("write", 50), ("read", 1), ("read", 20))
    for kind, n, reads in (*((*kill, "threads") for kill in kills), ("read", 1, "ring")):
        if reads not in FAULTS_OF_READERS:
            continue
        child = start(job, f"{kind}:stop:{n}", reads=reads)
        is_stopped = stopped(child)
        if is_stopped:
            child.kill()
            child.communicate()
        left = os.listdir(SPILL)
        if not is_stopped or left or OUT.read_bytes() != OLD:
            runs.num_failed += 1
            print(f"FAILED: {job}, killed at {kind} {n} by {reads}: "
                  f"{'left: ' + str(left) if is_stopped else 'it did not stop'}")


def main():
    os.environ.pop("QUERN_CACHE_DIR", None)
    os.environ |= {"QUERN_CACHE": "off", "QUERN_PROFILE": "off"}
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    keys = [row * 7919 % 1_000_003 for row in range(NUM_ROWS)]
    table = pa.table({"k": keys, "s": [f"the text of the row with the key {key}" for key in keys]})
    pq.write_table(table, INPUT, row_group_size=50_000)
    runs = Runs()
    for job, words in JOBS.items():
        subprocess.run([QUERN, *words, "--quiet", "-o", str(OUT)], check=True)
        wanted = digest()
        runs.check(job, "nothing fails", start(job), wanted, None)
        tried = {reads: try_calls(runs, job, wanted, reads) for reads in FAULTS_OF_READERS}
        try_ends(runs, job, wanted)
        runs.check(job, "nothing fails any more", start(job), wanted, None)
        print(f"{job}: {tried['threads']} faults, {tried.get('ring', 'none')} of io_uring", flush=True)
    print(f"{runs.num_failed} failed")
    sys.exit(runs.num_failed > 0)


if __name__ == "__main__":
    main()
