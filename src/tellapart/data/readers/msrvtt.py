"""MSR-VTT: `{"videos": [{"video_id", "split"}], "sentences": [{"video_id", "caption"}]}`, mostly in a zip."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tellapart.data.examples import Example, Reading
from tellapart.data.readers.document import unique_keys
from tellapart.data.readers.files import NOT_UTF8, read_file
from tellapart.data.readers.records import Findings, locator
from tellapart.errors import TellapartError

ZIP = b"PK\x03\x04"


def read_msrvtt(path: Path, *, images: Path | None = None) -> Reading:
    """Videos and sentences of an MSR-VTT file: the zip as it is handed out, or the JSON inside it.

    The image id is the video's id, the path that of a video nobody has to have. The split "validate" counts
    as "val". Captions stand in the order of the sentences. A video without sentence and a sentence of an
    unknown video are problems.
    """
    where, data = _json_inside(path, read_file(path))
    document = _document(where, data)
    locate = locator(path, images)
    findings = Findings()
    splits = dict(_videos(document, where, findings))
    captions: dict[str, list[str]] = {video: [] for video in splits}
    _hand_out(document, where, findings, captions)
    for video, split in splits.items():
        if captions[video]:
            place = locate(f"{video}.mp4")
            findings.examples.append(Example(video, place, tuple(captions[video]), split, where))
        else:
            findings.report(where, f"{video} has no caption", "add a sentence or drop the video")
    return findings.reading()


def _json_inside(path: Path, data: bytes) -> tuple[str, bytes]:
    """The JSON and what messages call it."""
    if not data.startswith(ZIP):
        return str(path), data
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            # What macOS puts beside each file bears the file's own ending.
            names = [name for name in packed.namelist() if _is_json(name)]
            if len(names) != 1:
                held = ", ".join(names) or "none"
                raise TellapartError(
                    f"{path}: a zip of MSR-VTT holds one JSON file, this one {held}",
                    hint="unpack it and name the JSON file",
                )
            return f"{path}/{names[0]}", packed.read(names[0])
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise TellapartError(
            f"{path} is a damaged zip file: {error}", hint="copy or download it again"
        ) from error
    except (RuntimeError, NotImplementedError) as error:  # a password, or a way of packing nobody knows
        raise TellapartError(
            f"{path} cannot be unpacked: {error}", hint="unpack it and name the JSON file"
        ) from error


def _is_json(name: str) -> bool:
    return name.lower().endswith(".json") and not name.startswith("__MACOSX/")


def _document(where: str, data: bytes) -> Mapping[str, object]:
    try:
        value = json.loads(data.removeprefix(b"\xef\xbb\xbf").decode("utf-8"), object_pairs_hook=unique_keys)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TellapartError(f"{where}:{line}: the line is not UTF-8 text", hint=NOT_UTF8) from error
    except json.JSONDecodeError as error:
        problem = f"{where}:{error.lineno}: not JSON: {error.msg} (column {error.colno})"
        raise TellapartError(
            problem, hint="mend the file there, or fetch it again if it was cut short"
        ) from error
    except (ValueError, RecursionError) as error:
        problem = f"{where}: not JSON that can be read: {error}"
        raise TellapartError(problem, hint="mend the file, or fetch it again") from error
    return value if isinstance(value, dict) else {}


def _records(
    document: Mapping[str, object], where: str, key: str
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The records of a list, each with its label; a file without it is an error."""
    values = document.get(key)
    if not isinstance(values, list):
        raise TellapartError(f"{where}: there is no list {key!r}", hint="is it of another format?")
    for index, value in enumerate(values):
        yield f"{key}[{index}]", value if isinstance(value, dict) else {}


def _videos(document: Mapping[str, object], where: str, findings: Findings) -> Iterator[tuple[str, str]]:
    """Id and split of each video."""
    seen: set[str] = set()
    for label, fields in _records(document, where, "videos"):
        video = findings.identifier(fields.get("video_id"), where, f"{label}.video_id")
        named = fields.get("split")
        split = findings.split("val" if named == "validate" else named, where, f"{label}.split")
        if video in seen:
            findings.report(where, f"{label}: {video} stands there twice", "drop one of them")
        elif video is not None and split is not None:
            seen.add(video)
            yield video, split


def _hand_out(
    document: Mapping[str, object], where: str, findings: Findings, captions: Mapping[str, list[str]]
) -> None:
    """Give each video the captions of its sentences."""
    for label, fields in _records(document, where, "sentences"):
        video = str(fields.get("video_id"))
        if video not in captions:
            what = f"{label} belongs to {video}, which is not among the videos"
            findings.report(where, what, "add the video or drop the sentence")
            continue
        caption = findings.caption(fields.get("caption"), where, f"{label}.caption")
        if caption is not None:
            captions[video].append(caption)
