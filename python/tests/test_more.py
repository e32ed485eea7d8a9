"""Captures, reports, experiments, notebooks; and what is done to a run while it goes on."""

import struct
import sys
import types
from pathlib import Path

import motet
import pytest

CHAIN = {"duration_s": 20, "warmup_s": 1, "topology": {"chain": 3, "joining": "static"}, "flow": [{}]}


def test_a_capture_is_a_pcap_file_of_the_air_or_the_wire(tmp_path: Path) -> None:
    file = tmp_path / "air.pcap"
    air = motet.capture(CHAIN, file, duration_s=5)
    assert file.read_bytes() == air
    magic, _, _, _, _, _, link = struct.unpack("<IHHiIII", air[:24])
    assert (magic, link) == (0xA1B2C3D4, 283)
    assert len(air) > 10_000
    assert air == motet.capture(CHAIN, duration_s=5) != motet.capture(CHAIN, seed=2, duration_s=5)
    wire = motet.capture(CHAIN, wire=True, duration_s=5)
    assert struct.unpack("<I", wire[20:24])[0] != 283


def test_a_capture_makes_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "new" / "deep" / "air.pcap"
    assert motet.capture(CHAIN, str(file), duration_s=5) == file.read_bytes()


def test_a_capture_is_of_one_run() -> None:
    with pytest.raises(motet.ScenarioError, match="one run"):
        motet.capture({**CHAIN, "sweep": {"topology.chain": [1, 2]}})
    with pytest.raises(motet.ScenarioError, match="capture goes"):
        motet.capture(CHAIN, "")


def test_a_report_is_one_page_with_pictures() -> None:
    page = motet.run(CHAIN).report()
    assert page.startswith("<!doctype html>") and "<svg" in page and "http-equiv" not in page


def test_a_notebook_shows_tables() -> None:
    result = motet.run({**CHAIN, "name": "A <chain>"}, seeds=2)
    assert "A &lt;chain&gt;" in result._repr_html_() and "<td>goodput" in result._repr_html_()
    html = result.samples._repr_html_()
    assert html.count("<tr>") == 21 and f"{len(result.samples)} rows in all" in html


def test_experiments_have_rows() -> None:
    assert "tcplp-hops" in motet.experiments()
    shares = []
    rows = motet.reproduce("tcphc-size", progress=shares.append)
    assert len(rows) > 0 and set(rows["experiment"]) == {"tcphc-size"}
    assert {"metric", "value", "paper", "pass"} <= set(rows.columns)
    assert shares[-1] == 1.0
    with pytest.raises(motet.ScenarioError, match="no-such"):
        motet.reproduce("no-such")
    with pytest.raises(motet.ScenarioError, match="name an experiment"):
        motet.reproduce()


def changed() -> tuple[list[int], str]:
    steps = motet.run(CHAIN, step=1.0)
    delivered = []
    for second, moment in enumerate(steps):
        delivered.append(sum(moment.flows["bytes"]))
        if second == 4:
            steps.switch_off(1)
        if second == 8:
            assert moment.nodes["is_on"][1] is False
            steps.switch_on(1)
        if second == 15:
            assert moment.nodes["is_on"][1] is True
            assert moment.nodes["energy_mj"][3] > 0
            steps.lose_frames(1.0)
    return delivered, steps.finish().json_lines()


def test_a_run_is_changed_while_it_goes_on_and_is_the_same_again() -> None:
    delivered, lines = changed()
    assert delivered[4] > 5_000
    assert delivered[8] - delivered[5] < 1_000
    assert delivered[15] - delivered[8] > 5_000
    assert delivered[-1] - delivered[16] < 1_000
    assert changed() == (delivered, lines)


def test_what_cannot_be_changed_is_said() -> None:
    steps = motet.run(CHAIN, step=1.0)
    next(steps)
    with pytest.raises(motet.ScenarioError, match="no node 9"):
        steps.switch_off(9)
    with pytest.raises(motet.ScenarioError, match="share"):
        steps.lose_frames(2.0)
    assert next(steps).now_s > 1
    steps.finish()
    with pytest.raises(RuntimeError):
        steps.switch_off(1)


def test_a_bar_where_tqdm_is_and_nothing_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    class Bar:
        def __init__(self, **_: object) -> None:
            self.n = 0.0

        def update(self, by: float) -> None:
            self.n += by
            seen.append(self.n)

        def close(self) -> None:
            seen.append(-1)

    package, auto = types.ModuleType("tqdm"), types.ModuleType("tqdm.auto")
    auto.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", package)
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    motet.run(CHAIN, progress=True)
    assert seen[-2:] == [pytest.approx(100), -1]
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert motet.run(CHAIN, progress=True).complete
    assert motet.run(CHAIN, progress=False).complete
