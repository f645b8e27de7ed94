import sys

import pytest

from command_line import vitrail


@pytest.fixture
def folder(tmp_path):
    """Where the command is run; modules with files of their own override it."""
    return tmp_path


@pytest.fixture
def run(monkeypatch, capsys, folder):
    """Run `vitrail` with these words."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "local_code", raising=False)
    return lambda *words, stdin="": vitrail(monkeypatch, capsys, *words, stdin=stdin)
