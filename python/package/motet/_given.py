"""What a caller gives, looked at once: what is wrong with it is said in one sentence."""

from __future__ import annotations

import importlib
import itertools
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ._motet import ScenarioError


class SweepError(RuntimeError):
    """Why a sweep cannot run as it was asked to, in one sentence."""

    __module__ = "motet"


def source(scenario: object) -> tuple[Any, str]:
    """A scenario, and what it is given as: ``table``, ``text`` or ``path``."""
    if isinstance(scenario, Mapping):
        return dict(scenario), "table"
    if isinstance(scenario, str) and _is_text(scenario):
        return scenario, "text"
    must = "a scenario is a dict, a TOML text or a path"
    if isinstance(scenario, (bytes, bytearray)) and b"\n" in scenario:
        raise ScenarioError(f"{must}, and a text is a str, not {type(scenario).__name__}: decode it")
    return path("the path of a scenario", scenario, must, ScenarioError), "path"


def _is_text(scenario: str) -> bool:
    return "\n" in scenario or ("=" in scenario and not scenario.endswith(".toml"))


def path(name: str, given: object, must: str, error: type[Exception]) -> str:
    """A path of the file system."""
    try:
        found = os.fsdecode(os.fspath(given))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise error(f"{must}, not {shown(given)}") from None
    if not found:
        raise error(f"{must}, not an empty text")
    try:
        is_possible = "\0" not in found and bool(os.fsencode(found))
    except UnicodeError:
        is_possible = False
    if not is_possible:
        raise error(f"{name} is {shown(found)}, which no file can be called")
    return found


def whole(name: str, given: object, least: int, error: type[Exception] = ScenarioError) -> int:
    """A whole number that fits 64 bits with a sign."""
    try:
        if _is_flag(given):
            raise TypeError
        number = operator.index(given)  # type: ignore[arg-type]
    except Exception:  # what is no number may raise anything
        number = least - 1
    if least <= number < 2**63:
        return number
    raise error(f"{name} is {shown(given)}, but must be a whole number, {least} or more, that fits 64 bits")


def seconds(name: str, given: object) -> float:
    """A time; whether it is one that a scenario may have, the lab says."""
    try:
        if _is_flag(given) or isinstance(given, (str, bytes, bytearray)):
            raise TypeError
        return float(given)  # type: ignore[arg-type]
    except Exception:  # what is no number may raise anything
        raise ScenarioError(f"{name} is {shown(given)}, but must be a number of seconds") from None


def _is_flag(given: object) -> bool:
    """Whether it is true or false, to Python or to numpy."""
    return isinstance(given, bool) or getattr(getattr(given, "dtype", None), "kind", None) == "b"


def files(given: object) -> dict[str, bytes]:
    """Files by name."""
    if not isinstance(given, Mapping):
        raise ScenarioError(f"files is {shown(given)}, but must be a dict of bytes by name")
    found = {}
    for name, content in given.items():
        if not isinstance(name, str) or not _is_unicode(name):
            raise ScenarioError(f"files has the name {shown(name)}, but every name must be a text")
        if not isinstance(content, (bytes, bytearray, memoryview)):
            kind = type(content).__name__
            raise ScenarioError(f"the file {shown(name)} is given as {kind}, but must be given as bytes")
        found[name] = bytes(content)
    return found


def over(given: object) -> dict[Any, Any]:
    """Values to sweep over, by key."""
    if not isinstance(given, Mapping):
        raise ScenarioError(f"over is {shown(given)}, but must be a dict of lists of values by key")
    return {key: _listed(values) for key, values in given.items()}


def _listed(values: Any) -> Any:
    """The values of a key as a list; what is none is left for the lab to refuse."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        return values
    try:
        all_of_them = iter(values)
    except TypeError:
        # An array of numpy that has no dimension.
        return values
    # One more than a scenario may have: some iterables have no end.
    return list(itertools.islice(all_of_them, POINTS_MAX + 1))


def hook(name: str, given: object, title: str = "motet") -> Callable[[float], object] | None:
    """What is called with a share, if anything; ``True`` is a bar by tqdm where that is installed."""
    if given is True:
        return _bar(title)
    if given is None or given is False:
        return None
    if callable(given):
        return given
    raise TypeError(f"{name} is {shown(given)}, but must be a function of a share, 0 to 1, or True for a bar")


def _bar(title: str) -> Callable[[float], object] | None:
    """A bar of tqdm's, in a notebook or on a terminal."""
    try:
        auto = importlib.import_module("tqdm.auto")
    except ImportError:
        return None
    bar = auto.tqdm(total=100, desc=title, unit="%", bar_format="{desc}: {percentage:3.0f} %|{bar}| {remaining} left")

    def show(share: float) -> None:
        bar.update(100 * share - bar.n)
        if share >= 1:
            bar.close()

    return show


def text(name: str, given: object) -> str:
    """A text."""
    if isinstance(given, str):
        return given
    raise ScenarioError(f"{name} is {shown(given)}, but must be a text")


def shown(given: object) -> str:
    """The beginning of a value, on one line."""
    try:
        text = repr(given)
    except Exception:  # somebody else's
        text = f"of type {type(given).__name__}"
    text = text.encode("ascii", "backslashreplace").decode() if not _is_unicode(text) else text
    text = " ".join(text.split())
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


def short(path: os.PathLike[str]) -> str:
    """A path, or its beginning and its end."""
    text = os.fspath(path)
    return text if len(text) <= PATH_MAX else f"{text[: PATH_MAX // 2]}…{text[-PATH_MAX // 2 :]}"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeError:
        return False
    return True


# As many points as a scenario may have.
POINTS_MAX = 10_000

SHOWN_MAX = 80

# Longer than most paths, shorter than a screen.
PATH_MAX = 400
