"""The one door to the folder: everything in it can be read, nothing outside it, and failures name
no path of this machine."""

import contextlib
import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from babyagi.errors import ToolError
from babyagi.files import folder as room
from babyagi.files.folder import Folder


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    (root / "docs" / "deep").mkdir(parents=True)
    (root / "limits.md").write_text("# Limits\nten\n", encoding="utf-8")
    (root / "docs" / "part2.txt").write_text("two", encoding="utf-8")
    (root / "docs" / "part10.txt").write_text("ten", encoding="utf-8")
    (root / "docs" / "deep" / "Über.md").write_text("ü", encoding="utf-8")
    for hidden in (".env", ".git", "__pycache__"):
        (root / hidden).mkdir() if hidden != ".env" else (root / hidden).write_text(
            "KEY=secret", encoding="utf-8"
        )
    (root / ".git" / "config").write_text("secret", encoding="utf-8")
    (root / "__pycache__" / "x.txt").write_text("cache", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("outside", encoding="utf-8")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("outside", encoding="utf-8")
    return root


def paths(listing):
    return [file.path for file in listing.files]


def searched(folder):
    found = folder.read_lines(folder.list().files)
    return [file.path for file, lines in found if lines is not None]


# -- list
# --------------------------------------------------------------------------------------------------


def test_files_are_listed_in_natural_order_without_hidden_ones_and_caches(root):
    listing = Folder(root).list()

    assert paths(listing) == ["docs/deep/Über.md", "docs/part2.txt", "docs/part10.txt", "limits.md"]
    assert (listing.n_files, listing.is_cut) == (4, False)
    assert listing.files[-1].size_bytes == 13


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.md", ["docs/deep/Über.md", "limits.md"]),
        ("**/*.md", ["docs/deep/Über.md", "limits.md"]),
        ("./docs/*.txt", ["docs/part2.txt", "docs/part10.txt"]),
        ("LIMITS", ["limits.md"]),
        ("docs/deep", ["docs/deep/Über.md"]),
        ("limits.md, docs/part2.txt", ["docs/part2.txt", "limits.md"]),
        (".", ["docs/deep/Über.md", "docs/part2.txt", "docs/part10.txt", "limits.md"]),
        ("../*", []),
        ("/etc/*", []),
        ("[z-a]*", []),
        ("*" * 2000, ["docs/deep/Über.md", "docs/part2.txt", "docs/part10.txt", "limits.md"]),
    ],
)
def test_a_pattern_is_a_glob_or_a_part_of_the_path(root, pattern, expected):
    assert paths(Folder(root).list(pattern)) == expected


def test_a_listing_is_bounded_and_counts_what_it_leaves_out(root):
    for n in range(room.MAX_LISTED + 20):
        (root / f"n{n}").touch()

    listing = Folder(root).list("n*")

    assert (len(listing.files), listing.n_files, listing.is_cut) == (
        room.MAX_LISTED,
        room.MAX_LISTED + 20,
        False,
    )
    assert paths(listing)[:3] == ["n0", "n1", "n2"]
    assert len(Folder(root).list("n*", 3).files) == 3


def test_a_walk_that_finds_too_much_stops_and_says_so(root, monkeypatch):
    monkeypatch.setattr(room, "MAX_WALKED", 3)

    listing = Folder(root).list()

    assert listing.is_cut
    assert listing.n_files <= 3


def test_links_and_what_is_no_regular_file_are_not_listed(root, tmp_path):
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "fifo")
    (root / "new\nline").touch()
    (root / b"raw\xff".decode(errors="surrogateescape")).touch()

    assert Folder(root).list().n_files == 4


def test_a_folder_that_is_gone_is_an_error_without_its_path(tmp_path):
    for call in (lambda folder: folder.list(), lambda folder: folder.read("a.md")):
        with pytest.raises(ToolError) as caught:
            call(Folder(tmp_path / "gone"))
        assert str(tmp_path) not in caught.value.what


# -- what is outside
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "//etc/passwd",
        "..",
        "../secret.txt",
        "docs/../../secret.txt",
        "docs/../../root/limits.md",
        "./../root/limits.md",
        "a\0b",
        "",
        " ",
        "a\nb",
        "x" * 5000,
        "\ud800",
        "~/.ssh/id_rsa",
        ".env",
        ".git/config",
        "docs/../.env",
        "__pycache__/x.txt",
        ".",
        "docs",
        "limits.md/x",
        "d" * 300,
    ],
)
def test_nothing_but_a_shown_file_can_be_read(root, path):
    with pytest.raises(ToolError) as caught:
        Folder(root).read(path)

    assert "\n" not in caught.value.what
    assert str(root.parent) not in caught.value.what
    assert len(caught.value.what) < 400


@pytest.mark.parametrize(
    "path",
    [
        "docs/../limits.md",
        "docs/deep/../../limits.md",
        "gone/../limits.md",
        "./docs/.././limits.md",
    ],
)
def test_dots_that_stay_inside_are_read_as_they_are_meant(root, path):
    assert Folder(root).read(path).path == "limits.md"


def test_an_absolute_path_within_the_folder_is_read_as_it_is_meant(root, tmp_path):
    (tmp_path / "alias").symlink_to(root)
    (tmp_path / "root2").mkdir()
    (tmp_path / "root2" / "limits.md").write_text("outside", encoding="utf-8")

    for folder in (root, tmp_path / "alias"):
        for path in (
            f"{root}/limits.md",
            f"{folder}/limits.md",
            f"{folder}//docs/../limits.md",
            f"{folder}/./limits.md",
        ):
            assert Folder(folder).read(path).path == "limits.md"
    assert (
        paths(Folder(root).list(f"{root}/docs/*.txt"))
        == paths(Folder(root).list("docs/deep/../*.txt"))
        == ["docs/part2.txt", "docs/part10.txt"]
    )
    for path in (
        f"{root}2/limits.md",
        f"{root}/../root2/limits.md",
        f"{tmp_path}/alias/limits.md",
        f"{root}/.env",
        f"{root}/../root/limits.md",
    ):
        with pytest.raises(ToolError):
            Folder(root).read(path)
    with pytest.raises(ToolError, match="this is the folder itself"):
        Folder(root).read(str(root))


def test_dots_behind_a_link_are_read_as_the_system_reads_them(root, tmp_path):
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "deep").symlink_to("docs/deep")

    assert Folder(root).read("deep/../part2.txt").path == "docs/part2.txt"
    with pytest.raises(ToolError):
        Folder(root).read("out/../secret.txt")


@pytest.mark.parametrize("name", ["data", "deep/data", "."])
def test_a_home_within_the_folder_is_neither_listed_nor_read_nor_written(tmp_path, name):
    root, home = tmp_path / "root", tmp_path / "root" / name
    (home / "locks").mkdir(parents=True)
    (home / "serve_token").write_text("TOKEN")
    (root / "way").symlink_to(home)
    (root / "second").hardlink_to(home / "serve_token")
    (tmp_path / "link").symlink_to(root)
    folder = Folder(tmp_path / "link", without=home)

    for pattern in ("", "*", f"{name}/*", "way/*"):
        assert "serve_token" not in str(folder.list(pattern).files)
    for path in (f"{name}/serve_token", "way/serve_token", "second", str(home / "serve_token")):
        with pytest.raises(ToolError):
            folder.read(path)
    for path in (f"{name}/serve_token", "way/serve_token", f"{name}/new", "way/new"):
        with pytest.raises(ToolError):
            folder.write(path, "mine", replace=True)
    assert (home / "serve_token").read_text() == "TOKEN" and not (home / "new").exists()


def test_a_folder_beside_the_home_with_a_similar_name_is_read(tmp_path):
    for name in ("data", "data2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text("text")

    folder = Folder(tmp_path, without=tmp_path / "data")

    assert [file.path for file in folder.list().files] == ["data2/a.md"]
    assert folder.read("data2/a.md").text == "text"


def test_a_hard_link_to_what_is_outside_or_hidden_is_not_read(root, tmp_path):
    (root / "linked.txt").hardlink_to(tmp_path / "secret.txt")
    (root / "docs" / "key.txt").hardlink_to(root / ".env")
    (root / "three.txt").hardlink_to(tmp_path / "outside" / "secret.txt")
    (root / "docs" / "three.txt").hardlink_to(root / "three.txt")

    for path in ("linked.txt", "docs/key.txt", "three.txt", "docs/three.txt"):
        with pytest.raises(
            ToolError, match="it is a hard link, and its other name may be outside the folder"
        ):
            Folder(root).read(path)
    for linked in ("linked.txt", "docs/key.txt", "three.txt", "docs/three.txt"):
        assert linked in paths(Folder(root).list()) and linked not in searched(Folder(root))


def test_a_hard_link_within_the_folder_is_read_and_so_is_what_a_killed_writer_left(root):
    (root / "docs" / "twin.txt").hardlink_to(root / "limits.md")
    Folder(root).write("new.md", "new")
    (root / f".{'0' * 24}.part").hardlink_to(root / "new.md")

    assert (
        Folder(root).read("docs/twin.txt").text
        == Folder(root).read("limits.md").text
        == "# Limits\nten"
    )
    assert Folder(root).read("new.md").text == "new"
    assert {"docs/twin.txt", "limits.md"} <= set(searched(Folder(root)))
    assert not [path for path in paths(Folder(root).list()) if path.endswith(".part")]


def test_a_link_that_leads_outside_is_refused_and_one_inside_is_followed(root, tmp_path):
    (root / "out.txt").symlink_to(tmp_path / "secret.txt")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "up").symlink_to("..")
    (root / "hidden.txt").symlink_to(".env")
    (root / "loop").symlink_to("loop")
    (root / "in.txt").symlink_to("docs/part2.txt")
    (root / "prefix").symlink_to(tmp_path / "root2")
    (tmp_path / "root2").mkdir()
    (tmp_path / "root2" / "a.txt").write_text("outside", encoding="utf-8")

    for path in tuple("out.txt out/secret.txt up/secret.txt hidden.txt loop prefix/a.txt".split()):
        with pytest.raises(ToolError) as caught:
            Folder(root).read(path)
        assert str(tmp_path) not in caught.value.what
    assert Folder(root).read("in.txt").text == "two"
    assert Folder(root).read("in.txt").path == "docs/part2.txt"


def test_a_root_behind_a_link_is_a_root(root, tmp_path):
    (tmp_path / "alias").symlink_to(root)

    assert Folder(tmp_path / "alias").read("limits.md").text == "# Limits\nten"
    assert Folder(tmp_path / "alias").list().n_files == 4


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_link_put_in_place_after_the_check_leads_nowhere(root, tmp_path, monkeypatch, is_folder):
    (root / "swap").mkdir()
    (root / "swap" / "secret.txt").write_text("inside", encoding="utf-8")
    check = Folder._resolve

    def check_then_swap(self, path):
        parts = check(self, path)
        (root / "swap" / "secret.txt").unlink()
        if is_folder:
            (root / "swap").rmdir()
            (root / "swap").symlink_to(tmp_path / "outside")
        else:
            (root / "swap" / "secret.txt").symlink_to(tmp_path / "secret.txt")
        return parts

    monkeypatch.setattr(Folder, "_resolve", check_then_swap)

    with pytest.raises(ToolError):
        Folder(root).read("swap/secret.txt")


def test_a_race_of_links_never_shows_what_is_outside(root, tmp_path):
    target = root / "race"
    is_over = threading.Event()

    def swap():
        while not is_over.is_set():
            for source in (root / "docs", tmp_path / "outside"):
                (root / "next").symlink_to(source)
                (root / "next").replace(target)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(300):
            with pytest.raises(ToolError):
                Folder(root).read("race/secret.txt")
    finally:
        is_over.set()
        thread.join()


@pytest.mark.timeout(120)
def test_a_path_that_is_no_regular_file_neither_blocks_nor_is_read(root):
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        root_fd = os.open(root, os.O_RDONLY)  # a socket's path must be short
        try:
            listening.bind(f"/proc/self/fd/{root_fd}/sock")
        finally:
            os.close(root_fd)
        for path in ("fifo", "sock", "docs"):
            with pytest.raises(ToolError):
                Folder(root).read(path)


def test_reading_leaves_no_descriptor_open(root):
    (root / "x.bin").write_bytes(b"\0")
    before = len(list(Path("/proc/self/fd").iterdir()))

    for path in ("limits.md", "docs", "x.bin", "gone", "docs/gone", "gone/gone", "../x"):
        with contextlib.suppress(ToolError):
            Folder(root).read(path)
    Folder(root).list()

    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_missing_file_is_answered_with_the_nearest_ones(root):
    for path, nearest in (
        ("limts.md", "limits.md"),
        ("LIMITS.MD", "limits.md"),
        ("part2.txt", "docs/part2.txt"),
        ("gone/part10.txt", "docs/part10.txt"),
    ):
        with pytest.raises(ToolError, match=f"^no file '{path}'; nearest: {nearest}"):
            Folder(root).read(path)
    with pytest.raises(ToolError, match=r"^no file 'zzz'; list_files shows what there is$"):
        Folder(root).read("zzz")


# -- text
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\nb\n", "a\nb"),
        (b"a\r\nb\rc", "a\nb\nc"),
        (b"\xef\xbb\xbfa", "a"),
        ("ä\nö".encode("utf-16"), "ä\nö"),
        ("ä".encode("utf-16-be").join([b"\xfe\xff", b""]), "ä"),
        ("Grüße aus München".encode("latin-1"), "Grüße aus München"),
        ("“Zum Café” – 5 €, um drei".encode("cp1252"), "“Zum Café” – 5 €, um drei"),
        ("Grüße, und ein ".encode() + b"\xfc allein", "Grüße, und ein \ufffd allein"),
        (b"an old\x81 box of DOS\n" * 2, "an old\ufffd box of DOS\nan old\ufffd box of DOS"),
        ("a\x0cb\u2028c\x85d".encode(), "a b c d"),
        (b"\n\n", "\n"),
    ],
)
def test_text_is_read_in_its_encoding(root, data, text):
    (root / "t.txt").write_bytes(data)

    read = Folder(root).read("t.txt")

    assert read.text == text
    assert read.n_lines == text.count("\n") + 1


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\0\0",
        bytes(range(128, 256)) * 4,
        b"MZ\0",
        "ä".encode("utf-32"),
        b"\x1f\x8b\x08\xe9\xfc\x02\xf3",
        "Привет, мир".encode("cp1251"),
    ],
)
def test_a_file_that_is_no_text_is_refused(root, data):
    (root / "x.bin").write_bytes(data)

    with pytest.raises(ToolError, match=r"^'x\.bin' is not a text file$"):
        Folder(root).read("x.bin")


def test_an_empty_file_has_no_lines(root):
    (root / "empty").touch()

    read = Folder(root).read("empty")

    assert (read.text, read.first_line, read.last_line, read.n_lines) == ("", 1, 0, 0)


def test_lines_are_counted_from_one_and_bounded(root):
    (root / "t").write_text("\n".join(f"line {n}" for n in range(1, 101)), encoding="utf-8")
    folder = Folder(root)

    some = folder.read("t", first_line=10, max_lines=3)
    few = folder.read("t", first_line=99, max_lines=50)
    small = folder.read("t", max_chars=20)

    assert (some.text, some.first_line, some.last_line, some.n_lines) == (
        "line 10\nline 11\nline 12",
        10,
        12,
        100,
    )
    assert (few.first_line, few.last_line) == (99, 100)
    assert (small.text, small.last_line) == ("line 1\nline 2", 2)
    assert folder.read("t", max_chars=1).text == "line 1"
    with pytest.raises(ToolError, match=r"^'t' has 100 lines, there is no line 101$"):
        folder.read("t", first_line=101)


def test_a_long_line_is_cut_and_says_so(root):
    (root / "t").write_text("x" * 2_500, encoding="utf-8")

    assert Folder(root).read("t").text == "x" * 2000 + " … (500 more characters in this line)"


def test_of_a_huge_file_only_the_beginning_is_read(root):
    with (root / "huge").open("wb") as file:
        file.write(b"line\n" * (room.MAX_FILE_BYTES // 5 + 10))
        file.truncate(50_000_000_000)

    read = Folder(root).read("huge", max_lines=2)

    assert read.is_cut
    assert (read.text, read.n_lines) == ("line\nline", room.MAX_FILE_BYTES // 5)
    with pytest.raises(
        ToolError,
        match="too large; the part that can be read has 1000000 lines, there is no line 1000001",
    ):
        Folder(root).read("huge", first_line=1_000_001)


@pytest.mark.thorough
@settings(
    max_examples=300, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.one_of(
        st.text(max_size=30),
        st.lists(
            st.sampled_from(
                ["..", ".", "/", "docs", "limits.md", "out", "secret.txt", "\0", "~", "\\"]
            )
        ).map("".join),
    )
)
def test_no_path_reads_what_is_outside_or_raises_anything_but_a_tool_error(root, path):
    (root / "out").exists() or (root / "out").symlink_to(root.parent)
    try:
        text = Folder(root).read(path).text
    except ToolError as error:
        assert "\n" not in error.what
        assert str(root.parent) not in error.what
    else:
        assert text in ("# Limits\nten", "two", "ten", "ü")
    Folder(root).list(path)
