"""OpenAI-compatible endpoints, against a local server."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import pytest

from ctxctl.compaction.llm import AskFailedError, Endpoint
from ctxctl.errors import ConfigError

pytest.importorskip("openai")


def test_an_answer(serve: Callable[..., Any]) -> None:
    server = serve("a summary")
    answer = Endpoint(server.url, "small", key="secret").ask("the prompt")
    assert (answer.text, answer.prompt, answer.output) == ("a summary", 77, 7)
    assert server.requests == [
        {"path": "/v1/chat/completions", "model": "small", "messages": [{"role": "user", "content": "the prompt"}]}
    ]
    assert server.keys == ["Bearer secret"]


def test_a_server_error_is_tried_again(serve: Callable[..., Any]) -> None:
    server = serve(500, "a summary")
    assert Endpoint(server.url, "m", retries=2).ask("p").text == "a summary"
    assert len(server.requests) == 2


FAILURES = {
    "server errors": ([500], "HTTP status 500"),
    "not allowed": ([401], "HTTP status 401"),
    "a page": ([b"<html>hello</html>"], "no JSON"),
    "another object": ([b'{"hello": 1}'], "no chat completion"),
    "a list": ([b"[]"], "no chat completion"),
    "no choices": ([b'{"choices": []}'], "no chat completion"),
    "cut off": ([("half a summ", "length")], "cut off"),
    "slow": ([5.0], "no answer in time"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_failures(serve: Callable[..., Any], case: str) -> None:
    replies, why = FAILURES[case]
    with pytest.raises(AskFailedError) as caught:
        Endpoint(serve(*replies).url, "m", timeout=0.4, retries=0, key="sk-key").ask("p")
    assert why in str(caught.value)
    assert "sk-" not in str(caught.value) and "Error generating" not in str(caught.value)


def test_no_content_is_an_empty_answer(serve: Callable[..., Any]) -> None:
    server = serve((None, "stop"))
    assert Endpoint(server.url, "m").ask("p").text == ""


def test_nobody_there() -> None:
    with pytest.raises(AskFailedError, match="can't be reached"):
        Endpoint("http://127.0.0.1:9/v1", "m", retries=0).ask("p")


def test_the_client_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name == "openai":
            raise ImportError(name)
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError) as caught:
        Endpoint("http://127.0.0.1:9/v1", "m")
    assert caught.value.hint == "pip install 'ctxctl[llm]'"
