"""Pairs of long answers: one word differs, or two change places."""

from __future__ import annotations

_CURIE = (
    "Marie Curie was a physicist and chemist who was born in Warsaw, studied in "
    "Paris and conducted pioneering research on radioactivity. She was the first "
    "woman to win a Nobel Prize and the only person to win the prize in two "
    "scientific fields. She died in 1934 from an illness caused by exposure to "
    "radiation."
)
_PUMP = (
    "First switch off the mains and wait for ten seconds. Then close the inlet "
    "valve, press the reset button on the side panel, and switch the mains on "
    "again. The pump starts by itself after a short self test and the green lamp "
    "comes on."
)
_PILLS = (
    "You should speak to a doctor before you combine the two, because both "
    "medicines belong to the same group and thin the blood. Taken together they "
    "raise the risk of bleeding in the stomach, and ibuprofen may weaken the "
    "protective effect that aspirin has on the heart."
)
_COURT = (
    "The court held that the contract was void because the seller had concealed "
    "the defect from the buyer, and it ordered the seller to repay the price with"
    " interest from the day of delivery and to bear the costs of the proceedings "
    "in both instances."
)
_TAX = (
    "The tax is computed on the income of the previous year after deduction of "
    "the allowance of 12,000 euros for every adult and 4,000 euros for every "
    "child; the rate is 14 percent for the first 20,000 euros and 24 percent for "
    "everything above that amount."
)
_SKY = (
    "The sky is blue because molecules of the air scatter short wavelengths of "
    "sunlight much more strongly than long ones, so that from every direction "
    "other than that of the sun itself mostly the scattered blue light reaches "
    "our eyes, while the direct light of the sun looks slightly yellow."
)
_RHINE = (
    "The Rhine rises in the Swiss Alps, forms the border between Switzerland and "
    "Liechtenstein, flows through Lake Constance, turns north at Basel, passes "
    "Strasbourg, Mainz, Cologne and Düsseldorf, and finally reaches the North Sea"
    " in the Netherlands near Rotterdam."
)
_COMMANDER = (
    "According to the official history of the campaign, the troops that crossed "
    "the river at dawn were under the command of General Hughes, who had taken "
    "over from his predecessor only two days earlier and did not yet know the "
    "ground."
)


def _changed(question: str, text: str, one: str, other: str) -> tuple[str, str, str]:
    """Return a text, and the same with two words changing places where it has both."""
    changed = text.replace(one, "\0").replace(other, one).replace("\0", other)
    return question, text, changed


LONG: tuple[tuple[str | None, str, str], ...] = (
    _changed("Tell me about Marie Curie.", _CURIE, "Warsaw", "Krakow"),
    _changed("Tell me about Marie Curie.", _CURIE, "1934", "1943"),
    _changed("How do I restart the pump?", _PUMP, "close", "open"),
    _changed("How do I restart the pump?", _PUMP, "inlet", "outlet"),
    _changed("Can I take ibuprofen with aspirin?", _PILLS, "raise", "lower"),
    _changed("Can I take ibuprofen with aspirin?", _PILLS, "may", "does not"),
    _changed("What did the court decide?", _COURT, "void", "valid"),
    _changed("What did the court decide?", _COURT, "seller", "buyer"),
    _changed("How is the tax computed?", _TAX, "20,000", "30,000"),
    _changed("How is the tax computed?", _TAX, "after", "before"),
    _changed("Why is the sky blue?", _SKY, "short", "long"),
    _changed("Where does the Rhine flow?", _RHINE, "North", "Baltic"),
    _changed("Who was the commander?", _COMMANDER, "Hughes", "Harris"),
)
"""One word in forty to eighty."""
