"""Shards on the workers of a Dask cluster: who has which, who is late, who is lost."""

from __future__ import annotations

import pickle
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple

from ..utils.types import Floats
from ..utils.validation import ParameterError
from .executor import (
    ArrayShard,
    ClusterLost,
    Loader,
    Reply,
    ShardConfig,
    ShardInfo,
    Traffic,
    build_shard,
    count_bytes,
)
from .shard import Shard

__all__ = ["DaskExecutor", "Missing", "address_of", "as_client", "drop", "work"]

CONNECTING = 10.0  # seconds to wait for a scheduler that does not answer
LEAST_WAIT = 10.0  # seconds to wait for workers and their memory, however short the timeout

TICK = 0.25  # seconds between two looks at who is still there
SLOW = 3.0  # times as long as the slowest answer so far, after which another one may be late
SCATTERED = 2**26  # bytes of weights for all parts from which on workers pass them to each other
MOST_LATE = 2  # questions in a row that a part may miss before it is given to another worker
SENT_TO = 5  # workers that a part's examples are offered to
MOST_MOVES = 10  # of a part between two answers: what kills every worker is no accident
CLOSED = ("closing", "closed")
CONNECTING_AGAIN = "connecting"
NO_CLIENT = "the client of the cluster was closed, or lost its scheduler"
FAILED = ("error", "cancelled", "lost")
LOST = ("KilledWorker", "FutureCancelledError", "CancelledError", "FutureLostError")


def as_client(cluster: Any) -> Any:
    """A client of Dask's for what was given: one, a cluster, or an address.

    Raises ImportError where Dask is missing, OSError where nobody answers at the address, and
    ValueError for a client that is closed.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(
            'training on a cluster needs Dask: pip install "maxmargin[distributed]"'
        ) from None
    if isinstance(cluster, Client):
        if cluster.status in CLOSED:
            raise ValueError("cluster is a closed client; connect again")
        return cluster
    # Dask would notice an address without a port, too, but wait a minute for its half-made client.
    usable = ":" in cluster if isinstance(cluster, str) else hasattr(cluster, "scheduler_address")
    if not usable:
        raise ParameterError(
            "cluster",
            "must be a dask.distributed Client, a cluster, or the address of a scheduler such as "
            f"'tcp://10.0.0.1:8786', got {cluster!r:.80}",
        )
    return Client(cluster, set_as_default=False, timeout=CONNECTING)


def address_of(cluster: Any) -> str | None:
    """What an estimator's pickle has of a cluster: where it is; None if that is not known."""
    if cluster is None or isinstance(cluster, str):
        return cluster
    found = getattr(cluster, "scheduler_address", None)  # of a cluster
    if found is None:
        found = getattr(getattr(cluster, "scheduler", None), "address", None)  # of a client
    return found if isinstance(found, str) else None


class Request(NamedTuple):
    """A question that a worker has been asked."""

    future: Any
    worker: str
    started: float
    asked: int


class DaskExecutor:
    """Shards on workers; see `executor.Executor`. A context manager: at its end workers drop them.

    Shards are dealt out to workers in turn. A part whose worker is gone is made again on another
    one, by its recipe. So is one that is late again and again: that takes ``timeout`` seconds, and
    several times as long as the slowest of the answers that have come. Where no worker comes for
    that time, or all die of the same part, `ClusterLost` ends the training.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    recipes : list of callables
        Make the problems of the parts, on the workers.
    terms : list of ShardConfig
        What each is trained for.
    timeout : float
        Seconds.
    """

    def __init__(
        self, client: Any, loaders: list[Loader], config: list[ShardConfig], timeout: float
    ) -> None:
        self.client, self.loaders, self.config, self.timeout = client, loaders, config, timeout
        self.job = uuid.uuid4().hex
        self.traffic = Traffic()
        self.asked = 0
        self.moves = 0  # parts that were made again
        self.lost: str | None = None  # why nobody answers any more
        self._late: dict[int, Request] = {}
        self._misses = [0] * len(loaders)
        self._patience = [1.0] * len(loaders)
        self._moves = [0] * len(loaders)  # since the last answer
        self._made: set[int] = set()
        workers = self._workers()
        self.home = [workers[k % len(workers)] for k in range(len(loaders))]
        self.info: list[ShardInfo] = []

    def __enter__(self) -> DaskExecutor:
        try:
            found = self.call("info", None, dict.fromkeys(range(len(self.loaders)), ()))
        except BaseException:
            self._leave()
            raise
        self.info = [found[k].answer for k in range(len(self.loaders))]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        """Let workers forget the parts."""
        try:
            from distributed import fire_and_forget

            _cancel(self._late.values())
            for worker in self._threads():  # not waiting for one that is stuck
                fire_and_forget(self.client.submit(drop, self.job, workers=[worker], pure=False))
        except Exception:  # a cluster that is gone has forgotten them
            pass

    @property
    def _wait_seconds(self) -> float:
        """How long to wait for what is not there at all."""
        return max(self.timeout, LEAST_WAIT)

    # ----- workers ------------------------------------------------------------------------------

    def _workers(self) -> list[str]:
        """Addresses of the workers that there are; waits for one, but not for ever."""
        waited = time.monotonic() + self._wait_seconds
        while True:
            if self.client.status in CLOSED:
                raise self._end(NO_CLIENT)
            try:
                found, what = sorted(self._threads()), "workers"
            except (OSError, TimeoutError):  # a client tries to connect again, and may succeed
                found, what = [], "scheduler"
            if found:
                return found
            if time.monotonic() > waited:
                raise self._end(f"the cluster has had no {what} for {self._wait_seconds:g} s")
            time.sleep(TICK)

    def _threads(self) -> dict[str, int]:
        """Workers and their threads; OSError or TimeoutError where no scheduler answers."""
        self._check_scheduler()
        found: dict[str, int] = self.client.nthreads(callback_timeout=self._wait_seconds)
        return found

    def _scattered(self, data: Any, **options: Any) -> Any:
        """Data on workers; OSError, TimeoutError or KeyError where nobody takes them."""
        self._check_scheduler()
        return self.client.scatter(data, hash=False, timeout=self._wait_seconds, **options)

    def _check_scheduler(self) -> None:
        """Raise OSError where there is no connection: Dask would wait for one, half a minute."""
        if self.client.status == CONNECTING_AGAIN:
            raise OSError("no connection to the scheduler")

    def _move(self, shard: int, workers: list[str]) -> None:
        """Give a part to another worker, the one that has fewest, if there is another."""
        others = [worker for worker in workers if worker != self.home[shard]] or workers
        self.home[shard] = min(others, key=self.home.count)
        self._made.discard(shard)
        self._misses[shard] = 0
        self.moves += 1
        self._moves[shard] += 1
        if self._moves[shard] > MOST_MOVES:
            raise self._end(
                f"shard {shard} was sent to {MOST_MOVES} workers in a row, and none has "
                "answered: they may lack the memory for it, or its oracle ends their process"
            )

    def _move_late(self, shard: int, workers: list[str]) -> None:
        """Give a part to another worker, which has more time for it: or it would move for ever."""
        self._patience[shard] *= 2.0
        self._move(shard, workers)

    def _end(self, why: str) -> ClusterLost:
        """The error that ends all, now and at any later question."""
        self.lost = why
        return ClusterLost(why)

    # ----- questions ----------------------------------------------------------------------------

    def call(
        self,
        method: str,
        w: Floats | None,
        messages: Mapping[int, tuple[Any, ...]],
        *,
        may_be_late: bool = False,
    ) -> dict[int, Reply]:
        """See `executor.Executor`."""
        if self.lost is not None:
            raise ClusterLost(self.lost)
        self.asked += 1
        answers: dict[int, Reply] = {}
        took: list[float] = []
        pending = {k: r for k, r in self._late.items() if k in messages}
        self._late = {k: r for k, r in self._late.items() if k not in messages}
        if not may_be_late:  # what they still work on is not what is asked now
            _cancel(pending.values())
            pending = {}
        sent = 0 if w is None else w.nbytes
        try:
            common = self._lent(w, len(messages))
            for k, message in messages.items():
                if k not in pending:
                    pending[k] = self._submit(k, (method, message), common)
                    sent += count_bytes(message)
            workers, looked = self._workers(), time.monotonic()
            while pending:
                self._wait(pending)
                if time.monotonic() > looked + TICK:
                    workers, looked = self._workers(), time.monotonic()
                for k in list(pending):
                    request = pending[k]
                    again = False
                    if request.future.status == "finished":
                        answer = self._result(request)
                        if answer is None:  # its worker has it, and is out of reach
                            self._move(k, workers)
                            again = True
                        elif isinstance(answer, Missing):
                            self._made.discard(k)
                            again = True
                        else:
                            self._made.add(k)
                            self._misses[k] = self._moves[k] = 0
                            answers[k] = Reply(answer, request.asked)
                            took.append(time.monotonic() - request.started)
                            del pending[k]
                    elif request.worker not in workers or request.future.status in FAILED:
                        self._check_errors(request)
                        self._move(k, workers)
                        common = self._lent(w, len(messages))
                        again = True
                    elif self._is_late(k, request, took):
                        self._misses[k] += 1
                        if may_be_late and self._misses[k] <= MOST_LATE:
                            self._late[k] = pending.pop(k)
                        else:
                            self._move_late(k, workers)
                            again = True
                    if again:
                        _cancel([request])
                        pending[k] = self._submit(k, (method, messages[k]), common)
        except BaseException as error:
            _cancel(pending.values())
            if isinstance(error, ClusterLost) or not isinstance(error, Exception):
                raise
            if self.client.status in CLOSED:
                raise self._end(NO_CLIENT) from error  # whatever Dask has called it
            raise
        self.traffic.sent.append(sent)
        self.traffic.received.append(sum(count_bytes(found.answer) for found in answers.values()))
        return answers

    def _lent(self, w: Floats | None, n_asked: int) -> Any:
        """Weights for several questions: long ones are sent once, and workers pass them on."""
        if w is None or n_asked * w.nbytes < SCATTERED:
            return w
        try:
            return self._scattered(w)
        except (KeyError, OSError, TimeoutError):  # nobody to pass it on: each is sent its own
            return w

    def _submit(self, shard: int, question: tuple[str, tuple[Any, ...]], common: Any) -> Request:
        """Ask the worker of a part, and tell it how the part is made if it may not have it."""
        method, message = question
        making = None if shard in self._made else self._making(shard)
        worker = self.home[shard]
        future = self.client.submit(
            *(work, self.job, shard, making, method, common, message),
            workers=[worker],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )
        return Request(future, worker, time.monotonic(), self.asked)

    def _making(self, shard: int) -> Any:
        """How a part is made, for its worker; examples go there first, or to another one."""
        import cloudpickle

        making = (self.loaders[shard], self.config[shard])
        if not isinstance(making[0], ArrayShard):
            return cloudpickle.dumps(making)
        for left in reversed(range(SENT_TO)):
            try:
                return self._scattered([making], workers=[self.home[shard]])[0]
            except (KeyError, OSError, TimeoutError) as error:  # of Dask: the worker is gone
                if not left:
                    raise self._end(
                        f"no worker accepts shard {shard}; {SENT_TO} were tried: {error!r}"
                    ) from error
                self._move(shard, self._workers())

    def _wait(self, pending: dict[int, Request]) -> None:
        """Wait for an answer, or a moment."""
        from distributed import wait

        try:
            wait(
                [request.future for request in pending.values()],
                timeout=TICK,
                return_when="FIRST_COMPLETED",
            )
        except Exception:  # its own kinds of time-outs, and futures that were lost
            time.sleep(TICK / 10)

    def _is_late(self, shard: int, request: Request, took: list[float]) -> bool:
        """Whether an answer is overdue, by those that have come."""
        waited = (time.monotonic() - request.started) / self._patience[shard]
        return bool(took) and waited > max(self.timeout, SLOW * max(took))

    def _result(self, request: Request) -> Any:
        """An answer that is there, or None if it has been lost with its worker since."""
        waited, seconds = 0.0, 1.0
        while waited < self._wait_seconds:
            try:
                return request.future.result(timeout=seconds)
            except Exception:  # errors of the part itself are told by the status
                if request.future.status != "finished" or request.worker not in self._workers():
                    return None
            waited, seconds = waited + seconds, 2.0 * seconds  # each begins anew: it may be long
        return None

    @staticmethod
    def _check_errors(request: Request) -> None:
        """Raise what a part has raised; what befell its worker is no error of its own."""
        if request.future.status == "error":
            error = request.future.exception()
            if type(error).__name__ not in LOST:
                raise error


def _cancel(requests: Iterable[Request]) -> None:
    """Tell workers that nobody waits any more, if they can be told."""
    for request in requests:
        with suppress(Exception):  # a client that is closed
            request.future.cancel()


_PARTS: dict[tuple[str, int], tuple[Shard, ShardInfo, threading.Lock]] = {}
_OVER: set[str] = set()
_GUARD = threading.Lock()


class Missing(NamedTuple):
    """The answer of a worker that does not have the part, and was not told how it is made."""

    shard: int


def work(
    job: str,
    shard: int,
    making: tuple[Loader, ShardConfig] | bytes | None,
    method: str,
    w: Floats | None,
    message: tuple[Any, ...],
) -> Any:
    """Let a part answer a question; it is made, if it is not there.

    ``making``, or its pickle, may be None where it is known to be there. The method "info" asks
    for `ShardInfo`.
    """
    if job in _OVER:  # nobody waits for the answer
        return Missing(shard)
    known = _PARTS.get((job, shard))
    if known is None:
        if making is None:
            return Missing(shard)
        if isinstance(making, bytes):
            making = pickle.loads(making)
        built, info = build_shard(*making)
        with _GUARD:
            if job in _OVER:
                return Missing(shard)
            known = _PARTS.setdefault((job, shard), (built, info, threading.Lock()))
    trained, info, lock = known
    if method == "info":
        return info
    with lock:  # a worker may have several threads, and a question may be asked again
        return getattr(trained, method)(w, *message)


def drop(job: str) -> None:
    """Forget the parts of a training that is over."""
    with _GUARD:
        _OVER.add(job)  # a part that is still being made is not kept
        for key in [key for key in _PARTS if key[0] == job]:
            del _PARTS[key]
