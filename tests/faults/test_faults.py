"""A bounded part of every attack, about ten seconds each, for the ordinary tests."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ATTACKS = [
    "requests",
    "archives",
    "disks",
    "memory",
    "signals",
    "threads",
    "runtimes",
    "state",
    "kills",
    "fuzz",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_is_lost_silent_or_unclear_under(attack):
    # In a process of its own: attacks fork, and forks are for processes without other threads. Seed 1; how
    # many calls fit into the time depends on the machine, what each of them does does not.
    command = [sys.executable, "-m", "tests.faults", "--only", attack, "--minutes", "0.15"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=540, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_an_attack_that_makes_no_call_is_a_failure():
    command = [sys.executable, "-m", "tests.faults", "--only", "fuzz", "--minutes", "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "no call was made, so nothing is shown, by fuzz" in done.stdout
