"""Makes safe HTML: escapes texts, fills templates, and removes from SVG pictures whatever could run
or load something."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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


# -- SVG pictures by a model: only shapes, texts, colours and internal references are kept, so that
# a picture can run and load nothing
# --------------------------------------------------------------------------------------------------


MAX_SVG_CHARS = 300_000
MAX_DEPTH = 40
MAX_REFERENCES = 8  # in a chain, in which each reference leads to an element with the next one
MAX_DRAWN = 100_000  # elements; one that is drawn several times is counted each time
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_ELEMENTS = frozenset(
    "svg g defs title desc path rect circle ellipse line polyline polygon text tspan marker "
    "linearGradient radialGradient stop clipPath pattern use symbol mask".split()
)
_ATTRIBUTES = frozenset(
    "id class x y x1 y1 x2 y2 cx cy r rx ry fx fy dx dy d points width height viewBox version role "
    "preserveAspectRatio transform fill fill-opacity fill-rule stroke stroke-width stroke-opacity "
    "stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit opacity "
    "color visibility display overflow vector-effect shape-rendering text-rendering paint-order "
    "font-family font-size font-style font-weight font-variant letter-spacing word-spacing "
    "text-anchor text-decoration dominant-baseline alignment-baseline baseline-shift rotate "
    "textLength lengthAdjust writing-mode offset stop-color stop-opacity gradientUnits "
    "gradientTransform spreadMethod clip-path clip-rule clipPathUnits mask maskUnits "
    "maskContentUnits patternUnits patternContentUnits patternTransform marker-start marker-mid "
    "marker-end markerWidth markerHeight markerUnits refX refY orient".split()
)
# References within the picture. Everything else that looks like a reference is removed.
_LOCAL_URL = re.compile(r"url\(\s*#[\w.-]{1,100}\s*\)", re.ASCII)
_LOCAL = re.compile(r"#[\w.-]{1,100}", re.ASCII)
_NAMED = re.compile(r"#([\w.-]{1,100})", re.ASCII)
_FOREIGN = re.compile(r"url\s*\(|expression|javascript|data:|@|\\|/\*|//|[<>]", re.IGNORECASE)


def sanitise_svg(text: str) -> str:
    """Return an SVG picture with only the allowed elements and attributes.

    Raises:
        ValueError: the text is not SVG, declares a document type, is nested too deeply, has too
            long or circular chains of references, has more than `MAX_SVG_CHARS` characters, or
            draws more than `MAX_DRAWN` elements.
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
    drawn = _copy(root)
    if _count_drawn(drawn, {one.get("id", ""): one for one in drawn.iter()}, {}) > MAX_DRAWN:
        raise ValueError(f"the picture draws more than {MAX_DRAWN:,} elements")
    drawn.set("xmlns", _SVG)
    return ElementTree.tostring(drawn, encoding="unicode")


def _parse(text: str) -> ElementTree.Element:
    """Return the root of the parsed XML. Raises `ValueError` if it is nested too deeply."""
    parser: Any = ElementTree.XMLPullParser(events=("start", "end"))
    parser.feed(text)
    parser.close()
    found: list[tuple[str, ElementTree.Element]] = list(parser.read_events())
    if max(accumulate(1 if event == "start" else -1 for event, _ in found)) > MAX_DEPTH:
        raise ValueError(f"the picture has elements nested more than {MAX_DEPTH} deep")
    return found[0][1]


def _copy(element: ElementTree.Element) -> ElementTree.Element:
    name = _local_name(element.tag)
    made = ElementTree.Element(name)
    for key, value in element.attrib.items():
        if kept := _keep(key, value):
            made.set(*kept)
    made.text = element.text
    for inner in element:
        if _local_name(inner.tag) in _ELEMENTS:
            copied = _copy(inner)
            copied.tail = inner.tail
            made.append(copied)
    return made


def _keep(key: str, value: str) -> tuple[str, str] | None:
    """Return the name and the value of an attribute, or the allowed part of the value; None if the
    attribute must be removed."""
    if key in ("href", f"{{{_XLINK}}}href"):
        return ("href", value) if _LOCAL.fullmatch(value.strip()) else None
    if key == "style":
        declared = (one.partition(":") for one in value.split(";"))
        found = ((name.strip(), said.strip()) for name, _, said in declared)
        plain = (one for one in found if one[0] in _ATTRIBUTES and _is_plain(one[1]))
        style = ";".join(map(":".join, plain))
        return ("style", style) if style else None
    return (key, value) if key in _ATTRIBUTES and _is_plain(value) else None


def _is_plain(value: str) -> bool:
    return not _FOREIGN.search(_LOCAL_URL.sub("", value))


def _count_drawn(
    element: ElementTree.Element,
    by_id: Mapping[str, ElementTree.Element],
    counts: dict[str, int],
    within: tuple[str, ...] = (),
) -> int:
    """Return how many elements a browser draws for this one, including the elements in it and those
    to which it refers. (A few lines of references can expand to millions of elements.)

    Args:
        by_id: all elements of the picture, by id.
        counts: a cache of the results for elements to which others refer, by id.
        within: the ids in the chain of references that led to this element.

    Raises:
        ValueError: references form a circle or a too long chain.
    """
    n = 1 + sum(_count_drawn(inner, by_id, counts, within) for inner in element)
    for name, n_times in _find_references(element):
        if name not in by_id:
            continue
        if name in within or len(within) == MAX_REFERENCES:
            raise ValueError("references in the picture form a circle or a too long chain")
        if name not in counts:
            counts[name] = _count_drawn(by_id[name], by_id, counts, (*within, name))
        n += n_times * counts[name]
    return n


def _find_references(element: ElementTree.Element) -> Iterator[tuple[str, int]]:
    """Yield the id of each element to which an element refers, and how often that element is drawn
    at most: once, or if it is a marker, once for each point of a line."""
    for key, value in element.attrib.items():
        if key != "href" and "url(" not in value:
            continue
        n_times = 1
        if "marker" in key + value:
            places = (one.get("d", "") + one.get("points", "") for one in element.iter())
            n_times += sum(map(len, places)) // 4
        yield from ((name, n_times) for name in _NAMED.findall(value))


def _local_name(tag: object) -> str:
    """Return the tag of an XML element without its namespace; '' if it has a namespace other than
    SVG's."""
    if not isinstance(tag, str):
        return ""
    space, _, name = tag.rpartition("}")
    return name if space in ("", f"{{{_SVG}") else ""
