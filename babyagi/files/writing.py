"""Putting a file in place: whole or not at all, beneath a folder, never through a link."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Sequence

from babyagi.files.beneath import FOLDER_FLAGS, open_beneath

_TEMPORARY = re.compile(r"\.[0-9a-f]{24}\.part")
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_MODE = 0o644
FOLDER_MODE = 0o755


def put_file(root_fd: int, parts: Sequence[str], data: bytes, *, replace: bool) -> None:
    """Write the file that these components name, through a temporary one beside it.

    Raises:
        FileExistsError: it is there, and `replace` is False. Other OSErrors: nothing was written.
    """
    *folders, name = parts
    folder_fd = _make_folders(root_fd, folders)
    try:
        _require_place(folder_fd, name, replace=replace)
        temporary = f".{hashlib.sha256(name.encode() + data).hexdigest()[:24]}.part"
        _write(folder_fd, temporary, data)
        try:
            if replace:
                os.replace(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
            else:  # a link to the file fails where a file is, whoever put it there meanwhile
                os.link(
                    temporary,
                    name,
                    src_dir_fd=folder_fd,
                    dst_dir_fd=folder_fd,
                    follow_symlinks=False,
                )
                os.unlink(temporary, dir_fd=folder_fd)
        except OSError:
            os.unlink(temporary, dir_fd=folder_fd)
            raise
        os.fsync(folder_fd)
    finally:
        os.close(folder_fd)


def is_temporary(name: str) -> bool:
    """Whether `put_file` gives such a name to what it is about to put in place; for a moment, or
    after a kill, the file has both."""
    return _TEMPORARY.fullmatch(name) is not None


def _make_folders(root_fd: int, folders: Sequence[str]) -> int:
    """A descriptor of the innermost folder; those that are missing are made."""
    for depth in range(len(folders) + 1):
        try:
            fd = open_beneath(root_fd, folders[:depth], FOLDER_FLAGS)
        except FileNotFoundError:
            parent_fd = open_beneath(root_fd, folders[: depth - 1], FOLDER_FLAGS)
            try:
                os.mkdir(folders[depth - 1], FOLDER_MODE, dir_fd=parent_fd)
            finally:
                os.close(parent_fd)
            fd = open_beneath(root_fd, folders[:depth], FOLDER_FLAGS)
        if depth == len(folders):
            return fd
        os.close(fd)
    raise AssertionError("the loop ends with the innermost folder")


def _require_place(folder_fd: int, name: str, *, replace: bool) -> None:
    try:
        mode = os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        code = (
            errno.EISDIR
            if stat.S_ISDIR(mode)
            else errno.ELOOP
            if stat.S_ISLNK(mode)
            else errno.EINVAL
        )
        raise OSError(code, os.strerror(code))
    if not replace:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _write(folder_fd: int, name: str, data: bytes) -> None:
    try:
        fd = open_beneath(folder_fd, [name], _NEW_FILE, FILE_MODE)
    except FileExistsError:
        # of a writer that was killed; its name says that it was to hold the same
        os.unlink(name, dir_fd=folder_fd)
        fd = open_beneath(folder_fd, [name], _NEW_FILE, FILE_MODE)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        os.fsync(fd)
    except OSError:
        os.unlink(name, dir_fd=folder_fd)
        raise
    finally:
        os.close(fd)
