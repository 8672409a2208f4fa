"""What an address says of itself: this machine or another, in clear or not, through which proxy."""

from pathlib import Path

import pytest

from babyagi.net.addresses import Proxies, host_of, is_here, is_in_clear, is_loopback
from babyagi.settings.load import load_settings


@pytest.mark.parametrize(
    "host",
    (
        "localhost LOCALHOST localhost. api.localhost 127.0.0.1 127.9.8.7 ::1 [::1] "
        "::ffff:127.0.0.1 0.0.0.0"
    ).split(),
)
def test_this_machine_is_known_by_all_its_names(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "localhost.example.com",
        "10.0.0.1",
        "192.168.1.5",
        "ollama",
        "128.0.0.1",
        "fe80::1",
        "mylocalhost",
    ],
)
def test_another_machine_is_not_this_one(host):
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("url", "is_clear"),
    [
        ("http://10.0.0.7:8000/v1", True),
        ("http://model.example/v1", True),
        ("HTTP://model.example", True),
        ("http://127.0.0.1:8000/v1", False),
        ("http://[::1]:8000", False),
        ("https://model.example", False),
        ("", False),
        ("notify-send done", False),
    ],
)
def test_data_sent_over_http_to_another_machine_is_unencrypted(url, is_clear):
    assert is_in_clear(url) is is_clear


def read_proxies(environ):
    return load_settings(
        flags={}, environ=environ, cwd=Path("/"), reads_files=False
    ).settings.proxies


PROXIES = read_proxies(
    {
        "http_proxy": "http://plain:3128",
        "HTTPS_PROXY": "me:word@secure:3129",
        "NO_PROXY": "example.com, .corp.net,10.0.0.0/8 one:8080,[fd00::1]",
    }
)


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://elsewhere.org/a", "http://plain:3128"),
        ("https://elsewhere.org", "http://me:word@secure:3129"),
        ("http://localhost:8000", None),
        ("https://127.0.0.1:1", None),
        ("http://[::1]:5", None),
        ("https://example.com", None),
        ("https://api.Example.com.", None),
        ("https://notexample.com", "http://me:word@secure:3129"),
        ("https://a.corp.net", None),
        ("http://10.20.30.40", None),
        ("http://11.0.0.1", "http://plain:3128"),
        ("http://one:8080", None),
        ("http://one:8081", "http://plain:3128"),
        ("http://[fd00::1]:9", None),
    ],
)
def test_a_proxy_is_used_for_its_scheme_and_never_for_what_is_excepted(url, proxy):
    assert PROXIES.find(url) == proxy


def test_a_star_excepts_everything_and_nothing_named_is_no_proxy():
    assert (
        read_proxies({"HTTP_PROXY": "http://p:1", "NO_PROXY": "*"}).find("http://elsewhere.org")
        is None
    )
    assert read_proxies({}) == Proxies()
    assert Proxies().find("https://elsewhere.org") is None


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://A.example/path?x=1", "a.example"),
        ("https://a.example:443", "a.example"),
        ("http://a.example:443", "a.example:443"),
        ("https://a.example:8443", "a.example:8443"),
        ("https://me:word@a.example", "a.example"),
        ("https://a.example@b.example", "b.example"),
        ("https://a.example.b.example", "a.example.b.example"),
        ("https://a.example.", "a.example."),
        ("http://[::1]:8080/v1", "[::1]:8080"),
        ("a.example", ""),
        ("https://", ""),
        ("https://a.example:port", ""),
        ("https://[::1", ""),
    ],
)
def test_an_address_names_one_host_and_its_port_where_it_is_not_the_usual_one(url, host):
    assert host_of(url) == host


def test_an_address_on_this_machine_is_known_by_its_host_alone():
    assert all(is_here(f"http://{host}:1/v1") for host in ("127.0.0.1", "[::1]", "localhost"))
    assert not any(
        is_here(url)
        for url in (
            "",
            "http://[::1",
            "http://127.0.0.1.example",
            "http://localhost@a.example",
            "http://10.0.0.1",
        )
    )
