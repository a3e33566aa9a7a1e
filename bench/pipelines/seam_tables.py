# SPDX-License-Identifier: Apache-2.0
"""The tables of suite seam: joins whose result is wide and needed by nobody. A probe side of 20 M int32 keys, or 10 M
texts of 16 bytes, meets 1,000 rows, every probe row one of them; four int64 columns of each side are summed. An engine
that runs one operator after the other writes eight columns of 20 M rows and reads them again.

    build_int32     bk, x0, x1, x2, x3      keys and extra columns as join_arrays.py of bench/peers makes them
    probe_int32     pk, y0, y1, y2, y3
"""
import join_arrays
import numpy as np
import pyarrow as pa
from columns import VALUE_BELOW, draw, named
from join_cases import INTEGER_PROBE_ROWS, TEXT_PROBE_ROWS, JoinCase

BUILD_ROWS, NUM_EXTRA, SEED = 1_000, 4, 1
PROBE_ROWS = {"int32": INTEGER_PROBE_ROWS, "text16": TEXT_PROBE_ROWS}


def read(scale, kinds):
    """{table: pyarrow table} of some kinds of keys, with `scale` times the rows on the probe side."""
    tables = {}
    for kind in kinds:
        probe_rows = max(1, round(PROBE_ROWS[kind] * scale))
        case = JoinCase(f"seam/{kind}", kind, BUILD_ROWS, probe_rows, NUM_EXTRA)
        made = join_arrays.make_tables(case, SEED)
        random = np.random.default_rng(SEED + 1)
        extra = named("y", (draw(probe_rows, VALUE_BELOW, random) for _ in range(NUM_EXTRA)))
        tables[f"build_{kind}"] = made["build"].rename_columns({"k0": "bk"})
        tables[f"probe_{kind}"] = pa.table({"pk": made["probe"]["k0"]} | extra).combine_chunks()
    return tables
