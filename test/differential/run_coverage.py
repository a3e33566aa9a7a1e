# SPDX-License-Identifier: Apache-2.0
"""Coverage of operators whose runs end in one of two ways: a map's rows have results or one fails, a query has the
memory that it needs or is refused it."""
import collections


class Coverage:
    """What has run: cases, runs by how they ended, and all marks.

    marks(case, variant): of a run. wanted: all marks, with (kind, end) for each end. end(answer): how a run ended.
    rare_end: what any case may end in.
    """

    def __init__(self, kind, marks, wanted, end, rare_end):
        self._kind, self._marks, self._end, self._rare_end = kind, marks, end, rare_end
        self.runs, self.unseen, self.num_cases = collections.Counter(), set(wanted), 0

    def count_case(self, case):
        self.num_cases += 1

    def count_run(self, case, variant, answer):
        end = self._end(answer)
        self.runs[end] += 1
        self.unseen -= {(self._kind, end), *self._marks(case, variant)}

    def adds(self, case):
        """Whether a run of the case may cover something new."""
        return bool(self.unseen & {(self._kind, self._rare_end), *(
            mark for variant in case.variants() for mark in self._marks(case, variant))})

    def is_complete(self):
        return not self.unseen

    def unseen_text(self):
        return ", ".join(sorted(" ".join(map(str, mark)) for mark in self.unseen))

    def text(self):
        """One line."""
        return f"cases: {self.num_cases}; runs: {', '.join(f'{end} {n}' for end, n in sorted(self.runs.items()))}"
