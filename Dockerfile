# Unbuilt: no container engine is at hand where Meshwright is developed. Kept short for that reason.
FROM python:3.11-slim AS build
WORKDIR /src
COPY . .
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --require-hashes -r requirements/run.txt \
 && /venv/bin/pip install --no-cache-dir --no-deps .

FROM python:3.11-slim
COPY --from=build /venv /venv
# The working directory never shadows a package; the root file system may be read-only, state is a volume.
ENV PATH=/venv/bin:$PATH PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 \
    MESHWRIGHT_MESH=/mesh MESHWRIGHT_STATE=/state
RUN useradd --uid 1337 --no-create-home meshwright && install -d -o 1337 -m 0700 /state
USER 1337
VOLUME ["/mesh", "/state"]
EXPOSE 15128 9091
ENTRYPOINT ["meshwright"]
CMD ["serve"]
