# make is the table of contents: `make help` prints it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SAM_VENV := .venv-sam
CHECKS_VENV := .venv-checks
SAM := $(SAM_VENV)/bin/sam
MINISTACK_VENV := .venv-ministack
IAM := tests/environment/iam
JOBS ?= $(shell nproc)
FLEET ?= fleet.yaml
# Properties of whole worlds, of which a few draws say nothing: of so many, how often does what matters happen?
OF_WORLDS = test_worlds test_draws test_in_process test_hostile
NO_BYTECODE = built without bytecode: the imports of each cold start take twice as long; install Python 3.13, such as by $(BIN)/uv python install 3.13, and build again
# One worker more than there are cores, since one sleeps: it has all tests of what runs on an instance (tests/support/workers.py). Each
# collects all tests, which takes seconds of a processor. A file stays on one worker, which makes its fixtures once.
PYTEST = $(BIN)/pytest -n $$(($(JOBS) + 1)) --dist loadfile --no-loadscope-reorder
export SAM_CLI_TELEMETRY := 0
# Container images often set it. Each command would then compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all everything test-fast slow soak same corpus walk mutate compare rehearse live check check-template format build wheel bench pictures reference user-data components prices lock clean

help:   ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready  ## Create .venv with the package, the command line and the tools

demo: $(VENV)/.demo  ## Watch a fleet follow a real day of the MXNet CI; with pictures in out/demo; KEEP=1: it takes commands, pictures in out/demo-kept; BROKEN=POOL: its agents never come up
	@trap : INT; $(BIN)/autoscaler demo $(if $(KEEP),--keep) $(if $(PORT),--port $(PORT)) $(BROKEN:%=--broken %) || [ $$? = 130 ]

test: $(VENV)/.ready $(SAM_VENV)/.ready  ## Every test that Python packages alone can run, six minutes on two cores; it samples what is many and alike
	@command -v git >/dev/null || { echo "needs git: apt-get install git" >&2; exit 1; }
	$(PYTEST) --python-only

test-all: everything check-template  ## Every test, and the rehearsal beside them, twenty minutes on two cores; on Debian as root it installs a browser, Node and the other tools first
	@mkdir -p out; $(MAKE) --no-print-directory rehearse >out/rehearsal.txt 2>&1 & rehearsal=$$!; \
		trap 'kill $$rehearsal 2>/dev/null' INT TERM; \
		$(PYTEST); tests=$$?; \
		wait $$rehearsal; rehearsed=$$?; \
		if [ $$rehearsed = 0 ]; then tail -n 1 out/rehearsal.txt; else cat out/rehearsal.txt; fi; \
		test $$tests = 0 && test $$rehearsed = 0

# What `make test-all` runs on; of the tools, tests/support/tools.py has the list.
everything: $(VENV)/.ready $(SAM_VENV)/.ready $(MINISTACK_VENV)/.ready
	@PYTHONPATH=tests:agent/gpu-lease $(BIN)/python -m support.tools --install
	@$(MAKE) --no-print-directory $(IAM)/node_modules/.ready

test-fast: $(VENV)/.ready  ## For everyday work, in 45 seconds on two cores: the decision, the command line, the ports
	HYPOTHESIS=fast $(PYTEST) --python-only -m 'not long' tests/unit tests/contract tests/properties $(OF_WORLDS:%=--ignore=tests/properties/%.py)

slow: $(VENV)/.ready  ## Every case of what `make test` samples, two hours on two cores: cut-offs, interleavings, properties, planted bugs, time-lines
	WHOLE=1 HYPOTHESIS=slow $(BIN)/pytest -n $(JOBS) --dist worksteal tests/faults tests/properties tests/planted tests/scenarios $(wildcard tests/seams)
	PYTHONPATH=tests:. $(BIN)/python -m support.sampling

soak: $(VENV)/.ready  ## Hostile worlds and random ones, each for half of the time: make soak MINUTES=10 SEED=1
	@half=$$(( ($(or $(MINUTES),10) + 1) / 2 )) code=0; export PYTHONPATH=tests:.:agent/gpu-lease; \
		$(BIN)/python -m support.hostile.soak $$half $(JOBS) $(SEED) || code=1; \
		$(BIN)/python -m support.soak $$half $(JOBS) $(SEED) || code=1; exit $$code

same: $(VENV)/.ready  ## Does each pass still decide what was recorded? make same TRACES=DIR ONLY="short slots"; RECORD=1 records anew
	@PYTHONPATH=tests:. $(BIN)/python -m oracle $(if $(RECORD),--record) $(if $(TRACES),--traces $(TRACES)) $(ONLY)

corpus: $(VENV)/.ready  ## Are the recorded decisions made again? RECORD=1 records what is decided now; BRANCHES=1 prints which share of the decision has cases
	@PYTHONPATH=tests:. $(BIN)/python -m corpus $(if $(RECORD),--record) $(if $(BRANCHES),--branches)

walk: $(VENV)/.ready  ## Statements of the layer and the tests, and what a plain fleet enters of them; fails if a figure has risen; RECORD=1 records them
	@PYTHONPATH=tests:. $(BIN)/python -m ratchet $(if $(RECORD),--record)

mutate: $(VENV)/.ready  ## Mutants of domain and control, and the share that the tests find: make mutate MODULES=retire ONE_IN=1
	PYTHONPATH=tests:. $(BIN)/python -m support.mutation "$(or $(MODULES),.)" $(or $(ONE_IN),10) $(JOBS)

rehearse: $(VENV)/.ready $(SAM_VENV)/.ready $(MINISTACK_VENV)/.ready  ## Deploy, operate, upgrade and delete the stack on an emulated AWS, ten minutes: make rehearse STEPS="work scale-in"
	@exec env PYTHONPATH=tests:.:layers/core $(BIN)/python -m rehearsal $(STEPS)

live: $(VENV)/.ready  ## Contract and scenarios on a live Jenkins: make live JENKINS_URL=... JENKINS_USER=... JENKINS_TOKEN=... RESTART_COMMAND=...
	@test -n "$(JENKINS_URL)" || { echo "JENKINS_URL: missing; make live JENKINS_URL=... JENKINS_USER=... JENKINS_TOKEN=..." >&2; exit 2; }
	@JENKINS_URL="$(JENKINS_URL)" JENKINS_USER="$(JENKINS_USER)" JENKINS_TOKEN="$(JENKINS_TOKEN)" \
		$(BIN)/pytest tests/contract/test_controller.py tests/contract/test_builds.py tests/contract/test_stopped_builds.py \
			tests/live/test_scenarios.py tests/live/test_lost_builds.py tests/live/test_run_orders.py -k live -v

check: $(VENV)/.ready  ## Format, lint, types, import contracts, complexity
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=layers/core:.:agent/gpu-lease $(BIN)/lint-imports
	$(BIN)/lizard -l python -C 15 -T nloc=60 -w layers/core/autoscaler autoscaler_workbench functions benchmarks agent/gpu-lease/gpu_lease  # and, or and comprehensions count as branches

check-template: $(CHECKS_VENV)/.ready $(SAM_VENV)/.ready  ## cfn-lint and checkov on the templates, also as SAM translates them; .checkov.yaml names each exception
	@mkdir -p out
	@AWS_DEFAULT_REGION=us-west-2 $(SAM_VENV)/bin/python tests/support/translate.py <template.yaml >out/template.json
	$(CHECKS_VENV)/bin/cfn-lint --regions us-west-2 -- template.yaml network.yaml image.yaml out/template.json
	$(CHECKS_VENV)/bin/checkov --config-file .checkov.yaml --file out/template.json network.yaml image.yaml

format: $(VENV)/.ready  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

build: $(VENV)/.demo $(SAM_VENV)/.ready  ## What sam deploy deploys, with your fleet file: make build FLEET=my.yaml; RELEASE=1: not without bytecode
	@test -f "$(FLEET)" || { echo "FLEET ($(FLEET)): there is no such file; docs/deploy.md says how to write one" >&2; exit 2; }
	$(BIN)/python -m autoscaler_workbench.maintenance.fleet_name "$(FLEET)"
	$(SAM) validate --lint
	PATH="$(abspath $(BIN)):$$PATH" AUTOSCALER_PYTHON="$(abspath $(BIN)/python)" AUTOSCALER_FLEET="$(abspath $(FLEET))" RELEASE="$(RELEASE)" $(SAM) build
	@[ -e .aws-sam/build/CoreLayer/python/autoscaler/__pycache__ ] || echo "$(NO_BYTECODE)" >&2

wheel: $(VENV)/.demo  ## Both packages, into dist: pip install dist/*.whl
	@$(BIN)/uv build --quiet --wheel --out-dir $(or $(OUT),dist) layers/core
	@$(BIN)/uv build --quiet --wheel --out-dir $(or $(OUT),dist) .

bench: $(VENV)/.ready  ## Figures of speed and cost, some fifty minutes; OUT=docs/benchmarks.md writes them down; ONLY=size replaces only its own there; ONLY=simulation TRACE=FILE plays yours, too
	@$(BIN)/python -m benchmarks $(if $(TRACE),--trace "$(TRACE)") $(if $(OUT),--out $(OUT)) $(ONLY)

compare: $(VENV)/.ready  ## All policies on the carried traces, some hours: make compare OUT=out/compare SEEDS=5 SKIP=0 LEAD_IN=168 HOURS=168 TRACES=DIR
	$(BIN)/autoscaler compare --out $(or $(OUT),out/compare) --seeds $(or $(SEEDS),5) --hours $(or $(HOURS),168) --skip $(or $(SKIP),0) --lead-in $(or $(LEAD_IN),$(if $(TRACES),0,168)) \
		$(foreach trace,$(wildcard $(TRACES)/*.csv $(TRACES)/*.csv.gz),--trace $(trace))

pictures: $(VENV)/.ready  ## Draw the pictures of docs/ anew: make pictures ONLY=architecture.svg
	$(BIN)/python -m autoscaler_workbench.maintenance.pictures $(ONLY)

reference: $(VENV)/.ready  ## Write the fleet file's schema, and the pages of all its keys and of all reasons
	$(BIN)/python -m autoscaler_workbench.maintenance.reference

user-data: $(VENV)/.ready  ## Pack agent/ into the launch templates of template.yaml
	$(BIN)/python -m autoscaler_workbench.maintenance.user_data

components: $(VENV)/.ready  ## Pack image/ into image.yaml
	$(BIN)/python -m autoscaler_workbench.maintenance.gpu_lease_archive
	$(BIN)/python -m autoscaler_workbench.maintenance.image_components

prices: $(VENV)/.ready  ## Make the carried prices: make prices REGIONS="us-east-1 eu-west-1" asks the AWS Price List API, SOURCE=FILE reads a wider table
	$(BIN)/python -m autoscaler_workbench.maintenance.prices $(if $(REGIONS),--regions $(REGIONS),"$(SOURCE)")

lock: $(VENV)/.ready  ## Pin what the layer carries, and what the tools are
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header layers/core/pyproject.toml -o layers/core/requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --extra dev \
		--no-emit-package jenkins-autoscaler --no-emit-package jenkins-autoscaler-workbench pyproject.toml -o requirements-dev.txt

clean:  ## Remove everything that can be made again
	rm -rf $(VENV) $(SAM_VENV) $(MINISTACK_VENV) $(CHECKS_VENV) $(IAM)/node_modules .aws-sam .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# The demo needs a quarter of the tools, and has them in a third of the time.
WORKBENCH := -c requirements-dev.txt -e 'layers/core[aws-sdk]' -e

$(VENV)/.demo: .ci/environment pyproject.toml layers/core/pyproject.toml requirements-dev.txt
	@trap : INT; .ci/environment "$(PYTHON)" $(VENV) $@ "what the demo needs" -- $(WORKBENCH) '.[demo]'

$(VENV)/.ready: .ci/environment pyproject.toml layers/core/pyproject.toml requirements-dev.txt
	@trap : INT; .ci/environment "$(PYTHON)" $(VENV) $@ "the tools" -- $(WORKBENCH) '.[dev]'
	@touch $(VENV)/.demo

$(IAM)/node_modules/.ready: $(IAM)/package-lock.json
	cd $(IAM) && npm ci --silent --no-fund --no-audit
	@touch $@

$(SAM_VENV)/.ready: .ci/environment
	@trap : INT; .ci/environment "$(PYTHON)" $(SAM_VENV) $@ "the SAM command line" -- 'aws-sam-cli>=1.140,<2'

$(MINISTACK_VENV)/.ready: .ci/environment tests/rehearsal/requirements.txt
	@trap : INT; .ci/environment "$(PYTHON)" $(MINISTACK_VENV) $@ "the emulator of AWS" -- -r tests/rehearsal/requirements.txt

# Of their own: checkov pins an older boto3. Always the newest, which know what AWS has changed.
$(CHECKS_VENV)/.ready: .ci/environment
	@trap : INT; .ci/environment "$(PYTHON)" $(CHECKS_VENV) $@ "cfn-lint and checkov" -- cfn-lint checkov
