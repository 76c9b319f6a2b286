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

MRNN = Method("mrnn", "m-RNN by its own cost", "mrnn", seeds=3, minutes=10, priority=0)
MRNN_MLE = Method(
    "mrnn+mle",
    "two more epochs of likelihood: the control of all that goes on from m-RNN",
    "mrnn",
    (*GOING_ON, "objective.name=mle"),
    start="mrnn",
    seeds=3,
    minutes=2,
    priority=0,
)
PEOPLE = Method("people", "one caption that people wrote of each picture", kind="people", priority=0)


def from_mrnn(
    name: str,
    says: str,
    *changes: str,
    minutes: float,
    seeds: int = 1,
    priority: int = 2,
    start: str = "mrnn",
) -> Method:
    """A method that goes on from m-RNN, or from a method that did."""
    return Method(
        name,
        says,
        "mrnn",
        (*GOING_ON, *changes),
        start=start,
        seeds=seeds,
        minutes=minutes,
        priority=priority,
    )


SMILE = from_mrnn("mrnn+smile", "SMILE", "objective.name=smile", minutes=2, seeds=3, priority=1)
CDP = from_mrnn(
    "mrnn+cdp",
    "specificity by CDP, with likelihood beside it",
    "objective.name=specificity",
    "objective.loss=cdp",
    TAUGHT,
    "objective.compat=authors",
    "objective.mle_weight=1.0",
    minutes=10,
    seeds=3,
    priority=1,
)
