#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A deployment that cannot be lost: build, ask a person, migrate once, release. Try it in this directory:
#
#     tidemark exec --session deploy -- ./deploy.sh
#     tidemark resume deploy --input yes
#
# Kill it anywhere (kill -9), then `tidemark resume deploy`. While it waits for the approval nothing runs.
set -e
# Building again gives the same result: a step that was interrupted simply runs again.
tidemark step build   --effect pure -- ./build
# The program ends here, and `tidemark exec` with exit status 7. After the resume it runs again from its start.
tidemark wait approve --kind approval --question 'Release it to everyone?' >/dev/null
# Must happen once. After an interruption the probe finds out whether it happened: exit status 0 yes, 1 no.
tidemark step migrate --effect once --probe './is-migrated' -- ./migrate
# May be repeated with the same key ($TIDEMARK_IDEMPOTENCY_KEY); retried when it fails.
tidemark step release --effect idempotent --retries 3 -- ./release
