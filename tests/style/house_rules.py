"""The house's style as functions: each names every place in one parsed file that breaks a rule."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

LONGEST_FUNCTION = 70

# Words of a snake_case name, anywhere in it, and what to write instead.
BANNED_WORDS = {
    "leo": "log_end_offset",
    "leos": "log_end_offsets",
    "hw": "high_watermark",
    "hwm": "high_watermark",
}
# Whole names that mean too many things; in spark/ the last three are Spark's own.
BANNED_NAMES = {
    "epoch_map": "epoch entries, with whose epoch",
    "offset_map": "what it maps from and to",
    "min_isr": "min_insync_replicas",
    "checkpoint": "which one: high_watermark_checkpoint, spark_checkpoint ...",
    "watermark": "high_watermark; event_time_watermark in spark/",
    "epoch": "leader_epoch, broker_epoch ...; micro_batch_id for Spark's",
}
# Phrases of our own that needed two readings, and what to write instead. In comments, docstrings,
# messages and pages; a line end may be anywhere in them.
BANNED_PHRASES = {
    r"st(?:ands?|ood)(?! (?:for|in for|still)\b)": "is, is at, is in force, is active",
    r"(?:led|leads?|leading) on": "was re-elected without a break, leads again",
    r"beside the ISR": "uncleanly, not in sync",
    r"who (?:led|leads)": "the leader, the last leader, which broker leads",
    r"(?:the|its|a follower's|a leader's) marks?(?! of)": "the high watermark",
    r"(?:reign|objection)s?": "leader epoch, term; why a verdict is UNKNOWN",
    # A client is told of its record; nothing else is told of anything.
    r"told of": "named, known, printed; or say who was told",
}
_PHRASE = re.compile("|".join(rf"(\b(?:{p})\b)" for p in BANNED_PHRASES), re.IGNORECASE)
_WHO_WAS_TOLD = re.compile(r"\b(?:client|producer|consumer|receiver|nobody|who)s?\b.{0,40}$")

SPARK_MAY_SAY = {"checkpoint", "watermark", "epoch"}

# The core has no clock, no files, no chance and no threads.
CORE_MAY_NOT_IMPORT = {
    *("asyncio", "concurrent", "glob", "io", "logging", "multiprocessing", "os", "pathlib"),
    *("random", "secrets", "shutil", "socket", "subprocess", "tempfile", "threading", "time"),
    *("urllib", "uuid"),
}
CORE_MAY_NOT_CALL = {"open", "print", "input", "now", "today", "utcnow"}

# In two halves, so that this file does not contain what it looks for.
NOT_IN_COMMITTED_FILES = tuple(
    first + second
    for first, second in (
        ("/wo", "rk/"),
        ("/ro", "ot/"),
        ("/ho", "me/[a-z]"),
        ("bash_", "jobs"),
        (r"py", r"pi\.org"),
        (r"pythonhosted", r"\.org"),
        (r"repo1?\.maven", r"\.(org|apache)"),
        (r"maven", r"\.org/maven2"),
        (r"registry\.npm", r"js"),
        (r"deb\.deb", r"ian\.org"),
    )
)


def long_functions(tree: ast.AST) -> Iterator[str]:
    """Functions of more than LONGEST_FUNCTION lines, from `def` to their last line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LONGEST_FUNCTION:
                yield f"{node.lineno}: {node.name} has {length} lines"


def no_first_comment(text: str, tree: ast.Module) -> Iterator[str]:
    """A file that neither starts with a docstring nor with a comment that says what it is for."""
    first = text.lstrip().splitlines()[0] if text.strip() else ""
    comment = first.startswith("#") and not first.startswith("#!")
    if ast.get_docstring(tree) is None and not comment:
        yield "1: nothing says what this file is for"


def _defined_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ClassDef(name=name):
                yield node.lineno, re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
            case ast.alias(asname=str(name)):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case _:
                pass


def banned_names(tree: ast.AST, in_spark: bool) -> Iterator[str]:
    """Names that this file defines and that the glossary of the house replaces."""
    for line, name in _defined_names(tree):
        bare = name.lower().strip("_")
        if bare in BANNED_NAMES and not (in_spark and bare in SPARK_MAY_SAY):
            yield f"{line}: {name}: write {BANNED_NAMES[bare]}"
        for word in BANNED_WORDS.keys() & set(bare.split("_")):
            yield f"{line}: {name}: write {BANNED_WORDS[word]}"


def texts_of_python(text: str) -> Iterator[tuple[int, str]]:
    """What people read of a Python file: (line, text) of each string and each block of comments."""
    first, block = 0, ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            first = first or token.start[0]
            block += token.string.lstrip("#")
        elif token.type != tokenize.NL:
            if block:
                yield first, block
            first, block = 0, ""
            if token.type == tokenize.STRING:
                yield token.start[0], token.string


def texts_of_page(text: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each paragraph: what no blank line divides."""
    line = 1
    for paragraph in text.split("\n\n"):
        yield line, paragraph
        line += paragraph.count("\n") + 2


def banned_phrases(texts: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Private phrases in (line, text), wherever lines end within them."""
    instead = list(BANNED_PHRASES.values())
    for line, text in texts:
        plain = " ".join(text.split())
        for found in _PHRASE.finditer(plain):
            told = found[0].lower() == "told of"
            if not (told and _WHO_WAS_TOLD.search(plain[: found.start()].lower())):
                yield f"{line}: {found[0]}: write {instead[(found.lastindex or 1) - 1]}"


def imports_below(function: ast.AST) -> Iterator[ast.stmt]:
    """The import statements of a function: statements alone are looked into, which is quick."""
    waiting: list[ast.AST] = [function]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, None)
            if isinstance(inner, list):
                waiting += inner


def misplaced_imports(tree: ast.AST) -> Iterator[str]:
    """Imports inside functions, but of Great Expectations, whose import can end the process."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        for node in imports_below(function):
            for module in imported_modules(node):
                if module.split(".")[0] != "great_expectations":
                    yield f"{node.lineno}: {module} is imported inside a function"


def great_expectations_at_top(tree: ast.Module) -> Iterator[str]:
    """Great Expectations imported while the module loads: the process may end there, status 0."""
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        for module in imported_modules(node):
            if module.split(".")[0] == "great_expectations":
                yield f"{node.lineno}: import it inside the function that uses it"


def type_checking_imports(tree: ast.AST) -> Iterator[str]:
    """TYPE_CHECKING hides a circle of imports instead of breaking it."""
    for node in ast.walk(tree):
        if (isinstance(node, ast.Name) and node.id == "TYPE_CHECKING") or (
            isinstance(node, ast.alias) and node.name == "TYPE_CHECKING"
        ):
            yield f"{node.lineno}: TYPE_CHECKING: move the shared type down"


def imported_modules(node: ast.AST) -> Iterator[str]:
    """Every module that this one statement may import: `from a import b` may mean a and a.b."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def impure_core(tree: ast.AST) -> Iterator[str]:
    """What the core may not touch: all but itself and the harmless part of the standard library."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for module in imported_modules(node):
                top = module.split(".")[0]
                ours = module == "replication.protocol" or module.startswith(
                    "replication.protocol."
                )
                plain = isinstance(node, ast.ImportFrom) and top == "replication" == module
                foreign = top not in sys.stdlib_module_names or top in CORE_MAY_NOT_IMPORT
                if foreign and not ours and not plain:
                    yield f"{node.lineno}: imports {module}"
        elif isinstance(node, ast.Call):
            called = node.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if name in CORE_MAY_NOT_CALL:
                yield f"{node.lineno}: calls {name}"


def module_name(path: Path) -> str:
    """`replication/a/b.py` as `replication.a.b`, a package's `__init__.py` as the package."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def dead_modules(trees: dict[Path, ast.Module], entry_points: set[str]) -> list[str]:
    """Modules of `replication` that no file among `trees` but themselves imports and nobody starts.

    A package's `__init__.py` lives by its modules. Tests are not among the files: what only they
    use is dead.
    """
    imported = {
        module
        for path, tree in trees.items()
        for node in ast.walk(tree)
        for module in imported_modules(node)
        if module != module_name(path)
    }
    return [
        str(path)
        for path in sorted(trees)
        if path.parts[0] == "replication"
        and path.name not in ("__init__.py", "__main__.py")
        and module_name(path) not in imported | entry_points
    ]
