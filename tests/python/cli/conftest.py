"""Fixtures that several files share."""

import pytest
from command_line import CONFIG


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a small configuration, in which commands are run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(CONFIG)
    return tmp_path
