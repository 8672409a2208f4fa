"""What the two sets of retrieval speak of: the one that the search was tuned on, and the one that
it never was.

The second was written before anything was measured on it; whoever changes the search by what it
shows must write a third.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What a set is made from.

    Args:
        subjects: what is spoken of, and the same thing in other words.
        aspects: the task's name, the fact, the fact asked for in its words, the same in others; {s}
            is the subject, {o} its other name, {n} the figure.
        fillers: sentences that say nothing of a fact and stand in many results, so that words alone
            mislead.
        mentions: sentences that name another subject.
        follow_up: what a task that comes later is called; {} is the name of the first.
        other_syllables, other_places: what the subjects that nobody asks for are named from.
    """

    seed: int
    subjects: tuple[tuple[str, str], ...]
    aspects: tuple[tuple[str, str, str, str], ...]
    fillers: tuple[str, ...]
    mentions: tuple[str, ...]
    follow_up: str
    other_syllables: str
    other_places: str


_SUBJECTS = (
    ("the bakery in Lindholm", "the shop that sells bread up north"),
    ("the customer database", "the place where buyers are recorded"),
    ("the lake trail", "the footpath around the water"),
    ("the vaccine trial", "the study of the new jab"),
    ("the school roof panels", "the sun-powered plant above the classrooms"),
    ("the thumbnail service", "the program that shrinks pictures"),
    ("the museum of manuscripts", "the house of old handwritten books"),
    ("the tomato nursery", "the greenhouse for young plants"),
    ("the night train to Vienna", "the sleeper that leaves for Austria"),
    ("the login cookies", "the tokens that keep people signed in"),
    ("the wind farm at Skagen", "the turbines on the coast"),
    ("the payment gateway", "the component that takes money by card"),
    ("the river ferry", "the boat between both banks"),
    ("the archive of letters", "the collection of old correspondence"),
    ("the orchard cooperative", "the growers of apples who sell together"),
    ("the invoice parser", "the reader of bills"),
    ("the city library", "the public building for lending volumes"),
    ("the beehives on the terrace", "the insects that make honey upstairs"),
    ("the translation agency", "the firm that turns texts into other languages"),
    ("the crash reporter", "the thing that collects failures from phones"),
    ("the water treatment plant", "the works where sewage is cleaned"),
    ("the chess club", "the players who meet over a board"),
    ("the recommendation engine", "the software that suggests articles"),
    ("the mountain hut", "the shelter for climbers"),
    ("the clinical laboratory", "the room where blood is examined"),
    ("the delivery drones", "the flying carriers of parcels"),
    ("the theatre festival", "the summer week of plays"),
    ("the fishing quota", "what trawlers are allowed to catch"),
    ("the search index", "the structure that finds pages"),
    ("the weather station", "the instruments that record rain"),
    ("the bicycle workshop", "the garage that mends two-wheelers"),
    ("the tax calculator", "the form that works out what is owed to the state"),
    ("the reading group", "the circle that talks about novels"),
    ("the backup server", "the machine that holds spare copies"),
    ("the coffee roastery", "the company that prepares beans"),
    ("the glacier survey", "the yearly look at the ice"),
    ("the video player", "the widget that shows films"),
    ("the emergency ward", "the department for accidents"),
    ("the brick kiln", "the oven where clay is fired"),
    ("the password policy", "the rules about secret words"),
)
_ASPECTS = (
    (
        "Find out what {s} costs in a year",
        "The yearly budget of {s} amounts to {n} crowns, most of which is spent on wages.",
        "yearly budget of {s} in crowns spent on wages",
        "how expensive is {o} per annum",
    ),
    (
        "Measure how slow {s} has become",
        "A delay of {n} minutes was measured at {s} whenever the load doubled.",
        "delay in minutes measured at {s} when the load doubled",
        "how long must one wait for {o} under pressure",
    ),
    (
        "Count who uses {s}",
        "According to the register, {n} visitors used {s} between March and May.",
        "visitors who used {s} between March and May in the register",
        "number of people coming to {o} in spring",
    ),
    (
        "Look for complaints about {s}",
        "The ombudsman received {n} complaints about {s}, chiefly because of noise.",
        "complaints about {s} that the ombudsman received because of noise",
        "grievances raised against {o} over being loud",
    ),
    (
        "Learn when {s} was founded",
        (
            "The first document that mentions {s} carries the signature {n} and was sealed "
            "by a notary."
        ),
        "first document that mentions {s} sealed by a notary",
        "oldest written evidence of {o}",
    ),
    (
        "Check whether {s} is safe",
        "During the inspection {n} defects were found at {s}, none of them serious.",
        "defects found at {s} during the inspection",
        "what was wrong with {o} when experts examined it",
    ),
    (
        "Describe who runs {s}",
        "Responsibility for {s} lies with a board of {n} members elected by the employees.",
        "board members elected by the employees responsible for {s}",
        "who is in charge of {o} and how many are they",
    ),
    (
        "Estimate what could be saved at {s}",
        (
            "Replacing the lamps of {s} would lower the consumption of electricity by {n} "
            "kilowatt hours."
        ),
        "electricity consumption of {s} lowered by replacing the lamps",
        "power that {o} would no longer need with better lights",
    ),
)
_FILLERS = (
    (
        "The budget for the coming year has not been decided, and the board wants to hear "
        "the employees first."
    ),
    "Visitors praised the friendly service, although some found the register hard to read.",
    "An inspection is planned for May, when the load is highest.",
    "Several complaints turned out to be about a neighbour and were passed on.",
    "The document is kept by a notary, who allowed two pages to be copied.",
    "Electricity has become expensive, so every consumption is measured twice.",
    "Nobody could say why the delay grew between March and May.",
    "Wages rose everywhere in the region and make comparisons difficult.",
    "The members met in public, and the minutes were published a week later.",
    "Defects of this kind are common and can be mended without closing anything.",
    "Two newspapers wrote about it, both with figures that could not be confirmed.",
    "The source is a report of forty pages, of which the annex is the most useful part.",
    "What was measured in winter may not hold for the summer.",
    "A signature on the last page could not be deciphered.",
    "The ombudsman answers letters within three weeks.",
    "Lamps of the older kind are no longer sold.",
)

TUNED = Vocabulary(
    seed=20_300_101,
    subjects=_SUBJECTS,
    aspects=_ASPECTS,
    fillers=_FILLERS,
    mentions=(
        "Compared with {}, little is known.",
        "The figures of {} are older.",
        "Much of this also holds for {}.",
    ),
    follow_up="Verify and compare: {}",
    other_syllables="ba lo ri ten mak sul per don vi cha gru nel tor fi wa hes",
    other_places=(
        "station office market bridge council hall survey engine club workshop service "
        "museum database server"
    ),
)

_HELD_OUT_SUBJECTS = (
    ("the harbour crane", "the machine that lifts containers off ships"),
    ("the harbour tugboat", "the small vessel that pulls freighters"),
    ("the upper reservoir", "the dammed lake on the hill"),
    ("the lower reservoir", "the storage pond in the valley"),
    ("the cargo bike rental", "the scheme that lends carriers on pedals"),
    ("the county hospital kitchen", "the cooks who feed the sick"),
    ("the planetarium", "the dome where stars are projected"),
    ("the compiler team", "the people who turn source into binaries"),
    ("the mobile banking app", "the phone program for one's account"),
    ("the spam filter", "what keeps junk out of the mailbox"),
    ("the cheese dairy of Arlo", "the place where milk is curdled"),
    ("the glass recycling depot", "the yard for used bottles"),
    ("the heat pump of the gymnasium", "the warming unit of the sports building"),
    ("the botanical garden", "the park of labelled plants"),
    ("the seed bank", "the vault of grains"),
    ("the fire brigade of Osterby", "the crews that put out blazes"),
    ("the ticket printer", "the device that issues passes"),
    ("the salt mine", "the shafts where a white mineral is dug"),
    ("the choir academy", "the singing school"),
    ("the legal aid office", "the free counsel for the poor"),
    ("the job scheduler", "the daemon that starts work at set hours"),
    ("the message broker", "the hub that passes notes between programs"),
    ("the paper mill", "the factory that presses pulp"),
    ("the kindergarten on Mill Street", "the day care for toddlers"),
    ("the avalanche warning", "the alert about sliding snow"),
    ("the tram line nine", "the rail cars to the suburb"),
    ("the wheat breeding programme", "the crossing of cereals"),
    ("the dental clinic", "the surgery for teeth"),
    ("the feature flags", "the switches that turn functions on"),
    ("the old cinema", "the former picture house"),
)
_HELD_OUT_ASPECTS = (
    (
        "Work out how much energy {s} needs",
        "In a normal week {s} draws {n} megajoules from the grid, a third of it at night.",
        "megajoules that {s} draws from the grid in a normal week",
        "what {o} consumes in seven days",
    ),
    (
        "Collect the injuries that happened around {s}",
        (
            "The insurer lists {n} injuries in connection with {s}, nearly all of them to "
            "hands and backs."
        ),
        "injuries in connection with {s} listed by the insurer",
        "how often did somebody get hurt at {o}",
    ),
    (
        "Read the contract behind {s}",
        "Clause {n} of the contract obliges the supplier to repair {s} free of charge.",
        "contract clause that obliges the supplier to repair {s} free of charge",
        "which paragraph makes the vendor fix {o} without payment",
    ),
    (
        "List the spare parts of {s}",
        "The catalogue names {n} spare parts for {s}, of which the seals wear out first.",
        "spare parts for {s} named in the catalogue",
        "how many replacement components exist for {o}",
    ),
    (
        "Ask the neighbours of {s} what they think",
        (
            "Of the households near {s}, {n} answered the questionnaire and asked for "
            "quieter evenings."
        ),
        "households near {s} that answered the questionnaire",
        "people living beside {o} who replied to the survey",
    ),
    (
        "Trace who lends money to {s}",
        "A credit union lent {n} dollars to {s} at a fixed rate of interest.",
        "dollars that a credit union lent to {s} at a fixed rate",
        "size of the loan taken out by {o}",
    ),
    (
        "Compare what newcomers learn at {s}",
        "New staff of {s} spend {n} hours with a trainer before their first shift alone.",
        "hours that new staff of {s} spend with a trainer before their first shift",
        "how long is the apprenticeship of beginners in {o}",
    ),
    (
        "Summarise the patents on {s}",
        "Patent {n} protects a part of {s} and expires next spring.",
        "patent that protects a part of {s} and expires next spring",
        "intellectual property held for {o}",
    ),
    (
        "Establish how much rubbish {s} leaves",
        "Last quarter {s} produced {n} kilograms of waste, which two lorries took away.",
        "kilograms of waste produced by {s} last quarter",
        "amount of trash from {o} over three months",
    ),
    (
        "Find the mistakes in the log of {s}",
        "The log of {s} holds {n} entries whose time is wrong, all from the same Sunday.",
        "log entries of {s} whose time is wrong",
        "records of {o} that carry a false hour",
    ),
)
_HELD_OUT_FILLERS = (
    "The supplier did not answer two letters, and a third was returned unopened.",
    "Nobody keeps a log on Sundays, so the weekend is estimated.",
    "Energy prices were fixed before the winter and will be negotiated again.",
    "A trainer who retired last year could still be reached by telephone.",
    "The catalogue is printed once in a decade and sold out at once.",
    "Households with children were asked separately.",
    "Some injuries are never reported to the insurer.",
    "It is unclear whether the patent was ever used.",
    "The credit union publishes its interest rates every quarter.",
    "Staff turnover is high wherever shifts begin before dawn.",
    "Two lorries share one garage, which explains the noise in the evenings.",
    "The questionnaire was sent by post and came back slowly.",
    "Waste is weighed only when the scale works.",
    "Seals, belts and hoses are kept in a cupboard without a list.",
    "A third of the pages was illegible after a flood.",
    "The grid was renewed in parts, street by street.",
    "Whoever drew up the contract left no notes.",
    "Repairs were done at night and paid for in cash.",
)

HELD_OUT = Vocabulary(
    seed=4_711,
    subjects=_HELD_OUT_SUBJECTS,
    aspects=_HELD_OUT_ASPECTS,
    fillers=_HELD_OUT_FILLERS,
    mentions=(
        "The same was once tried with {}.",
        "For {} nobody has asked yet.",
        "In this it differs from {}.",
        "A visit to {} brought nothing new.",
    ),
    follow_up="Draw conclusions from what was found: {}",
    other_syllables="zu mer kal pin dro sa teb hol vig wen jo lar quo byn ess mu",
    other_places=(
        "quarry bindery pharmacy firewall brewery tribunal foundry parser aquarium warehouse "
        "union pipeline chapel laundry"
    ),
)
