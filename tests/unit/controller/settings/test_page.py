"""Tests of docs/operate/settings.md: the page equals the program's output and describes each setting."""

import os
from pathlib import Path

import pytest

from meshwright.controller.settings.page import Row, page, rows
from meshwright.controller.settings.settings import Settings, load

ROOT = Path(__file__).parents[4]
GIVEN = {"mesh": "m", "state": "s"}


def test_settings_page_equals_the_program_s_output() -> None:
    """The page is generated with `meshwright serve --settings > docs/operate/settings.md`."""
    assert (ROOT / "docs" / "operate" / "settings.md").read_text() == page()


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_documented_default_is_read_from_the_environment(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each documented default is parsed to the real one, and each setting has a type and a meaning."""
    assert row.meaning.endswith(".")
    assert row.what
    assert row.variable == f"MESHWRIGHT_{row.name.upper()}"
    if row.default:
        monkeypatch.setenv(row.variable, row.default)
        assert os.environ[row.variable] == row.default
        assert getattr(load(GIVEN), row.name) == Settings.model_fields[row.name].default
    else:
        assert row.default is None or not Settings.model_fields[row.name].default
