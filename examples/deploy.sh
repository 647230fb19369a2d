#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A deployment that cannot be lost: build, test, ask a person, release exactly once.
#
# Try it:
#     tidemark exec --session my-deploy -- examples/deploy.sh /tmp/place
#     tidemark resume my-deploy --input yes
# Kill it wherever you like (kill -9), then `tidemark resume my-deploy`: finished steps answer from the log, nothing is
# built or released twice. While it waits for the approval nothing runs, and the machine may be switched off.
# shellcheck disable=SC2016 # the dollars are for the shells of the steps
set -euo pipefail
place=${1:?"the directory to deploy into is missing: deploy.sh DIRECTORY"}
mkdir -p "$place"

# Building again gives the same: pure. An interrupted step simply runs again.
tidemark step build --effect pure -- sh -c 'echo "built for $1"; date >"$1/artifact"' build "$place"

# The network may fail: idempotent, with further attempts and growing pauses.
tidemark step test --effect idempotent --retries 3 --timeout 10m -- sh -c 'test -s "$1/artifact" && echo "tests passed"' test "$place"

# Here the program ends, and `tidemark exec` with exit status 7. After the resume it starts again, comes here at once,
# and gets the answer.
if ! tidemark wait approval --kind approval --question "Release to $place?" --deadline 3d >/dev/null; then
    echo 'not released'
    exit 0
fi

# Must happen once. When it is cut, the probe finds out whether it had happened: exit status 0 yes, 1 no.
tidemark step release --effect once --probe "test -e '$place/released'" -- \
    sh -c 'cp "$1/artifact" "$1/released" && echo "release" >>"$1/history"' release "$place"
echo "released: $(wc -l <"$place/history") time(s)"
