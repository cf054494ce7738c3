"""The yardstick of the benchmarks means what the library means."""

import torch
from benchmarks.literal import LiteralEBER


def test_both_forms_of_the_literal_algorithm_have_one_value():
    torch.manual_seed(0)
    net = LiteralEBER(d=3, m=4)
    x, y, e = torch.randn(9, 3), torch.randint(0, 2, (9,)), torch.randint(0, 4, (9,))
    values = []
    for loss in (net.loss, net.loss_sharing):
        torch.manual_seed(1)  # the same draws of z
        values.append(loss(x, y, e))
    torch.testing.assert_close(*values)
