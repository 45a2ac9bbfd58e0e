# All set-up happens on demand and once: .venv holds the package (editable) and what development needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SOURCES := $(shell find native -name '*.hpp' -o -name '*.cpp')
NATIVE := CMakeLists.txt $(SOURCES)

PACKAGE := pyproject.toml $(NATIVE) $(shell find src automata tokenizers decoding -type f -not -name '*.pyc')
WHEEL := build/wheels/.built

SECONDS ?= 600
VLLM ?= 0.32.0
# Where the engines' environments are, one each (make test-vllm and the like), and how long the set-up of one may take.
ENGINES ?= build/engines
ENGINE_SECONDS ?= 3600

.PHONY: help install demo check test test-fast test-random test-wheel check-platforms test-vllm test-sglang test-compat test-llama test-mlx test-genai test-serve test-ray test-ray-vllm test-gpu test-triton test-site test-explore explorer-page soak sanitize fuzz lint tidy format typecheck bench bench-gpu leaderboard docs site clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP) ## set up .venv with the package and everything optional

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The build tools first and in the environment itself, so that a rebuild after a change in native/ takes seconds.
$(STAMP): pyproject.toml constraints-dev.txt $(NATIVE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check scikit-build-core nanobind cmake ninja
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints-dev.txt -e ".[all,dev]"
	@touch $@

demo: $(STAMP) ## the main job, end to end, on a real vocabulary
	$(BIN)/python examples/demo.py

check: lint typecheck ## what is right about the code without running it: lint, types, architecture
	$(BIN)/python -m pytest -q tests/test_architecture.py

test-fast: $(STAMP) ## the first case of each test that is not slow: before each commit
	$(BIN)/python -m pytest -q -n 2 --fast $(ARGS)

test-wheel: $(STAMP) ## build the source archive and the wheel, install it elsewhere, and use it
	$(BIN)/python -m pytest -q -m wheel tests/test_wheel.py

check-platforms: $(STAMP) ## read the core's sources by clang for musl, aarch64, Windows and macOS (package ziglang)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ziglang
	$(BIN)/python tools/check_platforms.py $(ARGS)

test: $(STAMP) ## the test suite; arguments: make test ARGS="-k regex"
	$(BIN)/python -m pytest -n 2 $(ARGS)

test-random: $(STAMP) ## the test suite with examples that were not tried before
	$(BIN)/python -m pytest -n 2 --hypothesis-profile=random $(ARGS)

# The wheel of this tree, which the engines' environments get before each run of their tests. TOKENFST_WERROR: compiled as the
# editable install was, whose object files it takes.
$(WHEEL): $(STAMP) $(PACKAGE)
	rm -rf build/wheels
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -C cmake.define.TOKENFST_WERROR=ON --wheel-dir build/wheels .
	@touch $@

# $(call in_engine,ENGINE,FOLDER,TESTS): the tests in the engine's own environment; skipped where the engine is not to be had.
define in_engine
	@if PYTHON=$(PYTHON) timeout $(ENGINE_SECONDS) sh tests/support/engines/environment.sh $(1) $(ENGINES)/$(2) "$$(ls build/wheels/*.whl)" $(VLLM); \
	  then $(ENGINES)/$(2)/bin/python -m pytest -q $(3) $(ARGS); \
	  else test -f $(ENGINES)/$(2)/.$(1) || rm -rf $(ENGINES)/$(2); \
	    echo "skipped: no environment with $(1) within $(ENGINE_SECONDS) s; the reason stands above, or the time ran out"; fi
endef

test-vllm: $(WHEEL) ## the vLLM plugin in vLLM itself, on the CPU (3.4 GB); VLLM=0.33.0 for a later version
	$(call in_engine,vllm,vllm-$(VLLM),tests/decoding/engines/test_vllm.py tests/decoding/engines/test_traces.py tests/compat/test_in_engines.py)

test-sglang: $(WHEEL) ## the grammar backend in SGLang itself, on the CPU (3.3 GB)
	$(call in_engine,sglang,sglang,tests/decoding/engines/test_sglang.py tests/decoding/engines/test_traces.py tests/compat/test_in_engines.py)

test-llama: $(WHEEL) ## llama.cpp through llama-cpp-python, which is built for it (16 CPU minutes at most)
	$(call in_engine,llama,llama,tests/decoding/engines/test_llama_cpp.py tests/decoding/engines/test_traces.py)

test-mlx: $(WHEEL) ## MLX-LM on the CPU (0.4 GB)
	$(call in_engine,mlx,mlx,tests/decoding/engines/test_mlx.py tests/decoding/engines/test_traces.py)

test-genai: $(WHEEL) ## ONNX Runtime GenAI on the CPU, with a model made for it (0.4 GB)
	$(call in_engine,genai,genai,tests/decoding/engines/test_onnx_genai.py tests/decoding/engines/test_traces.py)

test-ray: $(WHEEL) ## batches and decoding on a real local Ray (0.7 GB beside torch)
	$(call in_engine,ray,ray,tests/ray_cluster)

test-ray-vllm: $(WHEEL) ## decoding on a real local Ray whose actors run the real vLLM
	$(call in_engine,vllm_and_ray,vllm-$(VLLM),tests/ray_cluster/test_vllm_workers.py)

test-serve: $(STAMP) ## the server over HTTP, its processes killed, its signals, and a minute of load with bombs
	$(BIN)/python -m pytest -q tests/server -m "soak or not soak" $(ARGS)
	$(BIN)/python -m benchmarks.serving.load --seconds 60 --clients 50

test-triton: $(STAMP) ## the device's kernels as Triton interprets them on the CPU, and compiled for a GPU; installs Triton into build/triton
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target build/triton "triton>=3.2" || echo "Triton is not to be had: its kernels are not tested"
	PYTHONPATH=build/triton $(BIN)/python -m pytest -q -n 2 tests/decoding/device/test_device_triton.py tests/decoding/device/weighted tests/compat/test_xgrammar_kernels.py $(ARGS)

test-gpu: $(STAMP) ## the kernels on a GPU against matchers, native kernels and plain torch; skipped with a reason without one
	$(BIN)/python -m pytest -v --durations=0 tests/decoding/device/test_device_gpu.py $(ARGS)

test-compat: $(STAMP) ## the drop-in modules beside xgrammar and llguidance, and with MLX (installs them)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints-dev.txt "xgrammar==0.2.8" "llguidance==1.9.1" "mlx[cpu]"
	$(BIN)/python -m pytest -q tests/compat $(ARGS)

soak: $(STAMP) ## the long randomized runs; a part: SHARD=3/12, SHARD=commit/12; what has not passed yet: ARGS=--left
	$(BIN)/python -m pytest -n 2 -m soak --record=build/soak.jsonl $(if $(SHARD),--shard=$(SHARD)) $(ARGS)

# With ARGS, which choose a part of the tests, the quick tests of the core are left out: they take several minutes.
sanitize: $(STAMP) ## the tests with the core under AddressSanitizer and UBSan, then its threads and the quick tests of the core under ThreadSanitizer
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m tests.support.running.sanitized address -- pytest -q $(if $(SHARD),--shard=$(SHARD)) $(ARGS)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m tests.support.running.sanitized thread -- pytest -q tests/hostile/test_hostile_threads.py tests/hostile/test_unlocked_threads.py tests/decoding/token_automata/test_shared_by_threads.py
	$(if $(ARGS),,PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m tests.support.running.sanitized thread -- pytest -q --fast tests/native)

fuzz: $(STAMP) ## all fuzz targets for SECONDS in all (600); one: make fuzz NAME=regex SECONDS=3600
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "atheris>=3" || echo "atheris is not to be had: mutating blindly"
	$(BIN)/python -m tests.fuzz $(NAME) --seconds $(SECONDS)

lint: $(STAMP) ## ruff: errors, imports, formatting; clang-format of the core
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(SOURCES)

tidy: $(STAMP) ## clang-tidy over the core: faults and slow spots (.clang-tidy), where it is to be had
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "clang-tidy==23.1.4" nanobind || echo "clang-tidy is not to be had"
	$(BIN)/python -m tests.support.running.tidy

format: $(STAMP) ## ruff and clang-format: rewrite
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(SOURCES)

typecheck: $(STAMP) ## mypy --strict over the package, through a tree of links that mirrors the wheel
	$(BIN)/python -m tests.support.typecheck

bench: $(STAMP) ## speed beside the peers (installs them); writes docs/data/*.json and the tables of the pages
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints-dev.txt outlines-core xgrammar llguidance matplotlib
	$(BIN)/python benchmarks/run.py --save $(ARGS)
	$(BIN)/python docs/figures.py

figures: $(STAMP) ## fill the tables of README.md and docs/ from docs/data/*.json
	$(BIN)/python docs/figures.py

leaderboard: $(STAMP) ## all libraries over all cases (installs them; hours; goes on where it stopped); a sample: make leaderboard ARGS="--number 50"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints-dev.txt outlines-core xgrammar llguidance glrmask lm-format-enforcer
	$(BIN)/python -m benchmarks.leaderboard.run $(ARGS)

docs: $(STAMP) ## run every snippet of README.md and docs/
	$(BIN)/python -m pytest -q tests/test_docs.py

site: $(STAMP) ## the documentation as a site, strict, in build/site; with the explorer, where make explorer-page has built it
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints-dev.txt mkdocs-material "mkdocstrings[python]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

explorer-page: $(STAMP) ## the explorer without a server, in build/explorer; skipped with a reason where clang for wasm32, node or npm are missing
	$(BIN)/python tools/explorer_page/build.py $(ARGS)

test-site: site ## look at the built site in Chromium (a system package) by Playwright
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints-dev.txt playwright axe-playwright-python
	$(BIN)/python -m pytest -q -m site tests/test_site.py $(ARGS)

test-explore: $(STAMP) ## the page of `tokenfst explore`, and the one without a server where it is built, in Chromium (a system package) by Playwright; types, where npx can get TypeScript
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints-dev.txt playwright axe-playwright-python
	! command -v npx >/dev/null || npx --yes --package typescript tsc -p src/tokenfst/explore/page/jsconfig.json
	$(BIN)/python -m pytest -q -m explore tests/explore $(ARGS)

bench-gpu: $(STAMP) ## speed of the masking loop, on a GPU where there is one; registers, spills and loads of its kernels, where Triton is
	$(BIN)/python benchmarks/run.py --only device $(ARGS)
	! $(BIN)/python -c "import triton" 2>/dev/null || $(BIN)/python -m tests.support.worlds.devices.device_kernels

clean: ## remove everything that is built
	rm -rf $(VENV) build dist demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
