# SPDX-License-Identifier: Apache-2.0
# Conditions made from a seed, and what Python says to each: the values in the first line, then a JSON line for each:
# [condition, "true" | "false" | "error" | "invalid"].
# Where the value can be written as text, a second line compares that text, so that more than its truth is looked at.
#
#     expr_peer.py SEED COUNT
import json
import random
import sys
import warnings

warnings.simplefilter('ignore')  # "is" with a literal
seed, count = int(sys.argv[1]), int(sys.argv[2])
r = random.Random(seed)

VALUES = {
    'output': {'confidence': 0.83, 'status': 'done', 'items': [3, 1, 2], 'errors': [], 'n': 7, 'ok': True, 'none': None,
               'nested': {'b': 1, 'a': [1, None, 'x']}, 'empty': {}, 'zero': 0, 'text': '  Some Words here ', 'blank': ''},
    'buffer': {'end': 'yes', 'count': -4, 'ratio': 2.5, 'words': ['a', 'b', 'done']},
    'total': 12, 'limit': 3.5, 'label': 'done', 'missing': None, 'flag': False, 'table': [0, [], 'z'],
}


FUNCTIONS = {f.__name__: f for f in (len, int, float, str, bool, min, max, sum, abs, round, all, any)}
CONSTANTS = ['0', '1', '2', '3', '-1', '-7', '10', '2.5', '0.1', '-0.5', '1e3', '0x1f', '1_000', 'True', 'False', 'None',
             "''", "'done'", '"x"', "'a b  c'", "'Words'", "'12'", "' 3.5 '", "'it\\'s'", '[]', '{}', "'a' 'b'", "r'\\d'"]
KEYS = sorted(VALUES['output']) + ['nothing']


def name():
    return r.choice(['total', 'limit', 'label', 'missing', 'flag', 'table', "output['%s']" % r.choice(KEYS),
                     "buffer['%s']" % r.choice(sorted(VALUES['buffer'])), "output.get('%s')" % r.choice(KEYS), 'output', 'buffer'])


def leaf():
    return r.choice(CONSTANTS) if r.random() < 0.5 else name()


def items(d):
    return ', '.join(any_(d - 1) for _ in range(r.randrange(4)))


def method(d):
    of = name() if r.random() < 0.7 else '(' + any_(d - 1) + ')'
    return of + r.choice(['.lower()', '.upper()', '.strip()', '.split()', ".split(' ')", ".split('o', 1)", '.split(None, 1)',
                          ".strip(' S')", ".get('a')", ".get('n', 5)", ".get('none', 5)", ".get(%s, 0)" % leaf()])


def function(d):
    f = r.choice(sorted(FUNCTIONS))
    if f in ('min', 'max') and r.random() < 0.5:
        return '%s(%s, %s)' % (f, any_(d - 1), any_(d - 1))
    if f == 'round' and r.random() < 0.5:
        return 'round(%s, %d)' % (any_(d - 1), r.randrange(4))
    if f in ('len', 'all', 'any', 'sum', 'min', 'max') and r.random() < 0.6:
        inner = '%s.%s()' % (r.choice(['output', 'buffer', "output['nested']", '{1: 2, 3: 4}']), r.choice(['keys', 'values', 'items']))
        return '%s(%s)' % (f, inner if r.random() < 0.4 else '[' + items(d) + ']')
    return '%s(%s)' % (f, any_(d - 1))


def comparison(d):
    text = operand(d)
    for _ in range(r.choice([1, 1, 1, 2, 3])):
        text += ' %s %s' % (r.choice(['==', '!=', '<', '<=', '>', '>=', 'in', 'not in', '==', '<']), operand(d))
    return text


def operand(d):
    return '(' + any_(d - 1) + ')' if r.random() < 0.5 else leaf()


def any_(d):
    if d <= 0:
        return leaf()
    kind = r.randrange(14)
    if kind < 2:
        return comparison(d)
    if kind < 4:
        return '%s %s %s' % (operand(d), r.choice(['+', '-', '/', '//', '%', '+', '-']), operand(d))
    if kind == 4:
        return '%s %s %s' % (operand(d), r.choice(['*', '**']), r.choice(['2', '3', '-1', '0', '0.5']))
    if kind == 5:
        return '%s %s %s' % (any_(d - 1), r.choice(['and', 'or']), any_(d - 1))
    if kind == 6:
        return 'not %s' % operand(d)
    if kind == 7:
        return '%s if %s else %s' % (operand(d), any_(d - 1), operand(d))
    if kind == 8:
        return '%s is %s%s' % (operand(d), r.choice(['', 'not ']), r.choice(['None', 'True', 'False']))
    if kind == 9:
        return '[' + items(d) + ']'
    if kind == 10:
        return '{' + ', '.join("'%s': %s" % (k, any_(d - 1)) for k in r.sample('abcd', r.randrange(3))) + '}'
    if kind == 11:
        return '%s[%s]' % (name(), r.choice(['0', '-1', '1', '2', '-4', "'a'", any_(d - 1)]))
    if kind == 12:
        return '%s%s' % (r.choice('-+'), operand(d))
    return method(d) if r.random() < 0.5 else function(d)


def plain(v):
    if isinstance(v, (list,)):
        return all(plain(i) for i in v)
    if isinstance(v, dict):
        return all(plain(i) for i in v.values())
    if isinstance(v, int):
        return abs(v) < 2 ** 63
    if isinstance(v, float):
        return v == v and abs(v) != float('inf')
    return v is None or isinstance(v, str)


def answer(text):
    try:
        v = eval(text, {'__builtins__': {}, **FUNCTIONS, 'true': True, 'false': False}, dict(VALUES))
        return 'true' if v else 'false', v
    except (TypeError, ValueError, KeyError, IndexError, ZeroDivisionError, AttributeError, OverflowError):
        return 'error', None
    except SyntaxError:
        return 'invalid', None


print(json.dumps(VALUES))
for _ in range(count):
    text = any_(r.randrange(1, 4))
    want, v = answer(text)
    print(json.dumps([text, want]))
    if want in ('true', 'false') and plain(v):
        print(json.dumps(['str([%s]) == %r' % (text, str([v])), 'true']))
