"""Python gives what the command gives, byte for byte."""

import pathlib
import pickle
import subprocess

import motet
import pytest

ALL = sorted(pathlib.Path(__file__).resolve().parents[2].glob("scenarios/*.toml"))

# The package's lab has no firmware for motes, which flows of kind "push" need.
PUSHES = [path for path in ALL if 'kind = "push"' in path.read_text()]
SCENARIOS = [path for path in ALL if path not in PUSHES]

# What a day is cut to.
HOUR_S = 3_600.0

MATRIX = "- -60 -\n-60 - -60\n- -60 -\n"
NOISE = "-50\n" + "-98\n" * 30
K7 = """{"location": "here", "tx_length": 100, "node_count": 2}
datetime,src,dst,channel,mean_rssi,pdr,tx_count
2020-01-01 00:00:00,0,1,11,-60,1.0,100
2020-01-01 00:00:00,1,0,11,-60,0.9,100
"""


def by_command(command: str, path: pathlib.Path, *more: str) -> str:
    arguments = [command, "run", str(path), "--json", "-", *more]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_example(path: pathlib.Path, command: str) -> None:
    is_a_day = "duration_s = 86_400" in path.read_text()
    cut = ["--duration", str(HOUR_S)] if is_a_day else []
    wanted = by_command(command, path, "--seeds", "1", *cut)
    duration_s = HOUR_S if is_a_day else None
    found = motet.run(path, seeds=1, duration_s=duration_s)
    assert found.json_lines() == wanted
    assert pickle.loads(pickle.dumps(found)).json_lines() == wanted
    assert motet.sweep(path, seeds=1, duration_s=duration_s).run().json_lines() == wanted


def test_there_are_examples() -> None:
    assert len(SCENARIOS) >= 10
    assert PUSHES


@pytest.mark.parametrize("path", PUSHES, ids=lambda path: path.stem)
def test_a_push_is_refused(path: pathlib.Path) -> None:
    with pytest.raises(motet.ScenarioError, match="this build of the lab has no firmware"):
        motet.run(path, seeds=1)


@pytest.mark.parametrize(
    "text",
    [
        '[topology]\nmatrix = "links.txt"\n',
        '[topology]\nchain = 1\n[interference]\ntrace = "noise.txt"\n',
        '[topology]\nk7 = "trace.k7"\n[radio]\nchannel = 11\n',
    ],
    ids=["matrix", "noise", "k7"],
)
def test_named_files(text: str, tmp_path: pathlib.Path, command: str) -> None:
    files = {"links.txt": MATRIX, "noise.txt": NOISE, "trace.k7": K7}
    text = 'name = "Files"\nduration_s = 6\nwarmup_s = 1\n' + text + "[[flow]]\n"
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    wanted = by_command(command, path)
    assert motet.run(path).json_lines() == wanted
    assert motet.run(str(path)).json_lines() == wanted
    # A text has no folder: what it names is given.
    given = {name: content.encode() for name, content in files.items()}
    assert motet.run(text, files=given).json_lines() == wanted


def test_a_dict_is_the_same_scenario(tmp_path: pathlib.Path, command: str) -> None:
    path = tmp_path / "scenario.toml"
    text = 'duration_s = 5\nwarmup_s = 1\n[topology]\nchain = 2\n[[flow]]\n[[flow]]\nkind = "udp"\n'
    path.write_text(text)
    scenario = {"duration_s": 5, "warmup_s": 1, "topology": {"chain": 2}, "flow": [{}, {"kind": "udp"}]}
    wanted = by_command(command, path, "--seeds", "2")
    assert motet.run(scenario, seeds=2).json_lines() == wanted


def test_a_sentence_is_the_commands_own(tmp_path: pathlib.Path, command: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text("[topology]\nchains = 3\n[[flow]]\n")
    done = subprocess.run([command, "run", str(path)], capture_output=True, text=True, check=False)
    with pytest.raises(motet.ScenarioError) as raised:
        motet.run(path)
    assert (done.returncode, done.stderr) == (2, f"motet: {raised.value}\n")
