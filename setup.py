"""Which packages the wheel holds; everything else stands in pyproject.toml.

schemas/, conf/ and jobs/ lie beside the package in a checkout and within it in a wheel, so that it
can also be handed to Spark as one zip (replication/paths.py looks in both places).
"""

from pathlib import Path

from setuptools import find_packages, setup

SHIPPED = ("schemas", "conf", "conf/jars", "conf/expectations", "conf/prometheus", "jobs")
NAMES = {f"replication.shipped.{folder.replace('/', '.')}": folder for folder in SHIPPED}

setup(
    packages=[*find_packages(include=["replication*"]), *NAMES],
    package_dir=NAMES,
    package_data={
        "replication.evidence.messages": ["layout_files/*.json"],
        "replication.reports": ["page_parts/*"],
        **{
            name: [p.name for p in Path(folder).iterdir() if p.is_file()]
            for name, folder in NAMES.items()
        },
    },
)
