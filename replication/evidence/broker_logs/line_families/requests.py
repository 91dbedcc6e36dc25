"""The request logger: text up to 2.7, one JSON object since 2.8. Only requests about records.

`request` and `response` are nested dicts with Kafka's own field names: snake case in the text form,
camel case in JSON. Fetch sessions have to be replayed by the caller: partitions that did not change
are left out of both.
"""

import json
import re
from typing import Any

from replication.evidence.broker_logs.line_families.family import Fields, Found, LineFamily, example

_KINDS = {
    0: "PRODUCE",
    1: "FETCH",
    2: "LIST_OFFSETS",
    23: "OFFSET_FOR_LEADER_EPOCH",
    56: "ALTER_PARTITION",
}
# Earlier names of the same requests.
_OTHER_NAMES = {"OFFSETS": 2, "ALTER_ISR": 56}
_KEYS = {**{name: key for key, name in _KINDS.items()}, **_OTHER_NAMES}
_OPENING, _CLOSING = "([{", ")]}"


class _Text:
    """Kafka's `Struct.toString`: `{a=1,b=[{c=x}]}`; scalars are not quoted."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.place = 0

    def value(self, depth: int = 0) -> Any:
        if depth > 50:
            raise ValueError("nested too deeply")
        opening = self._text[self.place : self.place + 1]
        if opening == "{":
            return self._struct(depth)
        if opening == "[":
            return self._list(depth)
        return _scalar(self._scalar_text())

    def _struct(self, depth: int) -> dict[str, Any]:
        self.place += 1
        fields: dict[str, Any] = {}
        while not self._ends("}", first=not fields):
            equals = self._text.index("=", self.place)
            name = self._text[self.place : equals]
            self.place = equals + 1
            fields[name] = self.value(depth + 1)
        return fields

    def _list(self, depth: int) -> list[Any]:
        self.place += 1
        items: list[Any] = []
        while not self._ends("]", first=not items):
            items.append(self.value(depth + 1))
        return items

    def _ends(self, closing: str, *, first: bool) -> bool:
        """Steps over what ends the list, or over the comma before its next member."""
        character = self._text[self.place : self.place + 1]
        if character == closing:
            self.place += 1
            return True
        if not first:
            if character != ",":
                raise ValueError(f"neither a comma nor {closing}")
            self.place += 1
        return False

    def _scalar_text(self) -> str:
        """Up to the comma or bracket that is not inside brackets of its own."""
        start, depth = self.place, 0
        while self.place < len(self._text):
            character = self._text[self.place]
            if character in _OPENING:
                depth += 1
            elif character in _CLOSING:
                if depth == 0:
                    break
                depth -= 1
            elif character == "," and depth == 0:
                break
            self.place += 1
        return self._text[start : self.place]


_WHOLE = re.compile(r"-?\d+$")


def _scalar(text: str) -> Any:
    if _WHOLE.match(text):
        return int(text)
    return {"null": None, "true": True, "false": False}.get(text, text)


_HEADER_TEXT = re.compile(
    r"^RequestHeader\(apiKey=(?P<api>\w+), apiVersion=(?P<version>\d+), clientId=(?P<client>.*?), "
    r"correlationId=(?P<correlation>-?\d+)\)|^\{api_key=(?P<key>\d+),api_version=(?P<version2>\d+),"
    r"correlation_id=(?P<correlation2>-?\d+),client_id=(?P<client2>.*?)\} -- "
)
_TIMES = re.compile(r" from connection (?P<connection>[^;]*);totalTime:(?P<total>[\d.]+)")


def _text_request(text: str) -> list[Found]:
    header = _HEADER_TEXT.match(text)
    if header is None:
        raise ValueError("no request header")
    key = _KEYS.get(header["api"]) if header["api"] else int(header["key"])
    if key not in _KINDS:
        return []
    body = _Text(text)
    body.place = text.index("{", text.index(" -- ") + 4)
    fields: Fields = {
        "api": _KINDS[key],
        "api_key": key,
        "api_version": int(header["version"] or header["version2"]),
        "client_id": header["client"] if header["client"] is not None else header["client2"],
        "correlation_id": int(header["correlation"] or header["correlation2"]),
        "request": body.value(),
    }
    if text.startswith(",response:", body.place):
        body.place += len(",response:")
        fields["response"] = body.value()
    times = _TIMES.search(text, body.place)
    if times:
        fields["connection"] = times["connection"]
        fields["total_time_ms"] = float(times["total"])
    return [Found(fields)]


def _json_request(text: str) -> list[Found]:
    entry = json.loads(text)
    header = entry["requestHeader"]
    key = header["requestApiKey"]
    if key not in _KINDS:
        return []
    fields: Fields = {
        "api": _KINDS[key],
        "api_key": key,
        "api_version": header["requestApiVersion"],
        "client_id": header.get("clientId"),
        "correlation_id": header.get("correlationId"),
        "request": entry["request"],
    }
    if "response" in entry:
        fields["response"] = entry["response"]
    fields["connection"] = entry.get("connection")
    fields["total_time_ms"] = entry.get("totalTimeMs")
    return [Found(fields)]


# Most of a request log is heartbeats and metadata: refused before anything is parsed.
_KEY_IN_JSON = re.compile(r'"requestApiKey":(\d+)')


def _request(match: re.Match[str]) -> list[Found]:
    """No fact for other requests. Raises ValueError for an entry that cannot be read."""
    text = match["entry"]
    if text.startswith('{"'):
        key = _KEY_IN_JSON.search(text)
        if key and int(key[1]) not in _KINDS:
            return []
        try:
            return _json_request(text)
        except (KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"not a request log entry: {error}") from error
    return _text_request(text)


_LOGGED = LineFamily(
    kind="request_logged",
    versions="0.10 TRACE (request only), 1.0 - 2.7 DEBUG (text), 2.8 - 4.3 DEBUG (JSON)",
    loggers=("kafka.request.logger",),
    words=("Completed",),
    trigger="Completed request:",
    pattern=r"^Completed request:(?P<entry>.*)$",
    convert=_request,
    examples=(
        example(
            "Completed request:{api_key=1,api_version=3,correlation_id=9,client_id="
            "ReplicaFetcherThread-0-2} -- {replica_id=1,max_wait_time=20000,min_bytes=1,max_bytes="
            "10485760,topics=[{topic=t,partitions=[{partition=0,fetch_offset=9,max_bytes=1048576}]}]}"
            " from connection 127.0.0.1:19312-127.0.0.1:5000;totalTime:20001,requestQueueTime:0",
            api="FETCH", api_key=1, api_version=3, client_id="ReplicaFetcherThread-0-2",
            correlation_id=9,
            request={
                "replica_id": 1, "max_wait_time": 20000, "min_bytes": 1, "max_bytes": 10485760,
                "topics": [
                    {"topic": "t", "partitions": [
                        {"partition": 0, "fetch_offset": 9, "max_bytes": 1048576},
                    ]},
                ],
            },
            connection="127.0.0.1:19312-127.0.0.1:5000", total_time_ms=20001.0,
        ),
        example(
            "Completed request:RequestHeader(apiKey=OFFSET_FOR_LEADER_EPOCH, apiVersion=0, clientId="
            "broker-2-fetcher-0, correlationId=0) -- {topics=[{topic=t,partitions=[{partition=0,"
            "leader_epoch=2},{partition=1,leader_epoch=-1}]}]},response:{topics=[{topic=t,"
            "partitions=[{error_code=0,partition=0,end_offset=36},{error_code=0,partition=1,"
            "end_offset=-1}]}]} from connection 127.0.0.1:19313-127.0.0.1:41976-1;totalTime:15.263,"
            "requestQueueTime:1.148,localTime:11.503,listener:INT",
            api="OFFSET_FOR_LEADER_EPOCH", api_key=23, api_version=0,
            client_id="broker-2-fetcher-0", correlation_id=0,
            request={"topics": [{"topic": "t", "partitions": [
                {"partition": 0, "leader_epoch": 2}, {"partition": 1, "leader_epoch": -1},
            ]}]},
            response={"topics": [{"topic": "t", "partitions": [
                {"error_code": 0, "partition": 0, "end_offset": 36},
                {"error_code": 0, "partition": 1, "end_offset": -1},
            ]}]},
            connection="127.0.0.1:19313-127.0.0.1:41976-1", total_time_ms=15.263,
        ),
        example(
            'Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":0,'
            '"requestApiVersion":9,"correlationId":4,"clientId":"p","requestApiKeyName":"PRODUCE"},'
            '"request":{"transactionalId":null,"acks":-1,"timeoutMs":4000,"topicData":[{"name":"t",'
            '"partitionData":[{"index":0,"recordsSizeInBytes":96}]}]},"response":{"responses":[{'
            '"name":"t","partitionResponses":[{"index":0,"errorCode":0,"baseOffset":7}]}],'
            '"throttleTimeMs":0},"connection":"127.0.0.1:29101-127.0.0.1:40000-1",'
            '"totalTimeMs":3.5,"requestQueueTimeMs":0.1}',
            api="PRODUCE", api_key=0, api_version=9, client_id="p", correlation_id=4,
            request={
                "transactionalId": None, "acks": -1, "timeoutMs": 4000, "topicData": [
                    {"name": "t", "partitionData": [{"index": 0, "recordsSizeInBytes": 96}]},
                ],
            },
            response={
                "responses": [{"name": "t", "partitionResponses": [
                    {"index": 0, "errorCode": 0, "baseOffset": 7},
                ]}],
                "throttleTimeMs": 0,
            },
            connection="127.0.0.1:29101-127.0.0.1:40000-1", total_time_ms=3.5,
        ),
    ),
)  # fmt: skip

FAMILIES: tuple[LineFamily, ...] = (_LOGGED,)
