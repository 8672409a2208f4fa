"""Attacks on the door of the server: what is sent, and which answers are right."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from babyagi.serve.door import cookie_name
from babyagi.serve.operations import OPERATIONS
from babyagi.tasks import Level
from babyagi.verbs.verb_table import BASE
from support.served import Served

MARK = "<script>alert(1)</script>"
LIST = f"{BASE}/objectives"
REFUSED = frozenset({400, 401, 403, 404, 405, 408, 413, 415, 421, 422, 431, 501, 0})


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A name, the bytes, and the statuses that are right; 0 is a closed connection."""

    name: str
    raw: bytes
    right: frozenset[int] = REFUSED


def attacks(served: Served) -> Iterator[Attack]:
    """All of them, in an order that is always the same."""
    yield from _without_key(served)
    yield from _wrong_keys(served)
    yield from _too_low(served)
    yield from _other_names(served)
    yield from _other_pages(served)
    yield from _forged_changes(served)
    yield from _paths(served)
    yield from _smuggling(served)
    yield from _bodies(served)
    yield from _readings(served)
    yield from _pretences(served)
    yield from _listening(served)
    yield from _asking_for_more(served)


def _of(name: str, raw: bytes, *right: int) -> Attack:
    return Attack(name=name, raw=raw, right=frozenset(right) or REFUSED)


def _without_key(served: Served) -> Iterator[Attack]:
    for operation in OPERATIONS:
        path = re.sub(r"{\w+}", "1", BASE + operation.path)
        raw = served.request(operation.method, path, level=None)
        yield _of(f"no key: {operation.method} {operation.path}", raw, 401)
    for page in ("/", "/inbox", "/objectives/1", "/objectives/1/report", f"{BASE}/openapi.json"):
        yield _of(f"no key: {page}", served.request("GET", page, level=None), 401)


def _wrong_keys(served: Served) -> Iterator[Attack]:
    token, read = served.token(), served.token(Level.READ)
    session = served.session(Level.READ)
    headers = {
        "empty": "Bearer ",
        "cut": f"Bearer {token[:-1]}",
        "longer": f"Bearer {token}x",
        "other case": f"Bearer {token.swapcase()}",
        "basic": f"Basic {token}",
        "bare": token,
        "level said": f"Bearer admin-{read.partition('-')[2]}",
        "latin letters": "Bearer \xe9\xe8",
        "long": "Bearer " + "a" * 9_000,
        "session as token": f"Bearer {session}",
    }
    for name, said in headers.items():
        raw = served.request("GET", LIST, level=None, authorization=said)
        yield _of(f"key: {name}", raw, 400, 401)
    raw = served.request("GET", f"{LIST}?token={token}&access_token={token}", level=None)
    yield _of("key in the address", raw, 401)
    twice = served.request("GET", LIST).replace(b"\r\n\r\n", b"\r\nauthorization: Bearer x\r\n\r\n")
    yield _of("two keys", twice, 400)
    said, _, mark = session.rpartition(".")
    cookies = {
        "token as cookie": token,
        "another level": f"admin{session.removeprefix('read')}",
        "a later end": said.replace(".1", ".9", 1) + "." + mark,
        "no mark": said,
        "empty mark": f"{said}.",
        "no number": f"read.soon.x.{mark}",
        "twice": f"{session}; {served.cookie(session)}",
    }
    for name, value in cookies.items():
        raw = served.request("GET", LIST, level=None, cookie=served.cookie(value))
        yield _of(f"cookie: {name}", raw, 401)


def _too_low(served: Served) -> Iterator[Attack]:
    for operation in OPERATIONS:
        path = re.sub(r"{\w+}", "1", BASE + operation.path)
        if operation.level > Level.READ:
            below = Level(operation.level - 1)
            raw = served.request(operation.method, path, {}, level=below)
            yield _of(f"level {below.word}: {operation.name}", raw, 403)


def _other_names(served: Served) -> Iterator[Attack]:
    port = served.port
    names = (
        "evil.example",
        f"evil.example:{port}",
        f"127.0.0.1.evil.example:{port}",
        f"localhost.evil.example:{port}",
        f"localhost:{port + 1}",
        "localhost",
        f"127.0.0.1:{port}@evil.example",
        f"2130706433:{port}",
        f"0x7f.0.0.1:{port}",
        f"[::ffff:127.0.0.1]:{port}",
        f"127.0.0.1:{port}:80",
        f"127.0.0.1:0{port}",
        "[::1",
        f"127.0.0.1,evil.example:{port}",
        MARK,
    )
    for name in names:
        raw = served.request("GET", LIST, host=name)
        yield _of(f"Host {name}", raw, 400, 421)
    two = served.request("GET", LIST).replace(b"\r\n\r\n", b"\r\nhost: evil.example\r\n\r\n")
    yield _of("two Hosts", two, 400)
    yield _of("no Host", served.request("GET", LIST, host=""), 400)
    forwarded = {"x_forwarded_host": served.host, "forwarded": f"host={served.host}"}
    raw = served.request("GET", LIST, host="evil.example", **forwarded)
    yield _of("Host that is forwarded", raw, 421)
    raw = served.request("GET", f"http://evil.example{LIST}")
    yield _of("a whole address", raw, 400, 404, 421)


def _other_pages(served: Served) -> Iterator[Attack]:
    origins = (
        "http://evil.example",
        "null",
        f"http://127.0.0.1:{served.port + 1}",
        f"http://{served.host}.evil.example",
        f"http://evil.example@{served.host}",
        f"http://{served.host}/",
        f"file://{served.host}",
        f"http://localhost:{served.port}",
        "http://[",
        MARK,
    )
    for origin in origins:
        raw = served.request("POST", LIST, {"objective": "x"}, origin=origin)
        yield _of(f"Origin {origin}", raw, 403)


def _forged_changes(served: Served) -> Iterator[Attack]:
    session = served.session()
    word = served.desk.keys.form_word(session)
    other = served.desk.keys.form_word(served.session())
    cookie, ours = served.cookie(session), f"http://{served.host}"
    form = "application/x-www-form-urlencoded"
    heads: dict[str, dict[str, str]] = {
        "no word": {"origin": ours},
        "no origin": {"x_babyagi_form": word},
        "word of another session": {"origin": ours, "x_babyagi_form": other},
        "cross-site": {"origin": ours, "x_babyagi_form": word, "sec_fetch_site": "cross-site"},
        "same-site": {"origin": ours, "x_babyagi_form": word, "sec_fetch_site": "same-site"},
        "text": {"origin": ours, "content_type": "text/plain"},
        "form for JSON": {"origin": ours, "content_type": form},
    }
    for name, head in heads.items():
        body = {"objective": "forged"}
        raw = served.request("POST", LIST, body, level=None, cookie=cookie, **head)
        yield _of(f"forged: {name}", raw, 403, 415)
    for name, data in {
        "no word": "objective=forged",
        "empty word": "objective=forged&word=",
        "wrong word": f"objective=forged&word={other}",
        "two words": f"objective=forged&word={other}&word={word}",
    }.items():
        head = {"cookie": cookie, "origin": ours, "content_type": form}
        raw = served.request(
            "POST", "/do/objectives", level=None, content_length=str(len(data)), **head
        )
        yield _of(f"form: {name}", raw + data.encode(), 403)
    raw = served.request("POST", "/do/objectives", {"objective": "x"}, content_type=form)
    yield _of("form with a token", raw, 403)
    raw = served.request("GET", "/", level=None, cookie=cookie, sec_fetch_site="cross-site")
    yield _of("a page of another site looks", raw, 403)


def _paths(served: Served) -> Iterator[Attack]:
    paths = (
        "/static/../serve_token",
        "/static/%2e%2e/serve_token",
        "/static/..%2fserve_token",
        "/static/..%5cserve_token",
        "/static/....//serve_token",
        "/static//etc/passwd",
        "/static/board.js%00.css",
        "/static/board.py",
        "/static/",
        "//etc/passwd",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        f"{LIST}/..%2f..%2fcodes",
        f"{LIST}/1%00",
        f"{LIST}/-1",
        f"{LIST}/1e3",
        f"{LIST}/%D9%A1",
        f"{LIST}/{'9' * 400}",
        f"{LIST}/{MARK}".replace("<", "%3C").replace(">", "%3E"),
        f"{LIST}/1'%20OR%201=1",
        f"{LIST}/1/tasks/99999999999999999999",
        f"{LIST}/1/duties/index",
        f"{BASE}/inbox/0",
        f"{LIST}?limit=0",
        f"{LIST}?limit=99999999999999999999",
        f"{LIST}?limit=1&limit=2",
        f"{LIST}?{MARK}=1".replace("<", "%3C").replace(">", "%3E"),
        f"{LIST}?after=NaN",
        f"{LIST}?" + "&".join(f"a{n}=1" for n in range(200)),
        f"{BASE}/events?after=1;2",
        f"{BASE}/events?after={'1.2-3;' * 300}",
        f"{LIST}/latest",
        "/open",
        "/open?code=",
        "/open?code=guess",
    )
    for path in paths:
        yield _of(f"path {path[:60]}", served.request("GET", path))
    for method in ("TRACE", "CONNECT", "OPTIONS", "PROPFIND", "PUT", "PATCH", MARK):
        yield _of(f"method {method}", served.request(method, LIST))


def _smuggling(served: Served) -> Iterator[Attack]:
    head = (
        f"POST {LIST} HTTP/1.1\r\nhost: {served.host}\r\nauthorization: Bearer {served.token()}\r\n"
    )
    hidden = b"GET /api/v1/workers HTTP/1.1\r\nhost: x\r\n\r\n"
    heads = {
        "length and chunks": "content-length: 4\r\ntransfer-encoding: chunked\r\n",
        "two lengths": "content-length: 4\r\ncontent-length: 5\r\n",
        "length below 0": "content-length: -1\r\n",
        "length with a sign": "content-length: +4\r\n",
        "length in hex": "content-length: 0x4\r\n",
        "length as a list": "content-length: 4, 5\r\n",
        "unknown coding": "transfer-encoding: xchunked\r\n",
        "two codings": "transfer-encoding: gzip, chunked\r\n",
        "coding with a tab": "transfer-encoding:\x0bchunked\r\n",
        "blank before the colon": "content-length : 4\r\n",
        "folded": "x: a\r\n b\r\ncontent-length: 4\r\n\x00: x\r\n",
        "nul": "x: a\x00b\r\n",
        "bare return": "x: a\rb: c\r\n",
        "huge header": f"x: {'a' * 70_000}\r\n",
        "many headers": "".join(f"x{n}: {n}\r\n" for n in range(20_000)),
    }
    for name, lines in heads.items():
        yield _of(f"head: {name}", head.encode() + lines.encode("latin-1") + b"\r\n" + hidden)
    chunks = head.encode() + b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    yield _of("chunk without a size", chunks + b"zz\r\n{}\r\n0\r\n\r\n")
    yield _of("chunk of a huge size", chunks + b"f" * 30 + b"\r\n{}\r\n")
    many = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    yield _of("chunks without an end", chunks + many * 17)
    yield _of("HTTP/0.9", b"GET /\r\n\r\n")
    yield _of("HTTP/9.9", f"GET / HTTP/9.9\r\nhost: {served.host}\r\n\r\n".encode())
    yield _of("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    yield _of("TLS", bytes.fromhex("16030100c8010000c40303") + b"\x00" * 60 + b"\r\n\r\n")
    yield _of("websocket", served.request("GET", "/", level=None, upgrade="websocket"))
    yield _of("a long address", served.request("GET", "/" + "a" * 60_000))


def _bodies(served: Served) -> Iterator[Attack]:
    good = {"objective": "x"}
    bodies: dict[str, object] = {
        "a list": [good],
        "a text": "x",
        "nothing": None,
        "an unknown field": {**good, MARK: 1},
        "another type": {"objective": ["x"]},
        "a number too large": {**good, "max_tasks": 10**30},
        "below 0": {**good, "max_tasks": -1},
        "blanks": {"objective": " \n "},
        "a false true": {**good, "new": "yes"},
        "an unknown memory": {**good, "memory": "everything"},
        "a field of the machine": {**good, "files": "/etc"},
        "a tool": {**good, "tools": "run_python"},
    }
    for name, body in bodies.items():
        yield _of(f"body: {name}", served.request("POST", LIST, body), 400, 415, 422)
    raws = {
        "no JSON": b"{",
        "no number": b'{"objective": "x", "max_tasks": NaN}',
        "endless": b'{"objective": "x", "max_cost_usd": 1e999}',
        "deep": b"[" * 100_000,
        "deep objects": b'{"a":' * 50_000,
        "no UTF-8": b'{"objective": "\xff\xfe"}',
        "digits": b'{"objective": "x", "max_tasks": ' + b"9" * 10_000 + b"}",
        "too long": b'{"objective": "' + b"a" * 1_000_001 + b'"}',
    }
    kind = {"content_type": "application/json"}
    for name, data in raws.items():
        raw = served.request("POST", LIST, content_length=str(len(data)), **kind) + data
        yield _of(f"body: {name}", raw, 400, 413, 422, 0)
    data = json.dumps(good).encode()
    for content_type in ("text/plain", "application/xml", "multipart/form-data; boundary=x", MARK):
        length = {"content_length": str(len(data)), "content_type": content_type}
        yield _of(f"body as {content_type}", served.request("POST", LIST, **length) + data, 415)
    key = {"idempotency_key": "k" * 300}
    yield _of("a long key", served.request("POST", LIST, good, **key), 422)


def _readings(served: Served) -> Iterator[Attack]:
    """What two programs read in two ways."""
    bodies = {
        "a field twice": b'{"objective": "x", "objective": "y"}',
        "a field twice, spelled in two ways": b'{"objective": "x", "object\\u0069ve": "y"}',
        "a mark of order": b'\xef\xbb\xbf{"objective": "x"}',
        "UTF-16": '{"objective": "x"}'.encode("utf-16"),
        "something behind it": b'{"objective": "x"} {"objective": "y"}',
        "a comment": b'{"objective": "x" /* y */}',
        "single quotes": b"{'objective': 'x'}",
        "minus endless": b'{"objective": "x", "max_tasks": -Infinity}',
        "a number beyond all": b'{"objective": "x", "max_tokens": 1e308}',
        "half a task": b'{"objective": "x", "max_tasks": 1.5}',
    }
    kind = {"content_type": "application/json"}
    for name, data in bodies.items():
        raw = served.request("POST", LIST, content_length=str(len(data)), **kind) + data
        yield _of(f"reading: {name}", raw, 400, 422)
    head = f"POST {LIST} HTTP/1.1\r\nhost: {served.host}\r\n"
    key = f"authorization: Bearer {served.token()}\r\ncontent-type: application/json\r\n"
    hidden = b"GET /api/v1/workers HTTP/1.1\r\n\r\n"
    for name, lines in {
        "two codings on two lines": "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
        "a coding and nothing": "transfer-encoding: chunked, identity\r\n",
        "a coding in quotes": 'transfer-encoding: "chunked"\r\n',
        "two equal lengths": "content-length: 3, 3\r\n",
        "a length with an underscore": "content-length: 1_0\r\n",
        "a length in other digits": "content-length: \xb2\r\n",
        "a length of many digits": f"content-length: {'9' * 30}\r\n",
        "a header without a name": ": x\r\n",
        "a header without a colon": "transfer-encoding chunked\r\n",
        "a host behind the host": f"x: y\r\nHOST: {served.host}\r\n",
    }.items():
        raw = head.encode() + key.encode() + lines.encode("latin-1") + b"\r\n"
        yield _of(f"reading: {name}", raw + hidden)
    chunks = (head + key + "transfer-encoding: chunked\r\n\r\n").encode()
    for name, data in {
        "a chunk with a sign": b"+2\r\n{}\r\n0\r\n\r\n",
        "a chunk in 0x": b"0x2\r\n{}\r\n0\r\n\r\n",
        "a chunk that is longer": b"1\r\n{}\r\n0\r\n\r\n",
        "an endless name of a chunk": b"2;" + b"a" * 70_000 + b"\r\n{}\r\n0\r\n\r\n",
    }.items():
        yield _of(f"reading: {name}", chunks + data)
    only_feeds = served.request("POST", LIST, {}, level=None).replace(b"\r\n", b"\n")
    yield _of("reading: line feeds alone", only_feeds)


def _pretences(served: Served) -> Iterator[Attack]:
    """Names, headers and cookies by which somebody pretends to be another."""
    port, session = served.port, served.session()
    for name in (
        "127.0.0.1.",
        "127.1",
        "0",
        "0.0.0.0",
        "localhost.",
        "ｌocalhost".encode().decode("latin-1"),
        "localhost%2eevil.example",
        "[::1%25lo]",
        "[::]",
        "xn--localhost-.example",
    ):
        raw = served.request("GET", LIST, host=f"{name}:{port}")
        yield _of(f"pretence: {name}", raw, 400, 421)
    for header in ("x_http_method_override", "x_http_method", "x_method_override"):
        raw = served.request("GET", f"{LIST}/1", level=Level.READ, **{header: "DELETE"})
        yield _of(f"pretence: {header}", raw, 404)
    for header in ("x_original_url", "x_rewrite_url", "x_forwarded_prefix"):
        raw = served.request("GET", f"{BASE}/none", **{header: "/healthz"})
        yield _of(f"pretence: {header}", raw, 404)
    for header in ("x_forwarded_for", "x_real_ip", "x_forwarded_user", "remote_user"):
        raw = served.request("GET", LIST, level=None, **{header: "127.0.0.1"})
        yield _of(f"pretence: {header}", raw, 401)
    # a cookie that another page has set stands beside ours, or in its place
    other = f"{cookie_name(port + 1)}={session}"
    fixed = f"babyagi_{port}_={session}; {cookie_name(port)}"
    for name, cookie in {"of another port": other, "with no value": fixed}.items():
        yield _of(
            f"pretence: cookie {name}", served.request("GET", LIST, level=None, cookie=cookie), 401
        )
    preflight = {"origin": "http://evil.example", "access_control_request_method": "POST"}
    yield _of("pretence: preflight", served.request("OPTIONS", LIST, level=None, **preflight), 403)
    ours, cookie = f"http://{served.host}", served.cookie(session)
    for content_type in ("text/plain", "multipart/form-data; boundary=x"):
        head = {"cookie": cookie, "origin": ours, "content_type": content_type}
        for path in ("/do/objectives", LIST):
            raw = served.request("POST", path, level=None, content_length="2", **head) + b"{}"
            yield _of(f"pretence: a form as {content_type} to {path}", raw, 403)


def _listening(served: Served) -> Iterator[Attack]:
    ids = (
        "-1",
        "1e9",
        "0x1",
        "9" * 17,
        "1.2",
        "1.2-",
        "1.-3",
        "1.2-3." * 20,
        "٣",
        "1;2",
        " ",
        MARK,
    )
    for id_ in ids:
        text = id_.encode().decode("latin-1")
        raw = served.request("GET", f"{BASE}/events", last_event_id=text)
        yield (
            _of(f"listening: {id_[:20]}", raw, 422, 400)
            if id_.strip()
            else _of("listening: from nowhere", served.request("GET", f"{LIST}/9/events"), 404)
        )
    yield _of("listening: at none", served.request("GET", f"{LIST}/latest/events"), 404)
    raw = served.request("GET", f"{BASE}/events?after=1&after=2")
    yield _of("listening: twice", raw, 400)


def _asking_for_more(served: Served) -> Iterator[Attack]:
    """More than the key, or the server, hands out."""
    good: dict[str, object] = {"objective": "x", "new": True}
    wanted: dict[str, dict[str, object]] = {
        "a tool": {"tools": ["run_python"]},
        "a folder": {"files": "/"},
        "a folder by a way up": {"files": "../.."},
        "an agent": {"agent": "root"},
    }
    for name, more in wanted.items():
        yield _of(f"more: {name}", served.request("POST", LIST, {**good, **more}), 422)
    for name, usd in {"no cost limit": 0, "a high one": 1e6}.items():
        raw = served.request("POST", LIST, {**good, "max_cost_usd": usd}, level=Level.STEER)
        yield _of(f"more: {name}", raw, 403)
