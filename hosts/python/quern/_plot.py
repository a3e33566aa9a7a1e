# SPDX-License-Identifier: Apache-2.0
"""Plots of tuning profiles: quern.plot_profile. Needs matplotlib, which `pip install quern[plot]` installs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from quern._arguments import wrong
from quern._profile import Entry, Path, Profile
from quern._profile import profile as profile_in_use

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANELS_A_ROW = 3
_OFF, _DEFAULT, _CHOSEN, _GREY = (
    "#9a9a9a",
    "#3b6fb6",
    "#d1495b",
    "#e4e4e4",
)  # told apart by those who see red and green as one


def _size_label(size: float, _: object = None) -> str:
    for unit, name in ((1 << 30, "G"), (1 << 20, "M")):
        if size >= unit:
            return f"{size / unit:g}{name}"
    return f"{size / 1024:g}K"


def _chosen_profile(profile: Profile | Path | None) -> Profile:
    if isinstance(profile, Profile):
        return profile
    if profile is not None:
        return Profile.read(profile)
    in_use = profile_in_use()
    if in_use is None:
        raise wrong("no profile to plot", "kernels go by estimates", "after quern.tune, or a Profile, or a file of one")
    return in_use


def _panels(profile: Profile, threads: int, pipeline: int) -> dict[str, list[Entry]]:
    """Entries by loop and keys, smallest table first."""
    panels: dict[str, list[Entry]] = {}
    for entry in profile.entries:
        if (entry.threads, entry.pipeline) == (threads, pipeline):
            panels.setdefault(f"{entry.loop}, {entry.keys} keys", []).append(entry)
    if not panels:
        there = sorted({(entry.threads, entry.pipeline) for entry in profile.entries})
        accepted = ", ".join(f"threads={t} pipeline={p}" for t, p in there) or "a profile with entries"
        raise wrong("no entries to plot", f"threads={threads} pipeline={pipeline}", accepted)
    return panels


def _draw(axes: Axes, title: str, entries: list[Entry], caches: Iterable[tuple[str, int]]) -> None:
    sizes = [entry.table_bytes for entry in entries]
    axes.plot(sizes, [entry.off_ns for entry in entries], "--", marker=".", color=_OFF, label="off")
    axes.plot(sizes, [entry.default_ns for entry in entries], "-", marker=".", color=_DEFAULT, label="default")
    axes.plot(sizes, [entry.ns for entry in entries], "-", marker="o", markersize=4, color=_CHOSEN, label="chosen")
    low, high = ([entry.ns * (1 + sign * entry.noise) for entry in entries] for sign in (-1, 1))
    axes.fill_between(
        sizes, low, high, where=[entry.noise < 1 for entry in entries], color=_CHOSEN, alpha=0.15, linewidth=0
    )
    undecided = [entry for entry in entries if entry.noise >= 1]  # whose time did not suffice
    if undecided:
        places = ([entry.table_bytes for entry in undecided], [entry.ns for entry in undecided])
        axes.plot(*places, "o", markersize=4, color=_CHOSEN, markerfacecolor="white", label="undecided")
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set_title(title, fontsize=10)
    first, last = axes.get_xlim()
    for name, size in caches:
        if first < size < last:
            axes.axvline(size, color=_GREY, zorder=0)
            axes.annotate(
                name,
                (size, 1),
                xycoords=("data", "axes fraction"),
                xytext=(2, -9),
                textcoords="offset points",
                fontsize=7,
            )
    axes.xaxis.set_major_formatter(_size_label)
    for entry in entries:
        if entry.setting != "default":
            place = (entry.table_bytes, entry.ns)
            axes.annotate(entry.setting, place, xytext=(0, -11), textcoords="offset points", fontsize=7, ha="center")


def _legend(drawn: list[Axes], whole_figure: bool) -> None:
    labelled: dict[str, Any] = {}
    for axes in drawn:
        handles, labels = axes.get_legend_handles_labels()
        labelled.update(zip(labels, handles))
    where: dict[str, Any] = {"loc": "outside upper right"} if whole_figure else {}
    on: Any = drawn[0].figure if whole_figure else drawn[0]
    on.legend(
        labelled.values(),
        labelled.keys(),
        fontsize=8,
        frameon=False,
        ncols=len(labelled) if whole_figure else 1,
        **where,
    )


def _new_axes(count: int) -> list[Axes]:
    from matplotlib import pyplot

    columns = min(count, _PANELS_A_ROW)
    rows = -(-count // columns)
    figure, grid = pyplot.subplots(
        rows, columns, squeeze=False, figsize=(4.2 * columns, 2.9 * rows), layout="constrained"
    )
    every: list[Any] = list(grid.flat)
    for unused in every[count:]:
        figure.delaxes(unused)
    return every[:count]


def plot_profile(
    profile: Profile | Path | None = None,
    ax: Axes | Iterable[Axes] | None = None,
    *,
    threads: int = 1,
    pipeline: int = 1,
) -> list[Axes]:
    """Plots what a profile gains: nanoseconds a row over table size without prefetch, by default, and with the chosen
    setting (printed below it; the band is the noise; hollow: undecided), in a panel for each loop and class of keys.

    profile: a Profile, its file, or None: the one that kernels use. threads, pipeline: which entries.
    ax: None: a new figure of pyplot; else Axes to draw on, as many as there are panels; one may be given alone.
    Result: the axes, by panel. Errors: ImportError without matplotlib; ValueError if there is nothing to plot, or for
        too few axes.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("no matplotlib: plot_profile draws with it; accepted: pip install 'quern[plot]'") from error
    chosen = _chosen_profile(profile)
    panels = _panels(chosen, threads, pipeline)
    drawn: list[Any] = _new_axes(len(panels)) if ax is None else list(ax) if isinstance(ax, Iterable) else [ax]
    if len(drawn) != len(panels):
        raise wrong("number of axes", len(drawn), f"{len(panels)}, one for each of {'; '.join(panels)}")
    machine = chosen.machine
    caches = [] if machine is None else [(name[:2].upper(), size) for name, size in machine.caches.items() if size]
    for axes, (title, entries) in zip(drawn, panels.items()):
        _draw(axes, title, entries, caches)
    for axes in drawn:
        axes.set_xlabel("table")
        axes.set_ylabel("ns a row")
    _legend(drawn, whole_figure=ax is None)
    return drawn
