"""Fixtures of the packaging tests, which are about an *installed* mfcore."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mfcore._base import build
from mfcore._core import _loader


@pytest.fixture(scope="session")
def package():
    """Folder of the installed package."""
    return Path(build.get_include()).parent


@pytest.fixture(scope="session")
def source():
    """Folder of the source tree."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def run():
    """Run a command, tools of this environment first, for a minute at most; gives the finished process."""

    def call(*command, **environment):
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        env = {**os.environ, "PATH": path} | environment
        return subprocess.run(
            [str(word) for word in command], env=env, capture_output=True, text=True, timeout=60
        )

    return call


@pytest.fixture(scope="session")
def python(run):
    """Run a piece of Python in a process of its own; gives the finished process."""

    def call(code, **environment):
        return run(sys.executable, "-c", code, **environment)

    return call


def pytest_generate_tests(metafunc):
    """Give a test that asks for a `level` every instruction-set level usable here."""
    if "level" in metafunc.fixturenames:
        metafunc.parametrize("level", _loader.usable_levels())
