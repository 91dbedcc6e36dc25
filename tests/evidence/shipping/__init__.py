"""Tests of lines as shippers send them."""
