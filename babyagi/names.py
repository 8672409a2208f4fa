"""Decides whether two task names ask for the same, by comparing keys made from them.

`name_key` ignores differences of spelling only; `name_sense` also ignores differences of wording,
such as between a command and a question. Only English is analysed. Synonyms are known for the verb
at the beginning of a task, and for hardly any other word. Words of other languages are case-folded
and compared as they are.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache
from itertools import pairwise

from babyagi.text import OPENING

# nouns that a single letter may follow: `vitamin C`
LETTERED = frozenset(
    "vitamin plan class type grade section appendix part option group team hepatitis schedule "
    "column exhibit variant version point building terminal gate hall phase figure table block "
    "unit series node influenza category zone product server branch side letter room ward "
    "lot".split()
)

# -- normalizing text
# --------------------------------------------------------------------------------------------------

_ARTICLES = frozenset({"a", "an", "the"})
_KEY_OPENING = "\"'`([{«“”‘’„‹"
_KEY_CLOSING = "\"'`)]}»“”‘’›"
_POWERS = {ord(sign): f"^{power}" for power, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}  # 10² is not 102
_BULLETS = "–—•…"
N_CACHED_WORDS = 4_000  # the names of an objective's tasks repeat their words


def name_key(name: str) -> str:
    """Return a key that two names share if they differ only in case, articles, white space, and the
    punctuation around words.

    Words with a slash (paths, URLs) keep their case. Words with a digit keep every sign that could
    belong to the number. The key is empty only if the name is blank.
    """
    words = name.split()
    # a capitalized article counts at the beginning only, and the last word always: `Plan A`
    kept = [
        _fold_word(word)
        for at, word in enumerate(words)
        if at == len(words) - 1 or (word if at else word.lower()) not in _ARTICLES
    ]
    return " ".join(filter(None, kept)) or " ".join(_normal(name).split()) or name.strip()


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _fold_word(word: str) -> str:
    if "/" in word or "\\" in word:
        bare = word.lstrip(_KEY_OPENING).rstrip("\"'`»”’›") or word
        return re.sub(r"(?<=[\w/])[.,;]+$", "", bare)
    if any(map(str.isdigit, word)):
        is_wrapped = len(word) > 2 and word[0] in _KEY_OPENING and word[-1] in _KEY_CLOSING
        bare = word[1:-1] if is_wrapped else word
        return _normal((bare.rstrip(".,;:?") or bare).translate(_POWERS))
    bare = word.lstrip(_KEY_OPENING + _BULLETS).rstrip(_KEY_CLOSING + _BULLETS + ".,;:!?")
    return _normal(bare or (word if word in (".", "..") else ""))


_CLOSING = "\"'`)]}»›.,;:!?」』】。、।؟،"
_INVISIBLE = dict.fromkeys(
    [0xAD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)
_SIGNS = str.maketrans(
    {
        **_INVISIBLE,
        **dict.fromkeys("‘’ʼ", "'"),
        **dict.fromkeys("“”„", '"'),
        **dict.fromkeys("‐‑–−", "-"),
        "—": " - ",
        "…": " ",
    }
)
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_DIGIT_ABROAD = re.compile(r"[^\D0-9]")
_NARROW_GROUPING = re.compile("(?<=[0-9])[\u00a0\u2009\u202f](?=[0-9]{3}(?![0-9]))")
QUOTES = frozenset("\"'`«「『")
QUOTED = re.compile(
    r"(?<!\w)(?:\"([^\"]+)\"|`([^`]+)`)(?!\w)"
    r"|(?<![^\s(\[{])'([^']+)'(?=[.,;:!?)\]]*+(?:\s|$))|«([^«»]+)»|「([^「」]+)」|『([^『』]+)』"
)
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:[,'][0-9]{3})+(?:\.[0-9]+)?")
NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?|[+-]?\.[0-9]+")
_UNITS = (
    "%|km|cm|mm|mi|kg|mg|lb|tb|gb|mb|kb|kwh|mwh|kw|ghz|mhz|hz|ms|min|hr|mph|kph|ml|usd|eur"
    "|gbp|am|pm|°c|°f"
)
_MEASURED = re.compile(rf"([$€£¥]?)([+-]?[0-9.,']*[0-9])({_UNITS})?")


def to_plain(text: str) -> str:
    """Return the text with one form for each sign: NFKC, straight quotes, one kind of hyphen, ASCII
    digits, and `^2` for a superscript 2."""
    if text.isascii():
        return text
    raised = _RAISED.sub(lambda match: "^" + match.group(), text.translate(_SIGNS))
    plain = unicodedata.normalize("NFKC", _NARROW_GROUPING.sub(",", raised))
    return _DIGIT_ABROAD.sub(lambda match: str(unicodedata.decimal(match.group())), plain)


def fold(word: str) -> str:
    """Return the word case-folded, but with `ß` unchanged, because `Maße` is not `Masse`."""
    return "ß".join(map(str.casefold, word.split("ß")))


def strip_signs(chunk: str) -> str:
    """Return the chunk (a text without blanks) without the punctuation around it. Closing brackets
    stay if an opening bracket is inside the chunk."""
    bare = chunk.lstrip(OPENING)
    closing = "\"'`.,;:!?»" if "(" in bare or "[" in bare or "{" in bare else _CLOSING
    stripped = bare.rstrip(closing)
    is_factorial = stripped[-1:].isdigit() and bare[len(stripped) :].startswith("!")
    return stripped + "!" * is_factorial


def _number(word: str) -> str:
    """Return the number without thousands separators; '' if the word is not a number."""
    if _GROUPED.fullmatch(word):
        return word.replace(",", "").replace("'", "")
    return word if NUMBER.fullmatch(word) else ""


def split_measure(word: str) -> list[str]:
    """Split a number from its currency sign or unit, such as `12km` into `['12', 'km']`. Return []
    if the word is not a number."""
    match = _MEASURED.fullmatch(word)
    number = match and _number(match[2])
    return [part for part in (match[1], number, match[3]) if part] if match and number else []


# -- what a name asks for
# --------------------------------------------------------------------------------------------------

_MAX_SENSE_CHARS = 500  # at most 2,000 bytes; an entry of a PostgreSQL index holds 2,704
_KEPT_SENSE_CHARS = 400

# Words that are removed where they add no meaning.
_FILLERS = frozenset("please kindly exactly carefully again now also bitte".split())
_DROPPABLE = _FILLERS | {"then", "year", "-"}
_DENYING = frozenset("not no never".split())  # `not exactly equal` is not `not equal`
# Words that end with `s` but are no plurals, or that mean something else without the `s`.
_NOT_STEMMED = frozenset(
    "does this always perhaps plus versus sans less across towards besides alias atlas canvas "
    "chaos cosmos series species lens headquarters news windows goods arms customs means damages "
    "savings glasses jeans pants shorts futures odds sales times rights interests letters "
    "characters directions numbers seconds looks brains stairs waters woods greens blues reds "
    "spectacles premises proceeds spirits minutes securities terms quarters contents returns "
    "remains grounds manners forces authorities apples airpods ours yours theirs hers thanks "
    "physics mathematics economics ethics politics statistics athletics olympics analytics "
    "graphics mechanics dynamics mars wales texas kansas arkansas naples athens brussels cannes "
    "laos hastings los las les des das dos fils temps pays cours james charles adams williams "
    "roberts johns daniels peters richards edwards stevens jacobs rogers phillips andrews matthews "
    "simons owens collins banks brooks rivers fields marks watts carlos marcos santos jones".split()
)
_ONE_FORM = {
    "a.m": "am", "p.m": "pm", "newest": "latest", "are": "is", "were": "was", "which": "what",
    "whom": "who", "&": "and", "vs": "versus", "percent": "%", "e-mail": "email", "u.s": "us",
    "u.k": "uk", "e.u": "eu", "u.n": "un", "u.s.a": "usa", "children": "child", "men": "man",
    "women": "woman", "feet": "foot", "mice": "mouse", "movies": "movie", "cookies": "cookie",
    "calories": "calorie", "zombies": "zombie", "programme": "program", "defence": "defense",
    "offence": "offense", "fibre": "fiber", "aluminium": "aluminum", "tyre": "tire",
    "judgement": "judgment", "jewellery": "jewelry", "ageing": "aging", "telephone": "phone",
    "licence": "license", "grey": "gray", "duplicated": "duplicate", "birthplace": "birth place",
    "kilometer": "km", "centimeter": "cm", "millimeter": "mm", "kilogram": "kg", "kilo": "kg",
    "milligram": "mg", "mile": "mi", "hr": "hour", "potatoe": "potato", "tomatoe": "tomato",
    "kilobyte": "kb", "megabyte": "mb", "gigabyte": "gb", "terabyte": "tb", "°c": "celsius",
    "°f": "fahrenheit", "$": "dollar", "€": "euro", "eur": "euro", "biggest": "largest",
    "closest": "nearest", "first": "1st", "third": "3rd", "fourth": "4th", "fifth": "5th",
    "sixth": "6th", "seventh": "7th", "eighth": "8th", "ninth": "9th", "tenth": "10th",
}  # fmt: skip
_CONTRACTED = {
    "can't": "can not", "won't": "will not", "shan't": "shall not", "let's": "let us",
    "i'm": "i am", "i'd": "i would", "cannot": "can not",
}  # fmt: skip
_SPELLED = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_NUMBER_WORDS = {
    **{word: str(number) for number, word in enumerate(_SPELLED, 1)},
    **{ten: f"{number}0" for number, ten in enumerate(_TENS, 2)},
    **{
        f"{ten}-{one}": f"{number}{unit}"
        for number, ten in enumerate(_TENS, 2)
        for unit, one in enumerate(_SPELLED[:9], 1)
    },
}
# `the one` is not a number
_ONE_FORM |= {word: number for word, number in _NUMBER_WORDS.items() if word != "one"}
_SCALES = {"hundred": 100, "thousand": 1000}

_ASKING = frozenset("what who where when why how whose".split())
_AUXILIARIES = frozenset(
    "is was can could will would should must may might has have had did do does".split()
)
_ASK_SURELY = frozenset("find determine identify ascertain discover detect".split())
_ASK_OF_FACTS = frozenset(
    "get establish research investigate clarify retrieve list name give calculate".split()
)
# Two words that ask for something: always (True), or only before one of `_FACTS` (False).
_ASK_IN_TWO = {
    ("find", "out"): True, ("look", "up"): True, ("look", "for"): True, ("search", "for"): True,
    ("figure", "out"): True, ("work", "out"): False, ("tell", "me"): False, ("tell", "us"): False,
}  # fmt: skip
_EXPLAINED = {"difference", "meaning", "effect"}
_ASKED_BY = {
    "check": {"whether", "if", *_ASKING}, "clarify": {"whether", "if", *_ASKING}, "state": _ASKING,
    "explain": _ASKING | _EXPLAINED, "describe": {"how", *_EXPLAINED},
}  # fmt: skip
_MAKING = frozenset("establish work get give".split())
# Nouns for what can be looked up. What _FACTS name can only be found: `the population of X`. What
# _MADE_FACTS name can be found or made: `a budget`.
_FACTS = frozenset(
    "population capital cost amount size height length width weight distance age cause reason "
    "author year time date duration ratio percentage location address speed depth area temperature "
    "difference requirement history origin meaning definition revenue profit turnover growth total "
    "average median maximum minimum sum count frequency effect impact benefit risk advantage "
    "disadvantage capacity density volume symptom owner founder ceo president inventor director "
    "mayor winner language elevation altitude circumference diameter radius mass root emission "
    "consumption competitor challenge problem barrier obstacle factor consequence implication "
    "characteristic property stakeholder opportunity strength weakness threat similarity "
    "constraint drawback downside dependency birthday nationality example number name price rate "
    "value status currency hour score gdp deviation ingredient duty".split()
)
_MADE_FACTS = frozenset(
    "limit deadline budget salary margin feature rule law voltage solution answer result source "
    "type role purpose function order schedule timetable fee fare tax tariff production output "
    "yield supplier trend share version step stage option alternative principle goal objective "
    "criterion criteria metric indicator component element".split()
)
_NO_SUPERLATIVE = frozenset(
    "forest interest request harvest honest modest protest contest digest invest suggest priest "
    "arrest conquest".split()
)
_PREPOSITIONS = frozenset(
    "in on at by for with from to into onto over under between among against about after before "
    "during since until till through via per than as near within without across along around "
    "behind below above beyond".split()
)
_BOUNDARIES = (
    _PREPOSITIONS
    | _ASKING
    | _AUXILIARIES
    | frozenset(
        "and or but nor not no never like if while because that be been only except ? "
        "whether".split()
    )
)
_CLAUSAL = _ASKING | _AUXILIARIES | frozenset("which whom that and or by if whether while".split())
# Verbs that a task may begin with, in their normalized form.
VERBS = frozenset(
    "add analyze answer append arrange ask assess build buy calculate call check choose classify "
    "clean collect compare compile compute configure convert copy count create define delete "
    "deploy describe design detect develop document download draft draw edit email estimate "
    "evaluate examine explain explore export extract fetch find fix format gather generate give "
    "identify implement import improve inspect install interview investigate launch list locate "
    "look make measure merge migrate move name open order organize outline paint parse plan plot "
    "prepare print propose prove provide publish read recommend record refactor remove rename "
    "repair replace report research review rewrite run schedule search select send set show sketch "
    "solve sort start state stop store suggest summarize tell test train translate update upload "
    "use validate verify visit watch work write determine discover establish obtain get figure "
    "ascertain note try book save increase decrease reduce raise lower split backup ensure request "
    "retrieve perform monitor study forecast turn assemble".split()
)
_DONE_FOR_ME = frozenset("find get list give show make write create draw".split())
_POLITE = tuple(
    tuple(phrase.split())
    for phrase in (
        "i want you to", "i need you to", "i would like you to", "we need to", "we should",
        "you should", "you need to", "need to",
        "try to", "your task is to", "let us", "help me", "help us", "go ahead and", "go and",
        "make sure to", "be sure to", "do not forget to",
    )
)  # fmt: skip
_REPORTING_BACK = ["and", "report", "back"]
# Synonyms of verbs: a result for the one also answers a task with the other.
_SAME_VERB = {
    "repair": "fix", "delete": "remove", "erase": "remove", "gather": "collect", "purchase": "buy",
    "reserve": "book", "propose": "suggest", "assess": "evaluate", "provide": "give",
    "combine": "merge", "compute": "calculate", "pick": "choose", "select": "choose",
    "obtain": "get", "raise": "increase", "lower": "reduce", "decrease": "reduce", "begin": "start",
    "launch": "start", "conduct": "perform", "predict": "forecast", "alter": "modify",
    "enhance": "improve", "display": "show",
}  # fmt: skip
# The second word may also stand after the object: `cut the text down to a page`.
_VERB_IN_TWO = {
    ("break", "up"): "split", ("cut", "down"): "shorten", ("put", "together"): "compile",
    ("carry", "out"): "perform", ("sum", "up"): "summarize", ("back", "up"): "backup",
    ("ask", "for"): "request", ("look", "into"): "investigate", ("look", "up"): "find",
    ("set", "up"): "arrange",
}  # fmt: skip
_NOUN_OF_VERB = {
    "list": "list", "summary": "summarize", "description": "describe", "explanation": "explain",
    "comparison": "compare", "analysis": "analyze", "translation": "translate",
    "definition": "define", "estimate": "estimate", "evaluation": "evaluate",
    "assessment": "evaluate", "copy": "copy", "backup": "backup", "research": "research",
    "outline": "outline", "review": "review", "investigation": "investigate",
    "recommendation": "recommend", "decision": "decide",
}  # fmt: skip
_WRITING = frozenset(
    "write draft create make build produce prepare compile assemble generate develop draw".split()
)
_PRODUCING = _WRITING | {"give", "do", "perform"}
_DOCUMENTS = frozenset(
    "agenda article brochure budget chart dashboard diagram email essay glossary graph guide "
    "itinerary letter list map memo message newsletter note outline overview plan post poster "
    "presentation proposal questionnaire report schedule slide speech summary template timeline "
    "tutorial website".split()
)
_FORMATS = frozenset("pdf csv json xml html yaml excel png jpeg svg markdown".split())
# to `build` or `compile` these is not to write them
_CODE = frozenset("test script function query program class method tool macro".split())
# Phrases that are replaced anywhere in a name.
_PHRASES = {
    "close to": "near", "per cent": "%", "for each": "per", "for every": "per", "all of": "all",
    "in order to": "to", "as well as": "and", "degree celsius": "celsius",
    "degree fahrenheit": "fahrenheit", "slide deck": "slide", "web site": "website",
    "data set": "dataset", "united kingdom": "uk", "european union": "eu",
    "chief executive officer": "ceo", "date of birth": "birth date",
    "place of birth": "birth place", "change name of": "rename", "make sure": "ensure",
    "get rid of": "remove", "come up with": "suggest", "keep eye on": "monitor",
    "can you tell me": "tell me", "i would like to know": "tell me", "i want to know": "tell me",
    "let me know": "tell me", "send email to": "email",
    **{f"follow up on {word}": f"find {word}" for word in (*_ASKING, "whether")},
    "answer question of": "find", "time needed to": "duration to",
    "time required to": "duration to", "time it take to": "duration to",
}  # fmt: skip
_PHRASES_FROM: dict[str, list[tuple[list[str], list[str]]]] = {}
for _phrase, _form in _PHRASES.items():
    _PHRASES_FROM.setdefault(_phrase.split()[0], []).append((_phrase.split(), _form.split()))
_CHECKING = frozenset("check verify ensure confirm".split())
_TOPICAL = frozenset(
    "information research study literature overview essay lecture talk advice slide presentation "
    "data book review article report paper post statistic memo letter guide tutorial speech "
    "brochure questionnaire".split()
)
# After `on`, these words say where or when a text appears. Before any other word, `on` means
# `about`.
_CARRIERS = frozenset(
    "internet web website site page server disk drive table desk shelf floor wall blog tv radio "
    "computer laptop phone cloud intranet paper tape youtube amazon zoom facebook google yelp "
    "tripadvisor steam reddit twitter linkedin instagram github train bus plane ship card door "
    "arrival behalf request time screen stage demand file parchment camera sale monday tuesday "
    "wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december".split()
)
_SPANS = frozenset(
    "second minute hour day night morning afternoon evening week month quarter year other few 2nd "
    "3rd".split()
)

# Nouns for what a question asks for: `how tall is X` asks for the height of X.
_MEASURE_OF = {
    "tall": "height", "high": "height", "long": "length", "wide": "width", "deep": "depth",
    "old": "age", "heavy": "weight", "large": "size", "big": "size", "fast": "speed",
}  # fmt: skip
_SAID_OF = {"cost": "cost", "weigh": "weight", "mean": "meaning", "means": "meaning"}
_AGENT_OF = {
    "wrote": "author", "founded": "founder", "invented": "inventor", "won": "winner",
    "own": "owner", "designed": "designer", "composed": "composer", "discovered": "discoverer",
    "painted": "painter", "directed": "director",
}  # fmt: skip
_EVENTS = {
    "born": "birth", "opened": "opening", "founded": "founding", "published": "publication",
    "released": "release", "signed": "signing", "invented": "invention", "built": "construction",
    "established": "founding", "finished": "completion", "completed": "completion",
}  # fmt: skip

# Two things joined by `and` are sorted, unless the name has one of these words, after which their
# order matters.
_ORDERED = frozenset(
    "sort sorted order ordered rank ranked group grouped divide divided subtract concatenate "
    "append join nest ratio quotient sequence respectively to into from onto before after over "
    "under than then versus as through via if while when until".split()
)
_PAIRED_AFTER = frozenset(
    "by in of for at about compare buy ? list test describe explain summarize analyze evaluate "
    "review check collect define showing containing including".split()
)
_PARTING = _BOUNDARIES | {"of", "showing", "containing", "including"}
_MUTUAL = frozenset(
    "difference similarity distance relation relationship link connection border correlation "
    "comparison".split()
)
# `The criticism of the author` is not `the author's criticism`, and `the number of customers` is
# not `the customers' number`.
_NOT_OWNED = frozenset(
    "number share lot piece glass cup bottle pair set group kind type sort part half third quarter "
    "list series love fear hate hatred study review picture photo portrait view opinion survey "
    "knowledge understanding memory account care defence defense attack conquest support need "
    "pursuit search image map model copy report critique experience loss threat use test check "
    "audit interview story book song idea concept notion letter drawing sketch film video murder "
    "dismissal approval denial trial proof inquiry recovery discovery delivery out made think "
    "dream consist instead because sense lack change result".split()
)
_NOT_OWNED_ALONE = frozenset(
    "bank city house state king queen man woman point lord tower university college institute "
    "museum journal church school republic war art bag box basket can tank".split()
)  # the Bank of England, a man of honour
# Words that name a thing, although they end like the name of an action: `the structure of X` is
# `X's structure`.
_THINGS = frozenset(
    "structure architecture culture agriculture furniture government parliament department page "
    "language ceiling building wing ruling beginning ending rating ranking spelling mechanism "
    "hospital terminal village station section religion".split()
)
_ACT_ENDINGS = ("tion", "sion", "ment", "ance", "ence", "ism", "ing", "sis", "al", "ure", "age")
_NUMBERING = re.compile(
    r"\s*(?:[-*•+–]\s+)?(?:\[[ xX]?\]\s+)?"
    r"(?:(?P<task>task|todo)(?:\s+#?\d{1,3})?\s*(?:[:.)]|\s-)\s+|(?:step\s+\d{1,3}\s+-"
    r"|(?:step\s+)?\(?\d{1,3}\s*[:.)]|\(?[a-z]\))\s+)?",
    re.IGNORECASE,
)


def name_sense(name: str) -> str:
    """Return a key that two task names share if they certainly ask the same about the same subject.
    In case of doubt, the keys differ.

    Names have the same key if they differ only in:

    * case, articles, punctuation, polite words, list numbers, English plurals, and the spelling of
      numbers and units;
    * a verb at the beginning that means the same (`fix`, `repair`), or that only asks for something
      (`find the height of X`, `give the height of X`);
    * being a command or a question: `Find out why X ended`, `Why did X end?`; `the height of X`,
      `how tall X is`;
    * `the Y of X` or `X's Y`; `on` or `about` before a topic; the order of two things joined by
      `and`;
    * the place of a phrase such as `In the manual, …`: at the beginning or at the end.

    All other words, and their order, make a difference. So do `to` and `from`, `all` and `each`,
    `for` and `about`. A capital A inside a name in lower case is a letter, not an article. Paths,
    and code in backticks, keep their case.

    The key has at most 500 characters, and is empty only if the name is blank.
    """
    plain = _place_last(_without_numbering(to_plain(name)))
    words = _in_one_form(_without_politeness([stem(word) for word in _words(plain)]))
    key = " ".join(_swap_of(_pair_sorted(_ask(_as_verb(words)))))
    key = key or " ".join(fold(plain).split()) or name.strip()
    if len(key) <= _MAX_SENSE_CHARS:
        return key
    return f"{key[:_KEPT_SENSE_CHARS]} {hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()}"


_OVER_ALL = frozenset(
    "compare comparison contrast rank ranking total sum overall altogether combine combined "
    "average median consolidate aggregate tally tot tabulate collate compile "
    "synthesize synthesis assemble unify integrate condense conclude conclusion recap recommend "
    "recommendation everything vergleiche vergleich vergleichen gegenüberstellung summiere addiere "
    "summe gesamtsumme insgesamt zusammen zusammenfassung durchschnitt mittelwert compara "
    "comparer comparez comparaison additionne additionner somme récapitule synthèse suma "
    "sumar combina reúne réunis résumé".split()
)
# these ask for it only at the beginning of a name
_COMBINING_VERBS = frozenset({"add", "merge", "join", "gather", "sum", "bring", "put", "pull"})
_COMBINED_BY = frozenset("up together all everything into one".split())
_ALL_RESULTS = frozenset(
    "results findings answers outcomes ergebnisse ergebnissen erkenntnisse erkenntnissen résultats "
    "resultados hallazgos risultati".split()
)
_LOOKING_VERBS = frozenset(
    "find read look search open get ask extract visit fetch download what who when where which how "
    "why is are was were did does do has have suche lies finde cherche lis busca lee was wer wann "
    "wo welche wie ist".split()
)
_FINAL = frozenset("final endgültige endgültigen schluss".split())
_WRITTEN = frozenset("answer report document text version list summary bericht antwort".split())
_OF_TIME = frozenset({"latest", "newest", "oldest", "earliest"})


def takes_all(name: str) -> bool:
    """Return whether the task needs many results together: whether its name asks for a comparison,
    a ranking, a sum, a combination, something superlative, such as the largest X, or a text made of
    the results."""
    plain = [strip_signs(word) for word in fold(to_plain(name)).split()]
    words = [stem(word) for word in plain]
    if any(word in _OVER_ALL or (_is_superlative(word) and word not in _OF_TIME) for word in words):
        return True
    first, rest = words[0] if words else "", {*words[1:], *plain[1:]}
    if first in _COMBINING_VERBS and not _COMBINED_BY.isdisjoint(rest) and "branch" not in rest:
        return True
    is_made = first not in _LOOKING_VERBS and not _ALL_RESULTS.isdisjoint(rest)
    return is_made or not (_FINAL.isdisjoint(rest) or _WRITTEN.isdisjoint(rest))


def _without_numbering(plain: str) -> str:
    """Return the name without its list number. `Task 3:` is always removed; `1.` only before a word
    with which a task may begin, because `1. FC Köln` is a name."""
    match = _NUMBERING.match(plain)
    rest = plain[match.end() :] if match else plain
    if not match or not match.group().strip() or not rest:
        return plain
    is_number = any(map(str.isalnum, match.group())) and not match.group("task")
    first = fold(rest.split(maxsplit=1)[0].rstrip(",:"))
    return plain if is_number and stem(first) not in _STARTS else rest


_STARTS = (
    VERBS
    | _ASKING
    | _AUXILIARIES
    | _FILLERS
    | _SAME_VERB.keys()
    | {first for first, _ in _VERB_IN_TWO}
)
_FRONTED = re.compile(
    r"((?:in|for|from|on|at|with|using)\s[^,\"`]+),\s+((\w+)\s[^,]+)", re.IGNORECASE
)


def _place_last(plain: str) -> str:
    """Turn `In the manual, look up X` into `look up X in the manual`, unless the rest has a clause
    to which the phrase could then belong."""
    match = _FRONTED.fullmatch(plain.strip().rstrip(".?"))
    if not match:
        return plain
    words = [stem(word) for word in fold(match.group(2)).split()]
    if words[0] in _ASKING | _AUXILIARIES:
        clausal = _CLAUSAL - _AUXILIARIES | _PREPOSITIONS
        is_plain = match[1].lower().startswith("in ") and clausal.isdisjoint(words[1:])
    else:
        is_plain = words[0] in _STARTS and _CLAUSAL.isdisjoint(words)
    return f"{match[2]} {match[1]}" if is_plain else plain


# Splitting a name into words


def _words(plain: str) -> list[str]:
    is_shouted = plain.isupper()
    words: list[str] = []
    at = 0
    for match in QUOTED.finditer(plain) if not QUOTES.isdisjoint(plain) else ():
        before = plain[at : match.start()]
        words += _unquoted(before, is_shouted=is_shouted, is_first=not words)
        words.append(_quoted(match))
        at = match.end()
    return words + _unquoted(plain[at:], is_shouted=is_shouted, is_first=not words)


def _quoted(match: re.Match[str]) -> str:
    """Return the quotation, case-folded and in double quotes. Code in backticks keeps its case. A
    single word is returned without quotes if the later steps leave it unchanged."""
    inner = " ".join(next(part for part in match.groups() if part is not None).split())
    folded = inner if match.group().startswith("`") else fold(inner)
    is_plain = folded.isalpha() and folded not in _SPECIAL
    return folded if is_plain and folded == fold(folded) == stem(folded) else f'"{folded}"'


_SPECIAL = (
    _ARTICLES
    | _FILLERS
    | _BOUNDARIES
    | VERBS
    | frozenset(["then", "of", "out", "up", "year", "me", "us", "you", "i", "cannot"])
)


def _unquoted(plain: str, *, is_shouted: bool, is_first: bool) -> list[str]:
    words: list[str] = []
    for chunk in plain.split():
        if chunk == "A" and not is_shouted and (words or not is_first):
            words.append('"a"')
        elif chunk.isalpha() and chunk.lower() != "cannot":
            words.append(fold(chunk))
        else:
            words.extend(_split(chunk))
    return words


def _split(chunk: str) -> list[str]:
    bare = strip_signs(chunk)
    if not bare:
        return [chunk] if chunk in (".", "..") else []
    if "/" in bare or "\\" in bare:
        return [bare]
    folded = fold(bare)
    if "'" in folded or folded == "cannot":
        return _apart(folded)
    if folded.isalpha():
        is_owner = folded[-1] == "s" and chunk.rstrip(".,;:!?)").endswith("s'")
        return [folded, "'s"] if is_owner else [folded]
    if any(map(str.isdigit, folded)):
        return split_measure(folded) or [folded]
    return _pieces(folded)


def _apart(word: str) -> list[str]:
    """Split a contraction into its words (`isn't` into `is`, `not`), and `'s` from its noun."""
    if word in _CONTRACTED:
        return _CONTRACTED[word].split()
    head, _, tail = word.rpartition("'")
    if tail == "s" and head:
        return [head, "is" if head in _ASKING or head in ("it", "that", "there") else "'s"]
    if tail == "t" and head.endswith("n"):
        return [head[:-1], "not"]
    return split_measure(word) or [word]


LISTED = re.compile("[,;]+")


def _pieces(word: str) -> list[str]:
    """Split words that are joined by commas or hyphens. Number words and participles stay joined:
    `twenty-five`, `man-eating`."""
    parts = LISTED.split(word)
    if len(parts) > 1 and all(map(str.isalpha, parts)):
        return parts
    parts = word.split("-")
    if len(parts) < 2:
        return [word]
    if not any(parts):
        return ["-"] if len(word) == 1 else []
    first, last = parts[0], parts[-1]
    is_counted = len(parts) == 2 and first in _NUMBER_WORDS and last not in _NUMBER_WORDS
    if is_counted and first != "one":
        return [f"{_NUMBER_WORDS[first]}-{last}"]
    is_joined = word in _ONE_FORM or last.endswith(("ing", "ed"))
    is_split = all(one.isalpha() and len(one) > 1 and one not in _NUMBER_WORDS for one in parts)
    return parts if is_split and not is_joined else [word]


_AMERICAN = [
    (re.compile("(?<=[a-z]{3})our(ed|ing|al|ful|able|ite|hood|ly)?$"), r"or\1"),
    (re.compile("(?<=[a-z]{3})is(e|ed|er|ing|ation)$"), r"iz\1"),
    (re.compile("lys(e|ed|er|ing)$"), r"lyz\1"),
    (re.compile("ell(ed|ing|er)$"), r"el\1"),  # cancelled, labelling
    (re.compile("(cent|[aei]t)re$"), r"\1er"),
    (re.compile("logue$"), "log"),
]


@lru_cache(maxsize=N_CACHED_WORDS)
def stem(word: str) -> str:
    """Return the word in American spelling, and without the `s` of a plural or a verb: `color` for
    `colours`."""
    is_plural = len(word) > 3 and word[-1] == "s" and word[-2] not in "sui'"
    if is_plural and word not in _NOT_STEMMED and word.isascii() and word.isalpha():
        word = _ONE_FORM.get(word) or _without_s(word)
    if len(word) > 4 and word.isascii():
        for pattern, american in _AMERICAN:
            word = pattern.sub(american, word)
    return _ONE_FORM.get(word, word)


def _without_s(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("ches", "shes", "xes", "sses", "zzes")) else word[:-1]


def _without_politeness(words: list[str]) -> list[str]:
    """Return the words without articles, fillers and polite phrases."""
    is_asked_nicely = "please" in words
    kept: list[str] = []
    for at, word in enumerate(words):
        if word in _ARTICLES:
            kept.extend(_article(words, at))
        elif word not in _DROPPABLE or not _is_filler(words, at, kept):
            kept.append(word)
    if len(kept) > 3 and kept[-3:] == _REPORTING_BACK:
        kept = kept[:-3]
    for phrase in _POLITE:
        if len(kept) > len(phrase) and tuple(kept[: len(phrase)]) == phrase:
            kept = kept[len(phrase) :]
    if len(kept) > 2 and kept[1] == "you" and kept[2] in VERBS:
        # `Can you train a cat?` may be a real question.
        is_request = kept[0] in ("could", "would", "will") or (kept[0] == "can" and is_asked_nicely)
        kept = kept[2:] if is_request else kept
    is_for_me = len(kept) > 2 and kept[0] in _DONE_FOR_ME and kept[1] == "me"
    return [kept[0], *kept[2:]] if is_for_me else kept


def _article(words: list[str], at: int) -> list[str]:
    """Return [] for the article at this place, which is dropped; or the article itself, if it is a
    letter (`vitamin A`) or the last word."""
    word = words[at]
    if at == len(words) - 1:
        return ['"a"' if word == "a" else word]
    before, following = words[at - 1] if at else "", words[at + 1]
    is_letter = (
        (before in LETTERED and not (at == 1 and before in VERBS))
        or following in _PREPOSITIONS
        or following in ("and", "or", "'s")
    )
    return ['"a"'] if word == "a" and is_letter else []


def _is_filler(words: list[str], at: int, kept: list[str]) -> bool:
    word = words[at]
    if word in _FILLERS:
        return not kept or kept[-1] not in _DENYING
    if word == "then":
        return not kept
    if word == "year":
        following = "".join(words[at + 1 : at + 2])
        is_number = len(following) == 4 and following.isdigit()
        return is_number and kept[-1:] in (["in"], ["for"], ["of"], ["during"])
    around = (*words[max(0, at - 1) : at], *words[at + 1 : at + 2])
    return not (len(around) == 2 and all(map(_is_operand, around)))


def _is_operand(word: str) -> bool:
    return len(word) == 1 or any(map(str.isdigit, word))


# Normalizing words and phrases anywhere in a name


def _in_one_form(words: list[str]) -> list[str]:
    """Replace words and phrases that have the same meaning by one of them: `close to` becomes
    `near`, `on` before a topic `about`, `that shows` `showing`; `that is` is removed."""
    kept: list[str] = []
    at = 0
    while at < len(words):
        length, forms = _form_at(words, at, kept[-1] if kept else "")
        kept.extend(forms)
        at += length
    is_every = kept[1:2] == ["every"] and kept[0] in _STARTS
    if is_every and len(kept) > 2 and kept[2] not in _SPANS and kept[2].isalpha():
        head = _head(kept[2:]) + 2
        plural = kept[head] + "s"
        counted = plural if plural in _NOT_STEMMED else kept[head]
        return [kept[0], "all", *kept[2:head], counted, *kept[head + 1 :]]
    return kept


def _form_at(words: list[str], at: int, before: str) -> tuple[int, list[str]]:
    """Return (how many words at this place are replaced, the words that replace them). `before` is
    the word before this place in the result."""
    length, number = _number_at(words, at)
    if length > 1:
        return length, [number]
    measure = "".join(words[at + 4 : at + 5])
    if words[at : at + 2] == ["more", "than"] and measure in _MEASURE_OF:
        # `more than 5 days old` becomes `older than 5 days`
        return 5, [measure.removesuffix("e") + "er", "than", *words[at + 2 : at + 4]]
    for phrase, form in _PHRASES_FROM.get(words[at], ()):
        if words[at : at + len(phrase)] == phrase:
            return len(phrase), form
    is_after_noun = bool(before) and before not in _BOUNDARIES and (before not in VERBS or at > 1)
    is_clause = words[at] == "that" and at > 1 and is_after_noun and at + 2 < len(words)
    if is_clause and words[at + 1] == "is":
        return 2, []
    if is_clause and before not in _CODE | _CHECKING and words[at + 1] not in _BOUNDARIES:
        # `a chart that shows X` becomes `a chart showing X`
        return 2, [words[at + 1].removesuffix("e") + "ing"]
    return 1, _linked(words, at, before)


def _number_at(words: list[str], at: int) -> tuple[int, str]:
    """Return (how many words the number at this place has, the number in digits): (4, `250`) for `2
    hundred and 50`. If there is no such number, return (1, the word)."""
    first = "1" if words[at] == "one" else words[at]
    scale = _SCALES.get("".join(words[at + 1 : at + 2]), 0)
    if not scale or not _is_count(first):
        return 1, words[at]
    number, rest = int(first) * scale, [*words[at + 2 : at + 5], "", "", ""]
    is_sum = rest[0] == "and" and _is_count(rest[1]) and rest[2] not in _SCALES
    if is_sum and int(rest[1]) < scale and words[at - 1 : at] != ["between"]:
        return 4, str(number + int(rest[1]))
    return 2, str(number)


def _is_count(word: str) -> bool:
    return re.fullmatch("[1-9][0-9]{0,2}", word) is not None


def _linked(words: list[str], at: int, before: str) -> list[str]:
    """Return the words that replace a linking word at this place, such as `about` for `on` in `an
    essay on trees`; the word itself if it stays."""
    following = words[at + 1 : at + 5]
    after = "".join(following[:1])
    match words[at]:
        case "that" if before in _CODE and len(following) > 1 and after not in _AUXILIARIES:
            return ["to"]  # `a function that sorts` becomes `a function to sort`
        case "file" if before in _FORMATS and words[at - 2] in ("as", "to", "into"):
            return [] if not after or after in _BOUNDARIES else ["file"]
        case "every" if at > 1 and after.isalpha() and after not in _SPANS:
            return ["each"]
        case "on" if before in _TOPICAL and _CARRIERS.isdisjoint(following):
            return ["about"]
    return [words[at]]


# Normalizing verbs


def _as_verb(words: list[str]) -> list[str]:
    """Replace the verb at the beginning by one verb for all of the same meaning: `write a summary
    of X` becomes `summarize X`, `count X` becomes `find the number of X`."""
    if len(words) < 2:
        return words
    words = _with_one_verb(words)
    if words[0] in ("convert", "translate"):
        return ["to" if word == "into" else word for word in words]
    links = [word for word in words if word in _BOUNDARIES]
    if words[0] == "compare" and words[1] in _FACTS and words[2:3] == ["of"] and links == ["and"]:
        return ["compare", *words[3:], "by", words[1]]
    if len(words) > 3 and words[2] == "of" and words[0] in _PRODUCING and words[1] in _NOUN_OF_VERB:
        return [_NOUN_OF_VERB[words[1]], *words[3:]]
    if words[0] == "count":
        is_said = words[1:3] in (["how", "many"], ["number", "of"])
        return ["find", *([] if is_said else ["number", "of"]), *words[1:]]
    return [_verb_for(words), *words[1:]]


def _verb_for(words: list[str]) -> str:
    """Return the verb that stands for the first word before this object, such as `make` in `draft a
    report` and `compile a report`; the first word itself if there is none."""
    verb, done_to = words[0], words[1 + _head(words[1:])]
    if verb in _WRITING and done_to in _DOCUMENTS:
        return "make"
    if (verb == "create" and done_to in _CODE) or (
        verb in ("implement", "code") and done_to in ("function", "script", "class", "macro")
    ):
        return "write"
    return verb


def _with_one_verb(words: list[str]) -> list[str]:
    ends = (at for at in range(2, len(words)) if words[at + 1 : at + 2] in ([], ["to"], ["into"]))
    for at in (1, *ends):
        verb = _VERB_IN_TWO.get((words[0], words[at]))
        if verb and len(words) > 2:
            return [verb, *words[1:at], *words[at + 1 :]]
    is_conversion = words[0] in ("turn", "transform") and "into" in words
    return ["convert" if is_conversion else _SAME_VERB.get(words[0], words[0]), *words[1:]]


# Normalizing ways of asking


def _ask(words: list[str]) -> list[str]:
    """Turn commands and questions that ask for something into one form: `?` and a noun phrase for
    what is asked, or a clause that begins with a question word or with `whether`."""
    if len(words) < 2:
        return words
    surely, rest = _after_asking(words)
    words, rest = _what_year(words), _what_year(rest)
    if not rest:
        if words[0] in VERBS - {"ask", "tell"} and words[1] in _ASKING and len(words) > 2:
            asked = _question(words[1:], is_embedded=True)
            return [words[0], *asked[1:]] if asked[0] == "?" else words
        return _question(words, is_embedded=False)
    if rest[0] in _ASKING and len(rest) > 1:
        return _question(rest, is_embedded=True)
    if rest[0] in ("whether", "if"):
        rest = rest[3:] if rest[1:3] == ["or", "not"] else rest[1:]
        return ["whether", *_auxiliary_at(rest, 0)]
    if words[0] == "calculate" and words[1 + _head(rest)] in _EXPLAINED:
        return words  # `calculate` asks for a number, `explain` for words
    is_asked = surely or _names_a_fact(rest, is_made=words[0] in _MAKING)
    return ["?", *rest] if is_asked else words


def _what_year(words: list[str]) -> list[str]:
    """Turn `In what year was X opened` and `year in what X was opened` into `what year ...`."""
    if words[:3] == ["in", "what", "year"] and len(words) > 4:
        return words[1:]
    if words[:1] != ["year"] or words[-2:-1] != ["was"]:
        return words
    kept = [word for word in words[1:3] if word not in ("in", "what")]
    return ["what", "year", *kept, *words[3:]]


def _after_asking(words: list[str]) -> tuple[bool, list[str]]:
    """Return (whether the verb at the beginning asks for anything that follows it, the words that
    follow the verb). The words are [] if no such verb is at the beginning."""
    pair = (words[0], words[1])
    if pair in _ASK_IN_TWO:
        return _ASK_IN_TWO[pair], words[2:]
    if words[0] in _ASK_SURELY:
        return True, words[1:]
    if words[0] in _ASK_OF_FACTS:
        return False, words[1:]
    return False, words[1:] if words[1] in _ASKED_BY.get(words[0], ()) else []


def _question(words: list[str], *, is_embedded: bool) -> list[str]:
    first = words[0]
    if first in _AUXILIARIES and len(words) > 2:
        return ["whether", *(words[1:] if first in ("do", "does") and words[1] != "not" else words)]
    if first not in _ASKING:
        return words
    asked = _as_noun(words) or _as_noun(_auxiliary_at(words, 2 if words[1] in _MEASURE_OF else 1))
    if asked:
        return ["?", *asked]
    words = _without_do(words)
    if first == "how":
        return _how(words, is_embedded=is_embedded)
    if first in ("what", "who"):
        return _what(words)
    return _auxiliary_at(words, 1)


def _as_noun(words: list[str]) -> list[str]:
    """Return a noun phrase for what the question asks: `height of X` for `how tall is X`; [] if
    there is none."""
    return _ASKED[words[0]](words) if words[0] in _ASKED and len(words) > 2 else []


def _noun_of_how(words: list[str]) -> list[str]:
    measured = words[1]
    if measured in _MEASURE_OF and words[2] == "is" and len(words) > 3:
        return [_MEASURE_OF[measured], "of", *words[3:]]
    if words[1:5] == ["far", "is", "it", "from"]:
        return ["distance", *words[4:]]
    return _number_of(words) if measured == "many" else _noun_of_doing(_without_do(words))


def _noun_of_doing(words: list[str]) -> list[str]:
    """Return `effect of X on Y` for `how X affects Y`, `weight of X` for `how much X weighs`, and
    so on; [] for other questions."""
    if words[1:5] == ["long", "it", "take", "to"]:
        return ["duration", *words[4:]]
    if words[-1] == "differ" and "and" in words[2:-2]:
        return ["difference", "between", *words[1:-1]]
    start = 2 if words[1] == "much" else 1
    verb = _SAID_OF if start == 2 else {"affect": "effect"}
    at = _index_in(words, verb, start + 1)
    if at >= len(words) + start - 2 or not _BOUNDARIES.isdisjoint(words[start:at]):
        return []
    done_to = ["on"] if start == 1 else []
    return [verb[words[at]], "of", *words[start:at], *done_to, *words[at + 1 :]]


def _number_of(words: list[str]) -> list[str]:
    """Return `number of X` for `how many X are there`, `number of Y's X` for `how many X does Y
    have`, and [] for other questions."""
    if len(words) == 5 and words[4] in ("has", "have") and words[3] not in _BOUNDARIES:
        return ["number", "of", words[3], "'s", words[2]]  # `how many moons Uranus has`
    at = _index_in(words, _AUXILIARIES, 3)
    if at >= len(words) - 1:
        return []
    counted, following = words[2:at], words[at + 1 :]
    if words[at] in ("do", "does") and following[-1] == "have" and len(following) > 1:
        return ["number", "of", *following[:-1], "'s", *counted]
    if words[at] == "is" and (following[0] == "there" or following[0] in _PREPOSITIONS):
        return ["number", "of", *counted, *following[following[0] == "there" :]]
    return []


def _noun_of_what(words: list[str]) -> list[str]:
    subject = _auxiliary_at(words, 2)[3:-1]
    is_plain = bool(subject) and _BOUNDARIES.isdisjoint(subject)
    if words[1] == "year" and "was" in words and words[-1] in _EVENTS and is_plain:
        return [_EVENTS[words[-1]], "year", "of", *subject]
    at = _index_in(words, _BOUNDARIES, 2)
    has = at < len(words) - 1 and words[at] in ("has", "have")
    if has and words[at + 1] not in _BOUNDARIES:
        return [*words[1:at], "with", *words[at + 1 :]]  # `what country has a king`
    words = _without_do(words)
    said, subject = _SAID_OF.get(words[-1]), words[1:-1]
    return [said, "of", *subject] if said and subject and _BOUNDARIES.isdisjoint(subject) else []


def _noun_of_who(words: list[str]) -> list[str]:
    is_agent = words[1] in _AGENT_OF and words[2] not in _BOUNDARIES
    return [_AGENT_OF[words[1]], "of", *words[2:]] if is_agent else []


def _noun_of_when(words: list[str]) -> list[str]:
    happened = words[-1]
    subject = words[2:-1]
    is_plain = bool(subject) and _BOUNDARIES.isdisjoint(subject)
    if words[1] != "was" or happened not in _EVENTS or not is_plain:
        return []
    return [_EVENTS[happened], "date" if words[0] == "when" else "place", "of", *subject]


_ASKED = {"how": _noun_of_how, "what": _noun_of_what, "who": _noun_of_who}
_ASKED |= dict.fromkeys(("when", "where"), _noun_of_when)


def _how(words: list[str], *, is_embedded: bool) -> list[str]:
    """Turn `how X is made` into `how is X made`, and `how tall X is` into `how tall is X`."""
    if words[1] == "to" or words[1] in _AUXILIARIES:
        return words
    return _auxiliary_at(words, 2 if words[-1] in _AUXILIARIES else 1) if is_embedded else words


def _what(words: list[str]) -> list[str]:
    """Turn `what is population of X` and `what population of X is` into `? population of X`, if the
    question asks for a fact or something superlative."""
    if words[0] == "who":
        words = _auxiliary_at(words, 1)
    elif words[1] == "was" and any(
        word in ("in", "for", "of") and _is_year(after) for word, after in pairwise(words)
    ):
        words = ["what", "is", *words[2:]]
    elif words[-1] == "is" and len(words) > 2 and words[1] != "is":
        words = ["what", "is", *words[1:-1]]
    rest = words[2:]
    if not rest or words[1] != "is":
        return words
    at = _head(rest)
    # `What is capital in economics` asks for a definition
    is_certain = at > 0 or rest[1:2] in (["of"], ["for"], ["between"])
    is_fact = is_certain and _names_a_fact(rest, is_made=False)
    return ["?", *rest] if is_fact or any(map(_is_superlative, rest[: at + 1])) else words


def _is_year(word: str) -> bool:
    return len(word) == 4 and word.isdigit() and word[:2] in ("17", "18", "19", "20")


def _is_superlative(word: str) -> bool:
    return word in ("best", "worst", "most", "least") or (
        len(word) > 5 and word.endswith("est") and word not in _NO_SUPERLATIVE
    )


def _without_do(words: list[str]) -> list[str]:
    """Remove a form of `do`: `how does X work` becomes `how X works`, `how do I` becomes `how to`,
    `why did X end` becomes `why X ended`."""
    for at in range(1, min(len(words) - 1, 4)):
        # not for `what` and `who`: `what day did shops open` is not `what day shops opened`
        if words[at] == "did" and words[0] not in ("what", "who"):
            verb = _index_in(words, _BOUNDARIES, at + 1) - 1
            past = [words[verb].removesuffix("e") + "ed", *words[verb + 1 :]]
            return [*words[:at], *words[at + 1 : verb], *past] if verb > at + 1 else words
        if words[at] in ("do", "does") and words[at + 1] != "not":
            rest = words[at + 1 :]
            is_for_anyone = words[0] == "how" and at == 1 and rest[0] in ("i", "you", "one")
            return ["how", "to", *rest[1:]] if is_for_anyone else [*words[:at], *rest]
    return words


def _auxiliary_at(words: list[str], place: int) -> list[str]:
    """Return the words with the first auxiliary verb (is, can, does …) at or after `place` moved to
    `place`, as in a question."""
    at = _index_in(words, _AUXILIARIES, place)
    return [*words[:place], *words[at : at + 1], *words[place:at], *words[at + 1 :]]


def _index_in(words: list[str], kind: Collection[str], start: int) -> int:
    """Return the index of the first word at or after `start` that is one of `kind`; the number of
    words if there is none."""
    return next((at for at in range(start, len(words)) if words[at] in kind), len(words))


def _head(words: list[str]) -> int:
    """Return the index of the last word of the noun phrase with which the words begin."""
    return max(_index_in(words, _PARTING, 0) - 1, 0)


def _names_a_fact(words: list[str], *, is_made: bool) -> bool:
    """Return whether the words begin with a noun for a fact that can be looked up, such as
    `population of X`.

    Args:
        is_made: whether the verb before them can mean making as well as finding, as in `establish a
            budget`.
    """
    head = words[_head(words)]
    return head in _FACTS or (head in _MADE_FACTS and not is_made)


def _swap_of(words: list[str]) -> list[str]:
    """Turn `the Y of X` into `X's Y`, in each noun phrase separately."""
    if "of" not in words:
        return words
    swapped: list[str] = []
    start = 1 if words[0] in VERBS else 0
    swapped.extend(words[:start])
    for at in range(start, len(words) + 1):
        if at == len(words) or words[at] in _BOUNDARIES:
            swapped.extend(_owners_first(words[start:at]))
            swapped.extend(words[at : at + 1])
            start = at + 1
    return swapped


def _owners_first(words: list[str]) -> list[str]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == "of":
            parts.append([])
        else:
            parts[-1].append(word)
    if len(parts) < 2 or not all(parts):
        return words
    # `number` cannot be owned, so its `of` stays in `number of moons of X`
    kept = next((at + 1 for at in range(len(parts) - 2, -1, -1) if not _is_owned(parts[at])), 0)
    joined = [word for part in parts[:kept] for word in (*part, "of")] + parts[-1]
    for part in reversed(parts[kept:-1]):
        joined += ["'s", *part]
    return joined


def _is_owned(phrase: list[str]) -> bool:
    word = phrase[-1]
    if word in _NOT_OWNED or (len(phrase) == 1 and word in _NOT_OWNED_ALONE):
        return False
    return word in _FACTS | _MADE_FACTS | _THINGS or not word.endswith(_ACT_ENDINGS)


def _pair_sorted(words: list[str]) -> list[str]:
    """Sort two things that are joined by `and`, have the same number of words, and whose order
    makes no difference: `by weight and cost` becomes `by cost and weight`."""
    if words.count("and") != 1 or not _ORDERED.isdisjoint(words):
        return words
    at = words.index("and")
    start = next(
        (place for place in range(at - 1, -1, -1) if words[place] in _PARTING or place == 0), at
    )
    before = words[start]
    again = 1 if words[at + 1 : at + 2] == [before] else 0  # `in X and in Y`
    end = _index_in(words, _PARTING, at + 1 + again)
    one, other = words[start + 1 : at], words[at + 1 + again : end]
    is_pair = before in _PAIRED_AFTER or (
        before == "between" and start > 0 and words[start - 1] in _MUTUAL
    )
    if not is_pair or not one or len(one) != len(other) or words[end : end + 1] == [before]:
        return words
    return [*words[: start + 1], *min(one, other), "and", *max(one, other), *words[end:]]
