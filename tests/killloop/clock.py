"""A process whose clock is wrong, as that of a host without time synchronisation."""

import datetime as dt
import time

from django.utils import timezone

JUMPS = (0, 0, -3600, 3600)
"""Seconds by which builders' clocks are wrong; each is as likely as the others."""


def jump(seconds):
    """Let this process's clock be fast by so many seconds, or slow; the database's is right."""
    if not seconds:
        return
    right, now, difference = time.time, timezone.now, dt.timedelta(seconds=seconds)
    time.time = lambda: right() + seconds
    timezone.now = lambda: now() + difference
