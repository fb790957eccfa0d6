"""Scalar expressions and types: find where they end among the tokens, and let sqlglot read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from headrace.errors import unknown
from headrace.plan.aggregates import FUNCTIONS, NAMES
from headrace.plan.sinks import alternatives
from headrace.sql.bind import functions
from headrace.sql.errors import Span, SqlError, Text, did_you_mean
from headrace.sql.parse.durations import whole_number
from headrace.sql.parse.syntax import Scalar
from headrace.sql.parse.tokens import CLOSING, DIALECT, MAX_DEPTH, OPENING, Cursor, is_name, span, words

Stop = Callable[[Cursor], bool]

# Words after which an operand must follow, so that what follows is a name even if it reads like a clause.
OPERATORS = {"AND", "OR", "NOT", "IN", "IS", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "ESCAPE", "DISTINCT", "INTERVAL",
             "CASE", "WHEN", "THEN", "ELSE", "DIV", "MOD", "EXISTS", "ANY", "ALL", "SOME", "COLLATE", "XOR"}  # fmt: skip
# Clauses that end an expression even where an operand is missing: better to complain about that.
ALWAYS = ("FROM", "WHERE", "GROUP BY", "HAVING", "INTO", "SELECT", "ORDER BY", "LIMIT", "UNION", "CREATE")
TYPES = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "STRING", "VARCHAR", "CHAR", "BINARY", "BOOLEAN",
         "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "ARRAY", "MAP", "STRUCT", "VARIANT")  # fmt: skip
SPELLINGS = {"BYTE", "SHORT", "INTEGER", "LONG", "REAL", "DEC", "NUMERIC", "TEXT", "BOOL", "DATETIME"}
DECIMAL = ("DECIMAL", "DEC", "NUMERIC")
LENGTHS = ("CHAR", "VARCHAR")
MAX_DIGITS = 38  # of a DECIMAL in Spark


def ends_operand(token: Token) -> bool:
    """Whether an operand is complete after a token."""
    here = words(token)
    if not here:
        return True  # a string or quoted name
    operator = here[-1] in OPERATORS and token.token_type is not TokenType.VAR
    return token.text in (")", "]", "*") or (not operator and (token.text[0].isalnum() or token.text[0] == "_"))


def tokens_of_expression(cursor: Cursor, stops: Sequence[str], also: Stop | None = None) -> Sequence[Token]:
    """Take the tokens up to a comma, a closing bracket, a stop phrase, or where `also` says so."""
    start, cases = cursor.index, 0
    while (token := cursor.peek()) is not None:
        if token.token_type in OPENING and not (also and also(cursor)):
            _skip_brackets(cursor)
            continue
        if token.token_type in CLOSING or token.token_type is TokenType.COMMA or (also and also(cursor)):
            break
        if token.token_type is TokenType.CASE:
            cases += 1
        elif token.token_type is TokenType.END and cases:
            cases -= 1
        elif _stops_here(cursor, start, stops, inside_case=cases > 0):
            break
        cursor.index += 1
    return cursor.tokens[start : cursor.index]


def _stops_here(cursor: Cursor, start: int, stops: Sequence[str], *, inside_case: bool) -> bool:
    previous = cursor.tokens[cursor.index - 1] if cursor.index > start else None
    complete = previous is not None and ends_operand(previous)
    if cursor.at(*ALWAYS) and not (previous is not None and words(previous) == ("DISTINCT",)):
        return True
    return complete and not inside_case and cursor.at(*stops)


def _skip_brackets(cursor: Cursor) -> None:
    depth = 0
    while (token := cursor.peek()) is not None:
        depth += (token.token_type in OPENING) - (token.token_type in CLOSING)
        cursor.index += 1
        if depth == 0:
            return


def scalar(cursor: Cursor, what: str, stops: Sequence[str] = (), also: Stop | None = None) -> Scalar:
    """Read an expression that ends at a comma, a closing bracket or one of the stop phrases."""
    taken = tokens_of_expression(cursor, stops, also)
    if not taken:
        raise cursor.expected(what)
    return parse_scalar(cursor.text, taken, what, stops)


def scalars(cursor: Cursor, what: str, stops: Sequence[str] = (), also: Stop | None = None) -> tuple[Scalar, ...]:
    """Read expressions separated by commas."""
    return cursor.several(lambda c: scalar(c, what, stops, also))


def parse_scalar(text: Text, tokens: Sequence[Token], what: str, stops: Sequence[str] = ()) -> Scalar:
    """Hand tokens to sqlglot; positions stay those of the whole text."""
    where = span(tokens[0]).to(span(tokens[-1]))
    _check_functions(text, tokens)
    tree = _sqlglot(text, tokens, exp.Condition, what, stops)
    _check_forms(text, tree, where)
    return Scalar(tree, where)


def _sqlglot(text: Text, tokens: Sequence[Token], into: type, what: str, stops: Sequence[str]) -> exp.Expr:
    where = span(tokens[0]).to(span(tokens[-1]))
    try:
        found = DIALECT.parser().parse_into(into, list(tokens), text.sql)[0]
    except ParseError as error:
        raise _parse_error(text, tokens, error, stops) from error
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, IndexError, KeyError) as error:
        raise text.error(f"expected {what}, found something that cannot be read", where) from error  # sqlglot's own failures
    if found is None:
        raise text.error(f"expected {what}", where)
    return found


def _parse_error(text: Text, tokens: Sequence[Token], error: ParseError, stops: Sequence[str]) -> SqlError:
    first = error.errors[0] if error.errors else {}
    place = (first.get("line"), first.get("col"))
    at = next((t for t in tokens if (t.line, t.col) == place), tokens[-1])
    said, found = str(first.get("description") or ""), text.slice(span(at))
    if "TYPE" in said:
        return text.error(unknown("type", found, TYPES), span(at))
    if said.startswith("Required keyword"):
        return text.error(f"something is missing after {found!r}", span(at))
    if "Unexpected token" in said:
        choices = alternatives(["an operator", *stops]) if stops else "an operator or the end"
        return text.error(f"expected {choices}, found {found!r}{did_you_mean(found, stops)}", span(at))
    if said.startswith(("Expected", "Expecting")):
        wanted = said.split(" ", 1)[1]
        return text.error(f"expected {wanted} near {found!r}", span(at))
    return text.error(said[:1].lower() + said[1:] or "this is not an expression", span(at))


def _check_functions(text: Text, tokens: Sequence[Token]) -> None:
    """Every called function exists in Spark SQL, and is one of the row."""
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        name = token.text.lower()
        if not words(token) or not is_name(token):
            continue
        called = after is not None and after.token_type is TokenType.L_PAREN
        if (called or token.token_type is not TokenType.VAR) and name in functions.CHANGING:
            message = f"{name} is not a function of the row, so a correction could not repeat what it takes back"
            raise text.error(message, span(token), hint="use columns of the row; the time of an event is its TIMESTAMP BY")
        if called and token.token_type is TokenType.VAR:
            _check_call(text, token, name)


def _check_call(text: Text, token: Token, name: str) -> None:
    if name in functions.SCALAR or name.upper() in NAMES or name in text.functions:
        return
    if name in functions.AGGREGATES | functions.WINDOW:
        kind = "aggregate" if name in functions.AGGREGATES else "window function"
        raise text.error(f"the {kind} {name} is not there yet", span(token), hint=f"there are: {', '.join(FUNCTIONS)}")
    if name in functions.GENERATORS:
        raise text.error(f"{name} makes several rows of one, which a SELECT over a stream does not do", span(token))
    near = did_you_mean(name, functions.SCALAR | {n.lower() for n in NAMES}).lower().replace("did", "Did")
    hint = "functions are those of Spark SQL" if not near else None
    raise text.error(f"function {name!r} does not exist{near}", span(token), hint=hint)


def _check_forms(text: Text, tree: exp.Expr, where: Span) -> None:
    """Refuse what sqlglot reads but a streaming expression cannot hold."""
    for node in tree.walk():
        match node:
            case exp.Query() | exp.Subquery():
                raise text.error("a sub-select inside an expression is not supported", where, hint="put it into FROM")
            case exp.Placeholder() | exp.Parameter() | exp.SessionParameter():
                raise text.error("there are no parameters", where, hint="write the value")
            case exp.Star() if not _counted(node):
                raise text.error("'*' stands for all columns only in SELECT * and COUNT(*)", where)


def _counted(star: exp.Star) -> bool:
    """Whether a star stands in COUNT(*), or in COUNT(b.*) of a pattern."""
    above = star.parent.parent if isinstance(star.parent, exp.Column) else star.parent
    return isinstance(above, exp.Anonymous) and above.name.upper() in NAMES and NAMES[above.name.upper()].stars


def read_type(cursor: Cursor) -> str:
    """A Spark SQL type, or one of FlinkCQL's names for it; in one spelling."""
    start = cursor.index
    _type(cursor, 0)
    if cursor.index == start + 1:
        return _one_word(" ".join(words(cursor.tokens[start])))
    return _completed(_sqlglot(cursor.text, cursor.tokens[start : cursor.index], exp.DataType, "a type", ()))


@cache
def _one_word(name: str) -> str:
    """Most columns have such a type; they are all of `TYPES` or `SPELLINGS`."""
    return _completed(exp.DataType.build(name, dialect=DIALECT))


def _completed(tree: exp.Expr) -> str:
    """In one spelling, with the digits of a DECIMAL as Spark completes them."""
    for part in tree.find_all(exp.DataType):
        if part.this is exp.DType.DECIMAL and len(part.expressions) < 2:
            given = part.expressions or [exp.DataTypeParam(this=exp.Literal.number(10))]
            part.set("expressions", [*given, exp.DataTypeParam(this=exp.Literal.number(0))])
    return tree.sql(dialect="spark")


def _type(cursor: Cursor, depth: int) -> None:
    """Go past a type; every word of it is checked here, where its place is known."""
    token = cursor.peek()
    if token is None or token.token_type in CLOSING or token.token_type is TokenType.COMMA or token.text == ">":
        raise cursor.expected("a type", hint="for example STRING, BIGINT, DOUBLE, TIMESTAMP")
    name = " ".join(words(token)) or token.text
    if name not in TYPES and name not in SPELLINGS:
        raise cursor.error(unknown("type", name, TYPES))
    if depth > MAX_DEPTH:
        raise cursor.error(f"types are nested more than {MAX_DEPTH} deep")
    cursor.index += 1
    match name:
        case "ARRAY":
            cursor.expect("<", what="'<' and the type of its elements")
            _type(cursor, depth + 1)
            cursor.expect(">", what="'>'")
        case "MAP":
            cursor.expect("<", what="'<' and the types of its keys and values")
            _type(cursor, depth + 1)
            cursor.expect(",", what="',' and the type of its values")
            _type(cursor, depth + 1)
            cursor.expect(">", what="'>'")
        case "STRUCT":
            cursor.expect("<", what="'<' and its fields")
            cursor.several(lambda c: _field(c, depth + 1))
            cursor.expect(">", what="',' or '>'")
        case _ if cursor.at("("):
            _size(cursor, name)


def _field(cursor: Cursor, depth: int) -> None:
    cursor.name("the name of a field")
    cursor.accept(":")
    _type(cursor, depth)


def _size(cursor: Cursor, name: str) -> None:
    """Go past `(10, 2)` of a DECIMAL. Spark keeps lengths of text only in tables, so that of a CHAR would mean nothing here."""
    if name not in DECIMAL:
        hint = "text has any length: write STRING" if name in LENGTHS else "only DECIMAL has one"
        raise cursor.error(f"{name} has no size in a stream", hint=hint)
    start = cursor.index
    cursor.expect("(")
    numbers = [whole_number(cursor, "a number of digits"), 0]
    if cursor.accept(","):
        numbers[1] = whole_number(cursor, "a number of digits behind the point")
    cursor.expect(")")
    if not (0 < numbers[0] <= MAX_DIGITS and numbers[1] <= numbers[0]):
        hint = f"the first number counts all digits, up to {MAX_DIGITS}, the second those behind the point"
        raise cursor.text.error("there is no such DECIMAL", cursor.since(start), hint=hint)
