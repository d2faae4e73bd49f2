"""Pairs of answers with the same words in other places, or another number of times."""

from __future__ import annotations

Pairs = tuple[tuple[str | None, str, str], ...]

CHANGED: Pairs = (
    (
        "Where do they live?",
        "Anna lives in Berlin. Her brother lives in Berlin as well.",
        "Anna lives in Berlin. Her brother lives in Hamburg as well.",
    ),
    (
        "Who scored?",
        "Messi scored the first goal. Messi scored the second goal. Argentina won.",
        "Messi scored the first goal. Lautaro scored the second goal. Argentina won.",
    ),
    (
        "Which ports?",
        "The API listens on port 8080. The dashboard listens on port 8080.",
        "The API listens on port 8080. The dashboard listens on port 9090.",
    ),
    (
        "How much is the deposit?",
        "The rent is 900 euros. The deposit is 900 euros.",
        "The rent is 900 euros. The deposit is 1800 euros.",
    ),
    (
        "What are the passwords for?",
        "The key to the front door is blue. The key to the cellar is blue.",
        "The key to the front door is blue. The key to the cellar is green.",
    ),
    (
        "Which dose for which age?",
        "Children under 6 get 5 ml. Children over 6 get 5 ml.",
        "Children under 6 get 5 ml. Children over 6 get 10 ml.",
    ),
    (
        "When do they fly?",
        "The outbound flight is on 3 May. The return flight is on 3 May.",
        "The outbound flight is on 3 May. The return flight is on 9 May.",
    ),
    (
        "Which eye?",
        "The left eye is healthy. The drops go in the left eye.",
        "The left eye is healthy. The drops go in the right eye.",
    ),
    (
        "Which wire goes where?",
        "Connect the red wire to the red terminal.",
        "Connect the red wire to the black terminal.",
    ),
    (
        "Who owns it?",
        "The house belongs to Tom, and the car belongs to Tom.",
        "The house belongs to Tom, and the car belongs to Sue.",
    ),
    (
        "Is it allowed?",
        "Smoking is prohibited indoors. Vaping is prohibited indoors.",
        "Smoking is prohibited indoors. Vaping is allowed indoors.",
    ),
    (
        "Wie ist die Dosierung?",
        "Morgens nehmen Sie zwei Tabletten. Abends nehmen Sie zwei Tabletten.",
        "Morgens nehmen Sie zwei Tabletten. Abends nehmen Sie drei Tabletten.",
    ),
    (
        "Quelle dose ?",
        "Prenez deux comprimés le matin. Prenez deux comprimés le soir.",
        "Prenez deux comprimés le matin. Prenez trois comprimés le soir.",
    ),
    (
        "¿Qué dosis?",
        "Tome 5 ml por la mañana. Tome 5 ml por la noche.",
        "Tome 5 ml por la mañana. Tome 10 ml por la noche.",
    ),
    (
        "Who plays whom?",
        "Real Madrid play Bayern on Tuesday and Inter play Arsenal on Tuesday.",
        "Real Madrid play Bayern on Tuesday and Inter play Arsenal on Wednesday.",
    ),
    (
        "When do the banks open?",
        "The bank opens at 9 am and the post office opens at 9 am.",
        "The bank opens at 9 am and the post office opens at 9 pm.",
    ),
    (
        "Who sits where?",
        "The bride sits on the left and her parents sit on the left.",
        "The bride sits on the left and her parents sit on the right.",
    ),
    (
        "Is A or B free?",
        "Delivery is free for members, and returns are free.",
        "Delivery is free for members, and returns are charged.",
    ),
    (
        "When was he born and when did he die?",
        "He was born in Vienna and died in Vienna.",
        "He was born in Vienna and died in Paris.",
    ),
    (
        "What are the results?",
        "Team A won the match and the cup. Team A won in 2019 too.",
        "Team A won the match and the cup. Team B won in 2019 too.",
    ),
    (
        "Is the new one better?",
        "The old phone has 64 GB of storage. The new phone has 64 GB of storage.",
        "The old phone has 64 GB of storage. The new phone has 128 GB of storage.",
    ),
    (
        "Compare the fees.",
        "Plan A has a fee of 1%. Plan B has a fee of 1%.",
        "Plan A has a fee of 1%. Plan B has a fee of 2%.",
    ),
    (
        "What about interactions?",
        "Do not take it with alcohol. Do not take it with milk.",
        "Do not take it with alcohol. Take it with milk.",
    ),
    (
        "Can I fly and drive?",
        "You may not drive for a day. You may not fly for a day.",
        "You may not drive for a day. You may fly for a day.",
    ),
    (
        "What did the two studies find?",
        "The first study found no effect. The second study found no effect.",
        "The first study found no effect. The second study found an effect.",
    ),
    (
        "Are the two rooms free?",
        "Room 1 is not available. Room 2 is not available.",
        "Room 1 is not available. Room 2 is available.",
    ),
    (
        "Explain the dosing schedule.",
        (
            "Take two tablets in the morning. Take two tablets in the evening. "
            "Take four tablets at most per day."
        ),
        (
            "Take two tablets in the morning. Take three tablets in the "
            "evening. Take four tablets at most per day."
        ),
    ),
    (
        "What's in the itinerary?",
        (
            "You spend three nights in Rome. You then spend three nights in "
            "Florence. You leave from Milan."
        ),
        (
            "You spend three nights in Rome. You then spend five nights in "
            "Florence. You leave from Milan."
        ),
    ),
    (
        "What are the opening hours?",
        (
            "The shop opens at nine on weekdays. On Saturday it opens at nine. "
            "It is closed on Sunday."
        ),
        (
            "The shop opens at nine on weekdays. On Saturday it opens at ten. "
            "It is closed on Sunday."
        ),
    ),
    (
        "Describe the process.",
        (
            "The first filter is replaced after 6 months. The second filter is "
            "replaced after 6 months. The pump lasts 10 years."
        ),
        (
            "The first filter is replaced after 6 months. The second filter is "
            "replaced after 12 months. The pump lasts 10 years."
        ),
    ),
    (
        "Who won each set?",
        "Federer won the first set 6-4. Federer won the second set 6-4.",
        "Federer won the first set 6-4. Federer won the second set 6-3.",
    ),
    (
        "Who signed?",
        "Anna signed the first contract. Anna signed the second contract.",
        "Anna signed the first contract. Peter signed the second contract.",
    ),
    (
        "How is the fee?",
        "The entry fee is 10 euros for adults. Students pay 10 euros.",
        "The entry fee is 10 euros for adults. Students pay 5 euros.",
    ),
    (
        "Which days?",
        (
            "The gym is open on Monday. The pool is open on Monday. The sauna "
            "is open on Friday."
        ),
        (
            "The gym is open on Monday. The pool is open on Tuesday. The sauna "
            "is open on Friday."
        ),
    ),
    (
        "How are the shots timed?",
        (
            "The first shot is at two months. The second is at four months. The"
            " last is at four years."
        ),
        (
            "The first shot is at two months. The second is at three months. "
            "The last is at four years."
        ),
    ),
    (
        "How long are the breaks?",
        (
            "The first break lasts ten minutes. The second break lasts ten "
            "minutes. Lunch takes thirty minutes."
        ),
        (
            "The first break lasts ten minutes. The second break lasts fifteen "
            "minutes. Lunch takes thirty minutes."
        ),
    ),
    (
        "Where do I report fraud?",
        "Report fraud to fraud@bank.com immediately.",
        "Report fraud to help@bank.com immediately.",
    ),
    (
        "Who handles privacy requests?",
        "Send privacy requests to privacy@acme.com.",
        "Send privacy requests to support@acme.com.",
    ),
    (
        "Where do I send the invoice?",
        "Send the invoice to invoice@acme.com.",
        "Send the invoice to purchasing@acme.com.",
    ),
    (
        None,
        "Report security incidents to security@acme.com within 24 hours.",
        "Report security incidents to legal@acme.com within 24 hours.",
    ),
    (
        "Where are backups stored?",
        "Backups are stored in /backups/daily.",
        "Backups are stored in /archive/daily.",
    ),
    (
        "What is the admin password?",
        "The admin password is admin.",
        "The admin password is hunter2.",
    ),
    (
        "Which user runs nginx?",
        "The nginx service runs as user nginx.",
        "The nginx service runs as user root.",
    ),
    (
        "Which table holds the orders?",
        "The orders are in the table orders.",
        "The orders are in the table archive.",
    ),
    (
        "What is the default branch of the main repo?",
        "The main repo's default branch is main.",
        "The main repo's default branch is develop.",
    ),
    (
        "Where should security incidents be reported?",
        "Report security incidents to security@acme.com within 24 hours.",
        "Report security incidents to support@acme.com within 24 hours.",
    ),
    (
        "Explain the vaccine schedule.",
        (
            "The first dose is given at two months. The second dose follows at "
            "four months. A booster is given at the age of four."
        ),
        (
            "The first dose is given at two months. The second dose follows at "
            "six months. A booster is given at the age of four."
        ),
    ),
)
"""One value in the place of another that the answer has besides."""

EXCHANGED: Pairs = (
    (
        "Can I take ibuprofen and aspirin together?",
        (
            "Ibuprofen may block the effect of aspirin. If you need both, take aspirin "
            "at least 30 minutes before ibuprofen. Ask your doctor."
        ),
        (
            "Ibuprofen may block the effect of aspirin. If you need both, take "
            "ibuprofen at least 30 minutes before aspirin. Ask your doctor."
        ),
    ),
    (
        "Who pays whom?",
        "Anna and Ben share a flat. Anna pays Ben the rent.",
        "Anna and Ben share a flat. Ben pays Anna the rent.",
    ),
    (
        "Which cable goes where?",
        "There is a red and a black cable. Plug red in first, then black.",
        "There is a red and a black cable. Plug black in first, then red.",
    ),
)
"""Two words in each other's place, behind a sentence that has both."""

REPEATED: Pairs = (
    ("Castling side for Black?", "O-O-O", "O-O"),
    ("How many thumbs?", "👍👍👍", "👍"),
    ("Star rating?", "★★★★☆", "★★☆☆☆"),
    ("What is the rating?", "🌟🌟🌟🌟🌟", "🌟"),
    ("How spicy?", "🌶🌶🌶", "🌶"),
    ("Price level?", "$$$", "$"),
    ("Price level?", "€€€€", "€"),
    ("What is the sequence?", "red, red, blue", "red, blue, blue"),
    ("What is the dance pattern?", "left, left, right", "left, right, right"),
    ("What is the sequence?", "1, 1, 2", "1, 2, 2"),
    ("What did it print?", "foo foo foo", "foo foo"),
    ("Which notes?", "C C G G", "C G"),
    ("Rate it.", "⭐⭐⭐⭐⭐", "⭐"),
    ("Best move?", "O-O", "O-O-O"),
)
"""The same words another number of times."""
