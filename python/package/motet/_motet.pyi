from collections.abc import Callable
from typing import Any, Union

import pandas
import polars
import pyarrow

__version__: str

Values = Union[list[int | None], list[float | None], list[bool | None], list[str | None]]

class ScenarioError(ValueError):
    """What is wrong with a scenario, in one sentence."""

class Table:
    """A table by column. Arrow's C data interface hands it on without a copy."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
    def __len__(self) -> int:
        """How many rows there are."""
    def __getitem__(self, name: str) -> Values:
        """The values of a column; ``None`` where there is none."""
    def to_dict(self) -> dict[str, Values]:
        """All columns, by name."""
    def to_arrow(self) -> pyarrow.Table:
        """The same for pyarrow."""
    def to_pandas(self) -> pandas.DataFrame:
        """The same for pandas."""
    def to_polars(self) -> polars.DataFrame:
        """The same for polars."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Result:
    """What the runs of a scenario gave."""

    @property
    def title(self) -> str:
        """What the scenario is called."""
    @property
    def complete(self) -> bool:
        """Whether every run went to its end."""
    @property
    def run_s(self) -> float:
        """How long the runs took, seconds of the wall clock."""
    @property
    def runs(self) -> Table:
        """A row for each run."""
    @property
    def flows(self) -> Table:
        """A row for each flow of each run."""
    @property
    def nodes(self) -> Table:
        """A row for each node of each run."""
    @property
    def links(self) -> Table:
        """A row for each link of each run that carried anything."""
    @property
    def samples(self) -> Table:
        """A row for each flow and moment of the first seed of each point."""
    @property
    def summary(self) -> Table:
        """A row for each metric of each point of the sweep."""
    def json_lines(self) -> str:
        """The same as ``motet run --json -`` prints."""

class Moment:
    """A run as it is at a moment, and what has happened since the moment before."""

    @property
    def now_s(self) -> float:
        """Virtual time since the nodes were switched on, s."""
    @property
    def joined_s(self) -> float | None:
        """When all motes had joined, on the same clock; ``None`` before."""
    @property
    def flows(self) -> Table:
        """By flow: bytes delivered so far, windows and round-trip time; empty before all motes have joined."""
    @property
    def nodes(self) -> Table:
        """By node: whether it is on, its parent, frames in its queue, what its radio is at."""
    @property
    def frames(self) -> Table:
        """Frames that have left the air: from, to, start_s, end_s, channel, kind, fate, bytes in hexadecimal."""
    @property
    def radios(self) -> Table:
        """Changes of radios' states."""
    @property
    def samples(self) -> Table:
        """Flows at the scenario's own interval."""
    @property
    def missed(self) -> int:
        """Frames and changes that there were beyond ``observe``."""

class Steps:
    """A run that goes on as it is asked for."""

    def __iter__(self) -> Steps: ...
    def __next__(self) -> Moment: ...
    def finish(self) -> Result:
        """Ends the run where it is; what it gave. It is complete only if nothing was left to happen."""

class Plan:
    def __init__(
        self,
        source: dict[str, Any] | str,
        kind: str,
        seed: int | None,
        seeds: int | None,
        duration_s: float | None,
        files: dict[str, bytes],
    ) -> None: ...
    def run(self, progress: Callable[[float], object] | None) -> Result: ...
    def steps(
        self, step: float, observe: int, progress: Callable[[float], object] | None
    ) -> Steps: ...
