# Both images of a release. Each is a target:
#   docker build --target control-plane -t meshwright/control-plane:0.2.0 .
#   docker build --target proxy -t meshwright/proxy:0.2.0 .
# Without --target the last stage is built, which is the control plane. All stages are Debian 12, with whose Python
# the environment is made.
# Tags move: a release pins both bases by digest (docs/start/install.md, "As images").
ARG DEBIAN=debian:12-slim
ARG PYTHON=gcr.io/distroless/python3-debian12:nonroot

FROM ${DEBIAN} AS installer
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --no-install-recommends -y python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
RUN python3 -m venv /opt/meshwright

# The environment with the wheel, which both images have, and the control plane's folders.
FROM installer AS environment
COPY requirements/run.txt requirements/build.txt requirements/
# The requirements of the build are in a folder that no image has, because one of them owns the name `xds`.
RUN /opt/meshwright/bin/pip install --no-cache-dir --require-hashes -r requirements/run.txt \
 && /opt/meshwright/bin/pip install --no-cache-dir --require-hashes --target /build -r requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY tools/build_protos.py tools/build_protos.py
COPY catalog catalog
COPY certs certs
COPY meshwright meshwright
COPY protos protos
COPY xds xds
COPY deploy/chart deploy/chart
RUN PYTHONPATH=/build /opt/meshwright/bin/pip install --no-cache-dir --no-index --no-build-isolation --no-deps . \
 && /opt/meshwright/bin/pip uninstall -y pip setuptools \
 && install -d /mesh \
 && install -d -o 1337 -g 1337 -m 0700 /state

# Envoy, which only the proxy has: a build of the control plane leaves this stage out.
FROM installer AS envoy
COPY requirements/envoy.txt requirements/envoy.txt
RUN /opt/meshwright/bin/pip install --no-cache-dir --require-hashes --target /envoy -r requirements/envoy.txt

# The sidecar: the agent with its Envoy, and what sets rules, for the init container and the node's plug-in.
FROM ${DEBIAN} AS proxy
LABEL org.opencontainers.image.title="Meshwright's sidecar" \
      org.opencontainers.image.licenses="Apache-2.0"
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --no-install-recommends -y ca-certificates iproute2 iptables python3 \
 && rm -rf /var/lib/apt/lists/*
COPY --from=environment /opt/meshwright /opt/meshwright
COPY --from=envoy /envoy/envoy/_bin/envoy /usr/local/bin/envoy
ENV PATH=/opt/meshwright/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONSAFEPATH=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /
USER 1500:1500
STOPSIGNAL SIGTERM
ENTRYPOINT ["meshwright"]
CMD ["agent"]

# The control plane: Python and what it runs with, and nothing else, not even a shell.
FROM ${PYTHON} AS control-plane
LABEL org.opencontainers.image.title="Meshwright's control plane" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=environment /opt/meshwright /opt/meshwright
COPY --from=environment /mesh /mesh
COPY --from=environment --chown=1337:1337 /state /state
# The working directory never shadows a package; the root file system may be read-only, state is a volume.
ENV PATH=/opt/meshwright/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONSAFEPATH=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    MESHWRIGHT_MESH=/mesh \
    MESHWRIGHT_STATE=/state
WORKDIR /
USER 1337:1337
VOLUME ["/mesh", "/state"]
EXPOSE 9091 9443 15128 15130 15131
STOPSIGNAL SIGTERM
ENTRYPOINT ["meshwright"]
CMD ["serve"]
