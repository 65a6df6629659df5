"""DynamoDB's condition and update expressions, as far as this repository uses them: parsed, then run on an item.

What is not modelled raises Unmodelled, so that the model never answers by guess. Grammar:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.UpdateExpressions.html
"""

import functools
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

Item: TypeAlias = Mapping[str, Any]
Value: TypeAlias = dict[str, Any]  # {"S": "…"}


class Unmodelled(BaseException):
    """The model does not know this. Teach it, with a differential test."""


class Invalid(Exception):
    """DynamoDB would answer ValidationException."""


@dataclass(frozen=True)
class Names:
    """What `#name` and `:value` stand for in one request."""

    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)

    def attribute(self, token: str) -> str:
        """The attribute that a token names."""
        if not token.startswith("#"):
            return token
        if token not in self.names:
            raise Invalid(f"undefined attribute name {token}")
        return self.names[token]

    def value(self, token: str) -> Value:
        """The value that a token stands for."""
        if token not in self.values:
            raise Invalid(f"undefined attribute value {token}")
        return self.values[token]


Operand: TypeAlias = Callable[[Item, Names], Value | None]
Condition: TypeAlias = Callable[[Item, Names], bool]
Update: TypeAlias = Callable[[Item, Names], dict[str, Any]]

_TOKEN = re.compile(r"\s*(?:([#:]?[A-Za-z_][A-Za-z0-9_]*)|(<=|>=|<>|[=<>(),+-]))")
_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Parsed:
    """An expression and the placeholders that it uses."""

    run: Any
    uses: frozenset[str]


@functools.cache
def condition(text: str) -> Parsed:
    """A condition, key condition or filter: `run(item, names) -> bool`."""
    parser = _Parser(text)
    run = parser.any_of()
    parser.end()
    return Parsed(run, frozenset(parser.uses))


@functools.cache
def update(text: str) -> Parsed:
    """An update: `run(item, names) -> the new item`."""
    parser = _Parser(text)
    run = parser.clauses()
    return Parsed(run, frozenset(parser.uses))


@functools.cache
def projection(text: str) -> Parsed:
    """A projection: `run(item, names) -> the attributes asked for`."""
    parser = _Parser(text)
    wanted = [parser.path()]
    while parser.accept(","):
        wanted.append(parser.path())
    parser.end()

    def run(item: Item, names: Names) -> dict[str, Any]:
        chosen = {names.attribute(token) for token in wanted}
        return {name: value for name, value in item.items() if name in chosen}

    return Parsed(run, frozenset(parser.uses))


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        self.uses: set[str] = set()
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                raise Unmodelled(f"{text!r} at {at}")
            self.tokens.append(match[1] or match[2])
            at = match.end()
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        if token[:1] in ("#", ":"):
            self.uses.add(token)
        return token

    def accept(self, *wanted: str) -> str:
        return self.take() if self.peek().upper() in wanted else ""

    def expect(self, wanted: str) -> None:
        if not self.accept(wanted):
            raise Unmodelled(f"{self.text!r}: {wanted} expected, {self.peek()!r} found")

    def end(self) -> None:
        if self.peek():
            raise Unmodelled(f"{self.text!r}: {self.peek()!r} left over")

    def path(self) -> str:
        token = self.take()
        if not re.fullmatch(r"#?[A-Za-z_]\w*", token):
            raise Unmodelled(f"{self.text!r}: {token!r} is no attribute")
        return token

    # Conditions, loosest binding first.

    def any_of(self) -> Condition:
        parts = [self.all_of()]
        while self.accept("OR"):
            parts.append(self.all_of())
        return parts[0] if len(parts) == 1 else lambda item, names: any(part(item, names) for part in parts)

    def all_of(self) -> Condition:
        parts = [self.negated()]
        while self.accept("AND"):
            parts.append(self.negated())
        return parts[0] if len(parts) == 1 else lambda item, names: all(part(item, names) for part in parts)

    def negated(self) -> Condition:
        if self.accept("NOT"):
            inner = self.negated()
            return lambda item, names: not inner(item, names)
        return self.primary()

    def primary(self) -> Condition:
        if self.accept("("):
            inner = self.any_of()
            self.expect(")")
            return inner
        if function := self.accept("ATTRIBUTE_EXISTS", "ATTRIBUTE_NOT_EXISTS"):
            self.expect("(")
            path = self.path()
            self.expect(")")
            wanted = function.lower() == "attribute_exists"
            return lambda item, names: (names.attribute(path) in item) is wanted
        if self.accept("BEGINS_WITH"):
            self.expect("(")
            left = self.operand()
            self.expect(",")
            right = self.operand()
            self.expect(")")
            return lambda item, names: _begins(left(item, names), right(item, names))
        return self.comparison()

    def comparison(self) -> Condition:
        left, sign, right = self.operand(), self.take(), self.operand()
        if sign == "=":
            return lambda item, names: _equal(left(item, names), right(item, names))
        if sign == "<>":  # also true if an attribute is missing
            return lambda item, names: not _equal(left(item, names), right(item, names))
        if sign not in _ORDER:
            raise Unmodelled(f"{self.text!r}: comparison {sign!r}")
        order = _ORDER[sign]

        def compare(item: Item, names: Names) -> bool:
            one, two = _ordered(left(item, names)), _ordered(right(item, names))
            return one is not None and two is not None and one[0] == two[0] and bool(order(one[1], two[1]))

        return compare

    def operand(self) -> Operand:
        token = self.take()
        if token.startswith(":"):
            return lambda _, names: names.value(token)
        if token.lower() == "if_not_exists":
            self.expect("(")
            path = self.path()
            self.expect(",")
            otherwise = self.operand()
            self.expect(")")
            return lambda item, names: item.get(names.attribute(path)) or otherwise(item, names)
        if not re.fullmatch(r"#?[A-Za-z_]\w*", token):
            raise Unmodelled(f"{self.text!r}: {token!r} is no operand")
        return lambda item, names: item.get(names.attribute(token))

    # Updates. Every operand is read from the item as it was.

    def clauses(self) -> Update:
        sets: list[tuple[str, Operand]] = []
        removes: list[str] = []
        while clause := self.accept("SET", "REMOVE"):
            while True:
                path = self.path()
                if clause.upper() == "SET":
                    self.expect("=")
                    sets.append((path, self.sum()))
                else:
                    removes.append(path)
                if not self.accept(","):
                    break
        self.end()

        def run(item: Item, names: Names) -> dict[str, Any]:
            touched = [names.attribute(path) for path in [path for path, _ in sets] + removes]
            if len(set(touched)) != len(touched):
                raise Invalid("two document paths overlap with each other")
            new = dict(item)
            for path, operand in sets:
                value = operand(item, names)
                if value is None:
                    raise Invalid("the expression refers to an attribute that does not exist in the item")
                new[names.attribute(path)] = value
            for path in removes:
                new.pop(names.attribute(path), None)
            return new

        return run

    def sum(self) -> Operand:
        left = self.operand()
        sign = self.accept("+", "-")
        if not sign:
            return left
        right = self.operand()

        def run(item: Item, names: Names) -> Value | None:
            one, two = left(item, names), right(item, names)
            if one is None or two is None:
                return None
            if "N" not in one or "N" not in two:
                raise Invalid("an operand in the update expression has an incorrect data type")
            first, second = Decimal(one["N"]), Decimal(two["N"])
            return {"N": number(str(first + second if sign == "+" else first - second))}

        return run


def number(text: str) -> str:
    """A number as DynamoDB gives it back: no sign of plus, no leading or trailing zeros, no exponent."""
    value = Decimal(text)
    return "0" if value == 0 else format(value.normalize(), "f")


def _ordered(value: Value | None) -> tuple[str, Any] | None:
    """Type and content of what can be ordered; text is ordered by its UTF-8 bytes."""
    if value is None:
        return None
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return kind, Decimal(content)
        case "S":
            return kind, content.encode()
        case _:
            raise Unmodelled(f"order of {kind}")


def _equal(one: Value | None, two: Value | None) -> bool:
    if one is None or two is None:
        return False
    if "N" in one and "N" in two:
        return Decimal(one["N"]) == Decimal(two["N"])
    return one == two


def _begins(text: Value | None, prefix: Value | None) -> bool:
    return bool(text and prefix and "S" in text and "S" in prefix and text["S"].startswith(prefix["S"]))
