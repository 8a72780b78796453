"""Finds a model's sites, once, and runs the model with chosen ones replaced."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from facetwalk.batching import map_tensors
from facetwalk.messages import reason
from facetwalk.models import model_of, require_eval
from facetwalk.sites.interception import Interception
from facetwalk.types import FacetwalkError, InputError, ModelError

_COPIES = 3
"""Discovery runs a batch of this size: its first dimension shows which sites keep the batch."""

_ROUNDING = 1e-4
"""By how much, as a share of the largest entry, a row may change with the rows beside it."""


@dataclass(frozen=True)
class Site:
    """One place where a model applies a hinge: a call of a ReLU, not a module."""

    name: str
    """Path of the innermost module, and the number of the hinge within it: `layer1.0.relu#1`."""
    op: str
    """The torch function: `relu`, `clamp`, `leaky_relu`, ..."""
    shape: tuple[int, ...]
    """Shape of the pre-activation for one input."""
    number: int
    """Position among all hinges that one call of the model evaluates."""
    overwritten: bool = False
    """Whether the model changes the pre-activation in place later on."""
    channels_last: bool = False
    """Whether the channels of an image lie side by side in memory."""

    @property
    def neurons(self) -> int:
        return math.prod(self.shape)

    def flat(self, tensor: Tensor) -> Tensor:
        """`(B, *shape)` as `(B, neurons)` in the order of memory: the same memory, if it can be."""
        return (tensor.movedim(1, -1) if self.channels_last else tensor).flatten(1)

    def unflat(self, tensor: Tensor) -> Tensor:
        """What `flat` made so, as `(B, *shape)` again: the same memory."""
        if not self.channels_last:
            return tensor.unflatten(1, self.shape)
        channels, *size = self.shape
        return tensor.unflatten(1, (*size, channels)).movedim(-1, 1)


SiteSelection = str | Iterable[str] | Callable[[Site], bool]
"""`"all"`, `"last"`, names of sites or of modules that hold them, or a predicate on sites."""


@dataclass(frozen=True)
class Sites:
    """The sites of one model, in the order in which it reaches them."""

    model: nn.Module
    sites: tuple[Site, ...]
    hinges: int
    """How many hinges one call evaluates, with those that do not depend on the input."""

    def __len__(self) -> int:
        return len(self.sites)

    def __iter__(self) -> Iterator[Site]:
        return iter(self.sites)

    @property
    def neurons(self) -> int:
        return sum(site.neurons for site in self.sites)

    def join(self, tensors: Sequence[Tensor]) -> Tensor:
        """Tensors `(B, *site.shape)`, one a site, as one of shape `(B, neurons)`; neurons of a site
        come in the order in which they lie in memory."""
        pairs = zip(self.sites, tensors, strict=True)
        return torch.cat([site.flat(tensor) for site, tensor in pairs], 1)

    def parts(self, joined: Tensor) -> tuple[Tensor, ...]:
        """Views `(B, site.neurons)` of a joined tensor, one a site."""
        return joined.split([site.neurons for site in self.sites], 1)

    def split(self, joined: Tensor) -> list[Tensor]:
        """What `join` put together: views `(B, *site.shape)`, one a site."""
        pairs = zip(self.parts(joined), self.sites, strict=True)
        return [site.unflat(part) for part, site in pairs]

    def spread(self, by_site: Tensor) -> Tensor:
        """A number for each site, `(B, sites)`, as one for each neuron, `(B, neurons)`."""
        columns = zip(by_site.split(1, 1), self.sites, strict=True)
        return torch.cat([column.expand(-1, site.neurons) for column, site in columns], 1)

    def on(self, model: nn.Module) -> Sites:
        """The same sites of another model with the same architecture."""
        return replace(self, model=_without_compilation(model))

    def run(self, x: Tensor, replacement: Callable[[int, Tensor], Tensor]) -> Any:
        """`model(x)` with `replacement(i, z)` for `max(z, 0)` at the i-th of these sites.

        `z` has shape `(B, *site.shape)`. Every other hinge stays as it is. The model gets a
        copy of `x`, so that a model that works in place cannot change the caller's tensor.
        """
        position = {site.number: i for i, site in enumerate(self.sites)}

        def replace_one(number: int, z: Tensor) -> Tensor:
            i = position.get(number)
            if i is None:
                return torch.relu(z)
            rows = (len(x), *self.sites[i].shape)
            if z.numel() != math.prod(rows):
                raise ModelError(
                    f"site {self.sites[i].name} had shape {self.sites[i].shape} for one input "
                    f"when it was discovered and sees {tuple(z.shape)} for {len(x)} inputs now"
                )
            if self.sites[i].overwritten:
                z = z.clone()
            return replacement(i, z.reshape(rows)).reshape(z.shape)

        mode = Interception(replace_one)
        with mode:
            output = self.model(x.clone())
        if mode.count != self.hinges:
            raise ModelError(
                f"the model evaluated {mode.count} ReLUs in this pass and {self.hinges} when they "
                "were discovered; its control flow adds or drops ReLUs depending on the data: use "
                "a solver that does not look at them, such as Sign"
            )
        return output

    def pre_activations(self, x: Tensor) -> tuple[Any, list[Tensor]]:
        """The output, and `z` of shape `(B, *site.shape)` at each site."""
        seen: list[Tensor] = []

        def record(i: int, z: Tensor) -> Tensor:
            seen.append(z)
            return torch.relu(z)

        return self.run(x, record), seen

    def gated(self, x: Tensor, gates: Sequence[Tensor]) -> tuple[Any, list[Tensor]]:
        """As `pre_activations`, with `gate * z` in the place of `max(z, 0)` at each site.

        This is the nu-network of the paper (label `nndef2`) for binary gates, and its
        sigmoid-surrogate network for gates in between. Each gate is `(B, *site.shape)`.
        """
        seen: list[Tensor] = []

        def gate(i: int, z: Tensor) -> Tensor:
            seen.append(z)
            return gates[i] * z

        return self.run(x, gate), seen

    def select(self, selection: SiteSelection) -> Sites:
        """Only some of the sites; the others are plain ReLUs in every run."""
        chosen = _chosen(self.sites, selection)
        if not chosen:
            raise InputError(
                f"no site matches {selection!r}; this model has "
                + ", ".join(site.name for site in self.sites)
            )
        return replace(self, sites=chosen)


def _chosen(sites: tuple[Site, ...], selection: SiteSelection) -> tuple[Site, ...]:
    if selection == "all":
        return sites
    if selection == "last":
        return sites[-1:]
    if callable(selection):
        return tuple(site for site in sites if selection(site))
    names = [selection] if isinstance(selection, str) else list(selection)
    for name in names:
        if not any(_answers_to(site, name) for site in sites):
            raise InputError(
                f"no site is named {name!r}; this model has "
                + ", ".join(site.name for site in sites)
            )
    return tuple(site for site in sites if any(_answers_to(site, name) for name in names))


def _answers_to(site: Site, name: str) -> bool:
    path = site.name.partition("#")[0]
    return name in (site.name, path) or path.startswith(name + ".")


def discover(model: nn.Module, x: Tensor) -> Sites:
    """Find the sites of `model`, by running it on copies of the first row of `x`, `(B, *shape)`.

    >>> net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).eval()
    >>> [(site.name, site.shape) for site in discover(net, torch.zeros(1, 3))]
    [('1#0', (4,))]
    """
    model = _without_compilation(model)
    if any(isinstance(part, torch.jit.ScriptModule) for part in model.modules()):
        raise ModelError(
            "the model is (or holds) a TorchScript module, whose ReLUs cannot be seen: "
            "pass the Python module it was made from"
        )
    require_eval(model)
    alike = model_of(model, torch.zeros(_COPIES, dtype=torch.int64, device=x.device))
    found: list[tuple[Site, Tensor, int]] = []
    calls: dict[str, int] = {}

    def record(number: int, z: Tensor) -> Tensor:
        if z.requires_grad and _depends_on(z, leaf):
            path = paths[-1] or "model"
            calls[path] = calls.get(path, -1) + 1
            name = f"{path}#{calls[path]}"
            site = Site(name, mode.op_name, _shape_of_one(name, z), number)
            found.append((replace(site, channels_last=_has_channels_last(z)), z, z._version))
        return torch.relu(z)

    mode = Interception(record)
    with torch.inference_mode(False), torch.enable_grad():
        leaf = x[:1].detach().repeat(_COPIES, *[1] * (x.ndim - 1)).requires_grad_()
        with _module_paths(alike) as paths, mode:
            outputs = _on_copies(alike, leaf)
        if not found:
            raise ModelError(
                "no ReLU was found between the input and the output of the model; "
                "a solver that needs none, such as Sign, still works"
            )
        kept = [replace(site, overwritten=z._version != version) for site, z, version in found]
        sites = Sites(alike, tuple(kept), mode.count)
        _check_outputs(alike, leaf.detach(), outputs)
        _check_rows_are_independent(sites, leaf.detach())
    return sites.on(model)


def _on_copies(model: nn.Module, copies: Tensor) -> Any:
    try:
        return model(copies.clone())
    except FacetwalkError:
        raise
    except Exception as error:
        raise ModelError(
            f"the model fails on a batch of {len(copies)} inputs ({reason(error)}): to see its "
            "ReLUs it must take several; a solver that does not look at them, such as Sign, works"
        ) from error


def _check_outputs(model: nn.Module, copies: Tensor, seen: Any) -> None:
    """What was seen with hinges written out must be what the model gives, unless that is random."""
    with torch.no_grad():
        plain = model(copies.clone())
        if not _are_close(seen, plain) and _are_close(model(copies.clone()), plain):
            raise ModelError(
                "with its ReLUs written out the model gives other outputs than as it is (some of "
                "their inputs may be too large for its precision): use a solver that does not "
                "look at them, such as Sign"
            )


def _are_close(one: Any, other: Any) -> bool:
    """Whether all numbers of two outputs are the same but for half of their digits."""

    def close(a: Tensor, b: Tensor) -> bool:
        limit = torch.finfo(b.dtype).eps ** 0.5 * float(b.nan_to_num(0, 0, 0).abs().max())
        return torch.allclose(a.detach(), b, rtol=0, atol=limit, equal_nan=True)

    return all(close(a, b) for a, b in zip(_numbers(one), _numbers(other), strict=True))


def _numbers(outputs: Any) -> list[Tensor]:
    found: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        if tensor.is_floating_point() and tensor.numel():
            found.append(tensor)
        return tensor

    map_tensors(note, outputs)
    return found


def _check_rows_are_independent(sites: Sites, copies: Tensor) -> None:
    """Change the last of several rows: no site may see it in another row."""
    changed = copies.clone()
    changed[-1] += 1
    with torch.no_grad():
        _, before = sites.pre_activations(copies)
        _, after = sites.pre_activations(changed)
    for site, a, b in zip(sites, before, after, strict=True):
        if not bool(((a - b)[:-1].abs() <= _ROUNDING * a.abs().max()).all()):
            raise ModelError(
                f"at site {site.name} one input of a batch changes what another sees: the first "
                "dimension must be the batch all the way (for a transformer: batch_first=True)"
            )


def _without_compilation(model: nn.Module) -> nn.Module:
    return getattr(model, "_orig_mod", model)


def _shape_of_one(name: str, z: Tensor) -> tuple[int, ...]:
    if z.ndim == 0 or z.shape[0] % _COPIES:
        raise ModelError(
            f"site {name} has shape {tuple(z.shape)} for a batch of {_COPIES}: its first "
            "dimension must be the batch (for a transformer: batch_first=True)"
        )
    fold = z.shape[0] // _COPIES
    return (tuple(z.shape[1:]) or (1,)) if fold == 1 else (fold, *z.shape[1:])


def _has_channels_last(z: Tensor) -> bool:
    if z.ndim != 4 or z.is_contiguous():
        return False
    return z.is_contiguous(memory_format=torch.channels_last)


def _depends_on(tensor: Tensor, leaf: Tensor) -> bool:
    visited: set[Any] = set()
    waiting = [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in visited:
            continue
        visited.add(node)
        if getattr(node, "variable", None) is leaf:
            return True
        waiting.extend(following for following, _ in node.next_functions)
    return False


@contextmanager
def _module_paths(model: nn.Module) -> Iterator[list[str]]:
    """A stack with the path of each module that is running; hooks are global and removed."""
    names = {part: name for name, part in model.named_modules()}
    stack = [""]

    def enter(part: nn.Module, args: Any) -> None:
        stack.append(names.get(part, stack[-1]))

    def leave(part: nn.Module, args: Any, output: Any) -> None:
        stack.pop()

    handles = [
        torch_module.register_module_forward_pre_hook(enter),
        torch_module.register_module_forward_hook(leave, always_call=True),
    ]
    try:
        yield stack
    finally:
        for handle in handles:
            handle.remove()
