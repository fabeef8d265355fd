"""What a covariance function says of the scores, in words (the end of section 4.1 of
[Maystre2019]_).

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
    """Say what each part of a covariance says of the scores, with numbers and units.

    Parameters
    ----------
    covariance : Covariance
        Its unit of time is taken to be the day, as where `Matches.from_frame` read
        dates. Rates are per year of 365.25 days, and lengths from one year on in
        years.
    span : float
        How long after their origins parts that grow are compared with the others, in
        days.

    Returns
    -------
    str
        A line for each part of a sum, and one for the sum.

    Raises
    ------
    ValueError
        If `covariance` is none, or the span is not positive.

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
        shares = [f"{100 * v / sum(variances):.3g} % " for v in variances]
        shares = [
            share + "is " * (k == 0) + f"from {labels[k]}"
            for k, share in enumerate(shares)
        ]
        last += f"; of its variance {', '.join(shares[:-1])} and {shares[-1]}"
    return "\n".join([*lines, last + "."])


def variance_after(covariance: Covariance, after: float) -> float:
    """Of the score, so long after the origin of parts that grow."""
    from_zero = covariance.mapped(
        lambda leaf: leaf.changed(origin=0.0) if _grows(leaf) else leaf
    )
    return float(from_zero.gram([0.0, after])[1, 1])


def _grows(leaf: Covariance) -> bool:
    return "origin" in leaf.to_dict()
