# `make help` lists what there is. PYTHON is only used to make .venv; everything runs under that.
PYTHON ?= python3
UV ?= uv
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo upgrade-demo wheel-demo test faults docs lint lock clean

help: ## this list
	@awk -F ":.*## " "/^[a-z-]+:.*## /{printf \"  make %-14s %s\\n\", \$$1, \$$2}" $(firstword $(MAKEFILE_LIST))

setup: ## make .venv and the small model; under a second when nothing changed
	@$(PYTHON) tools/setup.py

demo: setup ## gate speculative decoding on this machine, with a small real model
	CI= $(BIN)/pytest suites --update-baselines=new

upgrade-demo: setup ## gate an upgrade of vLLM: record with the old one, judge the new one
	$(BIN)/python tools/upgrade_demo.py

wheel-demo: setup ## gate with the built wheel, from a fresh environment without vLLM
	$(BIN)/python tools/try_wheel.py

test: setup ## the tests of the plugin itself
	$(BIN)/pytest -n 2

faults: setup ## break a real engine on purpose, and see that each fault fails its checks
	$(BIN)/python -m tests.faults.show

docs: setup ## the pages of docs/ as a site, in .site
	$(BIN)/sphinx-build -q -W --keep-going docs .site

lint: setup ## ruff and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

lock: ## resolve requirements/cpu.in again into cpu.lock
	UV="$(UV)" tools/lock.sh

clean: ## remove everything that was made here
	rm -rf .venv .venv-* .models .specdec .site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
