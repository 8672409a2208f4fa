# babyagi in a container: the process is the daemon itself, it has no rights, and all its data is in the volume.
# Any image with Debian's tools and Python 3.11 or newer, with its venv module, can be the base of both stages.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY locks ./locks
COPY babyagi ./babyagi
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1
# Everything is of a pinned version and a known hash, also what builds the package.
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-deps --require-hashes --requirement locks/build.txt \
    && /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /opt/build/wheel . \
    && python3 -m venv /opt/babyagi \
    && /opt/babyagi/bin/pip install --no-deps --require-hashes --requirement locks/image.txt \
    && /opt/babyagi/bin/pip install --no-deps --no-index /opt/build/wheel/*.whl \
    && /opt/babyagi/bin/pip uninstall --yes pip

FROM ${PYTHON_IMAGE}
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /data --shell /usr/sbin/nologin babyagi \
    && install -d -m 0700 -o babyagi -g babyagi /data
COPY --from=build /opt/babyagi /opt/babyagi
ENV PATH=/opt/babyagi/bin:$PATH \
    BABYAGI_HOME=/data \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /data
VOLUME ["/data"]
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=60s --timeout=10s --start-period=20s CMD ["babyagi", "doctor", "--quick"]
ENTRYPOINT ["babyagi"]
