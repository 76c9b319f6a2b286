"""The later blocks of EfficientNet-Lite as a network to tune: their products get changes of low rank.

What normalises is folded into the weights before it, as it is when the network runs, and the convolutions
within a channel stay as they are: the changes are those of matrix products, W + up·down in place of W (Hu et
al. 2022, LoRA, Eq. 3), and of their biases. So what is learnt is a fraction of the network, and small on
disk.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tellapart.arrays import Float


class ChangedProduct(nn.Module):
    """x·(W + up·down)ᵀ + b + c, of which W and b stay: a 1x1 convolution, one place a row."""

    weight: Tensor  # W, (o, i)
    bias: Tensor  # b, (o,)

    def __init__(self, weight: Float[Tensor, "o i"], bias: Float[Tensor, " o"], *, rank: int) -> None:
        super().__init__()
        self.register_buffer("weight", weight, persistent=False)  # it comes with the package
        self.register_buffer("bias", bias, persistent=False)
        outputs, inputs = weight.shape
        self.down = nn.Parameter(torch.randn(min(rank, *weight.shape), inputs) / inputs**0.5)
        self.up = nn.Parameter(torch.zeros(outputs, len(self.down)))
        self.shift = nn.Parameter(torch.zeros(outputs))

    def changed(self) -> tuple[Float[Tensor, "o i"], Float[Tensor, " o"]]:
        """Weight and bias as they are by now."""
        return self.weight + self.up @ self.down, self.bias + self.shift

    def forward(self, places: Float[Tensor, "*n i"]) -> Float[Tensor, "*n o"]:
        """Of every place."""
        return functional.linear(places, *self.changed())


class LateBlock(nn.Module):
    """One block: widen, look around within each channel, narrow; and add what came in where it fits."""

    kernel: Tensor
    kernel_bias: Tensor

    def __init__(self, block: Any, *, rank: int) -> None:
        super().__init__()
        self.widen = ChangedProduct(*_product(block._expand_conv, block._bn0), rank=rank)  # noqa: SLF001
        self.narrow = ChangedProduct(*_product(block._project_conv, block._bn2), rank=rank)  # noqa: SLF001
        around = block._depthwise_conv  # noqa: SLF001 - the package's names are all private
        kernel, bias = _folded(around, block._bn1)  # noqa: SLF001
        self.register_buffer("kernel", kernel, persistent=False)
        self.register_buffer("kernel_bias", bias, persistent=False)
        self.padding, (self.stride, _) = around.static_padding, around.stride
        self.adds = self.stride == 1 and len(self.narrow.weight) == self.widen.weight.size(1)

    def forward(self, places: Float[Tensor, "b h w c"], *, left_out: float) -> Float[Tensor, "b hs ws cs"]:
        """Of a batch of pictures, channels last; of so large a share of them the block adds nothing."""
        wide = functional.relu6(self.widen(places)).permute(0, 3, 1, 2)
        around = functional.conv2d(
            self.padding(wide), self.kernel, self.kernel_bias, stride=self.stride, groups=wide.size(1)
        )
        found: Tensor = self.narrow(functional.relu6(around).permute(0, 2, 3, 1))
        if not self.adds:
            return found
        if self.training and left_out:
            kept = torch.rand(len(found), 1, 1, 1, device=found.device) >= left_out
            found = found * kept / (1 - left_out)
        return places + found


class LateNetwork(nn.Module):
    """All blocks from one on, and the head: from what the earlier ones give to the features of each place."""

    def __init__(self, network: Any, *, first: int, rank: int, left_out: float) -> None:
        super().__init__()
        blocks = list(network._blocks)  # noqa: SLF001
        self.blocks = nn.ModuleList(LateBlock(block, rank=rank) for block in blocks[first:])
        self.head = ChangedProduct(*_product(network._conv_head, network._bn1), rank=rank)  # noqa: SLF001
        # The later a block, the oftener it is left out in training (Huang et al. 2016, Eq. 4).
        self.left_out = [left_out * number / len(blocks) for number in range(first, len(blocks))]

    def forward(self, early: Float[Tensor, "b h w c"]) -> Float[Tensor, "b n d"]:
        """Features of each place, row by row."""
        places = early
        for block, left_out in zip(self.blocks, self.left_out, strict=True):
            places = block(places, left_out=left_out)
        return functional.relu6(self.head(places)).flatten(1, 2)

    @torch.no_grad()
    def write_into(self, network: Any) -> None:
        """Put the weights as they are by now into the whole network."""
        blocks = list(network._blocks)[-len(self.blocks) :]  # noqa: SLF001
        for block, own in zip(blocks, self.blocks, strict=True):
            assert isinstance(own, LateBlock)
            _write(block._expand_conv, block._bn0, own.widen)  # noqa: SLF001
            _write(block._project_conv, block._bn2, own.narrow)  # noqa: SLF001
        _write(network._conv_head, network._bn1, self.head)  # noqa: SLF001


def _folded(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """The weight and bias of both in one."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight.detach() / (norm.running_var + norm.eps).sqrt()
    return convolution.weight.detach() * scale[
        :, None, None, None
    ], norm.bias.detach() - norm.running_mean * scale


def _product(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    weight, bias = _folded(convolution, norm)
    return weight[:, :, 0, 0], bias


def _write(convolution: nn.Conv2d, norm: nn.BatchNorm2d, product: ChangedProduct) -> None:
    """The folded weight into the convolution; what is left to its norm is to add the bias."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    weight, bias = product.changed()
    convolution.weight.copy_(weight[:, :, None, None])
    norm.weight.fill_(1.0)
    norm.running_mean.zero_()
    norm.running_var.fill_(1.0 - norm.eps)
    norm.bias.copy_(bias)
