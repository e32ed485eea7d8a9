"""What a call costs beyond the run itself: ``python -m motet.bench``."""

from __future__ import annotations

import statistics
import time

from . import run

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


def main() -> None:
    """Prints the figures."""
    call_ms(20)
    whole, beyond = call_ms()
    verdict = "reached" if beyond <= MUST_MS else "MISSED"
    print(f"a call of 0.1 s of virtual time   {whole:.3f} ms")
    print(f"of it beyond the run              {beyond:.3f} ms   must {MUST_MS} ms: {verdict}, moonshot {MOONSHOT_MS} ms")


if __name__ == "__main__":
    main()
