"""How often the simulated model errs."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How often the model errs, as shares of the occasions on which it could."""

    forgets_input: float = 0.03  # says that it lacks what stands there
    refuses: float = 0.02
    is_partial: float = 0.05  # a lack that comes with an account of what is there
    adds_lack: float = 0.02  # an answer that asks for more than it needs
    # a value in place of a lack: nothing in the prompt tells it from a true one
    invents: float = 0.0
    repeats: float = 0.05  # proposes what is listed or known
    renames: float = 0.2  # gives a task another name than it usually gets
    drops_inputs: float = 0.1  # a task's name does not say what it needs
    answers_in_prose: float = 0.03  # where JSON was asked for
    plans_nothing: float = 0.03
    misjudges_lack: float = 0.02  # calls a lack an answer
    misjudges_answer: float = 0.02  # and the other way round
    errs_in_check: float = 0.05
    cites_what_is_not_there: float = 0.05


NO_NOISE = Noise(**{noise.name: 0.0 for noise in fields(Noise)})
