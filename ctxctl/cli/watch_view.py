"""What `ctxctl watch` shows of a session: a line per change, a JSON object per change, or a picture that is redrawn."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ctxctl import __version__

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from ctxctl.health.view import View
    from ctxctl.pressure.options import PressureThresholds

STYLES = {"green": "green", "yellow": "yellow", "orange": "dark_orange", "red": "bold red"}
ALERTS = {"info": ("i", "cyan"), "warning": ("!", "yellow"), "critical": ("!!", "bold red")}
EIGHTHS = "▁▂▃▄▅▆▇█"
ASCII = {
    **dict(zip(EIGHTHS, "__.-=+##", strict=True)),
    **{"░": ".", "▕": "[", "▏": "]", "·": "|", "…": "...", "▲": "^", "~": "~"},
}
MOST_ALERTS = 6
WIDEST = 120


def view_data(view: View) -> dict[str, Any]:
    """One JSON object of a change."""
    result = {key: value for key, value in asdict(view).items() if key != "curve"}
    return {"schema": "ctxctl.watch/1", "ctxctl": __version__, "result": result}


def view_line(view: View) -> str:
    """One line of a change."""
    when = time.strftime("%H:%M:%S", time.localtime(view.changed)) if view.changed is not None else "--:--:--"
    if view.state != "live":
        return f"{when} {view.state}: {view.note}" if view.note else f"{when} {view.state}"
    parts = [f"{when} turn {view.turn}" if view.turn is not None else f"{when} no usage reported yet"]
    if view.tokens is not None:
        parts.append(f"{view.tokens:,}/{view.window:,} tokens" if view.window else f"{view.tokens:,} tokens")
    if view.utilization is not None:
        parts.append(f"{view.utilization:.0%} {view.level}")
    parts += _pace(view)
    parts += _sums(view)
    if view.last_tool:
        parts.append(_clean(view.last_tool))
    parts += [f"{alert.level} {alert.code}" for alert in view.alerts if alert.level != "info"]
    return ", ".join(parts)


def _pace(view: View) -> list[str]:
    parts = []
    if view.velocity is not None:
        parts.append(f"{view.velocity:+,.0f} per turn")
    if view.turns_left == -1:
        parts.append("full")
    elif view.turns_left is not None:
        minutes = f", about {_minutes(view.minutes_left)}" if view.minutes_left is not None else ""
        parts.append(f"full in {view.turns_left:,} turn{'s' * (view.turns_left != 1)}{minutes}")
    return parts


def _sums(view: View) -> list[str]:
    parts = []
    if view.cost is not None:
        parts.append(f"${view.cost:,.2f}")
    if view.hit_rate is not None:
        parts.append(f"cache {view.hit_rate:.0%}")
    if view.compactions:
        parts.append(f"{view.compactions} compaction{'s' * (view.compactions != 1)}")
    return parts


def _minutes(minutes: float) -> str:
    if minutes < 1:
        return "1 min"
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"


def ago(seconds: float) -> str:
    """How long ago, in steps that grow: a picture that shows it need not be redrawn each second."""
    seconds = max(0.0, seconds)
    if seconds < 10:
        return "just now"
    if seconds < 60:
        return f"{int(seconds // 10) * 10} s ago"
    if seconds < 3600:
        return f"{int(seconds // 60)} min ago"
    return f"{int(seconds // 3600)} h ago" if seconds < 86400 else f"{int(seconds // 86400)} d ago"


def _clean(text: str) -> str:
    return "".join(c for c in text if c.isprintable())


def picture(view: View, thresholds: PressureThresholds, width: int, height: int, *, unicode: bool) -> RenderableType:
    """A view as a few lines of at most `width` columns."""
    from rich.console import Group
    from rich.text import Text

    width = max(24, min(width, WIDEST))
    lines: list[Text] = [_head(view, width), Text()]
    if view.utilization is not None:
        lines += _gauge(view, thresholds, width)
    elif view.tokens is not None:
        lines.append(Text(f"{view.tokens:,} tokens; the window is unknown (--window sets it)"))
    elif view.state == "live":
        lines.append(Text("no usage is reported yet"))
    if view.curve:
        lines += [Text(), _curve(view, thresholds, width)]
    lines += [Text(), *_facts(view, width)]
    room = max(1, height - len(lines) - 2)
    lines += _alerts(view, width, min(MOST_ALERTS, room))
    for line in lines:
        if not unicode:
            line.plain = "".join(ASCII.get(c, c) for c in line.plain)
        line.no_wrap, line.overflow = True, "ellipsis" if unicode else "crop"
        line.truncate(width, overflow=line.overflow)
    return Group(*lines[: max(1, height - 1)])


def _head(view: View, width: int) -> Text:
    from rich.text import Text

    state = view.state if view.state != "live" or view.changed is None else ago(time.time() - view.changed)
    name = _clean(os.path.basename(view.path))
    more = " · ".join(_clean(part) for part in (view.model, view.format) if part)
    room = max(8, width - len(state) - 2)
    if len(name) + len(more) + 3 > room:
        name = name[: max(4, room - len(more) - 4)] + "…"
    left = Text(name, style="bold")
    left.append(f" · {more}" if more else "", style="dim")
    left.truncate(room)
    style = {"live": "dim", "waiting": "yellow"}.get(view.state, "bold red")
    return left.append(" " * max(1, width - left.cell_len - len(state))).append(state, style=style)


def _gauge(view: View, thresholds: PressureThresholds, width: int) -> list[Text]:
    from rich.text import Text

    assert view.utilization is not None
    style = STYLES.get(view.level or "", "")
    room = width - 2
    full = max(0, min(room, round(view.utilization * room)))
    bar = Text("▕")
    bar.append("█" * full, style=style).append("░" * (room - full), style="dim").append("▏")
    marks = [" "] * width
    for name, share in (("yellow", thresholds.yellow), ("orange", thresholds.orange), ("red", thresholds.red)):
        label = f"▲{name}" if width >= 60 else "▲"
        at = 1 + min(room - 1, int(share * room))
        marks[at : at + len(label)] = label[: width - at]
    window = f"of {view.window:,} tokens" if view.window else "tokens"
    if view.window_source == "assumed":
        window += " (assumed)"
    text = Text(f"{view.utilization:4.0%} {view.level}", style=style)
    text.append(f"   {view.tokens:,} {window}", style="default")
    if view.waiting:
        text.append(f", about {view.waiting:,} of them not sent yet", style="dim")
    if view.source == "stated":
        text.append(", as stated by the compaction", style="dim")
    return [text, bar, Text("".join(marks)[:width].rstrip(), style="dim")]


def _curve(view: View, thresholds: PressureThresholds, width: int) -> Text:
    """The newest turns, one column each, in the colours of their levels."""
    from rich.text import Text

    values = view.curve[-width:]
    top = max(*values, view.window or 0, 1)
    line = Text()
    for value in values:
        level = thresholds.level(value / view.window) if view.window else ""
        line.append(EIGHTHS[max(0, min(7, round(value / top * 8) - 1))], style=STYLES.get(level, "cyan"))
    return line


def _facts(view: View, width: int) -> list[Text]:
    from rich.text import Text

    first = [f"turn {view.turn:,}" if view.turn is not None else "", *_pace(view)]
    if view.burn_rate is not None:
        first.insert(2, f"{view.burn_rate:+,.0f} over 10")
    second = [*_sums(view), f"{view.requests:,} requests" if view.requests else ""]
    if view.last_tool:
        second.append(f"last tool {_clean(view.last_tool)}")
    lines = [Text(line) for parts in (first, second) for line in _packed([p for p in parts if p], width)]
    if view.state != "live" and view.note:
        lines.append(Text(_clean(view.note), style="yellow"))
    if view.partial:
        lines.append(Text("so large a file that its usage alone is read: what waits is not counted", style="dim"))
    return [line for line in lines if line.plain]


def _packed(parts: list[str], width: int) -> list[str]:
    """Parts in as few lines as hold them whole."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 3 + len(part) <= width:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return lines


def _alerts(view: View, width: int, most: int) -> list[Text]:
    from rich.text import Text

    order = ("critical", "warning", "info")
    alerts = sorted(view.alerts, key=lambda a: order.index(a.level))
    lines: list[Text] = [Text()] if alerts else []
    for alert in alerts[:most]:
        mark, style = ALERTS[alert.level]
        lines.append(Text(f"{mark:>2} ", style=style).append(_clean(alert.message), style="default"))
    if len(alerts) > most:
        lines.append(Text(f"   and {len(alerts) - most} more", style="dim"))
    return lines
