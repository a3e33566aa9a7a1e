# SPDX-License-Identifier: Apache-2.0
"""All cases that are compared, and the selection of cases by name. A case of any operator has:

    name, target           target: best other engine's time divided by Quern's, at least; None: no target
    operator               "join", "aggregate", "sort", "filter" or "set"; its arrays are made by join_arrays.py,
                           aggregate_arrays.py, ..
    sizes                  numbers of rows by name: {"build": 1000, "probe": 20000000}, {"rows": 20000000, "key values":
                           10}
    has_texts              whether a key, or what a condition reads, is text
    ignores_case           whether texts that differ only in case are one key (digest.py compares them in lower case)
    scaled(factor)         the same case with fewer (or more) rows, under the same name
    sql(dialect)           the query; dialect: an engine's name, where its SQL differs. In the result columns k0, k1, ..
                           are keys, a0, a1, .. are computed, p0 is payload

This module needs only Python, so that the names can be listed anywhere.
"""
import fnmatch

import aggregate_cases
import filter_cases
import join_cases
import set_cases
import sort_cases

CASES = join_cases.CASES + aggregate_cases.CASES + sort_cases.CASES + filter_cases.CASES + set_cases.CASES


def matching(patterns):
    """The cases whose names match any of the shell patterns, in the order of CASES; all without patterns."""
    if not patterns:
        return list(CASES)
    return [case for case in CASES if any(fnmatch.fnmatchcase(case.name, pattern) for pattern in patterns)]
