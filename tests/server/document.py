# SPDX-License-Identifier: Apache-2.0
# What is promised to clients: /openapi.json is docs/openapi.json, and within v1 it only grows.
#
#     document.py [--write]          write docs/openapi.json anew, unless something would be gone from it
import copy
import json
import os
import sys

from serving import Server, case, end, want

COPY = os.path.join(os.environ["TIDE_SOURCE"], "docs/openapi.json")
WORDS = ("description", "summary", "tags", "title", "license")  # for people
METHODS = ("get", "post", "put", "patch", "delete")


def lost(old, new, at="", given=False):
    """What a client that knows the old document would miss or be refused. given: a part of a request, which may ask for less alone."""
    if isinstance(old, dict):
        if not isinstance(new, dict):
            return [at]
        gone = []
        for key, value in old.items():
            if key in WORDS:
                continue
            here = "%s/%s" % (at, key)
            if key == "required" and isinstance(value, list):
                more, fewer = set(new.get(key, [])) - set(value), set(value) - set(new.get(key, []))
                gone += [here] if (more if given else fewer) else []
            elif key not in new:
                gone.append(here)
            elif key == "type" and given and isinstance(new[key], list):
                gone += [] if value in new[key] or value == new[key] else [here]
            elif key == "enum":
                gone += [here] if set(value) - set(new[key]) else []
            elif key in ("minimum", "maximum"):
                gone += [here] if (new[key] > value if key == "minimum" else new[key] < value) else []
            elif key == "parameters":
                gone += lost({p["in"] + " " + p["name"]: p for p in value}, {p["in"] + " " + p["name"]: p for p in new[key]}, here, True)
                gone += ["%s: %s is required now" % (here, p["name"]) for p in new[key]
                         if p["required"] and p["name"] not in [o["name"] for o in value]]
            else:
                gone += lost(value, new[key], here, given or key == "requestBody")
        return gone + (["%s/required" % at] if given and new.get("required") and "required" not in old and "properties" in old else [])
    if isinstance(old, list):
        if not isinstance(new, list) or len(new) < len(old):
            return [at]
        return [where for i, value in enumerate(old) for where in lost(value, new[i], "%s/%d" % (at, i), given)]
    if old is True and given and at.endswith("/required"):
        return []  # what was needed may be left out
    return [] if old == new and isinstance(new, type(old)) else [at]


def the_copy_is_what_the_server_says():
    want(now == committed, True, "docs/openapi.json is the document (`document.py --write` writes it); what differs is gone: %s; it" % lost(committed, now))


def what_a_client_would_miss_is_found():
    want(lost(now, now), [])

    def without(change):
        new = copy.deepcopy(now)
        change(new)
        return len(lost(now, new)) > 0, lost(new, now)

    paths = lambda d: d["paths"]["/api/v1/sessions/{id}/messages"]["post"]
    body = lambda d: paths(d)["requestBody"]["content"]["application/json"]["schema"]
    row = lambda d: d["components"]["schemas"]["session_page"]
    changes = [
        lambda d: d["paths"].pop("/api/v1/sessions/{id}/messages"),
        lambda d: d["paths"]["/api/v1/sessions/{id}"].pop("delete"),
        lambda d: paths(d).update({"x-scope": "admin"}),
        lambda d: paths(d).update({"operationId": "message.say"}),
        lambda d: body(d)["properties"].pop("content"),
        lambda d: body(d)["required"].append("queue"),
        lambda d: d["paths"]["/api/v1/sessions"]["get"]["parameters"].pop(),
        lambda d: d["paths"]["/api/v1/sessions"]["get"]["parameters"][0].update({"required": True}),
        lambda d: d["paths"]["/api/v1/sessions"]["get"]["parameters"][1]["schema"]["enum"].pop(),
        lambda d: row(d)["properties"].pop("next_cursor"),
        lambda d: row(d)["required"].remove("sessions"),
        lambda d: row(d)["properties"]["next_cursor"].update({"type": "integer"}),
    ]
    for i, change in enumerate(changes):
        want(without(change)[0], True, "change %d is found, it" % i)
    more = copy.deepcopy(now)
    more["paths"]["/api/v1/more"] = {"get": paths(now)}
    body(more)["properties"]["more"] = {"type": "string"}
    row(more)["properties"]["more"] = {"type": "string"}
    row(more)["required"].append("more")
    paths(more)["description"] = "other words"
    want(lost(now, more), [])


s = Server()
now = s.ask("GET", "/openapi.json").json
s.done()
committed = json.load(open(COPY)) if os.path.exists(COPY) else {}
if sys.argv[1:] == ["--write"]:
    gone = lost(committed, now)
    if gone:
        sys.exit("document.py: docs/openapi.json is as it was: clients would miss " + ", ".join(gone))
    with open(COPY, "w") as f:
        json.dump(now, f, indent=1, ensure_ascii=False)
        f.write("\n")
    sys.exit()
case("the copy is what the server says", the_copy_is_what_the_server_says)
case("what a client would miss is found", what_a_client_would_miss_is_found)
end()
