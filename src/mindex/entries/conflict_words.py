"""The words that conflict rules know: opposites, values that exclude each other, words that carry no meaning.

Word lists are in English, folded; `stems` makes them comparable with the words of a statement.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from mindex.analyzer import analyze


def stem(word: str) -> str:
    """The stems of a word or a name, as one token: `New_York` is `new_york`."""
    return "_".join(analyze(word).words)


def stems(words: str) -> frozenset[str]:
    return frozenset(map(stem, words.split()))


def _pairs(lists: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Each word with the words that exclude it: those on the other side of a list `a b / c d`."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for sides in lists:
        one, other = (stems(side) for side in sides.split("/"))
        for word in one:
            found[word] |= other
        for word in other:
            found[word] |= one
    return {word: frozenset(others) for word, others in found.items()}


OPPOSITES = _pairs(
    line.strip()
    for line in """
    enable enabled activate activated / disable disabled deactivate deactivated
    allow allowed permit permitted / deny denied forbid forbidden prohibit prohibited ban banned disallow
    accept accepted approve approved / reject rejected refuse refused decline declined
    like love enjoy / dislike hate detest
    include included / exclude excluded
    open / close closed shut
    public / private
    married / single unmarried divorced
    mandatory required compulsory obligatory / optional voluntary
    automatic automatically / manual manually
    synchronous / asynchronous
    ascending / descending
    indoors indoor / outdoors outdoor
    cheap inexpensive / expensive
    short brief / long detailed
    morning / evening
    left / right
    true / false
    minimum / maximum
    increase / decrease
    strict / relaxed lenient
    direct / indirect
    success / failure
    succeed / fail
    encrypted / unencrypted
    online / offline
    early / late
    fast quick / slow
    vegan vegetarian / carnivore
    safe / unsafe dangerous
    present / absent
    buy / rent
    always / sometimes
    free / paid
    internal / external
    stable / unstable
    available / unavailable
    possible / impossible
    supported / unsupported
    read-only / writable
    loud / quiet
    full / empty
    full-time / part-time
    temporary / permanent
    open-source / proprietary
    """.strip().splitlines()
)
# Those that begin a statement as verbs (`open the window`); the others describe a subject there (`public events`).
VERBS = stems(
    "enable disable activate deactivate allow deny permit forbid prohibit ban accept reject approve refuse decline"
    " include exclude open close shut increase decrease buy rent succeed fail"
)
# Opposites that are prepositions elsewhere: only a text that is the same but for them says the opposite.
SMALL_OPPOSITES = {frozenset(pair.split()) for pair in ("on off", "before after", "up down", "above below", "in out")}

# Of each line one thing has one at a time.
_ALTERNATIVES = """
    npm pnpm yarn bun
    pip poetry uv conda pipenv pdm
    tabs spaces
    dark light
    black white grey gray red green blue yellow orange purple pink brown beige turquoise violet
    bash zsh fish powershell
    aws azure gcp
    windows macos linux ubuntu fedora debian arch
    vim neovim emacs vscode sublime intellij
    postgres postgresql mysql mariadb sqlite oracle mongodb
    jest vitest mocha jasmine
    pytest unittest nose
    webpack vite rollup parcel esbuild
    metric imperial
    celsius fahrenheit
    squash rebase
    hourly daily weekly fortnightly monthly quarterly yearly annually
    vegan vegetarian pescetarian
    diesel petrol gasoline electric
    mit apache bsd gpl
    eur usd chf gbp
    jenkins travis circleci
    jira linear trello asana
    rabbitmq kafka nats
    rest graphql grpc
    react vue svelte angular
    window aisle
"""
ALTERNATIVES: Mapping[str, int] = {
    word: line for line, words in enumerate(_ALTERNATIVES.strip().splitlines()) for word in stems(words)
}


def alternatives(words: Iterable[str]) -> frozenset[str]:
    """The stems of values that exclude one of these: npm and yarn for pnpm."""
    lines = {ALTERNATIVES[word] for word in words if word in ALTERNATIVES}
    return frozenset(word for word, line in ALTERNATIVES.items() if line in lines).difference(words)


# What stands between a subject and the only value that it has at a time: names for a place, a person, a product.
SINGLE_VALUED = frozenset(
    tuple(stem(word) for word in frame.split())
    for frame in """
    live in|lives in|living in|work at|work for|works at|works for|work as|works as|based in|located in|situated in
    hosted on|hosted at|hosted by|written in|built with|built on|stored in|stored on|deployed to|deployed on
    deployed with|tracked in|shown in|called|named|led by|owned by|managed by|maintained by|run by|report to
    reports to|come from|comes from|drive|drives|move to|moved to|belongs to|married to|take place in|takes place in
    held in|born in|made by|installed with|monitored with|tested with|indented with|formatted with|run with|runs with
    """.replace("\n", "|").split("|")
    if frame.strip()
)
# Verbs whose object is one of many: another object is more, not something else.
MANY_VALUED = stems(
    "have has had own owns know knows support supports sell sells read reads play plays speak speaks cover covers"
    " produce produces contain contains visit visited follow follows check checks need needs treat treats"
)
# With these a thing has one value, whatever it is.
ONLY_ONE = stems("favourite favorite default primary main native preferred capital official only")
# Attributes that have one value each, where the value is a name.
ATTRIBUTES = stems(
    "lead leader owner boss manager director head mentor dentist doctor physician teacher coach landlord lawyer bank"
    " insurer employer husband wife spouse partner brand model phone laptop car language zone timezone currency licence"
    " license shell editor browser database queue broker framework provider host region city country capital team band"
    " school university name surname nickname email address theme font maintainer contact address colour color"
)

# ── what a statement does not depend on ──────────────────────────────────────────────────────────────────────

ARTICLES = frozenset("a an the der die das den dem des ein eine einen le la les l un une el los las una".split())
BE = frozenset("is are am be was were been being ist sind est sont es son".split())
# They begin what is said of a subject; what stands before them tells which subject is meant.
PREDICATE = BE | frozenset("has have had will would must may can could should shall does do did cannot".split())
LIGHT = stems(
    "now currently current still also always usually normally again already anymore longer just really actually"
    " please every each per approximately about around exactly own our we must may shall start starts begin begins"
    " take takes place hold held happen happens set moved move changed change raised raise switched switch updated"
    " become became get gets cost costs amount meeting moment today nowadays"
)
PRONOUNS = frozenset("it this that they he she these those its their his her".split())
FIRST_PERSON = frozenset("i my me mine".split())
PREPOSITIONS = frozenset(
    "at in on of to for from by with within until till after before over under above below between into per um am im"
    " en à para".split()
)

# What makes a number a lower or an upper bound: `open from 9:00` and `open until 18:00` both hold.
BOUNDS = {
    **dict.fromkeys("from since after above over least than minimum exceeding".split(), "lower"),
    **dict.fromkeys("until till before by below under most maximum within".split(), "upper"),
}

NEGATIONS = frozenset(
    "not no never cannot cant wont dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt couldnt shouldnt"
    " wouldnt mustnt nicht kein keine keinen keiner nie niemals pas jamais nunca".split()
)
# They negate a part of a statement: what the whole says then is not for rules to tell.
UNCLEAR = frozenset(
    "without nobody nothing none neither nor hardly barely rarely seldom unless except only but ohne sans sin".split()
)
PARTIAL = frozenset("only every all always until before just yet necessarily more less everyone".split())
REMINDERS = frozenset("forget hesitate miss fail".split())

# ── events ───────────────────────────────────────────────────────────────────────────────────────────────────

# What says when something takes place. Of anything else another weekday is one more: `works from home on Fridays`.
SCHEDULED = BE | stems("happen takes place starts begins held due")

OPENING = stems("open opens opened closed closes")

IRREGULAR_PAST = frozenset(
    "bought paid ran met went saw spent took made got wrote sold won lost had slept ate drank sent gave told flew drove"
    " did came left felt was were broke found fell threw caught taught thought brought began swam rode".split()
)
# What happens once to a thing, or says what holds since then: another number is a contradiction all the same.
ONCE = stems("born founded established married graduated launched raised changed moved switched increased reduced")
EVENT_ED_EXCEPTIONS = ("eed", "bed", "red", "shed", "sled", "hundred")
