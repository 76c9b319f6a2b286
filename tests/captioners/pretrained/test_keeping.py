"""What is kept of a captioner that grew out of a checkpoint, and what is refused when it changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tellapart.captioners.ensemble import Ensemble
from tellapart.captioners.folder import SavedCaptioner, build_captioner, load_captioner, save_captioner
from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioning import load
from tellapart.ensembles import write_ensemble
from tellapart.errors import TellapartError
from tellapart.recipe import load_recipe
from tellapart.vision.encoder import traits_of
from tellapart.vision.parts import load_encoder


def nudged(made: Any, seed: int) -> SavedCaptioner:
    """Another captioner of the same checkpoint, as training would have changed it."""
    part = CAPTIONERS.get("blip")
    section = {key: value for key, value in made.settings.captioner.items() if key != "name"}
    captioner = build_captioner("blip", part.configure(section), text=None, traits=made.settings.encoder)
    torch.manual_seed(seed)
    with torch.no_grad():
        for weight in captioner.parameters():
            if weight.requires_grad:
                weight.add_(torch.randn_like(weight) * 0.1)
    return SavedCaptioner(captioner.eval(), made.settings)


@pytest.mark.parametrize("train", ["decoder", "lora", "all"])
def test_an_ensemble_keeps_what_each_member_learnt(
    train: str, tiny: Callable[..., Any], tmp_path: Path
) -> None:
    made = tiny("blip", train)
    members = [nudged(made, 1), nudged(made, 2)]
    for number, member in enumerate(members):
        save_captioner(tmp_path / str(number), member, dtype=torch.float32)
    write_ensemble([tmp_path / "0", tmp_path / "1"], tmp_path / "both")
    loaded = load_captioner(tmp_path / "both").captioner
    vision = type(made.vision)(
        *(part.float() for part in (made.vision.grid, made.vision.pooled, made.vision.classes))
    )
    tokens = torch.full((4, 1, 3), made.captioner.text.start)
    together = Ensemble([member.captioner for member in members], mean="probabilities").eval()
    torch.testing.assert_close(loaded.predict(vision, tokens).logits, together.predict(vision, tokens).logits)
    alone = members[0].captioner.predict(vision, tokens).logits.log_softmax(-1)
    assert not torch.allclose(loaded.predict(vision, tokens).logits, alone, atol=1e-3)

    weights = load_file(tmp_path / "both" / "model.safetensors")
    del weights[next(name for name in weights if name.startswith("members.0.") and "frozen" not in name)]
    save_file(weights, tmp_path / "both" / "model.safetensors")
    with pytest.raises(TellapartError, match="not of this captioner"):
        load_captioner(tmp_path / "both")


def test_a_checkpoint_whose_frozen_weights_changed_is_refused(
    tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny_folder("blip"), tmp_path / "blip"))
    config = CAPTIONERS.get("blip").configure({"checkpoint": str(folder), "train": "lora", "lora_rank": 2})
    traits = traits_of(load_encoder(f"tower:{folder}"))
    captioner = build_captioner("blip", config, text=None, traits=traits)
    weights = load_file(folder / "model.safetensors")
    changed = {name: tensor * 0.3 if "text_decoder" in name else tensor for name, tensor in weights.items()}
    save_file(changed, folder / "model.safetensors", metadata={"format": "pt"})
    again = build_captioner("blip", config, text=None, traits=traits)
    with pytest.raises(TellapartError, match="is not the one that this captioner was trained with"):
        again.load_state_dict(captioner.state_dict())


def test_a_recipe_remembers_where_its_checkpoint_is(
    tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_folder("blip"), tmp_path / "here" / "blip")
    monkeypatch.chdir(tmp_path / "here")
    changes = ["captioner.name=blip", "captioner.checkpoint=blip"]
    text = load_recipe("mrnn-shapes", changes=[*changes, "encoder.name=tower:blip"]).to_toml()
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    recipe = load_recipe("mine.toml")
    assert recipe.captioner["checkpoint"] == str(tmp_path / "here" / "blip")
    assert recipe.encoder.name == f"tower:{tmp_path / 'here' / 'blip'}"


def shortened(folder: Path, places: int) -> Path:
    """The same checkpoint with fewer places for text."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["text_config"]["max_position_embeddings"] = places
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    weights = load_file(folder / "model.safetensors")
    for name, tensor in weights.items():
        if "position_embeddings" in name and "text_decoder" in name:
            weights[name] = tensor[:places].contiguous()
        elif name.endswith("position_ids"):
            weights[name] = tensor[:, :places].contiguous()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_too_little_room_is_said_before_training_starts(
    tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tellapart.training import train

    folder = shortened(Path(shutil.copytree(tiny_folder("blip"), tmp_path / "blip")), 12)
    checkpoint = (f"captioner.checkpoint={folder}", f"encoder.name=tower:{folder}")
    changes = ["data.scenes=20", "captioner.name=blip", *checkpoint]
    with pytest.raises(TellapartError, match=r"a caption of \d+ tokens, and the captioner reads 12"):
        train(load_recipe("mrnn-shapes", changes=changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(
        TellapartError, match=r"decoding\.max_words is 20, and the captioner writes 11 tokens"
    ):
        train(load_recipe("mrnn-shapes", changes=[*changes, "data.max_words=1"]), tmp_path / "run")
    long = [*changes, "captioner.prompt=a b c d e f g h i j k l m n"]
    with pytest.raises(TellapartError, match=r"captioner\.prompt leaves 0 tokens for a caption"):
        train(load_recipe("mrnn-shapes", changes=long), tmp_path / "run")
    assert load(f"blip:{folder}", cached=False).saved.settings.max_words == 11


def test_settings_that_are_no_object_are_refused(tiny_folder: Callable[[str], Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_folder("blip"), tmp_path / "blip"))
    (folder / "preprocessor_config.json").write_text("[]", encoding="utf-8")
    with pytest.raises(TellapartError) as caught:
        load(f"blip:{folder}", cached=False)
    assert "\n" not in caught.value.problem


def test_a_prompt_is_text_and_nothing_else(tiny_folder: Callable[[str], Path]) -> None:
    config = CAPTIONERS.get("blip").configure({"checkpoint": str(tiny_folder("blip")), "prompt": "🦓"})
    traits = traits_of(load_encoder(f"tower:{tiny_folder('blip')}"))
    with pytest.raises(TellapartError, match="tokenizer cannot read '🦓'"):
        build_captioner("blip", config, text=None, traits=traits)
    named = CAPTIONERS.get("blip").configure({"checkpoint": str(tiny_folder("blip")), "prompt": "a [SEP]"})
    with pytest.raises(TellapartError, match="tokenizer cannot read"):  # it has no brackets
        build_captioner("blip", named, text=None, traits=traits)
