"""Creates folders and files that only their owner can access. They have the modes 0700 and 0600
from the start, whatever the umask is; the umask is not changed, because it belongs to the whole
process.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TextIO

FOLDER_MODE = 0o700
FILE_MODE = 0o600
OTHERS = stat.S_IRWXG | stat.S_IRWXO
# the errors of `os.link` on file systems without hard links, as on Android and in some shared
# folders
NO_LINKS = frozenset({errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENOSYS})


def make_folder(path: Path) -> None:
    """Create the folder and its missing parents. Existing ones are left unchanged."""
    if path.is_dir():
        return
    make_folder(path.parent)
    try:
        path.mkdir(mode=FOLDER_MODE)
    except FileExistsError:
        if not path.is_dir():
            raise
    else:
        path.chmod(FOLDER_MODE)  # a umask may have removed the owner's own rights


def open_file(path: str | Path, flags: int = os.O_RDWR) -> int:
    """Open the file, create it if it is missing, and return its descriptor. Usable as the `opener`
    of `open`."""
    flags |= os.O_CLOEXEC
    with suppress(FileExistsError):
        fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, FILE_MODE)
        os.fchmod(fd, FILE_MODE)
        return fd
    return os.open(path, flags | os.O_CREAT, FILE_MODE)


def try_lock(path: Path, *, waits: bool = False) -> TextIO | None:
    """Return the file, created if it is missing, with its lock, which the kernel frees when the
    file is closed or its holder ends; None if another holds the lock, unless `waits` is set."""
    with ExitStack() as unless_locked:
        file = unless_locked.enter_context(open(path, "a", opener=open_file))
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except BlockingIOError:
            return None
        unless_locked.pop_all()
        return file


def write_file(path: Path, text: str) -> None:
    """Write the text as UTF-8. A reader sees the old file or the new one, never a part."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write the bytes. A reader sees the old file or the new one, never a part, after a loss of
    power as well."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(unfinished, "wb", opener=open_file) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError:
        with suppress(OSError):
            unfinished.unlink()
        raise


def keep_word(path: Path, *, new_word: Callable[[], str]) -> str:
    """Return the text (such as a key) in the file. A missing file is created with the text that
    `new_word` returns; if several processes create it at once, all return the text of the first."""
    if not path.is_file():
        made = path.with_name(f"{path.name}.{os.getpid()}")
        write_file(made, new_word())
        try:
            os.link(made, path)
        except FileExistsError:
            pass
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            if not path.exists():
                made.replace(path)
        made.unlink(missing_ok=True)
    return path.read_text(encoding="utf-8").strip()


def tighten(folder: Path) -> None:
    """Remove the access of other users to the files that a library created in this folder."""
    for path in find_wide(folder):
        with suppress(FileNotFoundError):  # removed in the meantime
            path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~OTHERS)


def find_wide(folder: Path) -> Iterator[Path]:
    """Yield the paths that other users can access: of the folder itself, and of everything in it.
    Links are not followed."""
    if _is_wide(folder):
        yield folder
    for parent, folders, files in os.walk(folder):
        yield from filter(_is_wide, (Path(parent, name) for name in (*folders, *files)))


def _is_wide(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not stat.S_ISLNK(mode) and bool(mode & OTHERS)
