# SPDX-License-Identifier: Apache-2.0
"""Tuning profiles: the best prefetch settings of this machine, as text, as rows, and as settings that kernels use."""

from __future__ import annotations

import html
import os
from typing import NamedTuple, Union

from quern import _quern
from quern._machine import Machine, size_text

Path = Union[str, "os.PathLike[str]"]


class Entry(NamedTuple):
    """Measurements of one loop, by the size of its table. Times are nanoseconds a row on the tuned machine."""

    loop: str  # "probe_open"; docs/tuning.md has all of them
    keys: str  # "packed": packed into 8 bytes; "fixed", "string"
    pipeline: int  # such loops that take turns batch by batch
    threads: int
    table_bytes: int  # tables of more than half of it, and at most so many
    setting: str  # "64", "all/hint=nta"; "default": nothing beat it beyond the noise
    ns: float
    default_ns: float
    off_ns: float  # without prefetch
    gain: float  # share of default_ns that the setting saves; 0 of the default
    noise: float  # share by which two measurements of the same may differ


class Profile:
    """Settings that were measured on one machine. They change the speed of kernels, never their results. Immutable.

    `quern.tune` makes one, Profile.read and Profile.parse load one that was kept, and quern.use_profile puts it into
    use. It is an Arrow table of its entries: polars.DataFrame(profile), pyarrow.table(profile).
    """

    __slots__ = ("_profile",)

    def __init__(self, profile: _quern.Profile) -> None:
        self._profile = profile

    @classmethod
    def read(cls, path: Path) -> Profile:
        """Reads a file that tune has written. Errors: FileNotFoundError; ValueError that names the wrong line;
        RuntimeError if the file cannot be read.
        """
        return cls(_quern.Profile.read(os.fspath(path)))

    @classmethod
    def parse(cls, text: str) -> Profile:
        """Parses the text of a file. Errors: ValueError "text:LINE: ..."."""
        return cls(_quern.Profile.parse(text, "text"))

    @property
    def text(self) -> str:
        """The text of its file: one entry a line."""
        return self._profile.text

    @property
    def path(self) -> str | None:
        """The path that it was read from or written to."""
        return self._profile.path or None

    @property
    def signature(self) -> str:
        """The machine that it was measured on, as in its text."""
        return self._profile.signature

    @property
    def difference(self) -> str:
        """Why it belongs to another machine, "cpu znver4 here, znver5 in the profile"; "" if it belongs to this one."""
        return self._profile.difference

    @property
    def machine(self) -> Machine | None:
        """The memory facts of that machine; None if they were not measured."""
        facts = self._profile.facts
        return None if facts is None else Machine(*facts)

    @property
    def entries(self) -> list[Entry]:
        """By loop, keys, pipeline, size and threads."""
        return [Entry(*values) for values in self._profile.entries]

    def rows(self) -> list[dict[str, str | int | float]]:
        """The entries as dictionaries."""
        return [entry._asdict() for entry in self.entries]

    def schedules(self, keys: str = "packed", pipeline: int = 1) -> dict[str, str]:
        """The settings that plans on this machine derive from it, loop by loop: "0@1M,48@32M,96; profile: 5 sizes
        exact, 12 nearest size". Each setting is followed by the largest table size to which it applies; the text ends
        with their source. keys: "packed", "fixed" or "string". pipeline: the number of such loops that take turns.
        """
        return {loop: f"{schedule}; {origin}" for loop, schedule, origin in self._profile.schedules(keys, pipeline)}

    # ---- of one that quern.tune has made ----

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C ended the tuning; the profile then holds what had been measured until then."""
        return self._profile.stopped

    @property
    def seconds(self) -> float:
        """The time that tuning took; 0 for a profile that was read."""
        return self._profile.seconds

    @property
    def csv(self) -> str:
        """A line for each setting that was tried. Errors: ValueError for a profile that was read, as below."""
        return self._profile.csv()

    @property
    def table(self) -> str:
        """A line for each cell that was tuned: default, chosen, off, gain, noise."""
        return self._profile.table()

    def report(self, path: Path) -> None:
        """Writes a page of curves, time a row over prefetch distance; the page needs no network. Errors: OSError."""
        page = self._profile.html()
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)

    # ---- files and other profiles ----

    def save(self, path: Path) -> Profile:
        """Writes it, under a temporary name first; makes the folder. Returns itself with that path. Errors:
        RuntimeError.
        """
        return Profile(self._profile.write(os.fspath(path)))

    def merge(self, other: Profile) -> Profile:
        """Both profiles of one machine; for equal cells, the entries of `other`. Errors: RuntimeError if the machines
        differ.
        """
        return Profile(self._profile.merge(other._profile))

    def diff(self, other: Profile) -> str:
        """A line for each entry that differs: "-" only here, "+" only in other, "~" in both. Times are not compared."""
        return self._profile.diff(other._profile)

    def __arrow_c_schema__(self) -> object:
        """A PyCapsule of an ArrowSchema, a struct of the fields of Entry."""
        return self._profile.schema_capsule()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A PyCapsule of an ArrowArrayStream over the entries."""
        return self._profile.stream_capsule()

    def __len__(self) -> int:
        return len(self._profile.entries)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        better = sum(entry.setting != "default" for entry in self.entries)
        whose = "another machine's" if self.difference else "this machine's"
        end = ", stopped" if self.stopped else ""
        return f"<quern.Profile: {whose}, {len(self)} entries, {better} better than by default{end}>"

    def _repr_html_(self) -> str:
        """For notebooks: the entries."""
        head = "".join(
            f"<th>{name}</th>"
            for name in ("loop", "keys", "table", "pipeline", "threads", "setting", "ns", "default", "off")
        )
        rows = "".join(
            f"<tr><td>{e.loop}</td><td>{e.keys}</td><td>{size_text(e.table_bytes)}</td><td>{e.pipeline}</td>"
            f"<td>{e.threads}</td><td>{html.escape(e.setting)}</td><td>{e.ns:.2f}</td><td>{e.default_ns:.2f}</td>"
            f"<td>{e.off_ns:.2f}</td></tr>"
            for e in self.entries
        )
        return f"<div><code>{html.escape(repr(self))}</code><table><tr>{head}</tr>{rows}</table></div>"


def profile() -> Profile | None:
    """The profile that plans use: the one set by use_profile, else the one that the process found for its first plan;
    None: estimates.

    The process looks only in QUERN_PROFILE if that is set ("off": nowhere), else in ~/.config/quern, then in
    /etc/quern. A file that cannot be used causes one warning. Threads: any.
    """
    native = _quern.profile_in_use()
    return None if native is None else Profile(native)


def use_profile(profile: Profile | Path | None) -> None:
    """Sets the profile that kernels of this process use from now on: a Profile, its file, "off" for none, None for what
    profile() would find.

    Running calls keep their settings; no code is compiled for it. Threads: any. Errors: those of Profile.read;
    RuntimeError for a profile of another machine. After an error the previous profile stays.
    """
    if profile is None:
        _quern.use_profile(_quern.find_profile())
    elif isinstance(profile, str) and profile == "off":
        _quern.use_profile(None)
    else:
        chosen = profile if isinstance(profile, Profile) else Profile.read(profile)
        if chosen.difference:
            name = chosen.path or "a Profile"
            raise RuntimeError(
                f"profile of another machine: {name} ({chosen.difference}); "
                "accepted: one of this machine, which tune makes"
            )
        _quern.use_profile(chosen._profile)
