"""What one event a call is told: one array of integers, the addresses of all other arrays among them.

First a head, then the event with its inputs, then a line for every table, vector, edge, .. of the stage. Whoever changes an array
for another writes its address anew (`steps/windows/single/`).
"""

from __future__ import annotations

# ---- the head -----------------------------------------------------------------------------------------------------------
(
    PHASE,  # how far this call is
    DETAIL, DETAIL_TOO,  # what is asked for, more closely
    START, STOP, ROOM,  # of the open rows in their arrays, and how long those are
    FIRST,  # the number of the first open row
    BEGIN,  # START as it was when the event came
    PLACE,  # where the event was put
    LEFT,  # so many open rows have become final in this call
    OUT_USED,  # words
    NEEDED,  # the lowest number of a row that some edge still has to pass
    TARGET,  # up to this time the state has moved
    SAID,  # the number of the last final row that was read
    MOVES,  # rows that have entered or left some window
    TABLES, N_TABLES, VECTORS, N_VECTORS, COLUMNS, N_COLUMNS, EDGES, N_EDGES, SCANS, N_SCANS, TALLIES, N_TALLIES,
    GROUPS, N_GROUPS, OUTPUTS, N_OUTPUTS, METRICS, N_METRICS,
    ENTERS, N_ENTERS,  # tallies that a row enters when it becomes final
    ROUTE, N_ROUTE,  # what rows are routed by
    OPEN_TS, OPEN_HIGH, OPEN_LOW, OPEN_WANTS,  # of the open rows: keys, and for which outputs they count
    RUNS, RUN_SIZE,
    SEALED, N_SEALED, SEALED_RUNS,  # of sealed chunks: their first rows, and which run each is; -1: it is not here
    CHUNK_ROWS, STORES,  # whether final rows are kept
    PEERS, EARLY, FINAL,  # which outputs speak at once, and which of what is final
    SPREADS,  # tables by which a late row reaches others
    OUT, OUT_ROOM, WORK, WORK_ROOM, REACHED, MATCHES, MATCHES_ROOM,
    TEXT,  # the bytes of all texts of the event
    VALUE, VALUE_TOO,  # of the row that moves
    READ, READ_COUNT, READ_FOR,  # lines that are to be read next, how many, and for which outputs
    NOW, NOW_ROOM,
) = range(67)  # fmt: skip

# ---- the event ----------------------------------------------------------------------------------------------------------
TS, HIGH, LOW, TRUTH, COMES, FRONTIER, BEFORE = range(72, 79)
INPUTS = 79
INPUT = 3  # whether it is there, and two words; of text where it begins, and how long it is
WORD, FLOAT, PAIR, TEXT_BYTES = range(4)  # how a value lies there

# ---- lines --------------------------------------------------------------------------------------------------------------
(
    T_HIGH, T_LOW, T_LIVE, T_REFERENCES, T_SLOTS, T_FREE, T_ROUTES, T_PAGES,
    T_SLOT_COUNT, T_USED, T_CAPACITY, T_COUNT, T_FREE_COUNT,
    T_FREES,  # whether a number means nothing once no row holds it
    T_VALUES,  # whether the values are kept
    T_INPUTS, T_N_INPUTS,
    T_NUMBER, T_HASH, T_HASH_TOO,  # of the event
    TABLE,
) = range(21)  # fmt: skip

V_KIND, V_INPUT, V_NEEDS, V_COLUMN, V_CODE, VECTOR = range(6)
ROW, DOUBLE, PLAIN, DECIMAL, ORDERED_FLOAT, NUMBERED = range(6)  # kinds of vectors

C_WIDTH, COLUMN = range(2)

R_BASE, R_COUNT, R_TS, R_COLUMNS = range(4)  # the number of row 0 of a run, how many there are, times; then the columns
OPEN_RUN, LAST_RUN = 0, 1  # the open rows, and the open chunk

E_OFFSET, E_ROW, E_MOVES, E_N_MOVES, EDGE = range(5)

S_EDGE, S_GROUP, S_PEERS, SCAN = range(4)

(
    Y_KIND, Y_GROUP, Y_ENTER, Y_LEAVE, Y_FOR,
    Y_VALUE, Y_CODE, Y_SHOWN, Y_SHOWN_CODE, Y_COUNT, Y_MODE, Y_PAIRS, Y_MEAN,
    Y_STATE, Y_WIDTH, Y_LOW, Y_SQUARES, Y_SQUARES_WIDTH, Y_SQUARES_LOW, Y_SPECIALS,
    Y_TAIL, Y_NODES, Y_HELD, Y_CODES, Y_LINKS, Y_FREE, Y_POOL, Y_RANKS, Y_N_RANKS,
    TALLY,
) = range(30)  # fmt: skip
COUNTS, DISTINCTS, DOUBLE_SUMS, INTEGER_SUMS, DECIMAL_SUMS, MOMENTS, QUEUES = range(7)  # kinds of tallies
READING = 6  # words of a reading

O_NEEDS, O_SPREAD, O_METRICS, O_N_METRICS, OUTPUT = range(5)

M_TALLY, M_COUNT, M_LEAST, M_PART, M_FITS, M_CODE, M_PAIR, M_LIMIT, M_LIMIT_TOO, M_ROOT, M_ORDERED, METRIC = range(12)
SHOWN = 3  # words of a metric: whether it is there, and two of the value

FOR_EARLY, FOR_FINAL = 1, 2

SAYS = 6  # words of a change in front of its metrics: output, sign, which of the open rows, and its key

# ---- what is asked for --------------------------------------------------------------------------------------------------
(
    DONE, MORE_KEYS, NEW_VALUE, MORE_ROWS, A_CHUNK, A_SEAL, MORE_LIMBS, MORE_NODES, MORE_OUT, MORE_WORK, MORE_MATCHES, MORE_NOW,
    CARRY, A_READING,  # the last is asked of the kernel itself
) = range(14)  # fmt: skip
MOST_MOVES = 1 << 28
