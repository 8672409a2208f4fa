"""Makes safe HTML: escapes texts, fills templates, and removes from SVG pictures whatever could run
or load something."""

from __future__ import annotations

import re
from html import escape as escape_html
from importlib.resources import files
from itertools import accumulate
from string import Template
from typing import Any
from xml.etree import ElementTree

from babyagi.text import clean, harmless_lines


class Html(str):
    """HTML that needs no escaping, because this package made it from escaped texts."""

    __slots__ = ()


def escape(text: object) -> Html:
    """Return the text escaped for HTML, and its lines made `harmless`. `Html` is returned
    unchanged."""
    if isinstance(text, Html):
        return text
    return Html(escape_html(harmless_lines(str(text))))


def fill(template: str, **values: object) -> Html:
    """Return the HTML template with a value for each `$placeholder`. Values are escaped unless they
    are `Html`.

    Raises:
        KeyError: a placeholder has no value.
    """
    return Html(Template(template).substitute({key: escape(one) for key, one in values.items()}))


def join(parts: list[Html], between: str = "") -> Html:
    return Html(between.join(parts))


def load(name: str) -> str:
    """Return the text of a file in this package, such as a template."""
    return files("babyagi.pages").joinpath(name).read_text(encoding="utf-8")


# -- SVG pictures by a model: only shapes, texts, colours and gradients are kept, so that a picture
# can run and load nothing, and nothing in it is drawn more than once
# --------------------------------------------------------------------------------------------------


MAX_SVG_CHARS = 300_000
MAX_DEPTH = 40
_SVG = "http://www.w3.org/2000/svg"
_ELEMENTS = frozenset(
    "svg g defs title desc path rect circle ellipse line polyline polygon text tspan "
    "linearGradient radialGradient stop".split()
)
_ATTRIBUTES = frozenset(
    "id class x y x1 y1 x2 y2 cx cy r rx ry fx fy dx dy d points width height viewBox version role "
    "preserveAspectRatio transform fill fill-opacity fill-rule stroke stroke-width stroke-opacity "
    "stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit opacity "
    "color visibility display overflow vector-effect shape-rendering text-rendering paint-order "
    "font-family font-size font-style font-weight font-variant letter-spacing word-spacing "
    "text-anchor text-decoration dominant-baseline alignment-baseline baseline-shift rotate "
    "textLength lengthAdjust writing-mode offset stop-color stop-opacity gradientUnits "
    "gradientTransform spreadMethod".split()
)
# References to the picture's own gradients. Everything else that looks like one is removed.
_LOCAL_URL = re.compile(r"url\(\s*#[\w.-]{1,100}\s*\)", re.ASCII)
_FOREIGN = re.compile(r"url\s*\(|expression|javascript|data:|@|\\|/\*|//|[<>]", re.IGNORECASE)


def sanitise_svg(text: str) -> str:
    """Return an SVG picture with only the allowed elements and attributes.

    Raises:
        ValueError: the text is not SVG, declares a document type, is nested too deeply, or has more
            than `MAX_SVG_CHARS` characters.
    """
    text = clean(text).strip()
    if len(text) > MAX_SVG_CHARS:
        raise ValueError(f"the picture has more than {MAX_SVG_CHARS:,} characters")
    if re.search(r"<!(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise ValueError("the SVG picture has a DOCTYPE, which is not allowed")
    try:
        root = _parse(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"the SVG picture is not well-formed XML ({error})") from None
    if _local_name(root.tag) != "svg":
        raise ValueError("it is not SVG")
    _clean(root)
    root.set("xmlns", _SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _parse(text: str) -> ElementTree.Element:
    """Return the root of the parsed XML. Raises `ValueError` if it is nested too deeply."""
    parser: Any = ElementTree.XMLPullParser(events=("start", "end"))
    parser.feed(text)
    parser.close()
    found: list[tuple[str, ElementTree.Element]] = list(parser.read_events())
    if max(accumulate(1 if event == "start" else -1 for event, _ in found)) > MAX_DEPTH:
        raise ValueError(f"the picture has elements nested more than {MAX_DEPTH} deep")
    return found[0][1]


def _clean(element: ElementTree.Element) -> None:
    """Remove all elements and attributes that are not allowed from the element."""
    element.tag = _local_name(element.tag)
    kept = {key: value for key, value in element.items() if _is_plain(key, value)}
    element.attrib.clear()
    element.attrib.update(kept)
    for inner in list(element):
        if _local_name(inner.tag) in _ELEMENTS:
            _clean(inner)
        else:
            element.remove(inner)


def _is_plain(key: str, value: str) -> bool:
    """Return whether an attribute, or all properties of a style, are allowed, with this value."""
    declared = (one.partition(":")[0].strip() for one in value.rstrip("; ").split(";"))
    names = declared if key == "style" else [key]
    return _ATTRIBUTES.issuperset(names) and not _FOREIGN.search(_LOCAL_URL.sub("", value))


def _local_name(tag: object) -> str:
    """Return the tag of an XML element without its namespace; '' if it has a namespace other than
    SVG's."""
    if not isinstance(tag, str):
        return ""
    space, _, name = tag.rpartition("}")
    return name if space in ("", f"{{{_SVG}") else ""
