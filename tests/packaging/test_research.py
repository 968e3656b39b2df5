"""The scripts of examples/research run at their small size, draw, and stand in the guide with a picture."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "examples" / "research").glob("*.py"))
GUIDE = (ROOT / "docs/guides/research.md").read_text("utf-8")
KINDS = {".png": b"\x89PNG", ".gif": b"GIF8"}


def picture_of(script):
    """The picture of a script that the guide shows."""
    (found,) = (ROOT / "docs" / "figures" / "research").glob(f"{script.stem}.*")
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.stem)
def test_every_script_runs_small_in_a_new_process_and_writes_its_picture(script, tmp_path):
    picture = tmp_path / f"picture{picture_of(script).suffix}"
    call = [sys.executable, str(script), "--small", "--picture", str(picture)]
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        call, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=300
    )
    if "torch" in script.stem and importlib.util.find_spec("torch") is None:  # of the extra bench
        assert "No module named 'torch'" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes().startswith(KINDS[picture.suffix])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.stem)
def test_every_script_is_short_and_stands_in_the_guide_with_its_picture(script):
    assert len(script.read_text("utf-8").splitlines()) <= 40
    assert f"python examples/research/{script.name}" in GUIDE
    assert f"(../figures/research/{picture_of(script).name})" in GUIDE
    assert picture_of(script).stat().st_size < 300_000
