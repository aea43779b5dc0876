"""Languages: their names for prompts, the detection of a text's language, and the other one of the user's two.

Scripts decide first, because they are certain. Han characters are weighed: one stands for about two letters (a Chinese
word has about two characters where an English one has five letters), and everything that looks like code, a link or a
number is left out before counting, so that identifiers in a Chinese text do not turn it English.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """A language that texts are in.

    Attributes:
        code: ISO 639-1, "und" for the unknown one.
        english: its name in English prompts.
        chinese: its name in Chinese prompts.
        script: "latin", "han", "kana", "hangul", "cyrillic", ...
    """

    code: str
    english: str
    chinese: str
    script: str


UNKNOWN = Language("und", "the same language", "原文的语言", "")

LANGUAGES: dict[str, Language] = {
    language.code: language
    for language in (
        Language("en", "English", "英文", "latin"),
        Language("zh", "Simplified Chinese", "简体中文", "han"),
        Language("ja", "Japanese", "日文", "kana"),
        Language("ko", "Korean", "韩文", "hangul"),
        Language("de", "German", "德文", "latin"),
        Language("fr", "French", "法文", "latin"),
        Language("es", "Spanish", "西班牙文", "latin"),
        Language("pt", "Portuguese", "葡萄牙文", "latin"),
        Language("it", "Italian", "意大利文", "latin"),
        Language("nl", "Dutch", "荷兰文", "latin"),
        Language("pl", "Polish", "波兰文", "latin"),
        Language("sv", "Swedish", "瑞典文", "latin"),
        Language("da", "Danish", "丹麦文", "latin"),
        Language("fi", "Finnish", "芬兰文", "latin"),
        Language("cs", "Czech", "捷克文", "latin"),
        Language("hu", "Hungarian", "匈牙利文", "latin"),
        Language("ro", "Romanian", "罗马尼亚文", "latin"),
        Language("tr", "Turkish", "土耳其文", "latin"),
        Language("vi", "Vietnamese", "越南文", "latin"),
        Language("id", "Indonesian", "印度尼西亚文", "latin"),
        Language("ru", "Russian", "俄文", "cyrillic"),
        Language("uk", "Ukrainian", "乌克兰文", "cyrillic"),
        Language("bg", "Bulgarian", "保加利亚文", "cyrillic"),
        Language("ar", "Arabic", "阿拉伯文", "arabic"),
        Language("fa", "Persian", "波斯文", "arabic"),
        Language("he", "Hebrew", "希伯来文", "hebrew"),
        Language("el", "Greek", "希腊文", "greek"),
        Language("hi", "Hindi", "印地文", "devanagari"),
        Language("th", "Thai", "泰文", "thai"),
    )
}

# First and last code point of a script's letters; what is missing counts as no script.
_RANGES = (
    (0x0041, 0x005A, "latin"),
    (0x0061, 0x007A, "latin"),
    (0x00C0, 0x024F, "latin"),
    (0x0370, 0x03FF, "greek"),
    (0x0400, 0x052F, "cyrillic"),
    (0x0590, 0x05FF, "hebrew"),
    (0x0600, 0x077F, "arabic"),
    (0x0900, 0x097F, "devanagari"),
    (0x0E00, 0x0E7F, "thai"),
    (0x1100, 0x11FF, "hangul"),
    (0x1E00, 0x1EFF, "latin"),
    (0x3041, 0x30FF, "kana"),
    (0x3400, 0x4DBF, "han"),
    (0x4E00, 0x9FFF, "han"),
    (0xAC00, 0xD7AF, "hangul"),
    (0xF900, 0xFAFF, "han"),
    (0xFF66, 0xFF9D, "kana"),
    (0x20000, 0x323AF, "han"),
)
# Letters that one character stands for when a text mixes scripts.
_WEIGHTS = {"han": 2.0, "kana": 1.5, "hangul": 2.0}
# Japanese writes about half of its characters in kana, Chinese none; a Chinese text may quote a Japanese word.
_KANA_SHARE_OF_JAPANESE = 0.15
_LONG_TEXT_CHARS = 20_000

# Every alternative begins at a word or is bounded: a line of 20,000 characters without a space is no reason to wait.
_NOT_PROSE = re.compile(
    r"```.*?```|`[^`\n]*`"  # code in Markdown
    r"|\b\w+://\S+|\bwww\.\S+|[^\s@]{1,64}@[^\s@]{1,255}\.\w+"  # links and addresses
    r"|\b[A-Za-z0-9_]+(?:(?:\.|->|::|/|\\)[A-Za-z0-9_]+)+(?:\(\))?"  # dotted names and paths
    r"|\b[A-Za-z_]\w*\([^()\n]*\)"  # calls
    r"|\b[A-Za-z]+_\w*|\b[a-z]+[A-Z]\w*|\b(?:[A-Z][a-z0-9]+){2,}\b"  # snake_case, camelCase, PascalCase
    r"|\b[A-Za-z]*\d\w*",  # names with digits
    re.DOTALL | re.ASCII,
)


def _script_of(char: str) -> str:
    point = ord(char)
    return next((script for low, high, script in _RANGES if low <= point <= high), "") if char.isalpha() else ""


def _weights(text: str) -> Counter[str]:
    scripts: Counter[str] = Counter()
    for char, count in Counter(text).items():
        script = _script_of(char)
        if script:
            scripts[script] += count
    return Counter({script: round(count * _WEIGHTS.get(script, 1.0) * 2) for script, count in scripts.items()})


def script_of(text: str) -> str:
    """The script that carries a text: "latin", "han", "kana" (Japanese, its Han included), ..., "" without letters.

    Code, links and numbers count only where there is nothing else. Reads the first 20,000 characters.
    """
    head = text[:_LONG_TEXT_CHARS]
    weights = _weights(_NOT_PROSE.sub(" ", head)) or _weights(head)
    if not weights:
        return ""
    east_asian = weights["han"] + weights["kana"]
    if east_asian and weights["kana"] >= _KANA_SHARE_OF_JAPANESE * east_asian:
        weights["kana"], weights["han"] = east_asian, 0
    return max(weights, key=lambda script: weights[script])


@functools.cache
def _identifier() -> Callable[[str], list[tuple[str, float]]]:
    """The statistical identifier for languages of one script; loading takes about half a second, a text about 1 ms."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    rank: Callable[[str], list[tuple[str, float]]] = identifier.rank
    return rank


def needs_identifier(languages: Sequence[Language]) -> bool:
    """Whether two of the languages share a script, so that detection reads words and not only letters."""
    scripts = [language.script for language in languages]
    return len(set(scripts)) < len(scripts)


def preload() -> None:
    """Loads the identifier, for a background thread at start, where `needs_identifier` says so."""
    _identifier()


def detect(text: str, candidates: Sequence[Language] = ()) -> Language:
    """Finds the language of a text.

    Args:
        candidates: the user's languages in their order of preference. Among languages of one script only these are
            told apart; without candidates all of `LANGUAGES` are.

    Returns:
        UNKNOWN for a text without letters. A text in a script of which no candidate is gets the script's first
        language in `LANGUAGES`. Where the identifier sees no difference ("OK", "Report") the first candidate wins.
    """
    script = script_of(text)
    known = [language for language in LANGUAGES.values() if language.script == script]
    if not known:
        return UNKNOWN
    possible = [language for language in candidates if language.script == script] or known
    if len(possible) == 1 or (not candidates and script == "han"):
        return possible[0]
    if candidates and possible is known:
        return known[0]
    scores = dict(_identifier()(_NOT_PROSE.sub(" ", text[:_LONG_TEXT_CHARS])))
    return max(possible, key=lambda language: scores.get(language.code, 0.0))


def other_language(text: str, first: Language, second: Language) -> Language:
    """The target of a translation: the second language for texts in the first or without letters, else the first."""
    return second if detect(text, (first, second)) in (first, UNKNOWN) else first


@dataclass(frozen=True, slots=True)
class Languages:
    """The two languages of a user: `first` is the one they read best."""

    first: Language
    second: Language

    @classmethod
    def resolve(cls, first: str, second: str, locale_name: str) -> Languages:
        """Makes the pair from the settings.

        Args:
            first: a code, or "auto" for the language of the system.
            second: a code; where it equals the first, English takes its place, or Chinese beside English.
            locale_name: of the system, e.g. "de_DE.UTF-8".
        """
        code = locale_name[:2].lower() if first == "auto" else first
        one = LANGUAGES.get(code, LANGUAGES["en"])
        two = LANGUAGES.get(second, LANGUAGES["en"])
        if one is two:
            two = LANGUAGES["zh" if one.code == "en" else "en"]
        return cls(one, two)
