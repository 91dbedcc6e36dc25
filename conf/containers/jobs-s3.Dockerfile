# The image of the jobs with what Spark needs for `s3a:` beside it (700 MB more). From the root of the checkout, after that image:
#   docker build -f conf/containers/jobs-s3.Dockerfile -t replication-analyzer-jobs-s3 .
FROM maven:3.9-eclipse-temurin-17 AS jars
COPY conf/s3/pom.xml /s3/pom.xml
RUN mvn --batch-mode --quiet --file /s3/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=/s3/jars

FROM replication-analyzer-jobs:latest
COPY --from=jars /s3/jars /jars
