"""The words that ``content_f1`` weighs by, casefolded."""

from __future__ import annotations

# One that is also a word of content in English ("die", "man", "war") or a unit ("am",
# "m") is left out: a word too many here makes different answers look alike, one too few
# only makes like ones look a little different.
_FUNCTION = {
    "en": """
        a an the this that these those there here it its he she him his her hers they
        them their we us our you your i me my who whom whose which what when where why
        how is are was were be been being do does did done has have had having will wo
        would ca can could shall should might must of to in on at by for from with as
        into onto about during through and or but if because so than then also such s d
        ll re ve just very
    """,
    "de": """
        der das den dem des ein eine einen einem einer eines dieser diese dieses es er
        sie ihn ihm ihr ihre sein seine wir uns euch du dich dir ich mich mir wen wem
        welche welcher welches wann wo warum wie ist sind waren wird werden wurde wurden
        hat haben hatte hatten kann konnte von zu zum zur im auf bei mit aus für durch
        um als und oder aber wenn weil dass auch sich
    """,
    "fr": """
        le la les l un une du de au aux ce cet cette ces c il elle ils elles nous vous
        je j tu lui leur leurs sa ses ta tes notre votre qui que qu quoi quel quelle
        quels quelles quand où pourquoi comment est sont était étaient fut furent être
        été ont avait avaient eu en y à dans sur par avec et ou mais donc comme se
    """,
    "es": """
        el los las uno una unos unas lo del al este esta esto ese esa eso él ella ellos
        ellas yo te nos su sus mi mis quién cual cuál cuando cuándo donde dónde como
        cómo es era eran fue fueron ser sido está están estaba ha han había por para y e
        o u pero
    """,
    "it": """
        i gli uno della dello dei degli delle allo alla ai alle dal dalla nel nella nei
        questo questa lei noi voi io ti si ci vi suo sua che chi quale dove perché è
        sono erano fu furono essere stato stata hanno aveva di da per ed ma
    """,
    "pt": """
        os um uma do dos das no na nos nas ao aos às pelo pela isto esse essa ele ela
        eles elas nós você eu seu quem qual quando onde porque foi foram são tem têm
        tinha em com
    """,
    "nl": """
        het een dit dat deze hij zij ze hem haar wij jij je ik mij zijn wie wat welke
        wanneer waar waarom hoe worden wordt werd werden heeft hebben hadden kan van te
        op aan voor uit door om ook zich
    """,
    "sv": """
        ett det denna detta dessa han hon honom henne hans hennes oss dig jag mig sitt
        vem vad vilken vilket vilka när var varför hur är vara varit blev blir av till
        på vid från som och eller att
    """,
    "ru": """
        и а но или в во на с со к ко по о об от до из у за для при что кто как где когда
        почему какой какая какое какие это этот эта эти тот та те он она оно они его её
        ее их мы вы ты я был была было были есть быть же ли бы
    """,  # noqa: RUF001 - Russian
}
LANGUAGES = {name: frozenset(words.split()) for name, words in _FUNCTION.items()}
"""Function words by language; one that several share stands with the first alone."""

FUNCTION_WORDS = frozenset[str]().union(*LANGUAGES.values())
"""Articles, pronouns, auxiliaries, prepositions and conjunctions of nine languages."""

_NEGATIONS = """
    not no never none nor neither without nobody nothing nowhere hardly barely rarely
    nicht kein keine keinen keinem keiner nie niemals ohne weder ne pas non jamais aucun
    aucune sans ni nunca ningún ninguna ninguno sin tampoco mai nessuno nessuna senza né
    não nenhum nenhuma sem nem niet geen nooit zonder inte ingen inget inga aldrig utan
    не нет ни никогда без 不 没 沒 未 否 無 لا ليس لم لن नहीं minus
"""
NEGATIONS = frozenset(_NEGATIONS.split())
"""Words that negate a statement or a number."""

OR = frozenset({"or", "oder", "ou", "eller", "или"})
"""Words by which a question offers a choice."""

_SPELLINGS = """
    cannot=not two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10
    eleven=11 twelve=12 dollar=$ dollars=$ euro=€ euros=€ kilometer=km kilometers=km
    kilometre=km kilometres=km meters=m metres=m kilograms=kg
"""
SPELLINGS = dict(pair.split("=") for pair in _SPELLINGS.split())
"""Other spellings of small numbers and units: "two" is "2"."""
