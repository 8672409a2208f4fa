from babyagi.cli.about import read_pages
from babyagi.cli.markdown import render_markdown
from babyagi.cli.root import run_guarded
from babyagi.cli.text import cell_width

PAGE = """# Tools

You want *this* and `that`, in words that go on until the line is full, and beyond it.

| tool | effect |
| --- | --- |
| `read_file` | read |

```sh
babyagi tools
```
"""


def test_a_page_is_rendered_for_a_terminal_and_stays_as_it_is_in_a_pipe(capsys):
    shown = render_markdown(PAGE, width=40, has_colour=False)

    assert "`" not in shown and "#" not in shown and "| ---" not in shown
    assert "    babyagi tools" in shown.splitlines()
    assert run_guarded(["guide", "tools"]) == 0
    assert capsys.readouterr().out.rstrip() == read_pages()["tools"].rstrip()


def test_colour_is_there_only_where_it_is_wanted():
    assert "\x1b" not in render_markdown(PAGE, width=40, has_colour=False)
    assert "\x1b[1m" in render_markdown(PAGE, width=40, has_colour=True)


def test_no_page_of_the_guide_is_wider_than_the_terminal_or_cut_within_a_word():
    for topic, text in read_pages().items():
        code = {line.strip() for line in text.splitlines()}
        for line in render_markdown(text, width=80, has_colour=False).splitlines():
            assert cell_width(line) <= 80 or line.strip() in code, (topic, line)
