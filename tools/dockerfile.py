"""Reader of the Dockerfile at the repository's root: its stages, and the images that it publishes."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).parents[1] / "Dockerfile"
_FROM: Final = re.compile(r"--from=(\S+)")


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage: its name, its base, and its instructions in their order, such as `("USER", "1337:1337")`.

    The base is an earlier stage, or an argument with the name of an image, such as `${DEBIAN}`.
    """

    name: str
    base: str
    instructions: tuple[tuple[str, str], ...]

    def arguments(self, word: str) -> list[str]:
        """Return the arguments of each instruction of this name."""
        return [rest for name, rest in self.instructions if name == word]

    @property
    def sources(self) -> frozenset[str]:
        """Return the names of the stage's sources: its base, and the stages from which it copies."""
        return frozenset({self.base, *_FROM.findall(" ".join(self.arguments("COPY")))})


def defaults(text: str) -> Mapping[str, str]:
    """Return the arguments before the first stage, with their default values."""
    return dict(re.findall(r"^ARG (\w+)=(\S+)$", text.partition("\nFROM ")[0], re.MULTILINE))


def stages(text: str) -> Mapping[str, Stage]:
    """Return the stages by name, in their order. A stage without a name gets its number, as in Docker."""
    result: dict[str, Stage] = {}
    for item in re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]:
        first, _, rest = item.partition("\n")
        base, _, name = first.partition(" AS ")
        stage = Stage(name or str(len(result)), base, tuple(_instructions(rest)))
        result[stage.name] = stage
    return result


def published(result: Iterable[Stage]) -> list[str]:
    """Return the stages that are images of their own, because no other stage uses them."""
    every = list(result)
    used = frozenset[str]().union(*(stage.sources for stage in every))
    return [stage.name for stage in every if stage.name not in used]


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    without_comments = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    for line in without_comments.replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        if word:
            yield word, rest.strip()
