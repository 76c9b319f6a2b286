"""The tokenizer against Stanford's, live, on hard, random and real captions."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import string
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tellapart.metrics.ptb.tokenizer import tokenize, tokenize_all

Stanford = Callable[[Sequence[str]], list[list[str]]]

LINE_END = re.compile("\r\n|[\n\v\f\r\u2028\u2029]")
OPENING = re.compile(" *[A-Z][a-z]* ")

HARD = r"""
the letter K. is next to U.S. and U.K. The sign reads B. A dog, e.g. Rex vs. Mr. O'Malley, Jr. of Acme Inc.
Then etc.
no. 5 No. five fig. 3 figs. x art. 2 modern art. pp. 12-14 op. 7 ca. 1900 Bldg. 4 pty. ltd. co. limited Pty.
x
She cannot, I gonna, you gotta gimme lemme wanna dunno 'tis 'twas don't ain't y'all Y'know o'clock 'em 'n'
rock'n'roll
rock 'n' roll in the '60s, '99 and 90's; it's the dogs' bowl, isn't it? "Who's there?" 'Nobody' ``odd'' `x'
Weighs 1-1/2 lbs, 22 3/4 inches, 3.5" wide, 1,000,000.50 or .5, -5 +3 10:30am 5-pm 12/25/2015 1/2/99
2015-12-25
$5 US$5.00 AU$ 5 £20 €30 5¢ ¥400 #1 # 2 50% 5°C ½ cup ⅓ ⅛ 2² H₂O ²³ 1⁄2 3\/4
call (555) 555-1234 or 555 555 1234, +1 555.123.4567, ++44 20 7946 0958 now
see http://a.b/c?d=e, https://x.y/(z) www.foo.com. foo.com/bar; a_b@c.d <me@x.org> @user_1 #tag #42 #été @@
##
<b>bold</b> <br /> <a href="x y">z</a> <img src='q' > <unk> <!-- note --> <?php x> </s> << >> < > <3 a<b
&amp; &lt;b&gt; &quot;x&quot; &apos;s &nbsp;x &mdash; caf&eacute; &#123; &HT; AT&T A&M R&amp;B S&P-500 S&Ls
C++ c# F#.
:) :-) ;-D =P :( :'( 8) ^_^ (^.^) (>_<) x_x -_- >.< :D. (:) [:] :o) smile:) x:)y
... .. .... ..... ...... . . . . . . . . . . x…y --- -- - ---- ----- a--b a - b – — ― ‐ ‑ − _ __ a_b
black-and-white t-shirt x-ray non-U.S. Canada-U.S U.S.-U.K. anti- pro- pre-1900 mid-'90s 8AM-6PM co-ed.
d'Or-l'eau
and/or he/she/it w/o w/ 24/7 b/w man/ woman a\/b 9/11/01 either/or/neither/nor
image.jpg a.txt, index.html? main.c. file.tar.gz readme.md hello.world hello!world what?yes Hi!!!Bye ?! !?
¿que? ¡si!
-LRB- -rrb- (a) [b] {c} (d.) "e." 'f.' g.) h." | || a|b ~ ^ * ** \* \ / + = == % & $ a$ A$ @ # `
naïve Éclair ŞİĞ ıI ſK Σ ΟΔΟΣ ΣΑΣ-ΣΑΣ Жук 日本語、テスト。「引用」！？ 한국어 हिन्दी ไทย עִבְרִית عربي ٣٫٥ ١٢
😀 x😀y 👨‍👩‍👧 🇺🇸 ❤️ ☺ ★ → ∞ © ® ™ ¶ § † ‡ • · × ÷ ¬ ª º µ ‰ № ℃ Ⅷ ⓐ http://😀 😀@😀.😀
“curly” ‘single’ the ’80s ’tis don’t „low“ ‚low‘ «guillemets» ‹x› ´acute´ ″ ′ it’s O’Brien ‘em n‘t don`t
Dept. Blvd. Rd. Sr. Calif. Miss. miss. Mass. mass. Ill. ill. Wash. wash. Del. del. Mt. Ft. St. Ave. Ph.D.
Ed.D. Ph. D
Ma. a.k.a. A.K.A cf. i.e. i.e., a.m. A.M. p.m., D.C. D.C., U.S.A x.y.z. e.e. cummings J. R. R. Tolkien's
G.I. Joe
""".strip().split("\n")
HARD += [
    "a\u00adb \u00ad co\u00adop. x\u200by z\u200cw v\u200du \ufeffbom \u202ebidi\u202c \u2066x\u2069",
    "a\x00b c\x7fd \x1b x\x1cy http://x\u00a0y \u00a0www.foo.com thin\u2009space \u2005x",
    "wide\u3000space tab\there next\x85line 22\u00a03/4 a\u0301 \u0301",
    "<a >> tag <b >x and an address that ends in a hard space http://x\u00a0",
    "\U00010400\U0001d7da no. \U0001d7dax K. \U00010400",
]
# The jar would look for the end of this on the lines after it, so it only stands whole.
ODD = "x.[^x= a b<>] -- '' , and then a tag <a b='c'>K. The end"


def differences(captions: Sequence[str], stanford: Stanford) -> list[tuple[str, list[str], list[str]]]:
    """What the two make of captions, each followed by the line that ours takes to come next."""
    after = ["A man" if OPENING.match(caption.rstrip(" ")) else "x" for caption in captions]
    lines = [line for pair in zip(captions, after, strict=True) for line in pair]
    cases = zip(captions, stanford(lines)[::2], tokenize_all(captions), strict=True)
    return [(caption, theirs, ours) for caption, theirs, ours in cases if theirs != ours]


def drawn(strategy: st.SearchStrategy[str], count: int) -> list[str]:
    """Many strings of a strategy, so that one Java process can answer them all."""
    gathered: list[str] = []

    @settings(
        max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(strategy)
    def gather(text: str) -> None:
        gathered.append(LINE_END.sub(" ", text))

    gather()
    assert len(gathered) >= 1000
    return gathered


def test_hard_strings_whole_and_in_every_part(stanford: Stanford) -> None:
    pieces = [word for line in HARD for word in line.split(" ")]
    pairs = [f"{one} {other}" for one, other in itertools.pairwise(pieces)]
    glued = [one + other for one, other in itertools.pairwise(pieces)]
    assert differences([ODD, *HARD, *pieces, *pairs, *glued], stanford) == []


REAL = string.ascii_letters + string.digits + " " * 12 + "!\"#$%&'()*+,-./:;<=>?@[]\\^_`{|}~´é’"
NASTY = st.characters(exclude_categories=["Cs"])
PIECES = st.sampled_from(
    sorted({word for line in HARD for word in line.split(" ")} | {"", "  ", "\u00a0", "\x85"})
)


@pytest.mark.parametrize(
    "strategy",
    [
        st.text(st.sampled_from(REAL), max_size=40),
        st.text(NASTY | st.sampled_from(REAL), max_size=25),
        st.lists(PIECES, max_size=9).map(" ".join),
        st.lists(PIECES | st.text(NASTY, max_size=2), max_size=6).map("".join),
    ],
    ids=["characters of captions", "any character", "hard words", "hard words run together"],
)
def test_random_strings(strategy: st.SearchStrategy[str], stanford: Stanford) -> None:
    assert differences(drawn(strategy, 1500), stanford) == []


def test_five_thousand_words_and_no_space_at_all(stanford: Stanford) -> None:
    words = " ".join(HARD).split(" ")
    long = [" ".join((words * 20)[:5000]), "a,b." * 3000, "(" * 4000, "x" * 9000, "<!a" * 2000, "a.b@" * 2000]
    assert differences(long, stanford) == []


def test_the_hard_strings_of_the_ground_truth(real_data: Path) -> None:
    truth = json.loads((real_data.parent / "metrics" / "ptb_hard.json").read_text(encoding="utf-8"))
    assert len(truth["raw"]) == len(truth["tok"]) > 40
    for raw, expected in zip(truth["raw"], truth["tok"], strict=True):
        assert " ".join(tokenize(raw)) == expected


def test_the_captions_of_the_ground_truth(real_data: Path) -> None:
    truth = json.loads((real_data.parent / "metrics" / "loo_500.json").read_text(encoding="utf-8"))
    raw = [*truth["candidates"], *(text for texts in truth["references"] for text in texts)]
    expected = [*truth["candidates_tok"], *(text for texts in truth["references_tok"] for text in texts)]
    assert len(raw) > 2000
    assert [" ".join(tokens) for tokens in tokenize_all(raw)] == expected


def coco(real_data: Path) -> list[str]:
    with gzip.open(real_data / "text" / "coco_captions_val2017.json.gz") as file:
        return [annotation["caption"] for annotation in json.load(file)["annotations"]]


def flickr30k(real_data: Path) -> list[str]:
    with gzip.open(real_data / "text" / "flickr30k_captions.jsonl.gz", "rt", encoding="utf-8") as file:
        return [caption for line in file for caption in json.loads(line)["captions"]]


# The jar lets the next caption decide whether a last "K." is a letter; in file order this is how often it
# decides otherwise than a caption read alone.
@pytest.mark.parametrize(("read", "count", "decided_by_the_next"), [(coco, 25014, 0), (flickr30k, 155070, 3)])
def test_every_real_caption_in_the_order_of_its_file(
    read: Callable[[Path], list[str]],
    count: int,
    decided_by_the_next: int,
    real_data: Path,
    stanford: Stanford,
) -> None:
    captions = [LINE_END.sub(" ", caption) for caption in read(real_data)]
    assert len(captions) == count
    cases = zip(captions, tokenize_all(captions), stanford(captions), strict=True)
    different = [(caption, ours, theirs) for caption, ours, theirs in cases if ours != theirs]
    assert len(different) == decided_by_the_next, different[:5]
    assert all(ours[:-1] == theirs[:-1] and f"{ours[-1]}." == theirs[-1] for _, ours, theirs in different)
