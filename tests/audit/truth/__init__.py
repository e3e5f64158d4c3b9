"""A site of which all is known.

``site`` has the facts, declared as in ``declaring``, ``serving`` answers, and ``facts`` says what
follows for crawls and audits: they are right if they say that of each URL, and nothing else.
"""
