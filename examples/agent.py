#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small agent whose work cannot be lost. Python's standard library only.

Try it:
    tidemark exec --session agent -- python3 examples/agent.py
    tidemark resume agent --input "count the files"
    tidemark resume agent --input done

Each turn asks a person, "thinks" and calls a tool. Kill it anywhere and `tidemark resume agent`: the conversation so far
comes back from the log, no finished thought is paid for twice, and no tool that must run once runs twice.
"""
import json
import subprocess
import sys


def tidemark(*args):
    """Runs a tidemark command inside this run and gives its output; what it says goes to standard error."""
    done = subprocess.run(["tidemark", *args], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout.rstrip("\n")


def step(name, argv, effect="once", *options):
    return tidemark("step", name, "--effect", effect, *options, "--", *argv)


def think(message):
    """In place of a model: costs money, so a finished one is kept; asking again does no harm, so it is idempotent."""
    answer = {"say": f"You said: {message}", "tool": ["sh", "-c", "ls | wc -l"] if "count" in message else None}
    program = "import sys; print(sys.argv[1])"
    return json.loads(step("think", [sys.executable, "-c", program, json.dumps(answer)], "idempotent", "--retries", "3"))


def main():
    turn = 0
    while True:
        turn += 1
        message = tidemark("wait", "message", "--kind", "input", "--question", "What shall I do? (done ends it)")
        if message == "done":
            break
        thought = think(message)
        print(f"turn {turn}: {thought['say']}")
        if thought["tool"]:
            print(f"turn {turn}: the tool says {step('tool', thought['tool'])}")
        tidemark("set", f"turns:={turn}")
        tidemark("checkpoint", "--type", "turn", f"turn {turn}")
    print(f"{turn - 1} turn(s) done")


if __name__ == "__main__":
    main()
