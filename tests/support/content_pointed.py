"""Pairs of answers that differ in whom, which one or which option they name."""

from __future__ import annotations

Pairs = tuple[tuple[str | None, str, str], ...]

WHICH: Pairs = (
    ("Where was the rock band formed?", "Athens", "Athens, Georgia"),
    ("Where is the museum?", "Moscow", "Moscow, Idaho"),
    ("Where did the crash happen?", "London", "London, Ontario"),
    (
        "Where does she live?",
        "She lives in Cambridge.",
        "She lives in Cambridge, Massachusetts.",
    ),
    (
        "Where is the plant?",
        "The plant is in Birmingham.",
        "The plant is in Birmingham, Alabama.",
    ),
    ("Where was the film shot?", "Melbourne", "Melbourne, Florida"),
    ("Who was he?", "Henry Ford", "Henry Ford, Jr."),
    ("Who was killed?", "Martin Luther King", "Martin Luther King, Sr."),
    ("Where is the consulate?", "Naples", "Naples, Florida"),
    ("Where is the hospital?", "It's in Springfield.", "It's in Springfield, Ohio."),
    ("Is it legal?", "It is legal.", "It is legal, but only in Nevada."),
    ("Who won?", "Smith won.", "Smith won, but was later disqualified."),
    ("Where is the movie set?", "Paris", "Paris, Texas"),
    (
        "Which university did she attend?",
        "Washington University",
        "University of Washington",
    ),
    ("Which university?", "Miami University", "University of Miami"),
    (
        "Which university employs her?",
        "She works at Boston University.",
        "She works at the University of Boston.",
    ),
)
"""Which one it is, and names turned round."""

ALTERNATIVES: Pairs = (
    (
        "When should I stop?",
        "Stop if you feel dizzy, faint or nauseous.",
        "Stop if you feel dizzy or nauseous.",
    ),
    (
        "Which payment methods?",
        "We accept Visa, PayPal or bank transfer.",
        "We accept Visa or bank transfer.",
    ),
    (
        "When is the refund refused?",
        "No refund is given for opened, damaged or customised items.",
        "No refund is given for opened or damaged items.",
    ),
    (
        "Who may drive?",
        "The car may be driven by the renter, a spouse or an employee.",
        "The car may be driven by the renter or a spouse.",
    ),
    (
        "Wann zum Arzt?",
        "Gehen Sie zum Arzt bei Fieber, Atemnot oder Ausschlag.",
        "Gehen Sie zum Arzt bei Fieber oder Ausschlag.",
    ),
    (
        "When should I see a doctor?",
        "See a doctor if you have fever, a stiff neck or a rash.",
        "See a doctor if you have fever or a rash.",
    ),
    (
        "What does the allergy cover?",
        "Do not take it if you are allergic to penicillin, sulfa or aspirin.",
        "Do not take it if you are allergic to penicillin or aspirin.",
    ),
    (
        "Who may sign?",
        "The contract may be signed by the CEO, the CFO or the general counsel.",
        "The contract may be signed by the CEO or the CFO.",
    ),
    (
        "What must not be mixed with bleach?",
        "Never mix bleach with ammonia, vinegar or rubbing alcohol.",
        "Never mix bleach with ammonia or vinegar.",
    ),
    (
        "Which symptoms need an ambulance?",
        "Call an ambulance for chest pain, slurred speech or a severe headache.",
        "Call an ambulance for chest pain or slurred speech.",
    ),
)
"""An item less of a list with "or"."""

FEW: Pairs = (
    (
        "Did people survive?",
        "Few people survived the eruption.",
        "A few people survived the eruption.",
    ),
    (
        "Is there hope?",
        "There is little hope of recovery.",
        "There is a little hope of recovery.",
    ),
    ("Do we have time?", "We have little time left.", "We have a little time left."),
    (
        "How many studies support it?",
        "Few studies support this claim.",
        "Quite a few studies support this claim.",
    ),
    ("How many?", "The number of cases fell.", "A number of cases fell."),
    (
        "Is he in hospital?",
        "He has few friends in the city.",
        "He has a few friends in the city.",
    ),
    (
        "How many agreed?",
        "Few members supported the motion.",
        "A few members supported the motion.",
    ),
)
"""Few and a few."""

LETTERS: Pairs = (
    ("Which command lists it?", "run -d feature", "run -s feature"),
    ("Which command lists it?", "run -d feature", "run -m feature"),
    ("Which command lists it?", "run -i feature", "run -a feature"),
    ("Which command lists it?", "run -a feature", "run -i feature"),
    ("Which command lists it?", "run -a feature", "run -A feature"),
    ("Which command lists it?", "run -s feature", "run -S feature"),
    ("Which vitamin is missing?", "Vitamin d", "Vitamin m"),
    (
        "Which variable holds the mass?",
        "The mass is stored in m.",
        "The mass is stored in d.",
    ),
    ("Unit of length?", "It is given in m.", "It is given in s."),
    ("Length?", "5 m", "5 s"),
    ("Regex: a non-word character?", "\\W", "\\w"),
    ("Regex: a run of whitespace?", "\\s+", "\\S+"),
    ("Regex: word boundary?", "\\b", "\\B"),
    ("Which strftime code gives minutes?", "%M", "%m"),
    ("Force delete of a branch?", "git branch -D old", "git branch -d old"),
    ("Which prefix means a million?", "M", "m"),
    ("Vim: go to the last line?", "G", "g"),
    ("Vim: paste before the cursor?", "P", "p"),
    ("What token did it send?", "aGVsbG8", "AgvSBg8"),
    ("How do I write to a file?", "echo hi > a.txt", "echo hi >> a.txt"),
    ("How do I limit output?", "grep -v foo", "grep -V foo"),
    ("Which pointer?", "*p", "&p"),
    ("Which comment?", "rm -rf ./build", "rm -rf /build"),
    ("What path?", "../config", "./config"),
    ("Which glob?", "*.txt", "**.txt"),
    ("Which compare?", "a < b", "a << b"),
    ("How to match digits?", "Use \\d+", "Use \\D+"),
    ("How do I redirect?", "cmd > log.txt", "cmd >> log.txt"),
    ("Regex for one or more digits?", "^\\d+$", "^\\D+$"),
    ("Condition to check if a is at least b?", "if (a >= b)", "if (b >= a)"),
    ("Delete branch locally?", "git branch -d feature", "git branch -m feature"),
    (
        "Restrict the match with curl: ignore the certificate?",
        "curl -k https://host",
        "curl -K https://host",
    ),
    ("Assign a to b in C", "b = a;", "a = b;"),
    ("How is the ratio?", "a:b", "b:a"),
    (
        "How do I undo the force flag?",
        "Run git checkout -B main origin/main",
        "Run git checkout -b main origin/main",
    ),
    (
        "ls recursive?",
        "Use ls -R to list recursively.",
        "Use ls -r to list recursively.",
    ),
    ("Which video id?", "https://youtu.be/dQw4w9WgXcQ", "https://youtu.be/dqw4W9WgXcQ"),
    ("Which constant?", "The variable is N.", "The variable is n."),
)
"""Letters that stand alone, options, escapes, paths."""

PERSONS: Pairs = (
    ("Who has to pay?", "We have to.", "They have to."),
    ("Who told you?", "He told me that she did it.", "She told me that he did it."),
    ("Who should call whom?", "You should call them.", "They should call you."),
    (
        "Who is the message to and from?",
        "It is from me to you.",
        "It is from you to me.",
    ),
    ("Wer hat wen gesehen?", "Er hat sie gesehen.", "Sie hat ihn gesehen."),
    ("¿Quién te llamó?", "Ella me llamó.", "Él me llamó."),
    (
        "Who signed the lease?",
        "We signed the lease in May.",
        "They signed the lease in May.",
    ),
    ("Who pays the deposit?", "You pay the deposit.", "They pay the deposit."),
    ("Who pays the deposit?", "You pay us the deposit.", "We pay you the deposit."),
    (
        "Who owns the house?",
        "I own the house and you rent it.",
        "You own the house and I rent it.",
    ),
    (
        "What did the court decide about custody?",
        "He gets custody and she pays support.",
        "She gets custody and he pays support.",
    ),
    ("Chi paga?", "Paga lui.", "Paga lei."),
    ("Quem paga?", "Ele paga.", "Ela paga."),
    ("Quem ligou para quem?", "Ela ligou para ele.", "Ele ligou para ela."),
    ("Whose is it?", "It belongs to him.", "It belongs to them."),
    ("Who will contact whom?", "We will call you.", "You will call us."),
    ("Who should call?", "I should call you.", "You should call me."),
    (
        "Who was wrong?",
        "Anna told Lena that Anna was wrong.",
        "Anna told Lena that Lena was wrong.",
    ),
    (
        "Who is responsible for the damage?",
        "We are responsible for the damage.",
        "They are responsible for the damage.",
    ),
    ("他是谁?", "他是总统。", "他是副总统。"),
    ("彼は誰ですか?", "彼は社長です。", "彼は副社長です。"),
    ("Who should apologise?", "You should.", "They should."),
    ("Chi ha tradito chi?", "Lei ha tradito lui.", "Lui ha tradito lei."),
)
"""Other persons, or the same in each other's place."""

CHOSEN: Pairs = (
    ("Which is larger, Mars or Venus?", "Venus is larger than Mars.", "Mars"),
    (
        "Which is faster, the hare or the tortoise?",
        "The hare is faster than the tortoise.",
        "The tortoise",
    ),
    ("Which is cheaper, A or B?", "B is cheaper than A.", "A"),
    ("Wer ist größer, Max oder Paul?", "Max ist größer als Paul.", "Paul"),
    (
        "Which is the capital, Sydney or Canberra?",
        "The capital is Canberra rather than Sydney.",
        "Sydney",
    ),
    ("Which planet is closer to the Sun?", "Mercury is closer than Venus.", "Venus"),
    (
        "Which planet is closer to the Sun?",
        "Mercury is closer to the Sun than Venus is.",
        "Venus is.",
    ),
    ("Who is taller, Ben or Tim?", "Ben is taller than Tim.", "Tim."),
    ("Who is taller?", "Ben is taller than Tim.", "Tim is taller."),
    ("¿Quién es más alto, Ana o Luis?", "Ana es más alta que Luis.", "Luis"),
    ("Qui est plus grand, Marc ou Paul ?", "Marc est plus grand que Paul.", "Paul"),
)
"""What the other is compared with."""

PARTICLES: Pairs = (
    ("What should I do?", "Go", "Go on"),
    ("What should I do with the radio?", "Turn the radio.", "Turn the radio off."),
    ("Where should I turn?", "Turn left and drive", "Turn left and drive on."),
    (
        "Was soll ich mit dem Gerät machen?",
        "Schalten Sie das Gerät vor der Reinigung aus.",
        "Schalten Sie das Gerät vor der Reinigung ein.",
    ),
    (None, "Er steigt in Köln aus.", "Er steigt in Köln ein."),
)
"""What belongs to the verb."""

VERSIONS: Pairs = (
    ("Which release should I install?", "v1.9.0-rc1", "v1.9.0"),
    (None, "1.9.0-SNAPSHOT", "1.9.0"),
    (None, "3.13.0a2", "3.13.0"),
    (None, "2.0 beta", "2.0"),
)
"""Releases and what comes before them."""
