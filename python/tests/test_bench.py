"""The benchmark runs; what it finds depends on the machine."""

from motet import bench


def test_a_call_is_measured() -> None:
    whole, beyond = bench.call_ms(3)
    assert 0 < beyond < whole
