"""The benchmark runs; what it finds depends on the machine."""

from motet import bench


def test_a_call_is_measured() -> None:
    whole, beyond = bench.call_ms(3)
    assert 0 < beyond < whole


def test_a_sweep_is_measured() -> None:
    assert all(figure > 0 for figure in bench.sweep_share(20, 2))
