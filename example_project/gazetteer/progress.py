"""Progress for people: one line that fills on a terminal, a line a step everywhere else."""

import time

from django.core.management.base import OutputWrapper


class ProgressLine:
    """Call it with a step's name, how much is done and how much there is."""

    def __init__(self, out: OutputWrapper, *, quiet: bool = False) -> None:
        self._out = out
        self._quiet = quiet
        self._live = not quiet and out.isatty()
        self._step = ""
        self._began = self._drawn = 0.0

    def __call__(self, step: str, done: int, total: int) -> None:
        now = time.monotonic()
        if step != self._step:
            self._step, self._began, self._drawn = step, now, 0.0
        if self._quiet:
            return
        finished = done >= total
        if self._live and (finished or now - self._drawn > 0.1):
            self._drawn = now
            share = done / total if total else 1.0
            bar = "#" * round(share * 24)
            self._out.write(f"\r  {step:<18} [{bar:<24}] {share:>4.0%}", ending="")
            self._out.flush()
        if finished:
            seconds = now - self._began
            amount = "" if total == 1 else f"{total:,} "
            text = f"  {step:<18} {amount}in {seconds:.1f} s"
            self._out.write(f"\r{text:<60}" if self._live else text)
            self._out.flush()  # or a log file shows every step at once, at the end
