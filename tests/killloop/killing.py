"""Builders, of which most are killed or paused at a random moment."""

import os
import random
import signal
import threading
import time
from collections import Counter

from django.db import connection

from django_sitemapkit.management.base import Exit
from django_sitemapkit.models import Lease
from tests.killloop.clock import JUMPS
from tests.killloop.roles import BUG

KILLED, PAUSED = 0.65, 0.12
"""How many of the builds get which fate; the others are let be."""

AT_WORK = 0.8
"""How many of them are let be until they hold the lease; one that never gets it is spared."""

PAUSE = (1.3, 2.6)
"""Seconds of a pause, in leases: the lease is over, and another has it by then."""


class Toll:
    """What all builders of a run have been through, counted together."""

    def __init__(self, kills, seconds, typical):
        self.kills = kills
        self.until = time.monotonic() + seconds
        self.counts = Counter()
        self.codes = Counter()
        self.bugs = []
        self.typical = typical
        self.lock = threading.Lock()
        self.stopped = threading.Event()

    @property
    def over(self):
        """Whether there were kills enough, or time is up."""
        enough = self.counts["kills"] >= self.kills
        return enough or time.monotonic() > self.until or self.stopped.is_set()

    def note(self, fate, code, seconds, *, at_work, jumped):
        """Take in how a build ended; ``at_work`` is one that died with the lease in its hands."""
        with self.lock:
            self.counts["builds"] += 1
            self.counts["jumps"] += jumped
            self.codes[code] += 1
            self.counts["kills"] += code == -signal.SIGKILL
            self.counts["kills at work"] += code == -signal.SIGKILL and at_work
            if code == 0 and fate == "spared":
                self.typical += (seconds - self.typical) / 4
            if code == BUG or (code < 0 and fate != "killed"):
                self.bugs.append(f"a build that was {fate} ended with {code}")


class Slot(threading.Thread):
    """One builder after the other, each from the same server of forks."""

    def __init__(self, server, toll, seed, lease):
        super().__init__(daemon=True)
        self.server = server
        self.toll = toll
        self.chance = random.Random(seed)
        self.lease = lease

    def run(self):
        """Build until the toll is full."""
        try:
            while not self.toll.over:
                code = self.build()
                time.sleep(self.chance.uniform(0, 0.4 if code == Exit.RUNNING else 0.05))
        except Exception as error:  # noqa: BLE001  a thread's error would go unseen
            self.toll.bugs.append(f"a slot of builders broke: {error!r}")

    def build(self):
        """Fork one build, let its fate come over it, note and return how it ended."""
        clock = self.chance.choice(JUMPS)
        self._say(clock)
        began = time.monotonic()
        child = int(self._hear())
        number = self.chance.random()
        fate = "killed" if number < KILLED else "paused" if number < KILLED + PAUSED else "spared"
        ended = threading.Event()
        doom = threading.Thread(target=self._befall, args=(child, fate, ended), daemon=True)
        doom.start()
        self._hear()
        seconds = time.monotonic() - began
        ended.set()
        doom.join()
        at_work = self._holds(child)
        self._say("reap")
        code = int(self._hear())
        self.toll.note(fate, code, seconds, at_work=at_work, jumped=bool(clock))
        return code

    def _befall(self, child, fate, ended):
        """Kill or pause a build some time within what one takes, mostly counted from its lease."""
        moment = self.chance.uniform(0, self.toll.typical * 1.1)
        if self.chance.random() < AT_WORK:
            while not self._holds(child) and not ended.wait(0.02):
                pass
            connection.close()
        if fate == "spared" or ended.wait(moment):
            return
        if fate == "killed":
            os.kill(child, signal.SIGKILL)
            return
        with self.toll.lock:
            self.toll.counts["pauses"] += 1
        os.kill(child, signal.SIGSTOP)
        time.sleep(self.chance.uniform(*PAUSE) * self.lease)
        os.kill(child, signal.SIGCONT)

    def _holds(self, child):
        return Lease.objects.filter(owner__contains=f":{child}:").exists()

    def _say(self, word):
        self.server.stdin.write(f"{word}\n")
        self.server.stdin.flush()

    def _hear(self):
        if not (line := self.server.stdout.readline()):
            raise EOFError("its server of forks is gone")
        return line
