"""COCO captions: `{"images": [{"id", "file_name"}], "annotations": [{"image_id", "caption"}]}`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tellapart.data.examples import Example, Reading
from tellapart.data.readers.document import Document, read_document
from tellapart.data.readers.records import Findings, locator


class _Image(NamedTuple):
    image_id: str
    name: str
    where: str
    label: str


def read_coco(path: Path, *, images: Path | None = None) -> Reading:
    """Images and captions of a COCO file, plain or packed by gzip; it knows no splits.

    Captions stand in the order of the annotations. An image without annotation and an annotation of an
    unknown image are problems.
    """
    document = read_document(path)
    locate = locator(path, images)
    findings = Findings()
    listed = _images(document, findings)
    captions: dict[str, list[str]] = {image.image_id: [] for image in listed}
    _hand_out(document, findings, captions)
    for image_id, name, where, label in listed:
        if captions[image_id]:
            findings.examples.append(Example(image_id, locate(name), tuple(captions[image_id]), "", where))
        else:
            findings.report(where, f"{label} ({name}) has no caption", "add an annotation or drop the image")
    return findings.reading()


def _images(document: Document, findings: Findings) -> list[_Image]:
    listed: list[_Image] = []
    for record in document.records("images"):
        fields = record.fields()
        where = document.where(record, fields.get("file_name"))
        name = findings.name(fields.get("file_name"), where, f"{record.label}.file_name")
        image_id = findings.identifier(fields.get("id"), where, f"{record.label}.id")
        if name is not None and image_id is not None:
            listed.append(_Image(image_id, name, where, record.label))
    return listed


def _hand_out(document: Document, findings: Findings, captions: Mapping[str, list[str]]) -> None:
    """Give each image the captions of its annotations."""
    for record in document.records("annotations"):
        fields = record.fields()
        where = document.where(record)
        image_id = str(fields.get("image_id"))
        if image_id not in captions:
            what = f"{record.label} belongs to image {image_id}, which is not among the images"
            findings.report(where, what, "add the image or drop the annotation")
            continue
        caption = findings.caption(fields.get("caption"), where, f"{record.label}.caption")
        if caption is not None:
            captions[image_id].append(caption)
