"""Whether a question asks for a secret, by the words that name secrets in the languages that people
write.

A hint for whoever is asked: it errs both ways, and nothing depends on it.
"""

from __future__ import annotations

import re
import unicodedata

from babyagi.visible import UNSEEN

_LOOKS_LATIN = str.maketrans(
    dict(zip("аеорсухіјѕԁһвкмтοραντυικε@01345$", "aeopcyxijsdhbkmtopantuikeaoieass", strict=True))
)

_NAMES = (
    (
        r"pass(?:word|phrase|code|wd)s?|pwd|credentials?|log-?in "
        r"(?:data|details|name|information)|client secret"
    ),
    (
        r"secret (?:question|answer|access)|(?:seed|recovery|secret|backup) "
        r"(?:phrase|word|code|key)s?|mnemonic|wallet (?:key|file|seed)s?"
    ),
    r"service account (?:json|file)",
    (
        r"(?:api|access|secret|private|signing|encryption|decryption|ssh|gpg|license|account"
        r"|master|deploy|admin)[ _-]*(?:key|token|secret)s?"
    ),
    (
        r"(?:auth\w*|login|bearer|session|refresh|csrf|personal access|security|bot)[ "
        r"_-]*(?:token|key|cookie|header|id)s?|jwt"
    ),
    (
        r"(?:one[ -]?time|verification|security|confirmation|authentication|2fa|mfa|sms"
        r"|login|access|door|alarm) (?:pass)?(?:code|pin)s?"
    ),
    (
        r"otp|totp|2fa|pin[ -]?(?:code|number)s?|(?:your|the|my) "
        r"pin|cvv2?|cvc2?|(?:credit|debit|bank|payment)[ -]?cards?"
    ),
    (
        r"card(?:holder)? (?:number|details)|iban|account number|routing number|sort "
        r"code|social security(?: number)?|ssn|passport number"
    ),
    (
        r"tax id|national insurance number|connection string|id "
        r"(?:rsa|ed25519)|\.env|keyfile|keystore|kennw[oö]rt\w*|zugangsdaten"
    ),
    (
        r"anmeldedaten|\w*schlussel\w*|geheimnis\w*|geheimzahl|kreditkarten?\w*|kartennummer"
        r"|kontonummer|(?:ihre|eine|die) tan|tan-nummer"
    ),
    (
        r"(?:sicherheits|bestatigungs|wiederherstellungs)(?:code|phrase)s?|passwort\w*"
        r"|passworter\w*|mots? de passe|identifiants"
    ),
    r"cle (?:d.)?(?:api|secrete|privee|acces)|carte (?:bancaire|de credit|bleue)|jetons?",
    (
        r"code (?:secret|confidentiel|de verification|de securite)|phrase (?:secrete|de "
        r"recuperation)|contrasen[ay]s?|credencial(?:es)?"
    ),
    (
        r"clave(?! de (?:la|el|los|las)\b)|tarjeta de (?:credito|debito)|frase "
        r"(?:semilla|secreta|de recuperacion)"
    ),
    (
        r"codigo (?:secreto|de "
        r"(?:seguridad|verificacion|seguranca|verificacao))|parola\w*(?: d.ordine)?"
    ),
    (
        r"chiave (?:api|segreta|privata|di accesso)|credenziali|carta di credito|codice "
        r"(?:segreto|di (?:sicurezza|verifica))|senhas?"
    ),
    (
        r"palavra-passe|credenciais|cartao de credito|chave (?:de |da |do "
        r")?(?:api|secreta|privada|acesso)|wachtwoord\w*|toegangscode"
    ),
    (
        r"inloggegevens|(?:api-?)?sleutel|has[lł][aeo]\w*|klucz\w* "
        r"(?:api|prywatn\w*|dostepu)|kart\w+ kredytow\w+|dane logowania|heslo"
    ),
    (
        r"salasana\w*|losenord\w*|adgangskode\w*|passord\w*|sifre\w*|jelszo\w*|mat "
        r"kh[aâ]u|kata sandi|парол\w*|токен\w*|секретн\w+"
    ),
    (
        r"(?:api|апи)[ -]?ключ\w*|(?:приватн|закрыт)\w+ ключ\w*|пин-?код\w*|кредитн\w+ "
        r"карт\w+|номер карты"
    ),
    r"код (?:из )?(?:смс|sms|подтвержден\w+)|κωδικ\w+|συνθηματικ\w+|סיסמ\w+",
    r"كلمة (?:المرور|السر)|الرقم السري|رمز (?:عبور|المرور|التحقق)",
)
_WITHIN_WORDS = (
    "密码 密碼 口令 密钥 密鑰 金鑰 私钥 私鑰 令牌 助记词 验证码 "
    "驗證碼 信用卡 银行卡 凭据 凭证 パスワード 暗証番号 秘密鍵 "
    "トークン クレジットカード 認証コード apiキー 비밀번호 암호 "
    "토큰 인증번호 신용카드 개인키 api키 पासवर्ड कूटशब्द รหัสผ่าน"
).split()
_BY_CONTEXT = (
    (
        r"\b(?:paste|enter|type|give|send|share|provide|supply|insert|drop|tell|reveal|post"
        r"|put|e-?mail|copy)\b[^.?!]{0,60}\b(?:key|token|secret)s?\b"
    ),
    r"\b(?:your|my|our)\b[^.?!]{0,30}\b(?:key|token|secret|pin|login)s?\b",
    r"\bwhat(?: is|.s|s)\b[^.?!]{0,30}\b(?:key|token|secret|pin)\b",
)
# in small letters these are other words
_IN_CAPITALS = re.compile(r"\b(?:PIN|TAN|PAT|OTP|CVV|CVC)\b")
_NO_ADJECTIVE = (
    # key findings
    r"(?! (?!(?:here|below|now|in|into|to|for|so|and|or|from|of|please|that|which|you"
    r"|with|again|on|at|is)\b)[a-z])"
)


def _fold(text: str) -> str:
    """The text in small letters, without marks, unseen characters and the blanks between single
    letters."""
    text = UNSEEN.sub("", unicodedata.normalize("NFKD", re.sub(r"[\t\n\r]", " ", text)).casefold())
    text = "".join(
        character for character in text if not unicodedata.category(character).startswith("M")
    )
    text = re.sub(
        r"(?<![^\W_])([^\W_])[ ._*-](?=[^\W_](?![^\W_]))",
        r"\1",
        unicodedata.normalize("NFKC", text),
    )
    return re.sub(r"[ _]+", " ", text)


_ASKED_FOR = re.compile(
    (
        rf"(?<!\w)(?:{'|'.join(_NAMES)})(?!\w)|{'|'.join(map(_fold, _WITHIN_WORDS))}"
        rf"|(?:{'|'.join(_BY_CONTEXT)}){_NO_ADJECTIVE}"
    ),
)


def sounds_secret(question: str) -> bool:
    if _IN_CAPITALS.search(question):
        return True
    folded = _fold(question)
    return any(_ASKED_FOR.search(text) for text in (folded, folded.translate(_LOOKS_LATIN)))
