"""The notebook runs, and what it shows is what it shows here.

``MOTET_WRITE_NOTEBOOK=1`` writes its outputs anew. Pictures are not compared: their bytes depend on matplotlib.
"""

import os
import pathlib

import nbclient
import nbformat
import pytest

NOTEBOOKS = sorted(pathlib.Path(__file__).resolve().parents[1].glob("notebooks/*.ipynb"))


def texts(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """What each cell says, without pictures."""
    outputs = [cell.get("outputs", []) for cell in notebook.cells]
    return [[output.get("text") or output["data"]["text/plain"] for output in cell if not is_picture(output)] for cell in outputs]


def is_picture(output: nbformat.NotebookNode) -> bool:
    return "image/png" in output.get("data", {})


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_shows_what_it_finds(path: pathlib.Path) -> None:
    shown = nbformat.read(path, as_version=4)
    found = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(found, timeout=120, kernel_name="python3", record_timing=False).execute()
    found.metadata.language_info = {"name": "python"}
    if os.environ.get("MOTET_WRITE_NOTEBOOK") == "1":
        nbformat.write(found, path)
        return
    assert texts(found) == texts(shown)
    assert sum(is_picture(output) for cell in shown.cells for output in cell.get("outputs", [])) > 0
