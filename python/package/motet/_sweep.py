"""Sweeps: every point of a scenario with every seed, on this machine or on many."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent import futures
from typing import Any, NamedTuple

from . import _given, _motet
from ._given import SweepError
from ._motet import Result, ScenarioError
from ._store import Store, as_parquet

__all__ = ["Sweep", "SweepError"]


class Job(NamedTuple):
    """One run."""

    point: int
    seed: int
    # Where a store keeps it.
    file: str | None


class Work(NamedTuple):
    """What workers need of a sweep; the same for all its runs."""

    revision: str
    text: str
    title: str
    files: tuple[tuple[str, bytes], ...]


class Done(NamedTuple):
    """What came of one run: the result bit for bit, and the file of a store."""

    job: Job
    exact: bytes
    parquet: bytes | None


class Sweep:
    """Points and seeds of a scenario. ``motet.sweep`` makes one."""

    __module__ = "motet"

    def __init__(self, plan: _motet.Plan) -> None:
        if not isinstance(plan, _motet.Plan):
            raise TypeError("motet.sweep makes a Sweep, nothing else does")
        self._plan = plan

    @property
    def points(self) -> int:
        """How many combinations of values there are."""
        return self._plan.points

    @property
    def seeds(self) -> list[int]:
        """The seeds with which each point runs."""
        return self._plan.seeds

    def __len__(self) -> int:
        """How many runs there are."""
        return self.points * len(self.seeds)

    def __repr__(self) -> str:
        return f"<motet.Sweep of {self._plan.title!r}: {self.points} points, {len(self.seeds)} seeds each>"

    def run(
        self,
        *,
        client: Any = None,
        store: str | os.PathLike[str] | None = None,
        progress: Callable[[float], object] | None = None,
        runs_per_task: int | None = None,
    ) -> Result:
        """Runs what ``store`` does not have, and gives everything, in the order of points and seeds.

        ``client``: a ``dask.distributed.Client``; without one, all cores of this machine. The figures do not depend
        on who computes them. Workers may come, go and die meanwhile.

        ``store``: a folder with a Parquet file for each run. A sweep that ended early goes on where it was. Files are
        named by a hash of scenario, title, swept keys, seed and revision, so that one folder may have many sweeps.

        ``progress``: called with the share of runs that are done, 0 to 1. What it raises ends the sweep.

        ``runs_per_task``: how many runs a worker of ``client`` gets at once; without it, about as many as take a second.

        Raises ``SweepError`` with one sentence where the workers have another revision of Motet, the cluster ends
        before the sweep, or a store would keep results of a package that was built from uncommitted changes.
        """
        progress = _given.hook("progress", progress)
        if runs_per_task is not None:
            runs_per_task = _given.whole("runs_per_task", runs_per_task, 1, SweepError)
        begun = time.perf_counter()
        files = tuple(sorted(self._plan.named_files().items()))
        shelf = None if store is None else Store(store, self._plan, files, _motet.REVISION)
        runs = [(point, seed) for point in range(self.points) for seed in self.seeds]
        jobs = [Job(*run, shelf.name(*run) if shelf else None) for run in runs]
        exact: dict[Job, bytes] = {}
        if shelf:
            exact = {job: found for job in jobs if job.file and (found := shelf.get(job.file, job.seed)) is not None}
        left = [job for job in jobs if job not in exact]
        work = Work(_motet.REVISION, self._plan.text(), self._plan.title, files)
        _tell(progress, len(exact), len(jobs))
        results = _here(work, left) if client is None else _on(client, work, left, runs_per_task)
        with contextlib.closing(results):
            for done in results:
                exact[done.job] = done.exact
                if shelf and done.job.file and done.parquet is not None:
                    shelf.put(done.job.file, done.parquet)
                _tell(progress, len(exact), len(jobs))
        took_s = time.perf_counter() - begun
        return self._plan.gather([(job.point, exact[job]) for job in jobs], took_s)


def _tell(progress: Callable[[float], object] | None, done: int, all_of_them: int) -> None:
    if progress is not None:
        progress(done / all_of_them)


def _here(work: Work, jobs: Sequence[Job]) -> Generator[Done, None, None]:
    """Results from threads of this process, as they come."""
    stop = _motet.Stop()
    threads = futures.ThreadPoolExecutor(cores(), "motet")
    try:
        # Nothing else holds them: what one gave is free once it is handed on.
        for ended in futures.as_completed([threads.submit(_run, work, job, stop) for job in jobs]):
            done = ended.result()
            if done is not None:
                yield done
    finally:
        # Nobody waits for what is left after Ctrl-C.
        stop.set()
        threads.shutdown(cancel_futures=True)


def _on(client: Any, work: Work, jobs: Sequence[Job], runs_per_task: int | None) -> Generator[Done, None, None]:
    """Results from the workers of a Dask client, as they come; whatever ends the cluster is one sentence."""
    try:
        import distributed
    except ImportError:
        raise SweepError("a client needs Dask's scheduler: pip install motet[sweep]") from None
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise SweepError(
            f"client is a {type(client).__name__}, but must be a dask.distributed.Client that is not asynchronous"
        )
    try:
        yield from _handed_out(distributed, client, work, jobs, runs_per_task)
    except (SweepError, ScenarioError):
        raise
    except (Exception, asyncio.CancelledError) as error:
        raise SweepError(f"the cluster ended before the sweep: {_said(error)}") from error


def _handed_out(
    distributed: Any, client: Any, work: Work, jobs: Sequence[Job], runs_per_task: int | None
) -> Generator[Done, None, None]:
    """Results of tasks, a few for each thread of the cluster at a time; raises what Dask raises."""
    _look(client)
    # A task of its own: where all workers die that have it, the next ones get it from the scheduler again.
    with warnings.catch_warnings():
        # A matrix may be large.
        warnings.filterwarnings("ignore", message="Sending large graph")
        shared = client.submit(_same, work, pure=False)
    left = deque(jobs)
    pace = Pace(runs_per_task)
    # Its own loop: another client may be the one that Dask takes if nobody says which.
    waiting = distributed.as_completed(loop=client.loop, with_results=True)

    def hand_out(tasks: int) -> None:
        for _ in range(tasks):
            count = min(pace.runs(len(left)), len(left))
            chunk = [left.popleft() for _ in range(count)]
            if chunk:
                waiting.add(client.submit(_run_all, shared, chunk, pure=False))

    def staff() -> None:
        """Workers may come at any time: they get their share."""
        _look(client)
        hand_out(pace.staffed(sum(client.nthreads().values())) * TASKS_PER_THREAD)

    try:
        staff()
        staffed_at = time.monotonic()
        while waiting.count():
            if time.monotonic() - staffed_at > STAFF_S:
                staff()
                staffed_at = time.monotonic()
            if not waiting.has_ready():
                # Without a client it would be waited for ever.
                _look(client)
                with waiting.thread_condition:
                    waiting.thread_condition.wait(LOOK_S)
                continue
            try:
                _, given = next(waiting)
            except distributed.scheduler.KilledWorker:
                raise SweepError("the cluster cannot run the sweep: each worker died that had one of its tasks") from None
            # Not by the task's status: a worker may have died after it had handed the result over.
            if isinstance(given, BaseException):
                raise SweepError(f"the cluster ended before the sweep: {_said(given)}")
            took_s, done = given
            pace.saw(took_s, len(done))
            hand_out(1)
            yield from done
    finally:
        # Nothing is left to be cancelled where the cluster has gone.
        with contextlib.suppress(Exception, asyncio.CancelledError):
            waiting.clear()
            if client.status == "running":
                client.cancel(shared)


def _same(work: Work) -> Work:
    return work


def _look(client: Any) -> None:
    """Raises what ended a client that runs no more."""
    if client.status not in ("running", "connecting"):
        raise SweepError(f"the cluster ended before the sweep: its client is {client.status}")


def _said(error: BaseException) -> str:
    """What an error says, on one line."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said[:SAID_MAX]}" if said else type(error).__name__


class Pace:
    """How many runs a task gets: enough that the scheduler's own work does not count."""

    def __init__(self, fixed: int | None) -> None:
        self._threads = 0
        self._fixed = fixed
        self._run_s: float | None = None

    def staffed(self, threads: int) -> int:
        """The cluster has so many threads; at least one is to come. Gives how many more those are than it ever had."""
        more = max(1, threads) - self._threads
        self._threads = max(1, threads, self._threads)
        return max(0, more)

    def saw(self, took_s: float, runs: int) -> None:
        """A task with so many runs took so long."""
        latest = took_s / max(1, runs)
        self._run_s = latest if self._run_s is None else (self._run_s + latest) / 2

    def runs(self, left: int) -> int:
        """How many runs the next task gets."""
        if self._fixed is not None:
            return self._fixed
        if self._run_s is None:
            return 1
        # The last ones end together.
        share = math.ceil(left / (self._threads * TASKS_PER_THREAD))
        return max(1, min(share, round(TASK_S / max(self._run_s, 1e-6))))


def _run_all(work: Work, jobs: Sequence[Job]) -> tuple[float, list[Done]]:
    """What a task does: its runs one after the other, and how long they took, s."""
    begun = time.perf_counter()
    if work.revision != _motet.REVISION:
        raise SweepError(f"a worker has Motet {_motet.REVISION}, but this is {work.revision}: install the same")
    stop = _motet.Stop()
    done = [_run(work, job, stop) for job in jobs]
    return time.perf_counter() - begun, [each for each in done if each is not None]


def _run(work: Work, job: Job, stop: _motet.Stop) -> Done | None:
    """One run; nothing if it was stopped."""
    task = _task(work.text, work.title, work.files, job.point)
    exact = task.run(job.seed, stop)
    if exact is None:
        return None
    parquet = as_parquet(task.result(exact), exact, work.revision, job.file) if job.file else None
    return Done(job, exact, parquet)


@functools.lru_cache(maxsize=64)
def _task(text: str, title: str, files: tuple[tuple[str, bytes], ...], point: int) -> _motet.Task:
    return _motet.Task(text, title, dict(files), point)


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


# One runs, the others are there when it has ended.
TASKS_PER_THREAD = 3

# How late a client that was closed is noticed, s.
LOOK_S = 0.1

# How late new workers are, s.
STAFF_S = 2.0

SAID_MAX = 300

# Long beside the scheduler's millisecond a task, short beside a worker's life.
TASK_S = 1.0
