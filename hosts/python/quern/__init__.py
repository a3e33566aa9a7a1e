# SPDX-License-Identifier: Apache-2.0
"""Joins, aggregations, sorts, filters, maps and set operations over Arrow data, by kernels compiled for the query and
for the machine.

    import quern
    result = quern.join(orders, customers, on="o_custkey=c_custkey").to_polars()

Inputs are any objects with __arrow_c_stream__ or __arrow_c_array__: tables of pyarrow, Polars, pandas 3, DuckDB,
DataFusion, nanoarrow. Results have __arrow_c_stream__ and __arrow_c_schema__ and can be exported any number of times.
Names and texts are those of the command line (`quern join --help`).

Errors: ValueError for a bad argument, TypeError for an object without Arrow data, MemoryError above memory_limit,
RuntimeError for the rest. Each is one line: what is wrong, the value, what is accepted. Threads: any may call. The GIL
is released while kernels run, and Ctrl-C ends them.
"""

from quern import _quern
from quern._aggregate import aggregate
from quern._datafusion import datafusion
from quern._filter import (
    filter,
)  # shadows the built-in one for those who import * from here, which __all__ keeps in bounds
from quern._join import join
from quern._kernel import Kernel, compile
from quern._machine import Machine, MemoryFact, machine
from quern._map import map  # shadows the built-in one, as filter does
from quern._plot import plot_profile
from quern._profile import Entry, Profile, profile, use_profile
from quern._query import Frame, run, scan
from quern._results import Reader, Result
from quern._set import except_, intersect, union
from quern._sort import sort
from quern._tuning import tune

__all__ = [
    "Entry", "Frame", "Kernel", "Machine", "MemoryFact", "Profile", "Reader", "Result", "abi_version", "aggregate",
    "compile", "datafusion", "except_", "filter", "intersect", "join", "machine", "map", "plot_profile", "profile",
    "run", "scan", "sort", "tune", "union", "use_profile", "version",
]  # fmt: skip

version: str = _quern.version()
abi_version: int = _quern.abi_version()
__version__ = version
