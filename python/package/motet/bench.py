"""What a call costs beyond the run itself, and a sweep beyond its runs: ``python -m motet.bench``."""

from __future__ import annotations

import argparse
import statistics
import time
from typing import NamedTuple

from . import run, sweep
from ._sweep import cores

# Milliseconds.
MUST_MS = 0.2
MOONSHOT_MS = 0.05

SCENARIO = {"duration_s": 0.1, "warmup_s": 0.0, "topology": {"chain": 1, "joining": "static"}, "flow": [{}]}


def call_ms(calls: int = 200) -> tuple[float, float]:
    """The medians of a call with 0.1 s of virtual time in it, and of what is not the run in it, ms."""
    whole, beyond = [], []
    for _ in range(calls):
        begin = time.perf_counter()
        result = run(SCENARIO)
        took = time.perf_counter() - begin
        whole.append(took * 1e3)
        beyond.append((took - result.run_s) * 1e3)
    return statistics.median(whole), statistics.median(beyond)


class Share(NamedTuple):
    """What a sweep by Dask took on this machine."""

    took_s: float
    # Of the processor for each run in one process.
    each_s: float
    # What share of ``took_s`` the runs would take on as many cores.
    of_time: float
    # What share they have of the processor's time here and in the workers: other programs do not count.
    of_processor: float


def sweep_share(runs: int, workers: int) -> Share:
    """Sweeps by Dask on this machine, on so many cores."""
    from distributed import Client, LocalCluster

    begun = time.process_time()
    run(LONG, seeds=SEEDS)
    each_s = (time.process_time() - begun) / SEEDS
    with LocalCluster(workers, threads_per_worker=1, dashboard_address=":0") as machines, Client(machines) as client:

        def processor_s() -> float:
            workers_s: float = sum(client.run(time.process_time).values())
            return time.process_time() + workers_s

        before_s = processor_s()
        begun = time.perf_counter()
        sweep(LONG, seeds=runs).run(client=client)
        took_s = time.perf_counter() - begun
        used_s = processor_s() - before_s
    return Share(took_s, each_s, each_s * runs / workers / took_s, each_s * runs / used_s)


def main() -> None:
    """Prints the figures."""
    options = argparse.ArgumentParser(prog="python -m motet.bench", description=__doc__)
    options.add_argument("--sweep", type=int, metavar="RUNS", help="also sweep over so many runs by Dask")
    given = options.parse_args()
    call_ms(20)
    whole, beyond = call_ms()
    verdict = "reached" if beyond <= MUST_MS else "MISSED"
    print(f"a call of 0.1 s of virtual time   {whole:.3f} ms")
    print(f"of it beyond the run              {beyond:.3f} ms   must {MUST_MS} ms: {verdict}, moonshot {MOONSHOT_MS} ms")
    if given.sweep:
        workers = cores()
        found = sweep_share(given.sweep, workers)
        verdict = "reached" if found.of_time >= MUST_SHARE else "MISSED"
        must = f"must {MUST_SHARE:.0%}: {verdict}, moonshot {MOONSHOT_SHARE:.0%}"
        print(f"a run of {LONG['duration_s']} s over 3 hops          {found.each_s * 1e3:.1f} ms of one processor")
        print(f"{given.sweep} of them by Dask             {found.took_s:.1f} s on {workers} cores")
        print(f"of that the runs themselves       {found.of_time:.1%}   {must}")
        print(f"of the processor's time           {found.of_processor:.1%}   whatever else the machine does")


# What a sweep is measured with, and from how many runs the processor's time for one follows.
LONG = {"duration_s": 60, "topology": {"chain": 3}, "flow": [{}]}
SEEDS = 20
MUST_SHARE = 0.80
MOONSHOT_SHARE = 0.95


if __name__ == "__main__":
    main()
