"""Great Expectations: suites built in code, judged on the rows that fail. No other file knows it.

A suite's rows are found by one query of Spark and are few: they are handed over as a frame in
memory with a column for each expectation, all of whose cells must be empty.

Ours are judged in passing, or within a project: a file context on disk that its owners open and
extend, with the tables as a data source, our suites and checkpoints beside theirs, and every result
kept. The library is imported inside functions: with this pyspark and without grpc, importing it
where `python -m` starts can end the process with status 0 and no word.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from replication.quality import project_files
from replication.quality.next_steps import described, notes_of
from replication.quality.offline_docs import CANDIDATES
from replication.quality.suites import SEVERITIES, Suite
from replication.reports.inventory_words import counted

SITE = "data_docs"
# Names in a project: our rows that may fail, the tables themselves, what our suites begin with.
TABLES, OURS = "replication_tables", "replication_"
WHOLE = "whole"


class JudgeError(RuntimeError):
    """Great Expectations failed on an expectation: a defect of this tool, not of the data."""


class ProjectError(ValueError):
    """A project that cannot be used as asked; the text says which and why."""


@dataclass(frozen=True)
class Own:
    """What an expectation of the project's owners came to. failing: at least 1 where it failed.

    details: what failed it, in words. is_judged: not where it raised, or is of no known type.
    """

    suite: str
    name: str
    severity: str
    passed: bool
    failing: int
    observed: float
    meaning: str
    details: tuple[str, ...] = ()
    is_judged: bool = True


@dataclass
class Judge:
    """Great Expectations for one run of the checks. docs: the folder for Data Docs, None: none.

    project: the folder of a file context, None: nothing of it stays. tables: folder of the Delta
    tables that a project offers, and the columns of each.
    """

    run: str
    docs: Path | None = None
    project: Path | None = None
    tables: tuple[Path, Mapping[str, Sequence[str]]] = (Path(), {})
    _context: Any = field(default=None, repr=False)
    _source: Any = field(default=None, repr=False)

    def _start(self) -> None:
        os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
        import great_expectations as gx

        if self.project is None:
            self._context = gx.get_context(mode="ephemeral")
        else:
            self.project.mkdir(parents=True, exist_ok=True)
            try:
                self._context = gx.get_context(
                    mode="file", project_root_dir=self.project.absolute()
                )
            except Exception as error:
                told = f"the project {self.project} cannot be opened: {_first_line(error)}"
                raise ProjectError(told) from None
        self._context.variables.progress_bars = {"globally": False}
        # Frames that a project has known before cannot be handed to it anew: it asks for a context.
        if self._known(CANDIDATES) is not None:
            self._context.data_sources.delete(CANDIDATES)
        self._source = self._context.data_sources.add_pandas(CANDIDATES)
        if self.project is not None:
            self._offer_tables()
        if self.docs is not None:
            self._add_site(self.docs)

    def _known(self, name: str) -> Any:
        """A data source of the context, None where there is none of that name."""
        return self._context.data_sources.all().get(name)

    def _offer_tables(self) -> None:
        """The Delta tables as a data source of the project, an asset each. Raises ProjectError."""
        folder, names = self.tables
        source = self._known(TABLES)
        if source is None:
            source = self._context.data_sources.add_spark_filesystem(
                TABLES, base_directory=folder, persist=False
            )
        if Path(source.base_directory).resolve() != folder.resolve():
            raise ProjectError(
                f"the project {self.project} is of the tables in {source.base_directory}, not of "
                f"{folder}: give another --project"
            )
        known = {asset.name for asset in source.assets}
        for name in names:
            if name not in known:
                asset = source.add_directory_delta_asset(name, data_directory=name)
                asset.add_batch_definition_whole_directory(WHOLE)

    def _add_site(self, docs: Path) -> None:
        store = {
            "class_name": "TupleFilesystemStoreBackend",
            "base_directory": str(docs.absolute()),
        }
        config = {
            "class_name": "SiteBuilder",
            "store_backend": store,
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        }
        if SITE in self._context.get_site_names():
            self._context.update_data_docs_site(site_name=SITE, site_config=config)
        else:
            self._context.add_data_docs_site(site_name=SITE, site_config=config)

    def judge(
        self, suite: Suite, failing: Mapping[str, Sequence[str]],
        steps: Mapping[str, list[str]] | None = None,
        not_shown: Mapping[str, list[str]] | None = None,
    ) -> Mapping[str, bool]:  # fmt: skip
        """Expectation -> whether it is kept. failing: expectation -> the rows that fail it, in
        words. steps: what to do next, of those that fail; not_shown: what is not known beneath
        them, or taken for granted.

        Raises JudgeError, ProjectError.
        """
        if self._context is None:
            self._start()
        built = self._suite(suite, steps or {}, not_shown or {})
        batch = self._batch(suite.table)
        frame = frame_of(suite, failing)
        if self.docs is None and self.project is None:
            found = batch.get_batch({"dataframe": frame}).validate(built, result_format="SUMMARY")
        else:
            found = self._kept(built, batch, frame)
        return {
            name: _passed(suite, name, result, len(failing.get(name, ())))
            for name, result in _by_name(found).items()
        }

    def _batch(self, table: str) -> Any:
        known = [a for a in self._source.assets if a.name == table]
        asset = known[0] if known else self._source.add_dataframe_asset(table)
        if not asset.batch_definitions:
            asset.add_batch_definition_whole_dataframe(table)
        return asset.get_batch_definition(table)

    def _suite(
        self, suite: Suite, steps: Mapping[str, list[str]], not_shown: Mapping[str, list[str]]
    ) -> Any:
        import great_expectations as gx

        built = gx.ExpectationSuite(name=self._name(suite.table), meta={"about": suite.about})
        for expectation in suite.expectations:
            name = expectation.name
            built.add_expectation(
                gx.expectations.ExpectColumnValuesToBeNull(
                    column=name,
                    description=described(
                        expectation, steps.get(name, []), not_shown.get(name, [])
                    ),
                    severity=expectation.severity,
                    notes=notes_of(expectation),
                    meta={"name": name, "family": expectation.family},
                )
            )
        return built

    def _name(self, table: str) -> str:
        return table if self.project is None else OURS + table.strip("_")

    def _kept(self, built: Any, batch: Any, frame: pd.DataFrame) -> Any:
        """Judges with everything stored that Data Docs are made of."""
        import great_expectations as gx

        name = built.name
        stored = self._context.suites.add_or_update(built)
        definition = self._context.validation_definitions.add_or_update(
            gx.ValidationDefinition(name=name, data=batch, suite=stored)
        )
        gx_checkpoint = self._context.checkpoints.add_or_update(
            gx.Checkpoint(
                name=name,
                validation_definitions=[definition],
                result_format={"result_format": "SUMMARY"},
            )
        )
        outcome = gx_checkpoint.run(
            batch_parameters={"dataframe": frame},
            run_id=gx.RunIdentifier(run_name=self.run),
        )
        return next(iter(outcome.run_results.values()))

    def own(self, tables: Iterable[str], versions: Mapping[str, int]) -> Iterator[Own]:
        """Runs the checkpoints that the project's owners have put beside ours, which are called by
        tables and views. versions: of each table, the one that all checks read."""
        import great_expectations as gx

        if self.project is None or self._context is None:
            return
        ours = {self._name(table) for table in tables}
        keys = self._context.checkpoint_store.list_keys()
        times: Counter[tuple[str, str]] = Counter()
        for name in sorted({key.to_tuple()[0] for key in keys} - ours):
            # Great Expectations lists only those that it can read.
            for each in self._of_checkpoint(name, gx.RunIdentifier(run_name=self.run), versions):
                times[each.suite, each.name] += 1
                again = times[each.suite, each.name]
                yield each if again == 1 else replace(each, name=f"{each.name}#{again}")

    def _of_checkpoint(self, name: str, run_id: Any, versions: Mapping[str, int]) -> Iterator[Own]:
        """One checkpoint of theirs. What fails in it costs nothing else its result."""
        try:
            gx_checkpoint = self._context.checkpoints.get(name)
        except Exception as error:
            file = project_files.broken(Path(self._context.root_directory), name)
            yield _not_run(name, f"checkpoint {name} cannot be read", "critical", file or error)
            return
        try:
            for definition in gx_checkpoint.validation_definitions:
                _pin(definition.asset, versions)
            outcome = gx_checkpoint.run(run_id=run_id)
            found = [(r.suite_name, r.results) for r in outcome.run_results.values()]
        except Exception as error:
            # An action of it, or one of its tables: the others are judged all the same.
            yield _not_run(name, f"checkpoint {name} cannot be run", "warning", error)
            found = []
            for definition in gx_checkpoint.validation_definitions:
                try:
                    found.append((definition.suite.name, definition.run(run_id=run_id).results))
                except Exception as why:
                    what = f"validation {definition.name} cannot be run"
                    yield _not_run(definition.name, what, "critical", why)
        for suite, results in found:
            yield from (_own(suite, each, self.tables[1]) for each in results)
            yield from self._passed_over(suite)

    def _passed_over(self, suite: str) -> Iterator[Own]:
        """The expectations of a suite of theirs that Great Expectations leaves out of it: those of
        a type that nobody has told it of."""
        store = self._context.expectations_store
        written = store.get(store.get_key(name=suite, id=None))["expectations"]
        read = {each.id for each in self._context.suites.get(suite).expectations}
        for config in written:
            if config.id not in read:
                why = "cannot be judged: Great Expectations knows no expectation of this type"
                yield Own(suite, *_named(config), False, 1, 0.0, _meaning(config), (why,), False)

    def write_docs(self) -> Path | None:
        """Writes the Data Docs of everything that was judged; returns their first page."""
        if self._context is None or self.docs is None:
            return None
        self._context.build_data_docs(site_names=[SITE])
        return self.docs / "index.html"

    def sites(self) -> list[Path]:
        """The folders of Data Docs: the one that is asked for, and those of the project."""
        if self._context is None or self.project is None:
            return [] if self.docs is None else [self.docs]
        backends = (
            site.get("store_backend", {})
            for site in self._context.variables.data_docs_sites.values()
        )
        root = Path(self._context.root_directory)
        folders = [b["base_directory"] for b in backends if b.get("base_directory")]
        return [folder for each in folders if (folder := root / each).is_dir()]


def frame_of(suite: Suite, failing: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """A column for each expectation, the rows that fail it in its cells, at least one cell."""
    height = max([1, *map(len, failing.values())])
    columns = {}
    for expectation in suite.expectations:
        rows = list(failing.get(expectation.name, ()))
        columns[expectation.name] = pd.Series(rows + [None] * (height - len(rows)), dtype=object)
    return pd.DataFrame(columns)


def _by_name(found: Any) -> dict[str, Any]:
    return {r.expectation_config.meta["name"]: r for r in found.results}


def _raised(result: Any) -> str | None:
    """What an expectation failed with, None where it was judged."""
    raised = result.exception_info or {}
    failures = [raised] if "raised_exception" in raised else list(raised.values())
    for failure in failures:
        if failure.get("raised_exception"):
            return str(failure.get("exception_message"))
    return None


def _passed(suite: Suite, name: str, result: Any, failing: int) -> bool:
    raised = _raised(result)
    if raised is not None:
        raise JudgeError(f"{suite.table}.{name}: {raised}")
    if bool(result.success) != (failing == 0):
        raise JudgeError(f"{suite.table}.{name}: {failing} failing rows, yet {result.success}")
    return bool(result.success)


def _pin(asset: Any, versions: Mapping[str, int]) -> None:
    """Lets one of our tables be read at its version, in this process alone: what the project keeps
    stays as its owners made it."""
    table = Path(getattr(asset, "data_directory", "")).name
    if asset.datasource.name == TABLES and table in versions:
        asset.version_as_of = versions[table]


def _not_run(suite: str, what: str, severity: str, error: object) -> Own:
    said = f"{what}: {_first_line(error)}"
    meaning = "Asks whether the checkpoint can be read and run."
    return Own(suite, "runs", severity, False, 1, 0.0, meaning, (said,), False)


def _first_line(error: object) -> str:
    if type(error).__name__ == "ValidationError" and callable(getattr(error, "errors", None)):
        # pydantic's, of either version: the first line of its text only counts what is wrong.
        wrong = [(each.get("loc", ()), each.get("msg")) for each in error.errors()]  # type: ignore[attr-defined]
        return "; ".join(f"{'.'.join(map(str, where))}: {what}" for where, what in wrong)
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _own(suite: str, result: Any, columns: Mapping[str, Sequence[str]]) -> Own:
    """Whatever its type and result_format: each part of a result may be missing, or None. columns:
    of each table."""
    config, told = result.expectation_config, result.result
    raised, passed = _raised(result), bool(result.success)
    observed = told.get("observed_value")
    count = told.get("unexpected_count")
    if count is None and config.type == "unexpected_rows_expectation":
        count = observed
    number = _number(count if observed is None else observed)
    failing = 0 if passed else max(int(count or 0), 1)
    details: tuple[str, ...] = ()
    if raised is not None:
        table = str(config.kwargs.get("batch_id")).removeprefix(f"{TABLES}-")
        said = project_files.no_column(_first_line(raised), columns.get(table, ()))
        details = (f"cannot be judged: {said}",)
    elif not passed:
        details = tuple(_details(str(config.kwargs.get("column", "value")), told))
    return Own(
        suite, *_named(config), passed, failing, number, _meaning(config), details, raised is None
    )


def _named(config: Any) -> tuple[str, str]:
    """Name and severity of an expectation."""
    column = config.kwargs.get("column")
    name = str((config.meta or {}).get("name") or config.type) + (f"({column})" if column else "")
    severity = getattr(config.severity, "value", config.severity)
    return name, severity if severity in SEVERITIES else "critical"


def _meaning(config: Any) -> str:
    asked = [f"{key} = {value!r}" for key, value in config.kwargs.items() if key != "batch_id"]
    return str(config.description or f"{config.type}: {', '.join(asked)}")


def _details(column: str, told: Mapping[str, Any]) -> Iterator[str]:
    """The values that fail, of the rows that the result lists, or what was observed."""
    values = told.get("partial_unexpected_counts") or ()
    listed = sum(each["count"] for each in values)
    some = "" if listed == told.get("unexpected_count") else "at least "
    for each in values:
        yield f"{column} = {each['value']!r}: {some}{counted(each['count'], 'row')}"
    if values:
        return
    for value in told.get("partial_unexpected_list") or ():
        yield f"{column} = {value!r}"
    if told.get("observed_value") is not None:
        yield f"observed {told['observed_value']}"


def _number(value: Any) -> float:
    try:
        return 0.0 if value is None else float(value)
    except (TypeError, ValueError):
        return 0.0
