"""Where the command is."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def command() -> str:
    """The command `motet` of the same sources: `cargo xtask check python` builds it."""
    return os.environ.get("MOTET") or str(ROOT / "target" / "release" / "motet")
