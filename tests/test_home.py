import pytest

from babyagi.errors import SettingsError, StoreUnusableError
from babyagi.home import MAX_WORKERS_PER_NAME, home_id, make_home, take_name


def test_a_home_keeps_its_id_and_no_other_home_has_it(tmp_path):
    for name in ("one", "two"):
        make_home(tmp_path / name)

    assert home_id(tmp_path / "one") == home_id(tmp_path / "one") != home_id(tmp_path / "two")
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["home_id"]


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
