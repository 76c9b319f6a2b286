"""Linear layers that are read faster while captions are written.

Word by word a layer meets few rows, and what takes time is to read its weights from memory. torch's own
product does so at a fraction of the memory's speed; oneDNN's, which torch brings along, comes nearer to it if
the weights are laid out for it beforehand (docs/results/captioner-speed.md). So they are, once, when a
caption is first written without gradients, and again whenever they have changed.
"""

from __future__ import annotations

import platform

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from tellapart.arrays import Float

SMALL = 1 << 17  # weights: below, a call costs more than it saves
MOST = 1 << 28  # weights of a captioner that may be held twice: 1 GiB
FEWEST = 4  # rows that oneDNN's product is fast for: zeros are added to fewer
ROWS = 32  # that the layout is made for; it serves any number

# The operators behind torch.compile's own packed layers; not part of torch's public interface, so that a
# torch without them is one in which layers stay as they are.
_ONEDNN = torch.ops.mkldnn
CAN_PACK = (
    platform.machine() in ("x86_64", "AMD64")
    and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    and hasattr(_ONEDNN, "_linear_pointwise")
    and hasattr(_ONEDNN, "_reorder_linear_weight")
)


class PackedWeights:
    """A matrix of weights as oneDNN wants it; belongs to the layer that made it, and copies are empty."""

    def __init__(self) -> None:
        self._layout: Tensor | None = None
        self._made_of: tuple[int, int] | None = None

    def __reduce__(self) -> tuple[type[PackedWeights], tuple[()]]:
        return PackedWeights, ()

    def product(
        self, x: Float[Tensor, "*b d"], weight: Float[Tensor, "m d"], bias: Float[Tensor, " m"] | None
    ) -> Float[Tensor, "*b m"]:
        """What torch's `linear` gives, but for the last bits."""
        if not _worth_packing(x, weight):
            plain: Tensor = linear(x, weight, bias)
            return plain
        version = (weight.data_ptr(), weight._version)  # noqa: SLF001 - the only way to see that it changed
        if self._layout is None or self._made_of != version:
            self._layout, self._made_of = _ONEDNN._reorder_linear_weight(weight.detach(), ROWS), version  # noqa: SLF001
        rows = x.reshape(-1, x.size(-1))
        count = len(rows)
        if count < FEWEST:
            rows = pad(rows, (0, 0, 0, FEWEST - count))
        found: Tensor = _ONEDNN._linear_pointwise(rows, self._layout, bias, "none", [], "")  # noqa: SLF001
        return found[:count].view(*x.shape[:-1], -1)


def _worth_packing(x: Tensor, weight: Tensor) -> bool:
    """Whether captions are written, on a processor whose product is known to gain."""
    return (
        not torch.is_grad_enabled()
        and CAN_PACK
        and weight.numel() >= SMALL
        and x.numel() > 0
        and weight.device.type == "cpu"
        and weight.dtype == x.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
    )


class QuickLinear(nn.Linear):
    """A linear layer, its weights those of another, that reads them faster where no gradient is wanted."""

    def __init__(self, plain: nn.Linear) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = plain.in_features, plain.out_features
        self.weight, self.bias = plain.weight, plain.bias
        self.packed = PackedWeights()
        self.train(plain.training)

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b m"]:
        """The same as of any linear layer."""
        return self.packed.product(x, self.weight, self.bias)


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
