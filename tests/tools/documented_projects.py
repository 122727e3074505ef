"""Projects that are complete on a page of docs/, installed like their reader would."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.tools.wheels import UV

ROOT = Path(__file__).parents[2]


def installed(page: str, folder: Path) -> Path:
    """Install the project of a page into a separate directory; return the directory.

    The project is the TOML block with a `[project]` table, and the Python block after its module's file name.
    """
    text = (ROOT / "docs" / page).read_text("utf-8")
    (project,) = (item for item in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if "[project]" in item)
    module = tomllib.loads(project)["project"]["name"].replace("-", "_")
    (code,) = re.findall(rf"`{module}\.py`:\n\n```python\n(.*?)```", text, re.DOTALL)
    source = folder / module
    source.mkdir()
    (source / "pyproject.toml").write_text(project)
    (source / f"{module}.py").write_text(code)
    words = ("pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation")
    target = folder / "site"
    subprocess.run(
        [UV, *words, "--python", sys.executable, "--target", target, source], check=True, timeout=120
    )
    return target
