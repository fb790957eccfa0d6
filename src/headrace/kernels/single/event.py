"""One event: find its keys and its place, read what it changes, put it there, say what is new, and move the state along.

Between two phases, and wherever something is lacking (room in an array, a chunk of the reservoir), the kernel stops and says what
it asks for; called again it goes on. Nothing is done twice: a phase that has to be begun again has changed nothing by then.
"""

from __future__ import annotations

import numba as nb

from headrace.kernels import signatures as s
from headrace.kernels.single import identity, memory, moves, rows
from headrace.kernels.single import record as r
from headrace.kernels.single.evaluate import evaluate

PLACING, LOOKING_BACK, INSERTING, SPEAKING, TELLING, MOVING, SAYING = range(7)


@nb.njit(s.integer(s.INTS), cache=True)
def _place(d):  # type: ignore[no-untyped-def]
    if d[r.START] == d[r.STOP]:
        d[r.START] = d[r.STOP] = 0
        line = rows.run_at(d, r.OPEN_RUN)
        line[r.R_BASE], line[r.R_COUNT] = d[r.FIRST], 0
    if d[r.STOP] == d[r.ROOM]:
        return r.MORE_ROWS
    for t in range(d[r.N_TABLES]):
        asked = identity.number(d, d[r.TABLES] + t * r.TABLE)
        if asked != r.DONE:
            d[r.DETAIL] = t
            return asked
    d[r.PLACE] = rows.find_place(d)
    return r.DONE


@nb.njit(s.integer(s.INTS), cache=True)
def _width(d):  # type: ignore[no-untyped-def]
    """Words of an event that is reached: where it is, the outputs that concern it, and its metrics."""
    return 2 + r.SHOWN * d[r.N_METRICS]


@nb.njit(s.integer(s.INTS, s.integer, s.integer), cache=True)
def _reached(d, at, wants):  # type: ignore[no-untyped-def]
    """The outputs in which the event may change what is said of an open row: those that count in it rows of a key of both."""
    shared, outputs = 0, 0
    for t in range(d[r.N_TABLES]):
        same = memory.keys(rows.column(d, r.OPEN_RUN, t))[at] == d[d[r.TABLES] + t * r.TABLE + r.T_NUMBER]
        if same and d[r.SPREADS] >> t & 1:
            shared |= 1 << t
    if shared:
        for o in range(d[r.N_OUTPUTS]):
            if wants & d[r.EARLY] & (1 << o) and d[d[r.OUTPUTS] + o * r.OUTPUT + r.O_SPREAD] & shared:
                outputs |= 1 << o
    return outputs


@nb.njit(s.integer(s.INTS, s.integer, s.integer, s.integer), cache=True)
def _read(d, lines, count, which):  # type: ignore[no-untyped-def]
    """These lines are to be read next, which is done in one place, `event`: a kernel is compiled again in each that calls it."""
    d[r.READ], d[r.READ_COUNT], d[r.READ_FOR] = lines, count, which
    return r.A_READING


@nb.njit(s.integer(s.INTS), cache=True)
def _look_back(d):  # type: ignore[no-untyped-def]
    """What was said of the open rows behind the event that it may change."""
    d[r.REACHED], first, ts = 0, d[r.PLACE], memory.ints(d[r.OPEN_TS])
    while d[r.PEERS] and first > d[r.START] and ts[first - 1] == d[r.TS]:
        first -= 1
    if first == d[r.STOP] or d[r.EARLY] == 0:
        return r.DONE
    width, wants, count = _width(d), memory.ints(d[r.OPEN_WANTS]), 0
    said = memory.lines(d[r.WORK], width)
    for at in range(first, d[r.STOP]):
        outputs = _reached(d, at, wants[at])
        if outputs:
            if (count + 1) * width > d[r.WORK_ROOM]:
                return r.MORE_WORK
            said[count, 0], said[count, 1] = at, outputs
            count += 1
    d[r.REACHED] = count
    return _read(d, d[r.WORK], count, r.FOR_EARLY) if count else r.DONE


@nb.njit(s.boolean(s.INTS, s.integer, s.INTS, s.INTS), cache=True)
def _differs(d, o, was, now):  # type: ignore[no-untyped-def]
    """Whether the metrics of an output are not the same, bit for bit."""
    for i in range(d[o + r.O_N_METRICS]):
        at = (d[o + r.O_METRICS] + i) * r.SHOWN
        if was[2 + at] != now[2 + at]:
            return True
        if now[2 + at] and (was[3 + at] != now[3 + at] or was[4 + at] != now[4 + at]):
            return True
    return False


@nb.njit(s.nothing(s.INTS, s.integer, s.integer, s.integer, s.INTS), cache=True)
def _say(d, output, sign, at, line):  # type: ignore[no-untyped-def]
    """A change of an output, behind the others. There is room."""
    out, o, used = memory.ints(d[r.OUT]), d[r.OUTPUTS] + output * r.OUTPUT, d[r.OUT_USED]
    out[used], out[used + 1], out[used + 2] = output, sign, at - d[r.BEGIN]
    out[used + 3] = memory.ints(d[r.OPEN_TS])[at]
    out[used + 4] = memory.ints(d[r.OPEN_HIGH])[at]
    out[used + 5] = memory.ints(d[r.OPEN_LOW])[at]
    used += r.SAYS
    for i in range(d[o + r.O_N_METRICS] * r.SHOWN):
        out[used + i] = line[2 + d[o + r.O_METRICS] * r.SHOWN + i]
    d[r.OUT_USED] = used + d[o + r.O_N_METRICS] * r.SHOWN


@nb.njit(s.integer(s.INTS, s.integer), cache=True)
def _room_to_say(d, rows_):  # type: ignore[no-untyped-def]
    """Whether so many rows of every output still find room; what is asked for, if not."""
    needed = d[r.OUT_USED] + rows_ * (d[r.N_OUTPUTS] * r.SAYS + d[r.N_METRICS] * r.SHOWN)
    d[r.DETAIL] = needed
    return r.MORE_OUT if needed > d[r.OUT_ROOM] else r.DONE


@nb.njit(s.integer(s.INTS), cache=True)
def _prepare(d):  # type: ignore[no-untyped-def]
    """What is to be read now that the event is there: the rows that were reached, and the event itself, where it counts.

    A line has where a row is, and which of those that were read before it is; -1: none.
    """
    place, reached, width = d[r.PLACE], d[r.REACHED], _width(d)
    wants = memory.ints(d[r.OPEN_WANTS])[place] & d[r.EARLY]
    if (reached + 1) * width > d[r.NOW_ROOM]:
        return r.MORE_NOW
    asked = _room_to_say(d, 2 * reached + 1)
    if asked != r.DONE:
        return asked
    said, now, count = memory.lines(d[r.WORK], width), memory.lines(d[r.NOW], width), 0
    for i in range(reached + 1):  # the event stands between those before it, of its own time, and those behind it
        if wants and count == i and (i == reached or said[i, 0] >= place):
            now[count, 0], now[count, 1] = place, -1
            count += 1
        if i < reached:
            now[count, 0], now[count, 1] = said[i, 0] + (said[i, 0] >= place), i
            count += 1
    return _read(d, d[r.NOW], count, r.FOR_EARLY) if count else r.DONE


@nb.njit(s.nothing(s.INTS, s.integer, s.integer), cache=True)
def _tell(d, output, count):  # type: ignore[no-untyped-def]
    """The changes of one output: first all that is not so any more, then what is."""
    o, width = d[r.OUTPUTS] + output * r.OUTPUT, _width(d)
    said, now = memory.lines(d[r.WORK], width), memory.lines(d[r.NOW], width)
    wants = memory.ints(d[r.OPEN_WANTS])[d[r.PLACE]]
    for sign in (-1, 1):
        for i in range(count):
            j = now[i, 1]
            if j < 0:
                if sign > 0 and wants >> output & 1:
                    _say(d, output, 1, now[i, 0], now[i])
            elif said[j, 1] >> output & 1 and _differs(d, o, said[j], now[i]):
                _say(d, output, sign, now[i, 0], now[i] if sign > 0 else said[j])


@nb.njit(s.nothing(s.INTS, s.integer, s.integer), cache=True)
def _speak(d, outputs, count):  # type: ignore[no-untyped-def]
    """Tell the changes of these outputs, by the lines that were read."""
    for output in range(d[r.N_OUTPUTS]):
        if outputs >> output & 1:
            _tell(d, output, count)


# ---- for good -----------------------------------------------------------------------------------------------------------


@nb.njit(s.integer(s.INTS, s.integer, s.integer, s.integer, s.integer), cache=True)
def _all_ready(d, moving, count, run, at):  # type: ignore[no-untyped-def]
    """Whether all of these tallies, listed with a sign each, have room for a row; what is asked for, if not."""
    for i in range(count):
        if d[moving + 2 * i + 1] > 0:
            asked = moves.ready(d, d[moving + 2 * i], run, at)
            if asked != r.DONE:
                return asked
    return r.DONE


@nb.njit(s.nothing(s.INTS, s.integer, s.integer, s.integer, s.integer, s.integer), cache=True)
def _move_all(d, moving, count, run, at, number):  # type: ignore[no-untyped-def]
    for i in range(count):
        moves.move(d, d[moving + 2 * i], run, at, number, d[moving + 2 * i + 1])
    d[r.MOVES] += 1
    for t in range(d[r.N_TABLES]):
        identity.touch(d, d[r.TABLES] + t * r.TABLE, memory.keys(rows.column(d, run, t))[at])


@nb.njit(s.integer(s.INTS), cache=True)
def _drain(d):  # type: ignore[no-untyped-def]
    """Final rows pass the edges, up to the time that the state moves to; behind the last one they hold their keys no longer."""
    for e in range(d[r.N_EDGES]):
        edge = d[r.EDGES] + e * r.EDGE
        bound = d[r.TARGET] - d[edge + r.E_OFFSET]
        while d[edge + r.E_ROW] < d[r.FIRST]:
            row = d[edge + r.E_ROW]
            run = rows.run_of(d, row)
            if run < 0:
                return r.A_CHUNK
            line = rows.run_at(d, run)
            at = row - line[r.R_BASE]
            if memory.ints(line[r.R_TS])[at] > bound:
                break
            asked = _all_ready(d, d[edge + r.E_MOVES], d[edge + r.E_N_MOVES], run, at)
            if asked != r.DONE:
                return asked
            _move_all(d, d[edge + r.E_MOVES], d[edge + r.E_N_MOVES], run, at, row)
            if e == d[r.N_EDGES] - 1:
                for t in range(d[r.N_TABLES]):
                    identity.let_go(d, d[r.TABLES] + t * r.TABLE, memory.keys(rows.column(d, run, t))[at])
            d[edge + r.E_ROW] = row + 1
    return r.DONE


@nb.njit(s.integer(s.INTS, s.integer), cache=True)
def _read_final(d, at):  # type: ignore[no-untyped-def]
    """Have this row read for the outputs that speak of final rows, once."""
    if memory.ints(d[r.OPEN_WANTS])[at] & d[r.FINAL] == 0 or d[r.SAID] == d[r.FIRST]:
        return r.DONE
    if _width(d) > d[r.NOW_ROOM]:
        return r.MORE_NOW
    asked = _room_to_say(d, 1)
    if asked != r.DONE:
        return asked
    memory.ints(d[r.NOW])[0] = at
    return _read(d, d[r.NOW], 1, r.FOR_FINAL)


@nb.njit(s.nothing(s.INTS), cache=True)
def _say_final(d):  # type: ignore[no-untyped-def]
    """Say of the first open row what was read of it."""
    at, now = d[r.START], memory.lines(d[r.NOW], _width(d))
    wants = memory.ints(d[r.OPEN_WANTS])[at] & d[r.FINAL]
    for output in range(d[r.N_OUTPUTS]):
        if wants >> output & 1:
            _say(d, output, 1, at, now[0])
    d[r.SAID] = d[r.FIRST]


@nb.njit(s.integer(s.INTS), cache=True)
def _take_first(d):  # type: ignore[no-untyped-def]
    """The first open row is final."""
    at = d[r.START]
    if d[r.STORES] and rows.run_at(d, r.LAST_RUN)[r.R_COUNT] == d[r.CHUNK_ROWS]:
        return r.A_SEAL
    asked = _all_ready(d, d[r.ENTERS], d[r.N_ENTERS], r.OPEN_RUN, at)
    if asked == r.DONE:
        asked = _read_final(d, at)
    if asked != r.DONE:
        return asked
    _move_all(d, d[r.ENTERS], d[r.N_ENTERS], r.OPEN_RUN, at, d[r.FIRST])
    if d[r.STORES]:
        rows.store_first(d)
    d[r.TARGET] = max(d[r.TARGET], memory.ints(d[r.OPEN_TS])[at])
    d[r.START] += 1
    d[r.FIRST] += 1
    d[r.LEFT] += 1
    return r.DONE


@nb.njit(s.integer(s.INTS), cache=True)
def _move_on(d):  # type: ignore[no-untyped-def]
    """Move over the rows that are final now, and on with time."""
    if d[r.MOVES] > r.MOST_MOVES:
        return r.CARRY
    ts = memory.ints(d[r.OPEN_TS])
    while True:
        asked = _drain(d)
        if asked != r.DONE:
            return asked
        if d[r.START] == d[r.STOP] or ts[d[r.START]] >= d[r.BEFORE]:
            break
        asked = _take_first(d)
        if asked != r.DONE:
            return asked
    d[r.TARGET] = max(d[r.TARGET], d[r.FRONTIER])
    asked = _drain(d)
    d[r.NEEDED] = d[r.FIRST]
    for e in range(d[r.N_EDGES]):
        d[r.NEEDED] = min(d[r.NEEDED], d[d[r.EDGES] + e * r.EDGE + r.E_ROW])
    return asked


@nb.njit(s.integer(s.INTS), cache=True)
def _begin(d):  # type: ignore[no-untyped-def]
    d[r.LEFT] = d[r.OUT_USED] = d[r.REACHED] = 0
    if d[r.COMES]:
        asked = _place(d)
        if asked != r.DONE:
            return asked
    d[r.BEGIN] = d[r.START]
    d[r.PHASE] = LOOKING_BACK if d[r.COMES] else MOVING
    return r.DONE


@nb.njit(s.integer(s.INTS), cache=True)
def _go_on(d):  # type: ignore[no-untyped-def]
    """From phase to phase, until something has to be read, is asked for, or all is done."""
    asked = r.DONE
    if d[r.PHASE] == PLACING:
        asked = _begin(d)
    if asked == r.DONE and d[r.PHASE] == LOOKING_BACK:
        asked = _look_back(d)
        if asked == r.DONE or asked == r.A_READING:
            d[r.PHASE] = INSERTING
    if asked == r.DONE and d[r.PHASE] == INSERTING:
        for t in range(d[r.N_TABLES]):
            identity.hold(d, d[r.TABLES] + t * r.TABLE)
        rows.insert(d)
        d[r.PHASE] = SPEAKING
    if asked == r.DONE and d[r.PHASE] == SPEAKING:
        asked = _prepare(d)
        if asked == r.DONE or asked == r.A_READING:
            d[r.PHASE] = TELLING if asked == r.A_READING else MOVING
    if asked == r.DONE and d[r.PHASE] == TELLING:
        _speak(d, d[r.EARLY], d[r.DETAIL])
        d[r.PHASE] = MOVING
    if asked == r.DONE and d[r.PHASE] == SAYING:
        _say_final(d)
        d[r.PHASE] = MOVING
    if asked == r.DONE and d[r.PHASE] == MOVING:
        asked = _move_on(d)
        if asked == r.DONE or asked == r.A_READING:
            d[r.PHASE] = SAYING if asked == r.A_READING else PLACING
    return asked


@nb.njit(s.integer(s.integer), cache=True)
def event(address: int) -> int:
    """Take in the event of a record, or time alone, and give what is asked for."""
    d = memory.ints(address)
    while True:
        if d[r.READ_COUNT]:
            asked = evaluate(d, memory.lines(d[r.READ], _width(d)), d[r.READ_COUNT], d[r.READ_FOR])
            if asked != r.DONE:
                return asked
            d[r.DETAIL], d[r.READ_COUNT] = d[r.READ_COUNT], 0  # so many were read
        asked = _go_on(d)
        if asked != r.A_READING:
            return asked
