# The adapter's image: Python, the hashed packages of requirements/runtime.txt, and our three packages. No Spark, no Java.
#   docker build -t kafka-lag-adapter:0.1.0 .
# With pyarrow, which the adapter needs to keep an offset history (`history.location` in the settings):
#   docker build --target history -t kafka-lag-adapter:0.1.0-history .
# The report's, with a JRE and the packages of requirements/spark.txt:
#   docker build --target spark -t kafka-lag-report:0.1.0 .
# Pinned by tag, because this file was written without a look at a registry. For a build that can be repeated to the byte:
#   docker build --build-arg PYTHON_IMAGE=python:3.13-slim-bookworm@sha256:... -t kafka-lag-adapter:0.1.0 .
ARG PYTHON_IMAGE=python:3.13-slim-bookworm

# Packages before code: a change of code leaves the stages whose names begin with `packages` as they are.
FROM ${PYTHON_IMAGE} AS packages
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
# The environment holds no pip: nothing is ever installed into a running container.
RUN python -m venv --without-pip /opt/venv
WORKDIR /src
COPY requirements/runtime.txt requirements/build.txt requirements/
RUN python -m pip --python /opt/venv/bin/python install --require-hashes --only-binary=:all: -r requirements/runtime.txt
# What the adapter never imports: kubernetes' second client, for asyncio, and tests.
RUN rm -r /opt/venv/lib/python*/site-packages/kubernetes/aio /opt/venv/lib/python*/site-packages/numpy/*/tests
RUN python -m pip install --require-hashes --only-binary=:all: -r requirements/build.txt

FROM packages AS packages-history
COPY requirements/history.txt requirements/
RUN python -m pip --python /opt/venv/bin/python install --require-hashes --only-binary=:all: -r requirements/history.txt
# pyarrow's headers, tests, and Flight, a network protocol.
RUN cd /opt/venv/lib/python*/site-packages/pyarrow && rm -r include tests libarrow_flight.so* _flight.*.so

FROM packages AS build
COPY pyproject.toml README.md LICENSE ./
COPY adapter adapter
COPY apiservice apiservice
COPY spark spark
RUN python -m pip wheel --no-index --no-deps --no-build-isolation --wheel-dir /wheels .
RUN python -m pip --python /opt/venv/bin/python install --no-index --no-deps --find-links /wheels kafka-lag-adapter

FROM packages-history AS build-history
COPY --from=build /wheels /wheels
RUN python -m pip --python /opt/venv/bin/python install --no-index --no-deps --find-links /wheels kafka-lag-adapter

FROM ${PYTHON_IMAGE} AS packages-spark
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless && rm -rf /var/lib/apt/lists/*
RUN python -m venv --without-pip /opt/venv
COPY requirements/spark.txt requirements/spark.txt
RUN python -m pip --python /opt/venv/bin/python install --require-hashes -r requirements/spark.txt

FROM packages-spark AS spark
COPY --from=build /wheels /wheels
RUN python -m pip --python /opt/venv/bin/python install --no-index --no-deps --find-links /wheels kafka-lag-adapter
ENV PATH=/opt/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 TZ=UTC SPARK_LOCAL_IP=127.0.0.1 KAFKA_LAG_REPORT_CDS=/opt/cds
# What one of Spark's processes has compiled for the replays, the others load. Only /tmp is writable in the CronJob.
ENV NUMBA_CACHE_DIR=/tmp/numba
# The archive of loaded classes that shortens a run by a third has to be made by the very Java that reads it.
RUN mkdir /opt/cds && python -m spark.engine.write_archive && test -s /opt/cds/*.jsa && chmod -R a+rX /opt/cds
WORKDIR /
USER 65532:65532
ENTRYPOINT ["kafka-lag-report"]

FROM ${PYTHON_IMAGE} AS adapter
# The file system is read-only in the cluster, so no bytecode is written; standard error reaches the log line by line.
ENV PATH=/opt/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# One heap for all threads instead of one for each, and no threads of numpy's, which multiplies no matrices here.
ENV MALLOC_ARENA_MAX=1 OPENBLAS_NUM_THREADS=1
WORKDIR /
# A number, so that Kubernetes can see by itself that it is not root.
USER 65532:65532
EXPOSE 6443 8080
ENTRYPOINT ["kafka-lag-adapter"]

FROM adapter AS history
COPY --from=build-history /opt/venv /opt/venv

FROM adapter
COPY --from=build /opt/venv /opt/venv
