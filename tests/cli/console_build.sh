#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/console: what is fetched and built when, what happens where that cannot be, and what becomes part of the program. Node and npm
# are scripts that note what they are asked for.
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"

mkdir -p tree/tools tree/docs tree/web/src bin plain
cp "$TIDE_SOURCE/tools/console" "$TIDE_SOURCE/tools/console-embed" tree/tools/
echo '{}' >tree/docs/openapi.json
echo '{"name": "page"}' >tree/web/package.json
echo '{"lock": 1}' >tree/web/package-lock.json
echo 'one' >tree/web/src/page
for tool in sh sed cut cat sort xargs find sha256sum dirname mkdir rm cp cmp tail tar timeout gzip wc mv tr grep; do
    ln -s "$(command -v $tool)" plain/
done
cat >bin/node <<'END'
#!/bin/sh
case $* in *'>= 18'*) [ ! -e "$0.old" ] ;; esac
END
cat >bin/npm <<'END'
#!/bin/sh
echo "$1" >>"$NOTES"
case $1 in
    ci) [ ! -e "$0.fails" ] || { echo 'no route to the packages' && exit 1; }
        mkdir -p "$3/node_modules" ;;
    run) [ -f openapi.json ] && [ ! -e "$0.broken" ] || { echo 'error in src/page' && exit 1; }
        mkdir -p dist/assets && cp src/page dist/assets/page-1.js && cp src/page dist/index.html ;;
esac
END
chmod +x bin/node bin/npm
export NOTES=$work/notes
# build PATH: builds it; what was asked of npm, the exit status, and how many lines it said.
build() {
    : >notes
    PATH=$1 tree/tools/console "$work/out" >said 2>&1
    status=$?
    echo "$(tr '\n' ' ' <notes)$status $(wc -l <said | tr -d ' ')"
}
with=$work/bin:$work/plain

check_is 'without Node there is no console, which is said' '0 1' "$(build "$work/plain")"
check 'and how to get it' grep -q 'it needs Node 18 or later and npm' said
check_is 'once' '0 0' "$(build "$work/plain")"
touch bin/node.old
check_is 'an old Node is none' '0 0' "$(build "$with")"
rm bin/node.old
touch bin/npm.fails
check_is 'without the packages there is none' 'ci 0 3' "$(build "$with")"
check 'and why' grep -q 'no route to the packages' said
check_is 'it is tried again each time' 'ci 0 3' "$(build "$with")"
check 'there is no page' test ! -e out/web/dist
rm bin/npm.fails
check_is 'packages are fetched, and the page is built' 'ci run 0 1' "$(build "$with")"
check_is 'from its sources' one "$(cat out/web/dist/index.html)"
check_is 'with nothing changed nothing is done' '0 0' "$(build "$with")"
check_is 'nor asked of Node' '0 0' "$(build "$work/plain")"
mkdir -p tree/web/node_modules tree/web/dist
echo x | tee tree/web/node_modules/x >tree/web/dist/x
check_is 'what was built beside the sources is none' '0 0' "$(build "$with")"
echo two >tree/web/src/page
echo gone >tree/web/src/gone
check_is 'sources that changed are built' 'run 0 0' "$(build "$with")"
check_is 'these' two "$(cat out/web/dist/index.html)"
rm tree/web/src/gone
check_is 'one that is gone is a change' 'run 0 0' "$(build "$with")"
check 'and is gone there' test ! -e out/web/src/gone
echo '{"lock": 2}' >tree/web/package-lock.json
check_is 'another lock fetches its packages' 'ci run 0 1' "$(build "$with")"
echo '{"openapi": "3"}' >tree/docs/openapi.json
check_is 'another API is another page' 'run 0 0' "$(build "$with")"
touch bin/npm.broken
echo three >tree/web/src/page
check_is 'sources that do not build are an error' 'run 1 2' "$(build "$with")"
check 'which is shown' grep -q 'error in src/page' said
check 'and leave no old page' test ! -e out/web/dist
rm bin/npm.broken
check_is 'until they do' 'run 0 0' "$(build "$with")"

# ---- what becomes part of the program ----
embed() {
    tree/tools/console-embed "$1" files.c bytes 2>said
}
check 'a page is embedded' embed out/web/dist
check_is 'by its path, with its bytes' '{"/", "text/html; charset=utf-8", 6' "$(sed -n 's/^    \({"\/", "[^"]*"\), "[0-9a-f]*", {console_plain_[0-9]*, \([0-9]*\)}.*/\1, \2/p' files.c)"
check_is 'and its files' 1 "$(grep -c '^    {"/assets/page-1.js", "text/javascript; charset=utf-8"' files.c)"
cp files.c before.c
embed out/web/dist
check 'the same each time' cmp files.c before.c
echo x >'out/web/dist/a b.js'
check_is 'a name that is none is refused' '1|1' "$(embed out/web/dist; echo $?)|$(grep -c 'a name has' said)"
rm 'out/web/dist/a b.js'
echo x >out/web/dist/x.exe
check_is 'and a type that nobody knows' '1|1' "$(embed out/web/dist; echo $?)|$(grep -c 'of which type' said)"
rm out/web/dist/x.exe out/web/dist/index.html
check_is 'and what has no page' 1 "$(embed out/web/dist; echo $?)"
finish
