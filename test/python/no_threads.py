# SPDX-License-Identifier: Apache-2.0
"""no_threads.py: the system starts no thread for this process. Calls run on the calling thread."""

import os
import resource
import sys
import threading

import pyarrow as pa
import quern

# Enough rows for several threads.
left, right = pa.table({"k": range(500_000)}), pa.table({"k": range(0, 500_000, 5)})
quern.filter(left, "k > 499990", threads=1)  # what a first call reads, it reads as the user who started this
if os.geteuid() == 0:  # no limit holds for root
    os.setresuid(65534, 65534, 65534)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
try:
    threading.Thread(target=print).start()
    sys.exit("a thread was started; expected: none")
except RuntimeError:
    pass

for threads in (1, 3):
    for engine in ("generic", "auto", "jit"):
        how = {"threads": threads, "engine": engine}
        found = {"filter": len(quern.filter(left, "k >= 499990", **how)),
                 "join": len(quern.join(left, right, on="k", select="probe.k", **how)),
                 "aggregate": len(quern.aggregate(left, by="k", aggs="count(*)", **how)),
                 "sort": len(quern.sort(left, by="k", **how))}  # fmt: skip
        if found != {"filter": 10, "join": 100_000, "aggregate": 500_000, "sort": 500_000}:
            sys.exit(f"rows of {how}: {found}")
