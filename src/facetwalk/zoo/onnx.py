"""Reads ONNX files as torch modules, and checks them against onnxruntime."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from facetwalk.messages import reason
from facetwalk.types import InputError, MissingExtraError, ModelError
from facetwalk.zoo.loaded import Loaded
from facetwalk.zoo.onnx_batch import constants, with_free_batch
from facetwalk.zoo.torchvision_stub import torchvision_or_stub

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnxruntime import InferenceSession

_DTYPES = {"tensor(float)": torch.float32, "tensor(double)": torch.float64}
_NEWEST_OPSET = 17
"""onnx2torch lacks common operators of newer opsets: such graphs are converted down first."""
_ROWS = 3
_TOLERANCE = 1e-4
"""Largest accepted difference from onnxruntime, relative to the largest output."""
_FATAL_ONLY = 4
"""onnxruntime's log level: what goes wrong is raised, so nothing needs to be printed."""


def load_onnx(path: str | Path) -> Loaded:
    """The network of an ONNX file, for batches `(B, *input_shape)` of any size, in eval mode.

    The graph must have one floating-point input whose first dimension is the batch, either
    symbolic or 1. The result agrees with onnxruntime on random inputs, or this raises.
    """
    path = Path(path)
    _import_extra()
    session, graph = _open(path)
    input_shape, dtype = _input_of(session, path)
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(_ROWS, *input_shape, dtype=dtype, generator=generator)
    expected = _expected_outputs(session, rows, path)
    model = _to_torch(graph, path)
    if difference := _difference(model, rows, expected, batch_size=1):
        _require_finite(graph, expected, path)
        raise ModelError(
            f"the network converted from {path} does not match onnxruntime ({difference}): "
            "pass it as a torch module instead"
        )
    if _difference(model, rows, expected, batch_size=_ROWS):
        model = _to_torch(with_free_batch(graph), path)
        if difference := _difference(model, rows, expected, batch_size=_ROWS):
            raise ModelError(
                f"the network in {path} works on one input but not on a batch ({difference}): "
                "export it with a symbolic batch dimension"
            )
    return Loaded(model, input_shape, path.stem, dtype)


def _import_extra() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401

        if sys.modules.get("onnx2torch") is None:
            with warnings.catch_warnings(action="ignore"), torchvision_or_stub():
                import onnx2torch  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("reading ONNX files", "onnx") from error


def _open(path: Path) -> tuple[InferenceSession, ModelProto]:
    import onnx
    import onnxruntime

    if not path.is_file():
        raise InputError(f"there is no ONNX file {path}")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL_ONLY
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return session, onnx.load(path)
    except Exception as error:
        raise InputError(f"{path} cannot be read as an ONNX network: {reason(error)}") from error


def _input_of(session: InferenceSession, path: Path) -> tuple[tuple[int, ...], torch.dtype]:
    """Shape of one input, without the batch, and its type."""
    inputs = session.get_inputs()
    if len(inputs) != 1:
        raise InputError(
            f"the network in {path} has {len(inputs)} inputs "
            f"({', '.join(value.name for value in inputs) or 'none'}) and must have exactly one"
        )
    (value,) = inputs
    if value.type not in _DTYPES:
        raise InputError(
            f"the network in {path} takes {value.type}: export it with a float or double input"
        )
    dimensions: list[Any] = value.shape
    batch, *shape = dimensions or [None]
    if not shape or (isinstance(batch, int) and batch != 1):
        raise InputError(
            f"the input of the network in {path} has shape {dimensions}: its first dimension "
            "must be the batch, symbolic or 1, with one or more others after it"
        )
    if not all(isinstance(size, int) for size in shape):
        raise InputError(
            f"the input of the network in {path} has shape {dimensions}: export it with every "
            "dimension but the batch fixed"
        )
    return tuple(shape), _DTYPES[value.type]


def _expected_outputs(session: InferenceSession, rows: Tensor, path: Path) -> list[Tensor]:
    """onnxruntime's outputs, each `(B, ...)`, from one row at a time."""
    name = session.get_inputs()[0].name
    try:
        parts = [session.run(None, {name: row.numpy()}) for row in rows.split(1)]
    except Exception as error:
        raise ModelError(f"onnxruntime cannot run {path}: {reason(error)}") from error
    for output in parts[0]:
        if not isinstance(output, np.ndarray) or output.shape[:1] != (1,):
            raise ModelError(
                f"an output of the network in {path} is not a tensor whose first dimension is "
                "the batch: export the network with a batch dimension"
            )
        if output.dtype.kind not in "fiub" or not output.size:
            raise ModelError(
                f"an output of the network in {path} holds no numbers ({output.dtype}, shape "
                f"{output.shape}): export the network without it"
            )
    return [torch.from_numpy(np.concatenate(outputs)) for outputs in zip(*parts, strict=True)]


def _to_torch(graph: ModelProto, path: Path) -> nn.Module:
    from onnx.version_converter import convert_version
    from onnx2torch import convert

    opsets = [entry.version for entry in graph.opset_import if entry.domain in ("", "ai.onnx")]
    try:
        if max(opsets, default=0) > _NEWEST_OPSET:
            graph = convert_version(graph, _NEWEST_OPSET)
        return convert(graph).eval()
    except Exception as error:
        raise ModelError(
            f"the network in {path} cannot be converted to torch: {reason(error)}"
        ) from error


def _difference(
    model: nn.Module, rows: Tensor, expected: list[Tensor], batch_size: int
) -> str | None:
    """How `model`'s outputs on the rows, `batch_size` at a time, differ from the expected."""
    try:
        with torch.no_grad():
            parts = [_as_list(model(batch)) for batch in rows.split(batch_size)]
        outputs = [torch.cat(part) for part in zip(*parts, strict=True)]
    except Exception as error:
        return reason(error)
    shapes, expected_shapes = ([tuple(t.shape) for t in ts] for ts in (outputs, expected))
    if shapes != expected_shapes:
        return f"output shapes {shapes} instead of {expected_shapes}"
    for output, right in zip(outputs, expected, strict=True):
        error = (output.double() - right.double()).abs().max()
        if not error <= _TOLERANCE * right.double().abs().max():
            return f"an output is off by {error:.2g}"
    return None


def _require_finite(graph: ModelProto, expected: list[Tensor], path: Path) -> None:
    """Raise `ModelError` for a network that is itself the reason why nothing can match it."""
    weights = [value for value in constants(graph.graph).values() if value.dtype.kind == "f"]
    if any(np.isnan(weight).any() for weight in weights):
        raise ModelError(
            f"{path} holds NaN in its weights: export a network whose weights are finite"
        )
    if all(output.isfinite().all() for output in expected):
        return
    if any(np.isinf(weight).any() for weight in weights):
        raise ModelError(
            f"{path} holds infinite numbers in its weights: export a network whose weights are "
            "finite"
        )
    raise ModelError(
        f"the network in {path} gives NaN or infinite numbers for random inputs: export one whose "
        "outputs are finite"
    )


def _as_list(output: Any) -> list[Tensor]:
    return [output] if isinstance(output, Tensor) else list(output)
