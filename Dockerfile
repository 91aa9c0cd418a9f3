# One server for a team: `mindex serve --http`, for PostgreSQL or a SQLite file in the volume.
# See docs/team.md. Checked by tests/test_docker.py as far as that is possible without Docker.
FROM python:3.12-slim AS build

WORKDIR /build
COPY pyproject.toml README.md LICENSE NOTICE requirements.lock ./
COPY src ./src
# The versions that the tests ran with.
RUN python -m venv /opt/mindex \
 && sed -nE 's/^([A-Za-z0-9._-]+==[^ ;]+).*/\1/p' requirements.lock > versions.txt \
 && /opt/mindex/bin/pip install --no-cache-dir --constraint versions.txt '.[postgres]'

FROM python:3.12-slim

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
