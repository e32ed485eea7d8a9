"""A laboratory for low-power wireless networks: TCP for motes, in virtual time.

``run`` runs a scenario and gives tables. The same scenario and seed give the same results on every
machine, and the same as the command ``motet run``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Union, overload

from ._motet import Moment, Result, ScenarioError, Steps, Table, __version__
from . import _motet

__all__ = ["Moment", "Result", "ScenarioError", "Steps", "Table", "__version__", "run"]

Scenario = Union[Mapping[str, Any], str, "os.PathLike[str]"]


@overload
def run(
    scenario: Scenario,
    *,
    seed: int | None = ...,
    seeds: int | None = ...,
    duration_s: float | None = ...,
    files: Mapping[str, bytes] | None = ...,
    progress: Callable[[float], object] | None = ...,
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
    files: Mapping[str, bytes] | None = ...,
    progress: Callable[[float], object] | None = ...,
    step: float,
    observe: int = ...,
) -> Steps: ...
def run(
    scenario: Scenario,
    *,
    seed: int | None = None,
    seeds: int | None = None,
    duration_s: float | None = None,
    files: Mapping[str, bytes] | None = None,
    progress: Callable[[float], object] | None = None,
    step: float | None = None,
    observe: int = 0,
) -> Result | Steps:
    """Runs a scenario with every seed, on all cores.

    ``scenario``: a mapping, a TOML text, or the path of a TOML file. A string with a line break or a ``=``
    is a text, any other a path.

    ``seed``, ``seeds``, ``duration_s``: the first seed, how many, and the virtual time of a run in seconds, in the
    place of the scenario's.

    ``files``: matrices and traces that the scenario names, by name.

    ``progress``: called a few times a second with the share of the work that is done, 0 to 1. What it
    raises ends the runs.

    ``step``: let one run go on by so many seconds of virtual time whenever it is asked for; gives an iterator of
    ``Moment``. ``observe``: keep up to so many frames and states of radios from one moment to the next.

    Raises ``ScenarioError`` with one sentence where the scenario is wrong.
    """
    if isinstance(scenario, str) and "\n" not in scenario and "=" not in scenario:
        source: Any = os.fspath(scenario)
        kind = "path"
    elif isinstance(scenario, str):
        source, kind = scenario, "text"
    elif isinstance(scenario, Mapping):
        source, kind = dict(scenario), "table"
    else:
        try:
            source = os.fspath(scenario)
        except TypeError:
            raise ScenarioError(
                f"a scenario is a dict, a TOML text or a path, not {type(scenario).__name__}"
            ) from None
        source, kind = os.fsdecode(source), "path"
    given = dict(files or {})
    plan = _motet.Plan(source, kind, seed, seeds, duration_s, given)
    if step is None:
        return plan.run(progress)
    return plan.steps(step, observe, progress)
