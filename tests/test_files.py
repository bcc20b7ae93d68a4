"""A file is written whole or not at all, whatever becomes of the process, the disk and the file that was there."""

import errno
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nae._files import whole_file, write_whole
from nae._processes import machine


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    write_whole(path, "old")
    with pytest.raises(KeyboardInterrupt), whole_file(path) as file:  # noqa: PT012
        file.write(b"ne")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert names(tmp_path) == ["out.csv"]


def test_a_full_disk_names_the_file_that_was_meant(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with pytest.raises(OSError, match=r"No space left on device: '.*out\.csv'"), whole_file(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert names(tmp_path) == []


@pytest.mark.usefixtures("umask")
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path: Path) -> None:
    write_whole(tmp_path / "m", b"")
    assert mode_of(tmp_path / "m") == 0o600


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_a_file_that_was_there_keeps_its_permissions(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.touch()
    path.chmod(mode)
    with whole_file(path):
        temporary = next(one for one in tmp_path.iterdir() if one != path)
        assert mode_of(temporary) & ~mode == 0  # nobody reads more while it is written
    assert mode_of(path) == mode


def test_a_write_protected_file_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m"
    write_whole(path, "old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    with pytest.raises(PermissionError, match="Permission denied"):
        write_whole(path, "new")
    assert path.read_text() == "old"


def test_a_link_stays_a_link_to_the_new_content(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "there" / "m")
    write_whole(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "there" / "m").read_text() == "new"


def test_a_device_is_written_directly() -> None:
    write_whole("/dev/null", "x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_two_writers_of_one_file_leave_the_whole_content_of_the_last(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with whole_file(path) as first, whole_file(path) as second:
        first.write(b"first, and longer")
        second.write(b"second")
        first.flush()
    assert path.read_bytes() == b"first, and longer"
    assert names(tmp_path) == ["out.csv"]


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    code = (
        "import sys, time; from nae._files import whole_file\n"
        "with whole_file(sys.argv[1]) as file: file.write(b'x'); print('writing', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "out.csv")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        left = names(tmp_path)
        write_whole(tmp_path / "other.csv", "y")
        assert names(tmp_path) == [*left, "other.csv"]  # a living process still needs it
        process.send_signal(signal.SIGKILL)
    assert names(tmp_path) == [*left, "other.csv"]
    write_whole(tmp_path / "other.csv", "y")
    assert names(tmp_path) == ["other.csv"]


def test_only_old_files_of_other_machines_are_removed_and_none_of_other_names(tmp_path: Path) -> None:
    kept = [".nae-00000000-1-00000000.tmp", ".nae-notes.tmp", "nae-00000000-1-00000002.tmp"]
    removed = [".nae-00000000-1-00000001.tmp", f".nae-{machine()}-{2**40}-00000000.tmp"]
    for name in (*kept, *removed):
        (tmp_path / name).touch()
    yesterday = time.time() - 25 * 3600
    for name in (*kept[1:], removed[0]):
        os.utime(tmp_path / name, (yesterday, yesterday))
    write_whole(tmp_path / "m", b"")
    assert names(tmp_path) == sorted([*kept, "m"])
