"""Which packages the wheel holds; everything else stands in pyproject.toml.

schemas/, conf/ and jobs/ lie beside the package in a checkout and within it in a wheel, so that it
can also be handed to Spark as one zip (replication/paths.py looks in both places).
"""

from pathlib import Path

from setuptools import find_packages, setup

SHIPPED = ("schemas", "conf", "conf/jars", "conf/expectations", "conf/prometheus", "jobs", "docs")
NAMES = {f"replication.shipped.{folder.replace('/', '.')}": folder for folder in SHIPPED}

setup(
    packages=[*find_packages(include=["replication*"]), *NAMES],
    package_dir=NAMES,
    package_data={
        "replication.evidence.messages": ["layout_files/*.json"],
        "replication.reports": ["page_parts/*"],
        "replication.collect": ["scripts/*.sh"],
        "replication.drill": ["java/replication/tap/*.java"],
        **{
            # Of the pages only the schemas of answers: the server tells them to its clients.
            name: [p.name for p in Path(folder).iterdir() if p.is_file() and p.suffix != ".md"]
            for name, folder in NAMES.items()
        },
    },
)
