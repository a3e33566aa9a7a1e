# SPDX-License-Identifier: Apache-2.0
"""Quern under DataFusion's Python package."""

from __future__ import annotations

from typing import Any


def datafusion(*, joins: bool = True, aggregates: bool = True, sorts: bool = True) -> Any:
    """What ``SessionContext.with_extensions`` takes to run the joins, aggregations and sorts of a session as kernels.

        context = datafusion.SessionContext().with_extensions(quern.datafusion())

    Needs the package datafusion 55 and the module quern_datafusion, built by ``tools/rust python FOLDER``. Two things
    differ from a session without it: an integer sum that leaves 64 bits is an error, and DataFusion cannot plan queries
    over tables that have no file (docs/datafusion).
    """
    try:
        from quern_datafusion import Extension
    except ImportError as error:
        raise ImportError(
            f"quern.datafusion() needs the module quern_datafusion, built by `tools/rust python FOLDER`: {error}"
        ) from error
    return Extension(joins=joins, aggregates=aggregates, sorts=sorts)
