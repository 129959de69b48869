"""Policies as users write them: `lru`, `mask:keep=10,every=1`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import msgspec

from ctxctl.errors import UsageError
from ctxctl.eviction.base import POLICIES, Policy, Setting
from ctxctl.registry import closest

ALIASES = {
    "type_ttl": "type-ttl",
    "type_based": "type-ttl",
    "sliding": "sliding-window",
    "sliding_window": "sliding-window",
    "priority_tiers": "priority-tiers",
    "largest_first": "largest-first",
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kKmM])")


@dataclass(frozen=True, slots=True)
class Spec:
    """A policy with its parameters. text: as it is written."""

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def text(self) -> str:
        told = ",".join(f"{key}={_shown(value)}" for key, value in self.parameters)
        return f"{self.name}:{told}" if told else self.name


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def split_specs(texts: Iterable[str]) -> list[str]:
    """The specs of a list with commas: one without a name of its own carries on the parameters of the last."""
    found: list[str] = []
    for text in texts:
        start = True
        for part in text.split(","):
            if not part.strip():
                continue
            name, equals, _ = part.partition("=")
            if equals and ":" not in name and found and not start:
                found[-1] += "," + part.strip()
            else:
                found.append(part.strip())
            start = False
    return found


def parse_spec(text: str) -> Spec:
    """A spec with typed parameters; UsageError with a did-you-mean for a name or parameter that is not known."""
    name, colon, rest = text.partition(":")
    name = ALIASES.get(name.strip().lower(), name.strip().lower())
    cls = POLICIES.get(name)
    known = {f.name: f for f in fields(cls.Parameters)}
    given: dict[str, Any] = {}
    if colon and not rest.strip():
        raise UsageError(f"{text!r} names no parameter", hint=_takes(name, known))
    for part in rest.split(",") if rest else ():
        key, equals, value = (x.strip() for x in part.partition("="))
        key = key.replace("-", "_")
        if not equals or not value:
            raise UsageError(
                f"{text!r}: {part.strip()!r} is not a parameter; write key=value", hint=_takes(name, known)
            )
        if key not in known:
            near = closest(key, list(known))
            raise UsageError(
                f"policy {name!r} has no parameter {key!r}",
                hint=f"did you mean {near!r}?" if near else _takes(name, known),
            )
        given[key] = _plain(value)
    try:
        parameters = msgspec.convert(given, cls.Parameters, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        reason = str(error).replace("`", "")
        raise UsageError(f"policy {name!r}: {reason}", hint=_takes(name, known)) from None
    return Spec(name, tuple((key, getattr(parameters, key)) for key in known if key in given))


def _takes(name: str, known: dict[str, Any]) -> str:
    if not known:
        return f"{name} takes no parameters"
    return f"{name} takes {', '.join(known)}; `ctxctl list policies {name} -v` shows their defaults"


def _plain(value: str) -> Any:
    size = _SIZE.fullmatch(value)
    if size is None:
        return value
    number = float(size[1]) * (1000 if size[2].lower() == "k" else 1_000_000)
    return int(number) if number == int(number) else number


def policy_of(spec: Spec | str, setting: Setting) -> Policy:
    """A policy ready to decide."""
    spec = parse_spec(spec) if isinstance(spec, str) else spec
    cls = POLICIES.get(spec.name)
    try:
        return cls(setting, cls.Parameters(**dict(spec.parameters)))
    except ValueError as error:
        takes = _takes(spec.name, {f.name: f for f in fields(cls.Parameters)})
        raise UsageError(f"policy {spec.text!r}: {error}", hint=takes) from None
