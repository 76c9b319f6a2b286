"""The description in XMP packets of many hands: put in, taken out, and every other byte as it was."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.outputs.refusal import Refused
from tellapart.outputs.xmp import DC, RDF, description, with_description

# Adobe's way: many namespaces, a read-write packet with padding, other properties, languages.
ADOBE = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="Adobe XMP Core 5.6">
 <!-- a <rdf:RDF> in a comment -->
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about="uuid:1 &amp; 2" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
    xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:own="http://example.org/" xmp:Rating="5" own:x="a > b">
   <dc:subject><rdf:Bag><rdf:li>dog</rdf:li><rdf:li>grass</rdf:li></rdf:Bag></dc:subject>%s
   <own:text><![CDATA[<dc:description>not this</dc:description>]]></own:text>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
                                                            \n<?xpacket end="w"?>"""
LANGUAGES = (
    "<dc:description><rdf:Alt><rdf:li xml:lang='x-default'>old &lt;one></rdf:li>"
    '<rdf:li xml:lang="de">alt</rdf:li></rdf:Alt></dc:description>'
)
NO_DEFAULT = '<dc:description><rdf:Alt><rdf:li xml:lang="de">alt</rdf:li></rdf:Alt></dc:description>'
OTHER_PREFIXES = (
    '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><r:Description r:about="">'
    '<e:description xmlns:e="http://purl.org/dc/elements/1.1/"><r:Alt><r:li xml:lang="x-default">old</r:li>'
    "</r:Alt></e:description></r:Description></r:RDF>"
)
EMPTY = f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="{RDF}"/></x:xmpmeta>'
PACKETS = {
    "none": ADOBE % "",
    "languages": ADOBE % LANGUAGES,
    "no default": ADOBE % NO_DEFAULT,
    "simple": ADOBE % "<dc:description>old</dc:description>",
    "empty": ADOBE % "<dc:description/>",
    "empty list": ADOBE % "<dc:description><rdf:Alt/></dc:description>",
    "other prefixes": OTHER_PREFIXES,
    "no properties": EMPTY,
}
captions = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), min_size=1)


def read_independently(packet: bytes) -> str | None:
    """By another parser, which knows nothing of how it was written."""
    root = ET.fromstring(packet.decode())
    found = root.findall(f".//{{{DC}}}description/{{{RDF}}}Alt/{{{RDF}}}li")
    default = [li for li in found if li.get("{http://www.w3.org/XML/1998/namespace}lang") == "x-default"]
    assert len(default) <= 1
    return default[0].text if default else None


@pytest.mark.parametrize("packet", PACKETS.values(), ids=PACKETS)
@pytest.mark.parametrize("caption", ["a dog", 'a "<big>" & ž 猫 dog\'s ]]> ball', "x" * 5000])
def test_a_description_is_put_in_and_all_else_stays(packet: str, caption: str) -> None:
    data = packet.encode()
    changed = with_description(data, caption)
    assert description(changed) == read_independently(changed) == caption
    assert with_description(changed, caption) == changed
    # Back to what was there, there is no byte that is not ours or the old description's.
    start = next(place for place, (one, other) in enumerate(zip(data, changed, strict=False)) if one != other)
    tail = next(
        place for place in range(1, len(data)) if data[-place] != changed[-place] or place > len(data) - start
    )
    gone = data[start : len(data) - tail + 1].decode()
    assert len(gone) < 150
    assert "subject" not in gone
    assert "Rating" not in gone


def test_only_the_default_language_is_replaced() -> None:
    assert description((ADOBE % LANGUAGES).encode()) == "old <one>"
    changed = with_description((ADOBE % LANGUAGES).encode(), "new").decode()
    assert '<rdf:li xml:lang="de">alt</rdf:li></rdf:Alt>' in changed
    assert "old" not in changed


def test_a_packet_is_about_the_same_all_over() -> None:
    changed = with_description((ADOBE % "").encode(), "new").decode()
    assert changed.count('rdf:about="uuid:1 &amp; 2"') == 2


def test_without_a_packet_there_is_a_new_one() -> None:
    packet = with_description(None, "a <dog>")
    assert packet.startswith(b'<?xpacket begin="\xef\xbb\xbf" id="W5M0MpCehiHzreSzNTczkc9d"?>')
    assert packet.endswith(b'<?xpacket end="w"?>')
    assert description(packet) == read_independently(packet) == "a <dog>"


def test_zeros_at_the_end_are_no_damage() -> None:
    assert description(with_description((ADOBE % "").encode() + bytes(20), "new")) == "new"


@given(captions, captions, st.sampled_from(list(PACKETS.values())))
def test_any_caption_comes_back(first: str, second: str, packet: str) -> None:
    for caption in (first, second):
        changed = with_description(packet.encode(), caption)
        assert description(changed) == caption
        packet = changed.decode()


@pytest.mark.parametrize(
    ("packet", "said"),
    [
        ("", "damaged"),
        ("nonsense", "damaged"),
        ((ADOBE % "")[:-200], "damaged"),
        ("<html/>", "no RDF"),
        (f'<!DOCTYPE x [<!ENTITY a "b">]>{EMPTY}', "document type"),
        (ADOBE % (NO_DEFAULT * 2), "twice"),
        (ADOBE % ("<own:a/>"), None),
        ((ADOBE % "").replace("xmp:Rating", "dc:description"), "as an attribute"),
        (
            (ADOBE % "").replace("xmp:Rating", "xmlns:n='http://ns.adobe.com/xmp/note/' n:HasExtendedXMP"),
            "extended",
        ),
    ],
)
def test_what_we_do_not_know_is_refused(packet: str, said: str | None) -> None:
    if said is None:
        assert with_description(packet.encode(), "new")
        return
    with pytest.raises(Refused, match=said):
        with_description(packet.encode(), "new")


def test_other_encodings_and_control_signs_are_refused() -> None:
    with pytest.raises(Refused, match="not UTF-8"):
        with_description((ADOBE % "").encode("utf-16"), "new")
    for caption in ("a\0b", "\x1b[0m", "\ufffe", "half \ud800"):
        with pytest.raises(Refused, match="control characters"):
            with_description(None, caption)


def test_the_namespaces_are_those_of_the_specification() -> None:
    assert re.fullmatch(r"http://purl\.org/dc/elements/1\.1/", DC)
    assert RDF.endswith("22-rdf-syntax-ns#")
