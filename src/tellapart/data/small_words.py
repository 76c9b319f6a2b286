"""Words that hold English captions together: which of them cannot end one, and which may well come twice."""

from __future__ import annotations

_ARTICLES = "a an the its my your his our their whose every"
_CONJUNCTIONS = "and or but nor as if than because although though unless while until since whether which who"
_PREPOSITIONS = (
    "of with without within at for from in into onto to toward towards upon near beside atop among amongst "
    "amid between against during despite except like via per"
)
_LEADING = "is are was were am has have had very"
UNFINISHED = frozenset(" ".join((_ARTICLES, _CONJUNCTIONS, _PREPOSITIONS, _LEADING)).split())
"""Last words of captions that end in the middle.

Words that end good captions now and then are not on the list, though many broken ones end in them too.
"""

_PLACES = (
    "on by over under up down off out through around about behind above below across along inside outside "
    "beneath underneath past before after next front back top side"
)
_PRONOUNS = (
    "he she it they we you i him her them us me himself herself itself themselves this that these those "
    "there what where when some each all both other others another many several few more not no so"
)
_NUMBERS = "one two three four five six seven eight nine ten"
_AUXILIARIES = "be been being do does did can could will would may might must"
FUNCTION_WORDS = UNFINISHED | frozenset(" ".join((_PLACES, _PRONOUNS, _NUMBERS, _AUXILIARIES)).split())
"""Words that say little alone: a good caption may have them more than once."""
