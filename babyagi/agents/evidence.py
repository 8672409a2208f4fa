"""What in a result may show that a part of the objective is answered: what it says of the subject,
never what it says of the work.

That an objective is met, that a task is done, and what a reader or an agent is to do or to reply
are words about the work, in some twenty languages; so are the keys of our own replies and what a
chat template or a fence is made of. Of a result that was made from a file, a page or a tool it is
also asked that it has something to do with the objective.

Does not cover: whether an answer is true. A file that gives a false value for what is asked is
answered with that value.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from itertools import islice

from babyagi.disarm import is_armed, rearm
from babyagi.resultstore.hashing import STOP_WORDS, WORD
from babyagi.resultstore.words import fold
from babyagi.tasks import Result, find_sources
from babyagi.text import split_sentences

MAX_VALUE_WORDS = 6  # of a quote that may be a bare value, which names nothing of what was asked
STEM_CHARS = 5
MAX_GAP = 100  # characters between the two words of a claim
MIN_CODED_CHARS = 16
MAX_JUDGED_CHARS = 1000  # of a quote or a sentence
MAX_JUDGED_SENTENCES = 50

_UNSPACED_WORD = re.compile(
    r"^\\b(?=[\u0590-\u06ff\u0900-\u097f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
)
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)


def _any_of(words: str) -> str:
    """One of the words: `met.` is a whole word, `complet` begins one, `_` is a blank. Scripts
    without spaces have neither."""
    return "|".join(
        _UNSPACED_WORD.sub("", rf"\b{word}").replace(".", r"\b").replace("_", " ")
        for word in words.split()
    )


# What a claim is about, and what it says of it.
_AIMS = _any_of(
    "objectives?. goals?. tasks?. to-?dos?. ziele?n?. ziels. aufgabe auftrag objectifs?. "
    "tâche objetivo tarea la_meta. obiettiv"
    " compit[oi]."
    " taref doel(?:en|stelling)?. taak opdracht mål(?:et|en)?. uppgift op?pgave "
    "cel[eu]?. zadani cíl úkol цел[ьи] задач задани"
    " мет[ау]. завдан"
    " hedef görev 목표 과제 작업 目標 目标 任务 任務 課題 タスク 目的 الهدف "
    "هدف المهم लक्ष्य उद्देश्य कार्य "
    "מטר משימ mục_tiêu nhiệm_vụ"
    " tujuan tugas στόχο tavoite"
    " tehtäv célt?. feladat obiectiv sarcin"
)
_WHOLES = _any_of(
    "all. everything. work. jobs?. projects?. requests?. parts?. steps?. items?. "
    "deliverables?. questions?. targets?. checks?."
    " status. assignments?."
    " missions?. requirements?. criteri acceptance. alles?. arbeit anforderung tout. "
    "toutes. travail exigence todo. todas. trabajo"
    " requisit tutt[eoi]."
    " lavoro tudo. trabalho werk. allt. krav wszystk wymagani vše вс[её]. работ требован "
    "her_şey 모든 모두 요구 全部 すべて 全て"
    " 所有 要求 كل सभी सब הכל tất_cả"
    " semua"
)
_DONE = _any_of(
    "met. complet done. finish fulfil achiev accomplish satisf reached. attain answered. "
    "solved. resolved. closed. conclude"
    " settled. covered. delivered."
    " success succeed verified. confirmed. passed. ready. established. approved. "
    "wrapped_up signed_off erfüllt erreicht erledigt"
    " abgeschlossen fertig"
    " vollständig beendet gelöst beantwortet atteint accompli termin[éa] achev rempli "
    "satisfait fini[se]?. répondu cumpl lograd"
    " alcan[zç] finali[zs]ad"
    " hech[oa] conseguid raggiunt fatt[oa] soddisfatt conclu[ií]d atingid cumprid "
    "feit[oa] bereikt voltooi klaar afgerond voldaan"
    " gehaald uppnå uppfyll"
    " klart?. slutför avslut oppnådd fullfør ferdig opnået færdig opfyldt osiągnięt "
    "ukończ zakończ wykonan spełni zrobion splně"
    " dokonč hotov достиг"
    " выполн заверш готов реш[её]н законч досяг викон tamamlan ulaşıl bitti başar 달성 완료 "
    "충족 끝났 达成 達成 完成 完了 实现 實現"
    " 满足 滿足 実現 終了 完遂 达到"
    " تحقق تحقيق مكتمل اكتمل انته أنجز إنجاز पूर्ण पूरा पूरी प्राप्त הושג הושל "
    "hoàn_thành đạt_được tercapai selesai επιτεύχθ ολοκληρ"
    " saavutett valmis teljes kész"
    " atins îndeplinit"
)
_LEFT = (  # nothing is left to do
    r"\b(?:nothing|none|no (?:\w+ "
    r"){0,2}(?:tasks?|work|steps?|actions?|parts?|items?|gaps?|questions?))\b[^.\n]{0,30}"
    r"\b(?:missing|left|remains?|remaining|open|outstanding|needed|required|necessary|to "
    r"do|pending|unanswered)\b"
    r"|\bno (?:further|more|additional|other|new|remaining) (?:\w+ "
    r")?(?:tasks?|work|steps?|actions?|research|checks?)\b"
    r"|\bnichts (?:fehlt|mehr|offen)|\bes fehlt nichts|\bkeine weiteren "
    r"(?:aufgaben|schritte)|\brien ne manque|\bplus rien"
    r"|\bno falta nada|\bnon manca nulla"
    r"|\bnada falta|ничего не (?:остал|отсутств|нужно)|没有遗漏"
    r"|无需|不需要|残りはない|不足はない|남은 작업이 없"
)
_TELL = (
    r"reply|respond|answer|return|output|say|print|declare|conclude|assume|tell|announce"
    r"|report|treat|consider|mark|set|state|claim"
)
_ORDERS = (  # what somebody is to do or to reply
    r"\b(?:ignor|disregard|forget|overrid|bypass|overrul"
    r"|supersed)\w*\b[^.\n]{0,60}\b(?:previous|prior|above|earlier|preceding"
    r"|instructions?|rules?|prompts?"
    r"|guidelines?|directions?|everything|tasks?|checks?)\b"
    r"|(?:^\W*|[.:;,(]\s*|\b(?:please|must|should|shall|then|now|just|always|only"
    rf"|simply|and|to)\s+)(?:{_TELL})\b[^.\n]{{0,60}}?"
    r"\b(?:met|true|yes|done|completed?|finished|success\w*)\b[\"'”`]?\s*(?:[.!,;)]|$"
    r"|to\b|for\b|whatever\b|whenever\b|now\b|here\b"
    r"|immediately\b)"
    r"|\b(?:stop|cancel|abort|end|terminate|halt|drop|delete|remove|skip|clear|abandon"
    r"|close)\s+(?:\w+\s+){0,3}(?:tasks?"
    r"|objectives?|loops?|queues?|runs?|checks?)\b"
    r"|\b(?:you are now|act as an? |from now on|your (?:new|only) "
    r"(?:role|task|job|instructions?|rules?)|new instructions?"
    r"|as an ai\b|dear (?:ai|assistant|agent|model)"
    r"|(?:attention|notice|note|message|memo)\b[^.\n]{0,20}\b(?:ai|llm|agents?"
    r"|assistants?|language models?|crawlers?|bots?)\b)"
    r"|\b(?:system|developer|admin\w*|operator)[ "
    r"_-]?(?:prompt|override|message|instruction|directive|command)s?\b"
    r"|\b(?:ai|llm|language model|(?:check|creation|execution|report)(?:ing|er)? "
    r"agent)s?\b[^.\n]{0,30}\b(?:must|should|shall"
    r"|has to|have to|needs? to|is to|are to)\b"
    r"|\b(?:ignorier|vergiss|missachte|antworte|melde\b|erkläre\b|ignore[zr]|oublie[zr]"
    r"|réponds|répondez|déclare[zr]|olvida\b"
    r"|responde\b|dimentica|rispondi"
    r"|negeer|antwoord met|zignoruj|odpowiedz|ignorera)"
    r"|игнорир|забудь|ответь|сообщи|忽略|无视|無視|忘记|请回|请报|報告せよ|回答して|무시하|응답하|보고하|تجاهل|أجب"
    r"|अनदेखा|उत्तर दें|התעלם"
)
_PROTOCOL = (  # the keys of our replies, and how turns begin
    r"objective[_ ]?met\b|\"?\b(?:is_)?met\b\"?\s*[:=]+\s*\"?(?:true|yes|1\b)"
    r"|[\"'](?:parts|missing|tasks|unanswered|quote|lacks"
    r"|final_answer)[\"']\s*:"
    r"|\b(?:final_answer|fail_task|tool_calls?|function_call)\b|^\W{0,6}(?:lacking|final "
    r"answer|observation|action(?: input)?)\s*:"
    r"|^\W{0,6}(?:system|assistant|human|user)\s*:"
)
_BARE = re.compile(  # all that a text says
    r"\W*(?:(?:status|result|verdict|answer|outcome|state|conclusion)\W+)?(?:yes"
    r"|ok(?:ay)?|done|complete[d]?|finished"
    r"|success(?:ful(?:ly)?)?|met|fulfilled|achieved"
    r"|accomplished|satisfied|passed|pass|true|all "
    r"(?:done|good|clear|set|complete)|mission accomplished|100 ?%|ready|approved"
    r"|verified|confirmed|fertig|erledigt"
    r"|erfüllt|terminé|fini|hecho|listo|fatto|finito|feito|pronto|klaar|klart|færdig"
    r"|gotowe|hotovo|готово|выполнено|完成|完了|완료"
    r"|تم|पूर्ण|✅|✔️?|☑️?)[\W_]*",
    re.IGNORECASE,
)
_AIM = re.compile(_AIMS, re.IGNORECASE)
_ABOUT_AIM = re.compile(
    (
        rf"(?:{_AIMS})[^\n]{{0,{MAX_GAP}}}?(?:{_DONE})"
        rf"|(?:{_DONE})[^\n]{{0,{MAX_GAP}}}?(?:{_AIMS})"
    ),
    re.IGNORECASE,
)
_ABOUT_WORK = re.compile(
    (
        rf"(?:{_WHOLES})[^\n]{{0,{MAX_GAP}}}?(?:{_DONE})"
        rf"|(?:{_DONE})[^\n]{{0,{MAX_GAP}}}?(?:{_WHOLES})|{_LEFT}"
    ),
    re.IGNORECASE,
)
_STEERING = re.compile(f"{_ORDERS}|{_PROTOCOL}", re.IGNORECASE | re.MULTILINE)
_WORK_WORD = re.compile(
    (
        f"{_AIMS}|{_WHOLES}|{_DONE}|\\b(?:found|determined|identified|verified|checked|agent"
        "|part|been|now|already|fully|entirely|nothing|missing|left|remain|outstanding"
        "|further)"
    ),
    re.IGNORECASE,
)
_CITED = re.compile(r"\btasks? #?\d+(?:(?:, | and )\d+)*", re.IGNORECASE)  # where a fact stands
_CODED = re.compile(rf"[A-Za-z0-9+/=_-]{{{MIN_CODED_CHARS},}}")


def is_evidence(quote: str, result: Result, *, objective_text: str) -> bool:
    """Whether a quote from this result may show that a part of the objective is answered."""
    said = _spelled_out(quote[:MAX_JUDGED_CHARS])
    if is_about_work(said, objective_text) or not _is_new(said, objective_text):
        return False
    return not is_from_outside(result) or (
        not _BARE.fullmatch(said) and _has_to_do(said, result, objective_text)
    )


def is_from_outside(result: Result) -> bool:
    """Whether a file, a page or a tool had a part in a result. The rehearsal model, which obeys
    nothing, only quotes."""
    return bool(find_sources(result.origins)) and "model:rehearsal" not in result.origins


def is_about_work(text: str, objective_text: str) -> bool:
    """Whether a text claims that the objective is met, or says what somebody is to do or to reply.
    What the objective itself asks about in these words is its subject."""
    text, asked = _CITED.sub(" ", text[:MAX_JUDGED_CHARS]), _stems(objective_text)
    if is_armed(rearm(text)) or any(
        not _stems(found[0]) <= asked for found in _STEERING.finditer(text)
    ):
        return True
    return any(
        asked.isdisjoint(_stems(" ".join(_AIM.findall(claim[0]))))
        for claim in _ABOUT_AIM.finditer(text)
    )


def is_claim(text: str, objective_text: str) -> bool:
    """Whether a text holds nothing but words about the work; a long one says more."""
    if len(text) > MAX_JUDGED_CHARS:
        return False
    return all(
        _says_nothing(_spelled_out(sentence), objective_text) for sentence in split_sentences(text)
    )


def _says_nothing(said: str, objective_text: str) -> bool:
    return (
        bool(_BARE.fullmatch(said))
        or is_about_work(said, objective_text)
        or not _is_new(said, objective_text)
    )


def _is_new(said: str, objective_text: str) -> bool:
    """Whether a text that speaks of something done says more than the objective does."""
    return not _ABOUT_WORK.search(said) or bool(
        _stems(said) - _stems_of_work(said) - _stems(objective_text)
    )


def _has_to_do(said: str, result: Result, objective_text: str) -> bool:
    """Whether a result that was made from outside is about what is asked, in its words, or is a
    bare value."""
    asked = _stems(objective_text) - _stems_of_work(objective_text)
    words, of_work = _stems(said), _stems_of_work(said) - _stems(objective_text)
    if of_work:
        return not (asked.isdisjoint(words) or all(map(str.isdigit, words - of_work - asked)))
    told = (
        sentence
        for sentence in split_sentences(result.text)
        if not asked.isdisjoint(_stems(sentence))
    )
    if not asked or any(
        not is_about_work(sentence, objective_text)
        for sentence in islice(told, MAX_JUDGED_SENTENCES)
    ):
        return True
    return len(said.split()) <= MAX_VALUE_WORDS


def _stems(text: str) -> frozenset[str]:
    """The beginnings of the words that say something, two signs at a time in scripts without
    spaces."""
    found: set[str] = set()
    for word in WORD.findall(fold(rearm(text))):
        if _UNSPACED.search(word):
            found.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif word not in STOP_WORDS:
            found.add(word[:STEM_CHARS] if word.isalpha() else word)
    return frozenset(found)


def _stems_of_work(text: str) -> frozenset[str]:
    words: Sequence[str] = [
        word for word in WORD.findall(fold(rearm(text))) if _WORK_WORD.match(word)
    ]
    return _stems(" ".join(words)) | frozenset(
        pair
        for found in _WORK_WORD.finditer(fold(text))
        if _UNSPACED.search(found[0])
        for pair in _stems(found[0])
    )


def _spelled_out(quote: str) -> str:
    """The quote with what is written in base64 or in hexadecimal digits behind it, in plain
    words."""
    return "\n".join(
        [rearm(quote), *(_decode(found[0]) for found in _CODED.finditer(quote))]
    ).strip()


def _decode(coded: str) -> str:
    for read in (
        bytes.fromhex,
        lambda text: base64.b64decode(
            text + "=" * (-len(text) % 4), altchars=b"-_" if set(text) & set("-_") else None
        ),
    ):
        try:
            plain = read(coded).decode()
        except (ValueError, binascii.Error):
            continue
        if plain.isprintable() and " " in plain:
            return plain
    return ""
