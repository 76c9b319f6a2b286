"""The description in an XMP packet: read, replaced or added. All other bytes of the packet stay as they are.

A packet is XML that many programs write to. It is not written anew from what a parser understood of it: the
parser says where things stand, and only the description's own bytes are replaced.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from tellapart.outputs.refusal import Refused

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
DC = "http://purl.org/dc/elements/1.1/"
XML = "http://www.w3.org/XML/1998/namespace"

# Of one tag, from its "<" on: quoted values may hold a ">".
_TAG = re.compile(rb"<[^\"'>]*(?:(?:\"[^\"]*\"|'[^']*')[^\"'>]*)*>")
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # by XML 1.0
_ROOT, _NODE = f"{RDF} RDF", f"{RDF} Description"
_DESCRIPTION, _CHOICES, _CHOICE = f"{DC} description", f"{RDF} Alt", f"{RDF} li"
_LONGER = "http://ns.adobe.com/xmp/note/ HasExtendedXMP"


@dataclass(slots=True)
class _Element:
    """Where an element stands: its first tag from `start` to `inside`, all of it up to `end`."""

    name: str
    attributes: dict[str, str]
    start: int
    inside: int
    end: int = -1
    text: str = ""
    children: list[_Element] = field(default_factory=list)

    @property
    def is_empty_tag(self) -> bool:
        """Whether it is written as <one/> tag."""
        return self.end == self.inside

    def named(self, name: str) -> list[_Element]:
        """Its children of that name."""
        return [child for child in self.children if child.name == name]


def description(packet: bytes) -> str | None:
    """The description in a packet, in the language of no name where there are several."""
    found = _described(_root(packet))
    if found is None:
        return None
    choice = _default_choice(found)
    return choice.text if choice else found.text.strip() or None


def with_description(packet: bytes | None, caption: str) -> bytes:
    """The packet with this description; a new one where there is none.

    Descriptions in other languages than the default one stay.
    """
    if _UNWRITABLE.search(caption):
        raise Refused("the caption holds control characters, which XMP cannot")
    if packet is None:
        return _new_packet(caption)
    packet = packet.rstrip(b"\0")
    root = _root(packet)
    found = _described(root)
    if found is None:
        changed = _inserted(packet, root, _node(caption, _about(root)))
    else:
        changed = _replaced(packet, found, caption)
    if description(changed) != caption:
        raise Refused("its XMP packet is written in a way that we do not know")
    return changed


def _replaced(packet: bytes, found: _Element, caption: str) -> bytes:
    choice = _default_choice(found)
    if choice is not None:
        return packet[: choice.start] + _choice(caption) + packet[choice.end :]
    choices = found.named(_CHOICES)
    if choices and not choices[0].is_empty_tag:
        at = choices[0].inside
        return packet[:at] + _choice(caption) + packet[at:]
    return packet[: found.start] + _property(caption) + packet[found.end :]


def _inserted(packet: bytes, root: _Element, node: bytes) -> bytes:
    if root.is_empty_tag:
        tag = packet[root.start : root.end]
        name = tag[1:].split(None, 1)[0].removesuffix(b"/>")
        opened = tag.removesuffix(b"/>") + b">" + node + b"</" + name + b">"
        return packet[: root.start] + opened + packet[root.end :]
    at = packet.rindex(b"<", 0, root.end)
    return packet[:at] + node + packet[at:]


def _described(root: _Element) -> _Element | None:
    nodes = root.named(_NODE)
    found = [element for node in nodes for element in node.named(_DESCRIPTION)]
    if len(found) > 1 or any(_DESCRIPTION in node.attributes for node in nodes):
        raise Refused("its XMP packet tells the description twice, or as an attribute")
    if any(_LONGER in node.attributes or node.named(_LONGER) for node in nodes):
        raise Refused("its XMP packet is continued elsewhere (extended XMP)")
    return found[0] if found else None


def _default_choice(found: _Element) -> _Element | None:
    choices = [choice for alternatives in found.named(_CHOICES) for choice in alternatives.named(_CHOICE)]
    default = [choice for choice in choices if choice.attributes.get(f"{XML} lang") == "x-default"]
    return default[0] if default else None


def _about(root: _Element) -> str:
    """What the packet says it is about: all its parts have to say the same."""
    for node in root.named(_NODE):
        return node.attributes.get(f"{RDF} about", node.attributes.get("about", ""))
    return ""


def _root(packet: bytes) -> _Element:
    """The RDF element of a packet with all that is in it."""
    packet = packet.rstrip(b"\0")
    try:
        packet.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused("its XMP packet is not UTF-8") from error
    top = _Element("", {}, 0, 0)
    open_elements = [top]
    parser = expat.ParserCreate("utf-8", namespace_separator=" ")

    def start(name: str, attributes: dict[str, str]) -> None:
        at = parser.CurrentByteIndex
        element = _Element(name, attributes, at, _tag_end(packet, at))
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_name: str) -> None:
        element = open_elements.pop()
        # Where the end of an <empty/> tag is reported differs between versions of expat.
        is_empty = packet[element.inside - 2 : element.inside] == b"/>"
        element.end = element.inside if is_empty else _tag_end(packet, parser.CurrentByteIndex)

    def text(characters: str) -> None:
        open_elements[-1].text += characters

    def refuse_doctype(*_details: object) -> None:
        raise Refused("its XMP packet has a document type, which may hide anything")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = text, refuse_doctype
    try:
        parser.Parse(packet, True)
    except expat.ExpatError as error:
        raise Refused(f"its XMP packet is damaged: {error}") from error
    (first,) = top.children
    roots = [first] if first.name == _ROOT else first.named(_ROOT)
    if len(roots) != 1:
        raise Refused("its XMP packet holds no RDF")
    return roots[0]


def _tag_end(packet: bytes, at: int) -> int:
    tag = _TAG.match(packet, at)
    if tag is None:
        raise Refused("its XMP packet is written in a way that we do not know")
    return tag.end()


def _choice(caption: str) -> bytes:
    return f'<rdf:li xmlns:rdf="{RDF}" xml:lang="x-default">{escape(caption)}</rdf:li>'.encode()


def _property(caption: str) -> bytes:
    choices = f'<rdf:Alt xmlns:rdf="{RDF}">'.encode() + _choice(caption) + b"</rdf:Alt>"
    return f'<dc:description xmlns:dc="{DC}">'.encode() + choices + b"</dc:description>"


def _node(caption: str, about: str) -> bytes:
    begin = f'<rdf:Description xmlns:rdf="{RDF}" rdf:about={quoteattr(about)}>'
    return begin.encode() + _property(caption) + b"</rdf:Description>"


def _new_packet(caption: str) -> bytes:
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n'.encode()
        + f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="{RDF}">'.encode()
        + _node(caption, "")
        + b'</rdf:RDF></x:xmpmeta>\n<?xpacket end="w"?>'
    )
