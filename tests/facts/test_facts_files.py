"""Files read and modified, by each agent's tools."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from ctxctl.model.summary import FileFact, SessionSummary

PATCH = """*** Begin Patch
*** Add File: src/new.py
+x = 1
+y = 2
*** Update File: src/old.py
@@
-a
+b
*** Update File: src/a.py
*** Move to: src/b.py
*** Delete File: gone.py
*** End Patch
"""
PATCHED = {"src/new.py", "src/old.py", "src/a.py", "src/b.py", "gone.py"}


def modified(summary: SessionSummary) -> dict[str, tuple[str, ...]]:
    return {fact.path: fact.actions for fact in summary.files if fact.role == "modified"}


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_claude_tools(script: Any) -> None:
    script.call("Read", {"file_path": "/w/a.py"}, "1\tx")
    script.call("Edit", {"file_path": "/w/a.py", "old_string": "x", "new_string": "y"}, "ok")
    script.call("Write", {"file_path": "/w/b.py", "content": "z\n"}, "ok")
    script.call("NotebookEdit", {"notebook_path": "/w/n.ipynb", "new_source": ""}, "ok")
    script.call("MultiEdit", {"file_path": "/w/c.py", "edits": []}, "<tool_use_error>no</tool_use_error>", error=True)
    script.call("Edit", {"file_path": "/w/d.py"}, None)
    script.call("Read", {"file_path": "/w/r.py"}, "1\tx")
    summary = script.summary()
    assert summary.files == (
        FileFact("/w/a.py", "modified", ("edited",)),
        FileFact("/w/b.py", "modified", ("written",), sha("z\n")),
        FileFact("/w/n.ipynb", "modified", ("edited",)),
        FileFact("/w/r.py", "read", ("read",)),
    )


def test_an_edit_makes_the_hash_unknown(script: Any) -> None:
    script.call("Write", {"file_path": "a", "content": "1"}, "ok")
    script.call("Edit", {"file_path": "a"}, "ok")
    assert script.summary().files == (FileFact("a", "modified", ("written", "edited"), None),)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("apply_patch", PATCH),
        ("apply_patch", {"input": PATCH}),
        ("shell", {"command": ["bash", "-lc", f"apply_patch <<'PATCH'\n{PATCH}PATCH\n"], "workdir": "/w"}),
        ("shell", {"command": ["apply_patch", PATCH]}),
        ("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}EOF"}),
    ],
)
def test_patches(script: Any, name: str, given: Any) -> None:
    script.call(name, given, '{"output":"Success. Updated the following files:\\n","metadata":{"exit_code":0}}')
    found = {fact.path: fact for fact in script.summary().files}
    assert set(found) == PATCHED
    assert found["src/new.py"].hash == sha("x = 1\ny = 2\n")
    assert found["src/a.py"].actions == ("deleted",)
    assert found["src/b.py"].actions == ("created",)


@pytest.mark.parametrize(
    "result", ["patch rejected by user", "failed in sandbox: denied", '{"output":"no","metadata":{"exit_code":1}}']
)
def test_patches_that_did_not_happen(script: Any, result: str) -> None:
    script.call("shell", {"command": ["apply_patch", PATCH]}, result)
    assert not script.summary().files


@pytest.mark.parametrize(
    ("command", "actions"),
    [
        ("cat > a.py <<'E'\nx\nE", {"a.py": ("written",)}),
        ("echo x >> a.py", {"a.py": ("edited",)}),
        ("sed -i 's/a b/c/' x.py y.py", {"x.py": ("edited",), "y.py": ("edited",)}),
        ("sed -i '' -e 's/a/b/' x.py", {"x.py": ("edited",)}),
        ("perl -pi -e 's/a/b/' x.py", {"x.py": ("edited",)}),
        ("echo x | tee -a log.txt", {"log.txt": ("edited",)}),
        (
            "mv a b; cp b c; touch d; rm e",
            {k: v for k, v in zip("abcde", [("deleted",), *[("created",)] * 3, ("deleted",)], strict=True)},
        ),
        ("mv a.py lib/", {"a.py": ("deleted",), "lib/a.py": ("created",)}),
        ("git mv a b && git rm c", {"a": ("deleted",), "b": ("created",), "c": ("deleted",)}),
        ("cd sub && echo x > a", {"sub/a": ("written",)}),
        ("python - <<'E'\nopen('a.py', 'w').write('x')\nE", {"a.py": ("written",)}),
        ("python3 -c \"from pathlib import Path; Path('p.txt').write_text('x')\"", {"p.txt": ("written",)}),
        (
            "cat > fix.py <<'E'\np = 'src/m.py'\nopen(p, 'w')\nE\npython fix.py",
            {"fix.py": ("written",), "src/m.py": ("written",)},
        ),
        ("for f in *.py; do sed -i s/a/b/ $f; done", {}),
        ("cat a.py > /dev/null 2>&1; git checkout main; pytest 2>&1 | tail", {}),
    ],
)
def test_scripts(script: Any, command: str, actions: dict[str, tuple[str, ...]]) -> None:
    script.bash(command)
    assert modified(script.summary()) == actions


def test_scripts_that_read(script: Any) -> None:
    script.bash("cat a.py && sed -n 1,5p b.py; head -n 20 c.py; nl -ba d.py | tail -3; cat <<E\nE")
    assert [(fact.path, fact.role) for fact in script.summary().files] == [
        (p, "read") for p in ("a.py", "b.py", "c.py", "d.py")
    ]


def test_a_script_that_failed_did_all_but_its_end(script: Any) -> None:
    script.bash("echo x > a && pytest", "1 failed", error=True)
    script.bash("pytest; sed -i s/a/b/ b", "sed: can't read b: No such file", error=True)
    script.bash("sed -i s/a/b/ c; ls", "sed: can't read c: No such file\nx")
    assert modified(script.summary()) == {"a": ("written",)}


def test_deleting_and_restoring(script: Any) -> None:
    script.bash("mkdir d && echo x > d/a && echo y > d/b && echo z > c")
    script.bash("rm -rf d && git checkout -- c other")
    assert modified(script.summary()) == {
        "d/a": ("written", "deleted"),
        "d/b": ("written", "deleted"),
        "c": ("written", "restored"),
    }


def test_one_file_under_two_names(script: Any) -> None:
    script.call(
        "shell",
        {"command": ["bash", "-lc", "cat src/a.py"], "workdir": "/w"},
        '{"output":"","metadata":{"exit_code":0}}',
    )
    script.call("Edit", {"file_path": "/w/src/a.py"}, "ok")
    assert modified(script.summary()) == {"src/a.py": ("edited",)}


def test_editors_of_other_agents(script: Any) -> None:
    script.call("str_replace_editor", {"command": "create", "path": "/w/a", "file_text": "x"}, "File created")
    script.call(
        "str_replace_editor", {"command": "create", "path": "/w/b", "file_text": "x"}, "Ran into [Errno 2] No such file"
    )
    script.call("str_replace_editor", {"command": "view", "path": "/w/c"}, "Here's the result")
    script.call("mcp__fs__write_file", {"path": "d", "content": "x"}, "ok")
    script.call("replace", {"file_path": "C:\\w\\e.rs", "old_string": "a"}, "ok")
    assert set(modified(script.summary())) == {"/w/a", "d", "C:\\w\\e.rs"}


def test_answers_of_fenced_agents(script: Any) -> None:
    script.user("task")
    for text, result in (
        ("```bash\necho x > a\n```", "<returncode>0</returncode>\n<output>\n</output>"),
        ("```bash\necho x > b\n```\n```bash\nls\n```", "Please always provide EXACTLY ONE action, found 2 actions."),
        ("see ```python\nx\n```\n```bash\nsed -i s/a/b/ c\n```", "<returncode>0</returncode>\n<output>\n</output>"),
    ):
        script.said(text)
        script.add("tool_result", "user", result, tool_name="bash")
    assert set(modified(script.summary())) == {"a", "c"}


def test_branches_left_behind_do_not_count(script: Any) -> None:
    first = script.call("Edit", {"file_path": "a"}, "ok")
    script.call("Edit", {"file_path": "b"}, "ok")
    assert set(modified(script.summary(frozenset((first, first + 1))))) == {"b"}
