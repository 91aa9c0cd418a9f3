"""The words that decide whether a query is read for times at all. Most have none of them, and import no parser."""

import re
from itertools import pairwise

_PAST = frozenset(
    """
    previous previously before originally formerly former earlier initially past old
    vorher früher ursprünglich damals ehemals ehemalige ehemaliger vorherige vorheriger alte alter alten zuvor
    avant auparavant ancien ancienne anciennement autrefois précédent précédente originellement initialement
    antes anterior anteriormente antiguo antigua originalmente inicialmente previo previa
    """.split()
)
# A query without any of these and without digits like those of a date names no time.
_TIMES = frozenset(
    """
    today yesterday tomorrow tonight ago latest newest recently day days week weeks month months year years weekend
    morning afternoon evening night hour hours minute minutes last before after since
    monday tuesday wednesday thursday friday saturday sunday spring summer autumn fall winter
    january february march april may june july august september october november december jan feb mar apr jun jul aug
    sep sept oct nov dec
    heute gestern vorgestern morgen zuletzt neueste neuesten neuester neuestes kürzlich tag tage tagen woche wochen
    monat monate monaten jahr jahre jahren wochenende abend stunde stunden minuten mal vor nach seit bevor nachdem
    montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag frühling frühjahr sommer herbst
    januar jänner februar märz mai juni juli oktober dezember
    hier aujourd demain récemment récent récente dernière dernier fois jour jours semaine semaines mois an ans année
    années matin soir midi heure heures avant après depuis
    lundi mardi mercredi jeudi vendredi samedi dimanche printemps été automne hiver
    janvier février mars avril juin juillet août septembre octobre novembre décembre
    hoy ayer anteayer anoche mañana reciente recientemente última último vez día días semana semanas mes meses año años
    tarde noche hora horas minutos antes después desde tras
    lunes martes miércoles jueves viernes sábado domingo primavera verano otoño invierno
    enero febrero marzo abril mayo junio julio agosto septiembre setiembre octubre noviembre diciembre
    """.split()
)
_TIMES_FOLDED = _TIMES | frozenset(word.translate(str.maketrans("áéíóúñûäöüèôç", "aeiounuaoueoc")) for word in _TIMES)
_DATE = re.compile(r"\b(?:19|20)\d\d\b|\b\d{1,2}[./]\d{1,2}\b")
_WORD = re.compile(r"[^\W\d_]+")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|„[^“”]*[“”]")


def past_word(query: str) -> str:
    """The first word of a query that asks for the past, outside quotes; '' if none does."""
    said = _WORD.findall(_QUOTED.sub(" ", query).casefold())
    for before, word in pairwise(["", *said]):
        if (word in _PAST and before != "how") or (before, word) == ("used", "to"):  # `how old is …` is of today
            return word if word in _PAST else "used to"
    return "use to" if "did" in said and ("use", "to") in pairwise(said) else ""


def names_time(text: str) -> bool:
    """Whether a text may name a time, outside quotes: only then it is worth reading (`mindex.time_window`)."""
    if not _TIMES_FOLDED.isdisjoint(_WORD.findall(text.casefold())):
        return not _TIMES_FOLDED.isdisjoint(_WORD.findall(_QUOTED.sub(" ", text).casefold()))
    return _DATE.search(text) is not None
