"""A laboratory for low-power wireless networks: TCP for motes, in virtual time.

``run`` runs a scenario and gives tables, ``sweep`` many of them on many machines. The same scenario and seed give the
same results on every machine, and the same as the command ``motet run``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Union, overload

from . import _given, _motet
from ._given import SweepError
from ._motet import Moment, Result, ScenarioError, Steps, Table, __version__
from ._sweep import Sweep

__all__ = [
    "Moment",
    "Result",
    "ScenarioError",
    "Steps",
    "Sweep",
    "SweepError",
    "Table",
    "__version__",
    "capture",
    "experiments",
    "reproduce",
    "run",
    "sweep",
]

Scenario = Union[Mapping[str, Any], str, "os.PathLike[str]"]

Bytes = Union[bytes, bytearray, memoryview]


@overload
def run(
    scenario: Scenario,
    *,
    seed: int | None = ...,
    seeds: int | None = ...,
    duration_s: float | None = ...,
    files: Mapping[str, Bytes] | None = ...,
    progress: Callable[[float], object] | bool | None = ...,
    step: None = ...,
    observe: int = ...,
) -> Result: ...
@overload
def run(
    scenario: Scenario,
    *,
    seed: int | None = ...,
    seeds: int | None = ...,
    duration_s: float | None = ...,
    files: Mapping[str, Bytes] | None = ...,
    progress: Callable[[float], object] | bool | None = ...,
    step: float,
    observe: int = ...,
) -> Steps: ...
def run(
    scenario: Scenario,
    *,
    seed: int | None = None,
    seeds: int | None = None,
    duration_s: float | None = None,
    files: Mapping[str, Bytes] | None = None,
    progress: Callable[[float], object] | bool | None = None,
    step: float | None = None,
    observe: int = 0,
) -> Result | Steps:
    """Runs a scenario with every seed, on all cores.

    ``scenario``: a mapping, a TOML text, or the path of a TOML file. A string with a line break is a text, and so is
    one with a ``=`` that does not end with ``.toml``; any other is a path. A ``pathlib.Path`` is always a path.

    ``seed``, ``seeds``, ``duration_s``: the first seed, the number of seeds, and the virtual time of a run in seconds;
    without them those of the scenario hold.

    ``files``: matrices and traces that the scenario names, by name.

    ``progress``: called a few times a second with the share of the work that is done, 0 to 1. An exception that it
    raises ends the runs. ``True`` shows a bar by tqdm, where that package is installed, and else nothing.

    ``step``: advances one run by so many seconds of virtual time for each ``Moment`` that is taken from the iterator.
    ``observe``: keeps up to so many frames and states of radios from one moment to the next.

    Returns a ``Result``; with ``step`` an iterator, ``Steps``.

    Raises ``ScenarioError`` with one sentence where the scenario is wrong.
    """
    hook = _given.hook("progress", progress, _title(scenario))
    kept = _given.whole("observe", observe, 0)
    step_s = None if step is None else _given.seconds("step", step)
    plan = _plan(scenario, seed, seeds, duration_s, files, None)
    if step_s is None:
        return plan.run(hook)
    return plan.steps(step_s, kept, hook)


def sweep(
    scenario: Scenario,
    over: Mapping[str, Iterable[Any]] | None = None,
    *,
    seed: int | None = None,
    seeds: int | None = None,
    duration_s: float | None = None,
    files: Mapping[str, Bytes] | None = None,
) -> Sweep:
    """Prepares a scenario to run with every combination of values and every seed.

    ``over``: by key, as ``"radio.frame_loss"``, the values to run with; beside those of the scenario's own
    ``[sweep]``, and in their place where both have a key. The last key changes fastest.

    All other arguments are those of ``run``. Nothing runs before ``Sweep.run``.

    Raises ``ScenarioError`` with one sentence where a point is wrong.
    """
    listed = None if over is None else _given.over(over)
    return Sweep(_plan(scenario, seed, seeds, duration_s, files, listed))


def capture(
    scenario: Scenario,
    path: str | os.PathLike[str] | None = None,
    *,
    wire: bool = False,
    seed: int | None = None,
    duration_s: float | None = None,
    files: Mapping[str, Bytes] | None = None,
    progress: Callable[[float], object] | bool | None = None,
) -> bytes:
    """Runs a scenario once, and gives what was on the air as a pcap file, which Wireshark and ``motet decode`` read.

    ``path``: writes the file there, too, and makes the folders that it is in. ``wire``: the border router's wire instead of the air.

    All other arguments are those of ``run``. The bytes are those of ``motet run --pcap``.

    Raises ``ScenarioError`` with one sentence where the scenario is wrong, or where motes do not join.
    """
    hook = _given.hook("progress", progress, _title(scenario))
    found = _plan(scenario, seed, 1, duration_s, files, None).capture(bool(wire), hook)
    if path is not None:
        must = "a path is where the capture goes"
        where = Path(_given.path("path", path, must, ScenarioError))
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_bytes(found)
    return found


def experiments() -> dict[str, str]:
    """The IDs of the published experiments, each with the question that it answers."""
    return dict(_motet.experiments())


def reproduce(
    *ids: str,
    full: bool = False,
    seed: int = 1,
    progress: Callable[[float], object] | bool | None = None,
) -> Table:
    """Runs published experiments with this stack: a row for each figure, beside the paper's.

    ``ids``: those of ``experiments()``. ``full``: as many and as long runs as the criteria need; hours for some.
    ``seed``: the first one; those of both sets follow it. ``progress``: as for ``run``.

    Raises ``ScenarioError`` where there is no such experiment, or none is named.
    """
    if not ids:
        raise ScenarioError("name an experiment: motet.experiments() has all")
    names = [_given.text("an experiment's ID", one) for one in ids]
    hook = _given.hook("progress", progress, ", ".join(names))
    return _motet.reproduce(names, bool(full), _given.whole("seed", seed, 0), hook)


def _title(scenario: object) -> str:
    named = scenario.get("name") if isinstance(scenario, Mapping) else None
    return named if isinstance(named, str) else "motet"


def _plan(
    scenario: Scenario,
    seed: int | None,
    seeds: int | None,
    duration_s: float | None,
    files: Mapping[str, Bytes] | None,
    over: dict[str, Any] | None,
) -> _motet.Plan:
    source, kind = _given.source(scenario)
    return _motet.Plan(
        source,
        kind,
        None if seed is None else _given.whole("seed", seed, 0),
        None if seeds is None else _given.whole("seeds", seeds, 1),
        None if duration_s is None else _given.seconds("duration_s", duration_s),
        {} if files is None else _given.files(files),
        over,
    )
