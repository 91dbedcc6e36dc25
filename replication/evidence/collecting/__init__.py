"""Finds every artefact in what a user hands over, and reads each with its reader."""
