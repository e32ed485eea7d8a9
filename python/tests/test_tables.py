"""Tables go to Arrow, pandas and polars, each where it is installed."""

import pathlib
import pickle

import motet
import pytest

SCENARIO = {
    "duration_s": 5,
    "warmup_s": 1,
    "seeds": 2,
    "topology": {"chain": 1},
    "flow": [{}, {"kind": "udp"}],
}


@pytest.fixture(scope="module")
def result() -> motet.Result:
    return motet.run(SCENARIO)


def test_a_result_is_pickled_whole(tmp_path: pathlib.Path) -> None:
    text = 'name = "Files"\nduration_s = 3\nwarmup_s = 1\n[topology]\nmatrix = "links.txt"\n[[flow]]\n'
    text += "[sweep]\n\"radio.frame_loss\" = [0, 0.1]\n"
    (tmp_path / "links.txt").write_text("- -60\n-60 -\n")
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    result = motet.run(path, seeds=2)
    # Another machine has none of its files, and this one need not have them any more.
    (tmp_path / "links.txt").unlink()
    pickled = pickle.dumps(result)
    again = pickle.loads(pickled)
    assert (again.title, again.complete, again.run_s) == (result.title, True, result.run_s)
    assert again.json_lines() == result.json_lines()
    for name in ("runs", "flows", "nodes", "links", "samples", "summary"):
        assert getattr(again, name).to_dict() == getattr(result, name).to_dict()


def test_a_table_is_pickled(result: motet.Result) -> None:
    for table in (result.runs, result.flows, result.summary, result.samples):
        again = pickle.loads(pickle.dumps(table))
        assert again.columns == table.columns and again.to_dict() == table.to_dict()
    pyarrow = pytest.importorskip("pyarrow")
    assert pyarrow.schema(pickle.loads(pickle.dumps(result.nodes))) == pyarrow.schema(result.nodes)


def test_results_and_tables_say_where_they_come_from(result: motet.Result) -> None:
    origin = result.provenance
    assert origin["version"] == motet.__version__ and origin["seeds"] == [1, 2]
    assert len(origin["date"]) == 10 and origin["revision"]
    # The scenario in them repeats them.
    assert motet.run(origin["scenario"]).json_lines() == result.json_lines()
    again = pickle.loads(pickle.dumps(result))
    assert again.provenance == origin
    assert pickle.loads(pickle.dumps(result.flows)).provenance == result.flows.provenance == origin
    pandas = pytest.importorskip("pandas")
    assert isinstance(result.flows.to_pandas(), pandas.DataFrame)
    assert result.flows.to_pandas().attrs["motet"] == origin


def test_to_dict(result: motet.Result) -> None:
    table = result.flows
    columns = table.to_dict()
    assert list(columns) == table.columns
    assert all(len(values) == len(table) == 4 for values in columns.values())
    assert dict(table) == columns and list(table) == list(table.keys()) == table.columns
    assert "seed" in table and "seeds" not in table and 3 not in table
    with pytest.raises(KeyError, match="goodput_kbps"):
        table["goodput"]


def test_arrow(result: motet.Result) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    for name in ("runs", "flows", "nodes", "links", "samples", "summary"):
        table = getattr(result, name)
        found = table.to_arrow()
        assert found.num_rows == len(table) and found.column_names == table.columns
        assert {column: found[column].to_pylist() for column in table.columns} == table.to_dict()
    assert pyarrow.schema(result.flows).names == result.flows.columns


def test_nothing_is_copied_on_the_way(result: motet.Result) -> None:
    pytest.importorskip("pyarrow")
    columns = [result.flows.to_arrow()["goodput_kbps"] for _ in range(2)]
    first, second = (column.chunk(0).buffers()[1].address for column in columns)
    assert first == second


def test_a_table_outlives_its_result() -> None:
    pytest.importorskip("pyarrow")
    flows = motet.run(SCENARIO).flows.to_arrow()
    assert flows["seed"].to_pylist() == [1, 1, 2, 2]


def test_a_stream_that_nobody_takes_is_freed(result: motet.Result) -> None:
    for _ in range(1_000):
        result.flows.__arrow_c_stream__()
        result.flows.__arrow_c_schema__()


def test_pandas(result: motet.Result) -> None:
    pytest.importorskip("pandas")
    frame = result.flows.to_pandas()
    mean = frame.groupby("seed").goodput_kbps.mean()
    assert list(mean.index) == [1, 2] and (mean > 1).all()


def test_polars(result: motet.Result) -> None:
    polars = pytest.importorskip("polars")
    assert result.flows.to_polars().shape == (4, len(result.flows.columns))
    assert polars.DataFrame(result.samples).height == len(result.samples)
