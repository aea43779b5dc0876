"""The answer itself, without what a model says about it: "Sure, here is ..." and "Let me know if ...".

Only what is certain is left out, and nothing is thrown away: `Payload` knows all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import regex

# A line of its own in front of the answer that ends in a colon and speaks of the answer.
_OPENING = regex.compile(
    r"""\s*
    (?: (?:sure|certainly|of\ course|okay|ok|absolutely|great|happy\ to\ help)[,!.]?\s+ [^\n]{0,20}?
        here(?:'s|’s|\ is|\ are|\ it\ is|\ you\ go)\b [^\n:]{0,90}
      | here(?:'s|’s|\ is|\ are)\b [^\n:]{0,40}
        (?:rewritten|revised|corrected|proofread|edited|improved|translated|polished|summarized|translation|rewrite
          |summary|version|the\ text|your\ text)\b [^\n:]{0,50}
      | (?:the|my|a)?\ ?(?:rewritten|revised|corrected|proofread|edited|improved|translated|polished|summarized)
        \ (?:text|version|sentence|paragraph|email|message)\b [^\n:]{0,60}
      | (?:好的|当然可以|当然|没问题|可以)[，,。!！]? [^\n：:]{0,40} (?:如下|下面是|以下是|这是) [^\n：:]{0,30}
      | (?:以下|下面)是 [^\n：:]{0,30}
        (?:译文|翻译|改写|修改|润色|校对|总结|摘要|要点|文字|文本|版本|结果) [^\n：:]{0,12}
      | (?:改写|修改|润色|校对|翻译)后?的?(?:文字|文本|版本|内容|结果|译文)?如下
    )
    [:：][ \t]*\n+
    """,
    regex.VERBOSE | regex.IGNORECASE,
)
# With one of these in its own beginning, the source may be what such a line comes from.
_SPOKEN_OF = regex.compile(r"here(?:'s|’s|\s+is|\s+are)\b|如下|以下|下面", regex.IGNORECASE)
_SPOKEN_OF_CHARS = 120
# The last words of our prompts and what models repeat of them, in front of the answer on its line.
_LABEL = regex.compile(
    r"\s*(?:\*\*)?(?:rewritten text|corrected text|revised text|translation|summary|译文|改正后|改写后|要点)"
    r"(?:\*\*)?[:：](?:\*\*)?\s*",
    regex.IGNORECASE,
)
# A last paragraph that offers more work on the answer.
_CLOSING = regex.compile(
    r"""\n\s*\n\s*
    (?: (?:please\ )?(?:let\ me\ know|feel\ free\ to\ (?:ask|let\ me))\b [^\n]{0,60}
        (?:changes|adjust|revis|edits|modif|tweak|rewrit|translat|further\ (?:help|assist)|anything\ else) [^\n]{0,60}
      | i\ hope\ (?:this|that)\ helps [^\n]{0,40}
      | is\ there\ anything\ else [^\n]{0,60}
      | (?:希望|但愿)(?:这|以上|对)[^\n]{0,20}(?:帮助|有用)[^\n]{0,10}
      | (?:如果|如|若)[^\n]{0,20}(?:修改|调整|帮助)[^\n]{0,20}(?:告诉我|告知|联系|提出)[^\n]{0,10}
    )\s*$
    """,
    regex.VERBOSE | regex.IGNORECASE,
)
_FENCED = regex.compile(r"\s*```[\w-]*\n(?P<inside>.*?)\n```\s*", regex.DOTALL)
_QUOTED = regex.compile(r"\s*(?:\"(?P<inside>[^\"]+)\"|“(?P<inside>[^“”]+)”)\s*")


@dataclass(frozen=True, slots=True)
class Payload:
    """What of an answer is the text that was asked for.

    Attributes:
        before, after: what was left out around it, "" for nothing.
    """

    text: str
    before: str = ""
    after: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out."""
        return not self.before.strip() and not self.after.strip()


def payload(answer: str, source: str) -> Payload:
    """Finds the payload of an answer.

    What the source itself has, such as a label, a code fence or quotation marks around it, belongs to the text. An
    answer that would be empty without them is left as it is.
    """
    start, end = 0, len(answer)
    openings = (_LABEL,) if _SPOKEN_OF.search(source, 0, _SPOKEN_OF_CHARS) else (_OPENING, _LABEL)
    for pattern in openings:
        found = pattern.match(answer, start)
        if found and answer[found.end() :].strip() and not pattern.match(source):
            start = found.end()
    closing = _CLOSING.search(answer, start)
    if closing and answer[start : closing.start()].strip() and not _CLOSING.search("\n\n" + source):
        end = closing.start()
    for pattern, mark in ((_FENCED, ("```",)), (_QUOTED, ('"', "“"))):
        wrapped = pattern.fullmatch(answer, start, end)
        if wrapped and not source.lstrip().startswith(mark):
            start, end = wrapped.span("inside")
    return Payload(answer[start:end], answer[:start], answer[end:])
