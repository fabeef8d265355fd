"""Description of a covariance function in words.

See the end of section 4.1 of [Maystre2019]_.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

from preflearn.core.validation import check_real, require
from preflearn.dynamics.covariances.composite import Covariance, Sum
from preflearn.dynamics.covariances.units import YEAR, deviation, length


def in_words(covariance: Covariance, span: float = YEAR) -> str:
    """Describe in words what each part of a covariance implies for the scores.

    Use it to interpret a fitted covariance: the text has numbers and units.

    Parameters
    ----------
    covariance : Covariance
        Covariance whose unit of time is the day, as for dates that `Matches.from_frame`
        read. Rates are per year of 365.25 days, and lengths of at least one year are in
        years.
    span : float
        Time after their origins at which growing parts are compared with the others, in
        days.

    Returns
    -------
    str
        A line for each part of a sum, and a line for the sum.

    Raises
    ------
    ValueError
        If `covariance` is not a Covariance, or the span is not positive.

    References
    ----------
    .. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
       flexible time-dynamics", KDD 2019.

    Examples
    --------
    >>> from preflearn.dynamics import Constant, Matern12
    >>> print(in_words(Constant(0.04) + Matern12(0.36, lengthscale=1461.0)))
    Constant: a level that does not change, of standard deviation 0.2.
    Matern12: a rough curve around 0, of standard deviation 0.6; its correlation falls to 0.37 over 4 years and to one half over 2.77 years.
    Together: a difference of two scores has standard deviation 0.894; of its variance 10 % is from Constant and 90 % from Matern12.
    """  # noqa: E501
    span = check_real(span, "span", "a positive number", least=1e-100)
    require(
        isinstance(covariance, Covariance), covariance, "covariance", "a Covariance"
    )
    parts = (covariance,)
    if isinstance(covariance, Sum):
        parts = covariance.parts
    names = [part.label for part in parts]
    counts = [names[: k + 1].count(name) for k, name in enumerate(names)]
    labels = [
        name + f" ({k})" * (names.count(name) > 1)
        for name, k in zip(names, counts, strict=True)
    ]
    lines = [
        f"{label}: {part.to_text()}." for label, part in zip(labels, parts, strict=True)
    ]
    variances = [variance_after(part, span) for part in parts]
    when = ""
    if any(map(_grows, covariance.leaves())):
        when = f"{length(span)} after the origin, "
    last = f"Together: {when}a difference of two scores has {deviation(2 * sum(variances))}"
    if len(parts) > 1:
        percentages = [f"{100 * v / sum(variances):.3g} % " for v in variances]
        contributions = [
            percentage + "is " * (k == 0) + f"from {labels[k]}"
            for k, percentage in enumerate(percentages)
        ]
        last += (
            f"; of its variance {', '.join(contributions[:-1])} and {contributions[-1]}"
        )
    return "\n".join([*lines, last + "."])


def variance_after(covariance: Covariance, after: float) -> float:
    """Variance of the score a given time after the origin of growing parts."""
    from_zero = covariance.mapped(
        lambda leaf: leaf.changed(origin=0.0) if _grows(leaf) else leaf
    )
    return float(from_zero.gram([0.0, after])[1, 1])


def _grows(leaf: Covariance) -> bool:
    return "origin" in leaf.to_dict()
