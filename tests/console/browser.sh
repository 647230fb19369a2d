#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The console in a real browser, on the real server: flows.mjs, on both kinds of stores. Skipped where this build has no console or no
# browser can be had.
#
#   browser.sh sqlite|files [CASE]
set -u

dir=$TIDE_BUILD/browser
[ -f "$TIDE_BUILD/web/dist/index.html" ] || { echo 'SKIP: this build has no console'; exit 77; }
CHROMIUM=$("$TIDE_SOURCE/tools/setup-browser" "$dir") || exit 77
export CHROMIUM CONSOLE_STORE=$1
exec timeout 200 node "$dir/flows.mjs" "${@:2}"
