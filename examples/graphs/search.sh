#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A search: {"question": ..., "api_key": ...} on standard input, {"finding": ...} on standard output. What is in the archive
# needs the right key. A real program would parse the JSON; for these values sed is enough.
input=$(cat)
question=$(echo "$input" | sed -n 's/.*"question":"\([^"]*\)".*/\1/p')
key=$(echo "$input" | sed -n 's/.*"api_key":"\([^"]*\)".*/\1/p')
echo "$question" >>"${SEARCH_LOG:-/dev/null}"

case $question in
what*) echo '{"finding": "any small unevenness turns the current to one side"}' ;;
why*) echo '{"finding": "the outer bank is cut, sand settles at the inner one"}' ;;
archive*)
    if [ "$key" != open-sesame ]; then
        echo '{"error": {"code": "auth", "message": "the archive does not know this api_key"}}'
        exit 1
    fi
    echo '{"finding": "James Thomson, 1876"}'
    ;;
*) echo '{"finding": "nothing was found"}' ;;
esac
