"""Random programs of derived values, evaluated incrementally and naively."""

import random
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from meshwright.engine.derived import derived
from meshwright.engine.firewall import Firewall, Firewalls, MappingFirewall
from meshwright.engine.graph import Graph
from meshwright.engine.index import DerivedIndex, Index
from meshwright.engine.table import Table
from tests.tools.observed_values import Pin

KEYS = range(5)
VALUES: tuple[Any, ...] = (0, 1, True, 2, 3, None)
Expression = tuple[Any, ...]
Outcome = tuple[str, Any]


class Fault(Exception):
    """The error of random programs."""


@dataclass
class Program:
    """Functions by number, each reading inputs and functions of smaller numbers.

    A derived index and firewalls may be computed from the first `early` functions; the others read them.
    """

    functions: list[Expression]
    early: int


def random_program(dice: random.Random) -> Program:
    """Return a random program that is likely to read in every way."""
    early = dice.randint(1, 3)
    late = dice.randint(1, 4)
    functions = [_expression(dice, number, early, 2) for number in range(early + late)]
    return Program(functions, early)


def _expression(dice: random.Random, number: int, early: int, depth: int) -> Expression:
    leaves: list[Expression] = [
        ("get", dice.choice(KEYS)),
        ("has", dice.choice(KEYS)),
        ("count",),
        ("entry", dice.choice(VALUES)),
        ("entries",),
        ("constant", dice.choice(VALUES)),
    ]
    if number:
        leaves += [("call", dice.randrange(number))] * 4
    if number >= early:
        leaves += [("placed", dice.choice(VALUES)), ("wall",), ("held", dice.choice(KEYS))]
        leaves += [("gate", dice.randrange(early))] * 2
    if depth == 0 or dice.random() < 0.25:
        return dice.choice(leaves)
    inner = [_expression(dice, number, early, depth - 1) for _ in range(3)]
    return dice.choice(
        [
            ("if", *inner),
            ("if", *inner),
            ("pair", *inner[:2]),
            ("caught", *inner[:2]),
            ("odd", inner[0]),
            ("or", *inner[:2]),
        ]
    )


@dataclass(eq=False)
class Machine:
    """A program over inputs, evaluated incrementally."""

    program: Program
    graph: Graph = field(default_factory=Graph)

    def __post_init__(self) -> None:
        self.inputs: Table[int, Any] = Table(self.graph, "inputs")
        self.by_value: Index[Hashable, int, Any] = Index(
            self.graph, "by value", self.inputs, lambda _, value: (typed(value),)
        )
        self.placed: DerivedIndex[Hashable, int, Any] = DerivedIndex(
            self.graph, "placed", self.inputs, lambda key: (typed(self.inputs[key]), outcome_of(self, 0))
        )
        self.wall = Firewall(self.graph, wall, self)
        self.held = MappingFirewall(self.graph, held, self)
        self.gates = Firewalls(self.graph, gate, self)
        self.pins = [Pin(function, self, number) for number in range(len(self.program.functions))]

    def change(self, inputs: dict[int, Any]) -> None:
        """Replace the inputs."""
        self.graph.apply(
            [self.inputs.set(key, inputs[key]) if key in inputs else self.inputs.remove(key) for key in KEYS]
        )

    def outcomes(self, order: Iterable[int]) -> dict[int, Outcome]:
        """Return the outcomes of functions, evaluated in the given order."""
        return {number: outcome_of(self, number) for number in order}

    def _read_call(self, number: int) -> Any:
        return function(self, number)

    def _read_get(self, key: int) -> Any:
        return self.inputs.get(key, "absent")

    def _read_has(self, key: int) -> bool:
        return key in self.inputs

    def _read_count(self) -> int:
        return len(self.inputs)

    def _read_entry(self, value: Any) -> tuple[int, ...]:
        return self.by_value.get(typed(value), ())

    def _read_entries(self) -> tuple[str, ...]:
        return tuple(sorted(map(repr, self.by_value)))

    def _read_placed(self, value: Any) -> tuple[int, ...]:
        return self.placed.get(typed(value), ())

    def _read_wall(self) -> Outcome:
        return self.wall.value()

    def _read_held(self, key: int) -> str:
        return str(self.held.get(key))

    def _read_gate(self, number: int) -> Any:
        return self.gates.value(number)


@derived
def wall(machine: Machine) -> Outcome:
    """Return the value for the machine's firewall."""
    return outcome_of(machine, machine.program.early - 1)


@derived
def held(machine: Machine) -> Mapping[int, tuple[Hashable, int]]:
    """Return the mapping for the machine's firewall by key; it fails if the first function fails."""
    function(machine, 0)
    return {key: (typed(machine.inputs[key]), machine.program.early) for key in machine.inputs if key % 2}


@derived
def gate(machine: Machine, number: int) -> Any:
    """Return the value for the firewall of one early function."""
    return repr(function(machine, number))


@derived
def function(machine: Machine, number: int) -> Any:
    """Evaluate one function of the machine's program."""
    return evaluate(machine, machine.program.functions[number])


def outcome_of(machine: Machine, number: int) -> Outcome:
    """Return a function's value, or its fault if it raised one."""
    try:
        return ("value", typed(function(machine, number)))
    except Fault as fault:
        return ("fault", fault.args)


def typed(value: Any) -> Hashable:
    """Return a value with its type, which tells 1 from True."""
    return tuple(map(typed, value)) if isinstance(value, tuple) else (type(value).__name__, value)


def evaluate(world: "Machine | Naive", expression: Expression) -> Any:
    """Evaluate an expression in a world: incremental or naive."""
    kind, *rest = expression
    if kind == "constant":
        return rest[0]
    if hasattr(world, f"_read_{kind}"):
        return getattr(world, f"_read_{kind}")(*rest)
    return combined(kind, [lambda e=item: evaluate(world, e) for item in rest])


def combined(kind: str, parts: list[Any]) -> Any:
    """Combine parts; each part is evaluated only if it is needed."""
    match kind:
        case "if":
            return parts[1]() if parts[0]() else parts[2]()
        case "or":
            return parts[0]() or parts[1]()
        case "pair":
            return (repr(parts[0]()), repr(parts[1]()))  # nested, 1 and True would be equal
        case "odd":
            value = parts[0]()
            if value == 1 or value is None:
                raise Fault(f"odd {typed(value)}")
            return value
        case "caught":
            try:
                return parts[0]()
            except Fault as fault:
                return (fault.args, repr(parts[1]()))
        case _:
            raise AssertionError(kind)


class Naive:
    """A program over inputs, evaluated from scratch at each call, without a graph."""

    def __init__(self, program: Program, inputs: dict[int, Any]) -> None:
        self.program = program
        self.inputs = inputs

    def outcome(self, number: int) -> Outcome:
        """Return the outcome of one function."""
        try:
            return ("value", typed(self._read_call(number)))
        except Fault as fault:
            return ("fault", fault.args)

    def _read_call(self, number: int) -> Any:
        return evaluate(self, self.program.functions[number])

    def _read_get(self, key: int) -> Any:
        return self.inputs.get(key, "absent")

    def _read_has(self, key: int) -> bool:
        return key in self.inputs

    def _read_count(self) -> int:
        return len(self.inputs)

    def _read_entry(self, value: Any) -> tuple[int, ...]:
        return tuple(key for key in sorted(self.inputs) if typed(self.inputs[key]) == typed(value))

    def _read_entries(self) -> tuple[str, ...]:
        return tuple(sorted({repr(typed(value)) for value in self.inputs.values()}))

    def _read_placed(self, value: Any) -> tuple[int, ...]:
        first = self.outcome(0)
        result = (key for key in sorted(self.inputs) if typed(value) in (typed(self.inputs[key]), first))
        return tuple(result)

    def _read_wall(self) -> Outcome:
        return self.outcome(self.program.early - 1)

    def _read_held(self, key: int) -> str:
        self._read_call(0)
        result = (typed(self.inputs[key]), self.program.early) if key % 2 and key in self.inputs else None
        return str(result)

    def _read_gate(self, number: int) -> Any:
        return repr(self._read_call(number))


def random_inputs(dice: random.Random, before: dict[int, Any]) -> dict[int, Any]:
    """Return the next inputs of a history: one or two keys are set, or removed."""
    after = dict(before)
    for _ in range(dice.randint(1, 2)):
        key = dice.choice(KEYS)
        if dice.random() < 0.3:
            after.pop(key, None)
        else:
            after[key] = dice.choice(VALUES)
    return after


def mismatch(dice: random.Random, steps: int) -> str | None:
    """Run a random program through a random history; return its difference from naive, or None."""
    program = random_program(dice)
    machine = Machine(program)
    inputs: dict[int, Any] = {}
    for step in range(steps):
        inputs = random_inputs(dice, inputs)
        machine.change(inputs)
        order = list(range(len(program.functions)))
        dice.shuffle(order)
        asked = order[: dice.randint(0, len(order))]
        naive = Naive(program, inputs)
        expected = {number: naive.outcome(number) for number in asked}
        result = machine.outcomes(asked)
        if result != expected:
            return f"step {step} of {program} with {inputs}: {result} instead of {expected}"
    return None
