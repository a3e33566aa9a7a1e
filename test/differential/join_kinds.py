# SPDX-License-Identifier: Apache-2.0
"""The kinds of join and the rows of their results: runtime/spec/join_kinds.def, which self_check.py compares with this
table.

    KINDS["left"].probe_row == "unmatched"       a probe row without a match comes out on its own, its build columns
                                                 null
"""
import dataclasses

NEVER, MATCHED, UNMATCHED, ALWAYS = "never", "matched", "unmatched", "always"


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    pairs: bool     # a result row for each matching pair
    probe_row: str  # when a row of this side comes out on its own
    build_row: str

    def has_columns(self, side):
        return self.pairs or self.alone(side) != NEVER

    def alone(self, side):
        return self.probe_row if side == "probe" else self.build_row

    def nulls_columns(self, side):
        """Whether the result's columns of this side may be null where the input's are not."""
        return self.pairs and self.alone("build" if side == "probe" else "probe") != NEVER

    @property
    def scans_unmatched(self):
        """Build rows come out after all probing."""
        return self.build_row != NEVER

    @property
    def marks(self):
        return self.probe_row == ALWAYS


KINDS = {kind.name: kind for kind in (
    Kind("inner", True, NEVER, NEVER),
    Kind("left", True, UNMATCHED, NEVER),
    Kind("right", True, NEVER, UNMATCHED),
    Kind("full", True, UNMATCHED, UNMATCHED),
    Kind("semi", False, MATCHED, NEVER),
    Kind("anti", False, UNMATCHED, NEVER),
    Kind("right_semi", False, NEVER, MATCHED),
    Kind("right_anti", False, NEVER, UNMATCHED),
    Kind("anti_null_aware", False, UNMATCHED, NEVER),
    Kind("mark", False, ALWAYS, NEVER),
    Kind("single", True, UNMATCHED, NEVER),
)}


def has_one_key(rng, kind):
    """Whether a random join of the kind is to have one key and no residual: where a null makes the answer unknown."""
    return kind.name == "anti_null_aware" or kind.marks and rng.random() < 0.6


# What quern_job_stats may say of the layout of a join, and the class that `layout=` asks for.
LAYOUT_CLASSES = {"unchained": "unchained", "bitmap": "dense", "dense": "dense", "ranked": "dense", "csr": "dense",
                  "open": "open", "counting": "open"}
