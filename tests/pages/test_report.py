"""The page of an objective: one file, everything in it, nothing that acts."""

import base64
import hashlib
import re
import time
from html.parser import HTMLParser

import pytest

from babyagi.pages.report import MAX_TASKS, find_bars, render_report_page, walk_tree
from babyagi.tasks import Artifact, Lack, TaskStatus
from tests.cli import samples

EMPTY = {"meta", "br", "img", "hr", "rect", "line"}


def page_of(*, markdown="# Report: x\n\nIt is so.\n", tasks=None, results=(), made=(), **changes):
    tasks = [samples.task(id=1, parent_id=None, after=())] if tasks is None else tasks
    return render_report_page(
        samples.objective(**changes),
        markdown=markdown,
        tasks=tasks,
        results=results,
        bars=find_bars([], now=samples.at(90)),
        made=made,
    )


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader.seen


def test_the_page_holds_the_answer_and_each_result_with_what_it_cost():
    page = page_of(results=[samples.result(task_id=1)])

    assert page.index("It is so.") < page.index("Nothing else differs")
    for said in ("2 model calls", "890 tokens", "$0.0040"):
        assert said in page, said


def test_the_page_loads_nothing_and_runs_nothing():
    page = page_of()

    tags = read(page)
    assert not {tag for tag, _ in tags} & {"script", "link", "img", "iframe", "object", "form"}
    assert not [attrs for _, attrs in tags if {"src", "style", "onclick"} & set(attrs)]
    style = re.search("<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None and "url(" not in style[1] and "@import" not in style[1]
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = next(attrs["content"] for tag, attrs in tags if "http-equiv" in attrs)
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")


def test_nothing_that_a_model_said_is_markup_on_the_page():
    evil = "</details></li></style><script>alert(1)</script><img src=x onerror=y> $style \u202e\x1b"
    task = samples.task(
        id=1,
        parent_id=None,
        after=(),
        name=evil,
        error=evil,
        lack=Lack(what=evil),
        status=TaskStatus.DEAD,
    )
    page = page_of(
        markdown=evil,
        tasks=[task, samples.task(id=2, parent_id=1, after=(), name=evil)],
        results=[samples.result(task_id=2, text=evil, lack=evil)],
        spec=samples.spec(text=evil, model=evil),
        stop_detail=evil,
    )

    tags = read(page)
    assert not {tag for tag, _ in tags} & {"script", "img"}
    assert "\u202e" not in page and "\x1b" not in page
    assert "$style" in page


def test_a_task_stands_below_the_one_that_it_came_from():
    parents = {1: None, 2: 1, 3: None, 4: 2, 5: 1, 6: 99}
    tasks = [samples.task(id=id, parent_id=parent, after=()) for id, parent in parents.items()]

    assert [(task.id, depth) for task, depth in walk_tree(tasks)] == [
        (1, 0),
        (2, 1),
        (4, 2),
        (5, 1),
        (3, 0),
        (6, 0),
    ]


def test_a_chain_of_thousands_of_tasks_is_drawn_within_bounds():
    tasks = [
        samples.task(id=n, parent_id=n - 1 or None, after=()) for n in range(1, MAX_TASKS + 50)
    ]

    began_s = time.process_time()
    page = page_of(tasks=tasks)

    assert page.count("<details>") == MAX_TASKS
    assert "49 more tasks are not on this page" in page
    assert time.process_time() - began_s < 20


@pytest.mark.parametrize(("has_price", "said"), [(True, "$0.0040"), (False, "cost unknown")])
def test_an_unknown_price_is_called_unknown(has_price, said):
    assert said in page_of(spec=samples.spec(has_price=has_price))


def test_a_result_that_is_very_long_is_cut_and_says_where_it_is_whole():
    page = page_of(results=[samples.result(task_id=1, text="word. " * 10_000)])

    assert len(page) < 60_000
    assert "babyagi show 1 --objective 3" in page


def pictured(media_type, text, name="a"):
    artifact = Artifact(name=name, media_type=media_type, text=text, digest="ab" * 32)
    return 1, artifact


def test_a_picture_is_an_image_that_can_neither_act_nor_load():
    hostile = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'

    page = page_of(made=[pictured("image/svg+xml", hostile, name='"><script>')])

    (image,) = [attrs for tag, attrs in read(page) if tag == "img"]
    head, _, data = image["src"].partition(",")
    assert (head, base64.b64decode(data).decode()) == ("data:image/svg+xml;base64", hostile)
    assert "<script" not in page
    assert "img-src data:;" in page  # scripts: none, as everything that is not named


@pytest.mark.parametrize("media_type", ["text/csv", "text/plain"])
def test_a_table_is_text_that_can_be_opened_and_is_bounded(media_type):
    page = page_of(made=[pictured(media_type, "<b>1,2\n" * 100_000)])

    assert [tag for tag, _ in read(page)].count("details") == 2  # the file and the task
    assert "<b>1" not in page and len(page) < 300_000


def test_files_that_do_not_fit_are_counted():
    page = page_of(made=[pictured("text/plain", "x" * 900_000) for _ in range(5)])

    assert page.count("<figcaption>") == 3 and "2 more are not on this page" in page
    assert "<h2>Files</h2>" not in page_of()
