"""Running, stepping, stopping; and what a scenario may not be."""

import math
import os
import pathlib
import signal
import subprocess
import sys
import threading
from types import MappingProxyType

import motet
import pytest

CHAIN = {"duration_s": 5, "warmup_s": 1, "topology": {"chain": 2}, "flow": [{}]}
ENDLESS = {**CHAIN, "duration_s": 1e6}


def with_(**more: object) -> dict[str, object]:
    return {**CHAIN, **more}


def test_tables_have_rows() -> None:
    result = motet.run(CHAIN, seeds=3)
    assert result.complete and result.title == "scenario"
    assert len(result.runs) == 3 and result.flows["seed"] == [1, 2, 3]
    assert all(goodput > 5 for goodput in result.flows["goodput_kbps"])
    assert result.nodes["name"][:4] == ["0", "1", "2", "host"]
    assert set(result.links["fates.injected"]) == {0}
    assert set(result.samples["seed"]) == {1}
    assert "goodput" in result.summary["metric"]


def test_swept_values_are_columns() -> None:
    result = motet.run(with_(sweep={"radio.frame_loss": [0, 0.1], "topology.chain": [1, 2]}))
    assert result.runs["radio.frame_loss"] == [0.0, 0.0, 0.1, 0.1]
    assert result.runs["topology.chain"] == [1, 2, 1, 2]
    assert result.runs["point"] == [0, 1, 2, 3]


MANY = {"stack.queue_frames": list(range(4, 42)), "wire.delay_ms": list(range(1_000))}


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ({}, ["[topology] has no nodes"]),
        (with_(radio={"frame_loss": math.nan}), ["radio.frame_loss is nan"]),
        (with_(radio={"frame_loss": "much"}), ["radio.frame_loss", "much"]),
        (with_(radio={"frame_los": 0.1}), ["`frame_los`", "frame_loss"]),
        (with_(radio={"frame_loss": None}), ["radio.frame_loss is of type NoneType"]),
        (with_(radio={"channel": 2**70}), ["radio.channel", "64 bits"]),
        (with_(radio=3), ["radio must be a table"]),
        (with_(flow={}), ["flow must be a list of tables"]),
        (with_(topology={"matrix": "nowhere.txt"}), ["nowhere.txt", "no such file"]),
        (with_(interference={"trace": "no.gz"}), ["no.gz", "no such file"]),
        (with_(sweep=MANY), ["[sweep] has more than 10000 points"]),
        ({b"\xff": 1}, ["scenario has the key b'\\xff'"]),
        ({"topology": {3: 4}}, ["topology has the key 3"]),
        ({"name": "\ud800"}, ["UTF-8"]),
        ({"\ud800": 1}, ["UTF-8"]),
        (with_(name=object()), ["name is of type object"]),
        ("duration_s = = 3", ["line 1 is not TOML"]),
        ("nowhere/such.toml", ["no such file"]),
        ("nowhere/loss=0.1/such.toml", ["no such file"]),
        ("", ["an empty text"]),
        ("a\0b", ["no file can be called"]),
        ("\ud800", ["no file can be called"]),
        ("name = '\ud800'", ["UTF-8"]),
        (17, ["not 17"]),
        (None, ["not None"]),
        ([CHAIN], ["a scenario is a dict"]),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(scenario: object, words: list[str]) -> None:
    with pytest.raises(motet.ScenarioError) as raised:
        motet.run(scenario)  # type: ignore[call-overload]
    assert_one_sentence(raised.value, words)


def assert_one_sentence(error: BaseException, words: list[str]) -> None:
    sentence = str(error)
    assert "\n" not in sentence and len(sentence) < 1_000
    assert all(word in sentence for word in words), sentence


class Silent:
    def __repr__(self) -> str:
        raise LookupError("nothing to show")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"duration_s": "5"}, ["duration_s is '5'"]),
        ({"duration_s": True}, ["duration_s is True"]),
        ({"duration_s": 10**400}, ["duration_s is 10"]),
        ({"duration_s": math.nan}, ["duration_s is nan"]),
        ({"duration_s": Silent()}, ["duration_s is of type Silent"]),
        ({"seed": -1}, ["seed is -1"]),
        ({"seed": 1.0}, ["seed is 1.0"]),
        ({"step": "x"}, ["step is 'x'"]),
        ({"step": [1]}, ["step is [1]"]),
        ({"observe": -1}, ["observe is -1"]),
        ({"observe": "x", "step": 1.0}, ["observe is 'x'"]),
        ({"observe": 10**30, "step": 1.0}, ["fits 64 bits"]),
        ({"files": 3}, ["files is 3"]),
        ({"files": {3: b""}}, ["files has the name 3"]),
        ({"files": {"\ud800": b""}}, ["files has the name '\\ud800'"]),
        ({"files": {"links.txt": "- -60"}}, ["'links.txt' is given as str"]),
        ({"files": {"links.txt": [1, 2]}}, ["'links.txt' is given as list"]),
        ({"files": {"links.txt": 10**9}}, ["'links.txt' is given as int"]),
    ],
)
def test_wrong_arguments_are_one_sentence(given: dict[str, object], words: list[str]) -> None:
    with pytest.raises(motet.ScenarioError) as raised:
        motet.run(CHAIN, **given)  # type: ignore[call-overload]
    assert_one_sentence(raised.value, words)


def test_a_hook_is_a_function() -> None:
    with pytest.raises(TypeError, match="progress is 3, but must be a function"):
        motet.run(CHAIN, progress=3)  # type: ignore[call-overload]


def test_there_is_no_such_column() -> None:
    table = motet.run(CHAIN).runs
    for name in ("goodput", "\ud800", 3, None):
        with pytest.raises(KeyError, match="there is no column"):
            table[name]  # type: ignore[index]


def test_numbers_of_numpy_and_other_mappings_are_taken() -> None:
    numpy = pytest.importorskip("numpy")
    wanted = motet.run(CHAIN, seeds=2).json_lines()
    given = MappingProxyType(with_(topology=MappingProxyType({"chain": numpy.array(2)}), flow=({},)))
    assert motet.run(given, seeds=numpy.int64(2), duration_s=numpy.float32(5)).json_lines() == wanted


def test_an_array_is_refused_before_it_is_a_list() -> None:
    class Large:
        size = 10**12

        def tolist(self) -> object:
            raise AssertionError("nobody has so much memory")

    with pytest.raises(motet.ScenarioError, match="radio.frame_loss has more values"):
        motet.run(with_(radio={"frame_loss": Large()}))


def test_a_list_in_itself_a_thousand_times_is_refused() -> None:
    endless: list[object] = []
    endless.extend([endless] * 1_000)
    with pytest.raises(motet.ScenarioError, match="deeper|more values"):
        motet.run({"topology": {"positions": endless}})


def test_a_path_may_have_an_equals_sign(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "loss=0.1" / "scenario.toml"
    path.parent.mkdir()
    path.write_text('name = "Here"\nduration_s = 2\nwarmup_s = 0\n[topology]\nchain = 1\n[[flow]]\n')
    assert motet.run(str(path)).title == motet.run(path).title == "Here"


def test_points_and_seeds_have_a_limit_together() -> None:
    """Each is allowed alone; together they would be 10^9 runs."""
    values = {"wire.delay_ms": range(10_000)}
    with pytest.raises(motet.ScenarioError, match="1000000000 runs, but a scenario may have 100000"):
        motet.sweep(CHAIN, values, seeds=100_000)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_one_thread_at_a_time_asks_a_run() -> None:
    """The second one is the handler of a signal: only while somebody waits for the run can it find it taken."""

    class Over(Exception):
        pass

    steps = motet.run(ENDLESS, step=1e6)
    said: list[str] = []

    def ask_too(*_: object) -> None:
        if said:
            # The timer goes on for a moment.
            return
        try:
            next(steps)
        except RuntimeError as error:
            said.append(str(error))
            raise Over from None

    before = signal.signal(signal.SIGALRM, ask_too)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        with pytest.raises(Over):
            next(steps)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert said and "one thread at a time" in said[0]
    # The run was ended with the step.
    assert list(steps) == []


def test_numbers_of_runs_are_checked() -> None:
    for wrong in (0, -1, 10**9, 10**30, "3", 1.5):
        with pytest.raises(motet.ScenarioError, match="seeds"):
            motet.run(CHAIN, seeds=wrong)  # type: ignore[call-overload]
    with pytest.raises(motet.ScenarioError, match="duration_s"):
        motet.run(CHAIN, duration_s=math.inf)


def test_a_dict_in_itself_is_refused() -> None:
    endless: dict[str, object] = {}
    endless["topology"] = endless
    with pytest.raises(motet.ScenarioError, match="deeper"):
        motet.run(endless)


@pytest.mark.parametrize("step", [0.37, 2.0])
def test_steps_give_what_a_run_gives(step: float) -> None:
    whole = motet.run(CHAIN)
    steps = motet.run(CHAIN, step=step, observe=100_000)
    moments = list(steps)
    assert steps.finish().json_lines() == whole.json_lines()
    times = [moment.now_s for moment in moments]
    assert times == sorted(times) and not any(moment.missed for moment in moments)
    assert sum(len(moment.frames) for moment in moments) > 300
    assert sum(len(moment.samples) for moment in moments) == len(whole.samples)
    last = moments[-1]
    assert last.flows["bytes"] == whole.flows["bytes"]
    assert last.nodes["parent"] == [None, 0, 1]
    states = {state for moment in moments for state in moment.radios["state"]}
    assert {"listen", "transmit", "copy in"} <= states
    kinds = {kind for moment in moments for kind in moment.frames["kind"]}
    assert {"data", "ack"} <= kinds


def test_without_an_observer_nothing_is_kept() -> None:
    moments = list(motet.run(CHAIN, step=1.0))
    assert all(len(moment.frames) == len(moment.radios) == 0 for moment in moments)


def test_a_run_may_be_ended_early() -> None:
    steps = motet.run(ENDLESS, step=1.0)
    for _, moment in zip(range(9), steps):
        assert moment.now_s <= 9
    result = steps.finish()
    assert not result.complete and result.flows["bytes"][0] > 0
    with pytest.raises(RuntimeError, match="ended"):
        steps.finish()
    assert list(steps) == []


@pytest.mark.parametrize("step", [0, -1, math.nan, math.inf])
def test_a_step_is_a_time(step: float) -> None:
    with pytest.raises(motet.ScenarioError, match="step is"):
        motet.run(CHAIN, step=step)


def test_steps_are_of_one_run() -> None:
    with pytest.raises(motet.ScenarioError, match="seeds=1"):
        motet.run(CHAIN, step=1.0, seeds=2)


def test_progress_ends_at_one_and_may_end_the_runs() -> None:
    shares: list[float] = []
    motet.run(CHAIN, progress=shares.append)
    assert shares[-1] == 1.0 and shares == sorted(shares)

    def stop(_share: float) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        motet.run(ENDLESS, progress=stop)


def test_other_threads_go_on() -> None:
    """The other thread ends the run, for which it needs Python's lock."""
    begun = threading.Event()
    over = threading.Event()

    def end() -> None:
        begun.wait()
        over.set()

    def look(_share: float) -> None:
        begun.set()
        if over.is_set():
            raise LookupError("over")

    thread = threading.Thread(target=end)
    thread.start()
    with pytest.raises(LookupError, match="over"):
        motet.run(ENDLESS, progress=look)
    thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    """As workers of multiprocessing are made on Linux; one that hangs is ended by the alarm."""
    wanted = motet.run(CHAIN, seeds=4).json_lines()
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        os._exit(0 if motet.run(CHAIN, seeds=4).json_lines() == wanted else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_steps_stay_in_their_process() -> None:
    steps = motet.run(CHAIN, step=1.0)
    next(steps)
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        try:
            next(steps)
        except RuntimeError as error:
            os._exit(0 if "the process that began it" in str(error) else 2)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert len(list(steps)) > 1 and steps.finish().run_s > 0


def test_flags_of_numpy_are_no_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    for given in ({"duration_s": numpy.True_}, {"step": numpy.True_}, {"seeds": numpy.True_}):
        with pytest.raises(motet.ScenarioError, match=f"^{next(iter(given))} is "):
            motet.run(CHAIN, **given)


def test_a_text_is_a_str() -> None:
    with pytest.raises(motet.ScenarioError, match="a text is a str, not bytes"):
        motet.run(b"duration_s = 2\n[topology]\n")  # type: ignore[call-overload]


def test_help_says_what_a_stub_says() -> None:
    for kind in (motet.Result, motet.Table, motet.Steps, motet.Moment):
        public = [name for name in dir(kind) if not name.startswith("_")]
        assert public and all(getattr(kind, name).__doc__ for name in public), kind
    assert [kind.__module__ for kind in (motet.Sweep, motet.SweepError, motet.ScenarioError)] == ["motet"] * 3


def test_an_interrupt_ends_the_runs() -> None:
    """A process of its own: a signal is for all that is in one."""
    code = (
        "import motet, signal\n"
        # Whoever started the tests may ignore it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "told = []\n"
        "def tell(share):\n"
        "    if not told:\n"
        "        told.append(print('running', flush=True))\n"
        f"motet.run({ENDLESS!r}, progress=tell)\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout and process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert errors.rstrip().endswith("KeyboardInterrupt") and process.returncode != 0


def test_the_package_is_typed() -> None:
    folder = pathlib.Path(motet.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_motet.pyi").exists()
