"""Evaluation of a template's tree with values to text."""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping

from meshwright.chart.template.functions import FUNCTIONS, Value, printed
from meshwright.chart.template.parsing import (
    Assignment,
    Block,
    Call,
    Chain,
    Literal,
    Node,
    Operand,
    Pipeline,
    PrintStatement,
    Template,
    Text,
)
from meshwright.chart.template.tokens import TemplateError

Variables = ChainMap[str, Value]
"""Variables by name; variables of a block end with the block."""


def rendered(template: Template, chart_values: Value, defined: Mapping[str, Template]) -> str:
    """Return the text of a template; `defined` has the templates for `include`.

    Raises TemplateError.
    """
    return "".join(
        _Renderer(template.name, defined).text(template.nodes, chart_values, ChainMap({"$": chart_values}))
    )


class _Renderer:
    """Renderer of one Helm template and of the templates that it includes."""

    def __init__(self, name: str, defined: Mapping[str, Template]) -> None:
        self._name, self._defined = name, defined
        self._functions: Mapping[str, Callable[..., Value]] = {**FUNCTIONS, "include": self._included}

    def text(self, nodes: Iterable[Node], dot: Value, variables: Variables) -> Iterator[str]:
        """Yield the text of each node of a template; a variable is visible after its definition."""
        known = variables.new_child()
        for node in nodes:
            match node:
                case Text(text):
                    yield text
                case PrintStatement(line, pipeline):
                    yield self._printed(line, self._at(line, pipeline, dot, known))
                case Assignment(line, variable, pipeline, is_new):
                    place = known.maps[0] if is_new else self._place(line, variable, known)
                    place[variable] = self._at(line, pipeline, dot, known)
                case Block():
                    yield from self._block(node, dot, known)

    def _block(self, block: Block, dot: Value, variables: Variables) -> Iterator[str]:
        value = self._at(block.line, block.pipeline, dot, variables)
        if not value:
            yield from self.text(block.otherwise, dot, variables)
        elif block.kind == "range":
            # Go visits the keys of a mapping in sorted order.
            pairs = sorted(value.items()) if isinstance(value, Mapping) else list(enumerate(value))
            for pair in pairs:
                messages = pair[-len(block.variables) :] if block.variables else ()
                known = variables.new_child(dict(zip(block.variables, messages, strict=True)))
                yield from self.text(block.body, pair[1], known)
        else:
            known = variables.new_child(dict.fromkeys(block.variables, value))
            # `with` changes the dot, `if` does not.
            yield from self.text(block.body, value if block.kind == "with" else dot, known)

    def _place(self, line: int, variable: str, variables: Variables) -> MutableMapping[str, Value]:
        for item in variables.maps:
            if variable in item:
                return item
        raise TemplateError(f"{self._name}:{line}: unknown variable {variable}")

    def _at(self, line: int, pipeline: Pipeline, dot: Value, variables: Variables) -> Value:
        try:
            return self._piped(pipeline, dot, variables)
        except (ValueError, TypeError, AttributeError) as error:
            raise TemplateError(f"{self._name}:{line}: {error}") from error

    def _printed(self, line: int, value: Value) -> str:
        try:
            return printed(value)
        except ValueError as error:
            raise TemplateError(f"{self._name}:{line}: {error}") from error

    def _piped(self, pipeline: Pipeline, dot: Value, variables: Variables) -> Value:
        given: tuple[Value, ...] = ()
        for call in pipeline.calls:
            # The result of a call is the last argument of the next one.
            given = (self._called(call, dot, variables, given),)
        return given[0]

    def _called(self, call: Call, dot: Value, variables: Variables, piped: tuple[Value, ...]) -> Value:
        arguments = [*(self._value(argument, dot, variables) for argument in call.arguments), *piped]
        if isinstance(call.function, str):
            if (function := self._functions.get(call.function)) is None:
                raise ValueError(f"unknown function {call.function!r} here")
            return function(*arguments)
        value = self._value(call.function, dot, variables)
        # A field may be a function, for example `.Files.Get "dashboard.json"`.
        if callable(value):
            return value(*arguments)
        if arguments:
            raise ValueError("only a function takes arguments")
        return value

    def _value(self, operand: Operand, dot: Value, variables: Variables) -> Value:
        match operand:
            case Literal(value):
                return value
            case Call():
                return self._called(operand, dot, variables, ())
            case Pipeline():
                return self._piped(operand, dot, variables)
            case Chain(of, fields):
                if of != "." and of not in variables:
                    raise ValueError(f"unknown variable {of}")
                return _field(dot if of == "." else variables[of], fields)

    def _included(self, name: str, dot: Value) -> str:
        if (template := self._defined.get(name)) is None:
            raise ValueError(f"unknown template {name!r}")
        # A new renderer, because the argument is both the dot and `$` in an included template.
        return rendered(template, dot, self._defined)


def _field(value: Value, fields: tuple[str, ...]) -> Value:
    for name in fields:
        if not isinstance(value, Mapping):
            raise TypeError(f"has no field {name!r}: what should have it is {value!r:.40}")
        value = value.get(name)
    return value
