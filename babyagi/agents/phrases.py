"""Patterns of two kinds: the words with which a reply says that something is lacking or refused,
and the words with which a task says what kind of thing it asks for."""

from __future__ import annotations

import re
from functools import lru_cache

from babyagi.text import late_pattern

# Names of tasks of which it is cached what they ask for, because several tests want to know it.
N_TASKS = 64


def any_of(*anywhere: str, start: str = "", words: str = "", abroad: str = "") -> re.Pattern[str]:
    """Return a pattern that finds any of the alternatives.

    The alternatives of `start`, of `words` and of `abroad` are grouped, so that the condition at
    their beginning is tested only once per position, and no word is looked for at the end of a
    word. This makes the search two to five times as fast as with `\\b` before each alternative.

    Args:
        anywhere: patterns that match at any position.
        start: alternatives that match at the start of the text.
        words: alternatives that match at the beginning of a word; none may begin with another
            character than one of a word.
        abroad: alternatives that begin with a character beyond ASCII.
    """
    begun = ((r"^", start), (r"\b(?=\w)", words), (r"(?=[^\x00-\x7f])", abroad))
    groups = [f"{begin}(?:{alternatives})" for begin, alternatives in begun if alternatives]
    return late_pattern("|".join([*groups, *anywhere]))


_NOT = r"(?:not|n't|never|no longer)"
_CANNOT = (
    r"(?:cannot|can't|can not|could not|couldn't|unable to|impossible|not possible|not "
    r"able to|no way (?:to|of)"
    r"|can(?: only)? be \w+ (?:only )?(?:once|after)|not in a position to|won't be able "
    r"to|isn't possible|not feasible|can't be"
    r"|not (?:yet )?(?:computable|determinable|answerable|calculable|solvable|doable))"
)
_GIVEN = (
    r"(?:provided|given|supplied|specified|attached|included|shared|stated|listed"
    r"|established|determined|found|computed|calculated"
    r"|known|available|recorded|present|identified|defined|looked up|worked "
    r"out|measured|obtained|derived|settled|resolved|passed"
    r"|uploaded|pasted|disclosed|delivered|retrieved|located|answered|reported|fixed"
    r"|ascertained|handed|at hand|to hand)"
)
_HERE = (
    r"(?:(?:the|these|those|my|your|any|all|of|earlier|previous|prior|above|available"
    r"|other|current|given|provided|existing|supplied"
    r"|shared|present|task|listed|finished|so far|known)\s+)*"
    r"(?:results?|context|prompt|information|inputs?|data|material|conversation|message"
    r"|facts|findings|notes|excerpts?|observations"
    r"|tasks?|answers|records|documents?|files?|sources?|details|what i (?:have|was given|know))\b"
)
_SURELY_HERE = (
    r"(?:(?:earlier|previous|prior|above|available|given|provided|supplied|preceding|existing) "
    r"(?:\w+ )?(?:results?|information"
    r"|inputs?|data|material|facts|findings|notes|excerpts?|documents?|context|sources"
    r"|tasks?|steps?|answers|records|outputs?)"
    r"|(?:the|these|those|my|any|your|our|other|task|tasks) "
    r"results?\b|\bcontext\b|\bprompt\b|conversation|information (?:i|you)"
    r"|(?<!for )your (?:message|request|input|question)|what (?:you|was|is) "
    r"(?:gave|sent|given|provided|shown|said|here|there"
    r"|shared)|(?:that )?i (?:got|received|was (?:given|shown|sent))|you "
    r"(?:gave|sent|showed|shared|provided)|material i"
    r"|what i (?:have|was given)|i was given|at my "
    r"disposal|(?:data|information|inputs?|material) (?:provided|given|supplied"
    r"|available|at hand))"
)
_HOLD = (
    r"(?:contain|include|mention|state|give|say|provide|list|show|name|hold|specify|have"
    r"|reveal|cover|tell|establish|supply|carry"
    r"|offer|bring)"
)
_BRING = (
    r"(?:provide|share|supply|send|paste|attach|upload|specify|give|tell|clarify|confirm"
    r"|indicate|enter|include|add|point|name|state"
    r"|establish|determine|find|look up|let me know|pass|hand|forward|fill "
    r"in|obtain|fetch|advise|say|state|resolve|run)"
)

# The model speaks of its own work: it asks for something, or says that it needs something to carry
# the task out.
STRONG = any_of(
    ", please$",
    rf"{_SURELY_HERE}(?:.*\b(?:but|and|yet)\b.*\b(?:not|no|nothing|nowhere|none)\b|.*\bnot "
    r"(?:find|see|locate|found)\b|.*\b(?:holds?|has|have|contains?|gives?|shows?|names?|lists?"
    r"|includes?|offers?|provides?|says?|tells?) (?:no|neither|nothing|none)\b|.*\b(?:lacks?"
    "|omits?|leaves? out|(?:is|are) (?:missing|silent|incomplete|without)|fails? to|gave no"
    rf"|brought no|no (?:such|value|trace))\b|.*\b(?:do|does|did)(?:n't| not)\b.*\b{_HOLD}\b"
    r"|.*\b(?:none|nothing|nowhere|silent|no mention)\b)",
    rf"{_CANNOT}(?:.*\bfrom {_SURELY_HERE}|.*\bamong the (?:findings|notes|results|facts"
    r"|answers)\b|.*(?:\bwithout\b|\buntil\b|\bunless\b|\bbecause\b|\bsince\b|\bas\b|\bdue to\b"
    r"|\bbefore\b|\bfor (?:want|lack) of\b|\bgiven that\b|\bas long as\b|\bonce\b)|.*\b(?:yet|so"
    r" far|at this (?:time|point|stage)|at present|right now|as things stand)\b)",
    start="(?:provide|supply|specify|attach|share|send|paste|upload) |(?:i |we |it is |this |that"
    f" |still |result |answer )?{_CANNOT}.*(?:[:(—]| - | – )|(?:i |we )?(?:still |first "
    r"|also )?(?:need|needs|require|requires|needing)\b|not without\b|(?:undetermined"
    "|undeterminable|unanswerable|unresolved|skipped|deferred|postponed|stopped|aborted"
    "|blocked|error|not (?:yet )?(?:computable|possible|answerable|determinable"
    r"|solvable))\b.*[:;,(—-]|had i\b",
    words=r"i am (?:stuck|blocked)\b|(?:once|when|as soon as) i know\b|(?:i|we) only have\b|(?:i"
    r"|we) have not (?:seen|received|had|read)\b|would (?:first )?help to (?:know|have|see"
    r"|get)\b|(?:should|ought to|can|may) (?:first be|be) \w+ (?:first|before)\b|(?:should"
    r"|must|has to) first be\b|(?:i|we|it|this|that)\b.{0,60}\b(?:as soon as|once|after"
    r"|when)\b.*\b(?:is|are|has been|have been|becomes?) (?:available|known|established"
    r"|found|determined|there|given|provided|clear)\b|among the (?:findings|notes|results"
    rf"|facts|answers)\b.*\bnot\b|not (?:find|see|locate|found)\b.*{_SURELY_HERE}|(?:must|has"
    r" to|have to) come first\b|(?:as soon as|once|when|after|unless|until|if)\b.*\b(?:is"
    "|are|has been|have been|was|were|becomes?|get|given|comes?|arrives?) "
    r".{0,24}\b(?:known|available|established|there|found|determined|here|in|provided|given"
    r"|clear|answered|done|computed)\b.*\b(?:can|will|could|possible|answer|compute|name"
    r"|continue)\b|(?:ask|run|do|finish|complete|carry out|start with|look up|find|establish"
    r"|determine) .{1,80}\b(?:first|before this|before that|beforehand)\b|(?:prevents?"
    r"|stops?|keeps?|hinders?) me from\b|leaves? me (?:without|unable)\b|makes? it "
    r"impossible\b|(?:it|that|which) is (?:not )?something i (?:lack|need|do not have)\b|i "
    r"am (?:stuck|blocked|unable|left)\b.*\b(?:without|until|because|for|no)\b|(?:please"
    rf"|kindly|pls)\b.{{0,40}}\b{_BRING}\b|(?:could|can|would|will|may|might) (?:you|i"
    rf"|somebody|someone)\b.{{0,40}}\b(?:{_BRING}|have|know|get|see)\b|(?:tell|send|give|show"
    r"|hand|pass) me\b|(?:i|we)(?: am|'m| are|'re)? (?:still |also |first |would |will |do "
    "|'d |just |must |have to |only |currently )*(?:need|require|lack|miss|missing|lacking"
    r"|waiting|awaiting|know first|short of)\b|i'd (?:first )?(?:need|require)\b|(?:i|we) "
    "(?:must|have to|need to|should) (?:first )?(?:know|have|be told|be given|see|get"
    r"|receive)\b|(?:i|we) (?:do not|don't|did not|didn't|haven't|have not|have no|never)(?:"
    " yet| currently| actually)? (?:have|know|got|see|been (?:given|told)|receive|possess"
    r"|find)\b|(?:i|we) have (?:no|neither|not been)\b|(?:comput\w+|calculat\w+|determin\w+"
    "|answered|derived|proceed|carried out|worked out)(?:[:(—]| - | – )|(?:can|could"
    r"|possible|able|may) only\b.*\b(?:once|when|after|if|with)\b|only (?:possible"
    r"|computable)\b.*\b(?:once|when|after|if|with)\b|if (?:you|someone|somebody)(?: can| "
    rf"could| would| will)? {_BRING}\b|if (?:i|we) (?:only )?(?:knew|had|were given)\b|(?:i"
    "|we|you|someone|somebody|one|this)(?:'d| would| will|'ll)?(?: first| still| then)* "
    "(?:have|has|need|needs|had) to (?:first )?(?:know|find|learn|see|be told|establish"
    r"|determine|look|obtain|get|work out|wait|compute)\b|you (?:have not|haven't|did not"
    r"|didn't|forgot|never|still need|need to (?:provide|give|share|tell))\b|(?:i|we) (?:was"
    "|were|am|are|have been|got|hold)(?: only| so far)? (?:given |shown |told |sent "
    r")?(?:neither|nothing|no|not given|not told|not shown)\b|(?:nobody|no one|no "
    r"(?:earlier |previous |other )?(?:task|step|result|answer))\b.*\b(?:has|have|gives?"
    "|gave|contains?|states?|names?|mentions?|shows?|tells?|says?|reports?|established"
    r"|yet)\b|(?:needs?|requires?|depends? on|calls for|presupposes|takes|hinges on|rests on"
    r"|uses?)\b.*\b(?:but|which|neither|however|none|and)\b.*\b(?:no|not|n't|neither|missing"
    r"|unknown|nowhere|none|yet)\b|(?:available|accessible|known|visible) to me\b|before "
    r"this (?:task|question|step)\b|(?:someone|somebody|one) must\b|would you mind\b"
    r"|(?:could|can|may) i (?:have|get|see)\b|not (?:\w+ )?to (?:me|us)\b|(?:there is"
    r"|there's|is) a gap\b|this has to wait\b|(?:is|are) not (?:here|with me|attached)\b"
    r"|(?:so|hence|thus|therefore|thence|and)\b.{0,12}\b(?:i|we|this|that|no|nothing) "
    rf"{_CANNOT}|no such \w+ (?:appears|is|was|stands)\b|(?:appears?|stands?|found|see|given"
    r"|shown|is|are) (?:nowhere|neither)\b|prerequisite\b|precondition\b|(?:without|lacking"
    rf"|absent|until|unless|before|as long as|because|since|as)\b.*(?:{_CANNOT}|\bno "
    r"(?:answer|result|total|value|way)\b|\bremains? open\b)|(?:none|nothing|nowhere"
    rf"|neither)\b.*{_SURELY_HERE}|(?:{_NOT}|absent|missing|no|lacking|unavailable"
    rf"|nor)\b.*\b(?:in|among|from|by|within|amongst|part of|with)\b.{{0,40}}{_SURELY_HERE}"
    r"|none of them\b|nowhere to be found\b|(?:not enough|insufficient|too little|incomplete"
    "|inadequate|missing|lack of|no) (?:information|data|context|details?|inputs?"
    r"|facts)\b.*(?:\bto\b|\bfor\b|;|:)|(?:have|has|had|needs?|must|ought|is|are) (?:to "
    r")?(?:first )?be (?:first )?\w+(?: \w+)? (?:first|before|beforehand|earlier)\b|must "
    "(?:first |therefore )?be (?:determined|established|found|known|computed|looked up"
    rf"|worked out|calculated|identified)\b|first\b.*\bmust be\b|would have to be {_GIVEN}"
    rf"|(?:still |first )?(?:needs?|remains?|has|have) to be {_GIVEN}|(?:yet|still) to be \w+"
    rf"|to be {_GIVEN} (?:first|yet|still)\b|(?:is|are|was|were|would be|will be)(?: first| "
    r"still| also)? (?:needed|required|necessary)\b.*\b(?:first|before|to|in order|for)\b|to"
    r" (?:\w+ ){1,8}.{0,60}\b(?:is|are|be) (?:first |still )?(?:needed|required"
    r"|necessary)\b|following\b.*\b(?:missing|needed|required|lacking|unknown)\b.*:$"
    r"|(?:needed|required|necessary) (?:first|before|input|but)\b|(?:first|still) (?:needed"
    r"|required)\b",
)
# The reply says that something is absent. The task decides whether that is the answer.
ABSENT = any_of(
    r": (?:unknown|missing|not \w+|none|n/a|\?)$",
    rf"{_HERE}(?:.*\b(?:do|does|did)(?:n't| not)\b.*\b{_HOLD}\b)",
    _CANNOT,
    start=r"(?:i|we) see no\b|only\b.*\b(?:given|known|provided|available|stated)\b|(?:hence|thus"
    r"|so|therefore)\b.*\b(?:no|not|cannot|open)\b|(?:missing|lacking|needed|required"
    r"|unknown|lacks?|wanted|still open|depends on|tbd|to be determined)\b|no (?:information"
    r"|data|details?|figures?) (?:about|on|for|regarding)\b",
    words=r"(?:missing|lacking|needed|required|absent|unknown) ?:|no \w+(?: \w+){0,4} (?:attached"
    "|provided|given|supplied|uploaded|shared|included|available|established|present|at "
    r"hand|here)$|nothing (?:\w+ ){0,2}(?:about|on|regarding|concerning)\b|(?:is|are|was"
    r"|were)(?: \w+)? (?:absent|wanting|nowhere|withheld|left out|left blank|blank|omitted"
    r"|undisclosed|unnamed|unsettled|unestablished)\b|i do not know\b|no idea\b|no one "
    r"knows\b|(?:has|have) (?:never|yet to|not ever|not) (?:been|be) \w+|is (?:all )?(?:that"
    r"|what) is (?:missing|needed|lacking)\b|(?:all|what) (?:that )?(?:i |is )?(?:lack"
    r"|missing|needed)\b|(?:not|never)(?: yet| been| so far| currently| yet been| ever been|"
    rf" actually| explicitly| otherwise| anywhere| even)*(?: \w+ly)? {_GIVEN}\b"
    r"|no(?:ne)?\b.*\b(?:was|were|has been|have been|is|are|seems to have been)(?: yet| so "
    rf"far)? {_GIVEN}\b|(?:is|are|remains?|stays?|still|yet|value|input|figure|result|number"
    r"|code|name)\b.{0,60}\b(?:missing|lacking|unknown|undetermined|unavailable|undefined"
    r"|unspecified|outstanding|absent|open)\b|(?:does|do|did) not (?:appear|occur|come up"
    r"|figure|show up|feature)\b|(?:needed|required|wanted)$|(?:missing|lacking|unknown"
    "|unavailable|unspecified|unresolved|pending|incomplete)$|(?:is|are)(?: still| also)? "
    "(?:required|needed|wanted|unclear|not clear|incomplete|an open (?:point|question)|to "
    rf"be determined)\b|(?:input|data|information)\b.*\bincomplete\b|neither\b.*\b{_GIVEN}\b"
    r"|(?:given|have) neither\b|(?:no|not|n't|nowhere|nothing|neither)\b.*\b(?:above|at hand"
    r"|to hand|on file)\b|there is nothing to \w+|(?:task|calculation|computation|question"
    "|answer|answering|formula|total|this|that|it|result|step|work"
    r"|analysis)\b.{0,30}\b(?:requires?|needs?|presupposes|calls for)\b|(?:has|have"
    "|had)(?:n't| not)(?: yet)? (?:come|arrived|turned up|been (?:done|run|received|sent"
    r"|answered))\b|(?:gave|brought|returned|yielded|has|have|had) no (?:result|value|answer"
    r"|number|figure)s?\b|open (?:point|question)\b|stays? open\b|missing (?:inputs?|data"
    r"|information|values?|facts?|prerequisites?|piece|details?)\b|(?:insufficient|not "
    r"enough) (?:data|information|input|context|details?)\b|(?:waiting|wait) (?:for|on)\b"
    r"|awaiting\b|pending\b|blocked\b|on hold\b|(?:depends?|relies|rests|hinges|builds) "
    r"on\b.*\b(?:not|unknown|missing|yet|first|n't|unavailable|open)\b|could(?: not|n't) "
    r"(?:be )?(?:find|found|locate)|undeterminable\b|(?:no|without) (?:value|figure|number"
    r"|data|input|access)\b",
)
REFUSAL = any_of(
    words="(?:i|we)(?: am|'m| are|'re)?(?: simply| really| afraid i)? ?(?:cannot|can't|can not"
    "|won't|will not|could not|couldn't|am unable to|unable to|not able to|not allowed to"
    "|not permitted to|must decline|have to decline|decline|refuse|not comfortable|would "
    r"rather not|prefer not to|not willing)\b",
)
# Sentences that accompany a refusal or a lack, but may also be an answer by themselves.
ASIDE = any_of(
    start=r"[^=]{1,60} = [^=\d]{1,100}$|(?:result|answer|status|reason|summary|conclusion|output"
    "|finding|explanation|analysis|note)s?:?$|(?:please |you (?:can|could|may|might|should)"
    " |instead,? )(?:please )?(?:check|consult|visit|contact|look|search|use|ask|refer|try"
    r"|see|rephrase|reach out)\b",
    words="(?:depends? on|follows? from|(?:is|are) (?:computed|calculated|derived|worked out) "
    "(?:from|as|by)|is the (?:sum|product|difference|mean|ratio|quotient)|is based on"
    r"|builds on)\b(?!.*\d\.\d)|is \w+ (?:over|times|plus|minus|divided by|multiplied by"
    r"|per) \w+$|(?:is|this|that|be|it|seems|would be) (?:not appropriate|inappropriate"
    r"|unethical|illegal|harmful|unsafe|discriminatory|dangerous|wrong|unfair)\b"
    r"|(?:recommend|suggest|advise|encourage)\b.*|(?:consult|seek) (?:a|an|the|professional"
    r"|legal|medical)\b",
)
TALK = any_of(
    start="(?:sure|of course|certainly|absolutely|okay|ok|understood|got it|alright|great|very "
    "well|noted|acknowledged|thanks?|thank you|hello|hi|good question|sounds good"
    r"|roger)\b[^:]{0,60}[.!,]?$|(?:here(?: is| are|'s| comes)|below (?:is|are)|the "
    r"following|see below)\b.{0,100}:?$|(?:once|as soon as|after|when|with|if"
    r"|given)\b.*\b(?:i|we|it|this|that|you|task|total|value|answer|can|will|could)\b"
    r"|(?:then|so|after that|afterwards)\b.*\b(?:can|could|will|would)\b",
    words=r"(?:happy|glad|pleased|here) to (?:help|assist)\b|how (?:can|may) i (?:help|assist)\b"
    r"|let me know\b|feel free\b|thank you\b|i understand\b|(?:i(?:'m| am)? (?:very |so "
    "|truly |deeply )?(?:sorry|afraid|apologi[sz]e)|my apologies|apologies|sorry"
    r"|unfortunately|regrettably)\b[^.]{0,40}$|(?:analysis|answer|report|result|summary"
    r"|list):$|as follows:?$|(?:i was|i am|i'm|you|we were) asked\b|the task (?:is|was"
    r"|asks)\b|my task\b|you(?: have)? asked\b|(?:checked|searched|looked|read|went|reviewed"
    r"|examined|scanned)\b.*\b(?:earlier|previous|results?|context|material|given|preceding"
    r"|prior)\b|ready to (?:continue|proceed|go on|help|start)\b|(?:try|come back|check "
    r"back) (?:again )?later\b|(?:task|tasks) \d+ (?:should|must|has to|needs to)\b|should "
    r"be (?:run|done|carried out|looked up|established) first\b",
)
PLAN = any_of(
    start=r"(?:first|next|then|finally|after that|second|third|lastly|now),? (?:i|we|let)\b|(?:let"
    " me|let's|let us|allow me|give me a moment|one moment|hold on|just a (?:moment|second)"
    r"|stand by|please wait)\b|(?:working on|searching|processing|looking (?:up|into|for)"
    "|analy[sz]ing|proceeding|starting|getting started|in progress|fetching|loading"
    r"|gathering|checking|calculating|computing)\b.{0,80}$|(?:plan|approach|next steps?"
    r"|steps)\s*:",
    words="(?:i|we)(?:'ll|'m going to| will| am going to| are going to| plan to| intend to| shall"
    r"| would start| would begin| am about to|'m about to)\b|(?:my|the) (?:plan|approach"
    r"|strategy|next steps?) (?:is|are|will be|would be)\b|my (?:plan|approach|strategy):$",
)
LACK_ABROAD = any_of(
    words=r"ohne\b.*\b(?:kann|können|lässt|ist|nicht)\b|(?:benötige|brauche|benötigen|brauchen"
    r"|benötigt|bräuchte)\b|(?:fehlt|fehlen|fehlende?n?)\b|bitte\b|(?:kenne|weiß|habe"
    r"|finde)\b.*\b(?:nicht|kein\w*)\b|(?:steht|findet sich|gibt es|geht)\b.*\b(?:nichts"
    r"|nirgends|nicht)\b.*|(?:ergebnis|unterlagen|angaben|kontext)\w*\b.*\b(?:nicht|nichts"
    r"|kein\w*|fehl\w*)\b|(?:nicht|noch nicht|nirgends|un)\s?(?:bekannt|angegeben|genannt"
    "|enthalten|vorhanden|gegeben|ermittelt|festgestellt|mitgeliefert|verfügbar|beigefügt"
    r"|angehängt|übergeben)\b|liegt\b.*\bnicht vor\b|liegen\b.*\bnicht vor\b|(?:könnten"
    r"|können) sie\b|(?:lässt sich|kann|konnte|können)\b.*\bnicht\b.*\b(?:berechn|bestimm"
    r"|ermittel|beantwort|erstell|übersetz)\w*|kein\w*\b.*\b(?:mitgeteilt|angegeben"
    r"|übergeben|beigefügt|genannt)\b|zuerst\b.*\b(?:ermittelt|bekannt|bestimmt)\b"
    r"|sans\b.*\b(?:peux|peut|pouvons|impossible|ne)\b|(?:peux|peut|possible"
    r"|impossible)\b.*\bsans\b|(?:il|me|nous) (?:me |nous )?manque\w*\b|manquant\w*\b"
    r"|(?:veuillez|merci de|pourriez-vous|pouvez-vous)\b|(?:j'ai|il me faut|nous "
    r"avons)\b.*\b(?:besoin|faut)\b|il (?:me |nous )?faut\b|(?:pas|non) (?:encore )?(?:été "
    ")?(?:connue?s?|fournie?s?|indiquée?s?|donnée?s?|établie?s?|disponibles?|précisée?s?"
    r"|communiquée?s?|jointe?s?)\b|(?:est|sont|reste|restent) (?:encore )?(?:inconnu"
    r"|manquant)\w*|ne figure\w*\b.*\bpas\b|j'ai besoin\b|pas assez\b|faltan?\b"
    r"|sin\b.*\b(?:no|puedo|puede|posible|imposible)\b|no (?:se )?(?:puedo|puede|es "
    r"posible)\b.*\bsin\b|(?:necesito|necesitamos|requiero|se necesita|hace falta)\b|(?:por "
    r"favor)\b.*|(?:podría|puede|puedes|podrías)\b.*\b(?:dar|indicar|proporcionar|enviar"
    r"|facilitar)\w*|no (?:se )?(?:conoce|sabe|ha|han|fue|está|están|figura|aparece|tengo"
    r"|dispongo|consta|conozco)\b|senza\b.*\b(?:non|posso|possibile)\b|non\b.*\bsenza\b"
    r"|manca(?:no)?\b|(?:ho bisogno|mi serve|mi servono|occorre|serve prima)\b|per favore\b"
    r"|(?:può|puoi|potresti|potrebbe)\b.*\b(?:fornir|indicar|dar|inviar)\w*|non (?:è|sono) "
    r"(?:ancora )?(?:stat\w+|not\w|disponibil\w|fornit\w)\b|(?:preciso|precisamos|necessito"
    r"|é necessário)\b|sem\b.*\b(?:não|posso|possível)\b|não\b.*\bsem\b|falta[mr]?\b"
    r"|(?:poderia|pode)\b.*\b(?:fornecer|informar|enviar|indicar)\b|não (?:foi|foram|está"
    r"|estão|tenho|consta|se sabe|é)\b.*|zonder\b.*\b(?:kan|niet|kunnen)\b|(?:ontbreekt"
    r"|ontbreken|ontbrekende)\b|(?:heb|hebben)\b.*\bnodig\b|graag\b.*\b(?:door|aan|op)\b"
    r"|(?:kunt|kun|zou) (?:u|je)\b|niet (?:bekend|gegeven|beschikbaar|vermeld|vastgesteld"
    r"|meegeleverd|bijgevoegd)\b|(?:saknas?|saknar|mangler|mangel|puuttuu|mangler)\b|(?:utan"
    r"|uten|uden)\b.*\b(?:kan|inte|ikke)\b|(?:behöver|trenger|trænger|har brug for|må "
    r"(?:jeg )?vite|tarvitsen)\b|(?:inte|ikke) (?:ännu |ennå |endnu )?(?:känd\w*|kjent|kendt"
    r"|angiven|oppgitt|oplyst|fastställd|etablert)\b|(?:vänligen|vennligst|venligst)\b"
    r"|(?:brakuje|brak)\b|bez\b.*\b(?:nie|nelze|nemohu)\b|(?:nie|nelze|nemohu)\b.*\bbez\b"
    r"|(?:potrzebuję|potrzebna|potrzebne|potřebuji|proszę|prosím)\b|nie (?:jest|są|został\w*"
    r"|podano|znam|mam)\b|chybí\b|(?:eksik|gerekli|gerekiyor|lütfen|olmadan|ihtiyacım)\b|не "
    r"хватает\b|без\b.*\b(?:не|нельзя|невозможно)\b|(?:не|нельзя|невозможно)\b.*\bбез\b"
    r"|(?:отсутству\w+|недостаточно|нужн[аоы]?|необходим\w*|нужно|требу\w+|пожалуйста"
    r"|укажите|сообщите|предоставьте|пришлите)\b|не (?:был\w*|указан\w*|предоставлен\w*"
    r"|установлен\w*|извест\w*|приведен\w*)\b|(?:бракує|потрібн\w+|невідом\w+)\b",
    abroad="足りない|不足|わかりません|分かりません|必要(?:です|があ|とな|な)|教えてください"
    "|提供してください|ご提供|お知らせください|(?:含|与え|示|記載|提供|特定|確定|判明|決定"
    "|確認|指定|入力)(?:まれて|られて|されて|して)?い(?:ない|ませ)|なければ|見当たりません"
    "|ないため|未確定|缺少|缺乏|请(?:您)?(?:先)?(?:提供|给出|告知|补充|上传|说明|发送)"
    "|需要(?:先)?(?:知道|提供|确定|获得|有)?|未(?:提供|给出|知|确定|包含|说明)|没有(?:提供"
    "|给出|包含|足够)|尚(?:未|不)|無法|无法.*(?:因为|除非|没有|缺)|不(?:知道|清楚|足以)"
    "|請提供|필요합니다|없이는|알 수 없|제공해 ?주|알려 ?주|없습니다|부족|누락|주어지지"
    "|제공되지|(?:بدون|ينقص|أحتاج|يرجى|غير (?:معروف|متوفر|محدد)|لم يتم)|(?:जानकारी|आवश्यक"
    "|कृपया|बिना|नहीं दिया|उपलब्ध नहीं)|(?:חסר|בלי|אנא|צריך את)",
)
ABSENT_ABROAD = any_of(
    words="(?:unbekannt|inconnue?s?|desconocid[oa]s?|sconosciut[oaie]|desconhecid[oa]s?|onbekend"
    r"|okänt?|ukjent|ukendt|nieznan[aeyi]|neznám[áéý]|bilinmiyor|bilinmemekte|неизвест\w+"
    r"|невідом\w+|tuntematon)\b",
    abroad="不明|不详|未知|미상",
)
REFUSAL_ABROAD = any_of(
    words=r"(?:kann|darf|möchte) ich\b.*\bnicht\b|ich (?:kann|darf|werde)\b.*\bnicht\b|als (?:ki"
    r"|sprachmodell)\b|leider\b.*\bnicht\b|tut mir leid\b|je (?:ne )?(?:peux|suis pas"
    r"|refuse)\b|désolée?\b|en tant qu'(?:ia|assistant|intelligence)\b|no puedo\b|lo "
    r"siento\b|como (?:modelo|ia|asistente|una ia|um modelo|uma ia)\b|non posso\b|mi "
    r"dispiace\b|não posso\b|(?:desculpe|lamento|sinto muito)\b|come (?:modello|ia)\b|ik "
    r"kan\b.*\bniet\b|het spijt me\b|kan (?:jag )?(?:inte|ikke)\b|(?:tyvärr|beklager"
    r"|desværre)\b|nie mogę\b|przykro mi\b|przepraszam\b|не могу\b|(?:извините|к сожалению"
    r"|простите)\b|как (?:ии|языковая модель)\b|üzgünüm\b|nemohu\b|omlouvám\b",
    abroad="申し訳|できません|お応え|お答え(?:でき|いたし)|致しかね|抱歉|对不起|對不起|无法(?:帮"
    "|协助|提供|完成|回答|满足)|不能(?:帮|协助|提供|回答)|作为.{0,8}(?:ai|人工智能"
    "|语言模型)|죄송|할 수 없|도와드릴 수|آسف|عذر|لا أستطيع|क्षमा|माफ|סליחה|לא יכול",
)
TALK_ABROAD = any_of(
    start="(?:natürlich|gerne|sicher|bien sûr|d'accord|claro|por supuesto|certo|certamente"
    r"|verstanden|entendido|klar|はい|承知|好的|当然|конечно|хорошо|네)\b.{0,60}$",
    words="(?:sobald|dann kann|danach|dès que|ensuite|une fois|en cuanto|una vez|appena|zodra|när"
    r" jag|så snart)\b|ich werde\b|je vais\b|voy a\b|vou\b",
    abroad="我(?:将|会|马上)|その後|次第|すぐに",
)

# If the task asks for a text, a lack in that text is the agent's own only if it is about the task's
# material.
OF_THE_AGENT = any_of(
    _SURELY_HERE,
    words=r"i need to know\b|i do not know what\b|give me the\b|before i (?:can|could)\b|(?:so"
    r"|before|until|unless|once|then)(?: that)? i can\b|for me to\b|you(?:'d| would) (?:like"
    r"|want)\b|happy to (?:help|assist)\b|(?:i|we) (?:do not|don't) have\b|access to\b"
    "|(?:has|have|was|were|is|are)(?:n't| not| yet| no)? (?:been )?(?:yet )?(?:attached"
    r"|provided|included|supplied|shared|given|pasted)\b|(?:to|before|cannot|can't|could not"
    r"|unable to|can) (?:\w+ )?(?:write|draft|writing|drafting|translat\w+|summari\w+"
    r"|compos\w+|quot\w+|extract\w*|rephras\w+|reply|respond|answer|complete|do this)\b"
    r"|(?:ohne|sans|sin|senza|sem|zonder|без|bez)\b|(?:übersetz|schreib|verfass|tradui|rédig"
    r"|traduc|redact)\w*",
    abroad="翻译|訳|作成|书写|撰写",
)

# An offer to do more, or a recommendation, does not ask for anything that the task needs.
OFFER = any_of(
    words=r"let me know (?:how|if|whether|when|should|what else|in case)\b|(?:if|should|in case) "
    r"you\b.*\b(?:let me know|feel free|i can|i could|just ask|happy to)\b|would you like\b"
    r"|do you want me\b|how (?:can|may) i\b|what would you like\b|anything else\b",
)
# The end of a sentence that states something, and then that nobody has confirmed it.
RESERVATION = late_pattern(
    r"[,(–—]\s?(?:but|though|although|however|albeit|yet|even though|even if)\b"
    r"(?:.{0,60}\b(?:verify|confirm|corroborate|double-check|cross-check|check)\b.{0,20}"
    r"\b(?:this|that|it|them|these)\b|.{0,60}\b(?:this|that|it|them|these)\b.{0,40}\b(?:verified"
    r"|confirmed|corroborated)\b|.{0,60}"
    r"\b(?:second|another|other|independent) (?:source|witness)\b)"
)
# The reply reports a search outside of the prompt that found nothing.
FINDING = any_of(
    words=r"(?:searched|i found no|found none|fetched|grep|announced|publish\w*|the (?:page|site"
    "|website|vendor|label|law|contract|clause|statute|register|registry|manual) (?:says"
    r"|gives|does|lists|names|states)|(?:any|no) (?:\w+ ){0,2}(?:mentions?|matches|hits"
    "|duplicates|signs?|evidence|traces?|records?|references?|indications?|instances?"
    r"|occurrences?|reviews|entries)|looked (?:at|in) (?:both|all|every)"
    r"|(?:not|unable to|nothing) (?:find|found|locate)\b.*\b\w*(?:files?|folders?|documents?|papers"
    r"|repository|website|pages?|\.[a-z]{2,4}))\b",
)
REFUSAL_SURE = any_of(
    r"(?:\b(?:i|we|i'm|i am|we are|sorry|unfortunately,?|afraid|must|have to|assistant)(?: am| "
    r"are)? (?:\w+ ){0,3}|^)(?:cannot|can't|can not|won't|will not|unable to|not able to|not "
    "allowed to|not permitted to|decline to|decline|refuse to|not comfortable|not willing "
    r"to)(?: be able to)? (?:\w+ )?(?:help|helping|assist|assisting|do that|do this|do so|fulfil"
    "|comply|engage|support this|browse|access|discuss|participate|respond to|accommodate"
    r"|process this|carry out this|satisfy)\b",
    start="(?:(?:this|your|the) )?(?:request|task) (?:is |was |has been )?(?:denied|refused"
    r"|declined|rejected)|(?:i give up|declined|refused)\b|i (?:refuse|decline|pass)\b"
    "|sorry,? (?:but )?no$|no,? sorry$",
    words=r"as an? (?:\w+ ){0,2}(?:ai|artificial intelligence|language model|assistant)\b|(?:i am"
    "|i'm)(?: just| only)? (?:an? )?(?:ai|artificial|large language|language model"
    r"|text-based)|(?:unable to|not able to|cannot|will not) (?:\w+ )?(?:complete|fulfil\w*"
    "|process|answer|handle|satisfy|provide|give|share|perform|carry out|grant) (?:this"
    "|that|your|such|the) (?:request|query|question|prompt|information|kind|action|content"
    "|task)?s?$|(?:i|we) (?:will not|cannot) (?:provide|give|share|answer|perform) (?:this"
    r"|that|it|such|physical)\b|(?:my|our|the|usage|content|safety|openai\W?s?) (?:\w+ "
    r")?(?:guidelines|polic(?:y|ies)|programming|terms of (?:use|service))\b|knowledge "
    r"cut-?off\b|training data\b|my (?:training|capabilities)\b|(?:i|we) (?:do not|don't"
    "|have no|lack)(?: currently| yet)?(?: have)?(?: the| an| any)?(?: ability| abilities| "
    "real-time| browsing| internet| tools?| means to| capability| capacity| web| live)|(?:i"
    r"|i'm|my|me|we)\b.*\baccess\b.*\b(?:real[- ]time|live|internet|web|online|external"
    r"|current)\b|(?:i|i'm|we)\b.*\b(?:cannot|can't|unable|not able|don't)\b.*\b(?:browse"
    r"|browsing|real[- ]time|surf|the internet|online)\b|(?:this|the|your) (?:request|task"
    r"|question)\b.*\b(?:violates?|against|inappropriate|not allowed|not permitted|polic(?:y"
    r"|ies))\b|too (?:hard|difficult|complex) for me\b|(?:i|we) (?:will not|won't|cannot"
    "|can't|must not|refuse to|decline to|would rather not|prefer not to) (?:do|answer"
    r"|write|produce|create|generate|provide|give|take part|be|tell you how)\b(?: "
    r"\w+){0,3}$|i(?:'d| would)? rather not\b|(?:must|have to|will|shall)(?: \w+)? "
    r"decline\b",
)
# The sentence names a missing input, so it is a lack even if it sounds like a refusal.
NAMES_INPUT = any_of(
    words="(?:value|number|figure|code|result|needed|required|file|document|report|letter|key"
    "|date|name|rate|price|amount|yield|list|input|id|identifier|dataset|copy|spreadsheet"
    r"|table|attachment|text)s?\b.*\b(?:needed|required|missing|provided|given|attached"
    r"|unknown|first|has not|have not|please|share|supply)\b|(?:please|you|could you) "
    r"(?:first )?(?:provide|supply|share|paste|attach|upload|send)\b|without (?:the|a|an|its"
    r"|their|his|her|knowing)\b",
)
# Words that distinguish a reply about itself from a statement about the world.
_SPEAKERS = (
    r"(?:ich|mir|bitte|je|j'ai|m'a|moi|veuillez|merci|necesito|dispongo|tengo|por "
    r"favor|mi|per favore|preciso|tenho|ik|graag|jag"
    r"|jeg|vennligst|proszę|mam|мне|пожалуйста|я)\b"
)
_SPEAKERS_ABROAD = "请|請|ください|私|주세요|我"
OF_THIS_REPLY = any_of(
    start=r"(?:cannot|unable|not possible|impossible)\b",
    words=r"your (?:message|request|input)\b|(?:i|i'm|i'd|i've|we|my|me|us|please|kindly|yet"
    r"|provided|supplied|attached|shared|uploaded|could you|can you)\b|(?:earlier|previous"
    rf"|given|available) \w+|this (?:task|question|cannot)\b|{_SPEAKERS}",
    abroad=_SPEAKERS_ABROAD,
)
# The text has a first or second person, or mentions what the model was given.
OF_THE_SPEAKER = any_of(
    _SURELY_HERE,
    words=rf"(?:i|i'm|i'd|i've|i'll|we|my|me|us|you|your|please|kindly)\b|{_SPEAKERS}",
    abroad=_SPEAKERS_ABROAD,
)
# Names for what the model was given.
SURELY_HERE = late_pattern(_SURELY_HERE)
# Signs that a reply may not be an answer: it asks for something, says what is lacking or about
# to be done, or contains a placeholder. They decide nothing by themselves.
DOUBT = any_of(
    r"\?$",
    r"\[(?:insert|your|the|name|date|text|translation|answer|result|value|\w+ here|to be|\.\.\."
    r"|…|x+|tbd|todo)[^\]]{0,40}\]",
    r"\{\{?\s*\w+\s*\}\}?",
    "<(?:insert|your|answer|result)[^>]{0,40}>",
    start=r"missing\b|\{\s*\"(?:tool|action|function|status|error)\"|(?:sure|certainly|of course"
    "|understood|got it|okay|ok|alright|absolutely|noted|acknowledged|right away|will "
    r"do)\b.{0,80}$|(?:\*\*)?plan\b",
    words=r"(?:no|without)(?: \w+)? (?:results?|values?|outputs?|data|inputs?|files?|sheets?"
    r"|texts?|documents?|lists?|context)\b|tell me\b|(?:my|the) plan\b"
    r"|\w+(?:[yz]?[ae]m[ıi]yor)\w*\b|\w+(?:medi|mad[ıi])\b|non (?:\w+ ){0,3}(?:fornit"
    r"|allegat|disponibil|present|ricevut)\w+|mi serv\w+|(?:сейчас|посмотрю|отвечу|сделаю"
    r"|подготовлю)\b|(?:please|could you|can you|would you|do you have|mind \w+ing|let me "
    "(?:know|have|first|think|take|start)|kindly|you (?:have not|did not|sent|gave)|shall "
    r"we)\b|(?:send|share|paste|upload|resend|supply|forward|re-?attach)\b.{0,60}\b(?:me|it"
    r"|them|here|again|both|the|those|your|remaining)\b|(?:attach\w*|missing|lacking"
    "|placeholder|cut off|truncated|left open|todo|tbd|to be (?:determined|confirmed"
    r"|defined|done))\b|(?:appears?|seems?|looks?|is|was|are|were|came) (?:to be )?(?:empty"
    r"|blank|incomplete)\b|(?:not|never|no|neither|nothing|none|without"
    r"|nor)\b.{0,80}\b(?:available|visible|given|provided|supplied|included|shown|received"
    "|reached|accessible|access|part of|come through|came through|in the (?:context|message"
    "|prompt|material|input|results?)|known|established|stated|mentioned|specified|shared"
    r"|computed|determined|found|present|there|here|possible|replaced|answered)\b|(?:i"
    r"|we)\b.{0,30}\b(?:do not|not|cannot|could not|no|only|need|lack|unable|would have to"
    r"|would need|was not|have no|have nothing|see no|guess\w*)\b|(?:i|we) (?:have|was|were"
    r"|am|are) (?:only|been|just)\b|(?:(?:is|are|be|still|first) (?:needed|required)|depends"
    r" on|once|until|as soon as|unless|before (?:this|that|it|i|we|the))\b.{0,80}\b(?:known"
    r"|available|given|provided|established|found|there|done|answer\w*|comput\w*|work\w*|can"
    r"|cannot|first|tell\w*|be)\b|(?:cannot|can not|could not|unable to|impossible to|no "
    r"way (?:to|of)|nothing to)\b|cannot be\b|not (?:yet )?(?:be )?(?:possible"
    r"|\w+ed)\b.{0,30}\b(?:yet|so far|until|without)\b|(?:unknown|unavailable|inaccessible"
    r"|unspecified|undetermined)\b|(?:sorry|afraid|unfortunately|regret|apolog\w+|as an ai"
    "|language model|guidelines|polic(?:y|ies)|refuse|decline|inappropriate|not "
    r"comfortable)\b|(?:i(?:'ll| will| shall|'m going to| am going to)|let's|let us|going to"
    "|about to|i should|i must|i need to|stay tuned|on it|give me|hold on|wait|processing"
    "|working on|brainstorm|the user|happy to|glad to|love to|honou?red to|great question"
    r"|good question|what an? \w+ (?:task|question)|thanks for|thank you for|excited)\b|step"
    r" 1\b|(?:waiting|awaiting|pending|depends on|blocked|outstanding)\b|you are an? \w+"
    r"|carry out the task\b|(?:calling|invoking|running|using|call|invoke)\b.{0,30}[\w.]\("
    r"|(?:bitte|leider|fehl\w*|ohne|gerne?|sofort|nicht|kein\w*|ich (?:werde|kann|habe"
    r"|brauche|benötige|beginne|mache)|natürlich|verstanden)\b|(?:manque\w*|veuillez|pouvez"
    r"|pourriez|merci|sans|ne|n'\w+|je (?:vais|ne|peux)|désolée?|d'accord|bien sûr|d'abord"
    r"|besoin)\b|no (?:veo|tengo|puedo|hay|está|aparece|consta|figura|se)\b|(?:necesit\w+"
    r"|podrías?|puedes?|puede|por favor|falta\w*|lo siento|voy a|adjunt\w+)\b|(?:potrebbe"
    r"|può|per favore|manca\w*|senza|purtroppo|mi dispiace|certo|preciso|poderia|falta|sem"
    r"|infelizmente|claro|desculpe)\b|(?:kunt u|kun je|alsjeblieft|alstublieft|niet|geen"
    r"|ontbre\w+|zonder|graag|helaas|ik (?:heb|kan|ga|zal)|inte|saknas|utan|tyvärr|snälla"
    r"|ikke|mangler|uden|uten|desværre|dessverre|brak\w*|nie|proszę|bez|niestety|chybí"
    r"|prosím|lütfen|eksik|olmadan|yok|maalesef|puuttuu|ilman)\b|(?:не|нет|пожалуйста"
    r"|отсутств\w+|без|нужн\w+|сначала|к сожалению|извините|я (?:не|могу|буду)|хорошо"
    r"|конечно)\b",
    abroad="(?:请|請|没有|沒有|無法|无法|缺|不足|未提供|未给|马上|好的|抱歉|我[会将需要]|ません"
    "|ください|ない|下さい|承知|かしこまり|いたします|足り|没|없|않|주세요|보이지|부족|죄송"
    r"|하겠습니다|필요)|[\u0600-\u06ff]{2,}.{0,40}(?:لا|بدون|يرجى|غير)|कृपया|नहीं|बिना|אין"
    "|בלי|בבקשה",
)


# --------------------------------------------------------------------------------------------------
# What kind of thing a task asks for, judged by its name: the same reply may answer one task
# and fail another.
#
# Each pattern is searched in the folded name.
# --------------------------------------------------------------------------------------------------


ASKS_GAPS = any_of(
    words=r"(?:missing|lack\w*|gaps?|unknowns?|still (?:need|open|unclear)|not (?:yet )?know|don't"
    r" (?:yet )?know|open (?:questions?|points|issues|items)|assum\w+|limit(?:s|ations?)"
    "|caveats?|prerequisites?|requirements?|blockers?|blocks|obstacles?|unanswered"
    r"|unresolved)\b|(?:what|which)\b.*\b(?:needs?|needed|required?|requires)\b|shortages?\b"
    r"|weak\w*\b|uncertain\w*\b|depend\w*\b|fehl\w*|offene?\b|manqu\w+|lacunes?\b|faltan?\b"
    r"|faltante\w*|manca\w*|ontbre\w+|saknas?\b|brak\w*",
    abroad="不足|缺|欠け|пробел|не хватает|отсутств",
)
ASKS_STATE = any_of(
    r"\?\s*$",
    start=r"\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|who"
    r"|whose|when|why|where|how)\b",
    words=r"(?:check|verif\w+|whether|confirm|search\w*|look (?:for|through)|mentions?|review\w*"
    r"|audit|inspect|scan|diagnos\w+|debug|test|why|explain|describe|report\w*|status|state "
    "of|progress|bugs?|duplicates?|errors?|faults?|problems?|risks?|evidence|any|validate"
    "|assess|evaluate|examine|investigate|monitor|proof|records? of|decide|rules?"
    r"|conditions?|regulations?|procedures?|laws?|obligations?|eligib\w+|criteria|process"
    "|protocol|recipe|advice|tips|guidance|guide|checklist|precautions?|terms|restrictions?"
    "|advise|recommend|meaning|reasons?|causes?|threats?|dangers?|effects?|impacts?"
    "|consequences?|outcome|causing|drawbacks?|disadvantages?|quality|suggest|propose|judge"
    r"|opinion|next|define|definition|principle|theorem|conclu\w+|findings?|claims?|says"
    r"|compare|possible|feasib\w+)\b|(?:über)?prüfe?n?\b|suche?n?\b|ob\b|kontrolli\w*"
    r"|vérifi\w*|cherche\w*|si\b|verifi\w*|busca\w*|comprob\w*|controlla\w*|cerca\w*|se\b"
    r"|controleer\w*|zoek\w*|sprawdź\b|kontroll\w*|провер\w+|имеет\w* ли\b|ли\b|(?:difett"
    r"|défaut|defect|problem|erreur|error|fehler|mängel|schäd|fout)\w*",
    abroad=r"？\s*$|確認|检查|检验|是否|查找|확인",
)
ASKS_WORDS = any_of(
    words=r"(?:writ\w+|wrote|draft\w*|compos\w+|translat\w+|quot\w+|read|extract|cop(?:y|ies)"
    r"|transcri\w+|rephras\w+|rewrit\w+|(?:did|does) .{1,80}(?:answer|reply|respond)|lyrics"
    r"|poem|haiku|verse|limerick|speech|toast|letter|e-?mail|message|dialog\w*|template"
    "|script|story|scene|play|interview|questions?|quiz|survey|faq|slogan|repl(?:y|ies)|say"
    "|says|said|policy|form|ask|plan|steps|outline|roadmap|notice|statement|text|words"
    r"|sentence|wording|apolog\w+|example|sample|joke|riddle|diary|post|tweet|title|headline"
    r"|instructions?|paraphras\w+|chat\w*|bot|sign|label|caption|prompt|response|transcript"
    r"|error|disclaimer|newsletter|promis\w+|pledge|vow|greet\w*|thank|invit\w+|announc\w+"
    r"|introduc\w+|congratulat\w+|warn\w*|memo|voicemail|note|complain\w*|monologue|song"
    r"|prayer|fable|tale|sonnet|stderr|stdout|log|placeholder|tooltip|recit\w+|formulat\w+"
    r"|phrase)\b|schreib\w*|verfass\w*|formulier\w*|übersetz\w*|zitier\w*|lies\b"
    r"|entw[iu]rf\w*|rédig\w+|tradui\w+|écri\w+|cit(?:e|er|a|ar)\b|trad[uú]\w+|escrib\w+"
    r"|redact\w+|scriv\w+|escrev\w+|schrijf|vertaal|skriv\w*|översätt|oversett|napisz"
    r"|przetłumacz|напи\w+|перевед\w+|процитир\w+",
    abroad="書|訳|作成|写|翻译|翻譯|起草|써|번역",
)
ASKS_PRODUCT = any_of(
    words="(?:json|code|function|schema|tool|api|call|snippet|payload|request|command|repeat"
    r"|refrain|chorus|times|pattern|matrix|sequence|padding|stress|token|tag|chant|mantra)\b",
)
ASKS_REFUSAL = any_of(
    "absag",
    "entschuldig",
    "refus",
    "excus",
    "tradu",
    "disculp",
    "rechaz",
    words=r"(?:declin|refus|apolog|reject|sorry|disclaim|polic|rule|quot|translat|said\b|says\b"
    r"|(?:did|does|do|to)\b.*\bsay\b|wrote|bot\b|dialog|limits?\b|turn(?:ing)? down)",
    abroad="übersetz|断り|訳|谢绝|翻译|道歉|отказ|извин|перевед",
)
ASKS_SIGN = any_of(
    words="(?:character|symbol|sign|operator|delimiter|separator|punctuation|mark|regex|emoji"
    "|glyph|token|tag|bracket|letter|prefix|suffix|wildcard|draw|ascii|diagram|pattern|grid"
    r"|maze|plot|chart|histogram|as text|border|divider|list|json|array|object|set)s?\b",
)
ASKS_QUOTE = any_of(
    words=r"(?:quot\w+|repeat|restate|cop(?:y|ies)|recite|objective|instructions?|prompt|verbatim"
    r"|echo|rephras\w+|paraphras\w+)\b",
)
# A task that works on a text that it is given, whatever kind of text that is.
WORKS_ON_TEXT = late_pattern(
    r"^\W*(?:summari[sz]e|proofread|edit|convert|analy[sz]e|compute|calculate|determine"
    r"|plot|fix|check|review|assess|grade|book"
    r"|debug|refactor|run|verify|test|compare|count|find|estimate|classify|rate|sort"
    r"|name|list|explain|describe|state|identify"
    r"|report|show)\b(?!.*\b(?:say|says|said|wrote|write|wording|quote|text "
    r"of|sentence|message|error|reply to|response|questions?"
    r"|phrase|refus\w*)\b)"
)
# A task that retells a text. In its reply, only words about the reply itself are the model's
# own.
ASKS_DIGEST = any_of(
    words=r"(?:summar\w+|digest|outline|retell|recap\w*|paraphras\w+|condense|abstract|minutes"
    r"|gist)\b|zusammenf\w+|fasse\b|résum\w+|resum\w+|riassum\w+|samenvat\w*|sammanfatt\w*"
    r"|streszcz\w*",
    abroad="要約|まとめ|总结|摘要|резюм|излож|요약",
)

# A task for a fictional text, which may say anything.
ASKS_FICTION = any_of(
    words=r"(?:write|compose|tell|invent|make|draft|give|continue)\b.*\b(?:monologue|poem|haiku"
    r"|limerick|story|scene|lyrics|song|dialog\w*|joke|riddle|verse|sonnet|prayer|fable|tale"
    r"|chant|epitaph|diary|character|fiction|novel|rhyme)\b",
)
# A task for a text that refuses.
ASKS_NO = any_of(
    words="(?:declin|refus|apolog|reject|disclaim|turn(?:ing)? down)|absag|refus|excus|rechaz",
    abroad="отказ|谢绝|断り",
)


@lru_cache(maxsize=N_TASKS)
def asks_words(task: str) -> bool:
    """Return whether the task asks for a text in words that are not the agent's own, such as a
    letter, a translation or a quote."""
    return bool(ASKS_WORDS.search(task)) and not WORKS_ON_TEXT.match(task)


def holds_quote(task: str) -> bool:
    """Return whether the task contains, in quotation marks, the text that it is about."""
    return bool(re.search(r"[\"“«„「'‘][^\"”»“」'’]{6,}[\"”»“」'’]", task))
