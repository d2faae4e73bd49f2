"""Pairs of answers that differ in how they are written, or in a word that weakens."""

from __future__ import annotations

NOTATION: tuple[tuple[str | None, str, str], ...] = (
    ("How do you compare without coercion?", "Use `===`.", "Use `==`."),
    ("What is the formula of carbon monoxide?", "CO", "Co"),
    ("What is the derivative of cos x?", "-sin x", "sin x"),
    ("What is the derivative of cos x?", "It is -sin(x).", "It is sin(x)."),
    ("How fast is it?", "The speed is 10 Mb/s.", "The speed is 10 MB/s."),
    ("How much power is it?", "10 mW", "10 MW"),
    (
        "Which version brought pattern matching?",
        "Python 3.10 brought pattern matching.",
        "Python 3.1 brought pattern matching.",
    ),
    ("Which version?", "v1.20", "v1.2"),
    ("Which version?", "2.10.0", "2.1.0"),
    ("Which section?", "Section 2.10", "Section 2.1"),
    ("In how many ways?", "n!", "n"),
    ("In how many ways?", "5! ways", "5 ways"),
    ("What is zero there?", "f'(x)", "f(x)"),
    ("What is zero there?", "f''", "f'"),
    ("Which slice?", "a[1:]", "a[:1]"),
    ("Which interval?", "[0, 1)", "[0, 1]"),
    ("Which interval?", "(0, 1)", "[0, 1]"),
    ("What is it called?", "`foo_bar`", "`foo-bar`"),
    ("Which command?", "`grep -v`", "`grep -V`"),
    ("Which class of characters?", r"`\d`", r"`\D`"),
)
"""Different by what no word holds."""

WEAKENED: tuple[tuple[str | None, str, str], ...] = (
    (
        "Is coffee safe in pregnancy?",
        "Coffee is safe in pregnancy.",
        "It is a myth that coffee is safe in pregnancy.",
    ),
    ("Did the ship sink?", "The ship sank.", "It is false that the ship sank."),
    ("Is the bridge safe?", "It is safe.", "It is far from safe."),
    ("Is it approved?", "It is approved.", "It is supposed to be approved."),
    ("Has the bug been fixed?", "It has been fixed.", "It has yet to be fixed."),
    ("Is he the king?", "He is the king.", "He is the former king."),
    ("Is it a diamond?", "It is a diamond.", "It is a fake diamond."),
    ("How many eggs?", "a dozen", "half a dozen"),
    ("Who won?", "He won.", "He nearly won."),
    (
        "Did it reduce the pain?",
        "It reduced the pain.",
        "It is unclear whether it reduced the pain.",
    ),
    ("น้ำปลอดภัยไหม", "น้ำปลอดภัย", "น้ำไม่ปลอดภัย"),
    ("Nước có an toàn không?", "Nước an toàn.", "Nước không an toàn."),
    ("האם המים בטוחים?", "המים בטוחים.", "המים אינם בטוחים."),
    ("Apakah airnya aman?", "Airnya aman.", "Airnya tidak aman."),
    ("Wer biss wen?", "Den Hund biss der Mann.", "Der Hund biss den Mann."),
)
"""Different by a word that the other has all words but."""

WRITTEN_ALIKE: tuple[tuple[str | None, str, str], ...] = (
    (None, "Paris!", "Paris."),
    (None, "It's 5!", "It's 5."),
    (None, "It costs $5.50", "It costs $5.5"),
    (None, "5.50 km", "5.5 km"),
    (None, "50.50%", "50.5%"),
    (None, "5 PM", "5 pm"),
    (None, "5 KM", "5 km"),
    (None, "NO", "No"),
    (None, "- Paris", "Paris"),
    (None, "**Paris**", "Paris"),
    (None, "`Paris`", "Paris"),
    (None, "Paris [1]", "Paris"),
    (None, "Paris (France)", "Paris, France"),
    (None, "x = 3", "x=3"),
    (None, "'Paris'", "Paris"),
    (None, "3 Mar 2024", "3 March 2024"),
    (None, "50 mg", "50 milligrams"),
    (
        "What is the capital of Peru?",
        "The capital of Peru is Lima. Let me know if you have any other questions!",
        "The capital of Peru is Lima.",
    ),
)
"""The same, however it is written."""
