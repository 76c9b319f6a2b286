"""Methods that several papers share: base captioners, and how all that goes on from one is trained."""

from __future__ import annotations

from tellapart.reproduction.plan import TEACHER, Method

# All that goes on from a base does so for two epochs; nothing but the objective differs.
GOING_ON = (
    "training.epochs=2",
    "training.evaluate_every=1000000",  # at the end alone: what is kept is what came out there
    "training.stop_metric=loss",
    "training.patience=0",
    "training.core_minutes=0",
    "optimiser.learning_rate=2e-4",
    "optimiser.warmup_steps=50",
)
SLOWLY = "optimiser.learning_rate=5e-5"  # captions drawn by chance are noisy teachers
TAUGHT = f"objective.retriever={{{TEACHER}}}"
SPECIFIC = ("objective.name=specificity", TAUGHT, "objective.compat=authors", "objective.mle_weight=1.0")
LIKELIHOOD, CONTRASTIVE = "objective.name=mle", "objective.name=contrastive"


def go_on(
    start: Method, name: str, says: str, *changes: str, minutes: float, seeds: int = 1, priority: int = 2
) -> Method:
    """A method that goes on from another, with as many steps as all that do."""
    return Method(
        name,
        says,
        start.recipe,
        (*GOING_ON, *changes),
        start=start.name,
        seeds=seeds,
        minutes=minutes,
        priority=priority,
    )


MRNN = Method("mrnn", "m-RNN by its own cost", "mrnn", seeds=3, minutes=10, priority=0)
MRNN_MLE = go_on(
    MRNN,
    "mrnn+mle",
    "two more epochs of likelihood: the control of all that goes on from m-RNN",
    LIKELIHOOD,
    seeds=3,
    minutes=2,
    priority=0,
)
PEOPLE = Method("people", "one caption that people wrote of each picture", kind="people", priority=0)
SMILE = go_on(MRNN, "mrnn+smile", "SMILE", "objective.name=smile", minutes=2, seeds=3, priority=1)
CDP = go_on(
    MRNN,
    "mrnn+cdp",
    "specificity by CDP, with likelihood beside it",
    *SPECIFIC,
    "objective.loss=cdp",
    minutes=10,
    seeds=3,
    priority=1,
)
