"""What to call next where an expectation failed, by its family: printed, and in Data Docs."""

from replication.quality.suites import Expectation

# PATH is what the operator handed over: the tables do not know where it lies.
LOST = ("what was lost and what to do now", "replication-analyzer diagnose PATH")
MISSING = ("which evidence is missing", "replication-analyzer collect PATH")
NOT_AS_WRITTEN = (
    "the tables are not as the fold wrote them: do as {} says, else fold the events into new "
    "tables; if it fails there too, it is a defect of this tool"
)
MEANS = {
    "critical": "where it fails, the job ends with status 1",
    "warning": "where it fails, an alert is a warning, and the job's status stays as it is",
    "info": "where it fails, that is written down, and nothing else follows",
}

NAMED = {
    "FINDING": "FINDING is the finding that a failing row names.",
    "PATH": "PATH is the folder of evidence that was imported.",
}


def proof(finding: str) -> str:
    """The command that proves a finding."""
    return f"replication-analyzer explain {finding} PATH"


def after(expectation: Expectation, finding: str | None) -> list[str]:
    """Each next step where an expectation failed, by its first finding if there is one."""
    if expectation.family == "integrity":
        return [NOT_AS_WRITTEN.format("the failing row")]
    if expectation.family == "evidence":
        return [": ".join(MISSING)]
    told = [f"the proof: {proof(finding)}"] if finding is not None else []
    return [*told, ": ".join(LOST)]


def notes_of(expectation: Expectation) -> list[str]:
    """Severity and next step in words that hold whatever comes out."""
    steps = after(expectation, "FINDING")
    told = f"Where it fails: {'; '.join(steps)}."
    severity = f"Severity {expectation.severity}: {MEANS[expectation.severity]}."
    return [severity, _with_names(told)]


def _with_names(told: str) -> str:
    return " ".join([told, *(words for name, words in NAMED.items() if name in told)])


def described(expectation: Expectation, steps: list[str], not_shown: list[str]) -> str:
    """An expectation with its severity, what is not known beneath it or taken for granted, and
    where it failed what to do next: one text."""
    told = [f"{expectation.name}: {expectation.meaning} Severity: {expectation.severity}."]
    if steps:
        told.append(_with_names(f"Next: {'; '.join(steps)}."))
    if not_shown:
        told.append(f"Read with it: {'; '.join(not_shown)}.")
    return " ".join(told)
