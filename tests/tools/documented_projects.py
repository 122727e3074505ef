"""Projects that stand complete on a page of docs/, installed as their reader would."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.tools.wheels import UV

ROOT = Path(__file__).parents[2]


def installed(page: str, folder: Path) -> Path:
    """Install the project on a page into a directory of its own, and return that.

    It is the block of TOML with a project, and the block of Python after the name of its module.
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
