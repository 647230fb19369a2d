#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Holds JSON documents, one a line, against the schema that `tidemark schema NAME` prints, with a checker that is not ours.
#
#   schema.py SCHEMA < DOCUMENTS     each is valid; and is refused without a member, with one more, with one of another type
import copy
import json
import sys

from jsonschema import Draft202012Validator, FormatChecker

schema = json.load(open(sys.argv[1], encoding='utf-8'))
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema, format_checker=FormatChecker())


def wrong(document):
    """What is wrong with it; an empty list where nothing is."""
    return [f'{"/".join(map(str, e.absolute_path))}: {e.message[:300]}' for e in validator.iter_errors(document)]


def of_variant(rules, value):
    """The rules that hold for this object, of those that one of several holds for."""
    for one in rules.get('oneOf', []):
        if not Draft202012Validator(one).is_valid(value):
            continue
        return one
    return rules


def objects(rules, value, path=()):
    """Each object of a document whose members the schema names, and the way to it."""
    if isinstance(value, dict):
        rules = of_variant(rules, value)
        if rules.get('additionalProperties') is False:
            yield path, rules
        for name, member in value.items():
            more = rules.get('additionalProperties')
            inner = rules.get('properties', {}).get(name, more if isinstance(more, dict) else {})
            yield from objects(inner, member, path + (name,))
    elif isinstance(value, list):
        for i, member in enumerate(value):
            yield from objects(rules.get('items', {}), member, path + (i,))


def at(document, path):
    for step in path:
        document = document[step]
    return document


def changes(document):
    """Documents that differ in one member from what was promised, each with what differs."""
    for path, rules in objects(schema, document):
        def changed(name, value=None, gone=False):
            other = copy.deepcopy(document)
            if gone:
                del at(other, path)[name]
            else:
                at(other, path)[name] = value
            return '/'.join(map(str, path + (name,))), other

        yield changed('not_promised', 1)
        for name in rules['required']:
            yield changed(name, gone=True)
        for name in at(document, path):
            if 'type' in rules['properties'][name] or 'const' in rules['properties'][name]:
                value = at(document, path)[name]
                yield changed(name, [[]] if not isinstance(value, list) else 'no list')


failed = seen = 0
for line in sys.stdin:
    if not line.strip():
        continue
    seen += 1
    given = json.loads(line)
    for problem in wrong(given):
        print(f'{problem} in {line.strip()[:300]}')
        failed = 1
    for what, other in changes(given):
        if not wrong(other):
            print(f'taken although {what} was changed: {json.dumps(other)[:300]}')
            failed = 1
if not seen:
    print('there was no document')
    failed = 1
sys.exit(failed)
