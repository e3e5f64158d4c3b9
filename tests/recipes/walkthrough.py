"""Follows a page of the documentation line by line, with nothing installed but what it installs."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import closing

import pytest

from tests.test_docs import ROOT

FOREIGN = re.compile(
    r"(PYTHON|PYTEST|COV|DJANGO|TEST_|VIRTUAL_ENV|PIP_(USER|TARGET|PREFIX|CONSTRAINT))"
)
"""Variables that would lead a command out of the environment, or into these tests."""

SECONDS = 300
"""How long a command may take."""

SHOWN_ADDRESS = "http://127.0.0.1:8000"
"""Where the pages say that the development server is."""


def fresh_environment(folder, *, python=sys.executable, wheel=None, django=""):
    """Make an empty virtual environment, for which the package is a wheel, by default a new one.

    ``django`` says which versions are allowed, such as "~=5.2.0". Return the variables of a shell
    in which the environment is activated. Without a network the test is skipped, under CI it fails.
    """
    folder.mkdir(exist_ok=True)
    try:
        if wheel is None:
            pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
            call([*pip, "--wheel-dir", str(folder), str(ROOT)], cwd=folder)
            (wheel,) = folder.glob("*.whl")
        call([python, "-m", "venv", str(folder / "venv")], cwd=folder)
    except AssertionError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no wheel, or no environment: {error}")
    constraint = folder / "constraint.txt"
    constraint.write_text(f"django-sitemapkit @ {wheel.as_uri()}\ndjango{django}\n")
    return {
        **own_variables(),
        "PATH": os.pathsep.join([str(folder / "venv" / "bin"), os.environ["PATH"]]),
        "PIP_CONSTRAINT": str(constraint),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def own_variables():
    """Return the variables of this process that do not concern the tests."""
    return {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}


def call(command, **options):
    """Run a command to its end, and return what it prints."""
    options = {"env": own_variables(), "timeout": SECONDS, **options}
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


class Walkthrough:
    """A reader who copies one block after the other into a folder or a terminal.

    Python goes into the file that its first line names: at the end of settings, else in the place
    of what is there. Lines of ``sh`` are run; ``curl`` asks the server that ``runserver`` starts.
    XML must be what the command before it printed, but for the moments in it.
    """

    def __init__(self, folder, variables):
        self.folder = folder
        self.variables = variables
        self.output = ""
        self._server = None
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"

    def follow(self, blocks):
        """Do what each block shows."""
        for block in blocks:
            if block.language == "python":
                self.write(block.file, block.text)
            elif block.language == "sh":
                for line in block.text.splitlines():
                    self.output = self.run(line)
            elif block.language == "xml":
                assert without_moments(self.output) == without_moments(block.text), str(block)

    def write(self, name, text):
        """Write a file."""
        path = self.folder / name
        with path.open("a" if path.name == "settings.py" else "w", encoding="utf-8") as file:
            file.write(text)

    def run(self, line):
        """Type a line into the terminal, and return what it prints."""
        if line == "python manage.py runserver":
            return self.serve(f"{line} {self.address} --noreload")
        if line.startswith("curl "):
            address = line.removeprefix("curl ")
            assert address.startswith(SHOWN_ADDRESS), line
            return self.get(address.removeprefix(SHOWN_ADDRESS)).read().decode()
        return call(line, shell=True, cwd=self.folder, env=self.variables)

    def get(self, path):
        """Return the server's response at a path."""
        return urllib.request.urlopen(f"http://{self.address}{path}", timeout=SECONDS)

    def serve(self, line):
        """Start the server, and wait until it answers."""
        self._server = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {line}"],
            cwd=self.folder, env=self.variables, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        host, _, port = self.address.partition(":")
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and self._server.poll() is None:
            with closing(socket.socket()) as connection:
                if connection.connect_ex((host, int(port))) == 0:
                    return ""
            time.sleep(0.1)
        pytest.fail(f"the server did not start: {line}")

    def close(self):
        """Stop the server."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait(timeout=SECONDS)


def without_moments(xml):
    """Return XML in which all dates are the same."""
    return re.sub("<lastmod>[^<]+</lastmod>", "<lastmod>…</lastmod>", xml)
