"""Progress of long work: one line that updates on a terminal, start and finish lines in a log."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from typing import TextIO

__all__ = ["Progress", "duration"]


def duration(seconds: float) -> str:
    """A time in words, as coarse as a reader wants it.

    Examples
    --------
    >>> duration(4.21), duration(75), duration(7500)
    ('4.2 s', '1 min 15 s', '2 h 5 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Progress:
    """Report on tasks that run side by side.

    Parameters
    ----------
    names : iterable of str
        The tasks.
    jobs : int
        How many run at once.
    expected : mapping of str to float
        Seconds that a task took last time, where known.
    stream : text stream, optional
        Standard error unless told otherwise; an updating line appears if it is a terminal.
    """

    def __init__(
        self,
        names: Iterable[str],
        jobs: int,
        expected: Mapping[str, float],
        stream: TextIO | None = None,
    ) -> None:
        self._waiting = set(names)
        self._total, self._jobs, self._expected = len(self._waiting), jobs, dict(expected)
        self._took = list(self._expected.values())
        self._stream = sys.stderr if stream is None else stream
        self._live = self._stream.isatty()
        self._lock = threading.Lock()
        self._running: dict[str, tuple[float, int, int]] = {}
        self._finished = 0

    def start(self, name: str) -> None:
        """A task begins."""
        with self._lock:
            self._running[name] = (time.monotonic(), 0, 0)
            self._waiting.discard(name)
            if not self._live:
                self._line(f"{name}: started")

    def cell(self, name: str, number: int, n_cells: int) -> None:
        """A task reached a cell."""
        with self._lock:
            started = self._running[name][0]
            self._running[name] = (started, number, n_cells)

    def finish(self, name: str, how: str) -> None:
        """A task ended; `how` says how, such as "done in 4.2 s"."""
        with self._lock:
            if name in self._running:
                self._took.append(time.monotonic() - self._running.pop(name)[0])
            self._waiting.discard(name)
            self._finished += 1
            self._line(f"{name}: {how} ({self._finished} of {self._total})")

    def tick(self) -> None:
        """Redraw the updating line."""
        if not self._live:
            return
        with self._lock:
            cells = ", ".join(
                f"{name} {number}/{n_cells}" if n_cells else f"{name} starting"
                for name, (_, number, n_cells) in sorted(self._running.items())
            )
            text = f"{self._finished} of {self._total} done; {cells}"
            if (left := self.seconds_left()) is not None:
                text += f"; about {duration(left)} left"
            self._stream.write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")
            self._stream.flush()

    def close(self) -> None:
        """Clear the updating line."""
        if self._live:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def seconds_left(self) -> float | None:
        """Estimate from the last durations, from the mean for tasks without one; None if all are new."""
        if not self._took:
            return None
        mean, now = sum(self._took) / len(self._took), time.monotonic()
        rest = [
            max(0.0, self._expected.get(name, mean) - now + started)
            for name, (started, *_) in self._running.items()
        ]
        rest += [self._expected.get(name, mean) for name in self._waiting]
        return max([sum(rest) / self._jobs, *rest], default=0.0)

    def _line(self, text: str) -> None:
        self._stream.write(("\r\x1b[K" if self._live else "") + text + "\n")
        self._stream.flush()
