"""What is put into the evidence at the end of a drill, beside the acknowledgement log."""

import shutil
import stat
from pathlib import Path

from replication.collect.command import script
from replication.drill.cluster import NoDrill
from replication.drill.plan import Plan

_SHOWN = 3


def script_file(plan: Plan) -> Path | None:
    """The script that collects on the plan's platform, written beside the evidence; None where the
    plan names no platform."""
    platform = plan.collect.platform
    if platform is None:
        return None
    path = plan.out / f"collect-{platform}.sh"
    path.write_text(script(platform), encoding="utf-8")
    return path


def take(plan: Plan) -> list[str]:
    """Copies what the plan names into the evidence, and says what it copied. What was copied by an
    earlier call is copied anew. Raises NoDrill where a path is not there or cannot be read."""
    told = []
    for name, paths in plan.collect.take.items():
        folder = plan.evidence / name
        shutil.rmtree(folder, ignore_errors=True)
        for path in paths:
            if not path.exists():
                raise NoDrill(f"[collect] take {name}: there is no {path}")
            to = folder / _free_name(folder, path.name or "files")
            _copy(path, to)
            told.append(f"{path} to {to}")
    return told


def _free_name(folder: Path, name: str) -> str:
    """Two folders of the same name are kept apart."""
    number, found = 1, name
    while (folder / found).exists():
        number += 1
        found = f"{name}-{number}"
    return found


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        if path.is_dir():
            shutil.copytree(path, to, ignore=_no_files, copy_function=_copy_file)
        else:
            shutil.copy2(path, to)
    except shutil.Error as error:
        told = "; ".join(f"{source}: {why}" for source, _, why in error.args[0][:_SHOWN])
        raise NoDrill(f"[collect] {path} was not copied whole: {told}") from None
    except OSError as error:
        raise NoDrill(
            f"[collect] {path} was not copied: {error.strerror}: {error.filename}"
        ) from None


def _copy_file(source: str, target: str) -> None:
    """A running broker deletes and renames files while they are copied."""
    try:
        shutil.copy2(source, target)
    except FileNotFoundError:
        return


def _no_files(folder: str, names: list[str]) -> list[str]:
    """Sockets, pipes and devices, which have no content to copy."""
    left_out = []
    for name in names:
        try:
            mode = (Path(folder) / name).stat().st_mode
        except OSError:
            left_out.append(name)
            continue
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            left_out.append(name)
    return left_out
