#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A nightly job that survives reboots: pack, sleep until later, upload with retries, announce exactly once.
#
# Try it:
#     tidemark exec --session nightly -- examples/nightly.sh /tmp/nightly 10s
#     tidemark recover --run-due        (a timer does that: tidemark-recover.timer)
# The sleep is in the log, not in a process: while it sleeps nothing runs.
# shellcheck disable=SC2016 # the dollars are for the shells of the steps
set -euo pipefail
place=${1:?"the directory to work in is missing: nightly.sh DIRECTORY [PAUSE]"}
mkdir -p "$place/remote"

tidemark step pack --effect pure -- sh -c 'date >"$1/backup"; echo packed' pack "$place"
tidemark set packed_at="$(cat "$place/backup")"

# Until the network is cheap. The time is fixed by the first call; a resume does not start it again.
tidemark sleep cheap-hours "${2:-3h}"

# The key is the same in every attempt: the receiver of the upload can see that it is the same one.
tidemark step upload --effect idempotent --retries 5 --timeout 1h -- \
    sh -c 'cp "$1/backup" "$1/remote/$TIDEMARK_IDEMPOTENCY_KEY" && echo uploaded' upload "$place"

# A message that was sent cannot be taken back: once. The probe looks whether it is there.
tidemark step announce --effect once --probe "grep -q '^backup of' '$place/messages'" -- \
    sh -c 'echo "backup of $2" >>"$1/messages"' announce "$place" "$(tidemark get packed_at)"
echo 'done'
