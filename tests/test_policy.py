"""What may leave, decided without a store, a model or a network."""

from dataclasses import replace

import pytest

from babyagi.policy import Ask, No, Situation, Yes, decide, find_place
from babyagi.tasks import Approval, Effect, Passage, find_sources, is_private
from babyagi.tools.base import Sink, Tool, takes, text_schema, texts_schema

SAID = "What does the Acme H100 cost in Köln, and who sells it? See https://shop.example/h100."
READ_A_FILE = ("program", "person", "file:salaries.csv")


async def give_nothing(arguments):
    return Passage(text="", origin="tool:none")


def tool_of(sink=None, *, name="web_search", effect=Effect.READ, **fields):
    parameters = takes(
        "query", query=text_schema("q"), domains=texts_schema("d", most=9), n={"type": "integer"}
    )
    given = {"name": name, "description": "d", "parameters": parameters, "effect": effect}
    return Tool(**given, run=give_nothing, sink=sink, **fields)


SEARCH = tool_of(Sink(sends=("query", "domains")))
OPEN = tool_of(Sink(addresses=("url",)), name="open_page")
SEND = tool_of(Sink(addresses=("to", "cc")), name="send_mail")
REMOTE = tool_of(Sink(host="far.example"), name="far__ask")


def search(query, origins=READ_A_FILE, said=(SAID,), **now):
    return decide(SEARCH, {"query": query}, Situation(origins=origins, said=said, **now))


def open_page(url, said=(SAID,), **now):
    return decide(OPEN, {"url": url}, Situation(origins=READ_A_FILE, said=said, **now))


def send(text="All they earn.", said=("Send it to ann@firm.example.",), **to):
    return decide(SEND, {"text": text, **to}, Situation(origins=READ_A_FILE, said=said))


def ask_far(*, origins=READ_A_FILE, **arguments):
    return decide(REMOTE, arguments, Situation(origins=origins, said=(SAID,)))


@pytest.mark.parametrize(
    ("origin", "is_so"),
    [
        ("file:a.md", True), ("private:notes__find", True),
        ("tool:list_files", True), ("tool:read_file", True), ("tool:search_files", True),
        ("person", False), ("program", False), ("model:gpt", False), ("web:https://a.example", False),
        ("search:brave", False), ("scratch:a.csv", False), ("tool:calculator", False), ("result:3", False),
        ("tool:list_files_of_a_program", False), ("more:4", False),
    ],
)  # fmt: skip
def test_files_and_servers_that_are_not_named_public_are_private(origin, is_so):
    assert is_private(origin) is is_so


def test_a_private_source_is_never_among_those_that_are_only_counted():
    pages = [f"web:https://a.example/{n}" for n in range(40)]
    assert any(map(is_private, find_sources([*pages, "file:a.md"])))
    assert not any(map(is_private, find_sources(pages)))


def test_without_a_private_text_in_the_prompt_nothing_is_asked():
    assert search("anything at all", origins=("person", "web:https://a.example")) == Yes()


def test_after_a_private_text_the_person_s_own_words_may_leave():
    assert search("Acme H100 cost Köln") == Yes()
    assert search("acme h100 COST köln") == Yes()


def test_to_whom_the_person_named_anything_may_be_sent_and_to_nobody_else():
    assert send(to="ann@firm.example") == send(to=["ann@firm.example"], cc=[]) == Yes()
    for to in (
        {"to": "eve@far.example"},
        {"to": ["ann@firm.example", "eve@far.example"]},
        {"to": "ann@firm.example", "cc": "eve@far.example"},
        {"to": "ann@firm.example.far.example"},
        {"cc": ""},
        {},
    ):
        assert send(**to) == Ask(to="send_mail")


@pytest.mark.parametrize(
    "query",
    [
        "Acme H100 salary",  # a word of the file
        "Acme Acme H100",  # said once
        "Acme H100 4711",  # a number
        "Acme-H100",  # a sign
        "aCmE H100",  # the case of letters
        "Acme  H100", "Acme\tH100", " Acme", "Acme\u200bH100",  # blanks, and what cannot be seen
        "QWNtZQ==", "%41cme", "4163 6d65", "amce",  # encodings
        "Acme H100 🙂",
    ],
)  # fmt: skip
def test_anything_else_waits_for_the_person(query):
    assert search(query) == Ask(to="web_search")


def test_in_a_script_without_blanks_a_piece_of_what_the_person_said_may_leave():
    said = ("東京の天気はどうですか",)
    assert search("東京 天気", said=said) == Yes()
    assert search("東京 給料", said=said) == Ask(to="web_search")
    assert search("東京 東京", said=said) == Ask(to="web_search")


def test_only_what_leaves_is_looked_at():
    now = Situation(origins=READ_A_FILE, said=(SAID,))
    assert decide(SEARCH, {"query": "Acme", "n": 3, "domains": []}, now) == Yes()
    asked = decide(SEARCH, {"query": "Acme", "domains": ["evil.example"]}, now)
    assert asked == Ask(to="web_search")


def test_an_address_is_opened_if_the_person_gave_exactly_this_one():
    assert open_page("https://shop.example/h100") == Yes()
    assert open_page("shop.example/h100/") == Yes()
    assert open_page("https://shop.example/h100?q=secret") == Ask(to="shop.example")
    assert open_page("https://secret.shop.example/h100") == Ask(to="secret.shop.example")
    assert open_page("https://shop.example/H100") == Ask(to="shop.example")


def test_all_keys_and_values_that_a_server_elsewhere_gets_are_looked_at():
    assert ask_far(query="Acme H100") == Yes()
    assert ask_far(query="Acme", n=4711) == Ask(to="far.example")
    assert ask_far(query={"secret": "Acme"}) == Ask(to="far.example")
    assert ask_far(query="Acme", domains=[]) == Ask(to="far.example")
    assert ask_far(query="") == Ask(to="far.example")


def test_what_a_server_said_may_go_back_to_it_and_to_no_other():
    assert ask_far(query="4711", origins=("private:far__find",)) == Yes()
    assert ask_far(query="4711", origins=("private:notes__find",)) == Ask(to="far.example")


def test_always_holds_for_the_host_in_this_run_and_never_is_not_asked_again():
    always = {"may_send": {"a.example": True}}
    assert open_page("https://a.example/?q=x", **always) == Yes()
    assert open_page("https://b.example/?q=x", **always) == Ask(to="b.example")
    refused = open_page("https://a.example/?q=x", may_send={"a.example": False})
    assert isinstance(refused, No)
    assert "forbade" in refused.reason


@pytest.mark.parametrize("origins", [(), READ_A_FILE])
@pytest.mark.parametrize("url", ["http://evil.example/x", "https://docs.example.evil.example/"])
def test_a_page_at_no_domain_of_the_settings_is_refused_and_nobody_is_asked(origins, url):
    limited = replace(OPEN, sink=Sink(addresses=("url",), only=("docs.example",)))

    refused = decide(limited, {"url": url}, Situation(origins=origins, said=(SAID,)))

    assert isinstance(refused, No) and "BABYAGI_WEB_ONLY" in refused.reason


@pytest.mark.parametrize("url", ["https://docs.example/a", "http://v2.docs.example/", "no address"])
def test_of_a_page_at_a_domain_of_the_settings_the_person_is_asked_as_of_any(url):
    limited = replace(OPEN, sink=Sink(addresses=("url",), only=("docs.example",)))

    assert isinstance(decide(limited, {"url": url}, Situation(origins=READ_A_FILE)), Ask)
    assert decide(limited, {"url": url}, Situation()) == Yes()


def test_where_nobody_can_be_asked_the_call_is_refused_and_the_reason_says_so():
    refused = search("secret", has_person=False)
    assert isinstance(refused, No)
    assert "nobody can be asked" in refused.reason
    assert search("Acme H100", has_person=False) == Yes()


def test_a_call_that_must_not_be_repeated_asks_where_that_is_wanted():
    post = tool_of(effect=Effect.ONCE)
    assert decide(post, {}, Situation()) == Ask()
    assert decide(post, {}, Situation(approval=Approval.NONE)) == Yes()
    assert decide(post, {}, Situation(approval=Approval.NONE, is_heeded=True)) == Ask()
    own = tool_of(effect=Effect.ONCE, asks_approval=False)
    assert decide(own, {}, Situation()) == Yes()


def test_one_question_asks_for_both():
    post = tool_of(Sink(host="far.example"), effect=Effect.ONCE)
    now = Situation(origins=READ_A_FILE, may_send={"far.example": True})
    assert decide(post, {"query": "x"}, Situation(origins=READ_A_FILE)) == Ask(to="far.example")
    assert decide(post, {"query": "x"}, now) == Ask()


def test_words_go_to_a_host_or_where_there_is_none_to_the_tool():
    assert find_place(OPEN, {"url": "HTTPS://A.example:8443/x"}) == "a.example:8443"
    assert find_place(OPEN, {"url": "no address"}) == "open_page"
    assert find_place(SEARCH, {"query": "x"}) == "web_search"
    assert find_place(tool_of(), {}) == ""
