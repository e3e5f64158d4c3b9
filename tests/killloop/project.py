"""The project of one run: its folder, its database, and the processes around it."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.killloop.places import place

ROOT = Path(__file__).resolve().parents[2]

SERVERS = {
    "postgresql": ("TEST_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432"),
    "mariadb": ("TEST_MARIADB", "mysql://root@127.0.0.1:3306"),
}
"""Where the servers are, by the variables that tox.ini has too."""


class Project:
    """Everything that a run needs, made on entry and gone on exit.

    The folder stays where the run failed: it has the logs and the offending response.
    """

    def __init__(self, database, storage="disk"):
        self.kind = database
        self.storage = storage
        self.folder = Path(tempfile.mkdtemp(prefix="killloop-"))
        self.roles = []

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "tests.killloop.settings",
            "KILLLOOP_BASE_URL": f"http://127.0.0.1:{self.listener.getsockname()[1]}",
            "KILLLOOP_FOLDER": str(self.folder),
            "KILLLOOP_STORAGE": self.storage,
            "KILLLOOP_SOCKET": str(self.listener.fileno()),
            "TEST_DATABASE_URL": self._url(),
        }
        if self.storage == "s3":
            from tests.s3 import start_server

            self.s3, os.environ["KILLLOOP_S3"] = start_server()
        place().create()
        import django
        from django.core.management import call_command

        django.setup()
        if self.kind != "sqlite":
            self._on_server("DROP DATABASE IF EXISTS {}", "CREATE DATABASE {}")
        call_command("migrate", run_syncdb=True, verbosity=0)
        return self

    def _url(self):
        if self.kind == "sqlite":
            return f"sqlite:///{self.folder}/db.sqlite3"
        variable, default = SERVERS[self.kind]
        return f"{os.environ.get(variable, default)}/killloop_{os.getpid()}"

    def _on_server(self, *statements):
        from django.db import connection

        connection.close()
        name = connection.ops.quote_name(connection.settings_dict["NAME"])
        with connection._nodb_cursor() as cursor:
            for statement in statements:
                cursor.execute(statement.format(name))

    def start(self, role, seed=0, **options):
        """Start a process of a role; what it says in error goes to a log of its own."""
        path = self.folder / f"{role}-{seed}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.killloop.roles", role, str(seed)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                pass_fds=[self.listener.fileno()],
                **options,
            )
        process.role, process.log = role, path
        self.roles.append(process)
        return process

    def fallen(self):
        """Return the first process that has ended by itself, with what it said, or None."""
        for process in self.roles:
            if process.poll() is not None:
                return f"{process.role} ended by itself:\n{process.log.read_text()[-3000:]}"
        return None

    def end(self, process):
        """Ask a process to end; return what it has counted, or raise RuntimeError if it failed."""
        self.roles.remove(process)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=120)
        if process.returncode:
            raise RuntimeError(f"{process.role} failed:\n{process.log.read_text()[-3000:]}")
        lines = said.splitlines()
        return json.loads(lines[-1]) if lines else {}

    def __exit__(self, kind, *_):
        for process in self.roles:
            process.kill()
            process.wait()
        self.listener.close()
        if self.storage == "s3":
            self.s3.communicate()
        if self.kind != "sqlite":
            force = " WITH (FORCE)" if self.kind == "postgresql" else ""
            self._on_server("DROP DATABASE IF EXISTS {}" + force)
        if kind is None:
            import shutil

            shutil.rmtree(self.folder)
