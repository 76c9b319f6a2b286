"""The rules of the tokenizer, as data: what is one token, and how it is spelt.

The longest match wins, and the earlier rule among equals. `followed_by` counts towards the length of a match
but is not part of the token; where it could begin in several places, the token is as long as possible.
Expressions are written in the notation of `automaton`: letters match both cases except in brackets, so that
`[M]iss` is the state and `Mr` is a title however it is written.

The rules are those of Stanford's lexer as it was in August 2014, oddities included: they decide scores. Line
ends never reach them. One of its rules is left out: after some abbreviations at the end of a sentence it says
the full stop twice, and full stops are not scored.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tellapart.metrics.ptb import spelling
from tellapart.metrics.ptb.automaton import Membership

# Letters and digits are those of Unicode 6.2; these came, or became letters, later. The spans reach over code
# points that are still free, so that a newer Python changes nothing.
_LATER = """
    037F 0528-052F 0560 0588 05EF 0860-089F 08A1 08AD-08FF 0978 0980 09FC 0AF9 0C34 0C5A-0C5F 0C80 0CDC-0CDD
    0D04 0D54-0D5F 0DE6-0DEF 0E86 0E89 0E8C 0E8E-0E93 0E98 0EA0 0EA8-0EA9 0EAC 13F5-13FF 16F1-16FF 170D 171F
    1878 191D-191E 19B0-19C0 19C8-19C9 1B4C 1C80-1CBF 1CF2-1CF3 1CFA 2C2F 2C5F 312E-312F 31BB-31BF 4DB6-4DBF
    9FCD-9FFF A698-A69D A78F A794-A79F A7AB-A7F7 A8FD-A8FE A9E0-A9FF AA7E-AA7F AB30-ABBF
"""
_EDGES = [
    int(edge, 16) + beyond for span in _LATER.split() for beyond, edge in enumerate((span[:4], span[-4:]))
]
_ONCE_LETTERS = "\u1885\u1886"  # Mongolian marks that were letters then


def _is_later(character: str) -> bool:
    return bisect_right(_EDGES, ord(character)) % 2 == 1


def _is_letter(character: str) -> bool:
    return (character.isalpha() and not _is_later(character)) or character in _ONCE_LETTERS


def _is_digit(character: str) -> bool:
    return character.isdecimal() and not _is_later(character)


def _is_anything(character: str) -> bool:
    return True


def _one_of(words: str) -> str:
    return "|".join(words.split())


# Marks inside words that are no letters, mostly vowel signs and accents of scripts below U+0F00.
_MARKS = (
    r"\u00AD\u02C2-\u02C5\u02D2-\u02DF\u02E5-\u02FF\u0300-\u036F\u0375\u0378\u0379\u0384\u0385\u03F6\u0483-\u0487"
    r"\u055A-\u055F\u0591-\u05BD\u05BF\u05C1\u05C2\u05C4\u05C5\u05C7\u0615-\u061A\u064B-\u065E\u0670\u06D6-\u06EF"
    r"\u06FD\u06FE\u070F\u0711\u0730-\u074C\u07A6-\u07B0\u07EB-\u07F3\u07FA\u0900-\u0903\u093C\u093E-\u094E"
    r"\u0951-\u0955\u0962\u0963\u0981-\u0983\u09BC-\u09C4\u09C7\u09C8\u09CB-\u09CD\u09D7\u09E2\u09E3\u0A01-\u0A03"
    r"\u0A3C\u0A3E-\u0A4F\u0A81-\u0A83\u0ABC-\u0ACF\u0B82\u0BBE-\u0BC2\u0BC6-\u0BC8\u0BCA-\u0BCD\u0C01-\u0C03"
    r"\u0C3E-\u0C56\u0D3E-\u0D44\u0D46-\u0D48\u0E31\u0E34-\u0E3A\u0E47-\u0E4E\u0EB1\u0EB4-\u0EBC\u0EC8-\u0ECD"
)

# Symbols that stand alone, wherever they are.
_SYMBOLS = (
    r"+%&~\^|\\\u00A6-\u00A9\u00AC\u00AE-\u00BA\u00D7\u00F7\u0387\u05BE\u05C0\u05C3\u05C6\u05F3\u05F4\u0600-\u0603"
    r"\u0606-\u060A\u060C\u0614\u061B\u061E\u066A\u066D\u0703-\u070D\u07F6-\u07F8\u0964\u0965\u0E4F\u1FBD\u2016\u2017"
    r"\u2020-\u2023\u2030-\u2038\u203B\u203E-\u2042\u2044\u207A-\u207F\u208A-\u208E\u2100-\u214F\u2190-\u2BFF\u3012"
    r"\u30FB\uFF01-\uFF0F\uFF1A-\uFF20\uFF3B-\uFF40\uFF5B-\uFF65"
)

_MONTHS_AND_DAYS = """
    Apr Aug Dec Feb Fri Jan Jul Jun Mar Mon Nov Oct Sep Sept Thu Thurs Tue Tues Wed
"""
_STATES = """
    Ala Ariz [A]rk [A]z Calif Colo Conn Ct Dak [D]el Fla Ga [I]ll Ind Kan Kans Ky [L]a [M]ass Md
    Mich Minn [M]iss Mo Mont Neb Nev Okla [O]re [P]a Penn Tenn [T]ex Va Vt [W]ash Wis Wisc Wyo
"""
_COMPANIES = """
    Assn Bancorp Bhd Co Corp Cos Inc Intl Ltd Plc Ppt[e] Ppt[e]s Ppt[y] Ppt[y]s Pt[e] Pt[e]s
    Pt[y] Pt[y]s Rt Sys Univ
"""
_OTHER_ENDINGS = r"""
    al Bldg Blvd Bros Ed\.D Esq est etc ext Jr Ph\.D Rd seq sq Sr tel
"""
_TITLES = """
    Adj Adm Adv Assoc Asst Atty Attys Ave Brig Capt Cmdr Col Comdr Cpl Det Dr Drs Ens Ft Gen Gov
    Govs Hon Insp Lieut Lt Maj Messrs [M]iss Mlle Mme Mr Mrs Ms Msgr Mt Pfc Pres Prof Profs Pvt Rep
    Reps Rev Sen Sens Sfc Sgt Spc St Ste Supt Supts
"""
_OTHER_BEGINNINGS = r"""
    a\.k\.a Alex cf Cie Dept Elec Invt Jos M[f]g M[t]g Natl Ph TREAS vs Wm
"""
_BEFORE_NUMBERS = """
    art bldg ca fig figs no nos op pp prop
"""
_SENTENCE_STARTS = r"""
    [A] [A]bout [A]ccording [A]dditionally [A]fter [A]n [A]s [A]t [B]ut [E]arlier [H]e [H]er [H]ere
    [H]owever [I]f [I]n [I]t [L]ast [M]any [M]ore [M]r\. [M]s\. [N]ow [O]nce [O]ne [O]ther [O]ur
    [S]he [S]ince [S]o [S]ome [S]uch [T]hat [T]he [T]heir [T]hen [T]here [T]hese [T]hey [T]his [W]e
    [W]hat [W]hen [W]hile [Y]et [Y]ou
"""
_FILE_TYPES = """
    bat bmp c cgi class cpp dll doc docx exe gif gz h htm html jar java jpeg jpg mov mp3 pdf php pl
    png ppt ps py sql tar txt wav x xml zip
"""

NAMES: Mapping[str, str | Membership] = {
    "letter": _is_letter,
    "digit": _is_digit,
    "any": _is_anything,
    # Characters
    "space": r"[ \t\u00A0\u2000-\u200A\u3000]",
    "gap": r"[ \t\u00A0\u2000-\u200A\u3000\u0085]",
    "pause": r"[,;:\u3001]",
    "hyphen": r"[-_\u058A\u2010\u2011]",
    "apostrophe": r"(['\u0092\u2019] | &apos;)",
    "apostrophe_like": r"({apostrophe} | [`\u0091\u2018\u201B])",
    # Words
    "sign": rf"({{letter}} | &[aeiouAEIOU](acute|grave|uml); | [{_MARKS}])",
    "word": r"{sign}({sign}|{digit})* ([.!?]{sign}({sign}|{digit})*)*",
    "clitic": r"{apostrophe}([msdMSD]|re|ve|ll)",
    "not": r"n{apostrophe_like}t",
    "elided": r"([dDoOlL]{apostrophe_like}({letter}|{digit}))?({letter}|{digit})+",
    "compound": r"{elided}({hyphen}{elided})*",
    "hyphenated": r"[A-Za-z0-9][A-Za-z0-9.,\u00AD]*(-([A-Za-z0-9\u00AD]+|{initials}\.))+",
    "joined": r"[A-Z]+(([+&]|&amp;)[A-Z]+)+",
    "slashed": r"[A-Za-z0-9]+(-[A-Za-z]+){0,2}",
    # Abbreviations
    "nations": r"(Canada|Sino|Korean|EU|Japan|non)-U\.S | U\.S\.-(U\.K|U\.S\.S\.R)",
    "initials": r"([A-Za-z](\.[A-Za-z])+ | {nations})",
    "acronym": r"([A-Za-z](\.[A-Za-z])* | {nations})",
    "before_small": rf"({_one_of(_MONTHS_AND_DAYS + _STATES + _COMPANIES + ' ' + _OTHER_ENDINGS)})\.",
    "before_capital": rf"({_one_of(_TITLES + _OTHER_BEGINNINGS)}|{{acronym}})",
    "sentence_start": rf"({_one_of(_SENTENCE_STARTS)}|{{tag}})",
    # What is not quite language
    "tag_name": r"[A-Za-z][A-Za-z0-9_:.-]*",
    "attribute": r"""{tag_name}([ ]*=[ ]*('[^']*'|"[^"]*"))?""",
    "tag": r"<([!?][A-Za-z-][^>]* | {tag_name}([ ]+{attribute})*[ ]*/? | /{tag_name})[ ]*>",
    "address": r'[^ \t\f"<>|().\u00A0{}]+',
    "path": r'/[^ \t\f"<>|()]+[^ \t\f"<>|.!?(){},-]',
    "quotes": r"({apostrophe} | '' | [`\u2018-\u201F\u0091-\u0094\u2039\u203A\u00AB\u00BB]{1,2})",
    "double_quote": '("|&quot;)',
    "eye": r"[-x\^=~<>']",
}


@dataclass(frozen=True)
class Rule:
    """What is one token, what must come after it, and how it is spelt."""

    token: str
    spelling: Callable[[str], str] = spelling.as_it_is
    followed_by: str = ""


RULES = (
    Rule(r"c\+\+ | (c|f)#"),
    # Words that are two: the second is read on its own.
    Rule("can", followed_by="not"),
    Rule("'t", followed_by="was|is"),
    Rule("gon|wan", followed_by="na"),
    Rule("got", followed_by="ta"),
    Rule("lem|gim", followed_by="me"),
    Rule("{tag}", spelling.with_hard_spaces),
    Rule(r"&(MD|mdash|ndash); | [\u0096\u0097\u2013-\u2015]", spelling.dash),
    Rule("&amp;", spelling.with_ampersand),
    Rule(r"&(HT|TL|UR|LR|QC|QL|QR|odq|cdq|#[0-9]+);"),
    Rule("{word}", spelling.without_soft_hyphens, "{clitic}"),
    Rule(r"[A-Za-z\u00AD]*[A-MO-Za-mo-z]\u00AD*", spelling.without_soft_hyphens, "{not}"),
    Rule("{word}", spelling.without_soft_hyphens),
    # Words that keep their apostrophe
    Rule(
        r"""{apostrophe}n{apostrophe}? | [lLdDjJ]{apostrophe} | (Dunkin|somethin|ol){apostrophe}
        | {apostrophe}(em|[2-9]0s|till?|cause) | [A-HJ-XZn]{apostrophe_like}{letter}{letter}+
        | {letter}+[aeiouyAEIOUY]{apostrophe_like}[aeiouA-Z]{letter}* | O{apostrophe_like}o
        | cont'd\.? | nor'easter | c'mon | e'er | s'mores | ev'ry | li'l | nat'l"""
    ),
    Rule("y{apostrophe}", followed_by="{letter}"),
    Rule(r'https?://[^ \t\f"<>|(){}]+[^ \t\f"<>|.!?(){},-]'),
    Rule(
        r"""(www\.([^ \t\f"<>|.!?(){},]+\.)+[a-zA-Z]{2,4}
        | ([^ \t\f"`'<>|.!?(){},-_$]+\.)+(com|net|org|edu)) ({path})?"""
    ),
    Rule(r'(&lt;|<)? [a-zA-Z0-9][^ \t\f"<>|()\u00A0{}]* @({address}\.)*{address} (&gt;|>)?'),
    Rule(r"@[a-zA-Z_][a-zA-Z_0-9]* | #{sign}+"),
    Rule("{clitic}", spelling.closing_quotes, "[^A-Za-z]"),
    Rule("{not}", spelling.closing_quotes, "[^A-Za-z]"),
    # Numbers
    Rule("{digit}{1,2}[-/]{digit}{1,2}[-/]{digit}{2,4}"),
    Rule(
        r"[-+]?({digit}+ | {digit}*([.:,\u00AD\u066B\u066C]{digit}+)+)",
        spelling.without_soft_hyphens,
    ),
    Rule(r"[\u207A\u207B\u208A\u208B]?([\u00B2\u00B3\u00B9\u2070\u2074-\u2079]+ | [\u2080-\u2089]+)"),
    Rule(
        r"({digit}{1,4}[- \u00A0])?{digit}{1,4}(\\?/|\u2044){digit}{1,4}",
        spelling.with_hard_spaces,
    ),
    Rule(r"[\u00BC-\u00BE\u2153-\u215E]", spelling.fraction),
    Rule(
        r"""-(RRB|LRB|RCB|LCB|RSB|LSB)- | C\.D\.s | pro- | anti- | S(&|&amp;)(P-500|Ls)
        | Cap{apostrophe}n | c{apostrophe}est""",
        spelling.with_ampersand,
    ),
    Rule(r"{slashed}(\\?/{slashed}){1,2}"),
    Rule(r"[A-Z]*\$ | #"),
    Rule(r"[\u0080\u00A2-\u00A5\u060B\u0E3F\u20A0\u20A4\u20AC\uFFE0\uFFE1\uFFE5\uFFE6]", spelling.currency),
    # Abbreviations. A single letter before a new sentence is a letter and a full stop.
    Rule("[A-Za-z]", followed_by=r"\.{gap}+{sentence_start}{gap}"),
    Rule(r"{initials}\.", followed_by="{gap}+{sentence_start}{gap}"),
    Rule(rf"({_one_of(_BEFORE_NUMBERS)})\.", followed_by="{gap}?{digit}"),
    Rule(r"(pt[eyEY]|co)\.", followed_by="{space}(ltd|lim)"),
    Rule("{before_small}", followed_by="{any}{any}"),
    Rule("{before_small}"),
    Rule(r"{before_capital}\."),
    Rule("{before_capital}", followed_by="{space}"),
    Rule("{acronym}", followed_by="{gap}"),
    Rule("{apostrophe}[0-9][0-9]", followed_by="{gap}"),
    Rule(
        rf"({{sign}}|{{digit}})+(\.({{sign}}|{{digit}})+)*\.({_one_of(_FILE_TYPES)})",
        followed_by="{gap}|[.?!,]",
    ),
    Rule(r"{word}\.", spelling.without_soft_hyphens, "{pause}"),
    Rule(
        r"""(\([0-9]{2,3}\)[ \u00A0]? | (\+\+?)?([0-9]{2,4}[- \u00A0])?[0-9]{2,4}[- \u00A0])
        [0-9]{3,4}[- \u00A0]?[0-9]{3,5} | ((\+\+?)?[0-9]{2,4}\.)?[0-9]{2,4}\.[0-9]{3,4}\.[0-9]{3,5}""",
        spelling.telephone,
    ),
    # Marks
    Rule("{double_quote}", spelling.opening_quotes, "[A-Za-z0-9$]"),
    Rule("{double_quote}", spelling.closing_quotes),
    Rule("<|&lt;|>|&gt;", spelling.comparison),
    Rule(r"[<>]?[:;=][-o*']?[()DPdpO\\{@|\[\]]", spelling.with_named_parentheses, "[^A-Za-z0-9]"),
    # The first of these is a slip of 2014, kept because it decides what is one token.
    Rule(
        r"""[x\^=~<>]\.\[\^x=[^<]*<>\] | {eye}_{eye} | \({eye}[_.]?{eye}\)
        | \([x\^=~<>']-[x\^=~<>'`]\)""",
        spelling.with_named_parentheses,
    ),
    Rule(r"[\[\](){}]", spelling.bracket),
    Rule("-+", spelling.hyphens),
    Rule(r"\.{3,5} | (\.[ \u00A0]){2,4}\. | [\u0085\u2026]", spelling.ellipsis),
    Rule(r"@+ | #+ | _+ | \*+ | (\\\*){1,3} | {pause} | [?!]+ | = | /"),
    Rule(r"[.\u00A1\u00BF\u037E\u0589\u061F\u06D4\u0700-\u0702\u07FA\u3002]"),
    # Compounds
    Rule(r"{hyphenated}\.", spelling.without_soft_hyphens, "{pause}"),
    Rule("{hyphenated}", spelling.without_soft_hyphens),
    Rule(r"{compound}\.", followed_by="{pause}"),
    Rule("{compound}"),
    Rule(r"{joined}\.", spelling.with_ampersand, "{pause}"),
    Rule("{joined}", spelling.with_ampersand),
    Rule("'", spelling.opening_quotes, r"[A-Za-z][^ \t\u00A0]"),
    Rule("{clitic}|{quotes}|{not}", spelling.closing_quotes),
    Rule(rf"<< | >> | [{_SYMBOLS}]"),
    Rule("{any} | {space}+ | &nbsp;", spelling.nothing),
)
