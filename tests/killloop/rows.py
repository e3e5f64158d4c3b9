"""The rows: made once, then changed without end, but for the permanent ones."""

import string
import time

from django.db import DatabaseError
from django.utils import timezone

from tests.killloop.models import Item, Word

PERMANENT = 90
"""Rows of each model that stay listed from the first build to the last."""

ROOM = 220
"""Rows of each model; beyond it more go than come."""


def populate(chance):
    """Make the first rows, every second one permanent."""
    Item.objects.bulk_create([Item(permanent=bool(n % 2)) for n in range(2 * PERMANENT)])
    texts = {word(chance) for _ in range(3 * PERMANENT)}
    Word.objects.bulk_create(
        [Word(text=text, permanent=n < PERMANENT) for n, text in enumerate(texts)]
    )


def word(chance, prefix=""):
    """Return a random text in which new ones may come before and behind any other."""
    return prefix + "".join(chance.choices(string.ascii_lowercase, k=8))


def permanent_paths():
    """Return the paths that every generation lists."""
    items = Item.objects.filter(permanent=True).values_list("pk", flat=True)
    words = Word.objects.filter(permanent=True).values_list("text", flat=True)
    return {"/", "/about/", *(f"/items/{pk}/" for pk in items), *(f"/words/{w}/" for w in words)}


def all_paths():
    """Return the paths that a build of now lists."""
    items = Item.objects.filter(public=True).values_list("pk", flat=True)
    words = Word.objects.values_list("text", flat=True)
    return ["/", "/about/", *(f"/items/{pk}/" for pk in items), *(f"/words/{w}/" for w in words)]


def add_items(chance):
    """Let rows come at the end."""
    Item.objects.bulk_create([Item() for _ in range(chance.randint(1, 12))])


def add_words(chance):
    """Let rows come anywhere, or many of them at one place, so that a page has to split."""
    prefix = chance.choice(string.ascii_lowercase) if chance.random() < 0.4 else ""
    texts = {word(chance, prefix) for _ in range(chance.randint(1, 25))}
    Word.objects.bulk_create([Word(text=text) for text in texts], ignore_conflicts=True)


def edit(chance):
    """Change some rows, permanent ones too."""
    for rows in (Item.objects.all(), Word.objects.all()):
        keys = list(rows.values_list("pk", flat=True))
        chosen = chance.sample(keys, min(len(keys), 5))
        rows.filter(pk__in=chosen).update(edited_at=timezone.now())


def hide_or_show(chance):
    """Take some rows out of the sitemap, or let all of a stretch come back."""
    keys = list(Item.objects.filter(permanent=False).values_list("pk", flat=True))
    chosen = sorted(chance.sample(keys, min(len(keys), 15)))
    Item.objects.filter(pk__in=chosen).update(public=chance.random() < 0.5)


def delete(chance):
    """Delete rows, often neighbours, so that pages run thin and merge."""
    for rows, key in ((Item.objects, "pk"), (Word.objects, "text")):
        keys = list(rows.filter(permanent=False).order_by(key).values_list("pk", flat=True))
        surplus = max(3, rows.count() - ROOM)
        start = chance.randrange(max(1, len(keys) - surplus))
        chosen = keys[start : start + surplus]
        if chance.random() < 0.5:
            chosen = chance.sample(keys, min(len(keys), surplus))
        rows.filter(pk__in=chosen).delete()


CHANGES = (add_items, add_words, edit, edit, hide_or_show, delete)


def keep_changing(chance, stopped):
    """Change rows until asked to stop; return how many changes there were."""
    done = 0
    while not stopped():
        try:
            chance.choice(CHANGES)(chance)
            done += 1
        except DatabaseError:  # SQLite has one writer at a time, and that one may be paused.
            time.sleep(0.1)
        time.sleep(chance.uniform(0, 0.06))
    return done
