# One server for a team: `mindex serve --http`, for PostgreSQL or a SQLite file in the volume.
# See docs/team.md. Checked by tests/test_docker.py as far as that is possible without Docker.
# To pin the base image: docker build --build-arg PYTHON_IMAGE=python:3.12-slim@sha256:DIGEST .
ARG PYTHON_IMAGE=python:3.12-slim
FROM ${PYTHON_IMAGE} AS build

WORKDIR /build
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY requirements requirements
# The versions that the tests ran with. Nothing is installed whose hash is not in a lock file, not even to build mindex.
RUN python -m venv /opt/mindex \
 && /opt/mindex/bin/pip install --no-cache-dir --only-binary :all: --require-hashes \
    -r requirements/run.lock -r requirements/postgres.lock \
 && python -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --only-binary :all: --require-hashes -r requirements/build.lock
COPY src ./src
RUN /opt/build/bin/pip wheel --no-index --no-deps --no-build-isolation --wheel-dir dist . \
 && /opt/mindex/bin/pip install --no-index --no-deps dist/*.whl

FROM ${PYTHON_IMAGE}

# Nothing runs as root, and the server needs no home: its data and its caches are in the volume.
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin mindex \
 && install -d -o mindex -g mindex -m 0700 /data \
 && install -d -o mindex -g mindex -m 0755 /files
COPY --from=build /opt/mindex /opt/mindex

ENV PATH=/opt/mindex/bin:$PATH \
    HOME=/data \
    XDG_DATA_HOME=/data \
    XDG_CONFIG_HOME=/data/config \
    MINDEX_CACHE_DIR=/data/cache \
    PYTHONDONTWRITEBYTECODE=1

USER mindex
WORKDIR /files
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM

HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/health', timeout=4).read()"]

# Agents may index below /files only: mount there what the team shares, read-only.
ENTRYPOINT ["mindex"]
CMD ["serve", "--http", "0.0.0.0:8080", "--root", "/files"]
