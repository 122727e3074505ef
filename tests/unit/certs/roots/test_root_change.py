"""Tests of a rotation as a value: its stages, its trusted roots, and the proxies and parts that delay it."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certs.errors import RequestError
from certs.roots.evidence import (
    BlockingPart,
    BlockReason,
    Evidence,
    Holdout,
    Part,
    ServerEvidence,
    behind,
    holdouts,
)
from certs.roots.rotation import Fingerprint, Rotation, Stage, aborted, advanced, begun, without
from meshwright.mesh.identity import ProxyName

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
OLD, NEW = Fingerprint("old"), Fingerprint("new")
CART = ProxyName.parse("cart.shop.prod")


def test_rotation_has_three_stages() -> None:
    """The new root is trusted before it signs, and the old root until all certificates are replaced."""
    first = begun(OLD, NEW, NOW.replace(microsecond=5))
    assert first == Rotation(Stage.TRUSTING, OLD, NEW, NOW, NOW)
    assert (first.trusted, first.new) == ((OLD, NEW), NEW)
    second = advanced(first, LATER)
    assert second == Rotation(Stage.REPLACING, NEW, OLD, NOW, LATER)
    assert (second.trusted, second.new) == ((NEW, OLD), NEW)
    third = advanced(second, LATER)
    assert third == Rotation(Stage.RETIRING, NEW, OLD, NOW, LATER)
    assert (third.trusted, third.new) == ((NEW,), NEW)
    assert advanced(third, LATER) is None


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_abort_from_any_stage_ends_with_only_the_old_root(steps: int) -> None:
    """A second abort of the same rotation is refused."""
    rotation = begun(OLD, NEW, NOW)
    for _ in range(steps):
        rotation = advanced(rotation, NOW) or rotation
    back: Rotation | None = aborted(rotation, LATER)
    last = rotation
    while back is not None:
        with pytest.raises(RequestError, match="the rotation is already being aborted"):
            aborted(back, LATER)
        last, back = back, advanced(back, LATER)
    assert last.trusted == (OLD,)


@given(st.lists(st.sampled_from(["advance", "abort"]), max_size=12))
def test_each_step_shares_a_trusted_root_with_the_next_one(steps: list[str]) -> None:
    """A proxy one step behind still trusts a common root, and the next signer is already trusted."""
    rotation: Rotation | None = begun(OLD, NEW, NOW)
    while rotation is not None and steps:
        match steps.pop(0):
            case "advance":
                after = advanced(rotation, LATER)
            case _ if not rotation.aborted:
                after = aborted(rotation, LATER)
            case _:
                continue
        trusted = set(after.trusted if after is not None else (rotation.signer,))
        assert trusted & set(rotation.trusted), "somebody who has not heard yet trusts nobody"
        if after is not None:
            assert after.signer in rotation.trusted
        rotation = after


def known(**other: object) -> Evidence:
    """Return the evidence of a proxy that delays no stage, with other values for some fields."""
    both = frozenset({OLD, NEW})
    fields = {
        "mesh": both,
        "channel": both,
        "shown": frozenset({NEW}),
        "service": NEW,
        "seen": NOW,
        "issued": NOW,
    }
    return Evidence(CART, **{**fields, **other})  # type: ignore[arg-type]


TRUSTING = begun(OLD, NEW, NOW)
REPLACING = Rotation(Stage.REPLACING, NEW, OLD, NOW, NOW)
RETIRING = Rotation(Stage.RETIRING, NEW, OLD, NOW, NOW)
TAKEN_BACK = Rotation(Stage.RETIRING, OLD, NEW, NOW, NOW, aborted=True)
ONLY_OLD, ONLY_NEW = frozenset({OLD}), frozenset({NEW})
HELD = [
    (TRUSTING, known(), ()),
    (TRUSTING, known(mesh=ONLY_OLD), (BlockReason.MESH_TRUST,)),
    (TRUSTING, known(mesh=None), (BlockReason.MESH_TRUST,)),
    (TRUSTING, known(channel=None), (BlockReason.CHANNEL_TRUST,)),
    (TRUSTING, known(channel=ONLY_OLD, mesh=ONLY_OLD), (BlockReason.MESH_TRUST, BlockReason.CHANNEL_TRUST)),
    # It has its channel's roots as files; its Envoy gets the roots of the mesh when it connects.
    (
        TRUSTING,
        known(seen=None, mesh=None, channel=None),
        (BlockReason.NEVER_CONNECTED, BlockReason.CHANNEL_TRUST),
    ),
    (TRUSTING, known(seen=None, mesh=None), ()),
    (REPLACING, known(), ()),
    # It has not connected since a restart: its Envoy may still present a certificate of the old root.
    (REPLACING, known(service=None, mesh=None, channel=None), (BlockReason.SERVICE_CERTIFICATE,)),
    (REPLACING, known(service=None, seen=None), ()),
    # It has connected with one certificate, and was issued the other one later.
    (REPLACING, known(shown=frozenset({OLD, NEW})), (BlockReason.PROXY_CERTIFICATE,)),
    (REPLACING, known(shown=ONLY_OLD), (BlockReason.PROXY_CERTIFICATE,)),
    (REPLACING, known(service=OLD), (BlockReason.SERVICE_CERTIFICATE,)),
    (
        REPLACING,
        known(seen=None, shown=ONLY_OLD, service=None),
        (BlockReason.NEVER_CONNECTED, BlockReason.PROXY_CERTIFICATE),
    ),
    (RETIRING, known(mesh=ONLY_NEW, channel=ONLY_NEW), ()),
    (RETIRING, known(mesh=None, channel=None, seen=None), ()),
    # It has not connected since a restart: its Envoy and its agent may still trust the old root.
    (RETIRING, known(mesh=None, channel=None), (BlockReason.MESH_TRUST, BlockReason.CHANNEL_TRUST)),
    (RETIRING, known(), (BlockReason.MESH_TRUST, BlockReason.CHANNEL_TRUST)),
    (RETIRING, known(mesh=ONLY_NEW), (BlockReason.CHANNEL_TRUST,)),
    (RETIRING, known(mesh=frozenset(), channel=ONLY_NEW), (BlockReason.MESH_TRUST,)),
    (RETIRING, known(mesh=frozenset({NEW, Fingerprint("of another issuer")}), channel=ONLY_NEW), ()),
    (TAKEN_BACK, known(mesh=None, channel=None), ()),
    (TAKEN_BACK, known(), (BlockReason.MESH_TRUST, BlockReason.CHANNEL_TRUST)),
    (TAKEN_BACK, known(mesh=ONLY_OLD, channel=ONLY_OLD), ()),
]


@pytest.mark.parametrize(("rotation", "evidence", "why"), HELD)
def test_proxy_delays_a_stage_by_its_evidence(
    rotation: Rotation, evidence: Evidence, why: tuple[BlockReason, ...]
) -> None:
    """The reasons depend on the stage and on the known trust and certificates of the proxy."""
    expected = (Holdout(CART, why, evidence.seen, NOW),) if why else ()
    assert holdouts(rotation, [evidence]) == expected


BOTH = frozenset({OLD, NEW})
SELF, HOOK = (
    BlockingPart(Part.SERVER, BlockReason.SERVER_CERTIFICATE),
    BlockingPart(Part.WEBHOOK, BlockReason.WEBHOOK_TRUST, "it is forbidden"),
)
PODS = BlockingPart(Part.PODS, BlockReason.JOINING_TRUST, "it is full")


@pytest.mark.parametrize(
    ("rotation", "ours", "held"),
    [
        (TRUSTING, ServerEvidence(ONLY_OLD, BOTH, BOTH), ()),
        (TRUSTING, ServerEvidence(ONLY_OLD, BOTH), ()),
        (TRUSTING, ServerEvidence(ONLY_OLD, ONLY_OLD), (SELF,)),
        (TRUSTING, ServerEvidence(ONLY_OLD, BOTH, ONLY_OLD, "it is forbidden"), (HOOK,)),
        (TRUSTING, ServerEvidence(ONLY_OLD, ONLY_OLD, frozenset(), "it is forbidden"), (SELF, HOOK)),
        (TRUSTING, ServerEvidence(ONLY_OLD, BOTH, None, "", ONLY_OLD, "it is full"), (PODS,)),
        (TRUSTING, ServerEvidence(ONLY_OLD, BOTH, BOTH, "", BOTH), ()),
        (
            without(TRUSTING, ["pods"], NOW),
            ServerEvidence(ONLY_OLD, BOTH, ONLY_OLD, "it is forbidden", ONLY_OLD),
            (HOOK,),
        ),
        (REPLACING, ServerEvidence(ONLY_NEW, BOTH, BOTH, "", ONLY_OLD), ()),
        (
            without(TRUSTING, ["webhook", "server"], NOW),
            ServerEvidence(ONLY_OLD, ONLY_OLD, ONLY_OLD),
            (SELF,),
        ),
        (REPLACING, ServerEvidence(ONLY_NEW, BOTH, BOTH), ()),
        # One of the two certificates could not be renewed.
        (REPLACING, ServerEvidence(BOTH, BOTH, BOTH), (SELF,)),
        (RETIRING, ServerEvidence(ONLY_NEW, BOTH, ONLY_NEW), (SELF,)),
        # API servers still trust the other root for a while (see admission.roots).
        (RETIRING, ServerEvidence(ONLY_NEW, ONLY_NEW, BOTH), ()),
    ],
)
def test_server_and_webhook_delay_a_stage_by_their_certificates_and_trust(
    rotation: Rotation, ours: ServerEvidence, held: tuple[BlockingPart, ...]
) -> None:
    """The server must present and trust the right roots. API servers must trust the webhook's new root."""
    assert behind(rotation, ours) == held


def test_proxy_that_was_given_up_delays_no_stage() -> None:
    """It is identified by name through all later stages, and keeps the time of its first removal."""
    rotation = without(without(TRUSTING, [str(CART)], NOW), [str(CART), "a.b.c"], LATER)
    assert dict(rotation.given_up) == {"a.b.c": LATER, str(CART): NOW}
    assert holdouts(rotation, [known(mesh=None, channel=None)]) == ()
    after = advanced(rotation, LATER)
    assert after is not None
    assert holdouts(after, [known(shown=ONLY_OLD)]) == ()


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_origin_of_a_rotation_is_known_at_every_stage(steps: int) -> None:
    """This includes the stages of an abort from any stage."""
    rotation: Rotation | None = begun(OLD, NEW, NOW)
    way = []
    while rotation is not None:
        way.append(rotation)
        rotation = advanced(rotation, NOW)
    back: Rotation | None = aborted(way[steps], NOW)
    while back is not None:
        way.append(back)
        back = advanced(back, NOW)
    assert {item.origin for item in way} == {OLD}
