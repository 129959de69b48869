"""`TokenBudgetManager`: what each component of a window holds, and whether more fits (requirements B1 to B4)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

from ctxctl.budgets.components import (
    COMPONENTS,
    RESERVE,
    SKELETON,
    ComponentUse,
    Limits,
    Status,
    component_of,
    duration,
    limits_of,
    tokens,
    use_of,
)
from ctxctl.budgets.forecast import burn_rate_of, minutes_of, pace_of, turns_remaining_of
from ctxctl.budgets.options import BudgetOptions
from ctxctl.errors import BudgetExceeded
from ctxctl.model.limits import DEFAULT_WINDOW

Relieve = Callable[[str, int], int]
"""Compacts, evicts or delegates a component that is over by so many tokens, and returns how many it freed."""


@dataclass(frozen=True, slots=True)
class Check:
    """Whether tokens fit into a component. current, after: tokens before and with them. status: after. excess: tokens
    beyond the limit, at least 1 when it is refused. freed: tokens that were freed to make them fit."""

    allowed: bool
    status: Status
    component: str
    current: int
    after: int
    limit: int
    excess: int
    message: str
    freed: int = 0


@dataclass(frozen=True, slots=True)
class BudgetUsage:
    """The window now. total_used: tokens of all components but the reserve; total_utilization: of the window.
    burn_rate: tokens per turn, None before the first turn. turns_remaining, minutes_remaining: None when they can't be
    told."""

    window: int
    components: tuple[ComponentUse, ...]
    total_used: int
    total_utilization: float
    burn_rate: float | None
    turns_remaining: int | None
    minutes_remaining: float | None


class TokenBudgetManager:
    """Follows what the components of a window hold.

    An agent loop tracks what it puts into the window and removes what leaves, asks before it adds, and records each
    turn. window: tokens of the model's window. options: shares, soft limit, burn window. relieve: called with a
    component and the tokens by which it is over before anything is refused; it compacts, evicts or delegates, and
    returns the tokens that it freed. What it freed it removes from here itself; what it did not remove is taken off the
    oldest entries of the component. Usage is always the sum over what is tracked.

    Raises ValueError for an argument that makes no sense, UsageError for an unknown component.
    """

    def __init__(
        self, window: int = DEFAULT_WINDOW, options: BudgetOptions | None = None, *, relieve: Relieve | None = None
    ) -> None:
        self.window = tokens("the window", window, least=1)
        self.options = options or BudgetOptions()
        self.relieve = relieve
        self.limits: dict[str, Limits] = limits_of(window, self.options)
        self._held: dict[str, dict[Hashable, int]] = {name: {} for name in COMPONENTS}
        self._home: dict[Hashable, str] = {}
        self._keys = 0
        self._added: deque[int] = deque(maxlen=self.options.burn_window)
        self._seconds: deque[float] = deque(maxlen=self.options.burn_window)
        self._relieving = False

    # what is in the window

    def track(self, component: str, count: int, *, key: Hashable | None = None) -> Hashable:
        """Tokens came into the window, whether they fit or not. component: its name, or a kind of block.

        key: names them for `remove` and `resize`; one that is known is tracked anew, so that a system prompt that was
        changed counts once. Returns the key.
        """
        name = component_of(component)
        tokens("the tokens of a component", count)
        if key is None:
            self._keys += 1
            key = self._keys
        else:
            self.remove(key)
        self._held[name][key] = count
        self._home[key] = name
        return key

    def resize(self, key: Hashable, count: int) -> int:
        """What a key names has so many tokens now (it was compacted); returns the tokens that this freed. KeyError for
        a key that is not tracked."""
        held = self._held[self._home[key]]
        before, held[key] = held[key], tokens("the tokens of a component", count)
        return before - count

    def remove(self, key: Hashable) -> int:
        """What a key names left the window; returns its tokens, 0 for one that is not tracked."""
        home = self._home.pop(key, None)
        return self._held[home].pop(key) if home is not None else 0

    def clear(self, component: str | None = None) -> int:
        """A component is empty now, or the whole window; returns the tokens that left."""
        names = COMPONENTS if component is None else (component_of(component),)
        freed = sum(self.used(name) for name in names)
        for name in names:
            for key in self._held[name]:
                del self._home[key]
            self._held[name].clear()
        return freed

    def used(self, component: str) -> int:
        """Tokens that a component holds: the sum over what is tracked."""
        return sum(self._held[component_of(component)].values())

    @property
    def total_used(self) -> int:
        """Tokens of all components; the reserve is kept free and is none of them."""
        return sum(self.used(name) for name in COMPONENTS if name != RESERVE)

    def component(self, component: str) -> ComponentUse:
        """A component against its limits."""
        name = component_of(component)
        return use_of(name, self.used(name), self.limits[name])

    # whether more fits

    def check_before_add(self, component: str, count: int) -> Check:
        """Whether so many tokens fit into a component; nothing changes."""
        name = component_of(component)
        return self._check(name, tokens("the tokens to add", count), self.used(name))

    def _check(self, name: str, count: int, current: int) -> Check:
        limits, after = self.limits[name], current + count
        status = limits.status(after)
        over = after - limits.hard
        said = f"{name}: {after:,} of {limits.hard:,} tokens"
        if over > 0:
            said = f"{name}: {current:,} and {count:,} more are {over:,} over the limit of {limits.hard:,} tokens"
            return Check(False, "hard", name, current, after, limits.hard, over, said)
        if status == "hard":
            said += ", hard limit reached"
        elif status == "soft":
            said += f", at or above the soft limit of {limits.soft:,}"
        return Check(True, status, name, current, after, limits.hard, 0, said)

    def check_output(self, expected: int) -> Check:
        """Whether an answer of so many tokens fits into the room that is kept for it."""
        return self.check_before_add(RESERVE, expected)

    def add(self, component: str, count: int, *, key: Hashable | None = None) -> Check:
        """Track tokens if they fit. When they don't, `relieve` is called and it is checked again.

        Only what still does not fit is refused: it is not tracked and the check says so. key: as for `track`; what it
        named before is replaced, and counts no more. Raises BudgetExceeded when what is refused is a system prompt or
        tool definitions.
        """
        name = component_of(component)
        check = self._check(name, tokens("the tokens to add", count), self._without(name, key))
        freed = 0
        if not check.allowed and self.relieve is not None and not self._relieving:
            freed = self._relieve(name, check.excess, self.relieve)
            check = replace(self._check(name, count, self._without(name, key)), freed=freed)
        if check.allowed:
            self.track(name, count, key=key)
        elif name in SKELETON:
            raise BudgetExceeded(
                check.message,
                component=name,
                limit=check.limit,
                current=check.current,
                excess=check.excess,
                hint=f"make it shorter, or raise budget.allocations.{name}",
            )
        return check

    def _without(self, name: str, key: Hashable | None) -> int:
        """Tokens of a component but for what a key names in it."""
        return self.used(name) - (0 if key is None else self._held[name].get(key, 0))

    def _relieve(self, name: str, excess: int, relieve: Relieve) -> int:
        before = self.used(name)
        self._relieving = True  # what it adds itself is checked, and does not call it again
        try:
            freed = tokens("the tokens that relieve freed", relieve(name, excess))
        finally:
            self._relieving = False
        left = freed - max(0, before - self.used(name))
        for key, size in list(self._held[name].items()):
            if left <= 0:
                break
            taken = min(left, size)
            left -= taken
            if taken == size:
                self.remove(key)
            else:
                self._held[name][key] = size - taken
        return max(0, before - self.used(name))

    # how long it lasts

    def record_turn(self, added: int, seconds: float | None = None) -> None:
        """A turn is over. added: tokens that came into the window in it, whatever left; seconds: how long it took,
        without waiting for the user."""
        took = duration(seconds)
        self._added.append(tokens("the tokens that a turn added", added))
        if took is not None:
            self._seconds.append(took)

    @property
    def burn_rate(self) -> float | None:
        """Mean tokens added per turn over the last 10 (`burn_window`), None before the first."""
        return burn_rate_of(self._added)

    @property
    def turns_remaining(self) -> int | None:
        """Turns until the window is full but for the reserve: 0 when it is, None when nothing is being added."""
        return turns_remaining_of(self.window, self.limits[RESERVE].hard, self.total_used, self.burn_rate)

    @property
    def minutes_remaining(self) -> float | None:
        """Minutes that those turns take at the measured seconds per turn, None where none were measured."""
        return minutes_of(self.turns_remaining, pace_of(self._seconds))

    def usage(self) -> BudgetUsage:
        """Everything that is known of the window now."""
        total = self.total_used
        return BudgetUsage(
            self.window,
            tuple(self.component(name) for name in COMPONENTS),
            total,
            total / self.window,
            self.burn_rate,
            self.turns_remaining,
            self.minutes_remaining,
        )
