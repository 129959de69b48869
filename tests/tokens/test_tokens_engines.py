"""All engines give the numbers of tiktoken's `encode_ordinary`, on any text, and none raises or hangs."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.errors import ConfigError
from ctxctl.tokens import backends, engines, vocabulary

CASES = Path(__file__).parents[3] / "shared" / "cases"
BASES = ("o200k_base", "cl100k_base")
LIBRARIES = ("splintr", "toktok", "tiktoken")


def reference(texts: list[str], encoding: str) -> list[int]:
    encode = vocabulary.encoding(encoding).encode_ordinary
    return [len(encode(text)) for text in texts]


def make(library: str, encoding: str = "o200k_base") -> engines.Engine:
    pytest.importorskip(library)
    return engines.ENGINES[library](encoding)


def adversarial(count: int, seed: int = 20240607) -> Iterator[str]:
    """Strings of the parts that tokenizers disagree on."""
    rng = random.Random(seed)
    parts = [
        *("'s", "'S", "'\u017f", "'LL", "'ve", "'re", "\u2019s", "don't", "I'LL", "'", "''", "K", "\u017f", "\u212a"),
        *(
            " ",
            "  ",
            "\t",
            "\n",
            "\r\n",
            "\r",
            "\u00a0",
            "\u0085",
            "\u2028",
            "\u2029",
            "\u3000",
            "\u200b",
            "\v",
            "\x1c",
        ),
        *("e\u0301", "\u0301", "\u0300\u0301", "ก็", "नमस्ते", "ﷺ", "א\u05b0", "\u20dd"),
        *("ǅ", "ǈungla", "ǲ", "Straße", "İ", "\u0131", "ŉ", "ﬀ", "CamelCaseHTTPServer", "snake_case", "ALLCAPS"),
        *("👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪", "☃️", "🧑‍🚀"),
        *("中文", "日本語のテキスト", "한국어", "ﾊﾝｶｸ", "全角ＡＢＣ"),
        *(
            "<|endoftext|>",
            "<|im_start|>",
            "<|fim_prefix|>",
            "<|think|>",
            "<|/think|>",
            "<|",
            "|>",
            "<|end",
            "[INST]",
            "</s>",
        ),
        *("\ud800", "\udfff", "\ud83d\ude00", "\udcb2", "a\ud99cb", "\ufeff", "\ufffd", "\x00", "\x7f", "\U0010ffff"),
        *("1", "12", "1234567", "3.14", "٣٤٥", "½", "Ⅻ", "x²"),
        *(
            "{",
            '{"a": [1, null]}',
            "=>",
            "//",
            "/*",
            "!=\n",
            "...\r\n",
            "```\n",
            "\\n",
            "http://a.b/c?d=e#f",
            "====",
            "/\n/",
        ),
        *("hello", " world", "The", "the", "naïve", "ünïcödé", "données", "привет", "γειά", "مرحبا"),
    ]
    for i in range(count):
        kind = i % 8
        if kind == 0:
            yield "".join(
                chr(rng.choice((rng.randrange(0x80), rng.randrange(0x3000), rng.randrange(0x110000))))
                for _ in range(40)
            )
        elif kind == 1:
            yield rng.randbytes(60).decode(rng.choice(("latin-1", "utf-8")), "replace")
        elif kind == 2:
            yield rng.choice(parts) * rng.randrange(1, 300)
        else:
            yield "".join(rng.choices(parts, k=rng.randrange(1, 30)))


ADVERSARIAL = list(adversarial(3_000))


@pytest.mark.parametrize("encoding", BASES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_adversarial_texts(library: str, encoding: str) -> None:
    counts = make(library, encoding).count(ADVERSARIAL)
    expected = reference(ADVERSARIAL, encoding)
    wrong = [(t, c, e) for t, c, e in zip(ADVERSARIAL, counts, expected, strict=True) if c != e]
    assert wrong == []


@pytest.mark.parametrize("encoding", BASES)
@pytest.mark.parametrize("library", ["splintr", "toktok"])
def test_any_text(library: str, encoding: str) -> None:
    engine = make(library, encoding)
    characters = st.characters(exclude_categories=())
    chunks = st.one_of(st.text(characters), st.sampled_from(["<|endoftext|>", "'s", " ", "\n", "\u0301", "中"]))

    @settings(max_examples=150, deadline=None)
    @given(st.lists(st.lists(chunks, max_size=4).map("".join), max_size=6))
    def check(texts: list[str]) -> None:
        assert engine.count(texts) == reference(texts, encoding)

    check()


def test_long_texts_of_many_kinds() -> None:
    texts = ["".join(adversarial(400, seed)) for seed in range(6)]
    expected = reference(texts, "o200k_base")
    for library in LIBRARIES:
        assert make(library).count(texts) == expected


PATHOLOGICAL: dict[str, tuple[str, int]] = {
    "blanks": (" " * 1_000_000, 7_813),
    "blanks and a word": (" " * 1_000_000 + "x", 7_814),
    "tabs": ("\t" * 1_000_000, 62_500),
    "newlines, then blanks": ("\n" * 300_000 + " " * 1_000_000, 26_563),
    "one letter": ("a" * 1_000_000, 125_000),
    "one capital": ("A" * 1_000_000, 125_000),
    "specials": ("<|endoftext|>" * 50_000, 300_001),
    "lone surrogates": ("\ud800" * 100_000, 12_500),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", PATHOLOGICAL)
def test_pathological_texts(library: str, name: str) -> None:
    text, expected = PATHOLOGICAL[name]
    assert make(library).count([text, "and more"]) == [expected, 2]


@pytest.mark.parametrize(
    "text",
    [
        " " * 1_200_000 + "x",
        "\t" * 1_200_000 + "z",
        "w" + "\u00a0" * 1_100_000 + "1",
        (" " * 399_999 + "x") * 3,
        " " * 500_000 + "\n" + " " * 1_000_000,
        "\x85" * 1_000_000 + "\u2028" * 1_000_000,
    ],
    ids=["blanks", "tabs", "no-break", "many runs", "line between", "rare blanks"],
)
def test_runs_are_cut_where_the_count_stays_the_same(text: str) -> None:
    for encoding in BASES:
        assert make("tiktoken", encoding).count([text]) == make("toktok", encoding).count([text])


def test_mixed_blanks_in_tiktoken_are_near_enough() -> None:
    text = " \t" * 600_000
    assert make("toktok").count([text]) == [599_999]
    assert make("tiktoken").count([text])[0] == pytest.approx(599_999, abs=2 * len(text) // 262_144)


@pytest.mark.parametrize("library", LIBRARIES)
def test_special_tokens_are_ordinary_text_wherever_they_stand(library: str) -> None:
    for encoding in vocabulary.ENCODINGS:
        engine = make(library, encoding)
        assert engine.encoding == encoding
        specials = list(vocabulary.special_tokens(encoding))[:40]
        alone = engine.count(specials)
        assert alone == reference(specials, encoding)
        assert min(alone) > 1
        assert engine.count(["\n".join(specials)]) == reference(["\n".join(specials)], encoding)
    assert make(library).count(["<|endoftext|>"]) == [7]


@pytest.mark.parametrize("library", LIBRARIES)
def test_small_and_many(library: str) -> None:
    engine = make(library)
    assert engine.name == library
    assert engine.count([]) == []
    assert engine.count(["", "a", ""]) == [0, 1, 0]
    assert engine.count(("a", "hello world")) == [1, 2]
    big = ["word " * 200_000] * 5 + ["x"]  # more than one batch
    assert engine.count(big) == [200_001] * 5 + [1]


def test_clean_is_what_tiktoken_does() -> None:
    assert engines.clean("a\ud800b") == "a\ufffdb"
    assert engines.clean("\ud83d\ude00\udc00") == "😀\ufffd"
    assert engines.clean("\ufeffä\ud800") == "\ufeffä\ufffd"
    same = "ok 中"
    assert engines.clean(same) is same


def test_splintr_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make("splintr")
    assert isinstance(engine, backends.SplintrEngine)
    monkeypatch.setattr(backends, "_CACHE_CHARACTERS", 100_000)
    rng = random.Random(5)
    for _ in range(20):
        engine.count(["".join(rng.choices("abcdefghij", k=500)) for _ in range(50)])
    assert engine._tokenizer.cache_len <= 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_can_count() -> None:
    for library in ("splintr", "toktok"):
        pytest.importorskip(library)
    code = """
import os
from ctxctl.tokens.engines import SplintrEngine, ToktokEngine
texts = ["some words and more %d <|endoftext|>" % i + " text" * 500 for i in range(200)]
both = [SplintrEngine(), ToktokEngine()]
before = [engine.count(texts) for engine in both]
child = os.fork()
if child == 0:
    os._exit(0 if [engine.count(texts) for engine in both] == before else 9)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    root = str(Path(engines.__file__).parents[2])
    code = f"import sys; sys.path.insert(0, {root!r})\n{code}"
    assert subprocess.run([sys.executable, "-c", code], timeout=30, check=False).returncode == 0


def test_threads_share_an_engine() -> None:
    engine = engines.engine()
    texts = ADVERSARIAL[:500]
    expected = reference(texts, "o200k_base")
    results: list[list[int]] = []
    threads = [threading.Thread(target=lambda: results.append(engine.count(texts))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


class PanicException(BaseException):
    """What a panic in Rust looks like in Python."""


class Failing:
    """An engine that can't count."""

    name = "splintr"
    encoding = "o200k_base"

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, encoding: str) -> Failing:
        return self

    def count(self, texts: object) -> list[int]:
        raise self.error


def test_adaptive_goes_over_to_toktok(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("splintr", "toktok"):
        pytest.importorskip(library)
    assert engines.AdaptiveEngine("o200k_base").name == "splintr"
    assert engines.AdaptiveEngine("o200k_base", 29_000_000).name == "splintr"
    assert engines.AdaptiveEngine("o200k_base", 31_000_000).name == "toktok"
    assert engines.engine("cl100k_base", size_hint=31_000_000).name == "toktok"
    monkeypatch.setitem(engines.BULK_CHARACTERS, "o200k_base", 1_000)
    engine = engines.engine()
    assert (engine.count(["word " * 150]), engine.name) == ([151], "splintr")
    assert (engine.count(["word " * 150]), engine.name) == ([151], "toktok")
    assert isinstance(engine, engines.AdaptiveEngine) and engine.dropped == {}
    preferred = engines.engine(prefer="tiktoken")
    assert (preferred.count(["word " * 500]), preferred.name) == ([501], "tiktoken")


@pytest.mark.parametrize("error", [RuntimeError("broken"), PanicException("explicit panic"), ImportError("no wheel")])
def test_adaptive_falls_back(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines.ENGINES, "splintr", Failing(error))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "toktok", None)  # its import fails
    engine = engines.AdaptiveEngine("o200k_base")
    assert engine.count(["hello world", "<|endoftext|>"]) == [2, 7]
    assert engine.name == "tiktoken"
    assert list(engine.dropped) == ["splintr", "toktok"]
    assert str(error) in engine.dropped["splintr"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), SystemExit(3)])
def test_adaptive_lets_through_what_is_not_the_engines_fault(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(engines.ENGINES, "splintr", Failing(error))  # type: ignore[arg-type]
    with pytest.raises(type(error)):
        engines.AdaptiveEngine("o200k_base").count(["x"])


def test_adaptive_without_any_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_encodings", {})
    backends._load_splintr.cache_clear()
    for library in LIBRARIES:
        monkeypatch.setitem(sys.modules, library, None)
    engine = engines.engine()
    assert engine.count([]) == []
    with pytest.raises(ImportError):
        engine.count(["x"])


def test_tiktoken_survives_a_panic(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fragile:
        def encode_ordinary(self, text: str) -> list[int]:
            if len(text) > 10:
                raise PanicException("stack overflow")
            return [0] * len(text)

    engine = backends.TiktokenEngine()
    engine._encoding = Fragile()  # type: ignore[assignment]
    assert engine.count(["x" * 35, "y"]) == [35, 1]


def test_choice_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CTXCTL_TOKENIZER", raising=False)
    for library in LIBRARIES:
        pytest.importorskip(library)
        assert engines.engine(prefer=library).name == library
        monkeypatch.setenv("CTXCTL_TOKENIZER", library)
        assert engines.engine().name == library
        assert engines.count("hello world") == 2
    assert engines.engine(prefer="toktok").name == "toktok"  # the argument wins
    monkeypatch.setenv("CTXCTL_TOKENIZER", "")
    assert engines.engine().name == "splintr"
    monkeypatch.setenv("CTXCTL_TOKENIZER", "spacy")
    with pytest.raises(ConfigError, match="'spacy' in CTXCTL_TOKENIZER") as raised:
        engines.engine()
    assert raised.value.hint == "valid are splintr, toktok, tiktoken"
    with pytest.raises(ConfigError, match="'spacy'"):
        engines.count("hello")
    with pytest.raises(ValueError, match="unknown tokenizer 'nltk': valid are"):
        engines.engine(prefer="nltk")
    monkeypatch.delenv("CTXCTL_TOKENIZER")
    for make_bad in (engines.engine, engines.SplintrEngine, engines.ToktokEngine, engines.TiktokenEngine):
        with pytest.raises(ValueError, match="unknown encoding"):
            make_bad("gpt2")


def case(name: str) -> list[str]:
    path = CASES / name / "input.jsonl"
    if not path.exists():
        pytest.skip(f"the shared case {name} isn't here")
    return [json.loads(line)["content"] for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("library", LIBRARIES)
def test_case_076(library: str) -> None:
    texts = case("076-cjk-and-emoji")
    assert make(library).count(texts) == [17, 73, 83, 83, 200]
    assert make(library, "cl100k_base").count(texts) == [17, 126, 111, 116, 275]


@pytest.mark.parametrize("counter", [engines.count, lambda text: make("tiktoken").count([text])[0]])
def test_case_074(counter: Callable[[str], int]) -> None:
    assert counter(case("074-special-tokens")[0]) == 7
