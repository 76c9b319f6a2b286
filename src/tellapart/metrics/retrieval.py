"""Whether a caption finds its own picture: recall@k, mean and median rank, from any matrix of scores.

The rank of a picture is the number of others in the pool that score at least as high: ties are broken
pessimistically, so that a retriever to which all pictures look alike has the worst ranks and not, by the
order of a file, the best. Papers count ranks from 0 (Lindh et al. 2018) or from 1 (most others); functions
here count from 0, and the signature of a measure names its base.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tellapart.errors import TellapartError
from tellapart.metrics.crowding import Bools, crowding, most_and_least, neighbours
from tellapart.metrics.material import Material, Metric
from tellapart.metrics.parts import RetrievalConfig
from tellapart.metrics.score import Floats, Pooled, Score, mean_score, signed
from tellapart.metrics.sentences import Ints

Matrix = NDArray[np.number[Any]]
Progress = Callable[[int, int], None]

ROWS = 256  # captions whose scores are looked at together


def build_retrieval(config: RetrievalConfig) -> Metric:
    """The measure as it is registered."""
    for k in config.at:
        _expect_positive(k)
    return lambda material: retrieval(material, config)


def retrieval(material: Material, config: RetrievalConfig) -> list[Score]:
    """Recall@k, mean and median rank of all captions; with features, also of the most and least crowded.

    Picture i of the matrix is that of caption i. Columns beyond the captions are pictures without one, which
    the captions must tell theirs from as well.
    """
    scores = _expect_similarity(material)
    pool = scores.shape[1]
    if material.features is not None and len(material.features) != pool:
        raise TellapartError(
            f"there are features of {len(material.features)} pictures and scores of {pool}",
            hint="crowding is told from the features of the same pictures, in the same order",
        )
    found = ranks(scores, ids=material.ids, progress=_watched(material, "ranking pictures"))
    results = rank_scores(found, config, pool=pool, retriever=material.retriever)
    if material.features is None:
        return results
    crowded = crowding(material.features, progress=_watched(material, "looking for similar pictures"))
    return results + rank_scores(found, config, pool=pool, retriever=material.retriever, crowded=crowded)


def rank_scores(
    found: Ints, config: RetrievalConfig, *, pool: int, retriever: str = "", crowded: Floats | None = None
) -> list[Score]:
    """Recall@k, mean and median of the ranks of captions, counted from 0; of all, or of some.

    Args:
        found: the rank of each caption's own picture.
        config: which recalls, and from what number ranks are counted in the result.
        pool: how many pictures each caption was held against, its own included.
        retriever: who ranked them, as signatures call it.
        crowded: how crowded the surroundings of each picture are, those with captions first; then only the
            captions of the most and of the least crowded are summed up, apart from one another.
    """
    details: dict[str, object] = {"retriever": _in_signatures(retriever)} if retriever else {}
    details |= {"ranks": f"from-{config.ranks_from}", "pool": pool, "ties": "pessimistic"}
    if crowded is None:
        return _summaries(found, config, details, inside=np.ones(len(found), dtype=bool))
    details["crowding"] = f"cosine-to-nearest-{neighbours(len(crowded))}"
    results = []
    for inside, which in zip(most_and_least(crowded[: len(found)]), ("most", "least"), strict=True):
        details["captions"] = int(inside.sum())
        results += _summaries(found, config, details, inside=inside, ending=f"-{which}-crowded")
    return results


def _in_signatures(name: str) -> str:
    """A name without the sign that stands between the details of a signature."""
    return name.replace("|", "/")


def ranks(
    scores: Matrix,
    own: ArrayLike | None = None,
    *,
    ids: Sequence[str] = (),
    rows: int = ROWS,
    progress: Progress | None = None,
) -> Ints:
    """The rank of each caption's own picture, counted from 0: how many others score at least as high.

    The matrix is read a few rows at a time, so that it may be a memory-mapped file.

    Args:
        scores: (captions, pictures), the greater the closer.
        own: the column of each caption's picture; by default caption i belongs to picture i.
        ids: names of captions and pictures for error messages.
        rows: how many captions are looked at together.
        progress: told how many captions are done, and of how many.
    """
    if scores.ndim != 2 or scores.dtype.kind not in "fiu":
        raise TellapartError(
            f"the scores are {scores.dtype} of shape {scores.shape}",
            hint="give a matrix of real numbers: one row a caption, one column a picture",
        )
    columns = _own_columns(own, captions=scores.shape[0], pictures=scores.shape[1])
    found = np.empty(len(columns), dtype=np.int64)
    for begin in range(0, len(columns), rows):
        block = np.asarray(scores[begin : begin + rows])
        _expect_finite(block, range(begin, begin + len(block)), range(block.shape[1]), ids)
        found[begin : begin + rows] = _block_ranks(block, columns[begin : begin + rows])
        if progress is not None:
            progress(begin + len(block), len(columns))
    return found


def embedding_ranks(
    texts: Matrix,
    images: Matrix,
    own: ArrayLike | None = None,
    *,
    rows: int = ROWS,
    progress: Progress | None = None,
) -> Ints:
    """As `ranks(texts @ images.T, own)`, of which only a few rows are ever held.

    A picture that is there twice ties with itself exactly: equal rows are multiplied once. Scores that are
    unlike only by rounding may fall out either way, as in any matrix product, whose rounding depends on the
    library and on how many rows are multiplied at once.

    Args:
        texts: embeddings of captions, (captions, d); normalise both sides for cosines.
        images: embeddings of pictures, (pictures, d).
        own: the row of each caption's picture; by default caption i belongs to picture i.
        rows: how many captions are looked at together.
        progress: told how many captions are done, and of how many.
    """
    if texts.ndim != 2 or images.ndim != 2 or texts.shape[1] != images.shape[1]:
        raise TellapartError(
            f"captions are embedded as {texts.shape} and pictures as {images.shape}",
            hint="give two matrices of equal width: one row a caption, one row a picture",
        )
    columns = _own_columns(own, captions=len(texts), pictures=len(images))
    # Half precision has no fast product, and its sums would tie what is not equal.
    precision = np.promote_types(np.result_type(texts, images), np.float32)
    pictures = images.astype(precision, copy=False)
    first, place = _distinct_rows(pictures)
    distinct = pictures[first]
    copies = np.bincount(place) if len(first) < len(place) else None
    found = np.empty(len(columns), dtype=np.int64)
    for begin in range(0, len(columns), rows):
        with np.errstate(over="ignore", invalid="ignore"):  # an error below names what is not finite
            block = texts[begin : begin + rows].astype(precision, copy=False) @ distinct.T
        _expect_finite(block, range(begin, begin + len(block)), first)
        found[begin : begin + rows] = _block_ranks(block, place[columns[begin : begin + rows]], copies)
        if progress is not None:
            progress(begin + len(block), len(columns))
    return found


def sentence_ranks(scores: Matrix, own: ArrayLike | None = None, *, rows: int = ROWS) -> Ints:
    """The rank of each picture's best own caption among all captions, counted from 0.

    A picture's other captions are no competitors of its best one, as in m-RNN, section 7.4, and VSE++.

    Args:
        scores: (captions, pictures), the greater the closer.
        own: the column of each caption's picture; by default caption i belongs to picture i.
        rows: how many captions are looked at together.
    """
    columns = _own_columns(own, captions=scores.shape[0], pictures=scores.shape[1])
    silent = np.setdiff1d(np.arange(scores.shape[1]), columns)
    if silent.size:
        raise TellapartError(
            f"picture {silent[0]} (counted from 0) has no caption that it could find",
            hint="leave pictures without captions out where pictures look for sentences",
        )
    its_own = np.asarray(scores[np.arange(len(columns)), columns])
    best = np.full(scores.shape[1], -np.inf)
    np.maximum.at(best, columns, its_own)
    found = -np.bincount(columns, weights=its_own >= best[columns], minlength=len(best)).astype(np.int64)
    for begin in range(0, len(columns), rows):
        block = np.asarray(scores[begin : begin + rows])
        _expect_finite(block, range(begin, begin + len(block)), range(block.shape[1]))
        found += np.count_nonzero(block >= best, axis=0)
    return found


def recalled(found: Ints, k: int) -> Floats:
    """For each rank, counted from 0, whether it is among the first k: 1 or 0."""
    _expect_positive(k)
    return np.asarray(found < k, dtype=np.float64)


def recall(found: Ints, k: int) -> float:
    """Recall@k: the share of captions whose picture is among the first k. Ranks are counted from 0."""
    return float(recalled(_expect_some(found), k).mean())


def mean_rank(found: Ints, *, ranks_from: int) -> float:
    """The mean rank, of ranks counted from 0; the first picture is given rank `ranks_from`."""
    return float(_expect_some(found).mean()) + ranks_from


def median_rank(found: Ints, *, ranks_from: int) -> float:
    """The median rank, of ranks counted from 0; the first picture is given rank `ranks_from`.

    It is the plain median: between two middle ranks it is their mean. Lindh et al. print floor(median) + 1
    beside a mean rank that is counted from 0.
    """
    return float(np.median(_expect_some(found))) + ranks_from


def _block_ranks(block: Matrix, columns: Ints, copies: Ints | None = None) -> Ints:
    """Ranks of some captions; where a column stands for several equal pictures, `copies` says how many."""
    ahead = block >= block[np.arange(len(block)), columns][:, None]
    counts = np.count_nonzero(ahead, axis=1) if copies is None else ahead @ copies
    return np.asarray(counts - 1, dtype=np.int64)


def _distinct_rows(values: Matrix) -> tuple[Ints, Ints]:
    """Which rows are unlike all rows before them; and for each row, which of these it is equal to."""
    numbers: dict[bytes, int] = {}
    # Adding zero makes -0.0 and 0.0 the same bytes.
    place = [numbers.setdefault((row + 0).tobytes(), len(numbers)) for row in values]
    where = np.asarray(place, dtype=np.int64)
    return np.unique(where, return_index=True)[1], where


def _own_columns(own: ArrayLike | None, *, captions: int, pictures: int) -> Ints:
    columns = np.arange(captions) if own is None else np.asarray(own)
    if columns.shape != (captions,) or not np.issubdtype(columns.dtype, np.integer):
        raise TellapartError(
            f"there are {captions} captions, and their pictures are given as {columns.dtype} {columns.shape}",
            hint="give the number of its picture for each caption",
        )
    outside = np.flatnonzero((columns < 0) | (columns >= pictures))
    if outside.size:
        raise TellapartError(
            f"caption {outside[0]} (counted from 0) belongs to picture {columns[outside[0]]}, "
            f"and there are {pictures} pictures",
            hint="every caption's picture has to be in the pool; their numbers begin at 0",
        )
    return columns.astype(np.int64)


def _expect_finite(
    block: Matrix, captions: Sequence[int], pictures: Sequence[int] | Ints, ids: Sequence[str] = ()
) -> None:
    # One sum says of a whole block whether to look closer: it is finite only if every score is.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(block.sum(dtype=np.float64)):
            return
    bad = np.argwhere(~np.isfinite(block))
    if not len(bad):
        return
    row, column = bad[0].tolist()
    caption, picture = _named(captions[row], ids), _named(int(pictures[column]), ids)
    raise TellapartError(
        f"the score of caption {caption} for picture {picture} is {block[row, column]}",
        hint="ranks need finite scores; NaN or an infinity means that something failed in the retriever",
    )


def _named(number: int, ids: Sequence[str]) -> str:
    return repr(ids[number]) if number < len(ids) else f"{number} (counted from 0)"


def _expect_similarity(material: Material) -> Matrix:
    scores = material.similarity
    if scores is None:
        raise TellapartError(
            "retrieval needs the scores of a retriever: how close each caption is to each picture",
            hint="give them with --similarity FILE.npy, one row a caption and one column a picture",
        )
    if scores.ndim != 2 or len(scores) != len(material) or scores.shape[1] < len(material):
        raise TellapartError(
            f"the scores are {' x '.join(map(str, scores.shape))}, and there are {len(material)} captions",
            hint="they have a row for each image's caption and a column for each picture, in the order of "
            "the captions; further columns may be pictures without a caption",
        )
    return scores


def _expect_positive(k: int) -> None:
    if k < 1:
        raise TellapartError(f"recall@{k} means nothing", hint="recall@1 asks for the first picture")


def _expect_some(found: Ints) -> Ints:
    if not len(found):
        raise TellapartError("there is no rank to sum up", hint="retrieval needs a caption at least")
    return found


def _watched(material: Material, what: str) -> Progress:
    return lambda done, total: material.watch(what, done, total)


def _summaries(
    found: Ints, config: RetrievalConfig, details: dict[str, object], *, inside: Bools, ending: str = ""
) -> list[Score]:
    """Recalls, mean and median rank of the captions inside."""
    signature = signed(details)
    means = [
        _mean_inside(
            f"R@{k}{ending}", recalled(found, k), inside, signature, notes=_why_one(k, details["pool"])
        )
        for k in dict.fromkeys(config.at)
    ]
    base = config.ranks_from
    means.append(_mean_inside(f"Mean-rank{ending}", found.astype(np.float64) + base, inside, signature))
    median = median_rank(found[inside], ranks_from=base)
    return [*means, Score(f"Median-rank{ending}", median, signature)]


def _why_one(k: int, pool: object) -> tuple[str, ...]:
    if not isinstance(pool, int) or k < pool:
        return ()
    return (f"R@{k} is 1 whatever the captions say: the pool has no more than {pool} pictures",)


def _mean_inside(
    name: str, each: Floats, inside: Bools, signature: str, *, notes: tuple[str, ...] = ()
) -> Score:
    """A mean over some of the captions; the others have no value."""
    if inside.all():
        return mean_score(name, each, signature, notes=notes)
    corpus = float(each[inside].mean())
    statistics = np.column_stack([np.where(inside, each, 0.0), inside])

    def formula(sums: Floats) -> Floats:
        # A resampled corpus may hold none of these captions, and then says nothing against the value of all.
        unknown = np.full(sums.shape[:-1], corpus)
        return np.asarray(np.divide(sums[..., 0], sums[..., 1], out=unknown, where=sums[..., 1] > 0))

    each = np.where(inside, each, np.nan)
    return Score(name, corpus, signature, each, Pooled(statistics, formula), notes)
