"""The folder of a sweep whose function lies in a file beside it."""

import sys
import types

import mfcore as mf
import pytest
from edited import loaded


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("helpers", "night"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    mf.sweep(loaded(tmp_path), {"x": [1, 2]}, workers=1, folder=tmp_path / "store")
    return tmp_path
