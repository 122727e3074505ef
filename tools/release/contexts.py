"""Build contexts of the images: a Dockerfile with the stages of one image, and the copied files.

`docker build -t meshwright/proxy:0.2.0 - < meshwright-proxy-0.2.0-context.tar.gz` builds the image without a
clone. Each context has the Dockerfile of one image, so that builders without `--target` make this image.
"""

import re
import shlex
from collections.abc import Iterator, Mapping

from tools.dockerfile import Stage, stages
from tools.release.archives import File, Files, below, pack

_FROM = re.compile(r"^FROM \S+ AS (\S+)$", re.MULTILINE)


class ContextError(Exception):
    """Error for a Dockerfile from which no context can be made; the message names the instruction."""


def context(files: Files, image: str, version: str, time: int) -> bytes:
    """Return the build context of an image as a tar.gz, which `docker build -` reads."""
    return pack(context_files(files, image, version), "", time)


def context_files(files: Files, image: str, version: str) -> dict[str, File]:
    """Return the files of an image's build context: the Dockerfile, then the copied files by path.

    Raises ContextError if a `COPY` names a path outside the commit.
    """
    text = files["Dockerfile"].text
    needed = stages_of(image, stages(text))
    result: dict[str, File] = {}
    for stage in needed.values():
        for source in copied(stage):
            found = _found(files, source)
            if not found:
                raise ContextError(
                    f"Dockerfile: stage {stage.name} copies {source}, which is not in the commit"
                )
            result |= found
    dockerfile = File(_dockerfile(text, frozenset(needed), image, version).encode())
    return {"Dockerfile": dockerfile, **dict(sorted(result.items()))}


def stages_of(image: str, known: Mapping[str, Stage]) -> dict[str, Stage]:
    """Return the stages for an image, in the order of the Dockerfile."""
    needed, waiting = set[str](), [image]
    while waiting:
        name = waiting.pop()
        if name in known and name not in needed:
            needed.add(name)
            waiting += known[name].sources
    return {name: stage for name, stage in known.items() if name in needed}


def copied(stage: Stage) -> Iterator[str]:
    """Yield the paths of the context that a stage copies. Raises ContextError for the whole context."""
    for arguments in stage.arguments("COPY"):
        words = shlex.split(arguments)
        if any(word.startswith("--from=") for word in words):
            continue
        *sources, _ = (word for word in words if not word.startswith("--"))
        for source in sources:
            path = source.removeprefix("./").rstrip("/")
            if path in ("", ".") or "*" in path:
                # Then the context would have to be the whole clone, with whatever is there.
                raise ContextError(f"Dockerfile: stage {stage.name} copies {source}: name files or folders")
            yield path


def _found(files: Files, path: str) -> dict[str, File]:
    if path in files:
        return {path: files[path]}
    return {f"{path}/{name}": file for name, file in below(files, path).items()}


def _dockerfile(text: str, needed: frozenset[str], image: str, version: str) -> str:
    """Return the Dockerfile with the stages of one image.

    A paragraph of the Dockerfile is one stage with the comments above it; the first has the arguments.
    """
    head, *rest = text.strip().split("\n\n")
    arguments = [line for line in head.splitlines() if line.startswith("ARG ")]
    if any(len(_FROM.findall(paragraph)) != 1 for paragraph in rest):
        raise ContextError(
            "Dockerfile: each stage must be one paragraph, FROM ... AS name, without blank lines"
        )
    kept = [paragraph for paragraph in rest if _FROM.findall(paragraph)[0] in needed]
    first = [
        f"# The image meshwright/{image} of Meshwright {version}, for example:",
        f"#   docker build -t meshwright/{image}:{version} - < meshwright-{image}-{version}-context.tar.gz",
        "# Tags of base images move: pin each by digest with --build-arg.",
        *arguments,
    ]
    return "\n\n".join(("\n".join(first), *kept)) + "\n"
