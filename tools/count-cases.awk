# SPDX-License-Identifier: Apache-2.0
# Reads meson's testlog.txt and prints per test program: directory, cases passed, failed, skipped, name, and
# after a colon which cases failed.

function flush_program() {
    if (name == "")
        return
    if (result == "exit status 77") {
        if (!skipped)
            skipped = 1
    } else if (result != "exit status 0") {
        if (!failed)
            failed = 1
    } else if (passed + failed + skipped == 0) {
        passed = 1
    }
    gsub(/ /, "_", cases)
    print dir, passed, failed, skipped, name cases
    name = cases = ""
}

/^=+ [0-9]+\/[0-9]+ =+$/ { flush_program(); inside = 1; next }
inside && /^test: / { name = $0; sub(/^test: +/, "", name); gsub(/ \/ /, "/", name); sub(/^[^:]*:/, "", name)
    passed = failed = skipped = 0; result = ""; next }
inside && /^result: / { result = $0; sub(/^result: +/, "", result); inside = 0; next }

/^\[       OK \] / { passed++ }
/^\[  FAILED  \] .*[0-9]+ test\(s\), listed below:$/ { failed += number_before_tests() }
/^\[  SKIPPED \] .*[0-9]+ test\(s\), listed below:$/ { skipped += number_before_tests() }
/^\[  FAILED  \] [A-Za-z0-9_]+$/ && !index(cases ":", ":" $4 ":") { cases = cases ":" $4 }
/^not ok( |$)/ { failed++; cases = cases ":" substr($0, 10) }
/^ok .*# SKIP/ { skipped++; next }
/^ok( |$)/ { passed++ }

function number_before_tests(    i) {
    for (i = 1; i <= NF; i++)
        if ($i == "test(s),")
            return $(i - 1)
    return 1
}

END { flush_program() }
