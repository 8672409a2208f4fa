"""Opening below a folder: no link is followed, and nothing that changes meanwhile leads outside.

The kernel's `openat2` holds the whole path beneath the folder in one call. Where it is missing, the
path is opened component by component, each below the one before, without following links; that is
as safe, and slower.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from collections.abc import Sequence
from functools import cache

_SYS_OPENAT2 = 437  # the same on every architecture that got the call when it was new (Linux 5.6)
_ARCHITECTURES = ("x86_64", "aarch64", "arm64", "riscv64", "ppc64le", "s390x")
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_UNAVAILABLE = (errno.ENOSYS, errno.EPERM, errno.E2BIG, errno.EINVAL)

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(folder_fd: int, parts: Sequence[str], flags: int, mode: int = 0) -> int:
    """Return a descriptor of what these components lead to below the folder.

    Args:
        parts: names without `/`, neither empty nor `.` nor `..`. None of them means the folder
            itself.
        flags: as for `os.open`. mode: the permissions of a file that is made.

    Raises:
        OSError: as `os.open`; a link on the way, or at its end, is ELOOP or ENOTDIR.
    """
    if any(part in ("", ".", "..") or "/" in part for part in parts):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    path = "/".join(parts) or "."
    if has_openat2():
        return _openat2(folder_fd, path, flags | os.O_CLOEXEC, mode)
    return open_step_by_step(folder_fd, parts, flags, mode)


def open_step_by_step(folder_fd: int, parts: Sequence[str], flags: int, mode: int = 0) -> int:
    """As `open_beneath`, with ordinary calls only."""
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    if not parts:
        return os.open(".", flags, dir_fd=folder_fd)
    fd = os.dup(folder_fd)
    try:
        for part in parts[:-1]:
            inner = os.open(part, FOLDER_FLAGS, dir_fd=fd)
            os.close(fd)
            fd = inner
        return os.open(parts[-1], flags, mode, dir_fd=fd)
    finally:
        os.close(fd)


@cache
def has_openat2() -> bool:
    """Whether this kernel has the call, and nothing (a container's filter) forbids it."""
    if not sys.platform.startswith("linux") or platform.machine() not in _ARCHITECTURES:
        return False
    root = os.open("/", FOLDER_FLAGS)
    try:
        os.close(_openat2(root, ".", FOLDER_FLAGS, 0))
    except OSError as error:
        if error.errno in _UNAVAILABLE:
            return False
        raise
    finally:
        os.close(root)
    return True


def _openat2(folder_fd: int, path: str, flags: int, mode: int) -> int:
    how = _OpenHow(
        flags=flags,
        mode=mode if flags & os.O_CREAT else 0,
        resolve=_RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS,
    )
    libc = ctypes.CDLL(None, use_errno=True)
    fd = int(
        libc.syscall(
            ctypes.c_long(_SYS_OPENAT2),
            ctypes.c_int(folder_fd),
            ctypes.c_char_p(os.fsencode(path)),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
    )
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return fd
