"""English function words, which tell memories apart from nothing."""

from __future__ import annotations

from typing import Final

STOP_WORDS: Final = frozenset(
    """
    a an the this that these those such one i me my mine myself we us our ours ourselves you your
    yours yourself yourselves he him his himself she her hers herself it its itself they them
    their theirs themselves who whom whose which what when where why how am is are was were be
    been being do does did doing done don didn doesn have has had having haven hasn hadn isn aren
    wasn weren can cannot could couldn will would wouldn shall should shouldn may might must
    ought and or but if then else because as until while although though since unless whether
    not no nor so than too very just also only of at by for with about against between into
    through during before after above below to from up down in out on off over under again
    further once here there all any both each few more most other some own same please tell let
    get got s t m d ll re ve
    """.split()  # noqa: SIM905 - a paragraph reads better than a column of quotes
)
