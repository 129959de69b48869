"""What text and pictures weigh: special tokens are text, no script is cheap, base64 is no text."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

import pytest

from ctxctl import tokens

SPECIAL = [
    "<|endoftext|>",
    "<|im_start|>user<|im_end|>",
    "<|fim_middle|>",
    "<|endofprompt|>",
    "[INST] x [/INST]",
    "<s></s>",
]
SCRIPTS = {
    "english": ("The build failed because a header was missing; run it again. ", 10, 45),
    "chinese": ("构建失败了因为缺少一个头文件请再次运行并检查日志", 45, 250),
    "japanese": ("ビルドが失敗しましたヘッダがないのでもう一度実行してください", 45, 250),
    "korean": ("헤더가없어서빌드가실패했습니다다시실행하고로그를확인하세요", 45, 250),
    "emoji": ("🎯🧵🪛🦜🍋🚲🎻🧩🪁🌋", 100, 400),
}


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


def per_block(result: Any) -> list[int]:
    return [row["tokens"] for row in result["blocks"]]


@pytest.mark.parametrize("text", SPECIAL)
def test_a_marker_is_ordinary_text(text: str, analyzed: Any) -> None:
    result = analyzed(said(text, f"before {text} after", text))
    alone, within_text, again = per_block(result)
    assert alone == again > 1
    assert alone < within_text <= alone + 4
    for encoding in tokens.ENCODINGS:
        assert tokens.count(text, encoding) > 1
    assert alone == tokens.count(text)


def test_markers_in_every_place_of_a_session(claude: Any, save: Any, within: Any) -> None:
    marker = "<|endoftext|>"
    session = claude()
    session.user(marker)
    session.assistant([{"type": "thinking", "thinking": marker, "signature": "c2ln"}])
    session.call("toolu_1", marker, {marker: marker})
    session.result("toolu_1", marker)
    session.assistant(marker)
    path = save(session)
    for form in ("json", "text", "csv", "markdown"):
        done = within("analyze", "--output-format", form, path)
        assert done.status == 0
    result = within("analyze", "--json", "--blocks", path).result
    assert all(row["tokens"] > 1 for row in result["blocks"]) and len(result["blocks"]) == 5


def test_every_tokenizer_gives_the_same_numbers(save: Any, ctxctl: Any) -> None:
    path = save(said(*SPECIAL, *(text * 30 for text, _, _ in SCRIPTS.values())))
    found = {}
    for name in ("tiktoken", "splintr", "toktok"):
        done = ctxctl("analyze", "--json", "--blocks", path, env={"CTXCTL_TOKENIZER": name})
        if done.status == 0:
            found[name] = per_block(done.result)
    assert "tiktoken" in found and len({tuple(counts) for counts in found.values()}) == 1


def test_no_script_is_cheap(analyzed: Any) -> None:
    texts = {name: (text * 12)[:100] for name, (text, _, _) in SCRIPTS.items()}
    assert {len(text) for text in texts.values()} == {100}
    counts = dict(zip(texts, per_block(analyzed(said(*texts.values()))), strict=True))
    for name, (_, low, high) in SCRIPTS.items():
        assert low <= counts[name] <= high, (name, counts[name])
    assert counts["chinese"] > 2 * counts["english"]


def test_a_text_counts_the_same_wherever_it_stands(claude: Any, analyzed: Any) -> None:
    text = "def f(x):\n    return x  # 合計 🎯 <|endoftext|>\n" * 20
    plain = per_block(analyzed(said(text)))
    assert plain == per_block(analyzed(said("a", text, "b")))[1:2] == [tokens.count(text)]
    session = claude("nobody-knows-me-1")
    session.user(text)
    session.user([{"type": "text", "text": text}])
    session.call("toolu_1")
    session.result("toolu_1", text)
    session.result("toolu_1", [{"type": "text", "text": text}])
    counts = per_block(analyzed(session))
    assert len({counts[0], counts[1], counts[3], counts[4], plain[0]}) == 1


def test_a_million_blanks_count(analyzed: Any) -> None:
    counts = per_block(analyzed(said(" " * 1_000_000, "\n" * 100_000, "a" * 300_000, "")))
    assert all(count > 0 for count in counts[:3])


def png(width: int, height: int, noise: int) -> str:
    """A picture in base64. noise: how badly it compresses."""
    state, rows = 12_345, bytearray()
    for _ in range(height):
        rows.append(0)
        for _ in range(width):
            state = (state * 1_103_515_245 + 12_345) % 2**31
            rows.append(state >> 16 & noise)
    parts = [b"\x89PNG\r\n\x1a\n"]
    for name, data in (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(bytes(rows), 1)),
        (b"IEND", b""),
    ):
        parts += [struct.pack(">I", len(data)), name, data, struct.pack(">I", zlib.crc32(name + data))]
    return base64.b64encode(b"".join(parts)).decode()


def image(data: str, mime: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


def pictured(claude: Any, *data: str) -> Any:
    """The same pictures in a user message and inside a tool result."""
    pictures = [image(d) for d in data]
    session = claude()
    session.user([{"type": "text", "text": "see"}, *pictures])
    session.call("toolu_1", "Screenshot")
    session.result("toolu_1", [{"type": "text", "text": "shot"}, *pictures])
    session.assistant("seen")
    return session


def images(result: Any) -> list[int]:
    return [row["tokens"] for row in result["blocks"] if row["kind"] == "image"]


def test_a_picture_costs_the_same_in_both_places(claude: Any, analyzed: Any) -> None:
    result = analyzed(pictured(claude, png(600, 400, 255)))
    first, second = images(result)
    assert first == second and 85 <= first <= 6000
    assert result["composition"]["by_kind"]["image"] == {
        "blocks": 2,
        "tokens": first * 2,
        "share": pytest.approx(first * 2 / sum(per_block(result)), abs=0.01),
    }
    assert result["composition"]["by_tool"]["Screenshot"]["calls"] == 1


def test_a_picture_is_not_weighed_as_text(claude: Any, analyzed: Any) -> None:
    flat, noisy = png(600, 400, 0), png(600, 400, 255)
    assert len(noisy) > 50 * len(flat)
    assert images(analyzed(pictured(claude, flat))) == images(analyzed(pictured(claude, noisy)))
    small, large = images(analyzed(pictured(claude, png(100, 100, 255), png(900, 900, 0))))[:2]
    assert small < large


def test_without_the_pictures_the_sum_falls_by_what_they_cost(claude: Any, analyzed: Any) -> None:
    with_, without = (analyzed(pictured(claude, *data)) for data in ((png(600, 400, 255),), ()))
    fall = sum(per_block(with_)) - sum(per_block(without))
    assert fall == sum(images(with_))
    assert with_["composition"]["by_kind"]["tool_result"] == {
        **without["composition"]["by_kind"]["tool_result"],
        "share": pytest.approx(with_["composition"]["by_kind"]["tool_result"]["share"]),
    }
    assert with_["context"]["counted"] - without["context"]["counted"] == sum(images(with_))


BROKEN = ["", "AAAA", "not base64 at all!", "A" * 60_000, base64.b64encode(b"GIF89a" + bytes(3)).decode()]


@pytest.mark.parametrize("data", BROKEN, ids=lambda d: f"{d[:6]} {len(d)}")
def test_a_picture_that_can_not_be_measured_still_costs(data: str, claude: Any, analyzed: Any) -> None:
    for mime in ("image/png", "image/webp", None):
        session = claude()
        session.user([image(data, mime)])  # type: ignore[arg-type]
        assert 85 <= images(analyzed(session))[0] <= 6000


def test_pictures_of_a_chat(save: Any, within: Any) -> None:
    url = {"url": "data:image/png;base64," + png(600, 400, 255)}
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": url}]
    remote = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
    messages = [{"role": "user", "content": parts}, {"role": "user", "content": remote}]
    result = within("analyze", "--json", "--blocks", save(messages)).result
    assert len(images(result)) == 2 and all(85 <= n <= 6000 for n in images(result))


def test_a_document_is_not_weighed_as_text(claude: Any, analyzed: Any) -> None:
    body = b"%PDF-1.4\n" + b"".join(b"%d 0 obj <</Type /Page>> endobj\n" % n for n in range(3)) + bytes(90_000)
    source = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(body).decode()}
    session = claude()
    session.user([{"type": "document", "source": source}])
    kind = analyzed(session)["composition"]["by_kind"]["document"]
    assert kind["blocks"] == 1 and 1500 < kind["tokens"] < 20_000


@pytest.mark.parametrize("cut", [r"\ud83d", r"\udcb2"])
def test_a_lone_surrogate_counts_as_a_character(cut: str, claude: Any, analyzed: Any) -> None:
    session = claude("nobody-knows-me-1")
    session.user("price PLACE up")
    lone = per_block(analyzed(session.data().replace(b"PLACE", cut.encode())))
    assert lone == per_block(analyzed(session.data().replace(b"PLACE", "\ufffd".encode())))


def test_no_part_of_a_type_that_is_not_known_brings_base64_as_text(claude: Any, codex: Any, analyzed: Any) -> None:
    payload = base64.b64encode(bytes(range(256)) * 200).decode()
    session = claude()
    session.user([{"type": "container_upload", "data": payload}, {"type": "text", "text": "hear this"}])
    session.call("toolu_a")
    session.result("toolu_a", [{"type": "audio", "data": payload}, {"type": "resource", "blob": payload}])
    session.assistant("heard")
    rollout = codex()
    for part in ({"type": "input_file", "file_data": f"data:application/pdf;base64,{payload}"}, {"audio": payload}):
        content = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "see"}, part]}
        rollout.write("response_item", content)
    output = {"content": [{"type": "image", "data": payload}]}
    rollout.write("response_item", {"type": "function_call_output", "call_id": "c", "output": output})
    rollout.message("assistant", "seen")
    for source in (session, rollout):
        assert 0 < analyzed(source)["context"]["counted"] < 200
    said = claude()  # but what a tool printed is text, whatever it looks like
    said.user("go")
    said.call("toolu_a")
    said.result("toolu_a", payload)
    said.assistant("ok")
    assert analyzed(said)["context"]["counted"] > 10_000


def test_what_is_counted_now_is_not_less_than_what_the_newest_call_saw(save: Any, analyzed: Any) -> None:
    messages = [{"role": ("user", "assistant")[n % 2], "content": "ok then"} for n in range(200)]
    result = analyzed(json.dumps({"model": "gpt-4o", "messages": messages}).encode() + b"\n")
    now = result["context"]
    assert now["tokens"] == now["counted"] + now["frames"] >= result["peak"]["tokens"]
