"""TD3 and DDPG whose exploitation is sometimes refined; importing this needs the control extra."""

from __future__ import annotations

from typing import Any

import numpy as np

from facetwalk.control.critics import Judge, action_value
from facetwalk.control.refining import recordings_of, refined, require_refinement
from facetwalk.solvers import AdrGd, Auto, Method
from facetwalk.types import InputError, MissingExtraError

try:
    from stable_baselines3 import DDPG, TD3
except ImportError as error:
    raise MissingExtraError("refined training", "control") from error


class RefinedTD3(TD3):
    """`stable_baselines3.TD3` that, while it collects data, sometimes acts better than its actor.

    At each step of each environment, with probability `epsilon`, the actor's action is replaced by
    the best one for the critic that `solver` finds. Exploration noise is added afterwards, as to
    the actor's own; the random actions before `learning_starts` stay, and training is untouched.

    Takes what TD3 takes, and:

    Args:
        epsilon: how often an action is refined; the paper's 0.25.
        solver: any of `facetwalk.solvers`; by default ADR-GD with the paper's settings.
        radius: how far an action may be from the actor's own in each entry, where 1 is half of
            that entry's range; by default anywhere.
        judge: the `"first"` critic, which TD3 trains its actor on, or the `"minimum"` of all.
        compile: compile the solver's steps: takes seconds once, and needs a C++ compiler.

    >>> agent = RefinedTD3("MlpPolicy", "Pendulum-v1", learning_starts=5, epsilon=1.0)
    >>> agent.learn(10).num_timesteps
    10
    """

    paper_settings = "td3"

    def __init__(
        self,
        *args: Any,
        epsilon: float = 0.25,
        solver: Method | Auto | None = None,
        radius: float | None = None,
        judge: Judge = "first",
        compile: bool = False,
        **kwargs: Any,
    ) -> None:
        if not 0 <= epsilon <= 1:
            raise InputError(f"epsilon must be a probability, from 0 to 1; it is {epsilon}")
        require_refinement(solver, radius, judge)
        self.epsilon = epsilon
        paper = AdrGd.for_experiment(self.paper_settings)
        self.solver: Method | Auto = paper if solver is None else solver
        self.radius = radius
        self.judge: Judge = judge
        self.compile = compile
        self._is_sampling = False
        super().__init__(*args, **kwargs)
        drawn = np.random.SeedSequence().generate_state(1)[0]
        self.dice = int(drawn) if self.seed is None else self.seed
        """With the number of the step it decides what is refined: so also after a `load`."""

    def _sample_action(self, *args: Any, **kwargs: Any) -> tuple[np.ndarray, np.ndarray]:
        self._is_sampling = True
        try:
            return super()._sample_action(*args, **kwargs)
        finally:
            self._is_sampling = False

    def predict(self, observation: Any, *args: Any, **kwargs: Any) -> Any:
        """As TD3's; while data are collected, with some of the actions refined."""
        actions, state = super().predict(observation, *args, **kwargs)
        if self._is_sampling:
            actions = self._refined_at_times(observation, actions)
        return actions, state

    def _refined_at_times(self, observations: Any, actions: np.ndarray) -> np.ndarray:
        """Actions `(environments, *shape)`, each refined with probability `epsilon`."""
        throws = np.random.default_rng([self.dice, self.num_timesteps]).random(len(actions))
        chosen = np.flatnonzero(throws < self.epsilon)
        self.logger.record_mean("refinement/share", len(chosen) / len(actions))
        if not len(chosen):
            return actions
        critic = action_value(self, observations, self.judge)
        critic = critic.select(critic.features.new_tensor(chosen).long())
        seed = self.dice + self.num_timesteps
        steps = recordings_of(self, self.compile)
        found = refined(self.policy, critic, actions[chosen], self.solver, self.radius, seed, steps)
        self.logger.record_mean("refinement/value_gain", float((found.after - found.before).mean()))
        actions = actions.copy()
        actions[chosen] = found.actions
        return actions


class RefinedDDPG(RefinedTD3, DDPG):
    """`stable_baselines3.DDPG`, refined as `RefinedTD3` is.

    >>> RefinedDDPG("MlpPolicy", "Pendulum-v1").solver.steps
    100
    """

    paper_settings = "ddpg"
