"""EXP, LN, POWER and the inverse trigonometry to the last bit: the method of Sun's fdlibm, which Java's StrictMath promises.

SIN, COS and TAN are not here: Spark asks Java's Math for them, whose last bit is that of the processor.
"""

from __future__ import annotations

import math
from struct import Struct

_DOUBLE, _WORD = Struct("<d"), Struct("<q")
_LOW = 0xFFFFFFFF
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_INVERSE_LN2 = 1.44269504088896338700e00
_EXP = (
    1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05, -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)  # fmt: skip
_LOG = (
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
    1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
)  # fmt: skip


def _bits(x: float) -> int:
    found: int = _WORD.unpack(_DOUBLE.pack(x))[0]
    return found


def _high(x: float) -> int:
    """The upper half of the bits, with the sign."""
    return _bits(x) >> 32


def _of_bits(bits: int) -> float:
    found: float = _DOUBLE.unpack(_WORD.pack(bits))[0]
    return found


def _cut(x: float) -> float:
    """Without the lower half of its bits."""
    return _of_bits(_bits(x) & ~_LOW)


def _with_high(x: float, high: int) -> float:
    return _of_bits((high << 32) | (_bits(x) & _LOW))


def _horner(x: float, factors: tuple[float, ...]) -> float:
    found = factors[-1]
    for factor in reversed(factors[:-1]):
        found = factor + x * found
    return found


def exp(x: float) -> float:
    high = _high(x) & 0x7FFFFFFF
    if x != x or x == math.inf:
        return x
    if x > 7.09782712893383973096e02:
        return math.inf
    if x < -7.45133219101941108420e02:
        return 0.0
    upper, lower, k = 0.0, 0.0, 0
    if high > 0x3FD62E42:
        if high < 0x3FF0A2B2:
            k = -1 if x < 0 else 1
            upper, lower = x - k * _LN2_HIGH, k * _LN2_LOW
        else:
            k = int(_INVERSE_LN2 * x + (-0.5 if x < 0 else 0.5))
            upper, lower = x - k * _LN2_HIGH, k * _LN2_LOW
        x = upper - lower
    elif high < 0x3E300000:
        return 1.0 + x
    t = x * x
    c = x - t * _horner(t, _EXP)
    if k == 0:
        return 1.0 - ((x * c) / (c - 2.0) - x)
    return math.ldexp(1.0 - ((lower - (x * c) / (2.0 - c)) - upper), k)


def logarithm(x: float) -> float | None:
    """LN: NULL up to zero, as in Spark."""
    return None if x <= 0.0 else _log(x)


def logarithm_to(base: float, x: float) -> float | None:
    """LOG(base, x): NULL up to zero, of either."""
    if base <= 0.0 or x <= 0.0:
        return None
    top, bottom = _log(x), _log(base)
    if bottom == 0.0:
        return math.nan if top == 0.0 or top != top else math.copysign(math.inf, top)
    return top / bottom


def logarithm_of_ten(x: float) -> float | None:
    if x <= 0.0:
        return None
    if x != x or x == math.inf:
        return x
    k = 0
    if x < 2.0**-1022:
        x, k = x * 2.0**54, -54
    high = _high(x)
    k += (high >> 20) - 1023
    below = int(k < 0)
    x = _with_high(x, (high & 0xFFFFF) | ((0x3FF - below) << 20))
    y = float(k + below)
    z = y * 3.69423907715893078616e-13 + 4.34294481903251816668e-01 * _log(x)
    return z + y * 3.01029995663611771306e-01


def _log(x: float) -> float:
    """Of a positive number, or NaN."""
    if x != x or x == math.inf:
        return x
    k = 0
    if x < 2.0**-1022:
        x, k = x * 2.0**54, -54
    high = _high(x)
    k += (high >> 20) - 1023
    high &= 0xFFFFF
    i = (high + 0x95F64) & 0x100000
    x = _with_high(x, high | (i ^ 0x3FF00000))
    k += i >> 20
    f = x - 1.0
    if 0xFFFFF & (2 + high) < 3:
        return _log_near_one(f, float(k))
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (_LOG[1] + w * (_LOG[3] + w * _LOG[5]))
    odd = z * (_LOG[0] + w * (_LOG[2] + w * (_LOG[4] + w * _LOG[6])))
    r, dk = odd + even, float(k)
    if (high - 0x6147A) | (0x6B851 - high) > 0:
        half = 0.5 * f * f
        if k == 0:
            return f - (half - s * (half + r))
        return dk * _LN2_HIGH - ((half - (s * (half + r) + dk * _LN2_LOW)) - f)
    if k == 0:
        return f - s * (f - r)
    return dk * _LN2_HIGH - ((s * (f - r) - dk * _LN2_LOW) - f)


def _log_near_one(f: float, dk: float) -> float:
    if f == 0.0:
        return 0.0 if dk == 0.0 else dk * _LN2_HIGH + dk * _LN2_LOW
    r = f * f * (0.5 - 0.33333333333333333 * f)
    return f - r if dk == 0.0 else dk * _LN2_HIGH - ((r - dk * _LN2_LOW) - f)


_POW = (
    5.99999999999994648725e-01, 4.28571428578550184252e-01, 3.33333329818377432918e-01, 2.72728123808534006489e-01,
    2.30660745775561754067e-01, 2.06975017800338417784e-01,
)  # fmt: skip
_BASES = ((1.0, 0.0, 0.0), (1.5, 5.84962487220764160156e-01, 1.35003920212974897128e-08))
_CP, _CP_HIGH, _CP_LOW = 9.61796693925975554329e-01, 9.61796700954437255859e-01, -7.02846165095275826516e-09
_IVLN2, _IVLN2_HIGH, _IVLN2_LOW = 1.44269504088896338700e00, 1.44269502162933349609e00, 1.92596299112661746887e-08
_LG2, _LG2_HIGH, _LG2_LOW = 6.93147180559945286227e-01, 6.93147182464599609375e-01, -1.90465429995776804525e-09
_OVER = 8.0085662595372944372e-17


def power(x: float, y: float) -> float:
    """POWER with the special cases of Java."""
    if y == 0.0:
        return 1.0
    if x != x or y != y:
        return math.nan
    if y == 2.0:
        return x * x
    if y == 0.5 and x > -math.inf:
        return math.sqrt(x + 0.0) if x >= 0.0 else math.nan
    size = abs(x)
    if abs(y) == 1.0:
        return x if y == 1.0 else _over(x)
    if abs(y) == math.inf:
        return math.nan if size == 1.0 else abs(y) if (size > 1.0) == (y > 0) else 0.0
    odd, whole = _parity(y)
    if x == 0.0 or size == math.inf or size == 1.0:
        return _power_of_special(x, y, odd=odd, whole=whole)
    if x < 0.0 and not whole:
        return math.nan
    return _power(size, y, -1.0 if x < 0.0 and odd else 1.0)


def _over(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0.0 else 1.0 / x


def _parity(y: float) -> tuple[bool, bool]:
    """Whether it is odd, and whether it is a whole number."""
    whole = y == math.floor(y)
    return whole and abs(y) < 2.0**53 and int(y) % 2 == 1, whole


def _power_of_special(x: float, y: float, *, odd: bool, whole: bool) -> float:
    """Of zeros, infinities and ones."""
    size = abs(x)
    found = size if y > 0 else _over(size)
    if math.copysign(1.0, x) < 0:
        if size == 1.0 and not whole:
            return math.nan
        if odd:
            return -found
    return found


def _power(x: float, y: float, sign: float) -> float:
    """X is positive, and neither of them is special."""
    high = _high(x)
    if _high(y) & 0x7FFFFFFF > 0x41E00000:
        if high < 0x3FEFFFFF:
            return sign * math.inf if y < 0 else sign * 0.0
        if high > 0x3FF00000:
            return sign * math.inf if y > 0 else sign * 0.0
        t = x - 1.0
        w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
        u, v = _IVLN2_HIGH * t, t * _IVLN2_LOW - w * _IVLN2
        t1 = _cut(u + v)
        t2 = v - (t1 - u)
    else:
        t1, t2 = _log2(x)
    y1 = _cut(y)
    lower, upper = (y - y1) * t1 + y * t2, y1 * t1
    z = lower + upper
    if z >= 1024.0 and (z != 1024.0 or lower + _OVER > z - upper):
        return sign * math.inf
    if z <= -1075.0 and (z != -1075.0 or lower <= z - upper):
        return sign * 0.0
    return sign * _exp2(lower, upper, z)


def _log2(x: float) -> tuple[float, float]:
    """In two parts."""
    n = 0
    if x < 2.0**-1022:
        x, n = x * 2.0**53, -53
    high = _high(x)
    n += (high >> 20) - 0x3FF
    j = high & 0xFFFFF
    high = j | 0x3FF00000
    k = 0
    if 0x3988E < j < 0xBB67A:
        k = 1
    elif j >= 0xBB67A:
        n, high = n + 1, high - 0x100000
    x = _with_high(x, high)
    base, shift_high, shift_low = _BASES[k]
    u, v = x - base, 1.0 / (x + base)
    ss = u * v
    s_high = _cut(ss)
    t_high = _of_bits((((high >> 1) | 0x20000000) + 0x80000 + (k << 18)) << 32)
    t_low = x - (t_high - base)
    s_low = v * ((u - s_high * t_high) - s_high * t_low)
    s2 = ss * ss
    r = s2 * s2 * _horner(s2, _POW)
    r += s_low * (s_high + ss)
    s2 = s_high * s_high
    t_high = _cut(3.0 + s2 + r)
    t_low = r - ((t_high - 3.0) - s2)
    u, v = s_high * t_high, s_low * t_high + t_low * ss
    p_high = _cut(u + v)
    p_low = v - (p_high - u)
    z_high, z_low = _CP_HIGH * p_high, _CP_LOW * p_high + p_low * _CP + shift_low
    t = float(n)
    t1 = _cut(((z_high + z_low) + shift_high) + t)
    return t1, z_low - (((t1 - t) - shift_high) - z_high)


def _exp2(lower: float, upper: float, z: float) -> float:
    """2 to the power of the sum of both, which is about z."""
    high = _high(z)
    i, n = high & 0x7FFFFFFF, 0
    if i > 0x3FE00000:
        k = (i >> 20) - 0x3FF
        n = i + (0x100000 >> (k + 1))
        k = (n >> 20) - 0x3FF
        t = _of_bits((n & ~(0xFFFFF >> k)) << 32)
        n = ((n & 0xFFFFF) | 0x100000) >> (20 - k)
        if high < 0:
            t, n = -t, -n
        upper -= t
    t = _cut(lower + upper)
    u, v = t * _LG2_HIGH, (lower - (t - upper)) * _LG2 + t * _LG2_LOW
    z = u + v
    w = v - (z - u)
    t = z * z
    t1 = z - t * _horner(t, _EXP)
    r = (z * t1) / (t1 - 2.0) - (w + z * w)
    return math.ldexp(1.0 - (r - z), n)


_ATAN = (
    3.33333333333329318027e-01, -1.99999999998764832476e-01, 1.42857142725034663711e-01, -1.11111104054623557880e-01,
    9.09088713343650656196e-02, -7.69187620504482999495e-02, 6.66107313738753120669e-02, -5.83357013379057348645e-02,
    4.97687799461593236017e-02, -3.65315727442169155270e-02, 1.62858201153657823623e-02,
)  # fmt: skip
_ATAN_HIGH = (4.63647609000806093515e-01, 7.85398163397448278999e-01, 9.82793723247329054082e-01, 1.57079632679489655800e00)
_ATAN_LOW = (2.26987774529616870924e-17, 3.06161699786838301793e-17, 1.39033110312309984516e-17, 6.12323399573676603587e-17)
_PI, _PI_LOW = 3.14159265358979311600e00, 1.2246467991473531772e-16
_HALF_HIGH, _HALF_LOW, _QUARTER = 1.57079632679489655800e00, 6.12323399573676603587e-17, 7.85398163397448278999e-01
_TOP = (
    1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01, -4.00555345006794114027e-02,
    7.91534994289814532176e-04, 3.47933107596021167570e-05,
)  # fmt: skip
_BOTTOM = (
    1.0, -2.40339491173441421878e00, 2.02094576023350569471e00, -6.88283971605453293030e-01, 7.70381505559019352791e-02,
)  # fmt: skip


def atan(x: float) -> float:
    size = abs(x)
    if x != x:
        return x
    if size >= 2.0**66:
        return math.copysign(_ATAN_HIGH[3] + _ATAN_LOW[3], x)
    high = _high(size)
    if high < 0x3FDC0000:
        return x if high < 0x3E200000 else x - x * _atan_sum(x)
    if high < 0x3FE60000:
        part, size = 0, (2.0 * size - 1.0) / (2.0 + size)
    elif high < 0x3FF30000:
        part, size = 1, (size - 1.0) / (size + 1.0)
    elif high < 0x40038000:
        part, size = 2, (size - 1.5) / (1.0 + 1.5 * size)
    else:
        part, size = 3, -1.0 / size
    z = _ATAN_HIGH[part] - ((size * _atan_sum(size) - _ATAN_LOW[part]) - size)
    return -z if x < 0 else z


def _atan_sum(x: float) -> float:
    z = x * x
    w = z * z
    return z * _horner(w, _ATAN[0::2]) + w * _horner(w, _ATAN[1::2])


def _ratio(t: float) -> float:
    return t * _horner(t, _TOP) / _horner(t, _BOTTOM)


def asin(x: float) -> float:
    size = abs(x)
    if not size <= 1.0:
        return math.nan
    if size == 1.0:
        return x * _HALF_HIGH + x * _HALF_LOW
    if size < 0.5:
        return x if _high(size) < 0x3E400000 else x + x * _ratio(x * x)
    t = (1.0 - size) * 0.5
    s, ratio = math.sqrt(t), _ratio(t)
    if _high(size) >= 0x3FEF3333:
        t = _HALF_HIGH - (2.0 * (s + s * ratio) - _HALF_LOW)
    else:
        w = _cut(s)
        c = (t - w * w) / (s + w)
        t = _QUARTER - ((2.0 * s * ratio - (_HALF_LOW - 2.0 * c)) - (_QUARTER - 2.0 * w))
    return t if x > 0 else -t


def acos(x: float) -> float:
    size = abs(x)
    if not size <= 1.0:
        return math.nan
    if size == 1.0:
        return 0.0 if x > 0 else _PI + 2.0 * _HALF_LOW
    if size < 0.5:
        if _high(size) <= 0x3C600000:
            return _HALF_HIGH + _HALF_LOW
        return _HALF_HIGH - (x - (_HALF_LOW - x * _ratio(x * x)))
    z = (1.0 - size) * 0.5
    s, ratio = math.sqrt(z), _ratio(z)
    if x < 0:
        return _PI - 2.0 * (s + (ratio * s - _HALF_LOW))
    df = _cut(s)
    c = (z - df * df) / (s + df)
    return 2.0 * (df + (ratio * s + c))


def atan2(y: float, x: float) -> float:
    """ATAN2. Spark adds 0.0 to both, so that no zero is below zero."""
    y, x = y + 0.0, x + 0.0
    if x != x or y != y:
        return math.nan
    if x == 1.0:
        return atan(y)
    below, left = y < 0, x < 0
    if y == 0.0:
        return _PI if left else y
    if x == 0.0:
        return -_HALF_HIGH if below else _HALF_HIGH
    if abs(x) == math.inf or abs(y) == math.inf:
        return math.copysign(_of_infinities(y, x), y)
    k = ((_high(y) & 0x7FFFFFFF) - (_high(x) & 0x7FFFFFFF)) >> 20
    if k > 60:
        z = _HALF_HIGH + 0.5 * _PI_LOW
    elif left and k < -60:
        z = 0.0
    else:
        z = atan(abs(y / x))
    if not left:
        return -z if below else z
    return (z - _PI_LOW) - _PI if below else _PI - (z - _PI_LOW)


def _of_infinities(y: float, x: float) -> float:
    if abs(x) != math.inf:
        return _HALF_HIGH
    if abs(y) == math.inf:
        return _QUARTER if x > 0 else 3.0 * _QUARTER
    return 0.0 if x > 0 else _PI
