"""The script that puts a replica first: a call or a cluster that is of no use ends with 2."""

import json
import socket
from pathlib import Path

import pytest

from replication.decisions import reorder


@pytest.mark.parametrize("missing", ["--topic", "--first", "--bootstrap-server"])
def test_what_is_needed_is_named(missing: str, capsys: pytest.CaptureFixture[str]) -> None:
    call = {"--bootstrap-server": "b", "--topic": "t", "--partition": "0", "--first": "1"}
    del call[missing]
    with pytest.raises(SystemExit) as ended:
        reorder.main([word for pair in call.items() for word in pair])
    assert ended.value.code == 2
    assert missing in capsys.readouterr().err


def test_where_no_broker_answers_nothing_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"bootstrap_timeout_ms": 300}))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        call = ["--bootstrap-server", f"127.0.0.1:{port}", "--topic", "t", "--partition", "0"]
        call += ["--first", "1", "--execute", "--config", str(settings)]
        assert reorder.main(call) == 2
    assert "no connection" in capsys.readouterr().err
