# SPDX-License-Identifier: Apache-2.0
"""forks.py: threads are inside calls of the package while the main thread forks. Each child runs a call of its own to
its end."""

import os
import random
import signal
import sys
import threading

import pyarrow as pa
import quern

FORKS = 40
WATCHDOG = 300  # seconds after which a child that hangs is ended, which fails the test
LANGUAGES = ["de", "fr", "sv", "es", "da", "cs", "pl", "tr", "fi"]

numbers = pa.table({"a": [i * 7919 % 100_003 for i in range(100_000)]})
names = pa.table({"a": list(range(200)), "s": [f"é{i % 50}" for i in range(200)]})
collations = [f"icu:{x}{y}" for x in LANGUAGES for y in ("", "-u-ks-level1", "-u-kn-true")]
try:
    quern.aggregate(names, by="s collate icu:de", aggs="count(*)")
except ValueError:  # a build without ICU
    collations = ["utf8mb4_0900_ai_ci", "utf8mb4_general_ci"]

JOBS = {
    "kept pages": lambda draw: quern.sort(numbers, by="a", select="a", threads=1, engine="generic"),
    "two threads": lambda draw: quern.aggregate(numbers, by="a", aggs="count(*)", threads=2, engine="generic"),
    "auto": lambda draw: quern.filter(names, f"a > {draw.randrange(10**6)}", threads=1, engine="auto"),
    "jit": lambda draw: quern.filter(names, f"a > {draw.randrange(10**6)}", threads=1, engine="jit"),
    "collations": lambda draw: quern.aggregate(names, by=f"s collate {draw.choice(collations)}", aggs="count(*)",
                                               threads=1, engine="generic"),
}  # fmt: skip


def child(job, seed):
    signal.alarm(WATCHDOG)
    try:
        job(random.Random(seed))
        os._exit(0)
    except BaseException as e:
        print(repr(e), file=sys.stderr, flush=True)
        os._exit(1)


for what, job in JOBS.items():
    stop = threading.Event()

    def run(seed, job=job, stop=stop):
        draw = random.Random(seed)
        while not stop.is_set():
            job(draw)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for i in range(FORKS):
        pid = os.fork()
        if pid == 0:
            child(job, 1000 + i)
        _, status = os.waitpid(pid, 0)
        if status != 0:
            print(f"{what}, fork {i}: status {status}; expected: 0", flush=True)
            os._exit(1)
    stop.set()
    for thread in threads:
        thread.join()
