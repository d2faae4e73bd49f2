"""Pairs of answers of which one has a word more that changes another."""

from __future__ import annotations

Pairs = tuple[tuple[str | None, str, str], ...]

MODIFIED: Pairs = (
    ("Is it B flat or sharp?", "B flat", "B"),
    (
        "Is my dog's surgery partially covered?",
        "The surgery is partially covered by your plan.",
        "The surgery is covered by your plan.",
    ),
    (
        "Is the conference room temporarily closed?",
        "The conference room is temporarily closed.",
        "The conference room is closed.",
    ),
    (
        "Is the conference room permanently closed?",
        "The conference room is permanently closed.",
        "The conference room is closed.",
    ),
    (
        "Was he wrongly convicted?",
        "He was wrongly convicted of murder.",
        "He was convicted of murder.",
    ),
    (
        "Is this a suspected fracture?",
        "The X-ray shows a suspected fracture.",
        "The X-ray shows a fracture.",
    ),
    (
        "Did Tom nearly drown?",
        "Tom nearly drowned in the lake.",
        "Tom drowned in the lake.",
    ),
    (
        "Can I get a partial refund?",
        "You will get a partial refund.",
        "You will get a refund.",
    ),
    (
        "Was the attempted murder proven?",
        "He was convicted of attempted murder.",
        "He was convicted of murder.",
    ),
    (
        "Is this an honorary degree?",
        "She holds an honorary degree from Yale.",
        "She holds a degree from Yale.",
    ),
    (
        "Is she the acting director?",
        "She is the acting director.",
        "She is the director.",
    ),
    (
        "Who was the deputy mayor in 1990?",
        "Jane Roe was the deputy mayor.",
        "Jane Roe was the mayor.",
    ),
    (
        "Is it fake leather?",
        "The bag is made of fake leather.",
        "The bag is made of leather.",
    ),
    (
        "Are these artificial flowers?",
        "They are artificial flowers.",
        "They are flowers.",
    ),
    (
        "Is 12 a possible answer or the answer?",
        "12 is a possible answer.",
        "12 is the answer.",
    ),
    ("Which college did he attend?", "Boston College", "College of Boston"),
    ("Which bank?", "Bank of China", "China Bank of"),
    ("What flat is it?", "flat B", "B"),
    ("Which sharp?", "F sharp", "F"),
    ("Who is the vice president?", "the president", "the vice president"),
    ("Which number is negative?", "negative 5", "5"),
    ("What is the minus value?", "minus 5", "5"),
    ("Which half?", "half a tablet", "a tablet"),
    ("Is he the former mayor?", "He is the former mayor.", "He is the mayor."),
    ("Is she his ex-wife?", "She is his ex-wife.", "She is his wife."),
    ("Is it almost full?", "It is almost full.", "It is full."),
    ("Is it only for members?", "It is only for members.", "It is for members."),
    ("Was it nearly destroyed?", "It was nearly destroyed.", "It was destroyed."),
    ("Is it partly covered by insurance?", "It is partly covered.", "It is covered."),
    ("Is it flat?", "B flat", "B"),
)
"""A word that changes the next one, and that the question has."""

INSERTED: Pairs = (
    ("他的职位是什么?", "他是主任。", "他是副主任。"),
    ("他是谁?", "他是总理。", "他是前总理。"),
    ("他是谁?", "他是教授。", "他是副教授。"),
    ("谁签的?", "文件由部长签署。", "文件由副部长签署。"),
    ("这是什么?", "这是正式版本。", "这是非正式版本。"),
    ("彼は誰?", "彼は大統領です。", "彼は副大統領です。"),
    ("彼は誰?", "彼は首相です。", "彼は元首相です。"),
    ("公開ですか?", "資料は公開です。", "資料は非公開です。"),
    ("그는 누구입니까?", "그는 장관입니다.", "그는 전 장관입니다."),
    ("什么药?", "服用一片。", "服用十一片。"),
    ("何回?", "一日二回飲んでください。", "一日十二回飲んでください。"),
    ("这是什么?", "这是金属。", "这是非金属。"),
    ("什么?", "他是导演。", "他是副导演。"),
)
"""A character that changes the next one."""

COMPOUNDS: Pairs = (
    (
        "What did the team do with the contract?",
        "The club signed the player until 2026.",
        "The club re-signed the player until 2026.",
    ),
    (
        "What did the company do with the product?",
        "The company released the album in 2015.",
        "The company re-released the album in 2015.",
    ),
    (
        "When was the theatre opened?",
        "The theatre opened in 1997.",
        "The theatre re-opened in 1997.",
    ),
    (
        "Who directed the film?",
        "The film was directed by Ethan Coen.",
        "The film was co-directed by Ethan Coen.",
    ),
    ("Did he resell the tickets?", "He sold the tickets.", "He re-sold the tickets."),
    (
        "Was she appointed?",
        "She was appointed in 2020.",
        "She was re-appointed in 2020.",
    ),
    ("Which tests?", "They tested the samples.", "They re-tested the samples."),
    (
        "When was the novel published?",
        "It was published in 1925.",
        "It was self-published in 1925.",
    ),
    ("Was the letter signed?", "The letter was signed.", "The letter was un-signed."),
    (
        "Who leads it?",
        "The commander-in-chief leads the forces.",
        "The commander leads the forces.",
    ),
    ("Who inherited?", "Her sister-in-law inherited it.", "Her sister inherited it."),
    ("Is it duty-free?", "The passer saw it.", "The passer-by saw it."),
    (
        "Who moved in with them?",
        "Her father moved in with them.",
        "Her father-in-law moved in with them.",
    ),
    (
        "Who inherited the house?",
        "His brother inherited the house.",
        "His brother-in-law inherited the house.",
    ),
    (
        "Who signed the letter?",
        "The editor signed the letter.",
        "The editor-in-chief signed the letter.",
    ),
    (
        "What did the parties do?",
        "They signed the treaty.",
        "They re-signed the treaty.",
    ),
    ("Was he elected?", "He was elected in 2016.", "He was re-elected in 2016."),
    (
        "How is Anna related to Tom?",
        "Anna is Tom's mother.",
        "Anna is Tom's mother-in-law.",
    ),
)
"""A part before or behind a hyphen."""
