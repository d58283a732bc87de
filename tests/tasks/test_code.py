"""The code digest follows imports and registries, and is blind to comments and docstrings."""

from pathlib import Path

import pytest

from tasks import code


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "model_core").mkdir()
    (tmp_path / "tasks/train.py").write_text(
        '"""Doc."""\nfrom model_core.net import f\nT = {"a": "model_core.late:g"}\nW = "tasks.worker"\n'
    )
    (tmp_path / "model_core/net.py").write_text("def f():\n    return 1\n")
    (tmp_path / "model_core/late.py").write_text("def g():\n    return 1\n")
    (tmp_path / "tasks/worker.py").write_text("x = 1\n")
    (tmp_path / "model_core/other.py").write_text("x = 1\n")
    monkeypatch.setattr(code, "ROOT", tmp_path)
    return tmp_path


def digest() -> str:
    code.code_digest.cache_clear()
    return code.code_digest("tasks.train")


@pytest.mark.parametrize(
    ("file", "text", "same"),
    [
        (
            "tasks/train.py",
            '"""Other."""\n# why\nfrom model_core.net import f\nT = {"a": "model_core.late:g"}\nW = "tasks.worker"\n',
            True,
        ),
        ("model_core/other.py", "x = 2\n", True),
        ("model_core/net.py", 'def f():\n    """Says."""\n    return 1  # one\n', True),
        ("model_core/net.py", "def f():\n    return 2\n", False),
        ("model_core/late.py", "def g():\n    return 2\n", False),
        ("tasks/worker.py", "x = 2\n", False),
    ],
)
def test_what_counts_as_changed_code(tree: Path, file: str, text: str, same: bool) -> None:
    before = digest()
    (tree / file).write_text(text)
    assert (digest() == before) is same
    code.code_digest.cache_clear()
