"""Sweeps give what one process gives, wherever they run and however often they end early."""

import contextlib
import hashlib
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import motet
import pytest
from motet import _motet, _store, _sweep

SCENARIO = {"duration_s": 4, "warmup_s": 1, "topology": {"chain": 2}, "flow": [{}]}
OVER = {"radio.frame_loss": [0, 0.1], "topology.chain": [1, 2]}


@pytest.fixture
def committed(monkeypatch: pytest.MonkeyPatch) -> str:
    """A revision, whatever these files are built from."""
    monkeypatch.setattr(_motet, "REVISION", "0123456789ab")
    return _motet.REVISION


@pytest.fixture(scope="module")
def cluster():
    from distributed import Client, LocalCluster

    with LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as machines, Client(machines) as client:
        yield client


def in_one_process() -> str:
    return motet.run({**SCENARIO, "sweep": OVER}, seeds=3).json_lines()


def test_a_sweep_is_the_scenario_s_own() -> None:
    sweep = motet.sweep(SCENARIO, OVER, seeds=3)
    assert (sweep.points, sweep.seeds, len(sweep)) == (4, [1, 2, 3], 12)
    shares: list[float] = []
    result = sweep.run(progress=shares.append)
    assert result.json_lines() == in_one_process()
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)


def test_values_of_the_scenario_stay(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "swept.toml"
    path.write_text('duration_s = 3\nwarmup_s = 1\n[topology]\nchain = 1\n[[flow]]\n[sweep]\n"radio.frame_loss" = [0, 0.2]\n')
    assert motet.sweep(path).points == 2
    both = motet.sweep(path, {"topology.chain": range(1, 4)})
    assert both.points == 6
    assert motet.sweep(path, {"radio.frame_loss": [0.5]}).points == 1
    assert motet.sweep(path).run().json_lines() == motet.run(path).json_lines()


@pytest.mark.parametrize(
    ("over", "sentence"),
    [
        ({"radio.frame_los": [0]}, "scenario: there is no key to sweep called `radio.frame_los`, did you mean `radio.frame_loss`?"),
        ({"radio.frame_loss": []}, "scenario: sweep.radio.frame_loss is an empty list, but must have at least one value"),
        ({"radio.frame_loss": [float("nan")]}, None),
        ({"radio.frame_loss": 0.1}, "scenario: sweep.radio.frame_loss is 0.1, but must be a list of values"),
        ({"radio.frame_loss": itertools.count()}, None),
        ({"radio.frame_loss": "all"}, 'scenario: sweep.radio.frame_loss is "all", but must be a list of values'),
        ({3: [1]}, "over has the key 3, but every key must be a text"),
        ({"\ud800": [1]}, None),
        ([1, 2], "over is [1, 2], but must be a dict of lists of values by key"),
        (0, "over is 0, but must be a dict of lists of values by key"),
        ({"stack.window_segments": range(10**9), "radio.frame_loss": range(10**9)}, None),
    ],
    ids=["unknown", "none", "nan", "one", "no end", "text", "number", "surrogate", "list", "zero", "many"],
)
def test_what_is_wrong_is_one_sentence(over: object, sentence: str | None) -> None:
    with pytest.raises(motet.ScenarioError) as raised:
        motet.sweep(SCENARIO, over)  # type: ignore[arg-type]
    said = str(raised.value)
    assert "\n" not in said and len(said) < 400, said
    assert sentence is None or said == sentence


def test_a_store_lets_a_sweep_go_on(tmp_path: pathlib.Path, committed: str) -> None:
    class Enough(Exception):
        pass

    def end_early(share: float) -> None:
        if share > 0.4:
            raise Enough

    sweep = motet.sweep(SCENARIO, OVER, seeds=3)
    with pytest.raises(Enough):
        sweep.run(store=tmp_path, progress=end_early)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert 5 <= len(kept) < 12
    begun: list[float] = []
    result = sweep.run(store=tmp_path, progress=begun.append)
    assert begun[0] == len(kept) / 12
    assert result.json_lines() == in_one_process()
    assert len(list(tmp_path.iterdir())) == 12
    assert all(path.stat().st_mtime_ns == then for path, then in kept.items())
    # A larger sweep finds what it shares with the first one.
    more = {**OVER, "radio.frame_loss": [0, 0.05, 0.1]}
    begun.clear()
    motet.sweep(SCENARIO, more, seeds=4).run(store=tmp_path, progress=begun.append)
    assert begun[0] == 12 / 24


def test_a_killed_sweep_goes_on(tmp_path: pathlib.Path, committed: str) -> None:
    store = tmp_path / "store"
    program = (
        "import motet\nfrom motet import _motet\n"
        f"_motet.REVISION = {committed!r}\n"
        f"motet.sweep({SCENARIO!r}, {OVER!r}, seeds=200).run(store={str(store)!r})\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program])
    while not store.exists() or not any(store.glob("*.parquet")):
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    result = motet.sweep(SCENARIO, OVER, seeds=3).run(store=store)
    assert result.json_lines() == in_one_process()
    from pyarrow import parquet

    whole = list(store.glob("*.parquet"))
    assert all(parquet.ParquetFile(path).metadata.num_rows == 1 for path in whole)


def test_a_file_of_a_store_is_for_everybody(tmp_path: pathlib.Path, committed: str) -> None:
    from pyarrow import dataset

    result = motet.sweep(SCENARIO, OVER, seeds=2).run(store=tmp_path)
    found = dataset.dataset(tmp_path).to_table().sort_by([("radio.frame_loss", "ascending"), ("topology.chain", "ascending"), ("seed", "ascending")])
    assert found["goodput_kbps"].to_pylist() == result.runs["goodput_kbps"]
    flows = [flow["goodput_kbps"] for row in found["flows"].to_pylist() for flow in row]
    assert flows == result.flows["goodput_kbps"]
    assert set(found["revision"].to_pylist()) == {committed}


def test_what_a_store_cannot_read_is_run_again(tmp_path: pathlib.Path, committed: str) -> None:
    sweep = motet.sweep(SCENARIO, OVER, seeds=1)
    wanted = sweep.run(store=tmp_path).json_lines()
    broken = sorted(tmp_path.iterdir())[0]
    broken.write_bytes(b"PAR1 and no more")
    with pytest.warns(UserWarning, match="is run again"):
        assert sweep.run(store=tmp_path).json_lines() == wanted
    assert sweep.run(store=tmp_path).json_lines() == wanted


def test_files_that_were_exchanged_are_run_again(tmp_path: pathlib.Path, committed: str) -> None:
    """Both are of the same seed."""
    sweep = motet.sweep(SCENARIO, {"radio.frame_loss": [0, 0.1]}, seeds=1)
    wanted = sweep.run(store=tmp_path).json_lines()
    one, other = sorted(tmp_path.iterdir())
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    with pytest.warns(UserWarning, match="it is the result of no such run"):
        assert sweep.run(store=tmp_path).json_lines() == wanted


def test_sweeps_in_one_folder_have_their_own_columns(tmp_path: pathlib.Path, committed: str) -> None:
    from pyarrow import dataset

    motet.sweep({**SCENARIO, "name": "First"}, {"topology.chain": [1, 2]}, seeds=1).run(store=tmp_path)
    motet.sweep({**SCENARIO, "name": "Second"}, {"radio.frame_loss": [0, 0.1]}, seeds=1).run(store=tmp_path)
    rows = [dataset.dataset(path).to_table().to_pylist()[0] for path in tmp_path.iterdir()]
    found = sorted((row["scenario"], row.get("topology.chain"), row.get("radio.frame_loss")) for row in rows)
    assert found == [("First", 1, None), ("First", 2, None), ("Second", None, 0), ("Second", None, 0.1)]


def test_only_parts_of_a_store_are_swept_up(tmp_path: pathlib.Path, committed: str) -> None:
    own, others = tmp_path / "0123456789abcdef.part", tmp_path / "download.part"
    for part in (own, others):
        part.write_text("half")
        os.utime(part, (0, 0))
    motet.sweep(SCENARIO, seeds=1).run(store=tmp_path)
    assert not own.exists() and others.exists()


def test_the_ends_of_a_flow_are_swept(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ends.toml"
    path.write_text('duration_s = 3\nwarmup_s = 1\n[topology]\nchain = 2\n[[flow]]\nfrom = 2\n[sweep]\n"flow.to" = ["host", 1]\n')
    swept = motet.sweep(path).run()
    assert swept.runs["flow.to"] == ["host", "1"]
    assert swept.json_lines() == motet.run(path).json_lines()


def test_an_array_without_a_dimension_is_no_list() -> None:
    numpy = pytest.importorskip("numpy")
    with pytest.raises(motet.ScenarioError, match="is 0.5, but must be a list of values"):
        motet.sweep(SCENARIO, {"radio.frame_loss": numpy.array(0.5)})
    assert motet.sweep(SCENARIO, {"radio.frame_loss": numpy.array([0, 0.5])}).points == 2


def flip(path: pathlib.Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)


@pytest.mark.filterwarnings("ignore:.*is run again:UserWarning")
def test_no_flipped_bit_changes_a_figure(tmp_path: pathlib.Path, committed: str) -> None:
    sweep = motet.sweep(SCENARIO, seeds=1)
    wanted = sweep.run(store=tmp_path).json_lines()
    [path] = tmp_path.iterdir()
    whole = path.read_bytes()
    for place in range(0, len(whole), 97):
        path.write_bytes(whole)
        flip(path, place)
        assert sweep.run(store=tmp_path).json_lines() == wanted, place


def test_a_changed_result_is_run_again(tmp_path: pathlib.Path, committed: str) -> None:
    sweep = motet.sweep(SCENARIO, seeds=1)
    wanted = sweep.run(store=tmp_path).json_lines()
    [path] = tmp_path.iterdir()
    whole = path.read_bytes()
    flip(path, whole.index(exact_of(path)) + 40)
    with pytest.warns(UserWarning, match="its bytes have changed"):
        assert sweep.run(store=tmp_path).json_lines() == wanted
    assert path.read_bytes() == whole


def exact_of(path: pathlib.Path) -> bytes:
    from pyarrow import parquet

    exact: bytes = parquet.read_table(path)["exact"][0].as_py()
    return exact


@pytest.mark.parametrize("exact", [[3], [None], [b"no result"], ["text"], []], ids=str)
def test_a_file_of_something_else_is_run_again(exact: list[object], tmp_path: pathlib.Path, committed: str) -> None:
    import pyarrow
    from pyarrow import parquet

    sweep = motet.sweep(SCENARIO, seeds=1)
    wanted = sweep.run(store=tmp_path).json_lines()
    [path] = tmp_path.iterdir()
    digests = [hashlib.sha256(each if isinstance(each, bytes) else b"").hexdigest() for each in exact]
    parquet.write_table(pyarrow.table({"exact": exact, "exact_sha256": digests}), path)
    with pytest.warns(UserWarning, match="is run again"):
        assert sweep.run(store=tmp_path).json_lines() == wanted
    assert sweep.run(store=tmp_path).json_lines() == wanted


@pytest.mark.parametrize("store", [3, "", b"", "a\0b", "\ud800", True, ["sweep/"]], ids=ascii)
def test_what_is_no_folder(store: object, committed: str) -> None:
    with pytest.raises(motet.SweepError, match="^store "):
        motet.sweep(SCENARIO).run(store=store)  # type: ignore[arg-type]


@pytest.mark.parametrize("runs", ["x", 0, -1, 1.5, True, 10**30], ids=str)
def test_what_is_no_number_of_runs(runs: object) -> None:
    with pytest.raises(motet.SweepError, match="^runs_per_task is .* but must be a whole number"):
        motet.sweep(SCENARIO).run(runs_per_task=runs)  # type: ignore[arg-type]


def test_a_sweep_is_made_by_sweep() -> None:
    with pytest.raises(TypeError, match="motet.sweep makes"):
        motet.Sweep(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="progress is 'x'"):
        motet.sweep(SCENARIO).run(progress="x")  # type: ignore[arg-type]


def test_other_files_other_seeds_and_other_revisions_have_other_names(tmp_path: pathlib.Path) -> None:
    text = 'duration_s = 8\n[topology]\nmatrix = "links.txt"\n[[flow]]\n'
    names = set()
    for revision, matrix in itertools.product(["a" * 12, "b" * 12], [b"- -60\n-60 -\n", b"- -61\n-61 -\n"]):
        plan = motet.sweep(text, seeds=2, files={"links.txt": matrix})._plan
        store = _store.Store(tmp_path, plan, tuple(plan.named_files().items()), revision)
        names |= {store.name(0, seed) for seed in plan.seeds}
    assert len(names) == 8


def test_no_store_takes_what_no_commit_has(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for revision in ("0123456789ab with changes", "0123456789ab with changes, sources ba9876543210"):
        monkeypatch.setattr(_motet, "REVISION", revision)
        with pytest.raises(motet.SweepError, match="commit the changes"):
            motet.sweep(SCENARIO).run(store=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_store_that_cannot_be(tmp_path: pathlib.Path, committed: str) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    with pytest.raises(motet.SweepError, match="cannot be a store"):
        motet.sweep(SCENARIO).run(store=taken)


def test_a_cluster_gives_the_same(cluster, tmp_path: pathlib.Path) -> None:
    sweep = motet.sweep(SCENARIO, OVER, seeds=3)
    for runs_per_task in (None, 1, 5):
        assert sweep.run(client=cluster, runs_per_task=runs_per_task).json_lines() == in_one_process()
    # Files that a scenario names need not lie on the workers' machines, nor on this one once they were read.
    (tmp_path / "links.txt").write_text("- -60\n-60 -\n")
    path = tmp_path / "scenario.toml"
    path.write_text('duration_s = 3\nwarmup_s = 1\n[topology]\nmatrix = "links.txt"\n[[flow]]\n')
    sweep = motet.sweep(path, seeds=2)
    wanted = motet.run(path, seeds=2).json_lines()
    (tmp_path / "links.txt").unlink()
    assert sweep.run(client=cluster).json_lines() == wanted


def test_a_worker_dies(tmp_path: pathlib.Path) -> None:
    from distributed import Client, LocalCluster

    killed: list[int] = []

    with LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as machines, Client(machines) as client:

        def kill_one(share: float) -> None:
            if share > 0.2 and not killed:
                killed.extend(client.run(os.getpid).values())
                os.kill(killed[0], signal.SIGKILL)

        result = motet.sweep(SCENARIO, OVER, seeds=30).run(client=client, runs_per_task=1, progress=kill_one)
    assert killed
    assert result.complete
    assert result.json_lines() == motet.run({**SCENARIO, "sweep": OVER}, seeds=30).json_lines()


def test_workers_may_come_late_and_die_together() -> None:
    """As they do where a queue of jobs starts them, and ends them when their time is over."""
    from distributed import Client, LocalCluster

    sweep = motet.sweep(SCENARIO, OVER, seeds=30)
    wanted = motet.run({**SCENARIO, "sweep": OVER}, seeds=30).json_lines()
    killed: list[int] = []
    with LocalCluster(0, threads_per_worker=1, dashboard_address=":0") as machines, Client(machines) as client:

        def kill_all(share: float) -> None:
            if share > 0.2 and not killed:
                killed.extend(client.run(os.getpid).values())
                for worker in killed:
                    os.kill(worker, signal.SIGKILL)

        timer = threading.Timer(2, machines.scale, [2])
        timer.start()
        result = sweep.run(client=client, runs_per_task=1, progress=kill_all)
        timer.join()
    assert killed
    assert result.json_lines() == wanted


def test_a_run_whose_workers_all_die() -> None:
    from distributed import Client, LocalCluster

    stop = threading.Event()
    sweep = motet.sweep({**SCENARIO, "duration_s": 80_000}, seeds=1)
    with LocalCluster(1, threads_per_worker=1, dashboard_address=":0") as machines, Client(machines) as client:

        def kill() -> None:
            while not stop.wait(0.5):
                busy = [worker for worker, tasks in client.processing().items() if tasks]
                # One may be gone already.
                with contextlib.suppress(Exception):
                    for process in client.run(os.getpid, workers=busy).values() if busy else ():
                        os.kill(process, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            with pytest.raises(motet.SweepError, match="each worker died that had one of its tasks"):
                sweep.run(client=client)
        finally:
            stop.set()
            killer.join()


@pytest.mark.parametrize("what", ["client", "cluster"])
def test_a_cluster_that_ends(what: str) -> None:
    from distributed import Client, LocalCluster

    sweep = motet.sweep(SCENARIO, OVER, seeds=30)
    with LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=":0") as machines:
        with Client(machines) as client:

            def end(share: float) -> None:
                if share > 0.1:
                    (client if what == "client" else machines).close()

            with pytest.raises(motet.SweepError, match="the cluster ended before the sweep: "):
                sweep.run(client=client, runs_per_task=1, progress=end)
            with pytest.raises(motet.SweepError, match="the cluster ended before the sweep: "):
                sweep.run(client=client)


def test_a_client_beside_another(cluster) -> None:
    """The last client made is the one that Dask takes where nobody names one."""
    from distributed import Client, LocalCluster

    with LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=":0") as other, Client(other):
        assert motet.sweep(SCENARIO, OVER, seeds=3).run(client=cluster).json_lines() == in_one_process()


def test_a_worker_of_another_revision(cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_motet, "REVISION", "another")
    with pytest.raises(motet.SweepError, match="install the same"):
        motet.sweep(SCENARIO).run(client=cluster)


@pytest.mark.parametrize("client", ["tcp://scheduler:8786", 7])
def test_what_is_no_client(client: object) -> None:
    with pytest.raises(motet.SweepError, match="must be a dask.distributed.Client"):
        motet.sweep(SCENARIO).run(client=client)


def test_ctrl_c_ends_a_sweep(tmp_path: pathlib.Path) -> None:
    program = (
        "import signal, motet\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"print('begun', flush=True)\nmotet.sweep({ {**SCENARIO, 'duration_s': 80_000}!r}, {OVER!r}, seeds=9).run()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout and child.stdout.readline() == "begun\n"
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert said.rstrip().endswith("KeyboardInterrupt"), said


def test_tasks_are_as_long_as_a_second() -> None:
    pace = _sweep.Pace(fixed=None)
    assert [pace.staffed(threads) for threads in (0, 1, 4, 2, 4)] == [1, 0, 3, 0, 0]
    assert pace.runs(10_000) == 1
    pace.saw(0.05, 1)
    assert pace.runs(10_000) == 20
    assert pace.runs(24) == 2
    assert pace.runs(1) == 1
    assert _sweep.Pace(fixed=7).runs(2) == 7
