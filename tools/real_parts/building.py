"""Building parts into a cache: `bin/` has the programs, `stamp/` their versions, `src/` their go.mod.

`share/` has what goes with a program: a folder of its module.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.real_parts.parts import Part


class PartError(RuntimeError):
    """A part could not be built or run; what the program said stands above, or in the message."""


def cache() -> Path:
    """Return the folder that holds what was built."""
    if told := os.environ.get("REAL_PARTS"):
        return Path(told)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "meshwright-parts"


def program(part: Part) -> Path:
    """Return where a part's program is, or will be."""
    return cache() / "bin" / part.name


def shared(part: Part) -> Path:
    """Return where a part's folder is, or will be."""
    return cache() / "share" / part.name


def is_built(part: Part) -> bool:
    """Say whether the part is there, in its version."""
    stamp = cache() / "stamp" / part.name
    return program(part).exists() and stamp.exists() and stamp.read_text("ascii").strip() == part.stamp


def has_go() -> bool:
    """Say whether Go is in the path."""
    return shutil.which("go") is not None


def build(part: Part, say: Callable[[str], None] = print) -> Path:
    """Build a part unless it is there in this version; return its program, or raise PartError."""
    if is_built(part):
        return program(part)
    if not has_go():
        raise PartError(
            f"{part.name} is built with Go (https://go.dev), 1.26 or newer, which is not in the path"
        )
    began = time.monotonic()
    say(f"building {part.name} {part.version}")
    source = cache() / "src" / part.name
    source.mkdir(parents=True, exist_ok=True)
    own = Path(download(part)["GoMod"]).read_text("utf-8") if part.staging else ""
    (source / "go.sum").unlink(missing_ok=True)
    (source / "go.mod").write_text(part.module_file(own), "utf-8")
    if part.source:
        (source / "main.go").write_text(part.source, "utf-8")
    for folder in ("bin", "stamp"):
        (cache() / folder).mkdir(exist_ok=True)
    fresh = program(part).with_suffix(".new")
    settings = " ".join(f"-X {name}={value}" for name, value in (part.variables or {}).items())
    _go(
        source, "build", "-trimpath", "-ldflags", f"-s -w {settings}".rstrip(), "-o", str(fresh), part.package
    )
    stamp = cache() / "stamp" / part.name
    stamp.unlink(missing_ok=True)  # it is that of the program before
    fresh.replace(program(part))
    if part.folder:
        _share(part, Path(download(part)["Dir"]) / part.folder)
    stamp.write_text(part.stamp + "\n", "ascii")
    say(f"built {part.name} in {time.monotonic() - began:.0f} s")
    return program(part)


def _share(part: Part, folder: Path) -> None:
    """Keep a folder of a module, which nobody may write to where it is, in place of what was there."""
    shutil.rmtree(shared(part), ignore_errors=True)
    shared(part).mkdir(parents=True)
    for each in folder.iterdir():
        shutil.copyfile(each, shared(part) / each.name)


def download(part: Part) -> dict[str, Any]:
    """Have a part's module in Go's own cache; return what Go says of it: `Dir`, `GoMod` and more."""
    source = cache() / "src"
    source.mkdir(parents=True, exist_ok=True)
    return dict(json.loads(_go(source, "mod", "download", "-json", f"{part.module}@v{part.version}")))


def _go(folder: Path, *words: str) -> str:
    """Run Go; what it has written on the way goes with it, however it ends."""
    with tempfile.TemporaryDirectory(prefix="work-", dir=cache(), ignore_cleanup_errors=True) as work:
        environment = {**os.environ, "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0", "GOTMPDIR": work}
        try:
            return subprocess.run(
                ["go", *words], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True
            ).stdout
        except subprocess.CalledProcessError as error:
            raise PartError(f"`go {words[0]}` failed in {folder}") from error
