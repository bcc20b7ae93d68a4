"""Write files completely or not at all."""

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from nae._processes import is_gone, this_process

__all__ = ["whole_file", "write_whole"]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OLD = 24 * 3600.0  # seconds after which a temporary file is considered abandoned
_TEMPORARY = re.compile(r"\.nae-([0-9a-f]{8}-\d+)-[0-9a-f]{8}\.tmp")  # process, chance


def write_whole(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file completely or not at all; text is encoded as UTF-8."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file that appears at ``path`` only if the block succeeds.

    The bytes are written to a temporary file in the same folder, which is flushed to disk and then moved to ``path``.
    A replaced file keeps its permissions; a new file gets those of the umask. Links are followed. Pipes and devices are
    written directly.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    target = Path(os.path.realpath(target))
    if not target.parent.is_dir():  # checked here, because the errors below would name the temporary file
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(Path(path).parent))
    _remove_abandoned(target.parent)
    mode = _mode_of(target)
    temporary = target.with_name(f".nae-{this_process()}-{secrets.token_hex(4)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(temporary, flags, 0o666 if mode is None else mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)  # what the umask took away
        temporary.replace(target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and (error.errno in _FULL or error.filename == str(temporary)):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error  # the file that was meant
        raise
    _flush_folder(target.parent)


def _mode_of(target: Path) -> int | None:
    """Return the permissions of an existing file, or raise an error if it is write-protected."""
    if not target.exists():
        return None
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "Permission denied", str(target))
    return stat.S_IMODE(target.stat().st_mode)


def _remove_abandoned(folder: Path) -> None:
    """Remove temporary files of this library whose process has ended, or that have not changed for a day."""
    with suppress(OSError), os.scandir(folder) as entries:  # a folder that cannot be listed can be written to
        for entry in entries:
            found = _TEMPORARY.fullmatch(entry.name)
            if found is None:
                continue
            with suppress(OSError):  # another process was faster
                if is_gone(found[1]) or time.time() - entry.stat(follow_symlinks=False).st_mtime > _OLD:
                    os.unlink(entry.path)  # noqa: PTH108


def _flush_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a file that was moved there survives a power cut."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
