"""Algorithm 1 of the paper, transcribed line by line: one sample, one layer after another, slow."""

import torch
from torch import Tensor, nn

from facetwalk.solvers import AdrGd
from facetwalk.streams import Streams


def plain_pre_activations(net: nn.Sequential, x: Tensor) -> tuple[list[Tensor], Tensor]:
    h, seen = x[None], []
    for layer in net:
        if isinstance(layer, nn.ReLU):
            seen.append(h[0])
            h = torch.maximum(h, torch.zeros_like(h))
        else:
            h = layer(h)
    return seen, h


def surrogate_pre_activations(net, x: Tensor, gates: list[Tensor]) -> tuple[list[Tensor], Tensor]:
    h, seen = x[None], []
    for layer in net:
        if isinstance(layer, nn.ReLU):
            seen.append(h[0])
            h = gates[len(seen) - 1][None] * h
        else:
            h = layer(h)
    return seen, h


def s(eta: Tensor, alpha: float) -> Tensor:
    return torch.sigmoid(alpha * (eta - 0.5))


def normal_norms(net, x: Tensor, gates: list[Tensor]) -> list[Tensor]:
    norms = []
    for i in range(len(gates)):
        rows = torch.autograd.functional.jacobian(
            lambda point, i=i: surrogate_pre_activations(net, point, gates)[0][i].flatten(), x
        )
        norms.append(rows.flatten(1).norm(dim=1).reshape(gates[i].shape))
    return norms


def penalty(h: Tensor, eta: Tensor, p_norm: Tensor, reduction: str) -> Tensor:
    off = torch.relu(h / p_norm * torch.relu(0.5 - eta))
    on = torch.relu(-h / p_norm * torch.relu(eta - 0.5))
    return (off + on).sum() if reduction == "sum" else off.max() + on.max()


def normalized(gradient: Tensor, rule: str) -> Tensor:
    length = gradient.norm()
    if length <= 1e-12 or (rule == "above-one" and length <= 1):
        return gradient
    return gradient / length


def matching_gates(net, x: Tensor, config: AdrGd) -> list[Tensor]:
    low, high = config.gate_bounds
    pre_activations, _ = plain_pre_activations(net, x)
    sides = [torch.where(h > 0, torch.ones_like(h), -torch.ones_like(h)) for h in pre_activations]
    return [(0.5 + config.gate_margin * side).detach().clamp(low, high) for side in sides]


def algorithm_1(net, objective, space, x: Tensor, config: AdrGd, seed: int) -> list[Tensor]:
    """The points `x` at the start of each iteration, and the last one."""
    xs, noise_added = [x], 0
    etas = matching_gates(net, x, config)
    beta, beta_gradient = torch.tensor(config.penalty_weight, dtype=x.dtype), 0.0
    t_noise = [1] * len(etas)
    for t in range(1, config.steps + 1):
        if config.gate_reset_every and t % config.gate_reset_every == 0:
            etas = matching_gates(net, x, config)
        gates = [s(eta, config.sharpness) for eta in etas]
        norms = [torch.ones_like(gate) for gate in gates]
        if config.normalize_by_normals:
            norms = normal_norms(net, x, gates)
            if config.own_gate_in_normal:
                norms = [norm * gate for norm, gate in zip(norms, gates, strict=True)]
            norms = [norm.clamp(min=config.normal_floor) for norm in norms]

        x_leaf = x.clone().requires_grad_()
        eta_leaves = [eta.clone().requires_grad_() for eta in etas]
        in_surrogate = eta_leaves if config.objective_moves_gates else etas
        _, output = surrogate_pre_activations(
            net, x_leaf, [s(eta, config.sharpness) for eta in in_surrogate]
        )
        if config.output_scale == "logits":
            output = output / output.norm().detach()
        score = objective(output).sum()
        if config.output_scale == "normal" and config.normalize_by_normals:
            (slope,) = torch.autograd.grad(score, x_leaf, retain_graph=True)
            score = score / slope.norm()
        h, _ = plain_pre_activations(net, x_leaf if config.penalty_moves_input else x)
        penalties = [
            penalty(h_i, eta, norm, config.penalty_reduction)
            for h_i, eta, norm in zip(h, eta_leaves, norms, strict=True)
        ]
        total = sum(penalties)
        of_x, *of_etas = torch.autograd.grad(-score + beta * total, [x_leaf, *eta_leaves])

        x = x - config.step_size * normalized(of_x, config.normalize_gradients)
        x = space.project(x[None])[0]
        noise = Streams.from_seeds(torch.tensor([seed]), torch.tensor([0]))
        noise = noise.fold(2, (t - 1) // config.noise_period)
        drawn = noise.normal((sum(eta.numel() for eta in etas),), x.dtype)[0]
        drawn = drawn.split([eta.numel() for eta in etas])
        for i, gradient in enumerate(of_etas):
            move = normalized(gradient, config.normalize_gradients)
            small = gradient.norm() <= config.gate_tolerance
            if config.perturb and t - t_noise[i] >= config.noise_period and small:
                move = move + config.noise_scale * drawn[i].reshape(move.shape)
                t_noise[i] = t
                noise_added += 1
            etas[i] = (etas[i] - config.gate_step * move).clamp(*config.gate_bounds)
        beta_gradient = total.detach() + (
            beta_gradient if config.accumulate_weight_gradient else 0.0
        )
        if beta_gradient <= config.weight_tolerance:
            beta = beta - config.weight_decay
        else:
            beta = beta + config.weight_step * beta_gradient
        beta = beta.clamp(*config.weight_bounds)
        xs.append(x)
    algorithm_1.noise_added = noise_added
    return xs
