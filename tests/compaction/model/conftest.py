"""A local server that speaks `/v1/chat/completions`, with answers as a test wants them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Server:
    """replies: one per request, the last one again and again: text (a completion), a number (that HTTP status), bytes
    (a body as it is), or seconds as a float (waits so long, then "late"). requests: bodies as they came."""

    def __init__(self, replies: list[Any]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                at = min(len(outer.requests), len(replies) - 1)
                outer.requests.append({"path": self.path, **body})
                outer.keys.append(self.headers["Authorization"])
                reply = replies[at]
                if isinstance(reply, float):
                    time.sleep(reply)
                    reply = "late"
                status, out = 200, b""
                if isinstance(reply, int):
                    status, out = reply, b'{"error": {"message": "Error generating summary: sk-nothing"}}'
                elif isinstance(reply, bytes):
                    out = reply
                else:
                    text, reason = reply if isinstance(reply, tuple) else (reply, "stop")
                    message = {"role": "assistant", "content": text}
                    out = json.dumps(
                        {
                            "id": "x",
                            "object": "chat.completion",
                            "created": 1,
                            "model": "m",
                            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                            "usage": {"prompt_tokens": 77, "completion_tokens": 7, "total_tokens": 84},
                        }
                    ).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(out)))
                    self.end_headers()
                    self.wfile.write(out)
                except (BrokenPipeError, ConnectionResetError):
                    pass

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    servers: list[Server] = []

    def start(*replies: Any) -> Server:
        servers.append(Server(list(replies)))
        return servers[-1]

    yield start
    for server in servers:
        server.server.shutdown()
        server.server.server_close()
