"""The bare matrix products that benchmarks hold our work against are all of them."""

from __future__ import annotations

import pytest
import torch
from benchmarks.matrix_products import Products
from torch import nn

from tellapart.captioners.quick_linear import CAN_PACK, QuickLinear


@pytest.mark.parametrize("rows", [4, 64, 1000])
def test_a_layer_counts_as_much_whatever_its_weights_lie_like(rows: int) -> None:
    plain = nn.Linear(768, 1024)
    x = torch.rand(rows, 768)
    counted = []
    for layer in (plain, QuickLinear(plain)):
        with torch.no_grad(), Products() as products:
            layer(x)
        counted.append(products.operations())
        products.bare()()
    assert counted == [pytest.approx(2e-9 * rows * 768 * 1024)] * 2


@pytest.mark.skipif(not CAN_PACK, reason="this torch cannot lay weights out for oneDNN")
def test_the_packed_product_is_what_was_counted() -> None:
    with torch.no_grad(), Products() as products:
        QuickLinear(nn.Linear(768, 1024))(torch.rand(5, 768))
    ((left, right),) = products.found
    assert (left[0], right) == ((8, 768), ((768, 1024), (1, 768))), "five rows are filled up to eight"
