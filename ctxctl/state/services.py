"""Whether the services of a task run: what answers on a TCP port of this machine, or a command that exits with 0."""

from __future__ import annotations

import errno
import selectors
import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ctxctl.model.state import Service

CONNECT_SECONDS = 0.5
COMMAND_SECONDS = 5.0
MOST = 100
"""Services that are looked at: a state may come from elsewhere, and is no reason to try every port."""
_HOSTS = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))

Answer = tuple[bool | None, str]
"""Whether it runs, None when that was not tried; and how that is known, in words."""


def look(
    services: Sequence[Service], *, cwd: Path, run_commands: bool, seconds: float = CONNECT_SECONDS
) -> list[Answer]:
    """Whether each service runs. All ports are tried at once, and wait so many seconds together; commands run only on
    demand, each for COMMAND_SECONDS at most. Nothing is raised."""
    chosen = services[:MOST]
    ports = {service.port for service in chosen if _is_port(service.port)}
    answering = _answering((port for port in ports if port is not None), seconds)
    commands = [service.command for service in chosen if service.port is None and service.command]
    ran = _ran(list(dict.fromkeys(commands)), cwd) if run_commands else {}
    return [
        _answer(service, answering, ran) if at < MOST else (None, f"not tried: more than {MOST} services")
        for at, service in enumerate(services)
    ]


def _is_port(port: int | None) -> bool:
    return port is not None and 1 <= port <= 65535


def _answer(service: Service, answering: dict[int, str], ran: dict[str, Answer]) -> Answer:
    if service.port is not None:
        if not _is_port(service.port):
            return False, f"{service.port} is no TCP port (1 to 65535)"
        host = answering.get(service.port)
        if host is not None:
            return True, f"port {service.port} answers on {host}"
        return False, f"nothing answers on port {service.port}"
    if service.command:
        return ran.get(service.command, (None, f"not run: `{service.command}`; --run-commands runs it"))
    return None, "neither a port nor a command is given"


def _answering(ports: Iterable[int], seconds: float) -> dict[int, str]:
    """Ports that take a connection, with the address that does."""
    found: dict[int, str] = {}
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as waiting:
        try:
            for port in sorted(ports):
                for family, host in _HOSTS:
                    _start(waiting, family, host, port, found)
            while waiting.get_map() and (left := end - time.monotonic()) > 0:
                for key, _ in waiting.select(left):
                    one = key.fileobj
                    assert isinstance(one, socket.socket)
                    host, port = key.data
                    if one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0 and not _to_itself(one):
                        found.setdefault(port, host)
                    waiting.unregister(one)
                    one.close()
        finally:
            for key in list(waiting.get_map().values()):
                if isinstance(key.fileobj, socket.socket):
                    key.fileobj.close()
    return found


def _start(waiting: selectors.BaseSelector, family: int, host: str, port: int, found: dict[int, str]) -> None:
    with suppress(OSError):  # no IPv6 on this machine, or no socket left
        one = socket.socket(family, socket.SOCK_STREAM)
        one.setblocking(False)
        status = one.connect_ex((host, port))
        if status in (errno.EINPROGRESS, errno.EWOULDBLOCK):
            waiting.register(one, selectors.EVENT_WRITE, (host, port))
            return
        if status == 0 and not _to_itself(one):
            found.setdefault(port, host)
        one.close()


def _to_itself(one: socket.socket) -> bool:
    """Whether the port that the system chose for our end is the one we asked for: TCP then connects a socket to itself
    although nothing listens."""
    try:
        return bool(one.getsockname() == one.getpeername())
    except OSError:
        return True


def _ran(commands: Sequence[str], cwd: Path) -> dict[str, Answer]:
    if not commands:
        return {}
    from concurrent.futures import ThreadPoolExecutor

    from ctxctl.state.validators import run

    def one(command: str) -> Answer:
        done = run(command, cwd=cwd, timeout=COMMAND_SECONDS)
        lines = done.detail.split("\n") if done.detail else []
        return done.ok, f"`{command}`: " + ("exit status 0" if done.ok else "; ".join(lines[:2]) or "failed")

    with ThreadPoolExecutor(min(8, len(commands))) as pool:
        return dict(zip(commands, pool.map(one, commands), strict=True))
