"""Mutants of the rules: every condition inverted, every comparison shifted, and who catches each.

Generated over the syntax tree of every file in rules/ and of leader_epoch_cache.py. A mutant is
loaded in place of the module, in a child process, and held against two catchers in turn: the
scenarios, the naive model. Unit tests do not count: they say the same as the code, once more.
`python -m tests.protocol.mutants [PART]` prints the score and the survivors.
"""

import argparse
import ast
import copy
import importlib
import importlib.abc
import importlib.machinery
import multiprocessing
import os
import queue
import sys
import time
import types
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

PROTOCOL = Path(__file__).parent.parent.parent / "replication" / "protocol"
FILES = [*sorted((PROTOCOL / "rules").glob("*.py")), PROTOCOL / "ground" / "leader_epoch_cache.py"]
SHIFTS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
MUTABLE = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.If, ast.IfExp, ast.Call)
LONGEST_SECONDS = 60
CATCHERS = ("scenarios", "naive model")

# Mutants that change nothing anyone can observe, with the reason.
EQUIVALENT: dict[str, str] = {
    "isr_commit: if leader.has('unclean_leader_is_recovering') -> if False": (
        "versions 0 and 1 are refused alike"
    ),
    "isr_commit: if leader.has('unclean_leader_is_recovering') -> if True": (
        "versions 0 and 1 are refused alike"
    ),
    "fetch_admission: if end.leader_epoch is None or end.end_offset is None -> if False": (
        "a leader from 2.7 on has its own epoch cached and the fence has refused every later one; "
        "only a log in an older message format has none, and is not modelled"
    ),
    "start_up_recovery: end < start -> end <= start": "a cache is trimmed as the log start moves, "
    "so a log without records has no entry below its end that emptying it could take",
    "fetch_admission: end.leader_epoch is None or end.end_offset is None -> "
    "end.leader_epoch is None and end.end_offset is None": "whoever answers with a diverging epoch "
    "names epochs, so both are None or neither",
    "leader_epoch_cache: last.start_offset <= start_offset -> last.start_offset < start_offset": (
        "an entry is replaced by its equal"
    ),
    "leader_epoch_cache: entries[kept - 1].leader_epoch >= leader_epoch -> "
    "entries[kept - 1].leader_epoch > leader_epoch": "an equal epoch that starts earlier has "
    "returned above, one that starts later goes by the other condition",
    "leader_epoch_cache: leader_epoch > last.leader_epoch -> leader_epoch >= last.leader_epoch": (
        "an equal epoch has returned above unless it starts earlier, which the other condition "
        "refuses"
    ),
    "reassignment: if before is None -> if False": (
        "the machine tells always how it began; rows of Kafka's unit tests ask as it begins"
    ),
}


@dataclass(frozen=True)
class Mutant:
    """One change: in which file and line, what became of it, and the whole source with it."""

    module: str
    line: int
    change: str
    source: str

    @property
    def key(self) -> str:
        """Its name, stable while its line's text is."""
        return f"{self.module.split('.')[-1]}: {self.change}"


def mutants() -> list[Mutant]:
    """All mutants of all rule files, in file and line order."""
    return [m for path in FILES if path.name != "__init__.py" for m in _of_file(path)]


def _of_file(path: Path) -> Iterator[Mutant]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = f"replication.protocol.{path.parent.name}.{path.stem}"
    for index, original in enumerate(ast.walk(tree)):
        if not isinstance(original, MUTABLE):
            continue
        for choice in range(4):
            changed = copy.deepcopy(tree)
            node = list(ast.walk(changed))[index]
            change = _mutate(changed, node, choice)
            if change is None:
                break
            ast.fix_missing_locations(changed)
            yield Mutant(module, getattr(node, "lineno", 0), change, ast.unparse(changed))


def _mutate(tree: ast.AST, node: ast.AST, choice: int) -> str | None:
    """Changes one node in place; what it did in words, None when this choice does not apply."""
    before = ast.unparse(node) if isinstance(node, ast.expr) else ""
    if isinstance(node, ast.Compare) and choice < len(node.ops):
        node.ops[choice] = SHIFTS[type(node.ops[choice])]()
    elif isinstance(node, ast.BoolOp) and choice == 0:
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and choice == 0:
        _replace(tree, node, node.operand)
        return f"{before} -> {ast.unparse(node.operand)}"
    elif isinstance(node, ast.If | ast.IfExp) and choice < 2:
        was = ast.unparse(node.test)
        node.test = ast.Constant(bool(choice))
        return f"if {was} -> if {bool(choice)}"
    elif isinstance(node, ast.Call) and choice == 0 and ast.unparse(node.func) in ("min", "max"):
        node.func = ast.Name("max" if ast.unparse(node.func) == "min" else "min", ast.Load())
    elif isinstance(node, ast.Call) and choice == 0 and ast.unparse(node.func) == "behaviour.has":
        _replace(tree, node, ast.UnaryOp(ast.Not(), copy.deepcopy(node)))
        return f"{before} -> not {before}"
    else:
        return None
    return f"{before} -> {ast.unparse(node)}"


def _replace(tree: ast.AST, old: ast.AST, new: ast.expr) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
                return
            if isinstance(value, list) and old in value:
                value[value.index(old)] = new
                return


class _Instead(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from a mutant's source instead of its file."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(
        self, fullname: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.mutant.module:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def exec_module(self, module: types.ModuleType) -> None:
        exec(compile(self.mutant.source, self.mutant.module, "exec"), module.__dict__)


def _scenarios() -> bool:
    """Whether a scenario comes out differently."""
    run_scenario = importlib.import_module("replication.machine.scenario").run_scenario
    files = sorted((Path(__file__).parent.parent / "scenarios").rglob("*.txt"))
    return not all(run_scenario(f.read_text(encoding="utf-8"))[0] for f in files)


def _naive_model() -> bool:
    """Whether random schedules differ from the naive model."""
    schedule = importlib.import_module("tests.protocol.schedules").schedule
    return any(schedule(seed)[2] is not None for seed in range(250))


def _work(mutant: Mutant, answers: "multiprocessing.Queue[str]") -> None:
    for name in [n for n in sys.modules if n.startswith(("replication", "tests.protocol."))]:
        del sys.modules[name]  # What a parent had loaded would hide the mutant.
    sys.meta_path.insert(0, _Instead(mutant))
    for name, catcher in zip(CATCHERS, (_scenarios, _naive_model), strict=True):
        try:
            caught = catcher()
        except Exception:
            caught = True
        if caught:
            answers.put(name)
            return
    answers.put("")


def caught_by(mutant: Mutant) -> str:
    """Who catches it: a catcher, "never ends", or "" for a survivor."""
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()
    child = fork.Process(target=_work, args=(mutant, answers))
    child.start()
    try:
        result = answers.get(timeout=LONGEST_SECONDS)
    except queue.Empty:
        result = "never ends" if child.is_alive() else "does not load"
    child.kill()
    child.join()
    return result


def main() -> int:
    """Prints who caught how many, and the survivors; exit status 1 if any is unexplained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("part", nargs="?", default="", help="only mutants whose name has this")
    options = parser.parse_args()
    chosen = [m for m in mutants() if options.part in m.key]
    began = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(caught_by, chosen))
    survivors = [m for m, who in zip(chosen, results, strict=True) if not who]
    unexplained = [m for m in survivors if m.key not in EQUIVALENT]
    for mutant in survivors:
        reason = EQUIVALENT.get(mutant.key, "NOT EXPLAINED")
        print(f"survives: {mutant.key} (line {mutant.line}): {reason}")
    for who, count in Counter(who or "nobody" for who in results).most_common():
        print(f"{count:5} caught by {who}")
    seconds = time.monotonic() - began
    print(
        f"{len(chosen)} mutants, {len(survivors)} survive, {len(unexplained)} unexplained, "
        f"{seconds:.0f} s"
    )
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
