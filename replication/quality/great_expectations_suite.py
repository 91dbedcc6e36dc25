"""Great Expectations: suites built in code, judged on candidate rows. No other file knows it.

The library is imported inside functions: with this pyspark and without grpc, importing it where
`python -m` starts can end the process with status 0 and no word.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from replication.quality.candidates import ROW
from replication.quality.suites import Expectation, Suite

SITE = "data_docs"


class JudgeError(RuntimeError):
    """Great Expectations failed on an expectation: a defect of this tool, not of the data."""


@dataclass
class Judge:
    """Great Expectations for one run of the checks. docs: the folder for Data Docs, None: none."""

    run: str
    docs: Path | None = None
    _context: Any = field(default=None, repr=False)
    _source: Any = field(default=None, repr=False)

    def _start(self) -> None:
        os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
        import great_expectations as gx

        self._context = gx.get_context(mode="ephemeral")
        self._context.variables.progress_bars = {"globally": False}
        # Persisted batches would never be let go of: what is worth keeping is kept by the caller.
        self._source = self._context.data_sources.add_spark("tables", persist=False)
        if self.docs is not None:
            store = {
                "class_name": "TupleFilesystemStoreBackend",
                "base_directory": str(self.docs.absolute()),
            }
            self._context.add_data_docs_site(
                site_name=SITE,
                site_config={
                    "class_name": "SiteBuilder",
                    "store_backend": store,
                    "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
                },
            )

    def judge(self, suite: Suite, candidates: DataFrame) -> Mapping[str, int]:
        """Expectation -> how many rows fail it. candidates: as candidates.frame_of makes them.

        Raises JudgeError.
        """
        if self._context is None:
            self._start()
        built = self._suite(suite)
        batch = self._source.add_dataframe_asset(suite.table).add_batch_definition_whole_dataframe(
            suite.table
        )
        if self.docs is None:
            found = batch.get_batch({"dataframe": candidates}).validate(
                built, result_format="SUMMARY"
            )
        else:
            found = self._documented(suite, built, batch, candidates)
        return {name: _failing(suite, name, result) for name, result in _by_name(found).items()}

    def _suite(self, suite: Suite) -> Any:
        import great_expectations as gx

        built = gx.ExpectationSuite(name=suite.table, meta={"about": suite.about})
        for expectation in suite.expectations:
            built.add_expectation(
                gx.expectations.UnexpectedRowsExpectation(
                    unexpected_rows_query=failing_rows_sql(expectation),
                    description=f"{expectation.name}: {expectation.meaning}",
                    severity=expectation.severity,
                    meta={"name": expectation.name, "family": expectation.family},
                )
            )
        return built

    def _documented(self, suite: Suite, built: Any, batch: Any, candidates: DataFrame) -> Any:
        """Judges with everything stored that Data Docs are made of."""
        import great_expectations as gx

        stored = self._context.suites.add(built)
        definition = self._context.validation_definitions.add(
            gx.ValidationDefinition(name=suite.table, data=batch, suite=stored)
        )
        documented = self._context.checkpoints.add(
            gx.Checkpoint(
                name=suite.table,
                validation_definitions=[definition],
                result_format={"result_format": "SUMMARY"},
            )
        )
        outcome = documented.run(
            batch_parameters={"dataframe": candidates},
            run_id=gx.RunIdentifier(run_name=self.run),
        )
        return next(iter(outcome.run_results.values()))

    def write_docs(self) -> Path | None:
        """Writes the Data Docs of everything that was judged; returns their first page."""
        if self._context is None or self.docs is None:
            return None
        self._context.build_data_docs(site_names=[SITE])
        return self.docs / "index.html"


def failing_rows_sql(expectation: Expectation) -> str:
    """The rows of the candidates that fail: the query that Great Expectations runs."""
    conditions = [f"expectation = '{expectation.name}'", "listed", "allowed IS NULL"]
    if expectation.kind == "limit":
        conditions.append(f"observed > {expectation.at_most!r}")
    if expectation.kind == "share":
        conditions.append(f"value > {expectation.at_most!r}")
    return f"SELECT {', '.join(f'`{n}`' for n in ROW)} FROM {{batch}} WHERE " + " AND ".join(
        conditions
    )


def _by_name(found: Any) -> dict[str, Any]:
    return {r.expectation_config.meta["name"]: r for r in found.results}


def _failing(suite: Suite, name: str, result: Any) -> int:
    raised = result.exception_info or {}
    failures = [raised] if "raised_exception" in raised else list(raised.values())
    for failure in failures:
        if failure.get("raised_exception"):
            raise JudgeError(f"{suite.table}.{name}: {failure.get('exception_message')}")
    failing = int(result.result["observed_value"])
    if (failing == 0) != bool(result.success):
        raise JudgeError(f"{suite.table}.{name}: {failing} failing rows, yet {result.success}")
    return failing
