"""Tests of the expectations and of the documented views."""
