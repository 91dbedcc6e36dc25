# The jobs with Spark, Java and all jars, so that no start asks Maven. From the root of the checkout:
#   docker build -f conf/containers/jobs.Dockerfile -t replication-analyzer-jobs .
#   docker run --rm -v replication:/share replication-analyzer-jobs replication-stream --source /share/events --tables /share/tables --checkpoint-dir /share/ck
FROM maven:3.9-eclipse-temurin-17 AS jars
COPY conf/jars/pom.xml /jars/pom.xml
RUN mvn --batch-mode --quiet --file /jars/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=/jars && touch /jars/.complete

FROM python:3.11-slim-bookworm AS wheel
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps && rm -rf /var/lib/apt/lists/*
# Spark asks for the user's name: a number alone would end it.
RUN useradd --uid 1000 --create-home analyzer
COPY --from=wheel /wheels /wheels
COPY conf/constraints.txt /wheels/constraints.txt
RUN pip install --no-cache-dir --constraint /wheels/constraints.txt "$(ls /wheels/*.whl)[spark,quality]"
COPY --from=jars /jars /jars
ENV REPLICATION_ANALYZER_JARS=/jars
USER analyzer
WORKDIR /share
CMD ["replication-analyzer", "doctor"]
