"""Tests that root programs of the node, and the schema writer, follow no planted symbolic link."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from meshwright.cli.offline import reference
from meshwright.kubernetes.cni import relay
from meshwright.kubernetes.cni.daemon_socket import served
from meshwright.kubernetes.cni.keeper import Keeper
from meshwright.kubernetes.cni.program import Program, remove

CONTAINER = {"CNI_CONTAINERID": "abc", "CNI_NETNS": "/proc/1/ns/net", "CNI_IFNAME": "eth0"}


def _note(folder: Path) -> None:
    config = {"cniVersion": "1.1.0", "socket": str(folder / "none.sock"), "prevResult": {}}
    words = {**CONTAINER, "CNI_COMMAND": "ADD", "CNI_ARGS": "K8S_POD_NAMESPACE=a;K8S_POD_NAME=b"}
    relay.run(words, json.dumps(config).encode())


def _list(folder: Path) -> None:
    network = {
        "cniVersion": "1.0.0",
        "name": "net",
        "plugins": [{"type": "bridge"}, {"type": "meshwright-cni"}],
    }
    (folder / "10-net.conflist").write_text(json.dumps(network))
    assert Keeper(folder, {}, Program(folder)).take() == ("10-net.conflist",)


def _script(folder: Path) -> None:
    (folder / "meshwright-cni").write_text("#!/bin/sh\n")
    remove(folder)


def _schemas(folder: Path) -> None:
    reference.write(folder)


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (_note, "missed/abc.new"),
        (_list, "10-net.conflist.meshwright-new"),
        (_script, ".meshwright-cni.new"),
        (_schemas, "all.json"),
    ],
)
def test_planted_link_is_not_written_through(
    tmp_path: Path, write: Callable[[Path], None], name: str
) -> None:
    """The target of the link keeps its content, and the link is gone."""
    victim, folder = tmp_path / "victim", tmp_path / "folder"
    victim.write_text("whole")
    (folder / name).parent.mkdir(parents=True)
    (folder / name).symlink_to(victim)
    write(folder)
    assert victim.read_text() == "whole"
    assert not (folder / name).is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder away")
@pytest.mark.parametrize("is_link", [True, False])
async def test_daemon_refuses_a_run_folder_that_is_a_link_or_belongs_to_another_user(
    tmp_path: Path, *, is_link: bool
) -> None:
    """The daemon raises OSError, and the folder keeps its mode and stays empty."""
    there, run = tmp_path / "there", tmp_path / "run"
    there.mkdir(mode=0o755)
    if is_link:
        run.symlink_to(there)
    else:
        os.chown(there, 12345, 12345)
        run = there
    with pytest.raises(OSError, match="Not a directory" if is_link else "the folder belongs to user 12345"):
        async with asyncio.timeout(30), served(run, None):  # type: ignore[arg-type] # nobody asks
            pass
    assert (there.stat().st_mode & 0o777, [*there.iterdir()]) == (0o755, [])
