"""Patterns for the words with which a reply says that something is lacking or refused, and for the
words with which a task says what kind of thing it asks for."""

from __future__ import annotations

import re

from babyagi.text import late_pattern


def any_of(*patterns: str) -> re.Pattern[str]:
    return late_pattern("|".join(f"(?:{pattern})" for pattern in patterns))


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

# The reply speaks for itself: it asks for something, or says that the task cannot be done without
# it.
STRONG = any_of(
    r"\bi am (?:stuck|blocked)\b|\b(?:once|when|as soon as) i know\b|\b(?:i|we) only "
    r"have\b|\b(?:i|we) have not (?:seen|received|had"
    r"|read)\b",
    (
        rf"{_SURELY_HERE}.*\b(?:but|and|yet)\b.*\b(?:not|no|nothing|nowhere|none)\b"
        rf"|{_CANNOT}.*\bfrom {_SURELY_HERE}"
    ),
    r"\bwould (?:first )?help to (?:know|have|see|get)\b|\b(?:should|ought to|can|may) "
    r"(?:first be|be) \w+ (?:first|before)\b"
    r"|\b(?:should|must|has to) first be\b",
    r"\b(?:i|we|it|this|that)\b.{0,60}\b(?:as soon "
    r"as|once|after|when)\b.*\b(?:is|are|has been|have been|becomes?) (?:available"
    r"|known|established|found|determined|there|given|provided|clear)\b",
    (
        rf"{_CANNOT}.*\bamong the (?:findings|notes|results|facts|answers)\b|\bamong the "
        r"(?:findings|notes|results|facts|answers)\b.*\bnot\b"
    ),
    rf"{_SURELY_HERE}.*\bnot (?:find|see|locate|found)\b|\bnot "
    rf"(?:find|see|locate|found)\b.*{_SURELY_HERE}|\b(?:must|has to"
    rf"|have to) come first\b",
    rf"{_SURELY_HERE}.*\b(?:holds?|has|have|contains?|gives?|shows?|names?|lists?"
    r"|includes?|offers?|provides?|says?|tells?) (?:no"
    rf"|neither|nothing|none)\b",
    r"\b(?:as soon as|once|when|after|unless|until|if)\b.*\b(?:is|are|has been|have "
    r"been|was|were|becomes?|get|given|comes?"
    r"|arrives?) .{0,24}\b(?:known|available|established|there|found|determined|here|in"
    r"|provided|given|clear|answered|done"
    r"|computed)\b.*\b(?:can|will|could|possible|answer|compute|name|continue)\b",
    r"\b(?:ask|run|do|finish|complete|carry out|start with|look "
    r"up|find|establish|determine) .{1,80}\b(?:first|before this"
    r"|before that|beforehand)\b",
    r"\b(?:prevents?|stops?|keeps?|hinders?) me from\b|\bleaves? me "
    r"(?:without|unable)\b|\bmakes? it impossible\b|\b(?:it|that"
    r"|which) is (?:not )?something i (?:lack|need|do not have)\b|\bi am "
    r"(?:stuck|blocked|unable|left)\b.*\b(?:without|until|because"
    r"|for|no)\b",
    rf"\b(?:please|kindly|pls)\b.{{0,40}}\b{_BRING}\b",
    (
        r"\b(?:could|can|would|will|may|might) "
        rf"(?:you|i|somebody|someone)\b.{{0,40}}\b(?:{_BRING}|have|know|get|see)\b"
    ),
    r"\b(?:tell|send|give|show|hand|pass) me\b",
    r"^(?:provide|supply|specify|attach|share|send|paste|upload) ",
    r"\b(?:i|we)(?: am|'m| are|'re)? (?:still |also |first |would |will |do |'d |just "
    r"|must |have to |only |currently )*"
    r"(?:need|require|lack|miss|missing|lacking|waiting|awaiting|know first|short of)\b",
    r"\bi'd (?:first )?(?:need|require)\b",
    (
        r"\b(?:i|we) (?:must|have to|need to|should) (?:first )?(?:know|have|be told|be "
        r"given|see|get|receive)\b"
    ),
    r"\b(?:i|we) (?:do not|don't|did not|didn't|haven't|have not|have no|never)(?: yet| "
    r"currently| actually)? (?:have|know|got|see"
    r"|been (?:given|told)|receive|possess|find)\b",
    r"\b(?:i|we) have (?:no|neither|not been)\b",
    rf"{_CANNOT}.*(?:\bwithout\b|\buntil\b|\bunless\b|\bbecause\b|\bsince\b|\bas\b|\bdue "
    r"to\b|\bbefore\b|\bfor (?:want|lack) of\b"
    rf"|\bgiven that\b|\bas long as\b|\bonce\b)",
    rf"^(?:i |we |it is |this |that |still |result |answer )?{_CANNOT}.*(?:[:(—]| - | – "
    r")|\b(?:comput\w+|calculat\w+|determin\w+"
    rf"|answered|derived|proceed|carried out|worked out)(?:[:(—]| - | – )",
    (
        rf"{_CANNOT}.*\b(?:yet|so far|at this (?:time|point|stage)|at present|right now|as "
        r"things stand)\b"
    ),
    r"\b(?:can|could|possible|able|may) only\b.*\b(?:once|when|after|if|with)\b|\bonly "
    r"(?:possible|computable)\b.*\b(?:once|when"
    r"|after|if|with)\b",
    (
        rf"\bif (?:you|someone|somebody)(?: can| could| would| will)? {_BRING}\b|\bif "
        r"(?:i|we) (?:only )?(?:knew|had|were given)\b"
    ),
    r"\b(?:i|we|you|someone|somebody|one|this)(?:'d| would| will|'ll)?(?: first| still| "
    r"then)* (?:have|has|need|needs"
    r"|had) to (?:first )?(?:know|find|learn|see|be "
    r"told|establish|determine|look|obtain|get|work out|wait|compute)\b",
    (
        r"\byou (?:have not|haven't|did not|didn't|forgot|never|still need|need to "
        r"(?:provide|give|share|tell))\b"
    ),
    r"\b(?:i|we) (?:was|were|am|are|have been|got|hold)(?: only| so far)? (?:given "
    r"|shown |told |sent )?(?:neither|nothing|no"
    r"|not given|not told|not shown)\b",
    r"\b(?:nobody|no one|no (?:earlier |previous |other "
    r")?(?:task|step|result|answer))\b.*\b(?:has|have|gives?|gave|contains?"
    r"|states?|names?|mentions?|shows?|tells?|says?|reports?|established|yet)\b",
    rf"{_SURELY_HERE}.*\b(?:lacks?|omits?|leaves? out|(?:is|are) "
    r"(?:missing|silent|incomplete|without)|fails? to|gave no|brought no"
    rf"|no (?:such|value|trace))\b",
    r"\b(?:needs?|requires?|depends? on|calls for|presupposes|takes|hinges on|rests "
    r"on|uses?)\b.*\b(?:but|which|neither|however|none"
    r"|and)\b.*\b(?:no|not|n't|neither|missing|unknown|nowhere|none|yet)\b",
    r"^(?:i |we )?(?:still |first |also "
    r")?(?:need|needs|require|requires|needing)\b|\b(?:available|accessible|known|visible) "
    r"to me\b"
    r"|\bbefore this (?:task|question|step)\b|, please$|^not without\b",
    r"^(?:undetermined|undeterminable|unanswerable|unresolved|skipped|deferred|postponed"
    r"|stopped|aborted|blocked|error"
    r"|not (?:yet "
    r")?(?:computable|possible|answerable|determinable|solvable))\b.*[:;,(—-]|^had "
    r"i\b|\b(?:someone|somebody|one) must\b"
    r"|\bwould you mind\b",
    r"\b(?:could|can|may) i (?:have|get|see)\b|\bnot (?:\w+ )?to (?:me|us)\b|\b(?:there "
    r"is|there's|is) a gap\b|\bthis has to wait\b"
    r"|\b(?:is|are) not (?:here|with me|attached)\b",
    (
        rf"\b(?:so|hence|thus|therefore|thence|and)\b.{{0,12}}\b(?:i|we|this|that|no|nothing) "
        rf"{_CANNOT}"
    ),
    r"\bno such \w+ "
    r"(?:appears|is|was|stands)\b|\b(?:appears?|stands?|found|see|given|shown|is|are) "
    r"(?:nowhere|neither)\b"
    r"|\bprerequisite\b|\bprecondition\b",
    r"\b(?:without|lacking|absent|until|unless|before|as long "
    rf"as|because|since|as)\b.*(?:{_CANNOT}|\bno (?:answer|result|total"
    rf"|value|way)\b|\bremains? open\b)",
    rf"{_SURELY_HERE}.*\b(?:do|does|did)(?:n't| not)\b.*\b{_HOLD}\b",
    (
        rf"\b(?:none|nothing|nowhere|neither)\b.*{_SURELY_HERE}|{_SURELY_HERE}.*\b(?:none"
        r"|nothing|nowhere|silent|no mention)\b"
    ),
    rf"\b(?:{_NOT}|absent|missing|no|lacking|unavailable|nor)\b.*\b(?:in|among|from|by"
    r"|within|amongst|part of"
    rf"|with)\b.{{0,40}}{_SURELY_HERE}",
    r"\bnone of them\b|\bnowhere to be found\b",
    r"\b(?:not enough|insufficient|too little|incomplete|inadequate|missing|lack of|no) "
    r"(?:information|data|context|details?|inputs?"
    r"|facts)\b.*(?:\bto\b|\bfor\b|;|:)",
    (
        r"\b(?:have|has|had|needs?|must|ought|is|are) (?:to )?(?:first )?be (?:first "
        r")?\w+(?: \w+)? (?:first|before|beforehand|earlier)\b"
    ),
    r"\bmust (?:first |therefore )?be "
    r"(?:determined|established|found|known|computed|looked up|worked "
    r"out|calculated|identified)\b"
    r"|\bfirst\b.*\bmust be\b|"
    rf"\bwould have to be {_GIVEN}|\b(?:still |first )?(?:needs?|remains?|has|have) to "
    rf"be {_GIVEN}|\b(?:yet|still) to be \w+"
    rf"|\bto be {_GIVEN} (?:first|yet|still)\b",
    r"\b(?:is|are|was|were|would be|will be)(?: first| still| also)? "
    r"(?:needed|required|necessary)\b.*\b(?:first|before|to|in order"
    r"|for)\b",
    r"\bto (?:\w+ ){1,8}.{0,60}\b(?:is|are|be) (?:first |still )?(?:needed|required|necessary)\b",
    r"\bfollowing\b.*\b(?:missing|needed|required|lacking|unknown)\b.*:$",
    (
        r"\b(?:needed|required|necessary) (?:first|before|input|but)\b|\b(?:first|still) "
        r"(?:needed|required)\b"
    ),
)
# The reply says that something is absent. The task decides whether that is the answer.
ABSENT = any_of(
    r"^(?:i|we) see no\b",
    (
        r"^only\b.*\b(?:given|known|provided|available|stated)\b|\b(?:missing|lacking|needed"
        r"|required|absent|unknown) ?:"
    ),
    r"\bno \w+(?: \w+){0,4} (?:attached|provided|given|supplied|uploaded|shared|included"
    r"|available|established|present|at hand"
    r"|here)$|\bnothing (?:\w+ ){0,2}(?:about|on|regarding|concerning)\b",
    r"\b(?:is|are|was|were)(?: \w+)? (?:absent|wanting|nowhere|withheld|left out|left "
    r"blank|blank|omitted|undisclosed|unnamed"
    r"|unsettled|unestablished)\b|\bi do not know\b|\bno idea\b|\bno one knows\b",
    r"\b(?:has|have) (?:never|yet to|not ever|not) (?:been|be) \w+|\bis (?:all "
    r")?(?:that|what) is (?:missing|needed|lacking)\b"
    r"|\b(?:all|what) (?:that )?(?:i |is )?(?:lack|missing|needed)\b",
    r"\b(?:not|never)(?: yet| been| so far| currently| yet been| ever been| actually| "
    r"explicitly| otherwise| anywhere"
    rf"| even)*(?: \w+ly)? {_GIVEN}\b",
    (
        r"\bno(?:ne)?\b.*\b(?:was|were|has been|have been|is|are|seems to have been)(?: "
        rf"yet| so far)? {_GIVEN}\b"
    ),
    r"\b(?:is|are|remains?|stays?|still|yet|value|input|figure|result|number|code"
    r"|name)\b.{0,60}\b(?:missing|lacking|unknown"
    r"|undetermined|unavailable|undefined|unspecified|outstanding|absent|open)\b",
    r"\b(?:does|do|did) not (?:appear|occur|come up|figure|show up|feature)\b|: "
    r"(?:unknown|missing|not \w+|none|n/a|\?)$|^(?:hence"
    r"|thus|so|therefore)\b.*\b(?:no|not|cannot|open)\b|\b(?:needed|required|wanted)$",
    r"\b(?:missing|lacking|unknown|unavailable|unspecified|unresolved|pending"
    r"|incomplete)$|^(?:missing|lacking|needed|required"
    r"|unknown|lacks?|wanted|still open|depends on|tbd|to be determined)\b",
    r"\b(?:is|are)(?: still| also)? (?:required|needed|wanted|unclear|not "
    r"clear|incomplete|an open (?:point|question)"
    r"|to be determined)\b|\b(?:input|data|information)\b.*\bincomplete\b|^no "
    r"(?:information|data|details?|figures?) (?:about|on|for"
    r"|regarding)\b",
    rf"\bneither\b.*\b{_GIVEN}\b|\b(?:given|have) "
    r"neither\b|\b(?:no|not|n't|nowhere|nothing|neither)\b.*\b(?:above|at hand|to hand"
    rf"|on file)\b|\bthere is nothing to \w+",
    r"\b(?:task|calculation|computation|question|answer|answering|formula|total|this"
    r"|that|it|result|step|work"
    r"|analysis)\b.{0,30}\b(?:requires?|needs?|presupposes|calls "
    r"for)\b|\b(?:has|have|had)(?:n't| not)(?: yet)? (?:come|arrived"
    r"|turned up|been (?:done|run|received|sent|answered))\b",
    r"\b(?:gave|brought|returned|yielded|has|have|had) no "
    r"(?:result|value|answer|number|figure)s?\b|\bopen (?:point|question)\b"
    r"|\bstays? open\b",
    r"\bmissing (?:inputs?|data|information|values?|facts?|prerequisites?|piece"
    r"|details?)\b|\b(?:insufficient|not enough) (?:data"
    r"|information|input|context|details?)\b",
    r"\b(?:waiting|wait) (?:for|on)\b|\bawaiting\b|\bpending\b|\bblocked\b|\bon hold\b",
    (
        r"\b(?:depends?|relies|rests|hinges|builds) "
        r"on\b.*\b(?:not|unknown|missing|yet|first|n't|unavailable|open)\b"
    ),
    rf"{_CANNOT}|\bcould(?: not|n't) (?:be )?(?:find|found|locate)|\bundeterminable\b",
    rf"{_HERE}.*\b(?:do|does|did)(?:n't| not)\b.*\b{_HOLD}\b",
    r"\b(?:no|without) (?:value|figure|number|data|input|access)\b",
)
REFUSAL = any_of(
    r"\b(?:i|we)(?: am|'m| are|'re)?(?: simply| really| afraid i)? ?(?:cannot|can't|can "
    r"not|won't|will not|could not|couldn't"
    r"|am unable to|unable to|not able to|not allowed to|not permitted to|must "
    r"decline|have to decline|decline|refuse"
    r"|not comfortable|would rather not|prefer not to|not willing)\b",
)
# What accompanies a refusal or a lack; alone it may be an answer.
ASIDE = any_of(
    r"\b(?:depends? on|follows? from|(?:is|are) (?:computed|calculated|derived|worked "
    r"out) (?:from|as|by)|is the (?:sum|product"
    r"|difference|mean|ratio|quotient)|is based on|builds on)\b(?!.*\d\.\d)|^[^=]{1,60} "
    r"= [^=\d]{1,100}$",
    r"\bis \w+ (?:over|times|plus|minus|divided by|multiplied by|per) \w+$",
    (
        r"^(?:result|answer|status|reason|summary|conclusion|output|finding|explanation"
        r"|analysis|note)s?:?$"
    ),
    r"\b(?:is|this|that|be|it|seems|would be) (?:not "
    r"appropriate|inappropriate|unethical|illegal|harmful|unsafe|discriminatory"
    r"|dangerous|wrong|unfair)\b",
    r"\b(?:recommend|suggest|advise|encourage)\b.*|\b(?:consult|seek) "
    r"(?:a|an|the|professional|legal|medical)\b|^(?:please "
    r"|you (?:can|could|may|might|should) |instead,? )(?:please "
    r")?(?:check|consult|visit|contact|look|search|use|ask|refer|try|see"
    r"|rephrase|reach out)\b",
)
TALK = any_of(
    r"^(?:sure|of course|certainly|absolutely|okay|ok|understood|got "
    r"it|alright|great|very well|noted|acknowledged|thanks?|thank you"
    r"|hello|hi|good question|sounds good|roger)\b[^:]{0,60}[.!,]?$",
    r"\b(?:happy|glad|pleased|here) to (?:help|assist)\b|\bhow (?:can|may) i "
    r"(?:help|assist)\b|\blet me know\b|\bfeel free\b"
    r"|\bthank you\b|\bi understand\b",
    r"\b(?:i(?:'m| am)? (?:very |so |truly |deeply )?(?:sorry|afraid|apologi[sz]e)|my "
    r"apologies|apologies|sorry|unfortunately"
    r"|regrettably)\b[^.]{0,40}$",
    r"^(?:here(?: is| are|'s| comes)|below (?:is|are)|the following|see "
    r"below)\b.{0,100}:?$|\b(?:analysis|answer|report|result"
    r"|summary|list):$|\bas follows:?$",
    (
        r"\b(?:i was|i am|i'm|you|we were) asked\b|\bthe task (?:is|was|asks)\b|\bmy "
        r"task\b|\byou(?: have)? asked\b"
    ),
    (
        r"^(?:once|as soon as|after|when|with|if|given)\b.*\b(?:i|we|it|this|that|you|task"
        r"|total|value|answer|can|will|could)\b"
    ),
    r"^(?:then|so|after that|afterwards)\b.*\b(?:can|could|will|would)\b|\b(?:checked"
    r"|searched|looked|read|went|reviewed|examined"
    r"|scanned)\b.*\b(?:earlier|previous|results?|context|material|given|preceding"
    r"|prior)\b|\bready to (?:continue|proceed|go on"
    r"|help|start)\b|\b(?:try|come back|check back) (?:again )?later\b",
    (
        r"\b(?:task|tasks) \d+ (?:should|must|has to|needs to)\b|\bshould be "
        r"(?:run|done|carried out|looked up|established) first\b"
    ),
)
PLAN = any_of(
    r"\b(?:i|we)(?:'ll|'m going to| will| am going to| are going to| plan to| intend to| "
    r"shall| would start| would begin"
    r"| am about to|'m about to)\b",
    r"^(?:first|next|then|finally|after that|second|third|lastly|now),? "
    r"(?:i|we|let)\b|^(?:let me|let's|let us|allow me"
    r"|give me a moment|one moment|hold on|just a (?:moment|second)|stand by|please wait)\b",
    r"^(?:working on|searching|processing|looking "
    r"(?:up|into|for)|analy[sz]ing|proceeding|starting|getting started|in progress"
    r"|fetching|loading|gathering|checking|calculating|computing)\b.{0,80}$",
    (
        r"\b(?:my|the) (?:plan|approach|strategy|next steps?) (?:is|are|will be|would "
        r"be)\b|^(?:plan|approach|next steps?|steps)\s*:"
    ),
)
LACK_ABROAD = any_of(
    r"\bohne\b.*\b(?:kann|können|lässt|ist|nicht)\b|\b(?:benötige|brauche|benötigen"
    r"|brauchen|benötigt|bräuchte)\b|\b(?:fehlt|fehlen"
    r"|fehlende?n?)\b|\bbitte\b|\b(?:kenne|weiß|habe|finde)\b.*\b(?:nicht|kein\w*)\b"
    r"|\b(?:steht|findet sich|gibt es"
    r"|geht)\b.*\b(?:nichts|nirgends|nicht)\b.*|\b(?:ergebnis|unterlagen|angaben"
    r"|kontext)\w*\b.*\b(?:nicht|nichts|kein\w*|fehl\w*)\b"
    r"|\b(?:nicht|noch nicht|nirgends|un)\s?(?:bekannt|angegeben|genannt|enthalten"
    r"|vorhanden|gegeben|ermittelt|festgestellt"
    r"|mitgeliefert|verfügbar|beigefügt|angehängt|übergeben)\b|\bliegt\b.*\bnicht "
    r"vor\b|\bliegen\b.*\bnicht vor\b|\b(?:könnten"
    r"|können) sie\b|\b(?:lässt sich|kann|konnte|können)\b.*\bnicht\b.*\b(?:berechn"
    r"|bestimm|ermittel|beantwort|erstell|übersetz)\w*"
    r"|\bkein\w*\b.*\b(?:mitgeteilt|angegeben|übergeben|beigefügt|genannt)\b"
    r"|\bzuerst\b.*\b(?:ermittelt|bekannt|bestimmt)\b",
    r"\bsans\b.*\b(?:peux|peut|pouvons|impossible|ne)\b|\b(?:peux|peut|possible"
    r"|impossible)\b.*\bsans\b|\b(?:il|me|nous) (?:me "
    r"|nous )?manque\w*\b|\bmanquant\w*\b|\b(?:veuillez|merci "
    r"de|pourriez-vous|pouvez-vous)\b|\b(?:j'ai|il me faut"
    r"|nous avons)\b.*\b(?:besoin|faut)\b|\bil (?:me |nous )?faut\b|\b(?:pas|non) "
    r"(?:encore )?(?:été )?(?:connue?s?|fournie?s?"
    r"|indiquée?s?|donnée?s?|établie?s?|disponibles?|précisée?s?|communiquée?s?"
    r"|jointe?s?)\b|\b(?:est|sont|reste"
    r"|restent) (?:encore )?(?:inconnu|manquant)\w*|\bne figure\w*\b.*\bpas\b|\bj'ai "
    r"besoin\b|\bpas assez\b",
    r"\bfaltan?\b|\bsin\b.*\b(?:no|puedo|puede|posible|imposible)\b|\bno (?:se "
    r")?(?:puedo|puede|es posible)\b.*\bsin\b|\b(?:necesito"
    r"|necesitamos|requiero|se necesita|hace falta)\b|\b(?:por "
    r"favor)\b.*|\b(?:podría|puede|puedes|podrías)\b.*\b(?:dar|indicar"
    r"|proporcionar|enviar|facilitar)\w*|\bno (?:se "
    r")?(?:conoce|sabe|ha|han|fue|está|están|figura|aparece|tengo|dispongo|consta"
    r"|conozco)\b",
    r"\bsenza\b.*\b(?:non|posso|possibile)\b|\bnon\b.*\bsenza\b|\bmanca(?:no)?\b|\b(?:ho "
    r"bisogno|mi serve|mi servono|occorre"
    r"|serve prima)\b|\bper "
    r"favore\b|\b(?:può|puoi|potresti|potrebbe)\b.*\b(?:fornir|indicar|dar|inviar)\w*|\bnon "
    r"(?:è"
    r"|sono) (?:ancora )?(?:stat\w+|not\w|disponibil\w|fornit\w)\b",
    r"\b(?:preciso|precisamos|necessito|é "
    r"necessário)\b|\bsem\b.*\b(?:não|posso|possível)\b|\bnão\b.*\bsem\b|\bfalta[mr]?\b"
    r"|\b(?:poderia|pode)\b.*\b(?:fornecer|informar|enviar|indicar)\b|\bnão "
    r"(?:foi|foram|está|estão|tenho|consta|se sabe|é)\b.*",
    r"\bzonder\b.*\b(?:kan|niet|kunnen)\b|\b(?:ontbreekt|ontbreken|ontbrekende)\b"
    r"|\b(?:heb|hebben)\b.*\bnodig\b|\bgraag\b.*\b(?:door"
    r"|aan|op)\b|\b(?:kunt|kun|zou) (?:u|je)\b|\bniet "
    r"(?:bekend|gegeven|beschikbaar|vermeld|vastgesteld|meegeleverd|bijgevoegd)\b",
    r"\b(?:saknas?|saknar|mangler|mangel|puuttuu|mangler)\b|\b(?:utan|uten"
    r"|uden)\b.*\b(?:kan|inte|ikke)\b|\b(?:behöver|trenger"
    r"|trænger|har brug for|må (?:jeg )?vite|tarvitsen)\b|\b(?:inte|ikke) (?:ännu |ennå "
    r"|endnu )?(?:känd\w*|kjent|kendt|angiven"
    r"|oppgitt|oplyst|fastställd|etablert)\b|\b(?:vänligen|vennligst|venligst)\b",
    r"\b(?:brakuje|brak)\b|\bbez\b.*\b(?:nie|nelze|nemohu)\b|\b(?:nie|nelze"
    r"|nemohu)\b.*\bbez\b|\b(?:potrzebuję|potrzebna|potrzebne"
    r"|potřebuji|proszę|prosím)\b|\bnie "
    r"(?:jest|są|został\w*|podano|znam|mam)\b|\bchybí\b|\b(?:eksik|gerekli|gerekiyor|lütfen"
    r"|olmadan|ihtiyacım)\b",
    r"\bне хватает\b|\bбез\b.*\b(?:не|нельзя|невозможно)\b|\b(?:не|нельзя"
    r"|невозможно)\b.*\bбез\b|\b(?:отсутству\w+|недостаточно"
    r"|нужн[аоы]?|необходим\w*|нужно|требу\w+|пожалуйста|укажите|сообщите|предоставьте"
    r"|пришлите)\b|\bне (?:был\w*|указан\w*"
    r"|предоставлен\w*|установлен\w*|извест\w*|приведен\w*)\b|\b(?:бракує|потрібн\w+|невідом\w+)\b",
    r"足りない|不足|わかりません|分かりません|必要(?:です|があ|とな|な)|教えてください|提供してください|ご提供|お知らせください|(?:含|与え|示|記載"
    r"|提供|特定|確定|判明|決定|確認|指定|入力)(?:まれて|られて|されて"
    r"|して)?い(?:ない|ませ)|なければ|見当たりません|ないため|未確定",
    r"缺少|缺乏|请(?:您)?(?:先)?(?:提供|给出|告知|补充|上传|说明|发送)|需要(?:先)?(?:知道|提供|确定|获得|有)?|未(?:提供|给出|知"
    r"|确定|包含|说明)|没有(?:提供|给出|包含|足够)|尚(?:未|不)|無法"
    r"|无法.*(?:因为|除非|没有|缺)|不(?:知道|清楚|足以)|請提供",
    r"필요합니다|없이는|알 수 없|제공해 ?주|알려 ?주|없습니다|부족|누락|주어지지|제공되지",
    r"(?:بدون|ينقص|أحتاج|يرجى|غير (?:معروف|متوفر|محدد)|لم "
    r"يتم)|(?:जानकारी|आवश्यक|कृपया|बिना|नहीं दिया|उपलब्ध नहीं)|(?:חסר|בלי|אנא"
    r"|צריך את)",
)
ABSENT_ABROAD = any_of(
    r"\b(?:unbekannt|inconnue?s?|desconocid[oa]s?|sconosciut[oaie]|desconhecid[oa]s?"
    r"|onbekend|okänt?|ukjent|ukendt|nieznan[aeyi]"
    r"|neznám[áéý]|bilinmiyor|bilinmemekte|неизвест\w+|невідом\w+|tuntematon)\b|不明|不详|未知|미상",
)
REFUSAL_ABROAD = any_of(
    r"\b(?:kann|darf|möchte) ich\b.*\bnicht\b|\bich "
    r"(?:kann|darf|werde)\b.*\bnicht\b|\bals (?:ki|sprachmodell)\b"
    r"|\bleider\b.*\bnicht\b|\btut mir leid\b",
    r"\bje (?:ne )?(?:peux|suis pas|refuse)\b|\bdésolée?\b|\ben tant "
    r"qu'(?:ia|assistant|intelligence)\b|\bno puedo\b|\blo siento\b"
    r"|\bcomo (?:modelo|ia|asistente|una ia|um modelo|uma ia)\b|\bnon posso\b|\bmi "
    r"dispiace\b|\bnão posso\b|\b(?:desculpe|lamento"
    r"|sinto muito)\b|\bcome (?:modello|ia)\b",
    r"\bik kan\b.*\bniet\b|\bhet spijt me\b|\bkan (?:jag "
    r")?(?:inte|ikke)\b|\b(?:tyvärr|beklager|desværre)\b|\bnie mogę\b"
    r"|\bprzykro mi\b|\bprzepraszam\b|\bне могу\b|\b(?:извините|к "
    r"сожалению|простите)\b|\bкак (?:ии|языковая модель)\b"
    r"|\büzgünüm\b|\bnemohu\b|\bomlouvám\b",
    r"申し訳|できません|お応え|お答え(?:でき|いたし)|致しかね|抱歉|对不起|對不起|无法(?:帮|协助|提供|完成|回答|满足)|不能(?:帮|协助|提供|回答)"
    r"|作为.{0,8}(?:ai|人工智能|语言模型)|죄송|할 수 없|도와드릴 수"
    r"|آسف|عذر|لا أستطيع|क्षमा|माफ|סליחה|לא יכול",
)
TALK_ABROAD = any_of(
    r"^(?:natürlich|gerne|sicher|bien sûr|d'accord|claro|por supuesto|certo|certamente"
    r"|verstanden|entendido|klar|はい|承知|好的|当然|конечно"
    r"|хорошо|네)\b.{0,60}$",
    r"\b(?:sobald|dann kann|danach|dès que|ensuite|une fois|en cuanto|una "
    r"vez|appena|zodra|när jag|så snart)\b|\bich werde\b"
    r"|\bje vais\b|\bvoy a\b|\bvou\b|我(?:将|会|马上)|その後|次第|すぐに",
)

# In a task that asks for a text, only words about the task's own material are the agent's own
# words.
OF_THE_AGENT = any_of(
    r"\bi need to know\b|\bi do not know what\b|\bgive me the\b|\bbefore i (?:can|could)\b",
    r"\b(?:so|before|until|unless|once|then)(?: that)? i can\b|\bfor me to\b|\byou(?:'d| "
    r"would) (?:like|want)\b|\bhappy to (?:help"
    r"|assist)\b|\b(?:i|we) (?:do not|don't) have\b|\baccess to\b",
    r"\b(?:has|have|was|were|is|are)(?:n't| not| yet| no)? (?:been )?(?:yet "
    r")?(?:attached|provided|included|supplied|shared|given"
    r"|pasted)\b",
    r"\b(?:to|before|cannot|can't|could not|unable to|can) (?:\w+ "
    r")?(?:write|draft|writing|drafting|translat\w+|summari\w+|compos\w+"
    r"|quot\w+|extract\w*|rephras\w+|reply|respond|answer|complete|do this)\b",
    rf"{_SURELY_HERE}|\b(?:ohne|sans|sin|senza|sem|zonder|без|bez)\b|\b(?:übersetz"
    r"|schreib|verfass|tradui|rédig|traduc|redact)\w*|翻译"
    rf"|訳|作成|书写|撰写",
)

# An offer to do more, or a recommendation, does not ask for anything that the task needs.
OFFER = any_of(
    r"\blet me know (?:how|if|whether|when|should|what else|in case)\b|\b(?:if|should|in "
    r"case) you\b.*\b(?:let me know|feel free"
    r"|i can|i could|just ask|happy to)\b",
    (
        r"\bwould you like\b|\bdo you want me\b|\bhow (?:can|may) i\b|\bwhat would you "
        r"like\b|\banything else\b"
    ),
)
# Somebody searched outside of the prompt and did not find it.
FINDING = any_of(
    r"\b(?:searched|i found no|found none|fetched|grep|announced|publish\w*|the "
    r"(?:page|site|website|vendor|label|law|contract"
    r"|clause|statute|register|registry|manual) "
    r"(?:says|gives|does|lists|names|states)|(?:any|no) (?:\w+ ){0,2}(?:mentions?|matches"
    r"|hits|duplicates|signs?|evidence|traces?|records?|references?|indications?"
    r"|instances?|occurrences?|reviews|entries)"
    r"|looked (?:at|in) (?:both|all|every))\b",
)
REFUSAL_SURE = any_of(
    r"\bas an? (?:\w+ ){0,2}(?:ai|artificial intelligence|language "
    r"model|assistant)\b|\b(?:i am|i'm)(?: just| only)? (?:an? )?(?:ai"
    r"|artificial|large language|language model|text-based)",
    r"(?:\b(?:i|we|i'm|i am|we are|sorry|unfortunately,?|afraid|must|have "
    r"to|assistant)(?: am| are)? (?:\w+ ){0,3}|^)(?:cannot|can't"
    r"|can not|won't|will not|unable to|not able to|not allowed to|not permitted "
    r"to|decline to|decline|refuse to|not comfortable"
    r"|not willing to)(?: be able to)? (?:\w+ )?(?:help|helping|assist|assisting|do "
    r"that|do this|do so|fulfil|comply|engage"
    r"|support this|browse|access|discuss|participate|respond to|accommodate|process "
    r"this|carry out this|satisfy)\b",
    r"\b(?:unable to|not able to|cannot|will not) (?:\w+ "
    r")?(?:complete|fulfil\w*|process|answer|handle|satisfy|provide|give|share"
    r"|perform|carry out|grant) (?:this|that|your|such|the) "
    r"(?:request|query|question|prompt|information|kind|action|content|task)?s?$",
    (
        r"\b(?:i|we) (?:will not|cannot) (?:provide|give|share|answer|perform) "
        r"(?:this|that|it|such|physical)\b"
    ),
    r"\b(?:my|our|the|usage|content|safety|openai\W?s?) (?:\w+ "
    r")?(?:guidelines|polic(?:y|ies)|programming|terms of (?:use"
    r"|service))\b|\bknowledge cut-?off\b|\btraining data\b|\bmy (?:training|capabilities)\b",
    r"\b(?:i|we) (?:do not|don't|have no|lack)(?: currently| yet)?(?: have)?(?: the| an| "
    r"any)?(?: ability| abilities| real-time"
    r"| browsing| internet| tools?| means to| capability| capacity| web| live)",
    r"\b(?:i|i'm|my|me|we)\b.*\baccess\b.*\b(?:real[- "
    r"]time|live|internet|web|online|external|current)\b|\b(?:i|i'm"
    r"|we)\b.*\b(?:cannot|can't|unable|not able|don't)\b.*\b(?:browse|browsing|real[- "
    r"]time|surf|the internet|online)\b",
    r"^(?:(?:this|your|the) )?(?:request|task) (?:is |was |has been "
    r")?(?:denied|refused|declined|rejected)|\b(?:this|the"
    r"|your) (?:request|task|question)\b.*\b(?:violates?|against|inappropriate|not "
    r"allowed|not permitted|polic(?:y|ies))\b"
    r"|^(?:i give up|declined|refused)\b|\btoo (?:hard|difficult|complex) for me\b",
    r"\b(?:i|we) (?:will not|won't|cannot|can't|must not|refuse to|decline to|would "
    r"rather not|prefer not to) (?:do|answer|write"
    r"|produce|create|generate|provide|give|take part|be|tell you how)\b(?: "
    r"\w+){0,3}$|^i (?:refuse|decline|pass)\b|\bi(?:'d"
    r"| would)? rather not\b|\b(?:must|have to|will|shall)(?: \w+)? decline\b|^sorry,? "
    r"(?:but )?no$|^no,? sorry$",
)
# An input that the sentence names although it sounds like a refusal.
NAMES_INPUT = any_of(
    r"\b(?:value|number|figure|code|result|needed|required|file|document|report|letter"
    r"|key|date|name|rate|price|amount|yield|list"
    r"|input|id|identifier|dataset|copy|spreadsheet|table|attachment"
    r"|text)s?\b.*\b(?:needed|required|missing|provided|given|attached"
    r"|unknown|first|has not|have not|please|share|supply)\b",
    r"\b(?:please|you|could you) (?:first "
    r")?(?:provide|supply|share|paste|attach|upload|send)\b|\bwithout "
    r"(?:the|a|an|its|their|his"
    r"|her|knowing)\b",
)
# Words that distinguish a reply about itself from a statement about the world.
_SPEAKERS = (
    r"\b(?:ich|mir|bitte|je|j'ai|m'a|moi|veuillez|merci|necesito|dispongo|tengo|por "
    r"favor|mi|per favore|preciso|tenho|ik|graag|jag"
    r"|jeg|vennligst|proszę|mam|мне|пожалуйста|я)\b|请|請|ください|私|주세요|我"
)
OF_THIS_REPLY = any_of(
    r"\byour (?:message|request|input)\b|\b(?:i|i'm|i'd|i've|we|my|me|us|please|kindly"
    r"|yet|provided|supplied|attached|shared"
    r"|uploaded|could you|can you)\b|\b(?:earlier|previous|given|available) "
    r"\w+|^(?:cannot|unable|not possible|impossible)\b"
    r"|\bthis (?:task|question|cannot)\b",
    _SPEAKERS,
)
# The text has a speaker, or mentions what the model was given.
OF_THE_SPEAKER = any_of(
    r"\b(?:i|i'm|i'd|i've|i'll|we|my|me|us|you|your|please|kindly)\b", _SPEAKERS, _SURELY_HERE
)
# Names for what the model was given.
SURELY_HERE = late_pattern(_SURELY_HERE)
# Signs of a reply that is no answer: somebody asks for something, says what they lack or are about
# to do, or leaves a placeholder. They decide nothing by themselves.
DOUBT = any_of(
    r"\b(?:no|without)(?: \w+)? (?:results?|values?|outputs?|data|inputs?|files?|sheets?"
    r"|texts?|documents?|lists?|context)\b|\btell me\b"
    r"|\b(?:my|the) plan\b|^missing\b|^\{\s*\"(?:tool|action|function|status|error)\"",
    r"\b\w+(?:[yz]?[ae]m[ıi]yor)\w*\b|\b\w+(?:medi|mad[ıi])\b"
    r"|\bnon (?:\w+ ){0,3}(?:fornit|allegat|disponibil|present|ricevut)\w+|\bmi serv\w+"
    r"|\b(?:сейчас|посмотрю|отвечу|сделаю|подготовлю)\b",
    r"\b(?:please|could you|can you|would you|do you have|mind \w+ing|let me "
    r"(?:know|have|first|think|take|start)|kindly"
    r"|you (?:have not|did not|sent|gave)|shall we)\b",
    (
        r"\b(?:send|share|paste|upload|resend|supply|forward|re-?attach)\b.{0,60}\b(?:me|it"
        r"|them|here|again|both|the|those|your|remaining)\b"
    ),
    r"\b(?:attach\w*|missing|lacking|placeholder|cut off|truncated|left open|todo|tbd|to "
    r"be (?:determined|confirmed|defined"
    r"|done))\b|\b(?:appears?|seems?|looks?|is|was|are|were|came) (?:to be "
    r")?(?:empty|blank|incomplete)\b",
    r"\b(?:not|never|no|neither|nothing|none|without|nor)\b.{0,80}\b(?:available|visible"
    r"|given|provided|supplied|included"
    r"|shown|received|reached|accessible|access|part of|come through|came through|in the "
    r"(?:context|message|prompt|material"
    r"|input|results?)|known|established|stated|mentioned|specified|shared|computed"
    r"|determined|found|present|there|here"
    r"|possible|replaced|answered)\b",
    r"\b(?:i|we)\b.{0,30}\b(?:do not|not|cannot|could not|no|only|need|lack|unable|would "
    r"have to|would need|was not|have no"
    r"|have nothing|see no|guess\w*)\b|\b(?:i|we) (?:have|was|were|am|are) (?:only|been|just)\b",
    r"\b(?:(?:is|are|be|still|first) (?:needed|required)|depends on"
    r"|once|until|as soon as|unless|before "
    r"(?:this|that|it|i|we|the))\b.{0,80}\b(?:known|available|given|provided"
    r"|established|found|there|done|answer\w*|comput\w*|work\w*|can|cannot|first|tell\w*|be)\b",
    r"\b(?:cannot|can not|could not|unable to|impossible to|no way (?:to|of)|nothing "
    r"to)\b|\bcannot be\b"
    r"|\bnot (?:yet )?(?:be )?(?:possible|\w+ed)\b.{0,30}\b(?:yet|so "
    r"far|until|without)\b|\b(?:unknown|unavailable"
    r"|inaccessible|unspecified|undetermined)\b",
    r"\b(?:sorry|afraid|unfortunately|regret|apolog\w+|as an ai|language "
    r"model|guidelines|polic(?:y|ies)|refuse|decline"
    r"|inappropriate|not comfortable)\b",
    r"\b(?:i(?:'ll| will| shall|'m going to| am going to)|let's|let us|going to|about "
    r"to|i should|i must|i need to"
    r"|stay tuned|on it|give me|hold on|wait|processing|working on|brainstorm|the "
    r"user|happy to|glad to|love to"
    r"|honou?red to|great question|good question|what an? \w+ (?:task|question)|thanks "
    r"for|thank you for|excited)\b",
    r"^(?:sure|certainly|of course|understood|got "
    r"it|okay|ok|alright|absolutely|noted|acknowledged|right away"
    r"|will do)\b.{0,80}$|^(?:\*\*)?plan\b|\bstep 1\b",
    r"\b(?:waiting|awaiting|pending|depends on|blocked|outstanding)\b|\?$|\byou are an? "
    r"\w+|\bcarry out the task\b"
    r"|\b(?:calling|invoking|running|using|call|invoke)\b.{0,30}[\w.]\(",
    r"\[(?:insert|your|the|name|date|text|translation|answer|result|value|\w+ here|to "
    r"be|\.\.\.|…|x+|tbd|todo)[^\]]{0,40}\]"
    r"|\{\{?\s*\w+\s*\}\}?|<(?:insert|your|answer|result)[^>]{0,40}>",
    r"\b(?:bitte|leider|fehl\w*|ohne|gerne?|sofort|nicht|kein\w*|ich "
    r"(?:werde|kann|habe|brauche|benötige|beginne|mache)"
    r"|natürlich|verstanden)\b",
    (
        r"\b(?:manque\w*|veuillez|pouvez|pourriez|merci|sans|ne|n'\w+|je "
        r"(?:vais|ne|peux)|désolée?|d'accord|bien sûr|d'abord|besoin)\b"
    ),
    r"\bno (?:veo|tengo|puedo|hay|está|aparece|consta|figura|se)\b|\b(?:necesit\w+"
    r"|podrías?|puedes?|puede|por favor"
    r"|falta\w*|lo siento|voy a|adjunt\w+)\b|\b(?:potrebbe|può|per "
    r"favore|manca\w*|senza|purtroppo|mi dispiace|certo|preciso"
    r"|poderia|falta|sem|infelizmente|claro|desculpe)\b",
    r"\b(?:kunt u|kun "
    r"je|alsjeblieft|alstublieft|niet|geen|ontbre\w+|zonder|graag|helaas|ik "
    r"(?:heb|kan|ga|zal)|inte|saknas"
    r"|utan|tyvärr|snälla|ikke|mangler|uden|uten|desværre|dessverre|brak\w*|nie|proszę"
    r"|bez|niestety|chybí|prosím|lütfen"
    r"|eksik|olmadan|yok|maalesef|puuttuu|ilman)\b",
    (
        r"(?:请|請|没有|沒有|無法|无法|缺|不足|未提供|未给|马上|好的|抱歉|我[会将需要]|ません|ください|ない|下さい|承知|かしこまり|いたします|足り"
        r"|没|없|않|주세요|보이지|부족|죄송|하겠습니다|필요)"
    ),
    r"\b(?:не|нет|пожалуйста|отсутств\w+|без|нужн\w+|сначала|к сожалению|извините|я "
    r"(?:не|могу|буду)|хорошо|конечно)\b"
    r"|[\u0600-\u06ff]{2,}.{0,40}(?:لا|بدون|يرجى|غير)|कृपया|नहीं|बिना|אין|בלי|בבקשה",
)


# --------------------------------------------------------------------------------------------------
# What kind of thing a task asks for, by the words of its name: the same reply may answer one task
# and fail another.
#
# Each pattern is searched in the folded name.
# --------------------------------------------------------------------------------------------------


ASKS_GAPS = any_of(
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
ASKS_STATE = any_of(
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
ASKS_WORDS = any_of(
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
ASKS_PRODUCT = any_of(
    r"\b(?:json|code|function|schema|tool|api|call|snippet|payload|request|command"
    r"|repeat|refrain|chorus|times|pattern|matrix"
    r"|sequence|padding|stress|token|tag|chant|mantra)\b"
)
ASKS_REFUSAL = any_of(
    r"\b(?:declin|refus|apolog|reject|sorry|disclaim|polic|rule|quot|translat|said\b"
    r"|says\b|(?:did|does|do|to)\b.*\bsay\b|wrote"
    r"|bot\b|dialog|limits?\b|turn(?:ing)? "
    r"down)|absag|entschuldig|übersetz|refus|excus|tradu|disculp|rechaz|断り|訳|谢绝|翻译|道歉|отказ"
    r"|извин|перевед"
)
ASKS_SIGN = any_of(
    r"\b(?:character|symbol|sign|operator|delimiter|separator|punctuation|mark|regex"
    r"|emoji|glyph|token|tag|bracket|letter|prefix"
    r"|suffix|wildcard|draw|ascii|diagram|pattern|grid|maze|plot|chart|histogram|as "
    r"text|border|divider|list|json|array|object|set)s?\b"
)
ASKS_QUOTE = any_of(
    r"\b(?:quot\w+|repeat|restate|cop(?:y|ies)|recite|objective|instructions?|prompt"
    r"|verbatim|echo|rephras\w+|paraphras\w+)\b"
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
# A task that retells what somebody else says. Only words about the reply itself are the reply's
# own.
ASKS_DIGEST = any_of(
    r"\b(?:summar\w+|digest|outline|retell|recap\w*|paraphras\w+|condense|abstract|minutes|gist)\b",
    r"\bzusammenf\w+|\bfasse\b|\brésum\w+|\bresum\w+|\briassum\w+|\bsamenvat\w*"
    r"|\bsammanfatt\w*|\bstreszcz\w*|要約|まとめ|总结|摘要|резюм"
    r"|излож|요약",
)

# A task for a fictional text, which may say anything.
ASKS_FICTION = any_of(
    r"\b(?:write|compose|tell|invent|make|draft|give|continue)\b.*\b(?:monologue|poem"
    r"|haiku|limerick|story|scene|lyrics|song"
    r"|dialog\w*|joke|riddle|verse|sonnet|prayer|fable|tale|chant|epitaph|diary"
    r"|character|fiction|novel|rhyme)\b"
)
# A task for a text that refuses.
ASKS_NO = any_of(
    r"\b(?:declin|refus|apolog|reject|disclaim|turn(?:ing)? "
    r"down)|\babsag|\brefus|\bexcus|\brechaz|отказ|谢绝|断り"
)


def asks_words(task: str) -> bool:
    """Return whether the task asks for a text, such as a letter, a translation or a quote, whose
    words are not the agent's own."""
    return bool(ASKS_WORDS.search(task)) and not WORKS_ON_TEXT.match(task)


def holds_quote(task: str) -> bool:
    """Return whether the task contains the text that it is about."""
    return bool(re.search(r"[\"“«„「'‘][^\"”»“」'’]{6,}[\"”»“」'’]", task))
