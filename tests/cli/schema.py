#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Holds JSON documents, one a line, against the schemas that `tidemark schema NAME` prints, with a checker that is not ours.
#
#   schema.py < CHECKS     lines "N NAME": each document of .documents/N is valid by .schema.NAME; and is refused without a member,
#                          with one more, with one of another type. Prints "N PROBLEM" for what is wrong. Fields are divided by tabs.
import copy
import json
import sys

from jsonschema import Draft202012Validator, FormatChecker


def wrong(validator, document):
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


def changes(schema, document):
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


def check(schema, validator, lines):
    """What is wrong with the documents, one problem after the other."""
    if not lines:
        yield 'there was no document'
    for line in lines:
        given = json.loads(line)
        for problem in wrong(validator, given):
            yield f'{problem} in {line[:300]}'
        for what, other in changes(schema, given):
            if not wrong(validator, other):
                yield f'taken although {what} was changed: {json.dumps(other)[:300]}'


schemas = {}
for row in sys.stdin:
    number, name = row.rstrip('\n').split('\t')[:2]
    if name not in schemas:
        with open(f'.schema.{name}', encoding='utf-8') as file:
            rules = json.load(file)
        Draft202012Validator.check_schema(rules)
        schemas[name] = (rules, Draft202012Validator(rules, format_checker=FormatChecker()))
    with open(f'.documents/{number}', encoding='utf-8') as file:
        documents = [text for text in file.read().split('\n') if text.strip()]
    for found in check(*schemas[name], documents):
        print(f'{number}\t{found}'.replace('\n', ' '))
