"""Policies as users write them."""

from __future__ import annotations

import pytest

from ctxctl.errors import UsageError
from ctxctl.eviction.base import POLICIES, Setting
from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.specs import ALIASES, Spec, parse_spec, policy_of, split_specs
from ctxctl.registry import closest

NINE = [
    "fifo",
    "lru",
    "priority",
    "semantic",
    "type-ttl",
    "hybrid",
    "sliding-window",
    "summarize",
    "priority-tiers",
]


def test_all_policies_of_the_settings_are_there() -> None:
    assert set(NINE) <= set(POLICIES.names())
    for name in NINE:
        policy = policy_of(name, Setting(1000))
        assert (policy.name, policy.group) == (name, "policy")


@pytest.mark.parametrize("name", NINE)
def test_each_states_what_it_costs_and_is_for(name: str) -> None:
    lines = [line.strip() for line in (POLICIES.get(name).__doc__ or "").split("\n")]
    assert lines[0]
    for word in ("Complexity:", "Strength:", "Weakness:", "Fit:"):
        assert any(line.startswith(word) and len(line) > len(word) for line in lines), word


@pytest.mark.parametrize(("alias", "name"), sorted(ALIASES.items()))
def test_aliases(alias: str, name: str) -> None:
    assert parse_spec(alias).name == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lru", Spec("lru")),
        (" LRU ", Spec("lru")),
        ("mask:keep=3,every=10", Spec("mask", (("keep", 3), ("every", 10)))),
        ("mask:every=10,keep=3", Spec("mask", (("keep", 3), ("every", 10)))),
        ("mask: keep = 3 , min-saving=20k", Spec("mask", (("keep", 3), ("min_saving", 20_000)))),
        ("clear:trigger=0.4,exclude=Read+Grep", Spec("clear", (("trigger", 0.4), ("exclude", "Read+Grep")))),
        ("clear:trigger=100k", Spec("clear", (("trigger", 100_000.0),))),
        (
            "priority-tiers:reserve=0,last_resort=true",
            Spec("priority-tiers", (("reserve", 0.0), ("last_resort", True))),
        ),
        ("semantic:similarity=1", Spec("semantic", (("similarity", 1.0),))),
        ("sliding:reserve=0.1", Spec("sliding-window", (("reserve", 0.1),))),
    ],
)
def test_parse(text: str, expected: Spec) -> None:
    assert parse_spec(text) == expected
    assert parse_spec(expected.text) == expected


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("lur", "unknown policy", "did you mean 'lru'?"),
        ("zzz", "unknown policy", "known: "),
        ("", "unknown policy", "known: "),
        ("mask:kep=3", "no parameter 'kep'", "did you mean 'keep'?"),
        ("mask:zzzzzz=3", "no parameter", "mask takes keep, every, min_saving"),
        ("lru:keep=3", "no parameter", "lru takes no parameters"),
        ("mask:", "names no parameter", "mask takes"),
        ("mask:keep", "is not a parameter", "mask takes"),
        ("mask:keep=", "is not a parameter", "mask takes"),
        ("mask:keep=-1", "keep", "mask takes"),
        ("mask:every=0", "every", "mask takes"),
        ("mask:keep=3.5", "keep", "mask takes"),
        ("mask:keep=many", "keep", "mask takes"),
        ("clear:trigger=0", "trigger", "clear takes"),
        ("clear:trigger=nan", "trigger", "clear takes"),
        ("sliding-window:reserve=1", "reserve", "sliding-window takes"),
        ("sliding-window:reserve=-0.1", "reserve", "sliding-window takes"),
        ("sliding-window:reserve=nan", "reserve", "sliding-window takes"),
        ("summarize:last_resort=true", "no parameter", "summarize takes reserve"),
        ("priority-tiers:last_resort=perhaps", "last_resort", "priority-tiers takes"),
        ("semantic:similarity=0", "similarity", "semantic takes"),
        ("semantic:similarity=1.1", "similarity", "semantic takes"),
        ("hybrid:freshness=nan,priority=1", "freshness", "hybrid takes"),
    ],
)
def test_what_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        policy_of(text, Setting(1000))
    assert message in caught.value.message
    assert caught.value.hint is not None and hint in caught.value.hint


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["lru,fifo"], ["lru", "fifo"]),
        (["lru", "fifo"], ["lru", "fifo"]),
        (["mask:keep=3,every=10,lru"], ["mask:keep=3,every=10", "lru"]),
        (["mask:keep=3,every=10,mask:keep=5"], ["mask:keep=3,every=10", "mask:keep=5"]),
        ([" lru , , fifo "], ["lru", "fifo"]),
        (["lru", "keep=3"], ["lru", "keep=3"]),
        ([], []),
    ],
)
def test_lists(texts: list[str], expected: list[str]) -> None:
    assert split_specs(texts) == expected


def test_did_you_mean_is_for_what_is_near() -> None:
    assert closest("hybird", NINE) == "hybrid"
    assert closest("qqqq", NINE) is None


def test_unset_parameters_are_those_of_the_settings() -> None:
    setting = Setting(1000, options=EvictionOptions(reserve=0.5))
    assert policy_of("sliding-window", setting).limit == 500
    assert policy_of("sliding-window:reserve=0.25", setting).limit == 750
    assert policy_of("summarize:reserve=0", setting).limit == 1000
    assert policy_of("priority-tiers", Setting(128_000)).limit == 102_400
    assert policy_of("priority-tiers:reserve=0.9", Setting(100)).limit == 10
