"""Building of parts into the cache.

`bin/` has the programs, `stamp/` their versions, `src/` their go.mod, and `share/` folders of their modules.
Another version of Kubernetes than the default one has the same folders in a folder of its own, for example
`kubernetes-1.35/bin/`.
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

from meshwright.agent.envoy.die_with_parent import bound
from tools.real_parts.parts import KUBERNETES, OTHERS, Kubernetes, Part


class PartError(RuntimeError):
    """Error in building or running a part.

    Output of Go is printed before, other output is in the message.
    """


def cache() -> Path:
    """Return the folder in which built parts are cached."""
    if message := os.environ.get("REAL_PARTS"):
        return Path(message)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "meshwright-parts"


def chosen_kubernetes() -> Kubernetes:
    """Return the supported version of Kubernetes named by $REAL_KUBERNETES, or the default version.

    The name is a minor such as 1.35, or a version such as 1.35.4. Raises PartError for any other name.
    """
    # Not MESHWRIGHT_..., because servers of the tests would take it for their own setting.
    name = os.environ.get("REAL_KUBERNETES") or KUBERNETES.version
    supported = (KUBERNETES, *OTHERS)
    for kubernetes in supported:
        if name in (kubernetes.minor, kubernetes.version):
            return kubernetes
    known = ", ".join(sorted(kubernetes.version for kubernetes in supported))
    raise PartError(f"REAL_KUBERNETES={name} is not among the supported versions: {known}")


def program(part: Part) -> Path:
    """Return the path of a part's program, built or not."""
    return cache() / part.home / "bin" / part.name


def shared(part: Part) -> Path:
    """Return the path of a part's shared folder, built or not."""
    return cache() / part.home / "share" / part.name


def _stamp(part: Part) -> Path:
    return cache() / part.home / "stamp" / part.name


def is_built(part: Part) -> bool:
    """Return whether the part is built in the pinned version."""
    stamp = _stamp(part)
    return program(part).exists() and stamp.exists() and stamp.read_text("ascii").strip() == part.stamp


def has_go() -> bool:
    """Return whether Go is in PATH."""
    return shutil.which("go") is not None


def build(part: Part, print_line: Callable[[str], None] = print) -> Path:
    """Build a part, unless this version is built already; return the program, or raise PartError."""
    if is_built(part):
        return program(part)
    if not has_go():
        raise PartError(f"{part.name} is built with Go 1.26 or newer (https://go.dev), which is not in PATH")
    began = time.monotonic()
    print_line(f"building {part.name} {part.version}")
    source = cache() / part.home / "src" / part.name
    source.mkdir(parents=True, exist_ok=True)
    own = Path(download(part)["GoMod"]).read_text("utf-8") if part.staging else ""
    (source / "go.sum").unlink(missing_ok=True)
    (source / "go.mod").write_text(part.module_file(own), "utf-8")
    if part.source:
        (source / ("main_test.go" if part.is_test else "main.go")).write_text(part.source, "utf-8")
    stamp = _stamp(part)
    for path in (program(part), stamp):
        path.parent.mkdir(exist_ok=True)
    fresh = program(part).with_suffix(".new")
    settings = " ".join(f"-X {name}={value}" for name, value in (part.variables or {}).items())
    linked = ("-trimpath", "-ldflags", f"-s -w {settings}".rstrip(), "-o", str(fresh), part.package)
    # Without vet, which would read every package that the test imports.
    verb = ("test", "-c", "-vet=off") if part.is_test else ("build",)
    _go(source, *verb, *linked, toolchain=part.toolchain)
    # The old stamp goes first, so that an interrupted build never has the new program with the old version.
    stamp.unlink(missing_ok=True)
    fresh.replace(program(part))
    if part.folder:
        _share(part, Path(download(part)["Dir"]) / part.folder)
    stamp.write_text(part.stamp + "\n", "ascii")
    print_line(f"built {part.name} in {time.monotonic() - began:.0f} s")
    return program(part)


def _share(part: Part, folder: Path) -> None:
    """Copy a folder of a part's Go module to the cache, because Go's module cache is read-only."""
    shutil.rmtree(shared(part), ignore_errors=True)
    shared(part).mkdir(parents=True)
    for path in folder.iterdir():
        shutil.copyfile(path, shared(part) / path.name)


def download(part: Part) -> dict[str, Any]:
    """Download a part's module into Go's cache.

    Return the JSON of `go mod download`: `Dir`, `GoMod` and more.
    """
    source = cache() / "src"
    source.mkdir(parents=True, exist_ok=True)
    words = ("mod", "download", "-json", f"{part.module}@v{part.version}")
    return dict(json.loads(_go(source, *words, toolchain=part.toolchain)))


def _go(folder: Path, *words: str, toolchain: str = "") -> str:
    """Run Go with a new temporary folder, which is removed in any case; return the output.

    Go downloads the version `toolchain` of itself, if this is given and another one is installed.
    """
    with tempfile.TemporaryDirectory(prefix="work-", dir=cache(), ignore_cleanup_errors=True) as work:
        environment = {**os.environ, "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0", "GOTMPDIR": work}
        if toolchain:
            environment["GOTOOLCHAIN"] = f"go{toolchain}"
        try:
            # Bound to this process, because run() kills Go only once Popen has returned: a signal before
            # that would leave Go running.
            command = bound(["go", *words])
            return subprocess.run(
                command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True
            ).stdout
        except subprocess.CalledProcessError as error:
            raise PartError(f"`go {words[0]}` failed in {folder}") from error
