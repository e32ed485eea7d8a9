"""A folder with a Parquet file for each run of a sweep."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pathlib
import re
import secrets
import time
import warnings
from typing import Any

from . import _given, _motet
from ._given import SweepError
from ._motet import Result


class Store:
    """Results of runs, each in a file that is whole or absent."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        plan: _motet.Plan,
        files: tuple[tuple[str, bytes], ...],
        revision: str,
    ) -> None:
        self._folder = pathlib.Path(_given.path("store", folder, "store must be the path of a folder", SweepError))
        if " with changes" in revision:
            raise SweepError(
                f"this Motet is built from {revision}, so that no commit has what its results come from: commit the "
                "changes and build it again, or leave out store"
            )
        _pyarrow()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._sweep_up()
            self._there = {entry.name for entry in os.scandir(self._folder)}
        except FileExistsError:
            raise SweepError(f"{_given.short(self._folder)} cannot be a store: it is no folder") from None
        except OSError as error:
            raise SweepError(f"{_given.short(self._folder)} cannot be a store: {error.strerror}") from None
        self._plan = plan
        self._files = {name: hashlib.sha256(content).hexdigest() for name, content in files}
        self._revision = revision
        self._points: dict[int, Any] = {}

    def name(self, point: int, seed: int) -> str:
        """The file of a run: a hash of all that its result depends on."""
        begun = self._points.get(point)
        if begun is None:
            text, names = self._plan.identity(point)
            # Title and swept keys are columns of the file.
            begun = hashlib.sha256(_framed(self._revision) + _framed(self._plan.title) + _framed(text))
            for key in self._plan.swept:
                begun.update(_framed(key))
            for name in sorted(names):
                begun.update(_framed(name) + _framed(self._files[name]))
            self._points[point] = begun
        whole = begun.copy()
        whole.update(_framed(str(seed)))
        return f"{whole.hexdigest()}.parquet"

    def get(self, name: str, seed: int) -> bytes | None:
        """The result of a run, bit for bit, if it is there."""
        if name not in self._there:
            return None
        try:
            of, exact = _exact(self._folder / name)
        except Exception as error:  # a damaged file may make its reader raise anything
            why = _first_line(error) or type(error).__name__
        else:
            if of == name and self._plan.fits(exact, seed):
                return exact
            why = "it is the result of no such run"
        warnings.warn(f"{self._folder / name} is run again: {why}", stacklevel=3)
        return None

    def put(self, name: str, content: bytes) -> None:
        """Keeps the file of a run."""
        # Not the name of a Parquet file until it is one.
        part = self._folder / f"{secrets.token_hex(8)}{PART}"
        path = self._folder / name
        try:
            part.write_bytes(content)
            part.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink()
            raise SweepError(f"{path} cannot be written: {error.strerror}") from None

    def _sweep_up(self) -> None:
        """Removes parts that a killed process left behind."""
        for part in self._folder.glob(f"*{PART}"):
            # Others call their unfinished files so, too.
            if not PART_NAME.fullmatch(part.name):
                continue
            with contextlib.suppress(OSError):
                if time.time() - part.stat().st_mtime > PART_S:
                    part.unlink()


def as_parquet(result: Result, exact: bytes, revision: str, name: str) -> bytes:
    """The file of one run, of this name: its figures as a row, its flows as a list in it, and the result bit for bit."""
    pyarrow, parquet = _pyarrow()
    run = result.runs.to_arrow().drop_columns(["point"])
    flows = result.flows.to_arrow()
    # Every table begins with the point, the swept values and the seed, which the row has.
    flows = flows.select(flows.column_names[run.column_names.index("seed") + 2 :])
    columns = {
        "flows": _as_list(pyarrow, flows),
        "revision": pyarrow.array([revision]),
        NAME: pyarrow.array([name]),
        EXACT: pyarrow.array([exact], pyarrow.binary()),
        DIGEST: pyarrow.array([hashlib.sha256(exact).hexdigest()]),
    }
    for name, values in columns.items():
        run = run.append_column(name, values)
    buffer = io.BytesIO()
    parquet.write_table(run, buffer, **PLAIN)
    return buffer.getvalue()


def _as_list(pyarrow: Any, rows: Any) -> Any:
    """A table as one value: the list of its rows."""
    structs = rows.to_struct_array().combine_chunks()
    return pyarrow.ListArray.from_arrays([0, rows.num_rows], structs)


def _exact(file: pathlib.Path) -> tuple[object, bytes]:
    """Under which name the result in a file was kept, and the result, bit for bit.

    Raises whatever the reader of Parquet raises, and ``ValueError`` if the bytes are not those that were written.
    """
    _, parquet = _pyarrow()
    row = parquet.ParquetFile(io.BytesIO(file.read_bytes())).read(columns=[NAME, EXACT, DIGEST], use_threads=False)
    name, exact, digest = (row[column][0].as_py() for column in (NAME, EXACT, DIGEST))
    if not isinstance(exact, bytes) or hashlib.sha256(exact).hexdigest() != digest:
        raise ValueError("its bytes have changed")
    return name, exact


def _framed(text: str) -> bytes:
    """A text that cannot run into the next one."""
    encoded = text.encode()
    return len(encoded).to_bytes(8, "big") + encoded


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise SweepError("a store needs pyarrow: pip install motet[sweep]") from None
    return pyarrow, parquet


# Columns that a sweep reads again.
NAME = "file"
EXACT = "exact"
DIGEST = "exact_sha256"

# Of one row, statistics and dictionaries are copies of it, and most of a file would be what describes its columns.
PLAIN: dict[str, Any] = {
    "compression": "none",
    "use_dictionary": False,
    "write_statistics": False,
    "store_schema": False,
}

PART = ".part"
PART_NAME = re.compile(r"[0-9a-f]{16}\.part")

# So old, nobody writes it any more, s.
PART_S = 3_600.0
