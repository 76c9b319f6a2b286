"""Work in pieces: nothing is left out or done twice, and no batch is too great."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tellapart.reranking.pieces import Piece, plan_pieces

sizes = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=6)


def test_by_hand() -> None:
    assert list(plan_pieces([2, 3], [4, 4], pairs=12)) == [
        [Piece(0, 0, 2), Piece(1, 0, 1)],
        [Piece(1, 1, 3)],
    ]


def test_a_hypothesis_with_too_many_captions_comes_alone() -> None:
    assert list(plan_pieces([2], [100], pairs=10)) == [[Piece(0, 0, 1)], [Piece(0, 1, 2)]]


@given(sizes, st.integers(1, 30))
def test_every_hypothesis_comes_once_and_in_order(images: list[tuple[int, int]], pairs: int) -> None:
    hypotheses, captions = [one for one, _ in images], [other for _, other in images]
    batches = list(plan_pieces(hypotheses, captions, pairs=pairs))
    pieces = [piece for batch in batches for piece in batch]
    assert [(piece.image, place) for piece in pieces for place in range(piece.begin, piece.end)] == [
        (image, place) for image, count in enumerate(hypotheses) for place in range(count)
    ]
    for batch in batches:
        work = sum((piece.end - piece.begin) * captions[piece.image] for piece in batch)
        assert batch
        assert work <= pairs or sum(piece.end - piece.begin for piece in batch) == 1
