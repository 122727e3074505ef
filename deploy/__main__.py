"""Write the chart's values.schema.json anew: it is made of the types."""

import json
from pathlib import Path

from deploy.values import schema

if __name__ == "__main__":
    path = Path(__file__).parent / "chart" / "meshwright" / "values.schema.json"
    path.write_text(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", "utf-8")
