"""What the functions of Spark SQL take and give, by the number of their arguments, as the analyser of Spark 4.3 says under ANSI.

Kept as text so that a script is checked without starting Spark. It was made by asking the analyser for every function with
every combination of types of up to three arguments; `tests/spark/test_types_of_spark.py` asks again. A class that is wider than
what Spark takes is a mistake that is found later, one that is narrower would be a false alarm. Left out are functions whose
arguments depend on each other; those that choose among their arguments are in `typecheck.py`. `?` is a result that depends on
more than the number of arguments, `=0` one of the type of the first.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.plan.coercion import Family

_NUMBER = frozenset({Family.INTEGER, Family.FRACTION, Family.STRING})
_NESTED = frozenset({Family.ARRAY, Family.MAP, Family.STRUCT})
# Every class with the families that Spark takes, and what to call it. A text is read as what is asked for.
CLASSES: dict[str, tuple[frozenset[Family], str]] = {
    "any": (frozenset(Family), "anything"),
    "atom": (frozenset(Family) - _NESTED, "a single value"),
    "number": (_NUMBER, "a number"),
    "span": (_NUMBER | {Family.INTERVAL, Family.MONTHS}, "a number or an interval"),
    "whole": (_NUMBER - {Family.FRACTION}, "a whole number"),
    "string": (frozenset({Family.STRING}), "a STRING"),
    "text": (frozenset({Family.STRING, Family.BINARY}), "a STRING or a BINARY"),
    "time": (frozenset({Family.STRING, Family.TIME}), "a date or a time"),
    "boolean": (frozenset({Family.STRING, Family.BOOLEAN}), "a BOOLEAN"),
    "array": (frozenset({Family.ARRAY}), "an ARRAY"),
    "map": (frozenset({Family.MAP}), "a MAP"),
    "list": (frozenset({Family.ARRAY, Family.MAP}), "an ARRAY or a MAP"),
    "nested": (_NESTED, "an ARRAY, a MAP or a STRUCT"),
}
# Classes of which a STRING is a member only because it would be read as one, and what it would be read as.
READ_AS = {"number": "DOUBLE", "span": "DOUBLE", "whole": "INT", "time": "TIMESTAMP", "boolean": "BOOLEAN"}

_TABLE = """
any -> BIGINT: xxhash64
any -> BOOLEAN: isnotnull isnull
any -> INT: hash
any -> STRING: string typeof
array -> =0: array_compact array_distinct array_sort sort_array
array -> ?: array_max array_min arrays_zip
array -> INT: array_size
atom -> ?: sentences
atom -> BIGINT: bigint
atom -> BINARY: from_base32 to_binary try_to_binary unbase64 unhex
atom -> BOOLEAN: boolean is_valid_utf8 luhn_check
atom -> DATE: to_date try_to_date
atom -> DECIMAL: decimal
atom -> DOUBLE: double
atom -> FLOAT: float
atom -> INT: ascii bit_count bit_length char_length character_length int len length octet_length
atom -> SMALLINT: smallint
atom -> STRING: btrim concat_ws format_string hex initcap lcase lower ltrim make_valid_utf8 printf quote rtrim trim
  try_url_decode try_validate_utf8 ucase upper url_decode url_encode validate_utf8
atom -> TIMESTAMP: timestamp to_timestamp to_timestamp_ltz try_to_timestamp
atom -> TIMESTAMP_NTZ: to_timestamp_ntz
atom -> TINYINT: tinyint
list -> INT: cardinality size
map -> ?: map_concat map_entries map_keys map_values
nested -> STRING: to_csv to_json to_xml
number -> =0: nullifzero
number -> ?: bround ceil ceiling floor make_interval make_ym_interval round zeroifnull
number -> BIGINT: bitmap_bit_position bitmap_bucket_number factorial
number -> BOOLEAN: isnan
number -> DATE: date_from_unix_date
number -> DOUBLE: acos acosh asin asinh atan atanh cbrt cos cosh cot csc degrees exp expm1 ln log log10 log1p log2 radians
  rint sec sin sinh sqrt tan tanh
number -> INTERVAL DAY TO SECOND: make_dt_interval
number -> STRING: bin char chr from_unixtime space
number -> TIMESTAMP: timestamp_seconds
span -> ?: abs negative positive
span -> DOUBLE: sign signum
string -> ?: json_object_keys parse_json str_to_map try_parse_json
string -> INT: json_array_length
string -> STRING: collation mask soundex
text -> BIGINT: bitmap_count crc32
text -> BINARY: binary
text -> STRING: base64 md5 sha sha1 to_base32
time -> BIGINT: to_unix_timestamp unix_micros unix_millis unix_seconds unix_timestamp
time -> DATE: date last_day
time -> INT: day dayofmonth dayofweek dayofyear hour minute month quarter second unix_date weekday weekofyear year
time -> STRING: dayname monthname
whole -> TIMESTAMP: timestamp_micros timestamp_millis
any any -> BIGINT: xxhash64
any any -> BOOLEAN: equal_null
any any -> INT: hash
any whole -> ?: array_repeat
array any -> =0: array_sort filter
array any -> ?: array_append array_prepend array_remove transform
array any -> BIGINT: array_position
array any -> BOOLEAN: array_contains exists forall
array array -> =0: array_except array_intersect array_union
array array -> ?: arrays_zip map_from_arrays
array array -> BOOLEAN: arrays_overlap
array boolean -> =0: sort_array
array number -> ?: get
array string -> STRING: array_join
atom any -> STRING: concat_ws format_string printf to_char to_varchar
atom atom -> ?: regexp_extract_all sentences sequence split
atom atom -> BINARY: encode try_to_binary
atom atom -> BOOLEAN: contains endswith ilike like regexp regexp_like rlike startswith
atom atom -> DATE: to_date try_to_date
atom atom -> DOUBLE: jaro_winkler_similarity
atom atom -> INT: find_in_set instr levenshtein locate position regexp_count regexp_instr
atom atom -> STRING: btrim ltrim regexp_extract regexp_substr replace rtrim trim
atom atom -> TIMESTAMP: to_timestamp to_timestamp_ltz try_to_timestamp
atom atom -> TIMESTAMP_NTZ: to_timestamp_ntz
atom number -> ?: left lpad rpad substr substring
atom number -> STRING: repeat right
atom time -> TIMESTAMP: date_trunc
atom time -> TIMESTAMP_NTZ: convert_timezone
list any -> ?: element_at try_element_at
map any -> ?: map_filter transform_keys transform_values
map any -> BOOLEAN: map_contains_key
map map -> ?: map_concat
number atom -> ?: elt
number atom -> STRING: from_unixtime
number number -> ?: bround make_interval make_ym_interval pmod round shiftleft shiftright shiftrightunsigned
number number -> DOUBLE: atan2 hypot log nanvl pow power
number number -> INTERVAL DAY TO SECOND: make_dt_interval
number whole -> STRING: format_number
string string -> ?: str_to_map
string string -> STRING: get_json_object mask parse_url try_parse_url
text atom -> STRING: decode
text number -> STRING: sha2
text text -> BINARY: aes_decrypt aes_encrypt hmac try_aes_decrypt
time any -> INT: hour minute second
time atom -> DATE: next_day trunc
time atom -> STRING: date_format
time atom -> TIMESTAMP: from_utc_timestamp to_utc_timestamp
time number -> DATE: add_months
time string -> BIGINT: to_unix_timestamp unix_timestamp
time time -> DOUBLE: months_between
time time -> INT: date_diff datediff
time whole -> DATE: date_add date_sub dateadd
whole number -> TINYINT: bit_get getbit
any any any -> BIGINT: xxhash64
any any any -> BOOLEAN: ilike like
any any any -> INT: hash
any any atom -> ?: decode
array array any -> ?: zip_with
array array array -> ?: arrays_zip
array number number -> ?: slice
array string string -> STRING: array_join
array whole any -> ?: array_insert
atom any any -> STRING: concat_ws format_string printf
atom atom atom -> ?: sentences
atom atom atom -> STRING: regexp_replace replace translate
atom atom number -> ?: regexp_extract_all split
atom atom number -> INT: instr levenshtein locate position regexp_instr
atom atom number -> STRING: overlay regexp_extract split_part substring_index
atom atom time -> TIMESTAMP_NTZ: convert_timezone
atom number atom -> STRING: lpad rpad
atom number number -> STRING: conv substr substring
map map any -> ?: map_zip_with
map map map -> ?: map_concat
number atom atom -> STRING: elt
number number number -> ?: make_interval
number number number -> DATE: make_date
number number number -> INTERVAL DAY TO SECOND: make_dt_interval
string string atom -> BINARY: aes_decrypt aes_encrypt hmac try_aes_decrypt
string string string -> ?: str_to_map
string string string -> STRING: mask parse_url try_parse_url
time any any -> INT: hour minute second
time time boolean -> DOUBLE: months_between
"""


@dataclass(frozen=True, slots=True)
class Signature:
    """The classes of the arguments, and the type of the result."""

    takes: tuple[str, ...]
    gives: str


def _read(table: str) -> dict[tuple[str, int], Signature]:
    found = {}
    for line in table.strip().replace("\n  ", " ").splitlines():
        head, names = line.split(":")
        takes, gives = head.split(" -> ")
        signature = Signature(tuple(takes.split()), gives.strip())
        found.update({(name, len(signature.takes)): signature for name in names.split()})
    return found


SIGNATURES = _read(_TABLE)
