"""The images that tests run are what the Dockerfile says: how they start, as whom, and where what is.

They are made of programs of this machine, of which a base image has few: `make test-kubernetes` brings them.
"""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from demo.kubernetes import images
from demo.kubernetes.newcomer import MANIFESTS
from demo.kubernetes.store import SCENES, applications, scene
from tests.tools.dockerfile import FILE, Stage, stages
from tools.real_parts.images import own_images
from tools.real_parts.images.archives import Image
from tools.real_parts.images.layers import Text

pytestmark = pytest.mark.usefixtures("node_parts")


def _pairs(stage: Stage, word: str) -> dict[str, str]:
    lines = [item for rest in stage.arguments(word) for item in shlex.split(rest)]
    return dict(item.split("=", 1) for item in lines)


def _made(name: str, folder: Path) -> Image:
    if name == "control-plane":
        return own_images.control_plane("1")
    (folder / "envoy").write_text("")
    return own_images.proxy("1", folder / "envoy")


@pytest.mark.parametrize("name", ["control-plane", "proxy"])
def test_an_image_is_what_its_target_says(name: str, tmp_path: Path) -> None:
    """Entrypoint, command, user, environment, labels, and all that is copied."""
    stage, image = stages(FILE.read_text("utf-8"))[name], _made(name, tmp_path)
    answer: dict[str, Any] = dict(stage.instructions)
    assert json.loads(answer["ENTRYPOINT"]) == list(image.entrypoint)
    assert json.loads(answer["CMD"]) == list(image.command)
    assert answer["USER"] == image.user
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", image.user), (
        "Kubernetes sees by a number alone that it is not root"
    )
    assert _pairs(stage, "ENV") == image.environment
    assert _pairs(stage, "LABEL") == image.labels
    copied = [rest.split()[-1] for rest in stage.arguments("COPY")]
    for path in copied:
        assert any(item == path or item.startswith(f"{path}/") for item in image.everything), path
    assert isinstance(image.everything["/opt/meshwright/bin/meshwright"], Text)


def test_whatever_manifests_start_is_in_the_image() -> None:
    """Each command, of scenes and of the newcomer's shop as well."""
    files = images.bookstore().everything
    documents = [*applications(), *(item for file in SCENES.iterdir() for item in scene(file.name))]
    text = (MANIFESTS / "shop.yaml").read_text("utf-8")
    started = [
        container["command"][0]
        for document in documents
        for container in document.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ())
        if "command" in container
    ]
    assert set(started) == {"/bookbuyer", "/bookthief", "/bookstore", "/bookwarehouse", "/purchase"}
    assert set(started) <= set(files)
    assert text.count(images.BOOKSTORE) == 2
