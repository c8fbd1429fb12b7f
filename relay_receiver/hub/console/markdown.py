"""Markdown that people and agents wrote, as HTML that can do nothing but be read.

No HTML of theirs passes, no picture is fetched, and links lead to http and https alone, without telling from where.
"""

import re
from collections.abc import Iterator, MutableMapping, Sequence
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

REMEMBERED = 512
LARGE = 16_000
"""Characters from which on a text is not remembered."""
STEPS_DOWN = 2
"""A heading of theirs stands below those of the page."""

_LINK = re.compile(r"https?://[^\s<>\"'`\x00-\x20]+", re.IGNORECASE)
_TRAILING = ".,;:!?*_~'\""
_PLACES = {"doc": "/docs/", "task": "/tasks/"}
_REFERENCE = re.compile(r"(?<![\w/:])(doc|task):([a-z]+_[a-z0-9]{4,40})(?!\w)")


class _Parser(MarkdownIt):
    """CommonMark with tables, without HTML and pictures."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False, "breaks": True})
        self.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])
        self.core.ruler.push("relay", _mark)
        self.add_render_rule("link_open", _link_open)

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        """Whether a link may be one."""
        return url.lower().startswith(("http://", "https://"))


def _link_open(
    _self: RendererProtocol, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    _ = options, env
    href = str(tokens[index].attrGet("href") or "")
    if href.startswith("/"):
        return str(Markup('<a href="{}">').format(href))
    return str(Markup('<a href="{}" rel="noreferrer noopener nofollow" target="_blank">').format(href))


def _mark(state: StateCore) -> None:
    """Lower headings, and make links of bare addresses, of references, and mentions of names."""
    names: re.Pattern[str] | None = state.env["names"]
    for token in state.tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1]) + STEPS_DOWN)}"
        elif token.type == "inline":
            token.children = list(_marked(token.children or [], names))


def _marked(children: Sequence[Token], names: re.Pattern[str] | None) -> Iterator[Token]:
    inside = 0
    for child in children:
        inside += {"link_open": 1, "link_close": -1}.get(child.type, 0)
        if child.type == "text" and not inside:
            yield from _split(child.content, names)
        else:
            yield child


def _split(text: str, names: re.Pattern[str] | None) -> Iterator[Token]:
    found = [*_LINK.finditer(text), *_REFERENCE.finditer(text), *(names.finditer(text) if names else ())]
    at = 0
    for match in sorted(found, key=re.Match.start):
        if match.start() < at:
            continue
        whole = match[0]
        if match.re is _LINK:
            whole = _trimmed(whole)
        if match.start() > at:
            yield _text(text[at : match.start()])
        if match.re is _LINK:
            yield from _linked(whole, whole)
        elif match.re is _REFERENCE:
            yield from _linked(_PLACES[match[1]] + match[2], whole)
        else:
            yield Token("mention_open", "span", 1, attrs={"class": "mention"})
            yield _text(whole)
            yield Token("mention_close", "span", -1)
        at = match.start() + len(whole)
    if at < len(text):
        yield _text(text[at:])


def _trimmed(url: str) -> str:
    """An address without the full stop or bracket that ends the sentence around it."""
    end, open_ = len(url), url.count("(") - url.count(")")
    while url[end - 1] in _TRAILING or (url[end - 1] == ")" and open_ < 0):
        open_ += url[end - 1] == ")"
        end -= 1
    return url[:end]


def _linked(href: str, text: str) -> Iterator[Token]:
    yield Token("link_open", "a", 1, attrs={"href": href})
    yield _text(text)
    yield Token("link_close", "a", -1)


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


_parser = _Parser()


@lru_cache(maxsize=128)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str] | None:
    if not names:
        return None
    words = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<![\w@])@(?:{words})(?!\w|[-.]\w)", re.IGNORECASE)


def markdown(text: str, names: tuple[str, ...] = ()) -> Markup:
    """The text as HTML; `names` are those whose mention is marked."""
    if len(text) > LARGE:
        return _rendered(text, names)
    return _remembered(text, names)


@lru_cache(maxsize=REMEMBERED)
def _remembered(text: str, names: tuple[str, ...]) -> Markup:
    return _rendered(text, names)


def _rendered(text: str, names: tuple[str, ...]) -> Markup:
    try:
        return Markup(_parser.render(text, {"names": _pattern(names)}))  # noqa: S704 - the renderer escapes all text
    except RecursionError:
        return Markup('<pre class="code code--wrap">{}</pre>').format(escape(text))
