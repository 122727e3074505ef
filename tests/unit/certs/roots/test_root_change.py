"""A change of the root, as a value: any way through it, and what is trusted meanwhile."""

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


def test_a_change_goes_through_three_stages() -> None:
    """The new root is trusted before it signs, and the old one after it has signed."""
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
def test_an_abort_ends_with_the_old_root_alone(steps: int) -> None:
    """At every stage; once only."""
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
def test_whoever_keeps_up_is_never_left_without_a_root(steps: list[str]) -> None:
    """Who has done what a step waits for is accepted by all, and accepts all, in the next."""
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
    """Return a proxy that has everything, but for something."""
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
    # Its files were written before: what its Envoy verifies peers by comes when it comes.
    (
        TRUSTING,
        known(seen=None, mesh=None, channel=None),
        (BlockReason.NEVER_CONNECTED, BlockReason.CHANNEL_TRUST),
    ),
    (TRUSTING, known(seen=None, mesh=None), ()),
    (REPLACING, known(), ()),
    # Since a restart it has not come: its Envoy may still show what the former root has signed.
    (REPLACING, known(service=None, mesh=None, channel=None), (BlockReason.SERVICE_CERTIFICATE,)),
    (REPLACING, known(service=None, seen=None), ()),
    # It has come with one, and was issued the other since.
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
    # Since a restart it has not come: until then its Envoy and its agent believe whom they believed.
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
def test_who_holds_a_step_back(rotation: Rotation, evidence: Evidence, why: tuple[BlockReason, ...]) -> None:
    """By stage, and what is known."""
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
        # One of its two certificates could not be made anew.
        (REPLACING, ServerEvidence(BOTH, BOTH, BOTH), (SELF,)),
        (RETIRING, ServerEvidence(ONLY_NEW, BOTH, ONLY_NEW), (SELF,)),
        # API servers believe for a while yet that the other root is somebody's (see admission.roots).
        (RETIRING, ServerEvidence(ONLY_NEW, ONLY_NEW, BOTH), ()),
    ],
)
def test_what_of_the_server_holds_a_step_back(
    rotation: Rotation, ours: ServerEvidence, held: tuple[BlockingPart, ...]
) -> None:
    """The server shows and trusts what it is to in every stage; its webhook is believed before it changes."""
    assert behind(rotation, ours) == held


def test_who_was_given_up_holds_nothing_back() -> None:
    """By name, through the stages that follow; who was given up first stays so since then."""
    rotation = without(without(TRUSTING, [str(CART)], NOW), [str(CART), "a.b.c"], LATER)
    assert dict(rotation.given_up) == {"a.b.c": LATER, str(CART): NOW}
    assert holdouts(rotation, [known(mesh=None, channel=None)]) == ()
    after = advanced(rotation, LATER)
    assert after is not None
    assert holdouts(after, [known(shown=ONLY_OLD)]) == ()


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_who_signed_before_all_of_it_began_is_known_throughout(steps: int) -> None:
    """On the way there, and on the way back from wherever."""
    rotation: Rotation | None = begun(OLD, NEW, NOW)
    way = []
    while rotation is not None:
        way.append(rotation)
        rotation = advanced(rotation, NOW)
    back: Rotation | None = aborted(way[steps], NOW)
    while back is not None:
        way.append(back)
        back = advanced(back, NOW)
    assert {each.origin for each in way} == {OLD}
