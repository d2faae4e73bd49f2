"""Pairs of answers that word overlap takes for one another, or apart, by mistake."""

from __future__ import annotations

from tests.support.content_changed import CHANGED, EXCHANGED, REPEATED
from tests.support.content_figures import CODE, NUMBERS, UNITS
from tests.support.content_grammar import (
    NEGATIONS,
    PREPOSITIONS,
    QUANTITIES,
    VERBS,
)
from tests.support.content_languages import LANGUAGES
from tests.support.content_long import LONG
from tests.support.content_modified import COMPOUNDS, INSERTED, MODIFIED
from tests.support.content_names import LISTS, ONE_LETTER, QUALIFIED, ROLES
from tests.support.content_notation import NOTATION, WEAKENED, WRITTEN_ALIKE
from tests.support.content_pointed import (
    ALTERNATIVES,
    CHOSEN,
    FEW,
    LETTERS,
    PARTICLES,
    PERSONS,
    VERSIONS,
    WHICH,
)
from tests.support.content_same import RESPELLED, SAME

CAPITAL = "What is the capital of France?"
OLDER = "Which is older, Paris or Lyon?"
FINAL = "Who won the final?"
SAFE = "Is it safe to eat?"
HOW_FAR = "How far is it?"
HOW_MUCH = "How much did it cost?"
WHEN = "When did Napoleon die?"
WHERE = "Wo wurde Goethe geboren?"
FIRST = "Which band was founded first, Hole or The Wolfhounds?"

DIFFERENT: tuple[tuple[str | None, str, str], ...] = (
    # The words of the question are no agreement.
    (CAPITAL, "The capital of France is Paris", "The capital of France is Lyon"),
    (CAPITAL, "Paris is the capital of France.", "Lyon is the capital of France."),
    (CAPITAL, "It is Paris", "It is Lyon"),
    ("Who wrote Faust?", "Faust was written by Goethe.", "Faust was written by Mann."),
    ("Who is under the mask?", "Under the mask is Vader", "Under the mask is Kylo Ren"),
    # Choices that the question names are.
    (OLDER, "Paris", "Lyon"),
    (OLDER, "Paris, France", "Lyon, France"),
    (OLDER, "Paris is older", "Lyon is older"),
    (OLDER, "Paris is older than Lyon", "Lyon is older than Paris"),
    (FIRST, "The Wolfhounds were founded first.", "Hole was founded first."),
    ("Is 5 greater than 3?", "5 > 3", "3 > 5"),
    (
        "Is Paris larger than Lyon?",
        "Paris is larger than Lyon",
        "Lyon is larger than Paris",
    ),
    (
        "Who won, France vs Croatia?",
        "France won, Croatia lost",
        "Croatia won, France lost",
    ),
    ("Does Romeo love Juliet?", "Romeo loves Juliet", "Juliet loves Romeo"),
    ("Was it to or from Berlin?", "to Berlin", "from Berlin"),
    (None, "Paris", "Paris or Lyon"),
    (None, "5", "5 or 6"),
    (None, "5", "less than 5"),
    (None, "Korea", "North Korea"),
    ("Is it an acid or a base?", "It is an acid.", "It is a base."),
    ("Ist das rot oder blau?", "Das ist rot", "Das ist blau"),
    # Who did what to whom.
    (FINAL, "France beat Croatia", "Croatia beat France"),
    (None, "Brutus killed Caesar", "Caesar killed Brutus"),
    (None, "The dog bit the man", "The man bit the dog"),
    ("Who sued whom?", "Apple sued Samsung", "Samsung sued Apple"),
    # One word for another.
    (None, "He managed to win the race", "He failed to win the race"),
    (None, "The company denied the claim", "The company confirmed the claim"),
    (None, "It is legal in Germany", "It is illegal in Germany"),
    (None, "It opened in March 1999", "It opened in May 1999"),
    (None, "the first president of the States", "the second president of the States"),
    (None, "He fought in World War I", "He fought in World War II"),
    (None, "Super Bowl XLVIII", "Super Bowl XLIX"),
    (None, "The answer is A.", "The answer is B."),
    # No is not yes.
    (SAFE, "Yes", "No"),
    (SAFE, "Yes, it is safe to eat.", "No, it is not safe to eat."),
    (SAFE, "It is safe to eat.", "It is not safe to eat."),
    (SAFE, "It is safe", "It isn't safe"),
    (SAFE, "It can be eaten", "It cannot be eaten"),
    (None, "He never lived in Rome", "He lived in Rome"),
    (None, "Es ist giftig", "Es ist nicht giftig"),
    (None, "C'est vrai", "Ce n'est pas vrai"),
    (None, "Es verdad", "No es verdad"),
    (None, "with sugar", "without sugar"),
    (None, "It will work", "It wont work"),
    (None, "He lived in Rome", "He hardly ever lived in Rome"),
    ("安全吗", "安全", "不安全"),
    (None, "他是老师", "他不是老师"),
    (None, "東京です", "東京ではないです"),
    (None, "هو آمن", "هو غير آمن"),
    (None, "पेरिस", "पेरिस नहीं"),
    (None, "Güvenli", "Güvenli değil"),
    (None, "Είναι ασφαλές", "Δεν είναι ασφαλές"),
    (None, "Jest bezpieczne", "Nie jest bezpieczne"),
    # Numbers, their signs and what they count.
    (HOW_FAR, "5 km", "5 miles"),
    (HOW_FAR, "It is 5 km away", "It is 6 km away"),
    (HOW_FAR, "-5", "5"),
    (HOW_FAR, "20°C", "20°F"),
    (HOW_FAR, "5 kg", "5 stone"),
    (HOW_FAR, "5 million", "5"),
    (WHEN, "5/6/2020", "6/5/2020"),
    (None, "Sales grew by 5% in 2020", "Sales shrank by 5% in 2020"),
    (HOW_MUCH, "5 million dollars", "5 billion dollars"),
    (HOW_MUCH, "It cost $5", "It cost 5 €"),
    (HOW_MUCH, "$1,200", "$12,000"),
    (HOW_MUCH, "1.5", "15"),
    (HOW_MUCH, "two dollars", "three dollars"),
    ("How likely is it?", "about 5%", "about 5"),
    (WHEN, "Napoleon died on May 5, 1821.", "Napoleon died on May 6, 1821."),
    (WHEN, "Napoleon died in 1821.", "Napoleon died in 1812."),
    (WHEN, "in 1821", "before 1821 BC"),
    ("At what time?", "5 am", "5 pm"),
    # Directions and comparisons are answers.
    ("Which way did prices go?", "Prices went up", "Prices went down"),
    (None, "before", "after"),
    (None, "more", "less"),
    # Other scripts and languages.
    (WHERE, "Goethe wurde in Frankfurt geboren.", "Goethe wurde in Weimar geboren."),
    ("¿Cuál es la capital?", "La capital es Madrid", "La capital es Lima"),
    ("首都はどこですか", "東京", "大阪"),
    ("Какая столица России?", "Столица России Москва", "Столица России Киев"),
    # Symbols.
    ("Which language?", "C++", "C#"),
    ("Which relation holds?", "x ≥ 3", "x ≤ 3"),
    (None, "x + 3 = 5", "x - 3 = 5"),
    *QUALIFIED,
    *ONE_LETTER,
    *LISTS,
    *ROLES,
    *PREPOSITIONS,
    *VERBS,
    *QUANTITIES,
    *NEGATIONS,
    *UNITS,
    *NUMBERS,
    *CODE,
    *LANGUAGES,
    *LONG,
    *NOTATION,
    *WEAKENED,
    *CHANGED,
    *EXCHANGED,
    *REPEATED,
    *MODIFIED,
    *INSERTED,
    *COMPOUNDS,
    *WHICH,
    *ALTERNATIVES,
    *FEW,
    *LETTERS,
    *PERSONS,
    *CHOSEN,
    *PARTICLES,
    *VERSIONS,
)
"""Question and two answers that must not count as alike: at most 0.5."""

ALIKE: tuple[tuple[str | None, str, str], ...] = (
    (CAPITAL, "Paris", "The capital of France is Paris."),
    (CAPITAL, "It is Paris", "Paris"),
    (CAPITAL, "paris", "Paris"),
    (OLDER, "Paris", "Paris is older than Lyon"),
    (FIRST, "The Wolfhounds", "The Wolfhounds were founded first."),
    (HOW_FAR, "5 km", "It is 5 km"),
    (HOW_FAR, "5.0", "5"),
    (HOW_FAR, "1,200 m", "1200 m"),
    (HOW_FAR, "two miles", "2 miles"),
    (HOW_FAR, "5 kilometres", "5 kilometers"),
    (HOW_FAR, "5 km", "about 5 kilometers"),
    (HOW_MUCH, "5%", "5 percent"),
    (HOW_MUCH, "$5", "5 dollars"),
    (None, "the U.S.", "the US"),
    (None, "J. K. Rowling", "J.K. Rowling"),
    (None, "It can't be eaten", "It cannot be eaten"),
    (SAFE, "No", "No, it is not safe"),
    (SAFE, "It's not safe", "It isn't safe"),
    (WHERE, "Frankfurt", "In Frankfurt"),
    ("首都はどこですか", "東京", "東京です"),
    (None, "", "  "),
    *SAME,
    *RESPELLED,
    *WRITTEN_ALIKE,
)
"""Question and two answers that must count as alike: at least 0.6."""
