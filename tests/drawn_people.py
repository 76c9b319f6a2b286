"""Drawn scenes as people speak of them: what is easy to see is seldom said.

Each scene has a large thing and a small one. People speak of the large one: two in three name its colour,
two in five call it what it is, the others "an object", and three in ten say where it is. All of it can be
seen, and a captioner by likelihood sees it; but its likeliest caption is "a drawing of a red object", which
is true of every fourth scene. Whatever makes captions tell scenes apart has to say what is mostly left
unsaid.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tellapart.data.examples import Example
from tellapart.data.readers import read_dataset
from tellapart.data.shapes.drawing import draw
from tellapart.data.shapes.language import Description, Phrase, render
from tellapart.data.shapes.scenes import COLOURS, PLACES, SHAPES, Scene, Thing
from tellapart.vision.patches import SIDE

FEW_SHAPES = ("square", "cross", "triangle", "moon")  # which few pixels tell apart
FEW_COLOURS = COLOURS[:4]
CAPTIONS = 20  # of each scene, so that shares of them come out even
NAMED = {"shape": 0.4, "colour": 0.65, "place": 0.3}


@dataclass(frozen=True, slots=True)
class Told:
    """Scenes with their captions, on disk; and those to measure on."""

    folder: Path
    unseen: Sequence[Scene]

    def settings(self) -> list[str]:
        """Changes of a recipe that learns from them."""
        return [f"data.root={self.folder}", "data.path=captions.jsonl", "data.format=jsonl"]

    def examples(self) -> list[Example]:
        """The scenes to measure on, as pictures."""
        everything = read_dataset(self.folder / "captions.jsonl", format="jsonl", images=self.folder).strict()
        return [example for example in everything if example.split == "test"]


def write_told(folder: Path, *, train: int, unseen: int, seed: int) -> Told:
    """Draw scenes to train on, a few to validate on, and others to measure on; no two are alike."""
    splits = [*["train"] * train, *["val"] * 20, *["test"] * unseen]
    dice = random.Random(seed)
    scenes = dict.fromkeys(_scene(dice) for _ in splits)
    while len(scenes) < len(splits):
        scenes[_scene(dice)] = None
    (folder / "images").mkdir(parents=True)
    with (folder / "captions.jsonl").open("w", encoding="utf-8") as file:
        for number, (scene, split) in enumerate(zip(scenes, splits, strict=True)):
            name = f"images/{number}.png"
            draw(scene, side=SIDE).save(folder / name)
            record = {"image": name, "image_id": str(number), "split": split, "captions": tell(scene, dice)}
            file.write(json.dumps(record) + "\n")
    return Told(folder, list(scenes)[-unseen:])


def _scene(dice: random.Random) -> Scene:
    here, there = dice.sample(PLACES, 2)
    large = Thing(dice.choice(FEW_SHAPES), dice.choice(FEW_COLOURS), "large", here)
    return Scene((large, Thing(dice.choice(SHAPES), dice.choice(COLOURS), "small", there)))


def tell(scene: Scene, dice: random.Random) -> list[str]:
    """What people say of a scene, each thing as often as `NAMED` says, in all combinations."""
    (large,) = (thing for thing in scene.things if thing.size == "large")
    said = {}
    for attribute, share in NAMED.items():
        times = round(share * CAPTIONS)
        said[attribute] = [*[getattr(large, attribute)] * times, *[""] * (CAPTIONS - times)]
        dice.shuffle(said[attribute])
    phrases = [
        Phrase(shape, colour, "", place)
        for shape, colour, place in zip(said["shape"], said["colour"], said["place"], strict=True)
    ]
    captions = (render(Description((phrase,)), dice) for phrase in phrases)
    # One word for what is not named: of two, each would be less likely than the name.
    return [caption.replace("a shape", "an object").replace(" shape", " object") for caption in captions]
