"""Linear layers that are read faster while captions are written.

Word by word a layer meets few rows, and what takes time is to read its weights from memory. torch's own
product does so at a fraction of the memory's speed; oneDNN's, which torch brings along, comes nearer to it if
the weights are laid out for it beforehand (docs/results/captioner-speed.md). So they are, once, when a
caption is first written without gradients, and again whenever they have changed.
"""

from __future__ import annotations

import platform
from bisect import bisect_left
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from tellapart.arrays import Float

SMALL = 1 << 17  # weights: below, a call costs more than it saves
SMALL_FOR_FEW = 1 << 19  # the same for so few rows that torch's product is not slow
MOST = 1 << 28  # weights of a captioner that may be held twice (of each, in an ensemble): 1 GiB
# Numbers of rows that are multiplied; zeros are added up to the next. oneDNN keeps half a megabyte for each
# number that it meets, is slow for fewer than four, and gains little where there are more than these.
SIZES = (4, 8, 16, 32, 64, 96, 128, 160, 192, 256, 320, 384, 512)
LAYOUT = 32  # rows that the layout is made for; it serves any number

# The operators behind torch.compile's own packed layers; not part of torch's public interface, so that a
# torch without them is one in which layers stay as they are.
_ONEDNN = torch.ops.mkldnn
CAN_PACK = (
    platform.machine() in ("x86_64", "AMD64")
    and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    and hasattr(_ONEDNN, "_linear_pointwise")
    and hasattr(_ONEDNN, "_reorder_linear_weight")
)


class PackedWeights(nn.Module):
    """A matrix of weights as oneDNN wants it, kept beside the layer that they belong to.

    It is made again after every change that torch counts: in place, by an optimiser, by loading. A change
    through `weight.data`, or by a fused optimiser, is not counted; but whoever trains calls `train`, and then
    it is let go. Copies have none.
    """

    def __init__(self) -> None:
        super().__init__()
        self._layout: Tensor | None = None
        self._source: Tensor | None = None  # held, so that no other weights can come to lie in its place
        self._version = -1

    def forward(
        self, x: Float[Tensor, "*b d"], weight: Float[Tensor, "m d"], bias: Float[Tensor, " m"] | None
    ) -> Float[Tensor, "*b m"]:
        """What torch's `linear` gives, but for the last bits."""
        rows = x.numel() // x.size(-1) if x.size(-1) else 0
        if not _worth_packing(x, weight, rows):
            plain: Tensor = linear(x, weight, bias)
            return plain
        few = pad(x.reshape(rows, -1), (0, 0, 0, SIZES[bisect_left(SIZES, rows)] - rows))
        added = None if bias is None else bias.contiguous()
        found: Tensor = _ONEDNN._linear_pointwise(few, self._laid_out(weight), added, "none", [], "")  # noqa: SLF001
        return found[:rows].view(*x.shape[:-1], -1)

    def _laid_out(self, weight: Tensor) -> Tensor:
        source, version = self._source, weight._version  # noqa: SLF001 - the only way to see a change
        unchanged = source is not None and source.data_ptr() == weight.data_ptr() and version == self._version
        if self._layout is None or not unchanged:
            self._source, self._version = weight.detach(), version
            self._layout = _ONEDNN._reorder_linear_weight(self._source, LAYOUT)  # noqa: SLF001
        return self._layout

    def train(self, mode: bool = True) -> PackedWeights:
        """Weights that are about to change are not held twice."""
        if mode:
            self._layout = self._source = None
        return super().train(mode)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_layout": None, "_source": None}


def _worth_packing(x: Tensor, weight: Tensor, rows: int) -> bool:
    """Whether captions are written, on a processor whose product is known to gain."""
    return (
        not torch.is_grad_enabled()
        and CAN_PACK
        and 0 < rows <= SIZES[-1]
        and weight.numel() >= (SMALL if rows >= SIZES[0] else SMALL_FOR_FEW)
        and weight.device.type == "cpu"
        and weight.dtype == x.dtype == torch.float32
        and not weight.is_inference()  # made under inference_mode: nobody could see whether it changed
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
    )


class QuickLinear(nn.Linear):
    """A linear layer, its weights those of another, that reads them faster where no gradient is wanted."""

    def __init__(self, plain: nn.Linear) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = plain.in_features, plain.out_features
        self.weight = plain.weight
        self.register_parameter("bias", plain.bias)
        self.packed = PackedWeights()
        self.train(plain.training)

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b m"]:
        """The same as of any linear layer."""
        found: Tensor = self.packed(x, self.weight, self.bias)
        return found


def quicken(network: nn.Module) -> None:
    """Put quick layers in the place of all linear ones, unless they have too many weights to hold twice."""
    layers = {id(layer): layer for layer in network.modules() if type(layer) is nn.Linear}
    if sum(layer.weight.numel() for layer in layers.values()) > MOST:
        return
    quick = {place: QuickLinear(layer) for place, layer in layers.items()}  # one that stands twice stays one
    for name, layer in list(network.named_modules(remove_duplicate=False)):
        if id(layer) in quick:
            above, _, own = name.rpartition(".")
            setattr(network.get_submodule(above), own, quick[id(layer)])
