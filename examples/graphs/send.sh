#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sends a letter: a line in the outbox. It must happen once; the key that is the same in every attempt goes with it.
letter=$(sed -n 's/.*"letter":"\([^"]*\)".*/\1/p')
echo "$TIDEMARK_IDEMPOTENCY_KEY $letter" >>"${OUTBOX:-outbox.txt}" || exit 1
echo '{"sent": 4096}'
