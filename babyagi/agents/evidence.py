"""Decides which quotes can show that a part of an objective is answered.

A file, a page or the output of a tool may claim that everything is done, or give instructions. Such
a text is not evidence, however it is worded. This module recognizes such wordings, and determines
what the clauses of an objective ask for: a quote from outside must provide exactly that.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Iterator, Sequence
from enum import Enum, auto
from itertools import islice

from babyagi.index.hashing import STOP_WORDS, WORD
from babyagi.index.trigrams import fold
from babyagi.tasks import Result, find_sources
from babyagi.text import OPENING, is_armed, late_pattern, rearm, split_sentences, unmix
from babyagi.tools.catalog import RUN_PYTHON
from babyagi.tools.recall import RECALL

MAX_VALUE_WORDS = 6  # a quote with at most so many words may be a bare value
MIN_ITEMS = 3  # a list of values has at least so many
MIN_REPEATED = 4  # with so many words, an objective may be repeated by a text
MIN_NEW = 2  # a longer text needs so many words beyond the objective's
# A text is related to an objective without names if it has so many words of its own. If it also
# speaks of the work, it needs more of them.
MIN_TOLD, MIN_TOLD_BESIDE_WORK = 4, 6
MIN_FOREIGN = 0.1  # of a text's words, common ones of another language
STEM_CHARS = 5
MIN_FOLDED_CHARS = 3  # words longer than this lose an `s` at the end
MAX_GAP = 100  # characters between the two words of a claim
MIN_CODED_CHARS = 16
MAX_JUDGED_CHARS = 1000  # of a quote or text, only so many are judged
MAX_JUDGED_SENTENCES = 50

_UNSPACED_WORD = late_pattern(
    r"^\\b(?=[\u0590-\u06ff\u0900-\u097f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
)
NO_SPACES = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
UNSPACED = late_pattern(f"[{NO_SPACES}]")


def _any_of(words: str) -> str:
    """Return a pattern for any of the words. `met.` is a whole word, `complet` the beginning of a
    word, and `_` stands for a blank. In scripts without spaces, a word is found anywhere."""
    return "|".join(
        _UNSPACED_WORD.sub("", rf"\b{word}").replace(".", r"\b").replace("_", " ")
        for word in words.split()
    )


# A claim says of one of these, or of one of `_WHOLES`, that it is done (`_DONE`).
_AIMS = _any_of(
    "objectives?. goals?. tasks?. to-?dos?. ziele?n?. ziels. aufgabe auftrag objectifs?. tâche "
    "objetivo tarea la_meta. obiettiv compit[oi]. taref doel(?:en|stelling)?. taak opdracht "
    "mål(?:et|en)?. uppgift op?pgave cel[eu]?. zadani cíl úkol цел[ьи] задач задани мет[ау]. "
    "завдан hedef görev 목표 과제 작업 目標 目标 任务 任務 課題 タスク 目的 الهدف هدف المهم लक्ष्य "
    "उद्देश्य कार्य מטר משימ mục_tiêu nhiệm_vụ tujuan tugas στόχο tavoite tehtäv célt?. feladat "
    "obiectiv sarcin"
)
_WHOLES = _any_of(
    "all. everything. work. jobs?. projects?. requests?. parts?. steps?. items?. deliverables?. "
    "questions?. targets?. checks?. information. data. details. answers?. findings. results?. "
    "evidence. research. particulars. status. assignments?. missions?. requirements?. criteri "
    "acceptance. alles?. arbeit anforderung tout. toutes. travail exigence todo. todas. trabajo "
    "requisit tutt[eoi]. lavoro tudo. trabalho werk. allt. krav wszystk wymagani vše вс[её]. работ "
    "требован her_şey 모든 모두 요구 全部 すべて 全て 所有 要求 كل सभी सब הכל tất_cả semua"
)
_DONE = _any_of(
    "met. complet done. finish fulfil achiev accomplish satisf reached. attain answered. solved. "
    "resolved. closed. conclude settled. covered. delivered. gathered. collected. obtained. "
    "retrieved. received. provided. supplied. available. correct. sufficient. final. success "
    "succeed verified. confirmed. passed. ready. established. approved. wrapped_up signed_off "
    "erfüllt erreicht erledigt abgeschlossen fertig vollständig beendet gelöst beantwortet atteint "
    "accompli termin[éa] achev rempli satisfait fini[se]?. répondu cumpl lograd alcan[zç] "
    "finali[zs]ad hech[oa] conseguid raggiunt fatt[oa] soddisfatt conclu[ií]d atingid cumprid "
    "feit[oa] bereikt voltooi klaar afgerond voldaan gehaald uppnå uppfyll klart?. slutför avslut "
    "oppnådd fullfør ferdig opnået færdig opfyldt osiągnięt ukończ zakończ wykonan spełni zrobion "
    "splně dokonč hotov достиг выполн заверш готов реш[её]н законч досяг викон tamamlan ulaşıl "
    "bitti başar 달성 완료 충족 끝났 达成 達成 完成 完了 实现 實現 满足 滿足 実現 終了 完遂 达到 "
    "تحقق تحقيق مكتمل اكتمل انته أنجز إنجاز पूर्ण पूरा पूरी प्राप्त הושג הושל hoàn_thành đạt_được "
    "tercapai selesai επιτεύχθ ολοκληρ saavutett valmis teljes kész atins îndeplinit"
)
_LEFT = (  # phrases for "nothing is left to do"
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
_ORDERS = (  # instructions: what somebody should do or reply
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
_PROTOCOL = (  # the keys of our replies, and the beginnings of turns
    r"objective[_ ]?met\b|\"?\b(?:is_)?met\b\"?\s*[:=]+\s*\"?(?:true|yes|1\b)"
    r"|[\"'](?:parts|missing|tasks|unanswered|quote|lacks"
    r"|final_answer)[\"']\s*:"
    r"|\b(?:final_answer|fail_task|tool_calls?|function_call)\b|^\W{0,6}(?:lacking|final "
    r"answer|observation|action(?: input)?)\s*:"
    r"|^\W{0,6}(?:system|assistant|human|user)\s*:"
)
_BARE = late_pattern(  # texts that contain nothing else
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
_AIM = late_pattern(_AIMS, re.IGNORECASE)
_ABOUT_AIM = late_pattern(
    rf"(?:{_AIMS})[^\n]{{0,{MAX_GAP}}}?(?:{_DONE})"
    rf"|(?:{_DONE})[^\n]{{0,{MAX_GAP}}}?(?:{_AIMS})",
    re.IGNORECASE,
)
_ABOUT_WORK = late_pattern(
    rf"(?:{_WHOLES})[^\n]{{0,{MAX_GAP}}}?(?:{_DONE})"
    rf"|(?:{_DONE})[^\n]{{0,{MAX_GAP}}}?(?:{_WHOLES})|{_LEFT}",
    re.IGNORECASE,
)
_STEERING = late_pattern(f"{_ORDERS}|{_PROTOCOL}", re.IGNORECASE | re.MULTILINE)
_WORK_WORD = late_pattern(
    f"{_AIMS}|{_WHOLES}|{_DONE}|\\b(?:found|determined|identified|verified|checked|agent"
    "|requested|asked|wanted|needed|sought|known|ended|dealt|handled|processed"
    "|addressed|checklist|earlier|today"
    "|(?:auditor|reviewer|supervisor|operator|yours?|you|we|i|both|here|hereby|above|below"
    "|over|end)\\b"
    "|part|been|now|already|fully|entirely|nothing|missing|left|remain|outstanding"
    "|further)",
    re.IGNORECASE,
)
# Words for handling knowledge. That something was found says nothing of what it is, so of a clause
# with such a word only what follows counts: `found to be`, `reported that`, `measured at 7`.
_REPORTED = late_pattern(
    r"(?<!-)(?:"
    + _any_of(
        "found. determined.(?!_by.) established. settled. resolv identif verified. confirm clarif "
        "ascertain answered. checked. reviewed. audited. inspected. examined. measured. counted. "
        "surveyed. recorded. documented. dokumentiert. described. explained. registered. archived. "
        "filed. noted. tabulated. analy[sz]ed. assessed. evaluated. compared. discussed. approved. "
        "certified. investigated. researched. catalogued. listed. reported. stated. specified. "
        "covered. summari[sz]ed. summar(?:y|ies). mentioned. looked_up. traced. dated. attributed. "
        "mapped. ranked. cited. characteri[sz]ed. known. understood. available. complete. final. "
        "correct. current. up_to_date. on_file. undisputed. certain. clear. cleared. agrees?. "
        "agreed. accounted. shown. announced. demonstrated. as_given. posted. published. set_out. "
        "tested. treated. said. dealt. see. gives?. names?. proven. proved. accepted. obtained. "
        "implement identified. issued. submitted. signed. handed. in_order. comparison. "
        "explanation. overview. analysis. enquiry. inquiry. request. ermittelt gefunden bestimmt "
        "geklärt erledigt festgestellt bestätigt beantwortet vermess geprüft überprüft "
        "eingetragen bekannt ausgeschildert verzeichnet erfasst liegt liegen vollständig "
        "trouvée?s?. déterminée?s?. identifiée?s?. établie?s?. confirmée?s?. vérifiée?s?. "
        "réglée?s?. traitée?s?. connue?s?. réponses?. répondu. complète?s?. encontr[aó] "
        "determinad identificad establecid confirmad averiguad verificad aclarad resuelt[ao] "
        "conocid[ao]s?. listad[ao]s?. completad trovat[aeio]. accertat identificat confermat "
        "determinat[aeio]. verificat[aeio]. chiarit[aeio]. risolt[aeio]. not[aoi]. "
        "completat[aeio]. gevonden. bepaald. vastgesteld bevestigd "
        "найден определ[её]н установлен подтвержд[её]н выяснен znalezion ustalon potwierdzon "
        "bulundu belirlendi doğruland 查明 找到 确认 确定 判明 見つか 確認 特定 찾았 확인 "
        "밝혀"
    )
    + ")",
    re.IGNORECASE,
)
_COMPLEMENT = late_pattern(
    r"\W*\w*\s*(?:that|to be|to have|dass|[:=]|as (?=[\d\"'])|(?:at|with|mit|auf) (?=\W?\d))",
    re.IGNORECASE,
)
_VERB_OF = {
    "written": "write", "drawn": "draw", "made": "make", "built": "build", "chosen": "choose",
    "given": "give", "shown": "show", "told": "tell", "read": "read", "put": "put", "sent": "send",
    "found": "find", "drafted": "draft", "geschrieben": "schreibe", "gegeben": "gib",
    "genannt": "nenne", "verglichen": "vergleiche", "beschrieben": "beschreibe",
}  # fmt: skip
_PARTICIPLE = late_pattern(
    rf"\b(?:\w+ed|{'|'.join(_VERB_OF)}|(?:\w{{2,4}})?ge(?P<german>\w{{3,}}t))\b", re.IGNORECASE
)
_CLAUSE = late_pattern(r"[;,!?\n|]|[.:](?=\s|$)|\s[-–—]\s|\b(?:but|aber)\b")
# What documents, offices and dates are called, and participles and adverbs: they say where, when,
# how and that something is known.
_ATTESTED = late_pattern(
    r"\b(?:tables?|annex|register|minutes|notice|pages?|sections?|chapter|reports?|statements?"
    r"|archive|files?|documents?|summary|lists?|surveys?|records?|entry|panel|office|department"
    r"|experts?|group|team|literature|open|points?|deviations?|findings?|doubt|dispute|issues?"
    r"|questions?|both|order|reference|society|sources?|inspection|census|data|state|status"
    r"|outcome|result|verdict|success|pass|ok|incident|usual|full|detail|length|last|next|first"
    r"|second|since|person|figure|case|matter|item|request|end|way|value|answers?|reasons?|cause"
    r"|either|users?|again|overall|board|committee|council|notes?|took|tickets?|reviews?|held|audit"
    r"|\w{2,}ed|\w{3,}ly|ge\w{3,}t|ge\w{2,}en|\w+iert|offen\w*|keine|angaben?"
    r"|abweichung\w*)\b",
    re.IGNORECASE,
)
_MONTH = (
    r"(?:jan(?:uary?|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|märz|apr(?:il)?|ma[iy]|june?|juni|july?|juli"
    r"|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)\b"
)
_DATE = late_pattern(
    rf"\b\d{{1,2}}(?:\.|st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?:\s+\d{{4}})?|\b{_MONTH}\s+\d{{1,4}}\b"
    r"|\b\d{4}-\d\d(?:-\d\d)?\b|\b(?:1[5-9]|20)\d\d\b|\b\d\d?:\d\d\b",
    re.IGNORECASE,
)
_NUMERAL = late_pattern(
    r"\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty"
    r"|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion|dozen|half"
    r"|quarter|once|twice|none|\w*(?:zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf"
    r"|hundert|tausend)\w*)\b",
    re.IGNORECASE,
)
_TIME_WORD = late_pattern(
    rf"\b(?:{_MONTH}|\w+day|noon|midnight|morning|afternoon|evening|night|spring|summer|autumn"
    r"|winter|century|ago|never|always)\b",
    re.IGNORECASE,
)
# What the clauses of an objective ask for. A person wrote it, so its words can be trusted.
_ASKS_DEED = late_pattern(
    r"(?:please\s+|then\s+)*(?:(?:send|e?-?mail|post|forward|fix|repair|mend|rename|move|copy|delete"
    r"|remove|update|upgrade|install|deploy|run|execute|test|ensure|make sure"
    r"|(?:verify|validate)(?! that| whether| if)"
    r"|back\s?up|restore|book|reserve|order|buy|pay|refund|transfer|invite|notify|publish"
    r"|upload|download|submit|schedule|configure|start|restart|stop|open|close|cancel|set|change"
    r"|replace|edit|archive|enable|disable|merge|commit|push|approve|assign|clean|sign"
    r"|create (?:an? |the )?(?:\w+ )?(?:issue|ticket|branch|folder|directory|account|event|backup)"
    r"|sende|schicke?|teste|repariere|buche|bestelle|lösche|verschiebe|prüfe, (?:ob|dass))\b"
    r"|(?:write|put|save|store)\b.*\b(?:in)?to\s+(?:(?:the|a)\s+)?(?:\S*\.\w{1,5}\b|\w*\s*file\b))",
    re.IGNORECASE,
)
# Clauses that begin like an action and ask for a text: a changed wording, an analysis, an order, or
# what a file or a page says.
_ASKS_TEXT = late_pattern(
    r"(?:please\s+|then\s+)*(?:"
    r"(?:fix|mend|repair|edit|change|replace|remove|move|rename|clean|set|close|stop|assign|update)"
    r"\s+(?:\S+\s+){0,3}?(?:texts?|paragraphs?|sentences?|wording|grammar|spelling|punctuation"
    r"|style|tone|voice|words?|phrases?|poems?|essays?|stor(?:y|ies)|recipes?|drafts?|arguments?"
    r"|duplicates?|categor(?:y|ies)|variables?|verses?|stanzas?)\b"
    r"|(?:merge|clean|order)\s+(?:\S+\s+){0,3}?lists?\b"
    r"|(?:run|execute|test)\s+(?:\S+\s+){0,2}?(?:analys[ie]s|comparisons?|calculations?|numbers"
    r"|claims?|hypothes[ie]s|theor(?:y|ies)|assumptions?|statements?|ideas?)\b"
    r"|order\s[^.;]*\bby\b(?!\s(?:\w+day|tomorrow|noon|\d|the end))"
    r"|(?:open|download)\s+(?:the\s+)?(?:files?|pages?|documents?|folder|article|link|https?://"
    r"|\S+\.\w{2,4})\b"
    r")(?!.*\b(?:in)?to\s+\S+\.\w)",
    re.IGNORECASE,
)
_INFORMS = late_pattern(
    r"(?:please\s+)?(?:find|look|search|research|learn|read|list|name|tell|say|give|show|get|collect"
    r"|gather|identif|determin|investigat|analy|review|describ|explain|summar|compar|discuss|recommend"
    r"|count|calculat|comput|extract|translat|draft|plan|check|verif|validat|wh|how|in|from|to|the|an?"
    r"|its?|their|finde|suche|nenne|liste|was|wer|wo|wie|warum|wann|welche)",
    re.IGNORECASE,
)
_OBJECT = late_pattern(
    r"\s+(?:(?:the|an?|it|them|this|that|these|those|my|our|your|his|her|their|each|every|all|both"
    r"|me|him|us|mrs?|ms|dr|den|die|das|dem|eine?n?|mein\w*|unser\w*)\b|(?-i:[A-Z])|\w+[./]\w)"
    r"|\s*$",
    re.IGNORECASE,
)
_ASKS_WHETHER = late_pattern(
    r"(?:was(?! (?:kostet|ist|sind|macht|heißt|bedeutet|sagt|steht|gibt))"
    r"|is|are|were|do|does|did|has|have|had|can|could|will|would|should|may|must|ist|sind|hat"
    r"|haben|wurden?|kann|gibt)\b|.*\b(?:whether|if|ob|status|state of|still|done|open(?!-)"
    r"|finished|missing|left|decid\w+|happen\w*)\b",
    re.IGNORECASE,
)
_ASKS_NUMBER = late_pattern(
    r".*\b(?:how (?:many|much|long|far|old|high|tall|big|large|heavy|fast|deep|wide|hot|cold)"
    r"|(?:number|price|cost|fee|toll|fare|population|height|length|width|depth|weight|area|size"
    r"|volume|speed|temperature|pressure|age|density|count|total|sum|average|mean value|median"
    r"|distance|duration|share|percentage|value|amount|salary|revenue|profit|score|dose|port|version"
    r"|time-?out|consumption|(?:melting|boiling|freezing) point)s?"
    r"|wie (?:viele?|hoch|lang|oft|alt|groß|schwer|weit|tief|breit)|was kostet|preise?|höhe|länge"
    r"|anzahl|zahl|gewicht|fläche|größe|summe|alter)\b",
    re.IGNORECASE,
)
_ASKS_TIME = late_pattern(
    r".*\b(?:when|how often|what (?:time|day)|dates?|years?|since|wann|jahr|datum)\b", re.IGNORECASE
)
_ASKS_ANYTHING = late_pattern(
    r"(?:how(?! (?:many|much|long|far|often|old|high|tall|big|large|heavy|fast|deep|wide|hot|cold))"
    r"|why|who|where|explain|describe|summar\w+|compare|discuss|write|warum"
    r"|wer|wo|erkläre|beschreibe|vergleiche)\b",
    re.IGNORECASE,
)
_QUESTION_WORD = late_pattern(
    r"\b(?:what|which|who|whom|whose|where|when|why|how(?: (?:many|much|long|far|often|old))?"
    r"|was|welche[rmns]?|wer|wem|wen|wo|wohin|woher|wann|warum|wie(?: (?:viele?|oft|lange?))?)\b",
    re.IGNORECASE,
)
_ASKS_PLACE = late_pattern(
    r"\b(?:which|what|welche[rmns]?) (?:pages?|chapters?|sections?|annex|appendix|editions?"
    r"|volumes?|tables?|figures?|lines?|items?|parts?|steps?|articles?|clauses?|paragraphs?|points?)\b",
    re.IGNORECASE,
)
_YES_OR_NO = late_pattern(
    r"\W*(?:yes|no|not|none|neither|never|nobody|ja|nein|nicht|nie|niemand|keine?[rmns]?|oui|non|sí|sì)\b",
    re.IGNORECASE,
)
_NEGATION = late_pattern(r"\b(?:no|not|never|nobody|neither|kein\w*|nicht)\b", re.IGNORECASE)
_OR = late_pattern(r",?\s+(?:or|oder|ou|o)\s+", re.IGNORECASE)
_ASKS_TO_CHOOSE = late_pattern(
    r"\?|\b(?:which|whether|should|welche[rmns]?|ob|soll(?:en|te|ten)?|quel(?:le)?s?|cuál(?:es)?"
    r"|qual[ei]?)\b",
    re.IGNORECASE,
)
_NOT_DONE = "needed required wanted missing left remaining"  # words of work that do not claim it
_CLAUSE_END = late_pattern(r"[?,;:.]\s|\?")
_BECAUSE = late_pattern(r"\b(?:because|due to|caused by|weil|wegen|durch)\b", re.IGNORECASE)
_AND = late_pattern(r"[?;.]\s|,\s|\b(?:and|with|und)\b", re.IGNORECASE)
_NO_VALUE = late_pattern(
    # when a line was logged
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*(?:\s+\W?[A-Z]{4,8}\b\W?)?"
    # how much is done, and how certain it is
    r"|\b(\d+)\s?(?:/|of|out of)\s?\1\b|\b100\s?%|\b(?:true|false|none|null|yes|no|ok)\b"
    r"|\b(?:confidence|certainty|probability|likelihood|score)\b\W{1,4}[\d.]+"
    # where to find something
    rf"|^\W*\d+[.)]\s+(?!\s|{_MONTH})"
    r"|(?P<place>\b(?:page|p|pp|chapter|section|annex|appendix|edition|volume|table|figure"
    r"|line|item|part|step|task|series|test|run|batch|no|article|clause|definition|note|paragraph"
    r"|point|question|statement)s?\b\W{0,2}\d+(?:(?:, | and | of |[-–])\d+)*)"
    # who says it
    r"|\b(?:said|says|wrote|reported|confirmed|verified|signed|approved|according to)(?: by)?"
    r"(?-i: [A-Z]\w+)+",
    re.IGNORECASE,
)
_ITEM_END = late_pattern(r"[,;\n]|\s(?:and|or|und|oder|et|ou|y|e|o|&)\s", re.IGNORECASE)
_HEADING = late_pattern(r"\s*#{1,6}\s[^\n]*\s*\Z")
# A few words with one of these are an English sentence, not a bare value.
_STATES = late_pattern(r"\b(?:is|are|was|were|has|have|had|been|can|may|must|shall|will)\b", re.I)
_TOKEN = late_pattern(r"[A-Za-z0-9]+(?:[-.,/][A-Za-z0-9]+)*|[^\W_]+")
# The most common words of languages in Latin letters that are not English words.
_GERMAN = frozenset(
    "der das und ist nicht ein eine einen dem zu von mit für auf im sich wurde wird sind".split()
)
_FOREIGN = _GERMAN | frozenset(
    "le les de et est une du pas que qui dans pour sur au il ne ce el los las del por para su lo "
    "con una gli della di è che sono nel os da um uma não ao foi het een niet op te dat voor zijn "
    "och det att är på av för og til ikke jest się nie jako bir bu ve için ile".split()
)
_GLUE = frozenset(word[:STEM_CHARS] for word in (*_FOREIGN, "die", "wurden", "wer"))
_CITED = late_pattern(r"\btasks? #?\d+(?:(?:, | and )\d+)*", re.IGNORECASE)  # a reference to a task
# Built-in tools that only compute. Whatever they read is listed as an origin of its own.
ONLY_COMPUTES = frozenset({"tool:calculator", f"tool:{RUN_PYTHON}"})
# It returns earlier results, whose own sources are listed as origins.
FROM_INSIDE = ONLY_COMPUTES | {f"tool:{RECALL}"}
DOERS = frozenset({"tool:write_file"})
_CODED = late_pattern(rf"[A-Za-z0-9+/=_-]{{{MIN_CODED_CHARS},}}")


def is_evidence(
    quote: str, result: Result, *, objective_text: str, doers: Collection[str] = DOERS
) -> bool:
    """Return whether a quote from this result can show that a part of the objective is answered.

    Args:
        doers: the tools that act on the world, as origins (`tool:NAME`). A result to which one of
            them contributed can show that a requested action was carried out.
    """
    said = _spelled_out(quote[:MAX_JUDGED_CHARS])
    if is_about_work(said, objective_text) or not _is_new(said, objective_text):
        return False
    return (
        not is_from_outside(result)
        or (_may_want_a_deed(objective_text) and has_acted(result, doers))
        or (
            WORD.search(said) is not None
            and not _BARE.fullmatch(said)
            and _may_answer(said, result, objective_text)
            and _has_to_do(said, result, objective_text)
        )
    )


def has_acted(result: Result, doers: Collection[str]) -> bool:
    """Return whether a tool that acts on the world, or one that computes, contributed to a result.

    Args:
        doers: the tools that act on the world, as origins (`tool:NAME`).
    """
    return not ONLY_COMPUTES.union(doers).isdisjoint(result.origins)


def is_from_outside(result: Result) -> bool:
    """Return whether a file, a page or a tool contributed to a result. Tools that only compute, or
    that only search earlier results, do not count; a file that was read is listed as an origin of
    its own. Results of the rehearsal model do not count either, because it only quotes and obeys no
    text."""
    outside = (origin for origin in find_sources(result.origins) if origin not in FROM_INSIDE)
    return any(outside) and "model:rehearsal" not in result.origins


def is_about_work(text: str, objective_text: str) -> bool:
    """Return whether a text claims that the objective is met, or tells the reader what to do or to
    reply. Words of that kind do not count if the objective itself is about them."""
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
    """Return whether every sentence of a text only speaks about the work (that something is done,
    complete, checked …) and says nothing else. A text over `MAX_JUDGED_CHARS` is assumed to say
    more."""
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
    """Return whether the text says more than that work is done. It does if it does not speak about
    work, or if it has words that are neither in the objective nor about work."""
    return not _ABOUT_WORK.search(said) or bool(
        _stems(said) - _stems_of_work(said) - _stems(objective_text)
    )


class _Asked(Enum):
    """The kind of thing that a clause of an objective asks for, such as an action or a number."""

    DEED = auto()  # an action
    WHETHER = auto()  # whether, or to what extent, something is true
    NUMBER = auto()
    TIME = auto()
    ANYTHING = auto()


def _asked_for(objective_text: str) -> frozenset[_Asked]:
    """Return the kinds of things that the clauses of an objective ask for."""
    kinds = (
        (_ASKS_TEXT, _Asked.ANYTHING),
        (_ASKS_DEED, _Asked.DEED),
        (_ASKS_ANYTHING, _Asked.ANYTHING),
        (_ASKS_WHETHER, _Asked.WHETHER),
        (_ASKS_NUMBER, _Asked.NUMBER),
        (_ASKS_TIME, _Asked.TIME),
        (re.compile(""), _Asked.ANYTHING),
    )
    return frozenset(
        next(kind for pattern, kind in kinds if pattern.match(clause))
        for clause in map(str.strip, _AND.split(objective_text))
        if _stems(clause)
    )


def _may_want_a_deed(objective_text: str) -> bool:
    """Return whether a clause of an objective asks for an action, or is not known to ask for
    information."""
    return any(
        not _ASKS_TEXT.match(clause)
        and (
            _ASKS_DEED.match(clause) or not (_INFORMS.match(clause) or _ASKS_WHETHER.match(clause))
        )
        for clause in map(str.strip, _AND.split(objective_text))
        if " " in clause
    )


def find_deeds(objective_text: str) -> list[str]:
    """Return the clauses of an objective that certainly ask for an action."""
    return [
        clause
        for clause in map(str.strip, _AND.split(objective_text))
        if not _ASKS_TEXT.match(clause)
        and (deed := _ASKS_DEED.match(clause))
        and _OBJECT.match(clause, deed.end())
    ]


def _may_answer(said: str, result: Result, objective_text: str) -> bool:
    """Return whether a quote from a result with outside sources provides what one of the
    objective's clauses asks for. A text that only reports the thing as found or done does not.

    No text can show that an action was carried out. A question for a number needs a number; a
    question for a time needs a date or a time of day. Anything else needs words that are neither in
    the objective nor typical of any report.
    """
    if _is_in_another_language(said, objective_text) and not (
        _is_short(said)
        or _values(said, objective_text)
        # in German every noun has a capital
        or (not _GERMAN & set(said.split()) and _names(said, objective_text))
    ):
        return False
    question = _stems(objective_text.partition(" ")[2])
    if (
        len(question) >= MIN_REPEATED
        and question <= _stems(said)
        and not _has_value(said, objective_text)
    ):
        return False
    asked, told = _asked_for(objective_text), _tell(said, objective_text)
    return (
        (
            _Asked.WHETHER in asked
            and bool(_stems(_ATTESTED.sub(" ", told)) or _YES_OR_NO.match(said))
        )
        or (_Asked.NUMBER in asked and _has_number(_DATE.sub(" ", said), objective_text))
        or (
            _Asked.TIME in asked
            and (_has_number(told, objective_text) or _TIME_WORD.search(told) is not None)
        )
        or (_Asked.ANYTHING in asked and _says_more(told, said, objective_text))
        or chooses(told, result, objective_text)
    )


def chooses(quote: str, result: Result, objective_text: str) -> bool:
    """Return whether the objective asks which of some alternatives it is ("Norden or Kaldi?"), and
    the quote names some of them and not all.

    A file, a page or a tool may name anything. If one contributed to the result, the quote, or a
    clause of the result that names the same alternatives, must also use a word of the objective
    that is no alternative: "Kaldi is cheaper".
    """
    told, asked = _stems(quote), _stems(objective_text)
    for alternatives in _find_alternatives(objective_text):
        named = [alternative for alternative in alternatives if alternative <= told]
        if named and len(named) < len(alternatives):
            rest = asked - frozenset().union(*alternatives)
            return (
                not is_from_outside(result)
                or not rest.isdisjoint(told)
                or _says_of(named, alternatives, rest, result, objective_text)
            )
    return False


def _says_of(
    named: list[frozenset[str]],
    alternatives: Sequence[frozenset[str]],
    rest: frozenset[str],
    result: Result,
    objective_text: str,
) -> bool:
    """Return whether a clause of the result names just these of the alternatives, and has a word of
    the rest of the objective."""
    clauses = (
        _stems(clause)
        for sentence in islice(split_sentences(result.text), MAX_JUDGED_SENTENCES)
        if not is_about_work(sentence, objective_text)
        for clause in _CLAUSE.split(_tell(sentence, objective_text))
    )
    return any(
        not rest.isdisjoint(clause) and [one for one in alternatives if one <= clause] == named
        for clause in clauses
    )


def _find_alternatives(objective_text: str) -> Iterator[list[frozenset[str]]]:
    """Yield, for each question of the objective that offers a choice, the stems of its
    alternatives."""
    for sentence in split_sentences(objective_text[:MAX_JUDGED_CHARS]):
        before, *others = _OR.split(sentence)
        if not others or not _ASKS_TO_CHOOSE.search(sentence):
            continue
        lead, *items = before.split(",")
        # of words that lead to the first alternative, such as `Should we use SQLite`, the last
        # one counts
        named = [_stems(item) for item in items] or [_stems((WORD.findall(lead) or [""])[-1])]
        for other in others:
            words = WORD.findall(_CLAUSE_END.split(other)[0])
            rest = [_stems(word) - _stems(before) for word in words]
            named.append(next(filter(None, rest), frozenset()))
        if all(named):
            yield named


def _tell(said: str, objective_text: str) -> str:
    """Return the text without its words of reporting. `It was found that X is 7` becomes `X is 7`;
    a clause that only says that something was found or done is left out."""
    clauses = [clause.strip().partition(" ") for clause in _AND.split(objective_text)]
    question = _stems(" ".join(rest for _, _, rest in clauses))
    verbs = _stems(" ".join(verb for verb, _, _ in clauses)) - question
    told: list[str] = []
    plain, start = _without_no_values(said, objective_text), 0
    for end in [*_CLAUSE.finditer(plain), None]:
        clause = plain[start : end.start() if end else len(plain)]
        rest: str | None = clause
        while rest and (reported := _find_report(rest, question, verbs)):
            complement = _COMPLEMENT.match(rest, reported.end())
            rest = rest[complement.end() :] if complement else None
        is_headed = plain[:start].rstrip().endswith(":")  # "Servers: checked"
        if rest is None and is_headed and not _has_value(clause, objective_text):
            told[-1] = ""
        told.append(rest or "")
        start = end.end() if end else len(plain)
    return ". ".join(told)


def _without_no_values(said: str, objective_text: str) -> str:
    """Return the text without its numbers that are no values, such as those of a page or a step. A
    place is a value if the objective asks for such a place ("Which clause covers it?")."""
    is_asked = _ASKS_PLACE.search(objective_text) is not None
    return _NO_VALUE.sub(lambda found: found[0] if is_asked and found["place"] else " ", said)


def _find_report(
    clause: str, question: frozenset[str], verbs: frozenset[str]
) -> re.Match[str] | None:
    """Return the first word of the clause that reports something, or that says that a requested
    action was carried out. Words of the question itself do not count.

    Args:
        question: the stems of the objective's words, without the verbs that begin its clauses.
        verbs: the stems of those verbs.
    """
    found = (found for found in _REPORTED.finditer(clause) if not _stems(found[0]) & question)
    done = (found for found in _PARTICIPLE.finditer(clause) if _stems(_to_verb(found)) & verbs)
    return min((*islice(found, 1), *islice(done, 1)), key=re.Match.start, default=None)


def _to_verb(participle: re.Match[str]) -> str:
    """Return the verb of a participle: `write` for `written`, `listet` for `aufgelistet`."""
    word = participle[0].casefold()
    return _VERB_OF.get(word) or participle["german"] or word


def _has_number(text: str, objective_text: str) -> bool:
    return any(
        any(map(str.isdigit, token)) or _NUMERAL.fullmatch(token)
        for _, token in _new_tokens(text, objective_text)
    )


def _says_more(told: str, said: str, objective_text: str) -> bool:
    """Return whether the text has a value, a name or enough words that the objective does not have.

    Args:
        told: the text without its words of reporting.
        said: the whole text.
    """
    if _has_value(told, objective_text):
        return True
    tokens = (token for _, token in _new_tokens(_ATTESTED.sub(" ", told), objective_text))
    new = _stems(" ".join(tokens)) - _stems_of_work(told) - _stems(objective_text) - _GLUE
    n_new = sum(len(stem) > 1 or bool(UNSPACED.match(stem)) for stem in new)
    n_new += bool(new) and _NEGATION.search(said) is not None
    is_plain = _is_short(said) or _BECAUSE.search(told) or _replies(said, objective_text)
    return n_new >= (1 if is_plain else MIN_NEW)


def _replies(said: str, objective_text: str) -> bool:
    """Return whether a text repeats most words of a question and does not report anything as done,
    as a plain answer does: "the keys are kept under the mat" answers "where are the keys kept?"."""
    question, words = _stems(_QUESTION_WORD.sub(" ", objective_text)), _stems(said)
    n_shared = sum(any(word.startswith(stem) for word in words) for stem in question)
    return (
        _QUESTION_WORD.search(objective_text) is not None
        and 2 * n_shared > len(question)
        and not any(not _stems(found[0]) & question for found in _REPORTED.finditer(said))
    )


def _has_to_do(said: str, result: Result, objective_text: str) -> bool:
    """Return whether a quote from a result with outside sources is related to the objective.

    It is related if it shares words with the objective, or is a bare value. If the objective
    contains no names, a quote with enough words of its own need not share any. A quote in another
    language can share only names with the objective, so there a value is enough, unless it is a
    whole number, which may be a date.
    """
    if _Asked.WHETHER in _asked_for(objective_text) and _YES_OR_NO.match(said):
        return True
    asked = _stems(objective_text) - _stems_of_work(objective_text)
    words, of_work = _stems(said), _stems_of_work(said) - _stems(objective_text)
    n_told = sum(not stem.isdigit() for stem in words - of_work - asked)
    names_something = _values(objective_text, "") or _names(objective_text, "")
    if n_told >= (MIN_TOLD_BESIDE_WORK if of_work else MIN_TOLD) and not names_something:
        return True
    if of_work and _Asked.WHETHER not in _asked_for(objective_text):
        has_count = (
            _Asked.NUMBER in _asked_for(objective_text)
            and of_work <= _stems(_NOT_DONE)
            and _has_number(_DATE.sub(" ", _tell(said, objective_text)), objective_text)
        )
        is_bare = not has_count and all(map(str.isdigit, words - of_work - asked))
        return not (asked.isdisjoint(words) or is_bare)
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
    return _is_bare_value(said, objective_text) or (
        _is_in_another_language(said, objective_text)
        and not all(map(str.isdigit, _values(said, objective_text)))
    )


def _is_bare_value(said: str, objective_text: str) -> bool:
    """Return whether a text is nothing but a value or a list of values. A heading is not a value,
    nor is a sentence that contains none."""
    if _HEADING.match(said):
        return False
    if not _is_short(said):
        items = list(filter(str.strip, _ITEM_END.split(said)))
        return (
            len(items) >= MIN_ITEMS
            and all(map(_is_short, items))
            and _has_value(said, objective_text)
        )
    return not _STATES.search(said) or _has_value(said, objective_text)


def _is_short(said: str) -> bool:
    """Return whether a text is short enough to be a bare value. In scripts without spaces, two
    characters count as a word."""
    return len(re.findall(r"\S*\w\S*", said)) + len(UNSPACED.findall(said)) / 2 <= MAX_VALUE_WORDS


def _has_value(said: str, objective_text: str) -> bool:
    return bool(_values(said, objective_text) or _names(said, objective_text))


def _values(sentence: str, objective_text: str) -> list[str]:
    """Return the numbers, codes and abbreviations of a sentence that the objective does not
    contain."""
    is_shouted = all(sign.isupper() for sign in sentence if sign.isalpha())
    return [
        token
        for before, token in _new_tokens(sentence, objective_text)
        if any(map(str.isdigit, token))
        or (token.isupper() and len(token) > 1 and before and not is_shouted)
        or _has_inner_capital(token)
    ]


def _has_inner_capital(token: str) -> bool:
    return token.isascii() and not (token[1:].islower() or token[1:].isupper() or len(token) == 1)


def _names(sentence: str, objective_text: str) -> list[str]:
    """Return the words of a sentence that may be names: they have a capital, do not begin a
    sentence, and are not in the objective."""
    return [
        token
        for before, token in _new_tokens(sentence, objective_text)
        if before and before[-1] not in ".!?;" and len(token) > 2 and token.istitle()
    ]


def _new_tokens(sentence: str, objective_text: str) -> list[tuple[str, str]]:
    """Return the words and numbers of a sentence that are not in the objective and do not speak
    about the work (such as "done" or "checked"), each as (text before it, token)."""
    known = {_squeeze(word) for word in (*objective_text.split(), *_TOKEN.findall(objective_text))}
    said = _without_no_values(sentence, objective_text)
    return [
        (said[max(0, found.start() - 9) : found.start()].strip(OPENING + " "), found[0])
        for found in _TOKEN.finditer(said)
        if _squeeze(found[0]) not in known and not _WORK_WORD.match(found[0])
    ]


def _squeeze(word: str) -> str:
    return re.sub(r"[\W_]", "", word).casefold()


def _is_in_another_language(text: str, objective_text: str) -> bool:
    """Return whether a text is surely not in the language of the objective: it has other letters,
    or it is not English while the objective is."""
    if _is_latin(text) != _is_latin(objective_text):
        return True
    return _english_share(objective_text) > 0 and _english_share(text) <= -MIN_FOREIGN


def _is_latin(text: str) -> bool:
    letters = [sign for sign in text if sign.isalpha()]
    return 2 * sum(sign < "\u0250" for sign in letters) >= len(letters)


def _english_share(text: str) -> float:
    """Return how English a text is: the share of common English words, minus the share of common
    words of other languages."""
    words = re.findall(r"[^\W\d_]{2,}", text.casefold())
    n_english = sum(word in STOP_WORDS for word in words)
    return (n_english - sum(word in _FOREIGN for word in words)) / max(1, len(words))


def _stems(text: str) -> frozenset[str]:
    """Return the stems of all words except stop words; in scripts without spaces, pairs of
    characters."""
    found: set[str] = set()
    for word in WORD.findall(fold(rearm(text))):
        if UNSPACED.search(word):
            found.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif word not in STOP_WORDS:
            found.add(_stem(word) if word.isalpha() else word)
    return frozenset(found)


def _stem(word: str) -> str:
    return (word.removesuffix("s") if len(word) > MIN_FOLDED_CHARS else word)[:STEM_CHARS]


def _stems_of_work(text: str) -> frozenset[str]:
    words: Sequence[str] = [
        word for word in WORD.findall(fold(rearm(text))) if _WORK_WORD.match(word)
    ]
    return _stems(" ".join(words)) | frozenset(
        pair
        for found in _WORK_WORD.finditer(fold(text))
        if UNSPACED.search(found[0])
        for pair in _stems(found[0])
    )


def _spelled_out(quote: str) -> str:
    """Return the quote, followed by the decoded text of its base64 and hexadecimal parts, if
    any."""
    return "\n".join(
        [unmix(rearm(quote)), *(_decode(found[0]) for found in _CODED.finditer(quote))]
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
