"""A picture of a model shows shapes and does nothing."""

import re

import pytest

from babyagi.pages.html import MAX_SVG_CHARS, sanitise_svg

PLOT = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"><title>Tea</title>'
    '<defs><linearGradient id="g"><stop offset="0" stop-color="#fff" /></linearGradient></defs>'
    '<g transform="translate(1,2)"><rect x="1" y="2" width="3" height="4" fill="url(#g)" />'
    '<text x="1" style="font-size:3px;fill:red">a &lt; b</text></g></svg>'
)
HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
HOSTILE = {
    "script": "<script>alert(1)</script>",
    "script of another case": "<SCRIPT>alert(1)</SCRIPT>",
    "handler": '<rect onload="alert(1)" onclick="alert(1)" width="1"/>',
    "foreign object": "<foreignObject><body onload='alert(1)'/></foreignObject>",
    "link": '<a href="javascript:alert(1)"><text>x</text></a>',
    "xlink": '<use xlink:href="javascript:alert(1)"/>',
    "use of another file": '<use href="https://evil.example/x.svg#a"/>',
    "use of data": '<use href="data:image/svg+xml;base64,PHN2Zz4=#a"/>',
    "image": '<image href="https://evil.example/pixel.png"/>',
    "style element": "<style>@import url(https://evil.example/x.css);</style>",
    "style": '<rect style="fill:url(https://evil.example/x)"/>',
    "escaped style": '<rect style="fill:u\\72l(https://evil.example/x)"/>',
    "fill": '<rect fill="url(//evil.example/x#a)"/>',
    "animation": '<animate attributeName="href" values="javascript:alert(1)"/>',
    "set": '<set attributeName="onload" to="alert(1)"/>',
    "handler element": "<handler>alert(1)</handler>",
    "iframe": '<iframe src="javascript:alert(1)"/>',
    "html in a namespace": '<h:script xmlns:h="http://www.w3.org/1999/xhtml">alert(1)</h:script>',
    "instruction": '<?xml-stylesheet href="https://evil.example/x.css"?><rect/>',
    "comment": "<!--><script>alert(1)</script>--><rect/>",
    "text that looks like markup": "<text>&lt;script&gt;alert(1)&lt;/script&gt;</text>",
    "cdata": "<text><![CDATA[<script>alert(1)</script>]]></text>",
    "base": '<rect xml:base="https://evil.example/"/>',
}
# what is drawn grows tenfold with each line
BOMB = "<svg>{}</svg>".format(
    "".join(f'<g id="g{n + 1}">{f"""<use href="#g{n}"/>""" * 10}</g>' for n in range(9))
)
ACTS = re.compile(
    r"<script|<style|<image|<foreign|<animate|<set|<a[ >]|<iframe|<handler|<\?|<!|\son\w+=|javascript:"
    r"|evil|data:|xml:base|xhtml",
    re.IGNORECASE,
)


def test_a_plot_comes_through_whole():
    assert sanitise_svg(PLOT) == PLOT.replace(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10">',
        '<svg viewBox="0 0 10 10" xmlns="http://www.w3.org/2000/svg">',
    )


def test_nothing_is_drawn_that_another_element_draws():
    for text in (
        BOMB,
        BOMB.replace("use href", "rect mask").replace('="#', '="url(#').replace('"/>', ')"/>'),
    ):
        assert not re.search("#g", sanitise_svg(text))


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_in_a_picture_acts_or_loads(name):
    assert not ACTS.search(sanitise_svg(f"{HEAD}{HOSTILE[name]}</svg>"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no picture",
        "<svg>",
        "<html/>",
        '<!DOCTYPE svg [<!ENTITY a "b">]><svg>&a;</svg>',
        "<!doctype svg><svg/>",
        "<svg>" + "<g>" * 3000 + "</g>" * 3000 + "</svg>",
        f"<svg>{' ' * MAX_SVG_CHARS}</svg>",
        "<h:svg xmlns:h='http://www.w3.org/1999/xhtml'/>",
    ],
)
def test_what_is_no_plain_picture_is_refused(text):
    with pytest.raises(ValueError):
        sanitise_svg(text)
