"""Tests of the text of a root rotation, line by line."""

from pathlib import Path

import pytest

from meshwright.cli.commands.rotate_root import rotate_root, text
from meshwright.cli.errors import CommandFailed

CHANGE = {
    "stage": "trusting",
    "number": 1,
    "stages": 3,
    "aborted": False,
    "began": "2026-11-22T17:00:00+00:00",
    "since": "2026-11-22T17:05:00+00:00",
    "signer": "7a740101fb39acd12efe48707e9fb4439cb6ab124fc878ecf33ca2cb89741686",
    "other": "5cdeaa61c8a888b2b89303a2c8b2b6d70f0368715249a18fe015a0dffeec651a",
    "trusted": [],
    "waiting_for": [
        {"proxy": "a.store.shop", "why": ["never-connected", "channel-trust"], "last_seen": None},
        {"proxy": "b.store.shop", "why": ["of-tomorrow"], "last_seen": "2026-11-21T17:00:00+00:00"},
    ],
    "given_up": {"c.store.shop": "2026-11-22T17:06:00+00:00"},
}


def test_proxies_that_a_rotation_waits_for_are_shown_with_reasons() -> None:
    """Known reasons are sentences, and an unknown one is printed as it is."""
    assert list(text(CHANGE)) == [
        (
            "stage 1 of 3, trusting: all proxies learn to trust root 5cdeaa61c8a888b2; "
            "root 7a740101fb39acd1 signs"
        ),
        "since 2026-11-22T17:05:00+00:00, begun 2026-11-22T17:00:00+00:00",
        "waiting for 2 proxies:",
        "  a.store.shop: never connected; its agent has not confirmed the roots (last seen never)",
        "  b.store.shop: of-tomorrow (last seen 2026-11-21T17:00:00+00:00)",
        "given up: c.store.shop",
    ]


def test_aborted_and_missing_rotations_are_shown() -> None:
    """An abort shows the way back. Without waiting proxies the next stage is announced."""
    back = {**CHANGE, "stage": "replacing", "number": 2, "aborted": True, "waiting_for": [], "given_up": {}}
    assert next(iter(text(back))) == (
        "going back, stage 2 of 3, replacing: root 7a740101fb39acd1 signs; "
        "certificates signed by root 5cdeaa61c8a888b2 are replaced"
    )
    assert list(text(back))[2:] == ["all proxies are done: the next stage begins in a moment"]
    assert list(text({"stage": None})) == ["no root rotation is running"]


def test_waiting_for_the_server_is_shown_with_its_reason() -> None:
    """The server's own certificates and the cluster's webhook configuration are shown.

    The cluster's error is added.
    """
    ours = [
        {"part": "server", "why": "server-certificate", "reason": None},
        {"part": "webhook", "why": "webhook-trust", "reason": "RBAC grants no `patch`"},
    ]
    assert list(text({**CHANGE, "waiting_for": [], "also_waiting_for": ours, "given_up": {}}))[2:] == [
        "waiting for the server: the server's own certificates are not signed by these roots yet",
        (
            "waiting for the webhook: the webhook configuration in the cluster does not have the roots yet "
            "(RBAC grants no `patch`)"
        ),
    ]


def test_waiting_for_other_servers_is_shown_with_their_names() -> None:
    """All other servers are listed, and those that hold up the next step have their reason."""
    parts = [
        {"part": "other-server", "why": "no-report", "reason": "a-5fd8"},
        {"part": "other-server", "why": "step-not-taken", "reason": "b-77ab"},
    ]
    servers = {"also_waiting_for": parts, "other_servers": ["a-5fd8", "b-77ab", "c-9310"]}
    assert list(text({**CHANGE, "waiting_for": [], "given_up": {}, **servers}))[2:] == [
        "other servers of the mesh: a-5fd8, b-77ab, c-9310",
        "waiting for the server a-5fd8: it has not reported what its proxies have",
        "waiting for the server b-77ab: it has not taken over the last step",
    ]


def test_empty_age_starts_no_rotation() -> None:
    """An unset shell variable gives an empty age, which is an error before any request."""
    with pytest.raises(
        CommandFailed, match="--give-up-older-than is '': must be a number followed by s, m, h or d"
    ):
        rotate_root(Path("none"), older_than="")
