"""The check and the alert of one loss: each says why the other may be more or less severe."""

from ruamel.yaml import YAML

from replication.paths import project_root
from replication.quality import suites
from replication.spark.alerts import alerts_of
from tests.spark.test_alerts import RULES, answered, loss


def test_where_a_check_is_more_severe_than_the_alert_of_the_same_loss_both_say_why() -> None:
    """An alert goes by what the settings promised, a check by what is missing."""
    shipped = suites.load(project_root() / "conf" / "expectations")
    checked = {e.name: e for s in shipped for e in s.expectations if s.table == "verdicts"}
    for name in ("no_committed_loss", "no_consumed_loss"):
        assert checked[name].severity == "critical"
        assert "RecordsLost of a stream is a warning where" in checked[name].meaning
    for contract in ("broken", "not_promised", "unknown"):
        [alert] = alerts_of(answered(loss_ledger=[loss(contract=contract)]))
        is_milder = alert.severity == "warning"
        assert is_milder == (contract != "broken")
        assert ("check_quality fails as critical" in alert.annotations["description"]) == is_milder
    rules = YAML(typ="safe").load(RULES.read_text())["groups"][0]["rules"]
    told = {
        r["labels"]["severity"]: "check_quality fails as critical" in r["annotations"]["runbook"]
        for r in rules
        if r["alert"] == "RecordsLost"
    }
    assert told == {"critical": False, "warning": True}
