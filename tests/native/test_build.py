"""Building the core: what is said where there is no compiler, and that what is built belongs to its sources."""

import re
import subprocess
from pathlib import Path

import pytest

from nae.native import build, library


def test_without_a_compiler_it_says_who_trains(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert build.main() == 0
    assert "there is no C++ compiler" in capsys.readouterr().err


@pytest.mark.parametrize("script", [None, "#!/bin/sh\nexit 3\n", "no program"])
def test_a_compiler_that_does_not_work_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str | None
) -> None:
    broken = tmp_path / "c++"
    if script is not None:
        broken.write_text(script)
        broken.chmod(0o700)
    monkeypatch.setenv("CXX", str(broken))
    said = build.try_build(to=tmp_path / "core.so")
    assert re.fullmatch(r"The native core is not built: [^\n]*(names none|status 3|Exec format)[^\n]*\)\.", said)
    assert not (tmp_path / "core.so").exists()


def test_what_the_compiler_says_is_passed_on(tmp_path: Path) -> None:
    command = build.compiler()
    if command is None:
        pytest.skip("there is no C++ compiler")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        build.build(command, to=tmp_path / "core.so", flags=["--no-such-flag"])
    assert "no-such-flag" in caught.value.__notes__[0]
    assert not (tmp_path / "core.so").exists()


def test_a_checkout_whose_sources_do_not_compile_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\necho 'line 3: error: what is this?' >&2\nexit 3\n")
    broken.chmod(0o700)
    monkeypatch.setenv("CXX", str(broken))
    monkeypatch.setattr(build, "is_current", lambda: False)
    monkeypatch.setattr(library, "PATH", tmp_path / "core.so")
    assert build.main() == 1
    said = capsys.readouterr().err
    assert "line 3: error: what is this?" in said
    assert said.endswith(f"The native core is not built: {broken} failed.\n")


def test_a_core_that_is_built_belongs_to_its_sources() -> None:
    if not library.PATH.exists():
        pytest.skip("the native core is not built")
    assert build.is_current(), "run `python -m nae.native.build`"
    assert library.reason() == ""


def test_a_missing_core_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(library, "PATH", tmp_path / "none.so")
    library.reason.cache_clear()
    assert "not built" in library.reason()
    (tmp_path / "none.so").write_text("nothing")
    library.reason.cache_clear()
    library.library.cache_clear()
    assert "cannot be loaded" in library.reason()
    monkeypatch.undo()
    library.reason.cache_clear()
    library.library.cache_clear()
