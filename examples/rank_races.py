"""Rank the participants of races, or of other events with more than two sides.

The ranking is that of the Plackett-Luce model, with 95 % intervals. The program also
tests forecasts on events that were not used for the fit, and lists groups of
participants that never met.
"""

from __future__ import annotations

import argparse
import sys
from itertools import chain, combinations, pairwise

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.model_selection import KFold

from preflearn.core import diagnose
from preflearn.ranking import PlackettLuce

ARGUMENTS = {
    "file": "CSV file with one row per participant of an event",
    "event": "column of the event",
    "participant": "column of the participant",
    "place": "column of the place, where 1 is best; participants whose place is a text, "
    "such as DNF, share the place after all others of their event",
}
ALPHA = 0.1  # 1/ALPHA is the prior variance of the scores
GUESS = np.log(2)  # log loss of guessing who of two is ahead


def read_rankings(frame, event, participant, place):
    """Return one list per event, best first; a tuple of names is a tie."""
    named = frame.dropna(subset=[event, participant, place])
    numbers = pd.to_numeric(named[place], errors="coerce").fillna(np.inf)
    named = named.assign(
        **{place: numbers, participant: named[participant].astype(str)}
    )
    if named.duplicated([event, participant]).any():
        row = named[named.duplicated([event, participant])].iloc[0]
        raise ValueError(f"{row[participant]} is listed twice in {row[event]}")
    places = named.groupby([event, place])[participant].agg(tuple)
    rankings = places.groupby(event).agg(list)
    return [ranking for ranking in rankings if len(ranking) > 1]


def groups_of(rankings):
    """Return the groups of participants that are connected by events."""
    flat = [list(chain.from_iterable(ranking)) for ranking in rankings]
    names = sorted(set(chain.from_iterable(flat)))
    number = {name: k for k, name in enumerate(names)}
    index = [(number[a], number[b]) for row in flat for a, b in pairwise(row)]
    return [{names[k] for k in group} for group in diagnose(index).components]


def standings(rankings):
    """Fit the model, and return a table of scores, standard errors, and ranks."""
    model = PlackettLuce(ALPHA).fit(rankings)
    ranks = model.ranks()
    table = pd.DataFrame({"rank": ranks.rank, "name": model.items_})
    table["score"] = model.coef_.round(2)
    table["standard error"] = model.standard_errors().round(2)
    ends = zip(ranks.low, ranks.high, strict=True)
    table["rank, 95 %"] = [f"{low} to {high}" for low, high in ends]
    flat = chain.from_iterable(chain.from_iterable(rankings))
    counts = pd.Series(list(flat)).value_counts()
    table["events"] = table["name"].map(counts)
    return table.sort_values("rank")


def held_out_losses(rankings):
    """Return the mean log loss of each event, forecast without the events of its fold.

    A forecast is the probability that one participant is ahead of another. A new
    participant has the mean score.
    """
    losses = np.full(len(rankings), np.nan)
    folds = KFold(min(5, len(rankings)), shuffle=True, random_state=0)
    for train, test in folds.split(losses):
        model = PlackettLuce(ALPHA).fit([rankings[k] for k in train])
        score = dict(zip(model.items_, model.coef_, strict=True))
        for k in test:
            leads = [
                score.get(a, 0.0) - score.get(b, 0.0)
                for better, worse in combinations(rankings[k], 2)
                for a in better
                for b in worse
            ]
            losses[k] = np.logaddexp(0.0, -np.array(leads)).mean()
    return losses


def verdict(losses):
    """Say whether the scores forecast better than guessing."""
    gain = GUESS - losses
    half = stats.t.ppf(0.975, len(gain) - 1) * stats.sem(gain)
    better = (
        "forecast better than" if gain.mean() > half else "do not forecast better than"
    )
    return (
        f"The scores {better} guessing: the log loss for who of two is ahead is {losses.mean():.3f} "
        f"in held-out events, and that of guessing is {GUESS:.3f}. The difference is "
        f"{gain.mean():.3f} (95 % interval: {gain.mean() - half:.3f} to {gain.mean() + half:.3f})."
    )


def main(path, *columns):
    rankings = read_rankings(pd.read_csv(path), *columns)
    if len(rankings) < 2:
        raise ValueError(f"{path} has fewer than two events with two different places")
    print(f"{len(rankings):,} events. {verdict(held_out_losses(rankings))}")
    groups = groups_of(rankings)
    if len(groups) > 1:
        print(f"The participants form {len(groups)} groups that never met.")
    for number, group in enumerate(groups, 1):
        own = [row for row in rankings if row[0][0] in group]
        heading = f"Group {number}\n" if len(groups) > 1 else ""
        print(f"\n{heading}{standings(own).to_string(index=False)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, text in ARGUMENTS.items():
        parser.add_argument(name, help=text)
    try:
        main(*vars(parser.parse_args()).values())
    except (KeyError, OSError, ValueError) as error:
        sys.exit(f"error: {error}")
