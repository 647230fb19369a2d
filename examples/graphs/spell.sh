#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A spelling checker that knows one mistake.
file=$(sed -n 's/.*"file":"\([^"]*\)".*/\1/p')
if grep -q 'teh ' "$file"; then
    echo '{"notes": ["spelling: teh"], "last_reader": "spelling"}'
else
    echo '{"notes": ["spelling: right"], "last_reader": "spelling"}'
fi
