"""``python -m corpus.harvest_worlds FROM TO``: take candidates from hostile worlds of these
seeds."""

import sys

from corpus.candidates import FOLDER, Candidates
from corpus.harvest import Harvest
from support.hostile.known import NOT_YET
from support.hostile.life import SWITCHES, switches_of
from support.hostile.soak import live


def main(first: int, last: int) -> None:
    harvest = Harvest()
    harvest.install()
    candidates = Candidates(FOLDER / f"worlds-{first}.jsonl")
    kind = sorted(SWITCHES.keys() - {switch for switch, _ in NOT_YET})
    for seed in range(first, last):
        live(seed, switches_of(seed, kind))
        candidates.add(f"world {seed}", harvest.take())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
