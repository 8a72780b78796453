"""A fully connected network written out neuron by neuron, in plain Python."""

from __future__ import annotations

from torch import nn

Vector = list[float]


class PlainNetwork:
    """Inputs, weights and values are lists of numbers."""

    def __init__(self, network: nn.Sequential) -> None:
        layers = [layer for layer in network if isinstance(layer, nn.Linear)]
        self.layers = [(layer.weight.tolist(), layer.bias.tolist()) for layer in layers]
        self.hidden = sum(len(bias) for _, bias in self.layers[:-1])

    def run(
        self, x: Vector, live: list[bool] | None = None, bump: tuple[int, float] = (-1, 0.0)
    ) -> tuple[float, Vector]:
        """The output, and all pre-activations; with gates where `live` is given, and something
        added to the output of one neuron."""
        seen: Vector = []
        for weights, biases in self.layers[:-1]:
            after = []
            for row, bias in zip(weights, biases, strict=True):
                h = sum(w * v for w, v in zip(row, x, strict=True)) + bias
                number = len(seen)
                on = h > 0 if live is None else live[number]
                seen.append(h)
                after.append((h if on else 0.0) + (bump[1] if number == bump[0] else 0.0))
            x = after
        (row,), (bias,) = self.layers[-1]
        return sum(w * v for w, v in zip(row, x, strict=True)) + bias, seen

    def pattern(self, x: Vector) -> list[bool]:
        return [h > 0 for h in self.run(x)[1]]
