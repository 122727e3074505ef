"""Command `python -m tools.chart_schema`: write the chart's values.schema.json.

The schema is generated from the types of the chart's values and of the server's settings.
"""

import json
from pathlib import Path
from typing import Final

from meshwright.chart.values import schema
from meshwright.controller.settings.schema import settings_schema

_PATH: Final = Path(__file__).parents[1] / "deploy" / "chart" / "meshwright" / "values.schema.json"


def text() -> str:
    """Return the expected contents of the chart's values.schema.json; a test compares them with the file."""
    made = schema(settings_schema())
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    _PATH.write_text(text(), "utf-8")
