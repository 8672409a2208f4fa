"""What kind of thing a task asks for, from the words of its name: the same reply answers one task
and fails another.

Each pattern is searched in the folded name.
"""

from __future__ import annotations

import re


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


ASKS_GAPS = _any(
    r"\b(?:missing|lack\w*|gaps?|unknowns?|still (?:need|open|unclear)|not (?:yet "
    r")?know|don't (?:yet )?know|open (?:questions?"
    r"|points|issues|items)|assum\w+|limit(?:s|ations?)|caveats?|prerequisites?"
    r"|requirements?|blockers?|blocks|obstacles?|unanswered"
    r"|unresolved)\b",
    (
        r"\b(?:what|which)\b.*\b(?:needs?|needed|required?|requires)\b|\bshortages?\b"
        r"|\bweak\w*\b|\buncertain\w*\b|\bdepend\w*\b"
    ),
    r"\bfehl\w*|\boffene?\b|\bmanqu\w+|\blacunes?\b|\bfaltan?\b|\bfaltante\w*|\bmanca\w*"
    r"|\bontbre\w+|\bsaknas?\b|\bbrak\w*|不足|缺|欠け"
    r"|пробел|не хватает|отсутств",
)
ASKS_STATE = _any(
    (
        r"^\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may"
        r"|who|whose|when|why|where|how)\b|\?\s*$|？\s*$"
    ),
    r"\b(?:check|verif\w+|whether|confirm|search\w*|look "
    r"(?:for|through)|mentions?|review\w*|audit|inspect|scan|diagnos\w+|debug"
    r"|test|why|explain|describe|report\w*|status|state "
    r"of|progress|bugs?|duplicates?|errors?|faults?|problems?|risks?|evidence|any"
    r"|validate|assess|evaluate|examine|investigate|monitor|proof|records? "
    r"of|decide|rules?|conditions?|regulations?|procedures?"
    r"|laws?|obligations?|eligib\w+|criteria|process|protocol|recipe|advice|tips"
    r"|guidance|guide|checklist|precautions?|terms"
    r"|restrictions?|advise|recommend|meaning|reasons?|causes?|threats?|dangers?"
    r"|effects?|impacts?|consequences?|outcome|causing"
    r"|drawbacks?|disadvantages?|quality|suggest|propose|judge|opinion|next|define"
    r"|definition|principle|theorem|conclu\w+|findings?"
    r"|claims?|says|compare|possible|feasib\w+)\b",
    r"\b(?:über)?prüfe?n?\b|\bsuche?n?\b|\bob\b|\bkontrolli\w*|\bvérifi\w*|\bcherche\w*"
    r"|\bsi\b|\bverifi\w*|\bbusca\w*|\bcomprob\w*"
    r"|\bcontrolla\w*|\bcerca\w*|\bse\b|\bcontroleer\w*|\bzoek\w*|\bsprawdź\b"
    r"|\bkontroll\w*|\bпровер\w+|\bимеет\w* ли\b|\bли\b"
    r"|\b(?:difett|défaut|defect|problem|erreur|error|fehler|mängel|schäd|fout)\w*|確認|检查"
    r"|检验|是否|查找|확인",
)
ASKS_WORDS = _any(
    r"\b(?:writ\w+|wrote|draft\w*|compos\w+|translat\w+|quot\w+|read|extract|cop(?:y"
    r"|ies)|transcri\w+|rephras\w+|rewrit\w+|(?:did"
    r"|does) .{1,80}(?:answer|reply|respond)|lyrics|poem|haiku|verse|limerick|speech"
    r"|toast|letter|e-?mail|message|dialog\w*|template"
    r"|script|story|scene|play|interview|questions?|quiz|survey|faq|slogan|repl(?:y|ies)"
    r"|say|says|said|policy|form|ask|plan|steps"
    r"|outline|roadmap|notice|statement|text|words|sentence|wording|apolog\w+|example"
    r"|sample|joke|riddle|diary|post|tweet|title"
    r"|headline|instructions?|paraphras\w+|chat\w*|bot|sign|label|caption|prompt"
    r"|response|transcript|error|disclaimer|newsletter"
    r"|promis\w+|pledge|vow|greet\w*|thank|invit\w+|announc\w+|introduc\w+"
    r"|congratulat\w+|warn\w*|memo|voicemail|note|complain\w*"
    r"|monologue|song|prayer|fable|tale|sonnet|stderr|stdout|log|placeholder|tooltip"
    r"|recit\w+|formulat\w+|phrase)\b",
    r"\bschreib\w*|\bverfass\w*|\bformulier\w*|\bübersetz\w*|\bzitier\w*|\blies\b"
    r"|\bentw[iu]rf\w*|\brédig\w+|\btradui\w+|\bécri\w+"
    r"|\bcit(?:e|er|a|ar)\b|\btrad[uú]\w+|\bescrib\w+|\bredact\w+|\bscriv\w+|\bescrev\w+"
    r"|\bschrijf|\bvertaal|\bskriv\w*|\böversätt"
    r"|\boversett|\bnapisz|\bprzetłumacz|\bнапи\w+|\bперевед\w+|\bпроцитир\w+|書|訳|作成|写"
    r"|翻译|翻譯|起草|써|번역",
)
ASKS_PRODUCT = _any(
    r"\b(?:json|code|function|schema|tool|api|call|snippet|payload|request|command"
    r"|repeat|refrain|chorus|times|pattern|matrix"
    r"|sequence|padding|stress|token|tag|chant|mantra)\b"
)
ASKS_REFUSAL = _any(
    r"\b(?:declin|refus|apolog|reject|sorry|disclaim|polic|rule|quot|translat|said\b"
    r"|says\b|(?:did|does|do|to)\b.*\bsay\b|wrote"
    r"|bot\b|dialog|limits?\b|turn(?:ing)? "
    r"down)|absag|entschuldig|übersetz|refus|excus|tradu|disculp|rechaz|断り|訳|谢绝|翻译|道歉|отказ"
    r"|извин|перевед"
)
ASKS_SIGN = _any(
    r"\b(?:character|symbol|sign|operator|delimiter|separator|punctuation|mark|regex"
    r"|emoji|glyph|token|tag|bracket|letter|prefix"
    r"|suffix|wildcard|draw|ascii|diagram|pattern|grid|maze|plot|chart|histogram|as "
    r"text|border|divider|list|json|array|object|set)s?\b"
)
ASKS_QUOTE = _any(
    r"\b(?:quot\w+|repeat|restate|cop(?:y|ies)|recite|objective|instructions?|prompt"
    r"|verbatim|echo|rephras\w+|paraphras\w+)\b"
)
# A task that works on a text given to it, whatever kind of text that is.
WORKS_ON_TEXT = re.compile(
    r"^\W*(?:summari[sz]e|proofread|edit|convert|analy[sz]e|compute|calculate|determine"
    r"|plot|fix|check|review|assess|grade|book"
    r"|debug|refactor|run|verify|test|compare|count|find|estimate|classify|rate|sort"
    r"|name|list|explain|describe|state|identify"
    r"|report|show)\b(?!.*\b(?:say|says|said|wrote|write|wording|quote|text "
    r"of|sentence|message|error|reply to|response|questions?"
    r"|phrase|refus\w*)\b)"
)
# A task that retells what somebody else says: only words about the reply itself are the reply's
# own.
ASKS_DIGEST = _any(
    r"\b(?:summar\w+|digest|outline|retell|recap\w*|paraphras\w+|condense|abstract|minutes|gist)\b",
    r"\bzusammenf\w+|\bfasse\b|\brésum\w+|\bresum\w+|\briassum\w+|\bsamenvat\w*"
    r"|\bsammanfatt\w*|\bstreszcz\w*|要約|まとめ|总结|摘要|резюм"
    r"|излож|요약",
)

# A task for a made-up text, which may say anything.
ASKS_FICTION = _any(
    r"\b(?:write|compose|tell|invent|make|draft|give|continue)\b.*\b(?:monologue|poem"
    r"|haiku|limerick|story|scene|lyrics|song"
    r"|dialog\w*|joke|riddle|verse|sonnet|prayer|fable|tale|chant|epitaph|diary"
    r"|character|fiction|novel|rhyme)\b"
)
# A task for a text that says no.
ASKS_NO = _any(
    r"\b(?:declin|refus|apolog|reject|disclaim|turn(?:ing)? "
    r"down)|\babsag|\brefus|\bexcus|\brechaz|отказ|谢绝|断り"
)


def asks_words(task: str) -> bool:
    """Whether the task asks for words that are somebody else's: a letter, a translation, a
    quote."""
    return bool(ASKS_WORDS.search(task)) and not WORKS_ON_TEXT.match(task)


def holds_quote(task: str) -> bool:
    """Whether the task itself holds the text that it is about."""
    return bool(re.search(r"[\"“«„「'‘][^\"”»“」'’]{6,}[\"”»“」'’]", task))
