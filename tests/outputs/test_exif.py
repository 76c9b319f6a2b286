"""The description in Exif blocks of many hands: Pillow reads it back, and no other byte is moved."""

from __future__ import annotations

import struct

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.outputs.exif_blocks import (
    ASCII,
    CAMERA,
    DESCRIPTION,
    MAKE,
    UNDEFINED,
    Drawn,
    Tag,
    blocks,
    camera_block,
    directory,
    header,
    tags_of,
    told_in,
)

from tellapart.outputs.exif import bare, description, with_description
from tellapart.outputs.refusal import Refused

LONGEST = 65_527
captions = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), min_size=1, max_size=30
)


def small_block(*tags: Tag, order: str = "<", following: int = 0, behind: bytes = b"") -> bytes:
    return header(order, 8) + directory(order, 8, tags, following) + behind


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("told", [CAMERA, "", None])
def test_pillow_reads_it_back_and_all_else_as_before(order: str, told: str | None) -> None:
    before = camera_block(order, told)
    assert description(before) == (told or None)
    block = before
    for caption in ("a dog", "dog", "žž", "a <big> ž 猫 dog", "x" * 3000, "odd", "even"):
        block = with_description(block, caption)
        assert description(block) == told_in(block) == caption
        assert tags_of(block) == tags_of(before)
        assert "small" in tags_of(block)
        assert block[8 : len(before)] == before[8:]
        assert with_description(block, caption) is block
        assert bare(block) == bare(before)
    assert len(block) < len(before) + 200


def test_without_a_block_there_is_a_new_one() -> None:
    block = with_description(b"", "a ž dog")
    assert description(block) == told_in(block) == "a ž dog"
    assert with_description(block, "dog") == with_description(b"", "dog")
    assert bare(block) == bare(b"") == b""
    assert description(b"") is None


def test_what_another_program_wrote_after_us_is_replaced_as_well() -> None:
    ours = with_description(camera_block(), "a dog")
    (first,) = struct.unpack_from("<I", ours, 4)
    at = ours.index(struct.pack("<HH", DESCRIPTION, ASCII), first)
    theirs = ours[: at + 4] + struct.pack("<II", 9, len(ours)) + ours[at + 12 :] + b"by hand\0\0\0"
    assert description(theirs) == "by hand"
    again = with_description(theirs, "a cat")
    assert told_in(again) == "a cat"
    assert tags_of(again) == tags_of(ours)


@given(blocks(), captions, captions)
def test_describing_again_is_describing_once(drawn: Drawn, first: str, second: str) -> None:
    assume(description(drawn.block) not in (first, second))
    once = with_description(drawn.block, second)
    assert with_description(with_description(drawn.block, first), second) == once
    assert description(once) == (second if second.strip() else None)
    assert bare(once) == bare(drawn.block)
    assert bare(bare(once)) == bare(once)
    assert once[:4] == drawn.block[:4]
    assert once[8 : drawn.stays] == drawn.block[8 : drawn.stays]


def others_of(block: bytes, order: str) -> list[tuple[int, int, int, bytes]]:
    """Number, type, count and value of all tags of the first directory but for the description."""
    (at,) = struct.unpack_from(order + "I", block, 4)
    (count,) = struct.unpack_from(order + "H", block, at)
    found = []
    for place in range(at + 2, at + 2 + 12 * count, 12):
        number, kind, many, value_at = struct.unpack_from(order + "HHII", block, place)
        size = many * {3: 2, 4: 4, 5: 8}.get(kind, 1)
        value = block[place + 8 : place + 12] if size <= 4 else block[value_at : value_at + size]
        found.append((number, kind, many, value))
    return sorted(tag for tag in found if tag[0] != DESCRIPTION)


@given(blocks(), captions)
def test_tags_of_all_kinds_stay_and_come_in_order(drawn: Drawn, caption: str) -> None:
    block = with_description(drawn.block, caption)
    assert others_of(block, drawn.order) == others_of(drawn.block, drawn.order)
    if block is not drawn.block:
        (at,) = struct.unpack_from(drawn.order + "I", block, 4)
        (count,) = struct.unpack_from(drawn.order + "H", block, at)
        numbers = [struct.unpack_from(drawn.order + "H", block, at + 2 + 12 * n)[0] for n in range(count)]
        assert numbers == sorted(numbers)
        assert numbers.count(DESCRIPTION) == 1
        assert at % 2 == 0


@given(blocks(), captions, st.data())
def test_any_other_change_shows(drawn: Drawn, caption: str, data: st.DataObject) -> None:
    block = data.draw(st.sampled_from([drawn.block, with_description(drawn.block, caption)]))
    place = data.draw(st.integers(0, drawn.stays - 1).filter(lambda place: not 4 <= place < 8))
    changed = bytearray(block)
    changed[place] ^= data.draw(st.integers(1, 255))
    assert bare(bytes(changed)) != bare(block)


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_changed_tag_shows_before_and_after_describing(order: str) -> None:
    for told in ("a dog", "a much longer caption of a dog"):
        block = with_description(camera_block(order), told)
        for old, new in (
            (b"OLYMPUS IMAGING", b"OLIMPUS IMAGING"),
            (b"06:05:04", b"06:05:05"),
            (b"maker", b"muker"),
        ):
            other = camera_block(order).replace(old, new)
            assert bare(with_description(other, told)) == bare(other) != bare(block)


@given(st.sampled_from("<>"), st.booleans(), st.data())
def test_no_damage_ends_in_a_traceback(order: str, is_described: bool, data: st.DataObject) -> None:
    block = bytearray(camera_block(order))
    if is_described:
        block = bytearray(with_description(bytes(block), "a cat"))
    # In the directories all counts, and so it does at the end, where ours is.
    places = st.integers(0, 160) | st.integers(len(block) - 160, len(block) - 1)
    for place in data.draw(st.lists(places, max_size=5)):
        block[place] = data.draw(st.integers(0, 255))
    damaged = bytes(block[: data.draw(st.integers(0, len(block)) | st.just(len(block)))])
    description(damaged)
    try:
        described = with_description(damaged, "a dog")
    except Refused:
        assert bare(damaged) == damaged
        return
    assert description(described) == "a dog"
    assert bare(described) == bare(damaged)


@given(st.binary(max_size=60), st.sampled_from([b"", b"II*\0\x08\0\0\0", b"MM\0*\0\0\0\x08"]))
def test_noise_is_refused_or_described(noise: bytes, begin: bytes) -> None:
    try:
        described = with_description(begin + noise, "a dog")
    except Refused:
        assert bare(begin + noise) == begin + noise
        return
    assert description(described) == "a dog"
    assert bare(described) == bare(begin + noise)


BLOCK = small_block(Tag(DESCRIPTION, ASCII, b"of the camera\0"), Tag(MAKE, ASCII, b"a maker\0"))
DAMAGED = {
    "no header": (b"\0" * 30, None),
    "short header": (BLOCK[:7], None),
    "nothing behind the header": (BLOCK[:8], None),
    "directory in the header": (header("<", 4) + BLOCK[8:], None),
    "directory behind the end": (header("<", 4000) + BLOCK[8:], None),
    "cut directory": (BLOCK[:36], None),
    "too many entries": (BLOCK[:8] + b"\x40\0" + BLOCK[10:], "of the camera"),
    "missing value": (BLOCK[:-4], "of the camera"),
    "next directory behind the end": (small_block(following=4000), None),
    "next directory in the header": (small_block(following=2), None),
    "next directory is the first": (small_block(following=8), None),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_damaged_is_refused_and_says_what_can_be_read(name: str) -> None:
    block, told = DAMAGED[name]
    with pytest.raises(Refused, match="its Exif is damaged"):
        with_description(block, "a dog")
    assert bare(block) == block
    assert description(block) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (b"a dog\0", "a dog"),
        (b"a dog", "a dog"),
        (b"a dog\0\0\0\0", "a dog"),
        (b"a dog\0and more\0", "a dog"),
        (b"dog", "dog"),
        (b"   \0", None),
        (b"                                \0", None),
        (b"\0" * 32, None),
        (b"caf\xe9 d'or\0", "caf\N{REPLACEMENT CHARACTER} d'or"),
    ],
)
@pytest.mark.parametrize("kind", [ASCII, UNDEFINED])
def test_descriptions_are_read_as_they_are_shown(value: bytes, told: str | None, kind: int) -> None:
    block = small_block(Tag(DESCRIPTION, kind, value), Tag(MAKE, ASCII, b"a maker\0"))
    assert description(block) == told
    assert told_in(with_description(block, "a cat")) == "a cat"


def test_of_two_descriptions_one_is_left() -> None:
    block = small_block(Tag(DESCRIPTION, ASCII, b"a dog\0"), Tag(DESCRIPTION, ASCII, b"another\0"))
    assert description(block) == "a dog"
    described = with_description(block, "a dog")
    assert described != block
    assert others_of(described, "<") == []
    assert told_in(described) == "a dog"


def test_what_points_into_our_place_keeps_it() -> None:
    # Another tag with the same text: writing over it would change that one.
    block = bytearray(with_description(small_block(Tag(MAKE, ASCII, b"a maker\0")), "a dog on grass"))
    (at,) = struct.unpack_from("<I", block, 4)
    struct.pack_into("<II", block, at + 2 + 12 + 4, 15, len(block) - 16)
    shared = others_of(bytes(block), "<")
    assert shared == [(MAKE, ASCII, 15, b"a dog on grass\0")]
    described = with_description(bytes(block), "a cat")
    assert others_of(described, "<") == shared
    assert bare(described) == bare(bytes(block))


def test_a_block_is_no_longer_than_a_segment() -> None:
    assert len(with_description(b"", "x" * 65_499)) == LONGEST - 1  # all parts are of even length
    with pytest.raises(Refused, match="65528 bytes, and a segment holds 65527"):
        with_description(b"", "x" * 65_500)
    big = camera_block(note=bytes(64_000))
    assert len(with_description(big, "a dog")) < LONGEST
    with pytest.raises(Refused, match="a segment holds 65527"):
        with_description(big, "x" * 2000)
