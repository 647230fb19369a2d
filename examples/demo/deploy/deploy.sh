#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
set -e
tidemark step build    --effect pure -- ./do build
tidemark step test     --effect pure -- ./do test
tidemark wait approve --kind approval --question 'Release it to everyone?'
tidemark step migrate  --effect once --probe './did migrate' -- ./do migrate
tidemark step release  --effect idempotent -- ./do release
tidemark step announce --effect once --probe './did announce' -- ./do announce
