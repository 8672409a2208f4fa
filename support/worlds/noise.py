"""How often the simulated model errs, and which of the fields of a reply it fills."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

HONESTY = ("fills_lack", "fills_unanswered", "owns_repeats")  # of these 1 is without fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How often the model errs, as shares of the occasions on which it could; of the fields in
    `HONESTY`, how often it fills them when it should."""

    fills_lack: float = 1.0  # else its own lack is said in prose
    fills_unanswered: float = 1.0  # else creation calls every result an answer
    owns_repeats: float = 0.5  # else what is listed or known is proposed as if it were new
    forgets_input: float = 0.03  # says that it lacks what stands there
    refuses: float = 0.02
    claims_done: float = 0.0  # says that it is done, and nothing else
    echoes_task: float = 0.0  # says the task's own words, and nothing else
    is_partial: float = 0.05  # a lack that comes with an account of what is there
    says_lack_twice: float = 0.1  # in prose beside the field
    adds_lack: float = 0.02  # an answer that asks for more than it needs
    # a value in place of a lack: nothing in the prompt tells it from a true one
    invents: float = 0.0
    repeats: float = 0.05  # proposes what is listed or known
    renames: float = 0.2  # gives a task another name than it usually gets
    drops_inputs: float = 0.1  # a task's name does not say what it needs
    answers_in_prose: float = 0.03  # where JSON was asked for
    breaks_form: float = 0.0  # of JSON and of calls: cut, doubled braces, fenced, behind prose …
    plans_nothing: float = 0.03
    misjudges_lack: float = 0.02  # calls a lack an answer
    misjudges_answer: float = 0.02  # and the other way round
    errs_in_check: float = 0.05
    cites_what_is_not_there: float = 0.05
    answers_half: float = 0.0  # only half of the sentences of an answer, every other time said so
    rewords: float = 0.0  # plans to do again, in other words, what is known or listed
    denies_met: float = 0.0  # does not say that the objective is met when it is
    claims_met: float = 0.0  # says so when it is not


NO_NOISE = Noise(**{noise.name: float(noise.name in HONESTY) for noise in fields(Noise)})

TEMPERS: dict[str, Noise] = {
    "none": NO_NOISE,
    "noise": Noise(),
    # fill only one of the two fields that say what is lacking, or none; all are honest in a check
    "own_lack_only": replace(NO_NOISE, fills_unanswered=0.0),
    "unanswered_only": replace(NO_NOISE, fills_lack=0.0),
    "neither": replace(NO_NOISE, fills_lack=0.0, fills_unanswered=0.0),
    "refuser": replace(NO_NOISE, refuses=0.2),
    "claimer": replace(NO_NOISE, claims_done=0.2),
    "echo": replace(NO_NOISE, echoes_task=0.2),
    "false_met": replace(NO_NOISE, claims_met=0.3),
    "broken": replace(NO_NOISE, breaks_form=0.3),
    "half": replace(NO_NOISE, answers_half=0.5),
    "reworder": replace(NO_NOISE, rewords=0.8, denies_met=1.0, owns_repeats=0.5),
    "secret_reworder": replace(NO_NOISE, rewords=0.8, denies_met=1.0, owns_repeats=0.0),
    "namer": replace(NO_NOISE, renames=1.0, drops_inputs=0.5),
    "babbler": replace(NO_NOISE, answers_in_prose=0.5, plans_nothing=0.2, claims_met=0.2),
    "misjudge": replace(NO_NOISE, misjudges_answer=0.2, misjudges_lack=0.2, errs_in_check=0.25),
    "inventor": replace(NO_NOISE, invents=0.03),
    # held out: no setting, threshold or prompt may be chosen by what it does
    "worst": replace(
        Noise(), answers_half=0.3, rewords=0.3, denies_met=0.5, claims_met=0.1, renames=0.7
    ),
    "all_at_once": replace(
        NO_NOISE, refuses=0.1, claims_done=0.1, echoes_task=0.1, claims_met=0.1, breaks_form=0.2
    ),
}
"""Kinds of model, by what they do wrong."""
