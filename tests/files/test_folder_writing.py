"""Writing below the folder: sixty ways out that are refused, twelve ways in that work, and a race
of links that wins nothing."""

import errno
import json
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from babyagi.errors import ToolError
from babyagi.files import folder as room
from babyagi.files.folder import FOLDER_FLAGS, Folder, open_beneath
from tests.files.test_home import no_links

HOSTILE = json.loads(
    (Path(__file__).parents[1] / "data" / "hostile_paths.json").read_text(encoding="utf-8")
)
NORMAL = [
    *(
        "new.md",
        "docs/new.md",
        "a/b/c/d.txt",
        "Über.md",
        "with space.md",
        "ends.",
        "-dash",
        "日本.txt",
        "a..b/c",
        "docs/./plain.md",
    ),
    *("a/../x.md", "docs/deep/../up.md"),
]


@pytest.fixture
def root(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "docs" / "deep").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.txt").write_text("outside", encoding="utf-8")
    (root / "limits.md").write_text("ten", encoding="utf-8")
    (root / "docs" / "part2.txt").write_text("two", encoding="utf-8")
    (root / "out").symlink_to("../outside")
    (root / "absolute").symlink_to(outside)
    (root / "docs" / "link").symlink_to("../../outside")
    (root / "docs" / "filelink").symlink_to("../../outside/secret.txt")
    (root / "loop").symlink_to("loop")
    (root / "dangling").symlink_to("../outside/made.txt")
    (root / "up").symlink_to("..")
    (root / "proc").symlink_to("/proc/self")
    os.mkfifo(root / "fifo")
    return root


def everything(folder):
    """Every path below the folder, and what stands there."""
    found = {}
    for path in (
        Path(parent) / name
        for parent, folders, found in os.walk(folder)
        for name in folders + found
    ):
        is_file = path.is_file() and not path.is_symlink()
        found[str(path)] = (
            str(path.readlink())
            if path.is_symlink()
            else path.read_text(encoding="utf-8")
            if is_file
            else ""
        )
    return found


def test_there_are_sixty_hostile_and_twelve_normal_paths():
    assert len(set(HOSTILE)) >= 60
    assert len(set(NORMAL)) == 12


@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: repr(path[:30]))
def test_a_hostile_path_is_refused_and_nothing_is_changed(root, tmp_path, path):
    before = everything(tmp_path)

    with pytest.raises(ToolError) as caught:
        Folder(root).write(path, "written")

    assert everything(tmp_path) == before
    assert str(tmp_path) not in caught.value.what and "\n" not in caught.value.what


@pytest.mark.parametrize("path", NORMAL)
def test_a_normal_path_is_written(root, path):
    assert Folder(root).write(path, "wörter\n") == 8

    assert Path(os.path.normpath(root / path)).read_text(encoding="utf-8") == "wörter\n"
    assert not [name for _, _, names in os.walk(root) for name in names if name.endswith(".part")]


@pytest.mark.parametrize("path", ["docs/filelink", "dangling", "out/secret.txt", "docs", "fifo"])
def test_replacing_replaces_no_link_no_folder_and_nothing_behind_a_link(root, tmp_path, path):
    before = everything(tmp_path)

    with pytest.raises(ToolError):
        Folder(root).write(path, "written", replace=True)

    assert everything(tmp_path) == before


def test_files_left_behind_by_a_killed_writer_do_not_hinder(root, monkeypatch):
    def die(*args, **kwargs):
        raise OSError(errno.EIO, "gone")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", die)
        patch.setattr(os, "unlink", lambda *args, **kwargs: None)
        with pytest.raises(ToolError):
            Folder(root).write("docs/a.md", "one")
    assert len(list((root / "docs").glob(".*.part"))) == 1

    assert Folder(root).write("docs/a.md", "one") == 3
    assert list((root / "docs").glob(".*.part")) == []


def test_a_file_is_written_where_no_file_can_have_a_second_name(root, monkeypatch):
    monkeypatch.setattr(os, "link", no_links)

    assert Folder(root).write("docs/a.md", "one") == 3
    with pytest.raises(ToolError, match="exists already"):
        Folder(root).write("docs/a.md", "two")

    assert (root / "docs" / "a.md").read_text(encoding="utf-8") == "one"
    assert list((root / "docs").glob(".*.part")) == []


def test_an_absolute_path_below_the_folder_is_written_there(root):
    Folder(root).write(f"{root}/docs/../absolute.md", "here")

    assert (root / "absolute.md").is_symlink() is False and (root / "absolute.md").read_text(
        encoding="utf-8"
    ) == "here"


def test_the_number_of_written_files_and_bytes_is_bounded(root, monkeypatch):
    monkeypatch.setattr(room, "MAX_WRITTEN_FILES", 3)
    monkeypatch.setattr(room, "MAX_WRITTEN_BYTES", 100)
    folder = Folder(root)

    folder.write("1.md", "x" * 60)
    with pytest.raises(
        ToolError,
        match=(
            "this file has 50 bytes, but only 40 of 100 bytes are left for this objective; "
            "write less"
        ),
    ):
        folder.write("2.md", "x" * 50)
    for path in ("1.md", "docs", "../x"):  # what fails is not counted
        with pytest.raises(ToolError):
            folder.write(path, "x" * 40)
    folder.write("2.md", "x" * 30)
    folder.write("2.md", "x", replace=True)
    with pytest.raises(
        ToolError, match="3 files were written for this objective, which is the limit"
    ):
        folder.write("3.md", "")

    assert not (root / "3.md").exists()


def test_a_text_that_is_too_large_is_refused(root):
    with pytest.raises(ToolError, match="over 5000000 bytes"):
        Folder(root).write("large.txt", "x" * 5_000_001)


@pytest.mark.thorough
@pytest.mark.parametrize("target", ["folder", "file"])
def test_a_race_of_links_writes_nothing_outside(root, tmp_path, target):
    is_over, place = threading.Event(), root / "race"
    outside = tmp_path / "outside" if target == "folder" else tmp_path / "outside" / "secret.txt"
    (root / "inside").mkdir()

    def swap():
        n = 0
        while not is_over.is_set():
            n += 1
            (root / "next").symlink_to(outside)
            (root / "next").replace(place)
            place.unlink()
            if target == "folder":
                place.mkdir()
                place.rename(root / f"gone{n}")
            else:
                place.write_text("inside", encoding="utf-8")
                place.unlink(missing_ok=True)

    def swap_until_over():
        while not is_over.is_set():
            try:
                swap()
            except OSError:  # the writer made what we were about to make
                with_link = place.is_symlink() or place.is_file()
                place.unlink() if with_link else None
                (root / "next").unlink(missing_ok=True)

    thread = threading.Thread(target=swap_until_over)
    thread.start()
    try:
        for n in range(300):
            with suppress(ToolError):
                Folder(root).write(
                    f"race/leak{n}" if target == "folder" else "race", "leaked", replace=True
                )
    finally:
        is_over.set()
        thread.join()

    assert everything(tmp_path / "outside") == {str(tmp_path / "outside" / "secret.txt"): "outside"}


def test_writing_leaves_no_descriptor_open(root):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for n, path in enumerate([*HOSTILE, *NORMAL]):
        with suppress(ToolError):
            Folder(root).write(path, f"{n}")

    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_opening_beneath_follows_no_link_and_no_dots(root):
    fd = os.open(root, FOLDER_FLAGS)
    try:
        for parts in (["out", "secret.txt"], ["docs", "filelink"], ["loop"], ["proc", "environ"]):
            with pytest.raises(OSError) as caught:
                open_beneath(fd, parts, os.O_RDONLY)
            assert caught.value.errno in (errno.ELOOP, errno.ENOTDIR)
        for parts in ([".."], ["a/b"], [""], ["."]):
            with pytest.raises(OSError):
                open_beneath(fd, parts, os.O_RDONLY)
        os.close(open_beneath(fd, ["docs", "part2.txt"], os.O_RDONLY))
    finally:
        os.close(fd)
