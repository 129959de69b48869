"""How written records of a Claude Code session hang on each other."""

from __future__ import annotations

INHERIT = ""
"""Group of a record that belongs to whatever it hangs on."""


class Chain:
    """Gives each record its parent, so that a walk from the last one to the root meets every answer.

    A record whose own parent was written last keeps it, and so does one of the same response or its results beside
    others of them: parallel calls are siblings. Any other hangs on the record written before it, since a gap or a
    second path would make readers lose what lies before it.
    """

    def __init__(self, root: str | None) -> None:
        self.last = root
        self._place: dict[str, int] = {root: 0} if root is not None else {}
        self._since = 0
        self._group: str | None = None

    def __contains__(self, uuid: object) -> bool:
        return uuid in self._place

    def add(self, uuid: str, parent: str | None, group: str | None) -> str | None:
        """The parent of the next record. parent: its own; group: the response that it belongs to, None for none."""
        place = len(self._place)
        within = parent is not None and self._place.get(parent, -1) >= self._since
        if group == INHERIT:
            group = self._group if within else None
        if parent != self.last and not (within and group is not None and group == self._group):
            parent = self.last
        if group is None or group != self._group:
            self._since, self._group = place, group
        self._place[uuid] = place
        self.last = uuid
        return parent
