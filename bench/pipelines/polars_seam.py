# SPDX-License-Identifier: Apache-2.0
"""The queries of suite seam as lazy frames of Polars."""
import functools

from polars import col


def query(t, kind):
    rows = t[f"probe_{kind}"].join(t[f"build_{kind}"], left_on="pk", right_on="bk")
    return rows.select(**{f"{to}{i}": col(f"{of}{i}").sum() for of, to in (("x", "a"), ("y", "b")) for i in range(4)})


QUERIES = {f"seam/{kind}": functools.partial(query, kind=kind) for kind in ("int32", "text16")}
