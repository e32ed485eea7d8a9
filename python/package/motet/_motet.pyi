from collections.abc import Callable, Iterator
from typing import Any, Union, final

import pandas
import polars
import pyarrow
from typing_extensions import Self

__all__ = [
    "__version__",
    "ScenarioError",
    "REVISION",
    "Plan",
    "Result",
    "Steps",
    "Moment",
    "Task",
    "Stop",
    "Table",
    "experiments",
    "reproduce",
    "restore_result",
    "restore_table",
]

__version__: str
REVISION: str

_Values = Union[list[int | None], list[float | None], list[bool | None], list[str | None]]

class ScenarioError(ValueError):
    """What is wrong with a scenario, in one sentence."""

@final
class Table:
    """A table by column. Arrow's C data interface hands it on without a copy."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
    @property
    def provenance(self) -> dict[str, Any] | None:
        """Where it comes from: version, revision, date, seeds, scenario; ``None`` of a moment's tables."""
    def __len__(self) -> int:
        """How many rows there are."""
    def __iter__(self) -> Iterator[str]:
        """The names of the columns."""
    def __contains__(self, name: object, /) -> bool:
        """Whether there is such a column."""
    def keys(self) -> list[str]:
        """The names of the columns, as a dict has them."""
    def __getitem__(self, name: str, /) -> _Values:
        """The values of a column; ``None`` where there is none."""
    def __reduce__(self) -> tuple[Any, ...]: ...
    def to_dict(self) -> dict[str, _Values]:
        """All columns, by name."""
    def to_arrow(self) -> pyarrow.Table:
        """The same for pyarrow."""
    def to_pandas(self) -> pandas.DataFrame:
        """The same for pandas."""
    def to_polars(self) -> polars.DataFrame:
        """The same for polars."""
    def _repr_html_(self) -> str:
        """The first rows as a table of a notebook."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
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
    def provenance(self) -> dict[str, Any]:
        """Where it comes from: version, revision, date, seeds, and the whole scenario in TOML."""
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
    def __reduce__(self) -> tuple[Any, ...]: ...
    def json_lines(self) -> str:
        """The same as ``motet run --json -`` prints."""
    def report(self) -> str:
        """The page that ``motet run --out`` writes: tables and pictures, in HTML, without other files."""
    def _repr_html_(self) -> str:
        """The summary as a table of a notebook."""

@final
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
        """By flow: bytes delivered, windows in bytes, round-trip time in ms; empty before all motes have joined."""
    @property
    def nodes(self) -> Table:
        """By node: whether it is on, its parent, frames in its queue, what its radio is at, its rank, transmissions for
        each frame that its parent took, and the energy that it has used."""
    @property
    def frames(self) -> Table:
        """Frames that have left the air: from, to, start_s, end_s, channel, kind, fate, bytes in hexadecimal."""
    @property
    def radios(self) -> Table:
        """Changes of radios' states: node, at_s, state."""
    @property
    def samples(self) -> Table:
        """Flows at the scenario's own interval: goodput in kb/s, round-trip time in ms, windows in bytes."""
    @property
    def missed(self) -> int:
        """Frames and changes that there were beyond ``observe``."""

@final
class Steps:
    """A run that goes on as it is asked for."""

    def __iter__(self) -> Steps: ...
    def __next__(self) -> Moment: ...
    def switch_off(self, node: int) -> None:
        """Switches a node off from now on; its connections are lost."""
    def switch_on(self, node: int) -> None:
        """Switches a node on from now on: a cold start."""
    def lose_frames(self, share: float) -> None:
        """Lets this share of all frames be lost besides, from now on: 0 to 1."""
    def finish(self) -> Result:
        """Ends the run where it is; what it gave. It is complete only if nothing was left to happen."""

@final
class Plan:
    """A scenario that was read and found right."""

    def __new__(
        cls,
        source: dict[str, Any] | str,
        kind: str,
        seed: int | None,
        seeds: int | None,
        duration_s: float | None,
        files: dict[str, bytes],
        sweep: dict[str, Any] | None,
    ) -> Self: ...
    @property
    def title(self) -> str: ...
    @property
    def points(self) -> int: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def swept(self) -> list[str]:
        """The keys that it sweeps over."""
    def run(self, progress: Callable[[float], object] | None) -> Result: ...
    def steps(
        self, step: float, observe: int, progress: Callable[[float], object] | None
    ) -> Steps: ...
    def capture(self, wire: bool, progress: Callable[[float], object] | None) -> bytes:
        """The air of its one run, or the border router's wire, as a pcap file."""
    def text(self) -> str:
        """The whole scenario in TOML."""
    def identity(self, point: int) -> tuple[str, list[str]]:
        """What runs at a point depend on: a scenario in TOML, and the files that it names."""
    def named_files(self) -> dict[str, bytes]:
        """All files that it names."""
    def fits(self, exact: bytes, seed: int) -> bool:
        """Whether these bytes are what a run with this seed gave."""
    def gather(self, exact: list[tuple[int, bytes]], took_s: float) -> Result:
        """All runs together: results bit for bit, by point, in the order of points and seeds."""

@final
class Stop:
    """Ends runs that are under way in other threads."""

    def __new__(cls) -> Self: ...
    def set(self) -> None: ...

@final
class Task:
    """One point of a sweep."""

    def __new__(cls, text: str, title: str, files: dict[str, bytes], point: int) -> Self: ...
    def run(self, seed: int, stop: Stop) -> bytes | None:
        """Runs it with one seed; the result bit for bit, none if it was stopped."""
    def result(self, exact: bytes) -> Result:
        """What such a run gave."""

def experiments() -> list[tuple[str, str]]: ...
def reproduce(
    ids: list[str], full: bool, seed: int, progress: Callable[[float], object] | None
) -> Table: ...
def restore_result(
    text: str, title: str, files: dict[str, bytes], exact: list[tuple[int, bytes]], took_s: float, date: str
) -> Result: ...
def restore_table(rows: int, columns: list[tuple[str, str, list[Any]]], origin: str | None = None) -> Table: ...
