"""Tests that the images of tests equal the Dockerfile: start command, user, and paths of files.

They consist of programs of this machine, only a few of which are in a base image: `make test-kubernetes`
installs them.
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
from tools.dockerfile import FILE, Stage, stages
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
def test_image_equals_its_dockerfile_target(name: str, tmp_path: Path) -> None:
    """Entrypoint, command, user, environment, labels and copied files are compared."""
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


def test_every_command_of_the_manifests_is_in_the_image() -> None:
    """Commands of scenes and of the shop for newcomers are included."""
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
