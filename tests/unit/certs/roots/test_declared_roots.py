"""Tests of declared roots: the next action at each stage, and the conditions that delay it."""

from datetime import UTC, datetime

import pytest

from certs.roots.declared_roots import ChangeAction, DeclaredRoot, hold_reason, next_act, state_of
from certs.roots.rotation import Fingerprint, Rotation, Stage, turned

NOW = datetime(2026, 11, 23, tzinfo=UTC)
A, B = Fingerprint("aa"), Fingerprint("bb")
FIRST, FIRST_PASSIVE = DeclaredRoot("a", A, signs=True), DeclaredRoot("a", A, signs=False)
SECOND, SECOND_PASSIVE = DeclaredRoot("b", B, signs=True), DeclaredRoot("b", B, signs=False)
UNMADE, UNMADE_PASSIVE = DeclaredRoot("c", None, signs=True), DeclaredRoot("c", None, signs=False)

TRUSTING = Rotation(Stage.TRUSTING, A, B, NOW, NOW)
REPLACING = Rotation(Stage.REPLACING, B, A, NOW, NOW)
RETIRING = Rotation(Stage.RETIRING, B, A, NOW, NOW)


@pytest.mark.parametrize(
    ("rotation", "signer", "declared", "expected"),
    [
        (None, A, (), None),
        (None, A, (FIRST,), None),
        (None, A, (FIRST_PASSIVE,), None),
        (None, A, (FIRST, UNMADE), UNMADE),
        (None, A, (FIRST, UNMADE_PASSIVE), UNMADE_PASSIVE),
        (None, A, (FIRST_PASSIVE, UNMADE), UNMADE),
        (None, A, (SECOND,), SECOND),
        # The signing root is passive, and one of the others is active.
        (None, A, (SECOND_PASSIVE, UNMADE), UNMADE),
        (TRUSTING, A, (FIRST, SECOND), None),
        (TRUSTING, A, (FIRST, SECOND_PASSIVE), None),
        (TRUSTING, A, (FIRST_PASSIVE, SECOND), None),
        (TRUSTING, A, (FIRST,), ChangeAction.ABORT),
        (TRUSTING, A, (), ChangeAction.ABORT),
        (TRUSTING, A, (FIRST, UNMADE), ChangeAction.ABORT),
        # No root would sign, so the rotation is left alone.
        (TRUSTING, A, (FIRST_PASSIVE,), None),
        (REPLACING, B, (FIRST_PASSIVE, SECOND), None),
        (REPLACING, B, (FIRST, SECOND), None),
        (REPLACING, B, (FIRST, SECOND_PASSIVE), ChangeAction.TURN),
        (REPLACING, B, (FIRST,), ChangeAction.TURN),
        (REPLACING, B, (SECOND,), None),
        (REPLACING, B, (), None),
        (RETIRING, B, (FIRST, SECOND_PASSIVE), None),
        (RETIRING, B, (SECOND,), None),
    ],
)
def test_next_action_depends_on_the_stage_and_the_declared_roots(
    rotation: Rotation | None, signer: Fingerprint, declared: tuple[DeclaredRoot, ...], expected: object
) -> None:
    """A rotation is begun, aborted, reversed or left alone. Changes in progress are left to the stages."""
    assert next_act(rotation, signer, declared) == expected


@pytest.mark.parametrize(
    ("rotation", "declared", "is_held"),
    [
        (TRUSTING, (FIRST, SECOND), True),
        (TRUSTING, (FIRST, SECOND_PASSIVE), True),
        (TRUSTING, (FIRST_PASSIVE, SECOND_PASSIVE), True),
        (TRUSTING, (), True),
        (TRUSTING, (FIRST_PASSIVE, SECOND), False),
        (TRUSTING, (SECOND,), False),
        (REPLACING, (FIRST_PASSIVE, SECOND), True),
        (REPLACING, (FIRST, SECOND), True),
        (REPLACING, (FIRST_PASSIVE, SECOND_PASSIVE), True),
        (REPLACING, (SECOND,), False),
        (REPLACING, (), False),
        (RETIRING, (FIRST, SECOND), False),
        (RETIRING, (SECOND,), False),
    ],
)
def test_next_stage_is_delayed_by_an_inactive_new_or_a_declared_old_root(
    rotation: Rotation, declared: tuple[DeclaredRoot, ...], is_held: bool
) -> None:
    """Only an active root may sign, and a root that is still declared is not retired."""
    assert bool(hold_reason(rotation, declared)) is is_held


def test_states_of_roots_are_those_of_open_service_mesh() -> None:
    """The states are those of the first root, the second one and an unknown one, at each stage."""
    result = [
        [
            state_of(fingerprint, rotation, A if rotation in (None, TRUSTING) else B)
            for fingerprint in (A, B, None)
        ]
        for rotation in (None, TRUSTING, REPLACING, RETIRING)
    ]
    assert result == [
        ["active", "inactive", "inactive"],
        ["active", "validatingRollout", "inactive"],
        ["issuingRollback", "issuingRollout", "inactive"],
        ["validatingRollback", "active", "inactive"],
    ]


def test_rotation_can_be_reversed_repeatedly() -> None:
    """Two reversals give the original rotation, and its origin remains known."""
    back = turned(REPLACING, NOW)
    assert (back.signer, back.other, back.aborted, back.origin) == (A, B, True, A)
    assert turned(back, NOW) == REPLACING
