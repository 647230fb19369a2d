#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The figures of the console: figures.mjs in the browser of the tests.
set -eu

dir=$TIDE_BUILD/browser
[ -f "$TIDE_BUILD/web/dist/index.html" ] || { echo 'this build has no console'; exit 77; }
CHROMIUM=$("$TIDE_SOURCE/tools/setup-browser" "$dir")
export CHROMIUM
exec timeout 600 node "$dir/figures.mjs" "$@"
