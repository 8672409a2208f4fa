"""The words of worlds in other languages: what there is to be found out of which places, and how
people speak of it.

Each language has two: by the first a setting may be chosen, the second, whose name ends in `-2`, is
held out. The two share neither places nor matters nor forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """In the templates `{m}` is a matter, `{e}` a place, `{c}` a code; in the forms `{s}` is a
    subject, `{v}` its value, `{i}` the subjects that it needs, `{n}` a number. A form of a task
    holds `{s}` before `{i}`.

    `unit_by_matter` says in what each matter is counted. `total` and `greatest` are the wordings of
    the sum over all places and of the first of them.
    """

    name: str
    places: tuple[str, ...]
    coded_place: str
    unit_by_matter: Mapping[str, str]
    names: tuple[str, ...]
    total: tuple[str, ...]
    greatest: tuple[str, ...]
    greatest_value: str
    narrow_value: str
    outline: tuple[str, ...]
    outline_value: str
    objective: str  # of a brief, with `{parts}`
    outline_task: str
    filler: tuple[str, ...]
    value_forms: tuple[str, ...]
    hint_forms: tuple[str, ...]
    bare_hint_forms: tuple[str, ...]
    origin_forms: tuple[str, ...]
    task_forms: tuple[str, ...]
    needing_forms: tuple[str, ...]
    objective_forms: tuple[str, ...]
    lack_forms: tuple[str, ...] = ()
    lack_signs: tuple[str, ...] = ()
    joint: str = ", "
    last_joint: str = " and "

    @property
    def is_held_out(self) -> bool:
        return self.name.endswith("-2")


def _units(text: str) -> dict[str, str]:
    """`matter/unit` pairs, one a line or between semicolons."""
    pairs = (pair.strip().split("/") for pair in text.replace("\n", ";").split(";") if pair.strip())
    return {matter: unit for matter, unit in pairs}


# -- English
# --------------------------------------------------------------------------------------------------

ENGLISH_2 = Vocabulary(
    name="english-2",
    places=tuple(
        "Aldous Birkett Cawley Dorrit Ennis Farrow Gilroy Hobday Ingram Jessop Kendrick Lomax "
        "Mostyn Nesbitt Okeover Purdey Quennell Rossiter Sidwell Tolley".split()
    ),
    coded_place="studio {c}",
    unit_by_matter=_units(
        """brushes bought/brushes; canvas sold/yards; guests received/guests; rent owed/pounds
        paint used/pints; frames carved/frames; lessons held/lessons; sketches lost/sheets
        gas burnt/therms; pupils enrolled/pupils; plaster mixed/buckets; kiln hours/kiln hours
        varnish left/flasks; models hired/models; postcards sent/cards; wages due/guineas
        clay fetched/barrows; easels lent/easels"""
    ),
    names=("{m} for {e}", "{m} by {e}", "{e}’s {m}"),
    total=("{m} by everybody", "{m} over the entire colony", "grand tally of {m}"),
    greatest=("whoever leads on {m}", "top artist by {m}", "peak among all {m}"),
    greatest_value="{e}, namely {v}",
    narrow_value="{e}, by a whisker",
    outline=("the colony's survey form", "the survey form of the artists' colony"),
    outline_value="{n} boxes to tick, copy {f}",
    objective=(
        "An artists' colony is to be given a grant, and the trustees want figures. They ask for "
        "{parts}. Quote each figure as it was recorded."
    ),
    outline_task="Compose {s}",
    filler=(
        "Somebody left a violin out in the rain, with {n} pegs missing.",
        "Tea is brewed at four, and {n} mugs went astray this year.",
        "Swallows nest over the skylight.",
        "A rug of {n} colours hides the trapdoor.",
        "No one owns up to the tortoise.",
    ),
    value_forms=("{s} came out at {v}.", "{s} → {v}.", "Tallying {s} yields {v}."),
    hint_forms=(
        "{s} can be had by combining {i}.",
        "Armed with {i}, anyone can derive {s}.",
        "To arrive at {s}, start from {i}.",
    ),
    bare_hint_forms=("Unasked so far: {s}.", "Somebody must phone about {s}."),
    origin_forms=("Derived out of {i}.",),
    task_forms=("Phone about {s}", "Count {s}", "Get hold of {s}"),
    needing_forms=("Derive {s} from {i}", "Get hold of {s} by way of {i}"),
    objective_forms=("The trustees want to hear about {s}.", "Tell the trustees {s}."),
)

# -- German
# --------------------------------------------------------------------------------------------------

GERMAN = Vocabulary(
    name="german",
    places=tuple(
        "Altenburg Bernau Calw Eutin Freyung Gotha Husum Idstein Jever Kamenz Lohr Melle Naila "
        "Oelde Plauen Rheine Selb Torgau Uelzen Wismar".split()
    ),
    coded_place="Mühle {c}",
    unit_by_matter=_units(
        """Stromverbrauch/kWh; Mehlertrag/Säcke; Pachtzins/Mark; Lohnsumme/Mark
        Getreidevorrat/Zentner; Kundenzahl/Leute; Reparaturdauer/Stunden
        Dachfläche/Quadratmeter; Brandschaden/Mark; Viehbestand/Tiere; Holzbedarf/Festmeter
        Steuerlast/Mark; Brotmenge/Laibe; Ziegelbedarf/Stück; Heizkosten/Mark; Eisvorrat/Blöcke
        Wegstrecke/Meter; Besucherzahl/Gäste"""
    ),
    names=("{m} von {e}", "{m} in {e}", "{e}: {m}"),
    total=("{m} aller Mühlen zusammen", "{m} über alle Mühlen gerechnet", "Gesamtwert für {m}"),
    greatest=(
        "Mühle mit dem größten Wert bei {m}", "die Mühle, die bei {m} vorn liegt",
        "Spitzenreiter bei {m}",
    ),
    greatest_value="{e} mit {v}",
    narrow_value="{e} mit knappem Vorsprung",
    outline=("Fragebogen zu den Mühlen", "Liste der offenen Fragen zu den Mühlen"),
    outline_value="{n} Zeilen, Mappe {f}",
    objective=(
        "Der Landkreis will die Mühlen am Fluss übernehmen. Bitte ermittle {parts}. Der Bericht "
        "geht an Leute, die keine davon kennen, also nenne zu jeder Zahl die Herkunft."
    ),
    outline_task="Erstelle: {s}",
    filler=(
        "Das Wehr wurde vor {n} Wintern zuletzt gestrichen.",
        "Im Keller lagern {n} alte Riemen, deren Zweck niemand kennt.",
        "Der Müllerbursche pfeift bei der Arbeit.",
        "Am Ufer wachsen Weiden, {n} davon schief.",
        "Die Katze schläft auf dem Sackboden.",
    ),
    value_forms=("{s} beträgt {v}.", "Für {s} steht im Buch: {v}.", "{s}: {v}, laut Zählung."),
    hint_forms=(
        "Als Nächstes lässt sich {s} bestimmen; dazu braucht man {i}.",
        "Mit {i} ergibt sich {s}.",
        "{s} folgt aus {i}.",
    ),
    bare_hint_forms=("Noch zu klären: {s}.", "Offen ist {s}."),
    origin_forms=("Dafür wurde benutzt: {i}.",),
    task_forms=("Ermittle {s}", "Finde heraus: {s}", "Kläre {s}"),
    needing_forms=("Ermittle {s} aus {i}", "Berechne {s} (benötigt {i})", "Kläre {s} mit {i}"),
    objective_forms=("Stelle fest: {s}.", "Wir brauchen eine Zahl: {s}."),
    lack_forms=(
        "{s} lässt sich nicht angeben, weil {m} fehlt.",
        "Ich kenne {m} nicht. Ohne das bleibt {s} offen.",
        "Zu {m} liegt bisher nichts vor, und davon hängt {s} ab.",
    ),
    lack_signs=("fehlt.", "ich kenne", "liegt bisher nichts vor"),
    last_joint=" und ",
)  # fmt: skip

GERMAN_2 = Vocabulary(
    name="german-2",
    places=tuple(
        "Anholt Borkum Cuxhaven Dagebüll Eckernförde Föhr Greetsiel Helgoland Itzehoe Juist "
        "Kappeln Langeoog Memmert Norddeich Pellworm Rantum Sylt Tönning Usedom Wangerooge".split()
    ),
    coded_place="Station {c}",
    unit_by_matter=_units(
        """Robben gezählt/Robben; Nester gefunden/Nester; Müll gesammelt/Kilo; Proben gezogen/Gläser
        Boote gemietet/Boote; Diesel getankt/Liter; Nächte gewacht/Nächte; Drohnen geflogen/Flüge
        Bojen verloren/Bojen; Helfer geimpft/Helfer; Möwen beringt/Möwen; Priele vermessen/Ellen
        Pegel abgelesen/Mal; Führungen gehalten/Führungen; Zäune geflickt/Pfähle
        Muscheln gewogen/Gramm; Anträge gestellt/Seiten; Spenden erhalten/Taler"""
    ),
    names=("{m} ({e})", "{e}, {m}", "{m} auf {e}"),
    total=("{m} überall", "{m}, sämtliche Standorte addiert", "Endsumme {m}"),
    greatest=("wer die meisten hat: {m}", "Rekord unter {m}", "Standort Nummer eins, {m}"),
    greatest_value="{e}, und zwar {v}",
    narrow_value="{e}, hauchdünn",
    outline=("Merkzettel fürs Wattenmeer", "der Wattenmeer-Merkzettel"),
    outline_value="{n} Punkte, Blatt {f}",
    objective=(
        "Ein Verein möchte wissen, was seine Leute im Wattenmeer geschafft haben. Gebraucht "
        "werden: {parts}. Schreib nur hin, was wirklich belegt ist."
    ),
    outline_task="Setz auf: {s}",
    filler=(
        "Gestern blies es aus Nordwest, Stärke {n}.",
        "Unterwegs blieb ein Stiefel stecken.",
        "Zum Frühstück gab es {n} Krabbenbrötchen.",
        "Das Fernglas hat einen Sprung.",
        "Nebel zog auf, sodass wir {n} Minuten warteten.",
    ),
    value_forms=("{s} – ich notierte {v}.", "Bei {s} kam {v} heraus.", "{s} = {v}."),
    hint_forms=(
        "Wer {i} hat, kriegt auch {s} heraus.",
        "Danach wäre {s} dran, vorausgesetzt {i} sind da.",
        "{s}? Geht nur anhand dieser Angaben: {i}.",
    ),
    bare_hint_forms=("Dran wäre noch {s}.", "Fragt mal nach: {s}."),
    origin_forms=("Gestützt habe ich mich hierauf: {i}.",),
    task_forms=("Frag nach: {s}", "Besorge {s}", "Schau nach, wie es steht: {s}"),
    needing_forms=("Rechne aus: {s}, anhand von {i}", "Besorge {s}; nötig sind {i}"),
    objective_forms=("Wie lautet das hier: {s}?", "Der Vorstand fragt: {s}?"),
    lack_forms=(
        "Bevor ich {s} nennen kann, müsste jemand {m} liefern.",
        "Mir wurde {m} nie mitgeteilt, deshalb keine Angabe zu {s}.",
        "{s}: geht noch nicht. Es mangelt an {m}.",
    ),
    lack_signs=("müsste jemand", "nie mitgeteilt", "es mangelt an"),
    joint="; ",
    last_joint=" sowie ",
)  # fmt: skip

# -- Spanish
# --------------------------------------------------------------------------------------------------

SPANISH = Vocabulary(
    name="spanish",
    places=tuple(
        "Almería Bilbao Cádiz Denia Estepona Fuengirola Gijón Huelva Jávea Llanes Motril Nerja "
        "Ondarroa Palamós Roses Sitges Tarifa Vigo Xàbia Zumaia".split()
    ),
    coded_place="muelle {c}",
    unit_by_matter=_units(
        """gasto de leña/pesetas; venta de sal/sacos; pesca de atún/cajas; renta del faro/pesetas
        turno de guardia/horas; reserva de agua/litros; cuota de socios/pesetas
        carga de hierro/toneles; tejas rotas/piezas; barcas varadas/barcas
        faroles nuevos/faroles; cuerda gastada/varas; velas cosidas/velas; pasaje diario/viajeros
        deuda del gremio/pesetas; redes perdidas/redes; aceite quemado/litros
        sueldo del vigía/pesetas"""
    ),
    names=("{m} en {e}", "{m} de {e}", "{e}: {m}"),
    total=("{m} de todos los muelles", "{m} sumando cada muelle", "suma total de {m}"),
    greatest=(
        "el muelle que encabeza {m}", "qué muelle va primero en {m}", "máximo de {m}",
    ),
    greatest_value="{e} con {v}",
    narrow_value="{e} por muy poco",
    outline=("la lista de preguntas sobre los muelles", "el cuestionario de los muelles"),
    outline_value="{n} renglones, carpeta {f}",
    objective=(
        "El ayuntamiento quiere hacerse cargo de los muelles. Averigua, por favor, {parts}. "
        "La respuesta la leerá gente que no los conoce, así que di de dónde sale cada cifra."
    ),
    outline_task="Prepara {s}",
    filler=(
        "El farero repintó la barandilla {n} veces.",
        "Nadie sabe quién escribió el horario de la pared.",
        "Hubo niebla durante {n} mañanas.",
        "Las gaviotas anidan bajo los tablones.",
        "La grúa chirría desde hace {n} meses.",
    ),
    value_forms=("{s} asciende a {v}.", "Según el libro, {s} es {v}.", "{s}: {v}, ya comprobado."),
    hint_forms=(
        "Ahora se puede calcular {s}; hacen falta {i}.",
        "Con {i} se obtiene {s}.",
        "{s} depende de {i}.",
    ),
    bare_hint_forms=("Queda por ver {s}.", "Falta preguntar {s}."),
    origin_forms=("Para esto se usó {i}.",),
    task_forms=("Averigua {s}", "Busca {s}", "Comprueba {s}"),
    needing_forms=("Calcula {s} a partir de {i}", "Averigua {s} (requiere {i})"),
    objective_forms=("Di cuánto es {s}.", "Necesitamos saber {s}."),
    lack_forms=(
        "No se puede dar {s} porque no consta {m}.",
        "Desconozco {m}; sin eso no hay manera de saber {s}.",
        "Todavía no se ha averiguado {m}, y {s} depende de ello.",
    ),
    lack_signs=("no consta", "desconozco", "todavía no se ha averiguado"),
    last_joint=" y ",
)  # fmt: skip

SPANISH_2 = Vocabulary(
    name="spanish-2",
    places=tuple(
        "Ávila Burgos Córdoba Daroca Elche Fraga Guadix Haro Jaca Lorca Mérida Nájera Olite Priego "
        "Requena Segovia Teruel Úbeda Vera Yecla".split()
    ),
    coded_place="sala {c}",
    unit_by_matter=_units(
        """códices copiados/códices; sillas prestadas/sillas; lámparas fundidas/bombillas
        vino servido/jarras; multas cobradas/euros; mapas vendidos/mapas; becas pagadas/euros
        goteras halladas/goteras; tinta usada/frascos; socios inscritos/carnets
        estantes vacíos/palmos; retratos robados/lienzos; jardines regados/cubos
        campanas afinadas/notas; ratones cazados/colas; sellos pegados/sellos
        cartas devueltas/sobres; llaves extraviadas/llaves"""
    ),
    names=("{m} ({e})", "{e} y sus {m}", "{m}, sede {e}"),
    total=("{m} entre todas las sedes", "{m}, conjunto completo", "recuento global: {m}"),
    greatest=("la sede número uno: {m}", "quién gana a todas, {m}", "récord absoluto: {m}"),
    greatest_value="{e}, o sea {v}",
    narrow_value="{e}, casi empatada",
    outline=("el guion de la auditoría", "guion para auditar las sedes"),
    outline_value="{n} apartados, hoja {f}",
    objective=(
        "Una fundación revisa sus sedes. Le interesan {parts}. Escribe únicamente aquello que "
        "alguien haya visto."
    ),
    outline_task="Redacta {s}",
    filler=(
        "Llovió {n} tardes seguidas.",
        "Un gato negro duerme encima del fichero.",
        "Arriba huele a cera; quedan {n} velones.",
        "Tocaron el timbre, mas no abrieron.",
        "Hay {n} sombreros colgados junto al espejo.",
    ),
    value_forms=("Anoté {v} al mirar {s}.", "{s} → {v}.", "Salieron {v}; hablo aquí de {s}."),
    hint_forms=(
        "Teniendo {i}, cualquiera deduce {s}.",
        "Luego tocaría {s}, siempre que tengamos {i}.",
        "{s} sólo saldrá gracias a {i}.",
    ),
    bare_hint_forms=("Pendiente: {s}.", "Convendría mirar {s}."),
    origin_forms=("Me apoyé aquí: {i}.",),
    task_forms=("Mira {s}", "Pregunta por {s}", "Entérate bien: {s}"),
    needing_forms=("Deduce {s} gracias a {i}", "Saca {s}; primero hay que tener {i}"),
    objective_forms=("¿Cómo está esto: {s}?", "La fundación pide {s}."),
    lack_forms=(
        "Me harían falta {m} antes de poder decir {s}.",
        "Aquí nadie me ha dado {m}. Por eso {s} queda en blanco.",
        "Imposible por ahora {s}: ignoro {m}.",
    ),
    lack_signs=("me harían falta", "nadie me ha dado", "ignoro"),
    joint="; ",
    last_joint=" junto con ",
)  # fmt: skip

# -- Korean
# --------------------------------------------------------------------------------------------------

KOREAN = Vocabulary(
    name="korean",
    places=tuple(
        "강릉 경주 공주 광양 구미 군산 김해 나주 남원 논산 단양 목포 밀양 보령 상주 속초 순천 안동 "
        "여수 영월".split()
    ),
    coded_place="{c} 농장",
    unit_by_matter=_units(
        """전기 요금/원; 사과 수확량/상자; 인건비 총액/원; 창고 면적/평; 방문객 수/명
        수리 시간/시간
        주문 건수/건; 쌀 재고/가마; 연료 소비량/리터; 토지 임대료/원; 묘목 그루 수/그루
        꿀 생산량/병
        보험료 납부액/원; 트럭 운행 거리/킬로미터; 우물 깊이/자; 세금 체납액/원; 포장지 사용량/장
        가축 마릿수/마리"""
    ),
    names=("{e}의 {m}", "{e} {m}", "{m}({e})"),
    total=("모든 농장의 {m} 합계", "{m} 전체 합산", "농장 전부를 더한 {m}"),
    greatest=("{m} 1위 농장", "{m} 최고 기록을 낸 곳", "어느 농장의 {m} 값이 가장 큰지"),
    greatest_value="{e}, {v}",
    narrow_value="{e}, 근소한 차이",
    outline=("농장 조사 항목표", "농장에 대해 물어볼 목록"),
    outline_value="{n}개 항목, 서류철 {f}",
    objective=(
        "군청이 농장들을 인수하려고 합니다. 다음을 알아봐 주세요: {parts}. 농장을 본 적 없는 "
        "사람들이 읽으니 숫자마다 출처를 적어 주세요."
    ),
    outline_task="{s} 작성",
    filler=(
        "울타리는 {n}년 전에 칠했다고 한다.",
        "마당에는 감나무가 {n}그루 있다.",
        "일꾼들은 점심 뒤에 낮잠을 잔다.",
        "장부의 {n}쪽은 비에 젖어 읽을 수 없다.",
        "고양이가 창고 문 앞을 지킨다.",
    ),
    value_forms=("{s}: {v}.", "장부에 따르면 {s} 값은 {v}입니다.", "{s}은(는) {v}로 확인되었다."),
    hint_forms=(
        "다음으로 {s}을(를) 구할 수 있는데 {i} 값이 필요하다.",
        "{i} 값을 알면 {s}이(가) 나온다.",
        "{s} 계산에는 {i}이(가) 쓰인다.",
    ),
    bare_hint_forms=("{s} 확인이 남아 있다.", "아직 모르는 것: {s}."),
    origin_forms=("여기에 쓴 자료: {i}.",),
    task_forms=("{s} 알아보기", "{s} 확인", "{s}을(를) 찾기"),
    needing_forms=("{s} 계산 ({i} 사용)", "{s} 구하기. 필요한 것: {i}"),
    objective_forms=("{s}을(를) 밝혀 주세요.", "{s}이(가) 얼마인지 알고 싶습니다."),
    lack_forms=(
        "{m}을(를) 몰라서 {s}을(를) 말할 수 없습니다.",
        "{s}에는 {m}이(가) 필요하지만 주어지지 않았습니다.",
        "아직 {m} 자료가 없어 {s}은(는) 미정입니다.",
    ),
    lack_signs=("몰라서", "주어지지 않았습니다", "자료가 없어"),
    last_joint=" 및 ",
)  # fmt: skip

KOREAN_2 = Vocabulary(
    name="korean-2",
    places=tuple(
        "가평 거제 고성 괴산 담양 무주 문경 부안 서산 양평 영덕 완도 울진 인제 정선 진도 청송 통영 "
        "함양 해남".split()
    ),
    coded_place="{c}호관",
    unit_by_matter=_units(
        """빌려준 그림책/권; 고장 난 의자/개; 새로 만든 회원증/매; 받은 기부금/만원; 닦은 유리창/장
        찾은 우산/자루; 번역한 편지/통; 심은 꽃모종/포기; 끓인 차/잔; 갈아 끼운 전구/알
        복사한 악보/쪽
        열린 강좌/강좌; 잃어버린 열쇠/꾸러미; 녹음한 민요/곡; 버린 잡지/묶음; 모인 자원봉사자/분
        고친 시계/대; 붙인 우표/닢"""
    ),
    names=("{e} 쪽 {m}", "{e}에서 {m}", "{m}, {e}"),
    total=("{m}: 도서관 모두", "{m}, 빠짐없이 더해서", "온 도서관을 통틀어 {m}"),
    greatest=("으뜸 도서관: {m}", "제일 많은 데는 어디? {m}", "맨 앞에 선 도서관({m})"),
    greatest_value="{e} — {v}",
    narrow_value="{e} — 간발로",
    outline=("도서관 점검 쪽지", "점검할 것을 적은 쪽지"),
    outline_value="{n}줄, 봉투 {f}",
    objective=(
        "도서관 모임에서 지난해 일을 정리합니다. 궁금한 것은 {parts}. 실제로 확인한 것만 적어 "
        "주십시오."
    ),
    outline_task="{s} 쓰기",
    filler=(
        "문 앞 종이 {n}번 울렸다네요.",
        "누가 장화를 두고 갔습니다.",
        "눈이 {n}센티나 쌓였던 날도 있었죠.",
        "관장님은 늘 귤을 까 드십니다.",
        "계단이 {n}칸인데 하나가 삐걱거려요.",
    ),
    value_forms=("{s} → {v}.", "세어 보니 {s}, 그러니까 {v}이네요.", "{s}라면 {v}라고 들었습니다."),
    hint_forms=(
        "{i}만 있으면 {s}도 금방이죠.",
        "이제 {s} 차례인데요, 먼저 {i}부터 챙겨야 해요.",
        "{s}? {i} 없이는 어렵습니다.",
    ),
    bare_hint_forms=("{s}도 물어봐야겠어요.", "누군가 {s} 좀 봐 주세요."),
    origin_forms=("{i}에 기대어 적었습니다.",),
    task_forms=("{s} 물어보기", "{s} 세어 보기", "{s} 챙기기"),
    needing_forms=("{s} 헤아리기 — {i}부터", "{s} 알아내기, {i} 바탕으로"),
    objective_forms=("{s}, 이게 어떻게 되나요?", "모임에서 {s} 묻습니다."),
    lack_forms=(
        "{s}, 지금은 곤란합니다. {m} 소식을 못 들었거든요.",
        "누가 {m}부터 알려 줘야 {s} 답을 드리겠습니다.",
    ),
    lack_signs=("못 들었거든요", "알려 줘야"),
    last_joint="하고 ",
)  # fmt: skip

# -- Chinese
# --------------------------------------------------------------------------------------------------

CHINESE = Vocabulary(
    name="chinese",
    places=tuple(
        "杭州 苏州 绍兴 嘉兴 温州 金华 扬州 镇江 常州 无锡 南通 徐州 泉州 漳州 龙岩 赣州 九江 上饶 "
        "衡阳 岳阳".split()
    ),
    coded_place="{c}号码头",
    unit_by_matter=_units(
        """用电量/千瓦时; 茶叶产量/担; 场地租金/元; 仓库面积/平方米; 船票销量/张; 工人工资/元
        维修工时/小时; 稻米库存/石; 丝绸订单/匹; 路灯数目/盏; 游客人次/人; 水井深度/尺
        砖瓦需求/块; 渔船吨位/吨; 邮件件数/件; 欠税金额/元; 蜂蜜收成/斤; 竹林占地/亩"""
    ),
    names=("{e}的{m}", "{e}{m}", "{m}（{e}）"),
    total=("全部码头的{m}合计", "{m}总和", "各码头加起来的{m}"),
    greatest=("{m}最高的码头", "哪个码头的{m}最大", "{m}第一名"),
    greatest_value="{e}，{v}",
    narrow_value="{e}，略微领先",
    outline=("码头调查清单", "关于码头的问题清单"),
    outline_value="{n}项，文件夹{f}",
    objective=(
        "市政府打算接管这些码头。请查明{parts}。读报告的人没有见过这些码头，"
        "所以每个数字都要写明出处。"
    ),
    outline_task="拟定{s}",
    filler=(
        "栏杆在{n}年前刷过一次漆。",
        "账房先生把{n}行字改成了红色。",
        "雾天停航，船工们就下棋。",
        "屋檐下有{n}个燕子窝。",
        "没人知道墙上的时刻表是谁写的。",
    ),
    value_forms=("{s}是{v}。", "据账本记载，{s}为{v}。", "{s}：{v}。"),
    hint_forms=(
        "接下来可以求{s}，需要{i}。",
        "有了{i}就能算出{s}。",
        "{s}取决于{i}。",
    ),
    bare_hint_forms=("还要查{s}。", "尚未调查：{s}。"),
    origin_forms=("这里用到了{i}。",),
    task_forms=("查明{s}", "调查{s}", "确定{s}"),
    needing_forms=("计算{s}（需要{i}）", "求出{s}，依据{i}"),
    objective_forms=("请查明{s}。", "我们需要知道{s}。"),
    lack_forms=(
        "由于缺少{m}，无法得出{s}。",
        "{s}需要{m}，但目前没有提供。",
        "还不知道{m}，因此{s}暂时没有答案。",
    ),
    lack_signs=("由于缺少", "目前没有提供", "还不知道"),
    joint="、",
    last_joint="和",
)  # fmt: skip

CHINESE_2 = Vocabulary(
    name="chinese-2",
    places=tuple(
        "大理 丽江 腾冲 建水 普洱 昭通 曲靖 遵义 安顺 凯里 铜仁 毕节 敦煌 酒泉 张掖 武威 天水 平凉 "
        "固原 吴忠".split()
    ),
    coded_place="{c}分馆",
    unit_by_matter=_units(
        """借出的画册/册; 修好的古琴/张; 收到的捐款/块钱; 丢失的雨伞/把; 抄写的经卷/卷
        接待的学童/名; 换下的灯泡/只; 种下的牡丹/株; 泡掉的普洱茶/饼; 录下的山歌/首; 拍到的飞鸟/羽
        刻成的印章/枚; 晾晒的旧报/捆; 找回的钥匙/串; 糊好的风筝/架; 登记的访客/位; 打碎的茶碗/盅
        擦亮的铜镜/面"""
    ),
    names=("{e}那边{m}", "{m}——{e}", "在{e}{m}"),
    total=("{m}，所有分馆算在一起", "{m}一共多少", "整个系统{m}"),
    greatest=("谁家{m}最多", "{m}的冠军", "排头一位的分馆——{m}"),
    greatest_value="{e}（{v}）",
    narrow_value="{e}（险胜）",
    outline=("盘点便条", "盘点时要问的事"),
    outline_value="{n}条，纸袋{f}",
    objective="文化馆年底盘点，想弄清楚{parts}。只写真正有人看到过的。",
    outline_task="写一张{s}",
    filler=(
        "昨晚的风把窗纸吹破了{n}处。",
        "门房老李又在煮面。",
        "院里那口缸养着{n}尾金鱼。",
        "不知谁的毛驴拴在台阶旁。",
        "雪下了{n}寸厚，客人都迟到。",
    ),
    value_forms=("说到{s}，数下来有{v}。", "{s}＝{v}。", "我记下{s}共{v}。"),
    hint_forms=(
        "手里若有{i}，{s}便不难得到。",
        "下一个该轮到{s}，先把{i}备齐。",
        "想弄清{s}，离不开{i}。",
    ),
    bare_hint_forms=("也该去问问{s}。", "{s}这件事还没人管。"),
    origin_forms=("写这些时参考过{i}。",),
    task_forms=("去问{s}", "数一数{s}", "打听{s}"),
    needing_forms=("推算{s}，凭{i}", "弄清{s}；先要有{i}"),
    objective_forms=("{s}究竟怎样？", "馆长想听听{s}。"),
    lack_forms=(
        "没有人告诉过我{m}，{s}只好空着。",
        "等拿到{m}以后才说得出{s}。",
    ),
    lack_signs=("没有人告诉过我", "以后才说得出"),
    joint="，",
    last_joint="以及",
)  # fmt: skip

# -- Japanese
# --------------------------------------------------------------------------------------------------

JAPANESE = Vocabulary(
    name="japanese",
    places=tuple(
        "札幌 函館 仙台 金沢 高松 松山 長崎 弘前 松本 岡山 熊本 那覇 秋田 新潟 富山 福井 鳥取 徳島 "
        "宮崎 大分".split()
    ),
    coded_place="{c}番蔵",
    unit_by_matter=_units(
        """電気代/円; 米の在庫/俵; 酒の出荷量/本; 賃金総額/円; 来客数/人; 修理時間/時間; 床面積/坪
        薪の消費量/束; 井戸の深さ/尺; 橋の長さ/間; 入場料収入/円; 瓦の枚数/枚; 借地料/円
        注文件数/件; 桶の数/個; 税の滞納額/円; 梅の収穫量/貫; 馬の頭数/頭"""
    ),
    names=("{e}の{m}", "{m}({e})", "{e}における{m}"),
    total=("全ての蔵の{m}の合計", "{m}の総計", "蔵を全部合わせた{m}"),
    greatest=("{m}が最大の蔵", "どの蔵の{m}が一番大きいか", "{m}の首位"),
    greatest_value="{e}、{v}",
    narrow_value="{e}、僅差",
    outline=("蔵の調査票", "蔵について尋ねる項目の一覧"),
    outline_value="{n}項目、綴り{f}",
    objective=(
        "町が酒蔵を引き継ぐことを検討しています。{parts}を調べてください。蔵を見たことのない人が"
        "読むので、数字ごとに出典を書いてください。"
    ),
    outline_task="{s}を作る",
    filler=(
        "古い帳面は{n}頁にわたって何も語らない。",
        "書記は{n}行を別の墨で直した。",
        "蔵の鍵は{n}本ある。",
        "余白には鳥の絵がある。",
    ),
    value_forms=("{s}は{v}です。", "{s}:{v}。", "帳面によると{s}は{v}。"),
    hint_forms=(
        "次に調べられるのは{s}で、{i}が必要です。",
        "{i}が分かれば{s}を求められます。",
    ),
    bare_hint_forms=("{s}を調べること。", "未調査:{s}。"),
    origin_forms=("根拠は{i}。",),
    task_forms=("{s}を調べる", "{s}を求める", "{s}を確認してください"),
    needing_forms=("{s}を求める({i}を使う)", "{s}を調べる。必要なもの:{i}"),
    objective_forms=("{s}を明らかにしてください。",),
    lack_forms=(
        "{m}が分からないため、{s}を求められません。",
        "{s}には{m}が必要ですが、与えられていません。",
    ),
    lack_signs=("分からないため", "与えられていません"),
    joint="、",
    last_joint="と",
)  # fmt: skip

JAPANESE_2 = Vocabulary(
    name="japanese-2",
    places=tuple(
        "釧路 旭川 盛岡 山形 会津 日光 川越 鎌倉 小田原 飛騨 彦根 舞鶴 姫路 倉敷 尾道 下関 唐津 "
        "佐世保 指宿 石垣".split()
    ),
    coded_place="{c}支部",
    unit_by_matter=_units(
        """配った風鈴/個; 折った鶴/羽; 焼いた煎餅/箱; 忘れられた傘/本; 録った民謡/曲; 植えた苗木/株
        直した自転車/台; 届いた絵葉書/通; 貼った切手/片; 洗った浴衣/着; 訪れた旅人/名
        壊れた提灯/張り; 集めた寄付/千円; 撮った写真/こま; 磨いた硝子/面; 教えた囲碁/局
        拾った貝殻/粒; 借りた長靴/足"""
    ),
    names=("{e}で{m}", "{m}〔{e}〕", "{e}側の{m}"),
    total=("{m}、支部をすべて足すと", "{m}ぜんぶ", "会全体でみた{m}"),
    greatest=("いちばん多い支部〔{m}〕", "{m}で先頭をゆくところ", "{m}の王者"),
    greatest_value="{e}（{v}）",
    narrow_value="{e}（わずかに）",
    outline=("夏まつりの覚え書き", "まつりの前に聞いておくこと"),
    outline_value="{n}つの問い、袋{f}",
    objective=(
        "夏まつりの会が一年をふりかえります。知りたいのは{parts}。"
        "本当に見聞きしたことだけを書いてほしい。"
    ),
    outline_task="{s}をまとめる",
    filler=(
        "きのうは{n}回も夕立にあった。",
        "おばあさんが西瓜を切ってくれた。",
        "太鼓の皮が破れ、{n}日待たされた。",
        "だれかの下駄が片方だけ残っている。",
        "猫が{n}匹、屋根で昼寝をしていた。",
    ),
    value_forms=("{s}、数えたら{v}あった。", "{s}→{v}。", "聞くところでは、{s}は{v}だそうだ。"),
    hint_forms=(
        "{i}さえ揃えば、{s}もわかるはずだ。",
        "そのあと{s}へ進むなら、{i}を先に。",
    ),
    bare_hint_forms=("{s}もだれかに聞こう。", "あと残るのは{s}。"),
    origin_forms=("{i}をもとに書いた。",),
    task_forms=("{s}を聞いてくる", "{s}を数える", "{s}をつきとめる"),
    needing_forms=("{s}を割り出す、{i}から", "{s}をつきとめる〔要:{i}〕"),
    objective_forms=("{s}はどうなっているのか。", "会長が{s}を知りたがっている。"),
    lack_forms=(
        "{m}をまだ教わっていないので、{s}には答えかねる。",
        "{s}はお手上げだ。{m}がそろわない。",
    ),
    lack_signs=("まだ教わっていない", "がそろわない"),
    joint="・",
    last_joint="ならびに",
)  # fmt: skip

VOCABULARIES = {
    vocabulary.name: vocabulary
    for vocabulary in (
        *(ENGLISH_2, GERMAN, GERMAN_2, SPANISH, SPANISH_2, KOREAN, KOREAN_2),
        *(CHINESE, CHINESE_2, JAPANESE, JAPANESE_2),
    )
}
