"""Tests of the Spark side: jobs, tables, crashes, bad input."""
