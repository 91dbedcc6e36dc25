# The laptop tool without Spark and Java, with the server for assistants. From the root of the checkout:
#   docker build -f conf/containers/tool.Dockerfile -t replication-analyzer .
#   docker run --rm -v "$PWD/incident:/evidence:ro" replication-analyzer diagnose .
FROM python:3.11-slim-bookworm AS wheel
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.11-slim-bookworm
COPY --from=wheel /wheels /wheels
COPY conf/constraints.txt /wheels/constraints.txt
RUN pip install --no-cache-dir --constraint /wheels/constraints.txt "$(ls /wheels/*.whl)[mcp,produce]"
USER 1000
WORKDIR /evidence
ENTRYPOINT ["replication-analyzer"]
