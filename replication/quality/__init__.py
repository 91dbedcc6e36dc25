"""Expectations of the Delta tables: suites kept as data, judged by Great Expectations.

`suites` reads conf/expectations/, `candidates` turns a suite into one small frame of rows that may
fail, `great_expectations_suite` (the only file that knows Great Expectations) judges it, and
`checks` puts outcomes into rows of `expectation_results`, words and an exit status.
"""
