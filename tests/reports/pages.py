"""Reading a report as a browser's parser would: elements, their attributes, the text that people see."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr", "base", "source", "embed", "wbr", "col"}
CELLS = {"td", "th", "p", "h1", "h3", "div"}
"""Elements that part words, though no blank stands between them."""


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    path: tuple[str, ...]
    """The ids of the elements around it."""
    text: str = ""

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


@dataclass
class Page(HTMLParser):
    elements: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[Element] = []

    @classmethod
    def of(cls, source: str) -> Page:
        page = cls()
        page.feed(source)
        page.close()
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        path = tuple(
            element.attributes["id"] for element in self._open if "id" in element.attributes
        )
        element = Element(tag, {name: value or "" for name, value in attrs}, path)
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().tag != tag:
            pass
        if tag in CELLS:
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str) -> list[Element]:
        return [element for element in self.elements if element.tag == tag]

    def by_id(self, name: str) -> Element:
        (element,) = [element for element in self.elements if element.attributes.get("id") == name]
        return element
