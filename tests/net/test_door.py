"""The door to addresses that a model or a page chose, over real sockets of this machine: names are
looked up by the test, so that nothing leaves it."""

import gzip
import ipaddress
import zlib

import pytest

from babyagi.errors import ToolError
from babyagi.net.addresses import AddressError, is_public, read_target
from babyagi.net.door import MAX_REDIRECTS, Door
from tests.web_server import Reply, WebServer

NOT_PUBLIC = """
    0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.254 127.0.0.1
    127.1.2.3 127.255.255.254 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.254
    192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.254 198.18.0.1
    198.19.255.254 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
    168.63.129.16
    :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:8.8.8.8 ::ffff:0:127.0.0.1
    64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::808:808 64:ff9b:1::1 100::1 2001::1
    2001:0:7f00:1::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::1 2002:a9fe:a9fe::1
    2002:808:808::1 3fff::1 fc00::1 fd00::1 fd00:ec2::254 fdff:ffff::1 fe80::1 fe80::a9fe:a9fe
    fec0::1 ff02::1 ff05::1:3 5f00::1 4000::1 2620:4f:8000::1
""".split()
PUBLIC = """
    1.1.1.1 8.8.8.8 9.9.9.9 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1
    169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0
    198.17.255.255 198.20.0.0 223.255.255.255 2600::1 2606:4700:4700::1111 2a00:1450:4001::1
    2001:4860:4860::8888 2001:200::1 3ffe:ffff::1
""".split()
UNUSUAL = """
    http://127.1:{port}/ http://127.0.1:{port}/ http://2130706433:{port}/ http://0x7f000001:{port}/
    http://0x7f.0.0.1:{port}/ http://0x7f.1:{port}/ http://017700000001:{port}/
    http://0177.0.0.1:{port}/ http://127.0.0.01:{port}/ http://127.0.0.0x1:{port}/
    http://127.0.0.1.:{port}/ http://00000127.0.0.1:{port}/ http://127.0.0.1.5:{port}/
    http://0:{port}/ http://0x0:{port}/ http://4294967295:{port}/ http://99999999999:{port}/
    http://１２７.０.０.１:{port}/ http://①②⑦.⓪.⓪.①:{port}/ http://127。0。0。1:{port}/
    http://127.0.0.1%2f@8.8.8.8:{port}/ http://8.8.8.8@127.0.0.1:{port}/ http://a:b@127.0.0.1:{port}/
    http://@127.0.0.1:{port}/ http://%31%32%37.0.0.1:{port}/ http://127%2e0%2e0%2e1:{port}/
    http://127.0.0.1\\@8.8.8.8:{port}/ http://8.8.8.8\\.127.0.0.1:{port}/ http:\\\\127.0.0.1:{port}/
    http:///127.0.0.1:{port}/ http:127.0.0.1:{port}/ http:/127.0.0.1:{port}/ //127.0.0.1:{port}/
    http://[::1]:{port}/ http://[::]:{port}/ http://[0:0:0:0:0:0:0:1]:{port}/
    http://[::ffff:127.0.0.1]:{port}/ http://[::ffff:7f00:1]:{port}/ http://[::127.0.0.1]:{port}/
    http://[64:ff9b::127.0.0.1]:{port}/ http://[2002:7f00:1::]:{port}/ http://[fe80::1%25lo]:{port}/
    http://[::1%25lo]:{port}/ http://[::1]@8.8.8.8:{port}/ http://[127.0.0.1]:{port}/
    http://[::1:{port}/ http://::1:{port}/ http://[v1.127.0.0.1]:{port}/
    http://127.0.0.1:{port}\t/ http://127.0.0.1\n:{port}/ http://\x00127.0.0.1:{port}/
    http://127.0.0.1:0/ http://127.0.0.1:70000/ http://127.0.0.1:-1/ http://127.0.0.1:８０/
    http://-a.test:{port}/ http://a..test:{port}/ http://.test:{port}/ http://a_{long}.test:{port}/
    http://:{port}/ http://?{port}/ http://#{port}/ http:// https:// http
    file:///etc/passwd FILE:///etc/passwd ftp://127.0.0.1:{port}/ gopher://127.0.0.1:{port}/
    dict://127.0.0.1:{port}/ ldap://127.0.0.1:{port}/ data:text/html,hello javascript:alert(1)
    unix:///var/run/docker.sock jar:http://127.0.0.1!/ view-source:http://127.0.0.1:{port}/
    ws://127.0.0.1:{port}/ about:blank
""".split(" ")


def spelled(port):
    joined = " ".join(UNUSUAL).replace("{port}", str(port)).replace("{long}", "x" * 70)
    return [one for one in joined.replace("\n    ", " ").split(" ") if one.strip()]


def look_up_in(table):
    async def resolve(host, port):
        found = table[host.rstrip(".")]
        return found.pop(0) if isinstance(found[0], list) else found

    return resolve


def open_door(server, names=("site.test",), **options):
    table = options.pop("table", {})
    return Door(
        allow=[f"{name}:{server.port}" for name in names],
        resolve=look_up_in({**{name: ["127.0.0.1"] for name in names}, **table}),
        **{"pause_s": 0.0, "timeout_s": 5.0, **options},
    )


def serve(replies):
    return WebServer(lambda asked: replies.get(asked.path))


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_not_everybody_can_reach_is_not_public(address):
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_public_internet_is_public(address):
    assert is_public(ipaddress.ip_address(address))


async def test_no_spelling_of_an_address_of_this_machine_reaches_it():
    async with serve({"/": Reply("secret")}) as server:
        door = open_door(server, names=())
        urls = spelled(server.port)
        for url in urls:
            with pytest.raises(ToolError) as raised:
                await door.fetch(url)
            assert "\n" not in raised.value.what and "secret" not in raised.value.what

    assert len(urls) >= 70
    assert server.n_connections == 0


@pytest.mark.parametrize("address", NOT_PUBLIC)
async def test_a_name_that_leads_to_a_private_address_is_not_connected_to(address):
    async with serve({"/": Reply("secret")}) as server:
        table = {"a.test": [address], "b.test": ["93.184.216.34", address]}
        door = open_door(server, names=(), table=table)
        for name in table:
            with pytest.raises(ToolError, match="is not on the public internet"):
                await door.fetch(f"http://{name}:{server.port}/")

    assert server.n_connections == 0


async def test_a_name_that_changes_its_address_is_connected_to_where_it_was_judged():
    async with serve({"/": Reply("secret")}) as server:
        # the first look-up would pass, and every later one leads to this machine
        table = {"re.test": [["192.0.2.7"], ["127.0.0.1"], ["127.0.0.1"]]}
        door = open_door(server, names=(), table=table)
        for _ in range(3):
            with pytest.raises(ToolError):
                await door.fetch(f"http://re.test:{server.port}/")

    assert server.n_connections == 0


async def test_a_redirect_is_judged_like_an_address_of_its_own():
    def answer(asked):
        if not asked.path.startswith("/to/"):
            return None
        return Reply(status=302, headers={"location": targets[int(asked.path[4:])]})

    async with WebServer(answer) as server:
        door = open_door(server)
        targets = [url for url in spelled(server.port) if url.isascii() and url.isprintable()]
        for n in range(len(targets)):
            with pytest.raises(ToolError):
                await door.fetch(f"http://site.test:{server.port}/to/{n}")

    assert len(targets) > 50
    assert {asked.host for asked in server.asked} == {f"site.test:{server.port}"}


async def test_redirects_are_followed_a_few_times_and_lead_to_the_last_address():
    replies = {
        "/a": Reply(status=301, headers={"location": "/b?x=1"}),
        "/b": Reply(status=307, headers={"location": "b2/c"}),
        "/b2/c": Reply("<p>there"),
        "/loop": Reply(status=302, headers={"location": "/loop"}),
        "/nowhere": Reply(status=302),
    }
    async with serve(replies) as server:
        door, base = open_door(server), f"http://site.test:{server.port}"
        page = await door.fetch(f"{base}/a")
        with pytest.raises(ToolError, match=f"redirects more than {MAX_REDIRECTS} times"):
            await door.fetch(f"{base}/loop")
        with pytest.raises(ToolError, match="answered 302"):
            await door.fetch(f"{base}/nowhere")

    assert (page.url, page.body) == (f"{base}/b2/c", b"<p>there")


async def test_what_a_person_allows_is_fetched_and_nothing_beside_it():
    async with serve({"/": Reply("ours")}) as server:
        door = Door(allow=[f"127.0.0.1:{server.port}"], pause_s=0.0)
        assert (await door.fetch(server.base_url)).body == b"ours"
        with pytest.raises(ToolError, match="is not on the public internet"):
            await door.fetch(f"http://127.0.0.1:{server.port + 1}/")


async def test_only_the_domains_that_a_person_names_are_reached_and_no_page_redirects_elsewhere():
    async with serve({"/": Reply("hers")}) as other:
        away = Reply("", status=302, headers={"Location": other.base_url})
        async with serve({"/": Reply("ours"), "/away": away}) as server:
            ours = f"127.0.0.1:{server.port}"
            door = Door(allow=["127.0.0.1"], pause_s=0.0)
            door.only = (ours,)
            assert (await door.fetch(server.base_url)).body == b"ours"
            for url in (other.base_url, f"{server.base_url}/away"):
                with pytest.raises(ToolError, match="pages are opened only at 127"):
                    await door.fetch(url)
    assert other.asked == []


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("http://example.com", "http://example.com/"),
        ("HTTPS://Example.COM:443/a/../b", "https://example.com/a/../b"),
        ("http://example.com:8080/?q=a&b=%20#part", "http://example.com:8080/?q=a&b=%20"),
        ("http://bücher.example/straße?ü", "http://xn--bcher-kva.example/stra%C3%9Fe?%C3%BC"),
        ("http://93.184.216.34/", "http://93.184.216.34/"),
        ("http://[2606:4700::1111]:81/x", "http://[2606:4700::1111]:81/x"),
        ("http://a_b.example./", "http://a_b.example./"),
        ("https://例え.jp/", "https://xn--r8jz45g.jp/"),
    ],
)
def test_an_ordinary_address_is_read_in_its_only_form(written, read):
    assert read_target(written).url == read


def test_the_fault_of_an_address_is_named():
    for url, why in {
        "http://0x7f.1/": "not written as four decimal numbers",
        "http://a@b/": "a user name or a password",
        "ftp://x/": "does not begin with http",
        "http://" + "a" * 3000: "longer than",
    }.items():
        with pytest.raises(AddressError, match=why):
            read_target(url)


PACKED = b"<p>" + b"text " * 2000


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(PACKED)),
        ("x-gzip", gzip.compress(PACKED)),
        ("identity", PACKED),
        ("", PACKED),
    ],
    ids=["gzip", "x-gzip", "identity", "not said"],
)
async def test_a_packed_page_is_unpacked(encoding, body):
    async with serve({"/": Reply(body, headers={"content-encoding": encoding})}) as server:
        page = await open_door(server).fetch(f"http://site.test:{server.port}/")

    assert (page.body, page.is_cut) == (PACKED, False)


async def test_no_page_is_larger_than_its_bound_packed_or_not():
    zeros = b"\0" * 30_000_000
    packings = {
        "": zeros[:2_000_000],
        "gzip": gzip.compress(zeros),
    }
    for encoding, body in packings.items():
        async with serve({"/": Reply(body, headers={"content-encoding": encoding})}) as server:
            door = open_door(server, max_bytes=100_000)
            page = await door.fetch(f"http://site.test:{server.port}/")
        assert (len(page.body), page.is_cut) == (100_000, True), encoding


BROKEN = {
    "a refusal": (Reply(status=403), "answered 403"),
    "a missing page": (Reply(status=404), "answered 404"),
    "an error": (Reply(status=500), "answered 500"),
    "an unknown packing": (
        Reply(b"x", headers={"content-encoding": "zstd"}),
        "compressed as 'zstd'",
    ),
    "a packing that was not asked for": (
        Reply(zlib.compress(b"x"), headers={"content-encoding": "deflate"}),
        "compressed as 'deflate', which was not requested",
    ),
    "a false packing": (
        Reply(b"x" * 99, headers={"content-encoding": "gzip"}),
        "cannot be decompressed",
    ),
    "no HTTP": (Reply(b"\x00\x01\r\n\r\n", is_raw=True), "broke off"),
    "nothing": (Reply(b"", is_raw=True), "broke off"),
    "half a page": (
        Reply(b"HTTP/1.1 200 x\r\ncontent-length: 60\r\n\r\nhalf", is_raw=True),
        "broke",
    ),
    "endless headers": (
        Reply(b"HTTP/1.1 200 x\r\n" + b"a: b\r\n" * 60_000, is_raw=True),
        "broke off",
    ),
    "a hang": (Reply(hangs=True), "gave no answer in"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_whatever_a_server_does_is_one_line_in_time(name):
    reply, expected = BROKEN[name]
    async with serve({"/": reply}) as server:
        with pytest.raises(ToolError, match=expected) as raised:
            await open_door(server, timeout_s=0.5 if reply.hangs else 5.0).fetch(
                f"http://site.test:{server.port}/"
            )

    assert "\n" not in raised.value.what


async def test_a_request_carries_nothing_of_the_person():
    async with serve({"/": Reply("x", headers={"set-cookie": "a=b"})}) as server:
        door = open_door(server)
        for _ in range(2):
            await door.fetch(f"http://site.test:{server.port}/")

    for asked in server.asked:
        assert set(asked.headers) <= {
            "host", "user-agent", "accept", "accept-encoding", "accept-language",
        }  # fmt: skip


async def test_robots_txt_is_kept_and_read_once():
    robots = "User-agent: *\nDisallow: /private\nAllow: /\n"
    replies = {"/robots.txt": Reply(robots, content_type="text/plain"), "/a": Reply("a")}
    async with serve(replies) as server:
        door, base = open_door(server), f"http://site.test:{server.port}"
        await door.fetch(f"{base}/a")
        await door.fetch(f"{base}/a")
        with pytest.raises(ToolError, match=r"robots\.txt of its site forbids programs"):
            await door.fetch(f"{base}/private/x")

    assert [asked.path for asked in server.asked] == ["/robots.txt", "/a", "/a"]


async def test_a_host_whose_robots_txt_fails_is_left_alone():
    async with serve({"/robots.txt": Reply(status=503), "/": Reply("x")}) as server:
        with pytest.raises(ToolError, match="answered 503"):
            await open_door(server).fetch(f"http://site.test:{server.port}/")

    assert server.paths() == []


async def test_a_proxy_that_was_named_is_used_and_no_address_in_numbers_is_hidden_behind_it():
    from babyagi.net.addresses import Proxies

    async with WebServer(lambda asked: Reply("through the proxy")) as proxy:
        door = Door(proxies=Proxies(http=proxy.base_url), pause_s=0.0)
        page = await door.fetch("http://far.example/x")
        with pytest.raises(ToolError, match="not on the public internet"):
            await door.fetch("http://10.0.0.1/")

    assert page.body == b"through the proxy"
    assert {asked.host for asked in proxy.asked} == {"far.example"}


async def test_a_robots_txt_with_lines_that_cannot_be_read_is_kept_by_the_others():
    lines = [
        "User-agent: *", "Crawl-delay: ²", f"Crawl-delay: {'9' * 400}", f"Crawl-delay: {'9' * 5000}",
        "Request-rate: 1/²", "Disallow: http://[", "Disallow: //℀.test/", "Disallow: /private",
    ]  # fmt: skip
    robots = Reply("\n".join(lines), content_type="text/plain; charset=utf-8")
    async with serve({"/robots.txt": robots, "/a": Reply("a")}) as server:
        door, base = open_door(server), f"http://site.test:{server.port}"
        page = await door.fetch(f"{base}/a")
        with pytest.raises(ToolError, match=r"robots\.txt of its site forbids programs"):
            await door.fetch(f"{base}/private/x")

    assert page.body == b"a"
