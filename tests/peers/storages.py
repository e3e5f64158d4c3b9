"""A disk on which something may happen while a file is saved."""

import re

from django.core.files.storage import FileSystemStorage


class Disk(FileSystemStorage):
    """Notes the names that are saved; what is in ``before`` happens first, once."""

    saved: list[str] = []
    before = {}
    """Functions, by the pattern of the name that is going to be saved when they are called."""

    def save(self, name, content, max_length=None):
        for pattern in [each for each in self.before if re.search(each, name)]:
            self.before.pop(pattern)()
        self.saved.append(name)
        return super().save(name, content, max_length)
