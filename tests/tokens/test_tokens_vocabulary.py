"""The embedded vocabularies are the ones that tiktoken would download, and nothing is ever downloaded."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from ctxctl.tokens import vocabulary

openai_public = pytest.importorskip("tiktoken_ext.openai_public")

TEXTS = [
    "hello world",
    "def main(argv: list[str]) -> int:\n    return 0\n",
    "上下文窗口快满了 日本語のテキスト 한국어",
    "🧑‍🚀👩‍👩‍👧 naïve café ǅ \u017f \u212a I'LL",
    " \t\n\r\n\u00a0\u0085\u2028x",
    "<|endoftext|>",
]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    path = Path(__file__).parents[1] / "tools" / "make_vocabularies.py"
    spec = importlib.util.spec_from_file_location("make_vocabularies", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def demanded(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """File name -> sha256 that tiktoken demands, filled while its constructors run without a download."""
    hashes: dict[str, str] = {}

    def load(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
        hashes[url.rpartition("/")[2]] = expected_hash or ""
        return {}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", load)
    return hashes


@pytest.mark.parametrize("name", vocabulary.ENCODINGS)
def test_everything_is_as_tiktoken_has_it(name: str, demanded: dict[str, str], tool: ModuleType) -> None:
    theirs = openai_public.ENCODING_CONSTRUCTORS[name]()
    ours = vocabulary.encoding(name)
    assert ours.name == theirs["name"] == name
    assert ours._pat_str == theirs["pat_str"]
    assert ours._special_tokens == theirs["special_tokens"] == vocabulary.special_tokens(name)
    text = b"".join(b"%s %d\n" % (base64.b64encode(t), rank) for t, rank in ours._mergeable_ranks.items())
    assert {f"{vocabulary.ordinary(name)}.tiktoken": hashlib.sha256(text).hexdigest()} == demanded
    assert tool.SHA256[vocabulary.ordinary(name)] in demanded.values()


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_ids_equal_those_of_another_library(name: str) -> None:
    splintr = pytest.importorskip("splintr")
    other = splintr.Tokenizer.from_pretrained(name)
    for text in TEXTS:
        ids = vocabulary.encoding(name).encode_ordinary(text)
        assert ids == other.encode_ordinary(text)
        assert vocabulary.encoding(name).decode(ids) == text


def test_harmony_knows_its_specials() -> None:
    harmony = vocabulary.encoding("o200k_harmony")
    assert harmony.encode("<|start|>user<|message|>hi<|end|>", allowed_special="all") == [
        200006,
        1428,
        200008,
        3686,
        200007,
    ]
    assert harmony.encode_ordinary("hi <|start|>") == vocabulary.encoding("o200k_base").encode_ordinary("hi <|start|>")


def test_no_network_and_no_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(vocabulary, "_encodings", {})
    monkeypatch.setattr(vocabulary, "_ranks", {})
    assert len(vocabulary.encoding("cl100k_base").encode_ordinary("hello world")) == 2
    assert list(tmp_path.iterdir()) == []


def test_threads_get_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_encodings", {})
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(vocabulary.encoding, ["cl100k_base"] * 8))
    assert len({id(each) for each in found}) == 1


def test_unknown_name_lists_the_valid_ones() -> None:
    with pytest.raises(ValueError, match=r"'p50k_base'.*o200k_base, cl100k_base, o200k_harmony"):
        vocabulary.encoding("p50k_base")
    with pytest.raises(ValueError, match="unknown encoding"):
        vocabulary.special_tokens("gpt2")


def test_packing_and_unpacking_are_inverse(tool: ModuleType) -> None:
    tokens = list(vocabulary.encoding("cl100k_base")._mergeable_ranks)[:1500]
    assert list(vocabulary.unpack(tool.pack(tokens))) == tokens
    text = tool.unparse(dict(zip(tokens, range(len(tokens)), strict=True)))
    assert tool.parse(text) == tokens
    with pytest.raises(ValueError, match="rank"):
        tool.parse(text.partition(b"\n")[2])
    with pytest.raises(ValueError, match="merge of two earlier"):
        tool.pack([*tokens[:256], b"never merged"])
    with pytest.raises(ValueError, match="256 bytes"):
        tool.pack(tokens[1:300])


def test_damaged_data_is_refused() -> None:
    import zlib

    for packed in (b"", b"junk", zlib.compress(b"x" * 255), zlib.compress(bytes(260)), zlib.compress(b"\xff" * 262)):
        with pytest.raises(ValueError, match="damaged vocabulary"):
            vocabulary.unpack(packed)


def test_the_licence_travels_with_the_data() -> None:
    folder = Path(vocabulary.__file__).with_name("data")
    assert "Copyright (c) 2022 OpenAI" in (folder / "NOTICE").read_text(encoding="utf-8")
    assert sum(path.stat().st_size for path in folder.glob("*.bin")) < 1_100_000
