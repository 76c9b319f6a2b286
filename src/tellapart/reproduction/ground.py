"""Where experiments are run: photographs of Flickr8k, or drawn scenes. Nothing here imports torch."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tellapart.data.shapes.dataset import CAPTIONS_FILE, write_shapes
from tellapart.errors import TellapartError
from tellapart.recipe import AnyRecipe, find_recipe, load_experiment
from tellapart.reproduction.plan import PLACE, Method

FLICKR8K, SHAPES = "flickr8k", "shapes"
SCENES, SEED = 1000, 1  # of drawn scenes
NO_CLOCK = "training.core_minutes=0"  # a slower machine shall not make another captioner
_RETRIEVER = ("data.scenes=2000", "retriever.width=128", "retriever.dropout=0.1", "training.epochs=8")


@dataclass(frozen=True, slots=True)
class Ground:
    """A data set, what is changed in every recipe for it, and who judges and who teaches on it.

    Judge and teacher are two retrievers: what pleases the one that taught need not please the other.
    """

    name: str
    changes: tuple[str, ...]
    judge: str  # a retriever's name or, where it is trained here, a method's
    teacher: str
    pace: float = 1.0  # how long a method takes here, as a share of what it takes on Flickr8k
    retrievers: tuple[Method, ...] = ()  # that are trained here, because none that ships knows such pictures
    by_recipe: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # more changes, by recipe
    # What has the last word: for methods that begin anew, and for those that go on from another.
    beginning: tuple[str, ...] = ()
    going_on: tuple[str, ...] = ()
    encoder: str = "efficientnet-lite2"  # by which pictures are called alike
    language_model: bool = True  # whether it tells how fluent captions are
    drawn: tuple[Path, int] | None = None  # the folder that scenes are drawn into, and how many

    def draw(self) -> None:
        """Draw the scenes, where there are no photographs."""
        if self.drawn is not None:
            folder, scenes = self.drawn
            write_shapes(folder, count=scenes, seed=SEED)

    def settings(self, method: Method) -> tuple[str, ...]:
        """What is changed in a method's recipe, places of other methods still open."""
        if method.recipe.startswith("retriever"):
            return method.changes
        start = (f"training.start_from={{{method.start}}}",) if method.start else ()
        more = self.going_on if method.start else self.beginning
        return (*self.changes, *self.by_recipe.get(method.recipe, ()), *start, *method.changes, *more)

    def changes_of(self, method: Method) -> tuple[str, ...]:
        """The same but for where the data lie, which is nobody else's business."""
        return tuple(change for change in self.settings(method) if not change.startswith("data.root="))

    def recipe_of(self, method: Method) -> str:
        """The built-in recipe that a method changes."""
        return method.recipe if method.recipe.startswith("retriever") else f"{method.recipe}-flickr8k"

    def load(self, method: Method, seed: int, places: Mapping[str, str]) -> AnyRecipe:
        """The checked recipe of a method, others being found in these places."""
        changes = [f"seed={seed}", *(filled(change, places) for change in self.settings(method))]
        whole = load_experiment(self.recipe_of(method), changes=changes)
        if method.share == 1:
            return whole
        epochs = max(1, round(method.share * whole.training.epochs))
        return load_experiment(self.recipe_of(method), changes=[*changes, f"training.epochs={epochs}"])

    def digest(self, method: Method, methods: Mapping[str, Method]) -> str:
        """A name for all that a method is made by, what it goes on from included; not for where that lies."""
        recipe = find_recipe(self.recipe_of(method)).read_text(encoding="utf-8") if method.recipe else ""
        own = [
            method.kind,
            f"share={method.share:g}",
            json.dumps(tomllib.loads(recipe), sort_keys=True),  # without its comments
            *self.changes_of(method),
        ]
        others = [self.digest(methods[name], methods) for name in method.others]
        return hashlib.sha256("\n".join([self.name, *own, *others]).encode()).hexdigest()[:12]


def filled(change: str, places: Mapping[str, str]) -> str:
    """A change with the folders of other methods in their places."""
    return PLACE.sub(lambda found: places[found[1]], change)


def photographs(root: Path) -> Ground:
    """Flickr8k in that folder."""
    captions = root / "flickr8k" / "captions.txt"
    if not captions.is_file():
        raise TellapartError(
            f"{captions}: no such file",
            hint="name with --data the folder that holds flickr8k/, or leave it out for drawn scenes",
        )
    changes = (
        f"data.root={root.absolute()}",
        "decoding.max_words=30",  # as many as a training caption may have: SMILE's are long
        NO_CLOCK,
    )
    return Ground(FLICKR8K, changes, "judge", "reranker")


def drawn_scenes(folder: Path, *, scenes: int = SCENES) -> Ground:
    """Scenes to be drawn into a folder: the same for every seed of a method."""
    small = ("captioner.width=64", "captioner.heads=4", "captioner.feed_forward=128", "captioner.dropout=0.0")
    return Ground(
        SHAPES,
        (
            f"data.root={folder.absolute()}",
            f"data.path={CAPTIONS_FILE}",
            "data.images=",
            "data.format=jsonl",
            "data.min_count=1",
            "encoder.name=patches",
            NO_CLOCK,
        ),
        "judge-of-shapes",
        "teacher-of-shapes",
        pace=0.03,
        # Of other scenes: of those that it has learnt, a retriever knows more than can be seen.
        retrievers=tuple(
            Method(name, says, "retriever-shapes", (f"seed={seed}", *_RETRIEVER), minutes=20, priority=0)
            for name, says, seed in (
                ("judge-of-shapes", "judges on drawn scenes", 11),
                ("teacher-of-shapes", "teaches on drawn scenes", 12),
            )
        ),
        by_recipe={
            "transformer": (*small, "captioner.encoder_layers=1", "captioner.decoder_layers=1"),
            "meshed": (*small, "captioner.layers=1"),
            "neuraltalk": ("captioner.embedding=128", "captioner.hidden=128", "captioner.dropout=0.1"),
            "adaptive": ("captioner.width=128", "captioner.dropout=0.1"),
        },
        beginning=("training.epochs=6",),
        going_on=("training.epochs=3", "training.evaluate_every=30"),
        encoder="patches",
        language_model=False,
        drawn=(folder, scenes),
    )


def find_ground(data: Path | None, out: Path) -> Ground:
    """Photographs where the user names some, with --data or TELLAPART_DATA; else drawn scenes."""
    named = data or (Path(os.environ["TELLAPART_DATA"]) if os.environ.get("TELLAPART_DATA") else None)
    return photographs(named) if named else drawn_scenes(out / "shapes")
