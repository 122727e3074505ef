"""docs/settings.md is what the program prints, and says of each setting all that there is to know."""

import os
from pathlib import Path

import pytest

from meshwright.controller.settings.page import Row, page, rows
from meshwright.controller.settings.settings import Settings, load

ROOT = Path(__file__).parents[4]
GIVEN = {"mesh": "m", "state": "s"}


def test_the_page_is_what_the_program_makes() -> None:
    """`meshwright serve --settings > docs/settings.md` mends it."""
    assert (ROOT / "docs" / "settings.md").read_text() == page()


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_a_default_is_read_as_it_is_written(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the environment; each setting says what it is and what it is for."""
    assert row.meaning.endswith(".")
    assert row.what
    assert row.variable == f"MESHWRIGHT_{row.name.upper()}"
    if row.default:
        monkeypatch.setenv(row.variable, row.default)
        assert os.environ[row.variable] == row.default
        assert getattr(load(GIVEN), row.name) == Settings.model_fields[row.name].default
    else:
        assert row.default is None or not Settings.model_fields[row.name].default
