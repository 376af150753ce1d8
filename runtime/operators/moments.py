"""Variances, covariances and regressions from double-double sums, a column of groups at a time.

The sums cancel: on epoch seconds the squares are some 10^24 and their spread is
1. Carried and finished in double-double they keep the digits that matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .finishing import Groups

Floats = np.ndarray[Any, np.dtype[np.float64]]
Pair = tuple[Floats, Floats]


def _two_sum(left: Floats, right: Floats) -> Pair:
    total = left + right
    part = total - left
    return total, (left - (total - part)) + (right - part)


def _two_product(left: Floats, right: Floats) -> Pair:
    product = left * right
    spread = 134217729.0 * left
    left_high = spread - (spread - left)
    left_low = left - left_high
    spread = 134217729.0 * right
    right_high = spread - (spread - right)
    right_low = right - right_high
    error = (left_high * right_high - product) + left_high * right_low + left_low * right_high
    return product, error + left_low * right_low


def _multiply(left: Pair, right: Pair) -> Pair:
    high, low = _two_product(left[0], right[0])
    return _two_sum(high, low + (left[0] * right[1] + left[1] * right[0]))


def _divide(pair: Pair, by: Floats) -> Pair:
    quotient = pair[0] / by
    back, error = _two_product(quotient, by)
    return _two_sum(quotient, ((pair[0] - back) - error + pair[1]) / by)


def _subtract(left: Pair, right: Pair) -> Floats:
    high, low = _two_sum(left[0], -right[0])
    return high + (low + left[1] - right[1])


def _value(pair: Pair) -> Floats:
    return pair[0] + pair[1]


def finish(groups: Groups, at: dict[str, int], options: dict[str, Any]) -> tuple[Floats, Any]:
    """Values of one function and where they are not NULL."""
    function = options["function"]
    count = groups.words(at["count"])
    if function == "regr_count":
        return count, None
    n = np.maximum(count, 1).astype(np.float64)
    with np.errstate(all="ignore"):
        values, valid = _FUNCTIONS[function](_Sums(groups, at, options, n), count)
    return values, valid


class _Sums:
    """Central sums of squares and products of every group."""

    def __init__(self, groups: Groups, at: dict[str, int], options: dict[str, Any], n: Floats) -> None:
        self._groups, self._at, self._n = groups, at, n
        self._scale = {name: 10.0 ** options.get(f"scale_{name}", 0) for name in "xy"}

    def _pair(self, name: str) -> Pair:
        return self._groups.floats(self._at[name]), self._groups.floats(self._at[name] + 8)

    def mean(self, name: str) -> Floats:
        return _value(_divide(self._pair(f"s{name}"), self._n)) / self._scale[name]

    def square(self, name: str) -> Floats:
        """Sum of squared distances from the mean."""
        total = self._pair(f"s{name}")
        central = _subtract(self._pair(f"s{name}{name}"), _divide(_multiply(total, total), self._n))
        same = self._groups.words(self._at[f"min{name}"]) == self._groups.words(self._at[f"max{name}"])
        # A single infinity or NaN makes every answer NaN, also where all values are the same.
        finite = np.isfinite(total[0])
        central = np.where(same & finite, 0.0, np.maximum(central, 0.0))
        return np.where(finite, central, np.nan) / self._scale[name] ** 2

    def product(self) -> Floats:
        """Sum of products of the distances from both means."""
        total_x, total_y = self._pair("sx"), self._pair("sy")
        central = _subtract(self._pair("sxy"), _divide(_multiply(total_x, total_y), self._n))
        for name in "xy":
            same = self._groups.words(self._at[f"min{name}"]) == self._groups.words(self._at[f"max{name}"])
            central = np.where(same & np.isfinite(self._pair(f"s{name}")[0]), 0.0, central)
        return central / (self._scale["x"] * self._scale["y"])


def _var_pop(sums: _Sums, count: Any) -> Any:
    return sums.square("x") / np.maximum(count, 1), count > 0


def _var_samp(sums: _Sums, count: Any) -> Any:
    return sums.square("x") / np.maximum(count - 1, 1), count > 1


def _root(variance: Any) -> Any:
    def finish_root(sums: _Sums, count: Any) -> Any:
        values, valid = variance(sums, count)
        return np.sqrt(values), valid

    return finish_root


def _covar_pop(sums: _Sums, count: Any) -> Any:
    return sums.product() / np.maximum(count, 1), count > 0


def _covar_samp(sums: _Sums, count: Any) -> Any:
    return sums.product() / np.maximum(count - 1, 1), count > 1


def _corr(sums: _Sums, count: Any) -> Any:
    x, y = sums.square("x"), sums.square("y")
    # Each root apart: the product of two sums of squares may overflow.
    values = sums.product() / (np.sqrt(x) * np.sqrt(y))
    return np.clip(values, -1.0, 1.0), (count > 0) & (x != 0) & (y != 0)


def _regr_slope(sums: _Sums, count: Any) -> Any:
    x = sums.square("x")
    return sums.product() / x, (count > 0) & (x != 0)


def _regr_intercept(sums: _Sums, count: Any) -> Any:
    slope, valid = _regr_slope(sums, count)
    return sums.mean("y") - slope * sums.mean("x"), valid


def _regr_r2(sums: _Sums, count: Any) -> Any:
    x, y = sums.square("x"), sums.square("y")
    ratio = sums.product() / (np.sqrt(x) * np.sqrt(y))
    return np.where(y == 0, 1.0, np.minimum(ratio * ratio, 1.0)), (count > 0) & (x != 0)


_FUNCTIONS: dict[str, Any] = {
    "var_pop": _var_pop,
    "var_samp": _var_samp,
    "stddev_pop": _root(_var_pop),
    "stddev_samp": _root(_var_samp),
    "covar_pop": _covar_pop,
    "covar_samp": _covar_samp,
    "corr": _corr,
    "regr_avgx": lambda sums, count: (sums.mean("x"), count > 0),
    "regr_avgy": lambda sums, count: (sums.mean("y"), count > 0),
    "regr_sxx": lambda sums, count: (sums.square("x"), count > 0),
    "regr_syy": lambda sums, count: (sums.square("y"), count > 0),
    "regr_sxy": lambda sums, count: (sums.product(), count > 0),
    "regr_slope": _regr_slope,
    "regr_intercept": _regr_intercept,
    "regr_r2": _regr_r2,
}
