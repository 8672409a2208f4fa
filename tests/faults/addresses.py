"""More than 200 attacks on the one door to pages, and 20 ordinary fetches, over real sockets: which addresses
that are not public can a model, a page or a name server make it connect to?

`python -m tests.faults.addresses [--here]`

Where the machine grants a network namespace, all of it runs in one that nothing can leave, and in
which every address of the world is this machine: a connection to 169.254.169.254 or 10.0.0.1 would
succeed there, and the server sees which address it was made to. Elsewhere, and with `--here`, it
runs on loopback with the same injected look-ups; attacks that begin on a public address are left
out there, since they would leave the machine, and their number is said.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from babyagi.errors import ToolError
from babyagi.net.door import Door
from support.connections import Connections
from support.table import print_table, verdict

MIN_ATTACKS, N_NORMAL = 200, 20
TIMEOUT_S = 5.0
PUBLIC, OTHER_PUBLIC, PUBLIC_V6 = "93.184.216.34", "1.1.1.1", "2606:4700:4700::1111"
SECRET = b"what only this machine may read"
ROUTES = (
    "ip link set lo up && ip route add local 0.0.0.0/0 dev lo && "
    "(ip -6 route add local ::/0 dev lo || true) && exec "
)

Records = Sequence[Sequence[str]]  # the answers of a name server, one after the other


@dataclass(frozen=True, kw_only=True)
class Attack:
    """`PORT` in an address stands for the server's. `records` are what each name is looked up to;
    the last answer holds on. `hops` are where the paths `/0`, `/1`, … redirect to."""

    kind: str
    url: str
    records: Mapping[str, Records] = field(default_factory=dict)
    hops: Sequence[str] = ()
    starts_in_public: bool = False


# -- the server: it answers on every address that leads to it, and keeps which these were
# --------------------------------------------------------------------------------------------------


class Server:
    def __init__(self, *, is_everywhere: bool) -> None:
        self.reached: list[str] = []
        self.hops: Sequence[str] = ()
        self._is_everywhere = is_everywhere
        self._connections = Connections()
        self.port = 0

    async def __aenter__(self) -> Server:
        any_v4, any_v6 = ("0.0.0.0", "::") if self._is_everywhere else ("127.0.0.1", "::1")
        listen = self._connections.listen
        self.port = await listen(self._serve, any_v4, 0)
        with suppress(OSError):  # no IPv6 here
            await listen(self._serve, any_v6, self.port)
        if self._is_everywhere:
            await listen(self._serve, any_v4, 80)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._connections.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reached.append(writer.get_extra_info("sockname")[0])
        with suppress(ConnectionError, asyncio.IncompleteReadError, ValueError):
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode("latin-1")
            writer.write(self._answer(path))
            await writer.drain()

    def _answer(self, path: str) -> bytes:
        name = urlsplit(path).path.strip("/")
        if name == "robots.txt":
            status, extra, body = "404 none", "", b""
        elif name.isdigit() and int(name) < len(self.hops):
            status, extra, body = "302 there", f"Location: {self.hops[int(name)]}\r\n", b""
        else:
            status, extra, body = "200 ok", "", SECRET
        head = (
            f"HTTP/1.1 {status}\r\n{extra}Content-Type: text/plain\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode("utf-8") + body

    def private_reached(self) -> list[str]:
        return [one for one in self.reached if not ipaddress.ip_address(one).is_global]


def resolver(records: Mapping[str, Records]) -> Callable[[str, int], object]:
    """Looks names up in the records; every other name is one of nobody."""
    left = {name: [list(one) for one in answers] for name, answers in records.items()}

    async def resolve(host: str, port: int) -> list[str]:
        answers = left.get(host.rstrip(".").casefold())
        if not answers:
            raise OSError(f"no such name: {host}")
        return answers.pop(0) if len(answers) > 1 else answers[0]

    return resolve


# -- the attacks
# --------------------------------------------------------------------------------------------------

TARGETS = ("127.0.0.1", "10.0.0.1", "169.254.169.254", "100.100.100.200")


def spell(address: str) -> Iterator[tuple[str, str]]:
    """The ways to write an IPv4 address that some program reads as one."""
    a, b, c, d = (int(one) for one in address.split("."))
    number = int(ipaddress.IPv4Address(address))
    high, low = f"{a:02x}{b:02x}", f"{c:02x}{d:02x}"
    wide = str.maketrans("0123456789", "０１２３４５６７８９")
    circled = str.maketrans("0123456789", "⓪①②③④⑤⑥⑦⑧⑨")
    yield "plain", address
    yield "decimal", str(number)
    yield "hexadecimal", hex(number)
    yield "octal", f"0{number:o}"
    yield "hexadecimal parts", f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"
    yield "octal parts", f"0{a:o}.0{b:o}.0{c:o}.0{d:o}"
    yield "mixed parts", f"{a}.0x{b:x}.0{c:o}.{d}"
    yield "short form of two", f"{a}.{(b << 16) + (c << 8) + d}"
    yield "short form of three", f"{a}.{b}.{(c << 8) + d}"
    yield "padded zeros", f"{a:03d}.{b:03d}.{c:03d}.{d:03d}"
    yield "an overflow", f"{number + 2**32}"
    yield "a trailing dot", f"{address}."
    yield "wide digits", address.translate(wide)
    yield "circled digits", address.translate(circled)
    yield "ideographic dots", address.replace(".", "。")
    yield "percent-encoded", "".join(f"%{ord(sign):02x}" for sign in address)
    yield "mapped into IPv6", f"[::ffff:{address}]"
    yield "mapped, in hexadecimal", f"[::ffff:{high}:{low}]"
    yield "compatible with IPv6", f"[::{address}]"
    yield "translated", f"[::ffff:0:{address}]"
    yield "NAT64", f"[64:ff9b::{high}:{low}]"
    yield "local NAT64", f"[64:ff9b:1::{high}:{low}]"
    yield "6to4", f"[2002:{high}:{low}::1]"
    yield "Teredo", f"[2001:0:{high}:{low}::1]"
    yield "ISATAP", f"[fe80::5efe:{high}:{low}]"
    yield "brackets around IPv4", f"[{address}]"


PRIVATE_RECORDS = """
    0.0.0.0 10.255.255.255 100.64.0.1 127.9.9.9 169.254.170.2 172.16.0.1 172.31.255.254 192.0.0.192
    192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1
    255.255.255.255 168.63.129.16 :: ::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%lo fec0::1 ff02::1
    ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1 2001:db8::1
""".split()


def spelled() -> Iterator[Attack]:
    for target in TARGETS:
        for kind, host in spell(target):
            yield Attack(kind=f"spelled: {kind}", url=f"http://{host}:PORT/")


def looked_up() -> Iterator[Attack]:
    for address in PRIVATE_RECORDS:
        yield Attack(
            kind="a name of a private address",
            url="http://evil.test:PORT/",
            records={"evil.test": [[address]]},
        )
    for answers in (
        [PUBLIC, "127.0.0.1"],
        ["10.0.0.1", PUBLIC],
        [PUBLIC, OTHER_PUBLIC, "169.254.169.254"],
        [PUBLIC_V6, "::1"],
        [PUBLIC, "fe80::1%lo"],
        [PUBLIC, "::ffff:10.0.0.1"],
    ):
        yield Attack(
            kind="one private record of several",
            url="http://evil.test:PORT/",
            records={"evil.test": [answers]},
        )
    for first, then in (
        ("192.0.2.1", "127.0.0.1"),
        ("127.0.0.1", PUBLIC),
        (PUBLIC, "127.0.0.1"),
        (PUBLIC, "169.254.169.254"),
        (PUBLIC, "10.0.0.1"),
        (PUBLIC_V6, "::1"),
    ):
        yield Attack(
            kind="a name that changes its address",
            url="http://evil.test:PORT/",
            records={"evil.test": [[first], [then]]},
            starts_in_public=ipaddress.ip_address(first).is_global,
        )


def redirected() -> Iterator[Attack]:
    """From a public page to somewhere else, at once or after some hops."""
    places = [
        *(f"http://{host}:PORT/" for _, host in [*spell("127.0.0.1")][:10]),
        *(f"http://{host}:PORT/" for _, host in [*spell("169.254.169.254")][15:22]),
        "http://inner.test:PORT/",
        "//127.0.0.1:PORT/",
        "http:\\\\127.0.0.1:PORT/",
        "http://site.test@127.0.0.1:PORT/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:PORT/_x",
        "ftp://127.0.0.1:PORT/",
        "data:text/plain,x",
        "javascript:alert(1)",
    ]
    records = {"site.test": [[PUBLIC]], "inner.test": [["192.168.1.1"]]}
    for place in places:
        yield Attack(
            kind="a redirect",
            url="http://site.test:PORT/0",
            records=records,
            hops=[place],
            starts_in_public=True,
        )
    for n in (2, 4):
        hops = [f"http://site.test:PORT/{k}" for k in range(1, n)]
        yield Attack(
            kind="a redirect after others",
            url="http://site.test:PORT/0",
            records=records,
            hops=[*hops, "http://10.0.0.1:PORT/"],
            starts_in_public=True,
        )
    yield Attack(
        kind="redirects without an end",
        url="http://site.test:PORT/0",
        records=records,
        hops=["http://site.test:PORT/0"],
        starts_in_public=True,
    )


def written() -> Iterator[Attack]:
    """Addresses that two programs read in two ways, or that are none for a page."""
    for kind, urls in {
        "credentials": """
            http://me:word@127.0.0.1:PORT/ http://me@site.test:PORT/ http://@127.0.0.1:PORT/
            http://site.test@127.0.0.1:PORT/ http://127.0.0.1%2f@site.test:PORT/
            http://site.test%00@127.0.0.1:PORT/ http://127.0.0.1:PORT\\@site.test/
        """,
        "a port": """
            http://127.0.0.1:0/ http://127.0.0.1:70000/ http://127.0.0.1:-1/ http://127.0.0.1:８０/
            http://127.0.0.1:PORT:80/ http://127.0.0.1:+80/
        """,
        "a scheme": """
            file:///etc/passwd ftp://127.0.0.1:PORT/ gopher://127.0.0.1:PORT/_x
            dict://127.0.0.1:PORT/ ldap://127.0.0.1:PORT/ data:text/html,x javascript:alert(1)
            unix:///var/run/docker.sock ws://127.0.0.1:PORT/ about:blank jar:http://127.0.0.1!/
            //127.0.0.1:PORT/
        """,
        "a form of its own": """
            http:///127.0.0.1:PORT/ http:127.0.0.1:PORT/ http:\\\\127.0.0.1:PORT/
            http://[::1%25lo]:PORT/ http://[fe80::1%25lo]:PORT/ http://[::1]:PORT/ http://[::]:PORT/
            http://[::1]@site.test:PORT/ http://[::1:PORT/ http://localhost:PORT/
            http://LOCALHOST.:PORT/ http://127.0.0.1#@site.test:PORT/ http://0:PORT/
            http://ⓛocalhost:PORT/ http://metadata.google.internal:PORT/
        """,
    }.items():
        for url in urls.split():
            yield Attack(
                kind=kind,
                url=url,
                records={
                    "site.test": [["127.0.0.1"]],
                    "localhost": [["127.0.0.1", "::1"]],
                    "metadata.google.internal": [["169.254.169.254"]],
                },
            )


def all_attacks() -> list[Attack]:
    attacks = [*written(), *looked_up(), *redirected(), *spelled()]
    assert len(attacks) >= MIN_ATTACKS, len(attacks)
    return attacks


# -- ordinary fetches
# --------------------------------------------------------------------------------------------------


def all_normal() -> list[Attack]:
    """Fetches that must work; as attacks they are written in the same way."""
    site: Mapping[str, Records] = {
        "site.test": [[PUBLIC]],
        "other.test": [[OTHER_PUBLIC]],
        "both.test": [[PUBLIC, PUBLIC_V6, OTHER_PUBLIC]],
        "xn--bcher-kva.test": [[PUBLIC]],
        "a-b_c.site.test": [[PUBLIC]],
        "moving.test": [[PUBLIC], [OTHER_PUBLIC], [PUBLIC]],
        "123.test": [[PUBLIC]],
    }
    paths = """
        / /a/b.html /page?x=1&y=%20 /a%20b /#part /ü /%C3%BC?q=ä //double /./a/../b /a;b=c,d!e
    """.split()
    urls = [f"http://site.test:PORT{path}" for path in paths]
    urls += """
        http://SITE.TEST:PORT/ http://site.test.:PORT/ http://bücher.test:PORT/
        http://both.test:PORT/ http://a-b_c.site.test:PORT/ http://moving.test:PORT/
        http://123.test:PORT/
    """.split()
    fetches = [Attack(kind="normal", url=url, records=site) for url in urls]
    for hops in (
        ["http://other.test:PORT/"],
        ["/relative"],
        ["1", "http://other.test:PORT/2", "//site.test:PORT/end"],
    ):
        fetches.append(
            Attack(kind="normal", url="http://site.test:PORT/0", records=site, hops=hops)
        )
    assert len(fetches) == N_NORMAL, len(fetches)
    return fetches


# -- making them
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What came of a fetch: the addresses that were connected to, and what was said."""

    attack: Attack
    page: bytes | None
    fault: str
    private: Sequence[str]
    n_connections: int

    @property
    def is_refused(self) -> bool:
        return self.page is None and not self.private and "\n" not in self.fault

    @property
    def works(self) -> bool:
        return self.page == SECRET and not self.private


async def make(attack: Attack, server: Server, door: Door) -> Seen:
    port = str(server.port)
    server.reached.clear()
    server.hops = [hop.replace("PORT", port) for hop in attack.hops]
    page, fault = None, ""
    try:
        page = (await door.fetch(attack.url.replace("PORT", port))).body
    except ToolError as error:
        fault = error.what
    return Seen(
        attack=attack,
        page=page,
        fault=fault,
        private=server.private_reached(),
        n_connections=len(server.reached),
    )


def to_loopback(records: Mapping[str, Records]) -> dict[str, Records]:
    """The records with this machine in the place of public addresses."""
    return {
        name: [
            ["127.0.0.1" if ipaddress.ip_address(one).is_global else one for one in answer]
            for answer in answers
        ]
        for name, answers in records.items()
    }


def open_door(
    attack: Attack,
    server: Server,
    *,
    is_everywhere: bool,
    is_normal: bool,
    allow: Sequence[str] = (),
) -> Door:
    records = attack.records if is_everywhere or not is_normal else to_loopback(attack.records)
    names = (
        () if is_everywhere or not is_normal else tuple(f"{name}:{server.port}" for name in records)
    )
    return Door(
        allow=(*names, *allow),
        resolve=resolver(records),  # type: ignore[arg-type]  # of the same shape
        pause_s=0.0,
        timeout_s=TIMEOUT_S,
    )


async def attack_all(
    *, is_everywhere: bool, allow: Sequence[str] = ()
) -> tuple[list[Seen], list[Seen], int]:
    """The outcomes of the attacks and of the ordinary fetches, and how many were left out. `allow`:
    what a door lets pass that is not as it should be."""
    everything = all_attacks()
    attacks = [one for one in everything if is_everywhere or not one.starts_in_public]
    async with Server(is_everywhere=is_everywhere) as server:

        async def make_each(fetches: Sequence[Attack], *, is_normal: bool) -> list[Seen]:
            return [
                await make(
                    one,
                    server,
                    open_door(
                        one,
                        server,
                        is_everywhere=is_everywhere,
                        is_normal=is_normal,
                        allow=allow,
                    ),
                )
                for one in fetches
            ]

        refused = await make_each(attacks, is_normal=False)
        worked = await make_each(all_normal(), is_normal=True)
    if not is_everywhere:  # there each of them is made to this machine
        worked = [Seen(**{**vars(one), "private": ()}) for one in worked]
    return refused, worked, len(everything) - len(attacks)


def tell(refused: Sequence[Seen], worked: Sequence[Seen], *, where: str, n_left_out: int) -> bool:
    kinds = Counter(one.attack.kind.partition(":")[0] for one in refused)
    held = Counter(one.attack.kind.partition(":")[0] for one in refused if one.is_refused)
    n_worked = sum(one.works for one in worked)
    rows = [(kind, n, "refused", held[kind], verdict(held[kind] == n)) for kind, n in kinds.items()]
    rows += [
        (
            "all attacks",
            len(refused),
            "refused",
            held.total(),
            verdict(held.total() == len(refused)),
        ),
        ("ordinary fetches", N_NORMAL, "work", n_worked, verdict(n_worked == N_NORMAL)),
    ]
    print_table(f"addresses, {where}", ("fetches", "n", "goal", "held", ""), rows)
    if n_left_out:
        print(f"{n_left_out} attacks begin on a public address and were left out here.")
    bad = [one for one in refused if not one.is_refused] + [one for one in worked if not one.works]
    for one in bad:
        print(f"{one.attack.kind}: {one.attack.url} -> {one.private or one.page or one.fault!r}")
    return not bad


# -- the namespace
# --------------------------------------------------------------------------------------------------


def namespace_command() -> list[str] | None:
    """What runs a command in a network of its own in which every address is this machine; None
    where the machine grants none."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return None
    who = ["--net"] if os.geteuid() == 0 else ["--net", "--map-root-user"]
    command = ["unshare", *who, "sh", "-c", ROUTES + '"$0" "$@"']
    try:
        tried = subprocess.run([*command, "true"], capture_output=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return command if tried.returncode == 0 else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--here", action="store_true", help="on loopback, without a namespace")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.here and not options.inside and (command := namespace_command()):
        return subprocess.run(
            [*command, sys.executable, "-m", "tests.faults.addresses", "--inside"], check=False
        ).returncode
    refused, worked, n_left_out = asyncio.run(attack_all(is_everywhere=options.inside))
    where = "in a network namespace" if options.inside else "on loopback"
    return 0 if tell(refused, worked, where=where, n_left_out=n_left_out) else 1


if __name__ == "__main__":
    sys.exit(main())
