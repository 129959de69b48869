"""Atoms and references: each class by examples, and all references against the definition, written plainly."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.model.block import Block, Source
from ctxctl.model.unit import Grouper
from ctxctl.trace.atoms import call_text, fenced_command, key_of, kind_of, lines, words
from ctxctl.trace.references import Found, Index, find_references

# classes


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("src/app/main.py", "path"),
        ("/testbed/django/forms", "path"),
        ("tests/model_fields", "path"),
        ("main.py", "path"),
        ("docker-compose.yml", "path"),
        ("github.com/go-git/go-git/v5", "path"),
        ("load_config", "identifier"),
        ("loadConfig", "identifier"),
        ("HTTPServer", "identifier"),
        ("MAX_TOKENS", "identifier"),
        ("0001_initial", "identifier"),
        ("_private", "identifier"),
        ("django.db.models", "identifier"),
        ("self.assertEqual", "identifier"),
        ("404", "number"),
        ("12938", "number"),
        ("ValueError", "error"),
        ("django.db.utils.OperationalError", "error"),
        ("KeyboardInterrupt", "error"),
        # too short, or words of a language
        ("a_b", None),
        ("42", None),
        ("000", None),
        ("configuration", None),
        ("Configuration", None),
        ("README", None),
        ("and/or", None),
        ("UI/UX", None),
        ("/span", None),
        ("well-known", None),
        ("1.2.3", None),
        ("v1.2.3", None),
        ("2026-11-30", None),
        ("10_000", None),
        ("______", None),
        ("__init__", None),
        ("e.g", None),
        ("GitHub", None),
        ("Node.js", None),
        ("x" * 201 + "_y", None),
    ],
)
def test_the_class_of_a_word(word: str, kind: str | None) -> None:
    assert kind_of(word) == kind


def test_words_are_cut_at_what_no_atom_has() -> None:
    found = words('open("./src/app/main.py:12"), see (load_config). Also ../lib/x.go, /tmp/out/ and --keep-going')
    assert {"src/app/main.py", "load_config", "/lib/x.go", "/tmp/out", "12", "keep-going"} <= found


def test_words_keep_what_is_not_ascii_and_lone_surrogates() -> None:
    assert words("größe_max \ud800x") == {"größe_max", "\ud800x"}


def test_lines_are_24_to_200_characters_without_space_and_numbers_around() -> None:
    line = "return [block.cols for block in self.args]"
    for text in (line, f"    {line}  ", f"   178\t    {line}", f"178\u2192{line}", f"178:{line}", f"178-  {line}"):
        assert lines(f"x\n{text}\nshort") == {line}
    assert lines("a" * 23) == set() and lines("a" * 24) == {"a" * 24}
    assert lines("a" * 200) == {"a" * 200} and lines("a" * 201) == set()


@pytest.mark.parametrize(
    ("call", "key"),
    [
        ('Read {"file_path": "/a/b.py"}', "call Read /a/b.py"),
        ('Read {"offset": 5, "file_path": "/a/b.py", "limit": 10}', "call Read /a/b.py limit=10 offset=5"),
        ('Grep {"pattern": "x+", "path": "src"}', "call Grep src pattern=x+"),
        ('Bash {"command": "ls   -la\\n"}', "call Bash ls -la"),
        ('shell {"command": ["bash", "-lc", "ls  x"]}', "call shell bash -lc ls x"),
        ('search {"q":  "a b"}', 'call search {"q": "a b"}'),
        ("run plain  words", "call run plain words"),
        ("ping ", None),
        ("ping", None),
    ],
)
def test_the_key_of_a_call(call: str, key: str | None) -> None:
    assert key_of(call) == key


def test_the_key_of_a_fenced_command_is_that_of_the_last() -> None:
    assert fenced_command("THOUGHT\n```bash\nls\n```\nthen\n```bash\ncat  a.py |\n head\n```") == "call cat a.py | head"
    assert fenced_command("no command, ``` nor ```") is None
    assert fenced_command("```bash\n\n```") is None


def test_a_call_says_the_values_of_its_arguments() -> None:
    call = 'Edit {"file_path": "a/b/c.py", "edits": [{"old_string": "x = 1\\n    return load_config(x)"}], "n": 4711}'
    assert call_text(call).split("\n") == ["Edit", "a/b/c.py", "x = 1", "    return load_config(x)", "4711"]
    assert "nreturn" not in words(call_text(call)) and "old_string" not in words(call_text(call))
    assert call_text("Bash not {json") == "Bash not {json"


# the definition, over transcripts whose atoms are known because they were put there

PRECISION = {"path": 0.93, "identifier": 0.90, "number": 0.94, "line": 0.99, "error": 0.74, "call": 1.0}
WORDS = {
    "src/app/main.py": "path",
    "setup.cfg": "path",
    "load_config": "identifier",
    "maxTokens": "identifier",
    "os.path.join": "identifier",
    "4711": "number",
    "500": "number",
    "ValueError": "error",
}
LINES = {
    "the quick brown fox jumps over it": frozenset[str](),
    "result = load_config(4711) or None": frozenset({"load_config", "4711"}),
}
CALLS = [
    ("Read", {"file_path": "src/app/main.py"}, "call Read src/app/main.py", {"src/app/main.py"}),
    ("Bash", {"command": "cat  setup.cfg"}, "call Bash cat setup.cfg", {"setup.cfg"}),
    ("Bash", {"command": "make"}, "call Bash make", set[str]()),
]


@dataclass
class Written:
    """A block with the atoms that it holds as text, and the call that it makes or answers."""

    block: Block
    enters: int
    tokens: int
    pinned: bool
    atoms: frozenset[str]
    key: str | None = None


@dataclass
class Session:
    written: list[Written]
    leaving: dict[int, tuple[int, ...]] = field(default_factory=dict)
    foreign: frozenset[int] = frozenset()

    def find(self, upto: int | None = None) -> tuple[Found, Grouper]:
        """What is to be tested; upto: with the past of that call, and its answer, alone."""
        rows = [w for w in self.written if upto is None or w.block.turn <= upto]
        grouper = Grouper()
        for w in rows:
            grouper.add(w.block, w.tokens, w.enters, "task" if w.pinned else None)
        leaving = {k: v for k, v in self.leaving.items() if upto is None or k <= upto}
        found = find_references(
            [w.block for w in rows], [w.enters for w in rows], grouper.unit_of, grouper.units, leaving, self.foreign
        )
        return found, grouper


def text_of(draw: st.DrawFn) -> tuple[str, frozenset[str]]:
    chosen = draw(st.lists(st.sampled_from(sorted(WORDS)), max_size=3))
    whole = draw(st.lists(st.sampled_from(sorted(LINES)), max_size=1))
    plain = draw(st.sampled_from(["", "and so on", "it/them (v1.2.3)"]))
    text = "\n".join([" ".join([plain, *chosen])[:23] if not chosen else f"{plain}, ({', '.join(chosen)})", *whole])
    atoms = set(chosen).union(whole, *(LINES[x] for x in whole))
    first = text.split("\n")[0].strip()
    if 24 <= len(first) <= 200:
        atoms.add(first)
    return text, frozenset(atoms)


@st.composite
def sessions(draw: st.DrawFn, going: bool = True) -> Session:
    """Prompts, answers with calls, results, reasoning; going: some blocks are taken back."""
    rows: list[Written] = []
    calls = 0

    def add(kind: str, role: str, text: str, atoms: frozenset[str], turn: int, enters: int, **more: str | None) -> None:
        key = more.pop("key", None)
        pinned = kind in ("user_message", "tool_result") and draw(st.integers(0, 9)) == 0
        at = len(rows)
        block = Block(f"{at + 1}.0", kind, role, text, turn, 1, Source(at + 1), **more)  # type: ignore[arg-type]
        rows.append(Written(block, enters, draw(st.integers(1, 9)), pinned, atoms, key))

    for turn in range(1, draw(st.integers(2, 6)) + 1):
        pending = [w for w in rows if w.block.kind == "tool_call" and w.block.turn == turn - 1]
        for w in pending:
            if draw(st.integers(0, 5)):
                text, atoms = text_of(draw)
                add("tool_result", "tool", text, atoms, turn, turn, call_id=w.block.call_id, key=w.key)
        if turn == 1 or draw(st.booleans()):
            text, atoms = text_of(draw)
            add("user_message", "user", text, atoms, turn, turn)
        if draw(st.booleans()):
            text, atoms = text_of(draw)
            add("thinking", "assistant", text, atoms, turn, turn + 1, response_id=f"r{turn}")
        if draw(st.booleans()):
            text, atoms = text_of(draw)
            add("assistant", "assistant", text, atoms, turn, turn + 1)
        for name, arguments, key, held in draw(st.lists(st.sampled_from(CALLS), max_size=2)):
            calls += 1
            text = f"{name} {json.dumps(arguments)}"
            add("tool_call", "assistant", text, frozenset(held), turn, turn + 1, call_id=f"c{calls}", key=key)
    session = Session(rows)
    if going and rows and draw(st.booleans()):
        back = draw(st.integers(2, 6))
        gone = [n for n, w in enumerate(rows) if w.enters < back and draw(st.integers(0, 3)) == 0]
        session.leaving = {back: tuple(gone)}
        session.foreign = frozenset(draw(st.sets(st.integers(0, len(rows) - 1), max_size=2)))
    return session


def holds(w: Written) -> frozenset[str]:
    """Atoms of a block; a result holds the key of its call, so that the same call again refers to it."""
    return w.atoms | ({w.key} if w.key is not None and w.block.kind == "tool_result" else set())


def writes(w: Written) -> frozenset[str]:
    return w.atoms | ({w.key} if w.key is not None else set())


def kind(atom: str) -> str:
    return WORDS.get(atom) or ("call" if atom.startswith("call ") else "line")


Plain = tuple[int, str, str, float, int, bool]


def naive(session: Session, grouper: Grouper) -> tuple[list[Plain], dict[int, dict[int, int]]]:
    """References and credits by going through all blocks for each atom of each call."""
    rows, of = session.written, grouper.unit_of
    total = len(rows)
    left = {b: turn for turn, blocks in session.leaving.items() for b in blocks}
    references: list[Plain] = []
    credits: dict[int, dict[int, int]] = {}
    answers: dict[int, set[str]] = {}
    for w in rows:
        if w.block.kind in ("assistant", "tool_call"):
            answers.setdefault(w.block.turn, set()).update(writes(w))
    pinned_units = {of[n] for n, w in enumerate(rows) if w.pinned}
    for call, atoms in sorted(answers.items()):
        past = [n for n, w in enumerate(rows) if w.enters <= call]
        for a in sorted(atoms):
            holders = [n for n in past if a in holds(rows[n])]
            providers = [
                n
                for n in holders
                if of[n] not in pinned_units and n not in session.foreign and left.get(n, call + 1) > call
            ]
            if not providers:
                continue
            newest = of[max(providers, key=lambda n: (rows[n].enters, n))]
            known = any(of[n] in pinned_units for n in holders)
            if kind(a) != "error" and not known and len(holders) * 2 <= max(len(past), 2):
                credits.setdefault(call, {})
                credits[call][newest] = credits[call].get(newest, 0) + 1
            everywhere = [n for n, w in enumerate(rows) if a in holds(w)]
            if any(of[n] in pinned_units for n in everywhere) or len(everywhere) * 2 > max(total, 2):
                continue
            weight = math.log(1 + total / len(everywhere)) * PRECISION[kind(a)]
            smallest = of[min(providers, key=lambda n: (grouper.units[of[n]].tokens, rows[n].enters, n))]
            first = not any(a in before for k, before in answers.items() if k < call)
            references.append((call, a, kind(a), weight, smallest, first))
    return references, credits


@settings(max_examples=300, deadline=None)
@given(sessions())
def test_references_are_what_the_definition_says(session: Session) -> None:
    found, grouper = session.find()
    expected, credits = naive(session, grouper)
    plain = [
        (turn, found.names[r.atom], r.kind, r.weight, r.smallest, r.first_use)
        for turn, references in sorted(found.references.items())
        for r in references
    ]
    assert plain == expected
    assert found.credits == credits
    assert found.rereads == sum(k == "call" for _, _, k, *_ in expected)
    used = {a for _, a, *_ in expected}
    for n, w in enumerate(session.written):
        assert {found.names[a] for a in found.atoms[n]} == holds(w) & used


@settings(max_examples=150, deadline=None)
@given(sessions(), st.integers(1, 6))
def test_credits_are_told_from_the_past_alone(session: Session, call: int) -> None:
    whole, _ = session.find()
    cut, _ = session.find(call)
    assert {k: v for k, v in whole.credits.items() if k <= call} == cut.credits


@settings(max_examples=150, deadline=None)
@given(sessions(going=False))
def test_credits_of_a_running_session_are_the_same(session: Session) -> None:
    """Whoever pins a block by its result, after its call came in, makes the two differ: pins here are on one block."""
    whole, grouper = session.find()
    if any(grouper.units[grouper.unit_of[n]].pinned and not w.pinned for n, w in enumerate(session.written)):
        return
    index = Index()
    order = sorted(range(len(session.written)), key=lambda n: session.written[n].enters)
    for call in range(1, 7):
        for n in order:
            w = session.written[n]
            if w.enters == call:
                index.hold(w.block, grouper.unit_of[n], w.pinned)
        answer = [w.block for w in session.written if w.block.turn == call]
        texts = [b.text for b in answer if b.kind == "assistant"]
        calls = [b.text for b in answer if b.kind == "tool_call"]
        assert dict(index.credit(texts, calls)) == whole.credits.get(call, {})


# single points


def block(at: int, kind: str, text: str, turn: int) -> Block:
    role = "assistant" if kind in ("assistant", "thinking", "tool_call") else "user"
    return Block(f"{at + 1}.0", kind, role, text, turn, 1, Source(at + 1))


def found(rows: Sequence[tuple[str, str, int, int]], pinned: Sequence[int] = ()) -> Found:
    """rows: kind, text, call that reads or wrote it, tokens."""
    blocks = [block(n, kind, text, turn) for n, (kind, text, turn, _) in enumerate(rows)]
    enters = [b.turn + 1 if b.role == "assistant" else b.turn for b in blocks]
    grouper = Grouper()
    for n, b in enumerate(blocks):
        grouper.add(b, rows[n][3], enters[n], "task" if n in pinned else None)
    return find_references(blocks, enters, grouper.unit_of, grouper.units)


FILLED = [("user_message", "x", 1, 1)] * 4


def test_weight_is_that_of_the_rule_to_the_digit() -> None:
    rows = [*FILLED, ("tool_result", "load_config", 1, 5), ("assistant", "load_config", 1, 5)]
    (reference,) = found(rows).references[1]
    assert reference.weight == math.log(1 + 6 / 2) * 0.90
    assert round(reference.weight, 6) == 1.247665


def test_what_half_of_all_blocks_hold_counts_and_more_does_not() -> None:
    rows = [("tool_result", "load_config", 1, 5), ("assistant", "load_config", 1, 5), *FILLED]
    assert found(rows[:4]).references
    assert not found(rows[:3]).references


def test_what_a_pinned_block_holds_is_no_reference() -> None:
    rows = [*FILLED, ("tool_result", "load_config", 1, 5), ("assistant", "load_config", 1, 5)]
    assert found([("user_message", "load_config", 1, 5), *rows], pinned=[0]).references == {}
    assert found([("user_message", "load_config", 1, 5), *rows]).references


def test_an_answer_does_not_refer_to_itself_nor_to_what_comes_after_it() -> None:
    rows = [*FILLED, ("assistant", "load_config", 1, 5), ("tool_result", "load_config", 2, 5)]
    assert found(rows).references == {}


def test_the_smallest_unit_that_held_it_then_is_what_a_miss_pays() -> None:
    rows = [
        *FILLED,
        ("tool_result", "load_config", 1, 9),
        ("assistant", "load_config", 1, 7),
        ("tool_result", "load_config", 3, 5),
        ("assistant", "load_config", 2, 8),
        ("assistant", "load_config", 3, 8),
        *[("user_message", "y", 4, 1)] * 4,
    ]
    all_ = found(rows).references
    assert [(t, r[0].smallest, r[0].first_use) for t, r in sorted(all_.items())] == [
        (1, 4, True),
        (2, 5, False),
        (3, 6, False),
    ]


def test_reasoning_holds_but_does_not_use() -> None:
    rows = [*FILLED, ("tool_result", "load_config", 1, 9), ("thinking", "load_config", 1, 2)]
    assert found(rows).references == {}
    (reference,) = found([*rows, ("assistant", "load_config", 2, 2)]).references[2]
    assert reference.smallest == 5


def test_a_fenced_command_again_refers_to_its_result() -> None:
    command = "```bash\ncat x\n```"
    rows = [
        *FILLED,
        ("assistant", command, 1, 5),
        ("tool_result", "nothing", 2, 5),
        ("assistant", command, 2, 5),
        *FILLED,
    ]
    (reference,) = found(rows).references[2]
    assert (reference.kind, reference.evidence, reference.smallest) == ("call", "call cat x", 5)


@settings(max_examples=50, deadline=None)
@given(sessions())
def test_atoms_are_numbered_alike_in_every_process(session: Session) -> None:
    """By the call that wrote them first, then by name: sets of strings have another order in each process."""
    answers: dict[str, int] = {}
    for w in session.written:
        if w.block.kind in ("assistant", "tool_call"):
            for atom in writes(w):
                answers[atom] = min(w.block.turn, answers.get(atom, w.block.turn))
    whole, _ = session.find()
    assert whole.names == sorted(answers, key=lambda a: (answers[a], a))
