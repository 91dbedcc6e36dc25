"""Runs the recipes of docs/engines.md as they stand there, over the tables of a folder."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from replication.paths import project_root

PAGE = project_root() / "docs" / "engines.md"
RECIPE = re.compile(r"```\n(replication-views [^\n]+)\n```\n+```python\n(.+?)```", re.DOTALL)


def made_by_recipe(name: str, tables: Path) -> Any:
    """What a recipe calls `name`, after its call of replication-views and its Python."""
    [(call, code)] = [
        found for found in RECIPE.findall(PAGE.read_text("utf-8")) if f"\n{name} = " in found[1]
    ]
    views = f"{sys.executable} {project_root() / 'jobs' / 'create_views.py'}"
    environment = {**os.environ, "PYTHONPATH": str(project_root())}
    made: dict[str, Any] = {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            call.replace("replication-views", views), shell=True, check=True, cwd=folder,
            env=environment,
        )  # fmt: skip
        os.chdir(folder)
        try:
            exec(code.replace("/DIR", str(tables)), made)
        finally:
            os.chdir(before)
    return made[name]
