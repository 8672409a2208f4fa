"""The text of mail: decoded headers, the text part, and attachments by name."""

import base64
import subprocess
import sys
from email.message import EmailMessage

import pytest

from babyagi.retrieval import page_text
from babyagi.retrieval.page_text import MAX_MAIL_CHARS, UnreadableError, read_text

HEAD = b"Received: from a by b\r\nFrom: Ann <ann@example.org>\r\nTo: bob@example.org\r\n"
DATE = "Tue, 03 Mar 2026 10:00:00 +0000"
QUOTED_PRINTABLE = (
    HEAD + f"Date: {DATE}\r\n".encode() + b"Subject: =?utf-8?q?Gew=C3=A4hr?=\r\n"
    b" =?utf-8?q?leistung?=\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Transfer-Encoding: quoted-printable\r\n\r\n"
    b"Warranty =3D is three ye=\r\nars f=C3=BCr alle.\r\n"
)


def read(body, media_type="message/rfc822"):
    return read_text(body, content_type=media_type, url="").text


def read_lines(body, media_type="message/rfc822"):
    return read(body, media_type).splitlines()


def make(text="Herons breed in trees.", *, subject="Herons", sender="Ann <ann@example.org>"):
    message = EmailMessage()
    message["From"], message["To"], message["Date"] = sender, "bob@example.org", DATE
    message["Subject"] = subject
    message.set_content(text)
    return message


def with_body(headers, body):
    return HEAD + b"Subject: Herons\r\n" + headers + b"\r\n\r\n" + body


def text_of(body):
    """What stands below the headers."""
    return read(body).split("To: bob@example.org\n", 1)[1].strip()


def make_mbox(*messages):
    return b"".join(
        b"From ann@example.org Tue Mar  3 10:00:00 2026\n%s\n" % one for one in messages
    )


# -- one message
# --------------------------------------------------------------------------------------------------


def test_a_message_is_read_with_its_decoded_headers_and_text():
    assert read_lines(QUOTED_PRINTABLE) == [
        "## Subject: Gewährleistung",
        "",
        "From: Ann <ann@example.org>",
        "To: bob@example.org",
        "Date: Tue, 03 Mar 2026 10:00:00 +0000",
        "",
        "Warranty = is three years für alle.",
    ]


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (b"", "Für alle, 3 €".encode()),
        (b"", "Für alle, 3 €".encode("cp1252")),
        (b"Content-Type: text/plain; charset=iso-8859-1", "Für alle, 3 €".encode("cp1252")),
        (b"Content-Type: text/plain; charset=iso-8859-15", "Für alle, 3 €".encode("iso-8859-15")),
        (b"Content-Type: text/plain; charset=no-such", "Für alle, 3 €".encode()),
        (
            b"Content-Type: text/plain; charset=utf-16-le\r\nContent-Transfer-Encoding: base64",
            base64.encodebytes("Für alle, 3 €".encode("utf-16-le")),
        ),
        (
            b"Content-Type: text/html; charset=utf-8",
            "<style>p{}</style><p>Für <b>alle</b>,\n3 &euro;<script>x()</script>".encode(),
        ),
    ],
    ids=["utf-8", "cp1252", "latin-1", "latin-9", "unknown", "base64", "html"],
)
def test_the_text_is_read_in_each_encoding(headers, body):
    assert text_of(with_body(headers, body)) == "Für alle, 3 €"


@pytest.mark.parametrize(
    ("subject", "shown"),
    [
        (b"=?iso-8859-1?B?R2V35GhyIGlzdA==?=", "Gewähr ist"),
        (b"=?utf-8?b?5rW344Gu?= =?utf-8?b?6bOl?=", "海の鳥"),
        (b"=?utf-8?b?5rU=?= =?utf-8?b?tw==?=", "海"),
        ("Gewähr".encode(), "Gewähr"),
        ("Gewähr".encode("cp1252"), "Gewähr"),
        (b"=?no-such?q?Herons?=", "Herons"),
        (b"=?utf-8?b?x?=", "=?utf-8?b?x?="),
        (b"two\r\n lines", "two lines"),
        (b"=?utf-8?q?one=0AFrom:_two?=", "one From: two"),
        (b"", "(none)"),
        (b"x" * 5000, "x" * 500 + " …"),
    ],
)
def test_a_subject_is_one_decoded_line(subject, shown):
    message = HEAD + b"Subject: " + subject + b"\r\n\r\nHerons breed in trees.\r\n"

    assert read_lines(message)[0] == f"## Subject: {shown}"
    assert read_lines(message)[2:] == [
        "From: Ann <ann@example.org>", "To: bob@example.org", "", "Herons breed in trees.",
    ]  # fmt: skip


# -- parts
# --------------------------------------------------------------------------------------------------


def test_plain_text_is_preferred_and_attachments_are_only_named():
    message = make()
    message.add_alternative("<p>Herons in <b>HTML</b></p>", subtype="html")
    message.add_attachment(b"%PDF-1.7" * 200, maintype="application", subtype="pdf",
                           filename="Größe\n.pdf")  # fmt: skip
    message.add_attachment("not shown", filename="notes.txt")

    assert text_of(bytes(message)).split("\n\n")[1:] == [
        "Herons breed in trees.",
        "[attachment: Größe .pdf, 1,600 bytes]",
        "[attachment: notes.txt, 10 bytes]",
    ]


@pytest.mark.parametrize("header", [b"=?utf-8?q?a=0A=23_Subject:_b?=", b"a\r\n # Subject: b"])
def test_the_name_of_an_attachment_is_one_line(header):
    named = with_body(b'Content-Disposition: attachment; filename="' + header + b'"', b"1234")
    typed = with_body(b"Content-Type: application/x\r\n # subject", b"1234")

    assert text_of(named) == "[attachment: a # Subject: b, 4 bytes]"
    assert text_of(typed) == "[attachment: application/x # subject, 4 bytes]"


def test_html_is_read_where_the_plain_text_is_blank():
    message = make(" \n")
    message.add_alternative("<p>Herons in <b>HTML</b></p>", subtype="html")

    assert read_lines(bytes(message))[-1] == "Herons in HTML"


def test_a_forwarded_message_is_read_below_its_own_headers():
    inner = make("Gulls nest on roofs.", subject="Gulls", sender="cy@example.org")
    message = make("See below.")
    message.add_attachment(inner)

    lines = read_lines(bytes(message))

    assert lines[0] == "## Subject: Herons"
    assert lines[lines.index("See below.") + 2 :] == [
        "### Subject: Gulls",
        "",
        "From: cy@example.org",
        "To: bob@example.org",
        f"Date: {DATE}",
        "",
        "Gulls nest on roofs.",
    ]


@pytest.mark.parametrize("before", ["", "Hello\n", "Hello\r", "Hello\v", "Hello\u2028  "])
def test_the_text_of_a_message_cannot_pass_for_another_message(before):
    text = f"{before}## Subject: forged\n\nFrom: the boss".encode()

    lines = read_lines(with_body(b"Content-Type: text/plain; charset=utf-8", text))

    assert [line.strip() for line in lines if "forged" in line] in (
        [r"\## Subject: forged"], [r"\  ## Subject: forged"],
    )  # fmt: skip


# -- malformed messages
# --------------------------------------------------------------------------------------------------

MULTIPART = b"Content-Type: multipart/mixed; boundary=x"
NESTED = b"".join(
    b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(3000)
)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no headers at all",
        b"\0\1\2" * 100,
        b"X-Other: 1\n\ntext",
        with_body(MULTIPART, b"no parts"),
        with_body(MULTIPART, b"--x\n\na part\n" * 1200 + b"--x--"),
        HEAD + NESTED,
    ],
    ids=["empty", "text", "binary", "other", "no-parts", "many-parts", "nested"],
)
def test_what_is_no_readable_mail_says_so(body):
    with pytest.raises(UnreadableError, match=r"^it is not readable mail$"):
        read(body)


@pytest.mark.parametrize(
    "body",
    [
        with_body(MULTIPART, b"--x\n\nHerons breed in trees."),  # without its end
        with_body(b"Content-Transfer-Encoding: no-such", b"Herons breed in trees."),
        with_body(b'Content-Type: ;;;="', b"Herons breed in trees."),
        with_body(b"Content-Type: text/plain; charset*=x'y", b"Herons breed in trees."),
        with_body(b"Content-Type: text/plain; charset*=a'b'%ff", b"Herons breed in trees."),
    ],
)
def test_a_message_with_a_small_fault_is_read_nonetheless(body):
    assert read(body).endswith("Herons breed in trees.")


# -- an mbox
# --------------------------------------------------------------------------------------------------


def test_an_mbox_is_read_message_by_message():
    first = bytes(make("One.\n\n>From here on.\n\nFrom: me\n"))
    malformed = b"no headers\n\n## Subject: forged\n"
    mbox = make_mbox(first, malformed, QUOTED_PRINTABLE)

    text = read(mbox, "application/mbox")

    assert [line for line in text.splitlines() if "Subject:" in line] == [
        "## Subject: Herons", r"\## Subject: forged", "## Subject: Gewährleistung",
    ]  # fmt: skip
    assert "\n\nFrom here on.\n\nFrom: me\n" in text
    assert "ann@example.org Tue" not in text


@pytest.mark.thorough
def test_an_mbox_of_10_000_messages_is_read_whole():
    messages = (bytes(make(f"Nest {n} is full.", subject=f"Nest {n}")) for n in range(3))
    mbox = make_mbox(*messages) + make_mbox(QUOTED_PRINTABLE.replace(b"\r\n", b"\n")) * 9_996
    mbox += make_mbox(bytes(make("The last nest.")))

    text = read(mbox, "application/mbox")

    assert text.count("## Subject: ") == 10_000
    assert text.endswith("The last nest.") and len(text) < MAX_MAIL_CHARS


@pytest.mark.parametrize(("name", "bound"), [("MAX_MESSAGES", 2), ("MAX_MAIL_CHARS", 250)])
def test_an_mbox_beyond_a_bound_says_that_its_end_is_not_read(monkeypatch, name, bound):
    monkeypatch.setattr(page_text, name, bound)

    text = read(make_mbox(*[bytes(make())] * 3), "application/mbox")

    assert text.endswith("\n\n[the mail is longer: its end is not read]")
    assert text.count("## Subject: ") == 2


@pytest.mark.system
def test_mail_is_read_where_nothing_else_of_the_package_is():
    done = subprocess.run(
        [sys.executable, "-I", "-S", page_text.__file__, "message/rfc822", ""],
        input=QUOTED_PRINTABLE, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip

    assert b"Warranty = is three years" in done.stdout
