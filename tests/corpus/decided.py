"""Decides a case as the code does now, and what people read then."""

from corpus.case import Recorded
from corpus.play import begin, play
from corpus.words import words_of


def decided_anew(recorded: Recorded) -> Recorded:
    carried = begin(recorded.case)
    decided = list(play(recorded.case, carried))
    last = recorded.case.looks[-1]
    return Recorded(
        case=recorded.case, decided=decided, words=words_of(carried.at(last), last.fleet)
    )
