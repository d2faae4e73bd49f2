"""Pairs of different answers in other languages."""

from __future__ import annotations

LANGUAGES: tuple[tuple[str | None, str, str], ...] = (
    ("Ist der Pilz essbar?", "Der Pilz ist essbar", "Der Pilz ist nicht essbar"),
    ("Ist der Pilz essbar?", "Der Pilz ist genießbar", "Der Pilz ist ungenießbar"),
    ("Wann öffnet das Museum?", "vor 10 Uhr", "nach 10 Uhr"),
    ("Wer hat gewonnen?", "Bayern schlug Dortmund", "Dortmund schlug Bayern"),
    ("Darf man hier parken?", "Man darf hier parken", "Man muss hier parken"),
    ("Wie viele kamen?", "alle Mitglieder", "keine Mitglieder"),
    ("Est-ce vrai ?", "C'est vrai", "Ce n'est pas vrai"),
    ("Quand ?", "avant la guerre", "après la guerre"),
    ("Combien ?", "cinq millions", "cinq milliards"),
    ("¿Cuándo ocurrió?", "antes de la guerra", "después de la guerra"),
    ("¿Con o sin azúcar?", "con azúcar", "sin azúcar"),
    ("¿Es legal?", "Sí, es legal", "No es legal"),
    ("Quando?", "prima della guerra", "dopo la guerra"),
    ("É possível?", "É possível", "É impossível"),
    ("Wanneer?", "voor de oorlog", "na de oorlog"),
    ("När?", "före kriget", "efter kriget"),
    ("Когда?", "до войны", "после войны"),
    ("Это правда?", "Это правда", "Это неправда"),
    ("法国的首都是哪里?", "法国的首都是巴黎", "法国的首都是里昂"),
    ("他来了吗?", "他来了", "他没来"),
    ("フランスの首都は?", "フランスの首都はパリです", "フランスの首都はリヨンです"),
    ("ما هي عاصمة فرنسا؟", "عاصمة فرنسا هي باريس", "عاصمة فرنسا هي ليون"),
    ("프랑스의 수도는?", "프랑스의 수도는 파리입니다", "프랑스의 수도는 리옹입니다"),
    ("भारत की राजधानी क्या है?", "भारत की राजधानी दिल्ली है", "भारत की राजधानी मुंबई है"),
    (
        "Wer hat wen geschlagen?",
        "Anna hat Bernd besiegt",
        "Anna wurde von Bernd besiegt",
    ),
    (
        "Qui a gagné ?",
        "L'Espagne a battu l'Italie",
        "L'Espagne a été battue par l'Italie",
    ),
    ("Wo liegt der Schlüssel?", "auf dem Tisch", "in dem Tisch"),
    ("Wo ist er?", "in dem Haus", "vor dem Haus"),
    ("Où est la clé ?", "sur la table", "dans la table"),
    ("¿Dónde está?", "en Madrid", "desde Madrid"),
)
"""By the rules of each language that is known, or of none."""
