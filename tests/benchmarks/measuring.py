"""Time and memory of the process that does the work.

Memory is what the process grows by at its peak, over what it has when the work begins. On Linux the
kernel counts it (VmHWM, set back before the work), else it is the growth of the largest size so
far. Of worker processes the kernel tells only the largest: it counts once for each worker, less
what the parent had, which they share or have loaded as well.
"""

import gc
import os
import resource
import statistics
import sys
import time
import tracemalloc
from pathlib import Path

STATUS = Path("/proc/self/status")
LINUX = STATUS.exists()
UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes in which ``getrusage`` counts memory."""


class Unavailable(Exception):
    """A contender cannot take part here; the text says why."""


def measured(work, *, workers=0):
    """Do the work; return its seconds and its peak memory in bytes, and what it returned.

    ``cpu`` is the processor time of this process, with all its threads, and ``machine`` that of all
    processes: on an otherwise idle machine these are this one, its workers and the database.
    """
    gc.collect()
    idle = _reset_peak()
    began, began_cpu, began_machine = time.perf_counter(), time.process_time(), busy()
    result = work()
    seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    machine = busy() - began_machine
    peak = _peak() - idle
    if workers:
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * UNIT
        peak += workers * max(0, largest - idle)
    figures = {"seconds": seconds, "cpu": cpu, "peak": peak}
    return figures | ({"machine": machine} if LINUX else {}), result


def traced(work):
    """Do the work; return the bytes that Python allocated at its peak and kept, and its result.

    It tells a hundred kilobytes from the next hundred, which the kernel's pages do not. What C
    libraries allocate by themselves is not in it, and the work takes several times as long.
    """
    gc.collect()
    tracemalloc.start()
    began = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - began
    gc.collect()
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"seconds": seconds, "traced": peak, "kept": kept}, result


def median_of(work, *, at_most=7, within=5.0):
    """Do quick work several times; return the medians of the figures that it returns."""
    figures = []
    ends = time.perf_counter() + within
    while not figures or (len(figures) < at_most and time.perf_counter() < ends):
        figures.append(work())
    return {name: statistics.median(each[name] for each in figures) for name in figures[0]}


def busy():
    """Return for how many seconds the processors have worked, on Linux; all of them together."""
    if not LINUX:
        return 0
    user, nice, system, _, _, *interrupts = Path("/proc/stat").read_text().split()[1:8]
    return sum(map(int, (user, nice, system, *interrupts))) / os.sysconf("SC_CLK_TCK")


def _reset_peak():
    """Forget the peak so far where that can be done; return what the process has now."""
    if not LINUX:
        return _peak()
    Path("/proc/self/clear_refs").write_text("5")
    return peak_of("self", "VmRSS")


def _peak():
    if not LINUX:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT
    return peak_of("self")


def peak_of(pid, field="VmHWM"):
    """Return the largest size of a process so far, in bytes; 0 where it cannot be determined."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field)), 0)
