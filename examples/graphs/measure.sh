#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Words and lines of a file: {"file": ...} in, {"words": N, "lines": N} out.
file=$(sed -n 's/.*"file":"\([^"]*\)".*/\1/p')
if [ ! -r "$file" ]; then
    echo "there is no file '$file'" >&2
    exit 1
fi
echo "$file" >>"${MEASURE_LOG:-/dev/null}"
printf '{"words": %d, "lines": %d}\n' "$(wc -w <"$file")" "$(wc -l <"$file")"
