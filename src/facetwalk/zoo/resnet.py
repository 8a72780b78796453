"""Residual networks (He et al., 2016), in the layout of torchvision's state dicts."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

_STEM = 64
"""Channels before the first block."""


class _BasicBlock(nn.Module):
    """Two convolutions beside a shortcut: `(B, inputs, H, W)` to `(B, outputs, h, w)`."""

    def __init__(self, inputs: int, middle: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, middle, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(middle)
        self.conv2 = nn.Conv2d(middle, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        inside = self.relu(self.bn1(self.conv1(x)))
        inside = self.bn2(self.conv2(inside))
        return self.relu(inside + self.downsample(x))


class _Bottleneck(nn.Module):
    """Three convolutions beside a shortcut; only that in the middle sees neighbours."""

    def __init__(self, inputs: int, middle: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, middle, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(middle)
        self.conv2 = nn.Conv2d(middle, middle, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(middle)
        self.conv3 = nn.Conv2d(middle, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        inside = self.relu(self.bn1(self.conv1(x)))
        inside = self.relu(self.bn2(self.conv2(inside)))
        inside = self.bn3(self.conv3(inside))
        return self.relu(inside + self.downsample(x))


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    convolution = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


class _ResNet(nn.Module):
    """Four stages of blocks; each halves the image's sides and doubles the channels of the last.

    `middle` and `outputs` are the channels within and after a block of the first stage.
    """

    def __init__(
        self,
        block: type[_BasicBlock | _Bottleneck],
        blocks: Sequence[int],
        *,
        middle: int,
        outputs: int,
        classes: int,
        small_images: bool = False,
    ) -> None:
        super().__init__()
        size, stride = (3, 1) if small_images else (7, 2)
        self.conv1 = nn.Conv2d(3, _STEM, size, stride, padding=size // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(_STEM)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small_images else nn.MaxPool2d(3, 2, padding=1)

        def stage(number: int) -> nn.Sequential:
            wider = 2**number
            inputs = outputs * wider // 2 if number else _STEM
            shape = (middle * wider, outputs * wider)
            first = block(inputs, *shape, stride=2 if number else 1)
            others = (block(shape[1], *shape, stride=1) for _ in range(blocks[number] - 1))
            return nn.Sequential(first, *others)

        self.layer1 = stage(0)
        self.layer2 = stage(1)
        self.layer3 = stage(2)
        self.layer4 = stage(3)
        self.fc = nn.Linear(8 * outputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class ResNet18(_ResNet):
    """Normalised images `(B, 3, H, W)` to logits `(B, classes)`.

    For small images, as CIFAR-10's, it begins with a 3 x 3 convolution and no pool, so that it is
    affine between its ReLUs; otherwise it is torchvision's `resnet18`. Names are the same in both.

    >>> import torch
    >>> ResNet18().eval()(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(self, classes: int = 10, small_images: bool = True) -> None:
        super().__init__(
            _BasicBlock,
            (2, 2, 2, 2),
            middle=64,
            outputs=64,
            classes=classes,
            small_images=small_images,
        )


class WideResNet50_2(_ResNet):  # noqa: N801
    """Normalised images `(B, 3, H, W)` to logits `(B, classes)`; torchvision's `wide_resnet50_2`.

    Of Zagoruyko and Komodakis (2016): ResNet-50 with twice the channels within each block.
    `sites="layer4.2"` selects the ReLUs of the last block.

    >>> import torch
    >>> with torch.device("meta"):  # names and shapes without numbers
    ...     net = WideResNet50_2()
    >>> f"{sum(parameter.numel() for parameter in net.parameters()):,}"
    '68,883,240'
    """

    def __init__(self, classes: int = 1000) -> None:
        super().__init__(_Bottleneck, (3, 4, 6, 3), middle=128, outputs=256, classes=classes)
