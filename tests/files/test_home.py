import errno
import os

import pytest

from babyagi.errors import SettingsError, StoreUnusableError
from babyagi.files import home
from babyagi.files.home import (
    MAX_WORKERS_PER_NAME,
    home_id,
    is_bearer_dead,
    make_home,
    remember_folder,
    remember_touch,
    take_name,
)


def test_a_home_keeps_its_id_and_no_other_home_has_it(tmp_path):
    for name in ("one", "two"):
        make_home(tmp_path / name)

    assert home_id(tmp_path / "one") == home_id(tmp_path / "one") != home_id(tmp_path / "two")
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["home_id"]


def test_a_home_has_an_id_where_no_file_can_have_a_second_name(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", no_links)

    assert home_id(tmp_path) == home_id(tmp_path) != ""
    assert [path.name for path in tmp_path.iterdir()] == ["home_id"]


def no_links(*_args, **_options):
    """What `os.link` does on Android, and on file systems that have no hard links."""
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


IN_THE_WAY = {
    "home_id": home_id,
    "locks": lambda place: take_name(place, "me").__enter__(),
    "locks/me.lock": lambda place: take_name(place, "me").__enter__(),
    "folders": lambda place: remember_folder(place, "u", place),
    "touched": lambda place: remember_touch(place, "u", 1),
}


@pytest.mark.parametrize("name", IN_THE_WAY)
def test_what_is_in_the_way_in_a_home_is_named_in_one_error_and_nothing_else_is_left(
    tmp_path, name
):
    place = tmp_path / name
    place.parent.mkdir(exist_ok=True)
    if name in ("locks", "folders"):
        place.write_text("a file where a folder should be")
    else:
        place.mkdir()

    with pytest.raises(StoreUnusableError, match="cannot be used") as caught:
        IN_THE_WAY[name](tmp_path)

    assert name in caught.value.why and caught.value.fix
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")} <= {
        name,
        name.partition("/")[0],
    }


def test_an_id_that_is_no_text_is_an_error_of_the_home(tmp_path):
    (tmp_path / "home_id").write_bytes(b"\xff\xfe")

    with pytest.raises(StoreUnusableError, match="cannot be used"):
        home_id(tmp_path)


def test_a_name_is_free_again_when_its_bearer_is_gone(tmp_path):
    with take_name(tmp_path, "me") as first, take_name(tmp_path, "me") as second:
        assert (first, second) == ("me", "me-2")
    with take_name(tmp_path, "me") as again:
        assert again == "me"


def test_a_name_has_an_end_of_numbers(tmp_path):
    from contextlib import ExitStack

    with ExitStack() as stack:
        for _ in range(MAX_WORKERS_PER_NAME):
            stack.enter_context(take_name(tmp_path, "me"))
        with pytest.raises(SettingsError, match="called me"):
            stack.enter_context(take_name(tmp_path, "me"))


def test_a_home_that_is_a_file_is_a_clear_error(tmp_path):
    (tmp_path / "home").write_text("")
    with pytest.raises(StoreUnusableError, match="cannot be used"):
        make_home(tmp_path / "home")


def test_who_lets_go_of_a_name_is_known_to_be_dead_and_who_holds_it_is_not(tmp_path):
    with take_name(tmp_path, "me") as name:
        assert not is_bearer_dead(tmp_path, name)
    assert is_bearer_dead(tmp_path, name)
    assert not is_bearer_dead(tmp_path, "nobody ever")
    with take_name(tmp_path, "me"):
        assert not is_bearer_dead(tmp_path, name)


@pytest.mark.parametrize("boot_id", ["another kernel", ""])
def test_of_a_name_that_was_borne_under_another_kernel_or_an_unknown_one_nothing_is_known(
    tmp_path, monkeypatch, boot_id
):
    (tmp_path / "boot_id").write_text(boot_id)
    with monkeypatch.context() as patched:
        patched.setattr(home, "BOOT_ID", tmp_path / "boot_id")
        with take_name(tmp_path, "me"):
            pass
        assert is_bearer_dead(tmp_path, "me") == bool(boot_id)
    assert not is_bearer_dead(tmp_path, "me")


def test_a_name_that_a_worker_of_another_home_has_is_passed_over(tmp_path):
    with take_name(tmp_path, "me", taken={"me", "me-2"}) as name:
        assert name == "me-3"


def test_what_was_touched_last_is_last_and_each_once(tmp_path):
    for uid, number in (("a", 1), ("b", 2), ("a", 1)):
        home.remember_touch(tmp_path, uid, number)

    assert home.touched(tmp_path) == [("b", 2), ("a", 1)]

    home.forget(tmp_path, "a")
    assert home.touched(tmp_path) == [("b", 2)]


@pytest.mark.parametrize("kind", ["pages", "scratch"])
def test_of_a_deleted_objective_no_fetched_page_and_no_scratch_file_is_left(tmp_path, kind):
    for uid in ("a", "b"):
        (tmp_path / kind / uid / "1").mkdir(parents=True)
        (tmp_path / kind / uid / "1" / "page").write_text("tea")

    home.forget(tmp_path, "a")

    assert [path.name for path in (tmp_path / kind).iterdir()] == ["b"]


def test_a_damaged_list_of_what_was_touched_is_read_as_far_as_it_goes(tmp_path):
    (tmp_path / "touched").write_text("a 1\nnonsense\nb two\n\nc 3")
    assert home.touched(tmp_path) == [("a", 1), ("c", 3)]

    (tmp_path / "touched").write_bytes(b"\xff\xfe")
    assert home.touched(tmp_path) == []
