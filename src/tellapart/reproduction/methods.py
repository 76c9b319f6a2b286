"""Methods that several papers share: base captioners, and how all that goes on from one is trained."""

from __future__ import annotations

from tellapart.reproduction.plan import JUDGE, TEACHER, Method

# The judge's recall is a curve of the report; the last weights are kept, whatever it says.
WATCHED = f"training.rank_by={{{JUDGE}}}"
# All that goes on from an m-RNN or a Transformer does so for two epochs; at one rate, but for SLOWLY.
GOING_ON = (
    "training.epochs=2",
    "training.evaluate_every=150",
    "training.keep=last",
    "training.stop_metric=mean-rank",
    WATCHED,
    "training.patience=0",
    "optimiser.learning_rate=2e-4",
    "optimiser.warmup_steps=50",
)
SLOWLY = "optimiser.learning_rate=5e-5"  # captions drawn by chance are noisy teachers
TAUGHT = f"objective.retriever={{{TEACHER}}}"
SPECIFIC = ("objective.name=specificity", TAUGHT, "objective.compat=authors", "objective.mle_weight=1.0")
LIKELIHOOD, CONTRASTIVE = "objective.name=mle", "objective.name=contrastive"
# For large captioners: two thirds of the time, where the processor has products in 16 bits.
FAST = "training.precision=fast"
RANKED_FAST = (
    "Millions of likelihoods rank pictures and sentences: their matrix products are in 16 bits where the "
    "processor knows how."
)
# The halves of the training captions as data; `halves` is a method of UNKT's.
HIGH = ("data.format=jsonl", "data.images=", "data.path={halves}/high.jsonl")
LOW = ("data.format=jsonl", "data.images=", "data.path={halves}/low.jsonl")
GAN = ("objective.name=gan", "objective.mle_weight=1.0", SLOWLY)


def go_on(
    start: Method, name: str, says: str, *changes: str, minutes: float, seeds: int = 1, priority: int = 2
) -> Method:
    """A method that goes on from another."""
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


MRNN = Method("mrnn", "m-RNN by its own cost", "mrnn", seeds=3, minutes=8, priority=0)
MRNN_MLE = go_on(
    MRNN,
    "mrnn+mle",
    "as much more of likelihood: the control of all that goes on from m-RNN",
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
    minutes=4,
    seeds=3,
    priority=1,
)
