"""What the folders say, in five languages: names, attributes, sentences, questions, filler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NONE = "NONE"  # what a question asks for where the folder does not say the value

PLACE, SIZE, POLICY, KEEPER, STATE = "place", "size", "policy", "keeper", "state"  # of a thing
EXTENSION, ROOM, KEY = "extension", "room", "key"  # of a person, of a person, of a room


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """What a folder is about. `things` is the plural; `nouns` holds the attributes of a thing in
    the nominative, `states` the values of one of them, `closing` the last line of its letters."""

    things: str
    nouns: Mapping[str, str]
    states: tuple[str, str, str]
    closing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A language.

    Attributes:
        chain: how an attribute and what it is of are put together: `{a}` of `{x}`.
        inner: the form that an attribute takes inside such a chain, where it is not the nominative.
        facts: forms of a sentence that says the value `{v}` of `{p}`; `{P}` begins with a capital.
        filler: sentences that say nothing about things, with the numbers `{n}` and `{m}`, of two
            digits, and the day `{d}`.
    """

    name: str
    domains: tuple[Domain, Domain]
    nouns: Mapping[str, str]
    things: Sequence[str]
    persons: Sequence[str]
    rooms: Sequence[str]
    chain: str
    inner: Mapping[str, str]
    facts: Sequence[str]
    title: str
    joint: str
    value_question: str
    count_question: str
    compare_question: str
    letter_question: str
    letter: str
    filler: Sequence[str]

    def phrase(self, domain: Domain, subject: str, *attributes: str) -> str:
        """Return the phrase for an attribute of an attribute … of the subject, outermost first."""
        nouns = {**self.nouns, **domain.nouns}
        said = subject
        for attribute in reversed(attributes):
            said = self.chain.format(a=nouns[attribute], x=said)
        for noun, inner in self.inner.items():
            said = said.replace(noun, inner)
        return said

    def say(self, form: int, phrase: str, value: str) -> str:
        capital = phrase[:1].upper() + phrase[1:]
        return self.facts[form % len(self.facts)].format(p=phrase, P=capital, v=value)


ENGLISH = Language(
    name="en",
    domains=(
        Domain(
            things="boats",
            nouns={
                PLACE: "the berth",
                SIZE: "the length",
                POLICY: "the insurance number",
                KEEPER: "the owner",
                STATE: "the state",
            },
            states=("ready to sail", "in repair", "for sale"),
            closing="Harbour Office Northend",
        ),
        Domain(
            things="exhibits",
            nouns={
                PLACE: "the display case",
                SIZE: "the height",
                POLICY: "the inventory number",
                KEEPER: "the curator",
                STATE: "the state",
            },
            states=("on show", "in storage", "on loan"),
            closing="Museum Office Westgate",
        ),
    ),
    nouns={EXTENSION: "the extension", ROOM: "the office", KEY: "the door code"},
    things="Mirela Tarnova Quendia Solvik Brisande Oskarine Veldara Lumetta".split(),
    persons=(
        "Ada Korn",
        "Bram Teller",
        "Celia Voss",
        "Dorian Hale",
        "Edith Marlow",
        "Finn Aster",
    ),
    rooms="Larchwood Elmfield Ashgrove Birchley".split(),
    chain="{a} of {x}",
    inner={},
    facts=("{P} is {v}.", "Noted this week: {p} is {v}."),
    title="Journal",
    joint=", ",
    value_question=(
        "What is {p}? Answer with this value. If the files do not say it, write NONE instead."
    ),
    count_question=(
        "For which of the {things} is the state “{v}”? Name all of them and no others, and say how "
        "many they are."
    ),
    compare_question=(
        "Compare {size} of these {things}: {names}. What is {place} of the one with the greatest "
        "number? Answer with this value only. If the files do not say it, write NONE instead."
    ),
    letter_question=(
        "Write a short letter to {keeper}, addressed by full name. The letter says {place}, {size} "
        "and {policy} of {x}, and its last line is “{closing}”."
    ),
    letter="Dear {keeper},\n\n{facts}\n\nKind regards\n{closing}",
    filler=(
        "On day {d} the stairs were swept and {n} lamps were checked.",
        "A visitor asked for the way to the station; the walk takes {n} minutes.",
        "The kettle was replaced on day {d} after {n} years of service.",
        "It rained for {n} hours, and {m} chairs were carried inside.",
        "The newsletter went out to {n} readers; {m} of them wrote back.",
        "Lunch on day {d} was soup; {n} portions were eaten.",
        "The clock in the hall was {n} minutes late and was set on day {d}.",
        "A school class of {n} pupils came by and stayed for {m} minutes.",
        "Fresh paint was bought, {n} tins in all, and the fence was done by day {d}.",
        "The choir practised {n} songs in the yard while {m} people listened.",
    ),
)

GERMAN = Language(
    name="de",
    domains=(
        Domain(
            things="Boote",
            nouns={
                PLACE: "der Liegeplatz",
                SIZE: "die Länge",
                POLICY: "die Versicherungsnummer",
                KEEPER: "der Eigner",
                STATE: "der Zustand",
            },
            states=("fahrbereit", "in Reparatur", "zu verkaufen"),
            closing="Hafenmeisterei Nordende",
        ),
        Domain(
            things="Ausstellungsstücke",
            nouns={
                PLACE: "die Vitrine",
                SIZE: "die Höhe",
                POLICY: "die Inventarnummer",
                KEEPER: "der Kurator",
                STATE: "der Zustand",
            },
            states=("ausgestellt", "im Magazin", "verliehen"),
            closing="Museumsbüro Westtor",
        ),
    ),
    nouns={EXTENSION: "die Durchwahl", ROOM: "das Büro", KEY: "der Türcode"},
    things="Almida Bernwart Cordula Drachenfels Isolde Kranich Nordstern Silberpfeil".split(),
    persons=(
        "Anke Möller",
        "Bernd Huber",
        "Clara Jansen",
        "Dieter Vogt",
        "Elke Sommer",
        "Franz Kühn",
    ),
    rooms="Ahornstube Lindenraum Eschenzimmer Buchenkammer".split(),
    chain="{a} von {x}",
    inner={
        "von der Eigner": "des Eigners",
        "von der Kurator": "des Kurators",
        "von das Büro": "des Büros",
    },
    facts=("{P} ist {v}.", "Neu eingetragen: {p} ist {v}."),
    title="Tagebuch",
    joint=", ",
    value_question=(
        "Wie lautet {p}? Antworte mit diesem Wert. Wenn die Dateien es nicht sagen, schreibe "
        "stattdessen NONE."
    ),
    count_question=(
        "Für welche {things} ist der Zustand „{v}“? Nenne alle und keine anderen, und sage, wie "
        "viele es sind."
    ),
    compare_question=(
        "Vergleiche {size} für diese {things}: {names}. Wie lautet {place} dort, wo die Zahl am "
        "größten ist? Antworte nur mit diesem Wert. Wenn die Dateien es nicht sagen, schreibe "
        "stattdessen NONE."
    ),
    letter_question=(
        "Schreibe einen kurzen Brief mit voller Namensanrede an diese Person: {keeper}. Der Brief "
        "nennt {place}, {size} und {policy} von {x}, und seine letzte Zeile ist „{closing}“."
    ),
    letter="Guten Tag {keeper},\n\n{facts}\n\nMit freundlichen Grüßen\n{closing}",
    filler=(
        "Am Tag {d} wurde die Treppe gefegt, und {n} Lampen wurden geprüft.",
        "Ein Gast fragte nach dem Weg zum Bahnhof; zu Fuß sind es {n} Minuten.",
        "Der Wasserkocher wurde am Tag {d} nach {n} Jahren ersetzt.",
        "Es regnete {n} Stunden lang, und {m} Stühle wurden hineingetragen.",
        "Der Rundbrief ging an {n} Leser; {m} davon schrieben zurück.",
        "Zu Mittag gab es am Tag {d} Suppe; {n} Teller wurden gegessen.",
        "Die Uhr im Flur ging {n} Minuten nach und wurde am Tag {d} gestellt.",
        "Eine Klasse mit {n} Kindern kam vorbei und blieb {m} Minuten.",
        "Neue Farbe wurde gekauft, {n} Dosen, und der Zaun war am Tag {d} fertig.",
        "Der Chor übte im Hof {n} Lieder, während {m} Leute zuhörten.",
    ),
)

SPANISH = Language(
    name="es",
    domains=(
        Domain(
            things="barcos",
            nouns={
                PLACE: "el amarre",
                SIZE: "la eslora",
                POLICY: "el número de póliza",
                KEEPER: "el patrón",
                STATE: "el estado",
            },
            states=("listo para zarpar", "en reparación", "a la venta"),
            closing="Oficina del Puerto Norte",
        ),
        Domain(
            things="piezas",
            nouns={
                PLACE: "la vitrina",
                SIZE: "la altura",
                POLICY: "el número de inventario",
                KEEPER: "el conservador",
                STATE: "el estado",
            },
            states=("en exposición", "en el almacén", "en préstamo"),
            closing="Secretaría del Museo Poniente",
        ),
    ),
    nouns={EXTENSION: "la extensión", ROOM: "el despacho", KEY: "la clave de la puerta"},
    things="Alborada Brumaria Centella Golondrina Lucerina Marejada Ondina Trinidora".split(),
    persons=(
        "Alba Requena",
        "Bruno Salcedo",
        "Carmen Ibarra",
        "Diego Lozano",
        "Elvira Pastor",
        "Fermín Quiroga",
    ),
    rooms="Acebuche Nogaleda Olmedal Pinarejo".split(),
    chain="{a} de {x}",
    inner={"de el ": "del "},
    facts=("{P}: {v}.", "Anotado esta semana: {p}, {v}."),
    title="Diario",
    joint=", ",
    value_question=(
        "¿Cuál es {p}? Responde con ese valor. Si los archivos no lo dicen, escribe NONE en su "
        "lugar."
    ),
    count_question=(
        "¿Qué {things} tienen el estado «{v}»? Da todos los nombres y ninguno más, y di cuántos "
        "son."
    ),
    compare_question=(
        "Compara {size} de estos objetos ({things}): {names}. ¿Cuál es {place} del que tiene el "
        "número mayor? Responde solo con ese valor. Si los archivos no lo dicen, escribe NONE en "
        "su lugar."
    ),
    letter_question=(
        "Escribe una carta breve, con el nombre completo en el saludo, a esta persona: {keeper}. "
        "La carta dice {place}, {size} y {policy} de {x}, y su última línea es «{closing}»."
    ),
    letter="Hola, {keeper}:\n\n{facts}\n\nUn saludo\n{closing}",
    filler=(
        "El día {d} se barrió la escalera y se revisaron {n} lámparas.",
        "Un visitante preguntó por la estación; a pie son {n} minutos.",
        "La tetera se cambió el día {d} tras {n} años de uso.",
        "Llovió {n} horas y se metieron dentro {m} sillas.",
        "El boletín llegó a {n} lectores; {m} de ellos contestaron.",
        "El día {d} hubo sopa para comer; se sirvieron {n} platos.",
        "El reloj del pasillo iba {n} minutos atrasado y se ajustó el día {d}.",
        "Vino una clase de {n} alumnos y se quedó {m} minutos.",
        "Se compró pintura, {n} botes en total, y la valla quedó lista el día {d}.",
        "El coro ensayó {n} canciones en el patio ante {m} personas.",
    ),
)

JAPANESE = Language(
    name="ja",
    domains=(
        Domain(
            things="船",
            nouns={
                PLACE: "係留場所",
                SIZE: "全長",
                POLICY: "保険番号",
                KEEPER: "船主",
                STATE: "状態",
            },
            states=("出航可能", "修理中", "売り出し中"),
            closing="北港管理事務所",
        ),
        Domain(
            things="展示品",
            nouns={
                PLACE: "展示ケース",
                SIZE: "高さ",
                POLICY: "目録番号",
                KEEPER: "学芸員",
                STATE: "状態",
            },
            states=("公開中", "保管中", "貸出中"),
            closing="西門博物館事務室",
        ),
    ),
    nouns={EXTENSION: "内線番号", ROOM: "執務室", KEY: "扉の暗証番号"},
    things=("青嵐丸", "白鷺号", "千鳥丸", "若潮号", "紅葉丸", "星影号", "雲雀丸", "霧笛号"),
    persons=("佐伯美咲", "高瀬健一", "村井千夏", "大西悠斗", "永田彩香", "福島直樹"),
    rooms=("楓の間", "欅の間", "椿の間", "桐の間"),
    chain="{x}の{a}",
    inner={},
    facts=("{p}は{v}です。", "今週の記録：{p}は{v}です。"),
    title="日誌",
    joint="、",
    value_question=(
        "{p}は何ですか。その値で答えてください。ファイルに書かれていなければ、代わりに NONE と"
        "書いてください。"
    ),
    count_question=(
        "状態が「{v}」である{things}はどれですか。該当するものをすべて、それ以外は挙げずに示し、"
        "いくつあるかも書いてください。"
    ),
    compare_question=(
        "次の{things}の{size}を比べてください：{names}。数が最も大きいものの{place}は何ですか。"
        "その値だけで答えてください。ファイルに書かれていなければ、代わりに NONE と書いて"
        "ください。"
    ),
    letter_question=(
        "{keeper}に宛てて、氏名で呼びかける短い手紙を書いてください。手紙には{x}の{place}、"
        "{size}、{policy}を書き、最後の行は「{closing}」としてください。"
    ),
    letter="{keeper}様\n\n{facts}\n\n敬具\n{closing}",
    filler=(
        "{d}日目に階段を掃き、照明を{n}個点検しました。",
        "来訪者に駅までの道を聞かれました。歩いて{n}分です。",
        "{n}年使った湯沸かしを{d}日目に取り替えました。",
        "雨が{n}時間降り、椅子を{m}脚しまいました。",
        "会報を{n}人に送り、{m}人から返事が来ました。",
        "{d}日目の昼食は汁物で、{n}人分が出ました。",
        "廊下の時計が{n}分遅れていたので、{d}日目に合わせました。",
        "{n}人の生徒が立ち寄り、{m}分いました。",
        "塗料を{n}缶買い、柵は{d}日目に塗り終わりました。",
        "合唱団が中庭で{n}曲を練習し、{m}人が聞いていました。",
    ),
)

CHINESE = Language(
    name="zh",
    domains=(
        Domain(
            things="船",
            nouns={
                PLACE: "泊位",
                SIZE: "船身长度",
                POLICY: "保险号",
                KEEPER: "船主",
                STATE: "状态",
            },
            states=("可以出航", "正在维修", "待出售"),
            closing="北港管理处",
        ),
        Domain(
            things="展品",
            nouns={PLACE: "展柜", SIZE: "高度", POLICY: "馆藏号", KEEPER: "策展人", STATE: "状态"},
            states=("正在展出", "存放库房", "外借"),
            closing="西门博物馆办公室",
        ),
    ),
    nouns={EXTENSION: "分机号", ROOM: "办公室", KEY: "门禁码"},
    things=("青鸾", "白鹭", "云帆", "海燕", "赤霞", "星槎", "苍梧", "玉衡"),
    persons=("陈思远", "林佳慧", "王嘉禾", "赵明轩", "周雨桐", "吴启航"),
    rooms=("松涛厅", "竹韵厅", "梅影厅", "兰馨厅"),
    chain="{x}的{a}",
    inner={},
    facts=("{p}是{v}。", "本周记录：{p}是{v}。"),
    title="日志",
    joint="、",
    value_question="{p}是什么？请用这个值回答。如果文件里没有写，就改写 NONE。",
    count_question="哪些{things}的状态是“{v}”？请全部列出，不要列出其他的，并说明一共有几个。",
    compare_question=(
        "请比较以下{things}的{size}：{names}。数字最大的那一个，{place}是什么？只用这个值回答。"
        "如果文件里没有写，就改写 NONE。"
    ),
    letter_question=(
        "请给{keeper}写一封短信，开头用全名称呼。信里写明{x}的{place}、{size}和{policy}，最后一行是"
        "“{closing}”。"
    ),
    letter="{keeper}：\n\n{facts}\n\n此致\n{closing}",
    filler=(
        "第{d}天打扫了楼梯，检查了{n}盏灯。",
        "有位访客问去车站的路，步行要{n}分钟。",
        "用了{n}年的水壶在第{d}天换掉了。",
        "雨下了{n}个小时，{m}把椅子搬进了屋里。",
        "简报寄给了{n}位读者，{m}位回了信。",
        "第{d}天的午饭是汤，一共吃了{n}份。",
        "走廊的钟慢了{n}分钟，在第{d}天调准了。",
        "一个{n}名学生的班级来过，待了{m}分钟。",
        "买了{n}罐油漆，栅栏在第{d}天刷完了。",
        "合唱团在院子里练了{n}首歌，有{m}人在听。",
    ),
)

LANGUAGES = (ENGLISH, GERMAN, SPANISH, JAPANESE, CHINESE)
