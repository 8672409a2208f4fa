"""How often the simulated model errs."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace


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
    answers_half: float = 0.0  # only half of the sentences of an answer, every other time said so
    rewords: float = 0.0  # plans to do again, in other words, what is known or listed
    denies_met: float = 0.0  # does not say that the objective is met when it is
    claims_met: float = 0.0  # says so when it is not


NO_NOISE = Noise(**{noise.name: 0.0 for noise in fields(Noise)})

TEMPERS: dict[str, Noise] = {
    "none": NO_NOISE,
    "noise": Noise(),
    "half": replace(NO_NOISE, answers_half=0.5),
    "reworder": replace(NO_NOISE, rewords=0.8, denies_met=1.0),
    "namer": replace(NO_NOISE, renames=1.0, drops_inputs=0.5),
    "babbler": replace(NO_NOISE, answers_in_prose=0.5, plans_nothing=0.2, claims_met=0.2),
    "misjudge": replace(NO_NOISE, misjudges_answer=0.2, misjudges_lack=0.2, errs_in_check=0.25),
    # held out: no setting, threshold or prompt may be chosen by what it does
    "worst": replace(
        Noise(), answers_half=0.3, rewords=0.3, denies_met=0.5, claims_met=0.1, renames=0.7
    ),
}
"""Kinds of model, by what they do wrong."""
