"""What Quorum costs: a fit beside one of PRODEN's, and the time of a prediction.

python benchmarks/quorum.py

Both sides of the ratio are timed in turn with the same epochs' share (Quorum's 100 to PRODEN's
200 are 5 to 10), since an epoch costs the same at any time.
"""

from __future__ import annotations

import argparse
from functools import partial

from common import candidates, clouds, ratio, report, rounds  # first, since it sets threads up

from demur import Proden, Quorum


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5, help="of Quorum; PRODEN has twice them")
    args = parser.parse_args()
    for n, d, l in ((1_600, 76, 10), (6_000, 51, 6), (8_800, 16, 10)):
        X, y, new = clouds(n, d, l, 10_000)
        S = candidates(y, l, 0.3)
        quorum = Quorum(n_epochs=args.epochs, random_state=0, device="cpu")
        proden = Proden(n_epochs=2 * args.epochs, random_state=0, device="cpu")
        times = rounds(partial(quorum.fit, X, S), partial(proden.fit, X, S), repeats=args.repeats)
        found = ratio(1, 0, times)
        report(measure="fit against PRODEN", n=n, d=d, l=l, **found)
    X, y, new = clouds(10_000, 50, 10, 10_000)
    quorum.fit(X, candidates(y, 10, 0.3))
    times = rounds(partial(quorum.predict, new), repeats=args.repeats)
    report(measure="predict", n=10_000, rows=10_000, d=50, seconds=float(times.min()))


if __name__ == "__main__":
    main()
