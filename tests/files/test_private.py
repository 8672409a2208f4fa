import os
import subprocess
import sys

import pytest

from babyagi.files import private
from babyagi.files.home import home_id, make_home, remember_folder, take_name


@pytest.fixture(params=[0o000, 0o022, 0o277], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder):
    found = {folder.name: folder.stat().st_mode & 0o777}
    return found | {path.name: path.stat().st_mode & 0o777 for path in folder.rglob("*")}


def test_a_home_and_what_is_made_in_it_are_for_their_owner_whatever_the_umask(tmp_path, umask):
    home = tmp_path / "not" / "there" / "home"
    make_home(home)
    home_id(home)
    remember_folder(home, "uid", tmp_path)
    with take_name(home, "me"):
        pass

    assert modes(home) == {
        "home": 0o700,
        "home_id": 0o600,
        "folders": 0o700,
        "uid": 0o600,
        "locks": 0o700,
        "me.lock": 0o600,
    }
    assert [
        path.stat().st_mode & 0o777 for path in (tmp_path / "not", tmp_path / "not" / "there")
    ] == [0o700, 0o700]
    assert os.umask(umask) == umask


def test_a_folder_that_is_there_keeps_its_mode(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    folder.chmod(0o755)

    private.make_folder(folder)

    assert folder.stat().st_mode & 0o777 == 0o755


def test_files_that_a_library_left_open_to_others_are_found_and_tightened(tmp_path):
    (tmp_path / "a").write_text("")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").write_text("")
    (tmp_path / "link").symlink_to("/etc/passwd")
    for path, mode in (
        (tmp_path, 0o700),
        (tmp_path / "a", 0o604),
        (tmp_path / "b", 0o750),
        (tmp_path / "b" / "c", 0o600),
    ):
        path.chmod(mode)

    assert sorted(path.name for path in private.find_wide(tmp_path)) == ["a", "b"]
    private.tighten(tmp_path)
    assert list(private.find_wide(tmp_path)) == []
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


@pytest.mark.system
def test_a_whole_run_under_an_open_umask_leaves_a_home_for_its_owner_and_a_report_as_the_umask_says(
    tmp_path,
):
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "BABYAGI_HOME": str(tmp_path / "home"),
        "BABYAGI_RESULT_STORE": "chroma",
    }

    def babyagi(*line):
        subprocess.run(
            [sys.executable, "-m", "babyagi", *line],
            cwd=tmp_path,
            env=environ,
            umask=0,
            capture_output=True,
            check=True,
        )

    babyagi("demo")
    babyagi("report", "--output", "report.md")
    babyagi("doctor", "--quick")

    found = modes(tmp_path / "home")
    assert {"tasks.db", "babyagi.log", "home_id", "chroma.sqlite3"} <= set(found)
    assert {name: oct(mode) for name, mode in found.items() if mode not in (0o700, 0o600)} == {}
    assert (tmp_path / "report.md").stat().st_mode & 0o777 == 0o666
