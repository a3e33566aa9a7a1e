# SPDX-License-Identifier: Apache-2.0
"""What join_peers.py finds wrong with rows of its table: peers_complaints.py FOLDER-OF-join_peers.py"""
import sys

sys.path.insert(0, sys.argv[1])

import join_peers


def show(title, answers, processor_share):
    row = {"case": "join/x", "answers": answers, "processor_share": processor_share}
    print(f"{title}:", *join_peers.complaints(row, threads=1))


show("same", {"duckdb": [(7,)], "quern": [(7,)]}, {"duckdb": 1.0, "quern": 1.02})
show("differ", {"duckdb": [(7,)], "quern": [(8,)]}, {})
show("flicker", {"quern": [(7,), (8,)]}, {})
show("threads", {"duckdb": [(7,)], "quern": [(7,)]}, {"duckdb": 1.9, "quern": 1.0})
