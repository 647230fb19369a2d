#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The files of a directory as a list: {"directory": ...} in, {"files": [...]} out.
directory=$(sed -n 's/.*"directory":"\([^"]*\)".*/\1/p')
printf '{"files": ['
comma=
for file in "$directory"/*.txt; do
    printf '%s"%s"' "$comma" "$file"
    comma=', '
done
echo ']}'
