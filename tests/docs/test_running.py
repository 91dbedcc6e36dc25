"""docs/running.md and kubernetes.md: every example is one that the programs would take."""

import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from replication import submit
from replication.paths import how_to_install
from replication.quality import acceptances
from replication.quality import command as quality
from replication.spark import (
    failures,
    import_artifacts,
    incident_page,
    maintain,
    replay,
    stream,
    views,
)
from tests.container_recipes import RECIPES

ROOT = Path(__file__).parents[2]
PAGE = "\n".join(
    (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("running.md", "kubernetes.md")
)
PARSERS = {
    "replication-stream": stream.parser, "replication-replay": replay.parser,
    "replication-import": import_artifacts.parser, "replication-quality": quality.parser,
    "replication-report": incident_page.parser, "replication-maintain": maintain.parser,
    "replication-views": views.parser,
}  # fmt: skip


def test_nobody_is_sent_to_a_registry_for_a_name_that_is_not_ours() -> None:
    """Whoever registers it would be run by every reader of such a line."""
    places = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *ROOT.glob("replication/**/*.py")]
    asked = re.compile(r"""pip install .*['" ]replication-analyzer\b""")
    assert [str(p) for p in places if asked.search(p.read_text(encoding="utf-8"))] == []
    made, installed = PAGE.partition("## The wheel")[2].partition("```\n")[2].splitlines()[:2]
    assert "-w dist ." in made
    extras = set(re.findall(r"\w+", installed.rpartition("[")[2]))
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras <= known.keys()
    for message in [made.removeprefix("pip "), installed.rpartition(" ")[2]]:
        assert message in how_to_install(",".join(["spark", "quality"]))


def blocks(kind: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [text for told, text in fenced if told == kind]


def manifests() -> list[dict[str, Any]]:
    return [one for text in blocks("yaml") for one in YAML(typ="safe").load_all(text)]


def pods() -> dict[str, dict[str, Any]]:
    """Kind and name -> the pod of what has one."""
    found = {}
    for one in manifests():
        spec = one.get("spec", {})
        spec = spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec
        if "template" in spec:
            found[f"{one['kind']} {one['metadata']['name']}"] = spec["template"]["spec"]
    return found


def containers() -> list[dict[str, Any]]:
    return [each for pod in pods().values() for each in pod["containers"]]


def calls() -> list[list[str]]:
    lines = [shlex.split(line) for text in blocks("") for line in text.splitlines()]
    told = [[*c["command"], *map(str, c["args"])] for c in containers()]
    return [words for words in [*lines, *told] if words and words[0].startswith("replication-")]


@pytest.mark.parametrize("call", calls(), ids=" ".join)
def test_each_call_is_one_that_spark_submit_and_the_job_take(call: list[str]) -> None:
    own, rest = submit._split(call[1:])
    assert all(w.partition("=")[0] in submit.WITH_VALUE for w in own if w.startswith("--"))
    PARSERS[call[0]]().parse_args(rest)


def test_there_are_calls_for_each_engine() -> None:
    told = [" ".join(call).replace("=", " ").split() for call in calls()]
    masters = {call[call.index("--master") + 1] for call in told if "--master" in call}
    assert {"spark://master:7077", "yarn", "local[4]"} <= masters


def test_manifests_name_what_they_mount_and_claim() -> None:
    claims = {m["metadata"]["name"] for m in manifests() if m["kind"] == "PersistentVolumeClaim"}
    assert {m["kind"] for m in manifests()} == {
        "PersistentVolumeClaim", "Deployment", "Service", "ServiceMonitor", "CronJob", "ConfigMap",
    }  # fmt: skip
    for spec in pods().values():
        volumes = {v["name"]: v for v in spec["volumes"]}
        mounts = [m["name"] for c in spec["containers"] for m in c["volumeMounts"]]
        assert set(mounts) == set(volumes)
        named = {v["persistentVolumeClaim"]["claimName"] for v in volumes.values()
                 if "persistentVolumeClaim" in v}  # fmt: skip
        assert named <= claims
        texts = {m["metadata"]["name"] for m in manifests() if m["kind"] == "ConfigMap"}
        assert {v["configMap"]["name"] for v in volumes.values() if "configMap" in v} <= texts


@pytest.mark.parametrize("name", pods())
def test_a_pod_meets_the_restricted_pod_security_standard(name: str) -> None:
    pod = pods()[name]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    for each in pod["containers"]:
        own = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        assert each["securityContext"] == own
    allowed = {"persistentVolumeClaim", "secret", "emptyDir", "configMap"}
    assert {kind for v in pod["volumes"] for kind in v} <= allowed | {"name"}


@pytest.mark.parametrize("name", pods())
def test_a_pod_may_write_its_volume_and_has_what_it_needs(name: str) -> None:
    """The image's user is 1000: a volume of root's is opened to it by fsGroup alone."""
    pod = pods()[name]
    recipe = (ROOT / "conf" / "containers" / "jobs.Dockerfile").read_text(encoding="utf-8")
    assert "--uid 1000" in recipe
    assert (pod["securityContext"]["fsGroup"], pod["securityContext"]["runAsUser"]) == (1000, 1000)
    [each] = pod["containers"]
    asked, limits = each["resources"]["requests"], each["resources"]["limits"]
    own, job = submit._split(each["args"])
    [memory] = [int(w.rpartition("=")[2].rstrip("g")) for w in own if "driver-memory" in w]
    assert asked["cpu"]
    # Python on the driver, a Python for each core and RocksDB have the rest.
    assert 2 * memory <= int(limits["memory"].removesuffix("Gi"))
    lasting = [
        m["mountPath"]
        for m in each["volumeMounts"]
        if any(v["name"] == m["name"] and "persistentVolumeClaim" in v for v in pod["volumes"])
    ]
    kept = [w.rpartition("=")[2] for w in job if w.startswith(("--tables", "--checkpoint-dir"))]
    assert kept
    assert all(path.startswith(f"{lasting[0]}/") for path in kept)


def test_what_kubernetes_does_not_repeat_are_the_statuses_that_stay() -> None:
    for one in manifests():
        if one["kind"] != "CronJob":
            continue
        job = one["spec"]["jobTemplate"]["spec"]
        [each] = job["template"]["spec"]["containers"]
        [rule] = job["podFailurePolicy"]["rules"]
        told = statuses_in_the_table(each["command"][0])
        assert rule["onExitCodes"]["containerName"] == each["name"]
        assert set(rule["onExitCodes"]["values"]) == told - {0, failures.EXIT_TRY_AGAIN}


def test_the_metrics_of_stream_and_checks_are_scraped() -> None:
    """Without those of the checks ExpectationFailed and others can never fire."""
    of = {m["kind"]: m for m in manifests() if m["kind"] != "Deployment"}
    made = {m["metadata"]["name"]: m for m in manifests() if m["kind"] == "Deployment"}
    [served] = of["Service"]["spec"]["ports"]
    ports = {}
    for name, one in made.items():
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert labels.items() >= of["Service"]["spec"]["selector"].items()
        assert labels.items() >= one["spec"]["selector"]["matchLabels"].items()
        [each] = one["spec"]["template"]["spec"]["containers"]
        [port] = each["ports"]
        assert served["targetPort"] == port["name"]
        flags = vars(PARSERS[name]().parse_args(submit._split(each["args"])[1]))
        ports[name] = flags["alert"] if name == "replication-stream" else flags["metrics"]
    assert ports == {
        "replication-stream": [f"prometheus={port['containerPort']}"],
        "replication-quality": port["containerPort"],
    }
    chosen = of["ServiceMonitor"]["spec"]
    assert of["Service"]["metadata"]["labels"].items() >= chosen["selector"]["matchLabels"].items()
    assert [e["port"] for e in chosen["endpoints"]] == [served["name"]]


def test_what_is_accepted_is_mounted_and_may_be_nothing(tmp_path: Path) -> None:
    [texts] = [m["data"] for m in manifests() if m["kind"] == "ConfigMap"]
    [(name, text)] = texts.items()
    (tmp_path / name).write_text(text)
    assert acceptances.load(tmp_path / name) == []
    [each] = pods()["Deployment replication-quality"]["containers"]
    flags = vars(quality.parser().parse_args(submit._split(each["args"])[1]))
    mounts = {m["mountPath"] for m in each["volumeMounts"] if m["name"] == "accepted"}
    assert flags["accepted"].name == name
    assert {str(flags["accepted"].parent)} == mounts


def test_the_rule_of_maintenance_asks_for_the_cron_job_of_the_page() -> None:
    rules = (ROOT / "conf" / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
    asked = set(re.findall(r'cronjob="([\w-]+)"', rules))
    assert asked == {m["metadata"]["name"] for m in manifests() if m["kind"] == "CronJob"}


def test_an_upgrade_stops_and_starts_all_that_writes() -> None:
    page = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    told = page.partition("### An upgrade on Kubernetes")[2].partition("\n## ")[0]
    for one in manifests():
        if one["kind"] in ("Deployment", "CronJob"):
            name = one["metadata"]["name"]
            stop = "scale deployment .*" if one["kind"] == "Deployment" else "patch cronjob "
            assert len(re.findall(rf"^kubectl {stop}{name}", told, re.MULTILINE)) == 2
            assert f"{one['kind'].lower()}/{name}" in told


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_yaml_on_any_page_is_yaml(page: Path) -> None:
    for text in re.findall(
        r"^```yaml\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    ):
        assert list(YAML(typ="safe").load_all(text))


def test_the_rules_become_a_manifest_by_the_command_of_the_page() -> None:
    [line] = [li for t in blocks("") for li in t.splitlines() if "PrometheusRule" in li]
    made = subprocess.run(
        ["bash", "-c", line.removesuffix(" | kubectl apply -f -")],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    manifest = YAML(typ="safe").load(made.stdout)
    rules = (ROOT / "conf" / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
    assert manifest["kind"] == "PrometheusRule"
    assert manifest["spec"] == YAML(typ="safe").load(rules)


def test_images_are_those_of_the_recipes() -> None:
    built = re.findall(r"docker build -f (\S+) -t (\S+) \.", PAGE)
    assert sorted(ROOT / path for path, _ in built) == RECIPES
    names = {name for _, name in built}
    assert {c["image"].removesuffix(":latest") for c in containers()} <= names
    for path, name in built:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"docker build -f {path} -t {name} ." in text


STATUSES = PAGE.partition("## Exit statuses")[2].partition("## Logs")[0]


def told_rows() -> list[list[str]]:
    """The cells of each row of the section's table: status, of, means, do, Kubernetes."""
    rows = re.findall(r"^\| (\d.*) \|$", STATUSES, re.MULTILINE)
    return [[cell.strip() for cell in row.split(" |")] for row in rows]


def statuses_in_the_table(job: str) -> set[int]:
    """Those of a job itself, below 10."""
    return {
        int(status)
        for status, of, *_ in told_rows()
        if len(status) == 1 and (of == "each job" or f"`{job}`" in of)
    }


@pytest.mark.parametrize("job", PARSERS)
def test_the_table_has_the_exit_statuses_that_the_job_tells(job: str) -> None:
    told = PARSERS[job]().epilog or ""
    said = told.partition("Exit status: ")[2].partition(".")[0]
    assert statuses_in_the_table(job) == {int(n) for n in re.findall(r"(?:^|, )(\d) ", said)}


def test_each_status_says_what_it_means_what_to_do_and_what_kubernetes_should() -> None:
    assert {len(row) for row in told_rows()} == {5}
    assert [cell for row in told_rows() for cell in row if not cell] == []
    bad = {failures.EXIT_UNUSABLE, failures.EXIT_DEFECT, failures.EXIT_TRY_AGAIN}
    assert {str(status) for status in bad} <= {row[0] for row in told_rows()}
    named = {name for row in told_rows() for name in re.findall(r"`(replication-\w+)`", row[1])}
    assert named == set(PARSERS)
