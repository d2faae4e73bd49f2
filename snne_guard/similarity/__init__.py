"""Texts to an ``(n, n)`` matrix that says how alike they are.

What the ``unicode`` tokenizer does, so that two texts are 1 only where a reader would
call them the same:

- **Words** of every script are compared after NFKC and case folding; accents and vowel
  signs stay with their letter. Chinese, Japanese, Thai, Lao, Khmer, Burmese and their
  like put no spaces between words, so there each letter with its marks is a token.
  Apostrophes, hyphens, underscores and other punctuation separate.
- **Numbers** are whole: ``-5`` (with any minus sign) is not ``5``, ``1.5`` is one
  token, ``50 %`` is ``50%`` and not ``50``; digits of every script are the same digits.
  ``1,200``, ``1'200``, ``1_200``, ``1.200,00`` style grouping and a no-break or thin
  space as separator are taken out. A comma that groups nothing is a decimal one
  (``1,5`` = ``1.5``), but not in a pair in brackets (``(3,4)``) or a longer list.
  A hyphen or dash behind a digit is a range's or a date's and no sign: ``3-5`` is 3
  and 5, ``2024-05-01`` is 2024, 05 and 01, and so is ``2024/05/01``. ``12:30``,
  ``1/2`` (= ``½``), ``1.2.3``, ``1st``, ``1980s`` and ``6.02e23`` are each whole.
  A unit is a token of its own: ``5kg`` = ``5 kg``.
- **Symbols** that carry meaning are tokens: currencies (``5 €`` = ``€5``, not ``$5``),
  ``≥`` (= ``>=``), ``≠``, ``±``, ``°``, ``+``, ``=``, ``<``, ``¬``, ``^`` (``10²`` =
  ``10^2``), emoji; ``C++``, ``C#``, ``A+`` and ``O-`` are words. Quotes, brackets,
  bullets and the asterisks of bold type are no tokens. A hyphen between spaces is a
  dash: subtraction is not seen.
- A text of mere punctuation is one token, so that ``?`` is not ``!``.
"""

from snne_guard.similarity.content import content_f1
from snne_guard.similarity.cross_encoder import CrossEncoder
from snne_guard.similarity.embedding import Embedding
from snne_guard.similarity.exact import (
    Match,
    exact,
    normalised,
    normalised_text,
    numeric,
    stated_number,
)
from snne_guard.similarity.judge import EntailmentJudge
from snne_guard.similarity.lexical import LexicalSet, rouge_l, rouge_l_paper
from snne_guard.similarity.nli import NLI
from snne_guard.similarity.registry import (
    SIMILARITIES,
    checked_similarity,
    resolve_similarity,
)
from snne_guard.similarity.structured import canonical_json, structured
from snne_guard.similarity.tokens import TOKENIZERS, rouge_tokens, unicode_tokens
from snne_guard.similarity.with_question import WithQuestion

__all__ = [
    "NLI",
    "SIMILARITIES",
    "TOKENIZERS",
    "CrossEncoder",
    "Embedding",
    "EntailmentJudge",
    "LexicalSet",
    "Match",
    "WithQuestion",
    "canonical_json",
    "checked_similarity",
    "content_f1",
    "exact",
    "normalised",
    "normalised_text",
    "numeric",
    "resolve_similarity",
    "rouge_l",
    "rouge_l_paper",
    "rouge_tokens",
    "stated_number",
    "structured",
    "unicode_tokens",
]
