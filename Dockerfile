# snne-guard serve. It needs a configuration with keys: see docs/server.md.
FROM python:3.11-slim AS build
WORKDIR /source
COPY . .
RUN python -m venv /opt/snne-guard \
    && /opt/snne-guard/bin/pip install --no-cache-dir --constraint constraints.txt ".[server]"

FROM python:3.11-slim
COPY --from=build /opt/snne-guard /opt/snne-guard
ENV SNNE_GUARD_CONFIG=/etc/snne-guard/serve.toml \
    SNNE_GUARD_HOST=0.0.0.0 \
    SNNE_GUARD_PORT=8484
USER 65532:65532
EXPOSE 8484
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s CMD ["/opt/snne-guard/bin/python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8484/health', timeout=2)"]
ENTRYPOINT ["/opt/snne-guard/bin/snne-guard", "serve"]
