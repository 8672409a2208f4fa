"""Which host an address names, and whether that is this machine."""

import pytest

from babyagi.net.hosts import host_of, is_loopback


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


def test_this_machine_is_called_by_its_three_names_alone():
    assert all(is_loopback(f"http://{host}:1/v1") for host in ("127.0.0.1", "[::1]", "localhost"))
    assert not any(
        is_loopback(url) for url in ("", "http://[::1", "http://127.0.0.1.example", "http://localhost@a.example", "http://10.0.0.1")
    )
