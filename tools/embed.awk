# SPDX-License-Identifier: Apache-2.0
# Prints files as a C table of names and texts: awk -f embed.awk graphs/a.json graphs/b.sh. What a program carries with it can
# then not fall behind the files that people read. Lines of text only; the name is what follows the last "graphs/".
BEGIN {
    print "/* Made from examples/graphs by tools/embed.awk. */"
    print "#include \"cli/demo.h\"\n"
    print "const struct demo_file demo_files[] = {"
}
FNR == 1 {
    name = FILENAME
    sub(/^.*graphs\//, "", name)
    printf "%s    {\"%s\",", (NR > 1 ? "},\n" : ""), name
}
{
    gsub(/\\/, "&&")
    gsub(/"/, "\\\"")
    printf "\n     \"%s\\n\"", $0
}
END { print "},\n    {NULL, NULL},\n};" }
