/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What translated conditions call (as __py.name) where Python and Lua mean different things by the same sign: truth, equality,
 * order, arithmetic, members, and the functions and methods of Python that conditions may use. Written in Lua, so that its
 * instructions are counted like those of the condition; only what Lua cannot say is in C.
 *
 * Where Python's answer cannot be had here (whole numbers beyond 64 bits, text or lists times a number) it is an error
 * with that reason.
 */
#include <math.h>
#include <stdio.h>

#include "graph/expr_internal.h"

/* ---- in C ---- */

static int c_kind(lua_State *l)
{
    lua_pushstring(l, expr_kind_of(l, 1) == EXPR_LIST ? "list" : "dict");
    return 1;
}

static int c_keys(lua_State *l)
{
    expr_keys_push(l, 1, true);
    return 1;
}

static int c_len(lua_State *l)
{
    if (expr_kind_of(l, 1) == EXPR_LIST) {
        lua_pushinteger(l, expr_list_len(l, 1));
        return 1;
    }
    expr_keys_push(l, 1, true);
    lua_pushinteger(l, (lua_Integer)lua_rawlen(l, -1));
    return 1;
}

/* mark(table, origin): a number for a list of so many, a list of keys for a dict. */
static int c_mark(lua_State *l)
{
    lua_settop(l, 2);
    expr_slot_push(l, EXPR_ORIGIN);
    lua_pushvalue(l, 1);
    lua_pushvalue(l, 2);
    lua_rawset(l, 3);
    lua_settop(l, 1);
    return 1;
}

/* A name as the values have it, not as the libraries do. */
static int c_name(lua_State *l)
{
    struct machine *m = expr_machine(l);
    struct str name;

    name.ptr = luaL_checklstring(l, 1, &name.len);
    for (size_t i = 0; i < m->n_values; i++)
        if (str_eq(name, str_from(m->values[i].name))) {
            expr_slot_push(l, EXPR_ENV);
            lua_getfield(l, -1, name.ptr);
            return 1;
        }
    expr_missed(l, 1);
    lua_pushnil(l);
    return 1;
}

/* The shortest digits that say the same number, placed as Python places them. */
static int c_float_text(lua_State *l)
{
    double x = luaL_checknumber(l, 1);
    char text[48];
    int digits = 0, exponent;

    if (!isfinite(x)) {
        lua_pushstring(l, isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
        return 1;
    }
    do
        snprintf(text, sizeof text, "%.*e", digits, x);
    while (strtod(text, NULL) != x && ++digits < 17);
    exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < 16)
        snprintf(text, sizeof text, "%.*f", digits > exponent ? digits - exponent : 1, x);
    lua_pushstring(l, text);
    return 1;
}

static int c_round(lua_State *l)
{
    double x = luaL_checknumber(l, 1), whole;
    lua_Integer digits = luaL_optinteger(l, 2, 0);
    char text[400];

    if (lua_isnoneornil(l, 2)) {
        whole = nearbyint(x);
        if (!(whole >= -9223372036854775808.0 && whole < 9223372036854775808.0))
            return luaL_error(l, "round(): the number does not fit in 64 bits");
        lua_pushinteger(l, (lua_Integer)whole);
        return 1;
    }
    if (digits < 0 || digits > 30)
        return luaL_error(l, "round() takes 0 to 30 digits here");
    snprintf(text, sizeof text, "%.*f", (int)digits, x);
    lua_pushnumber(l, strtod(text, NULL));
    return 1;
}

static int c_fmod(lua_State *l)
{
    lua_pushnumber(l, fmod(luaL_checknumber(l, 1), luaL_checknumber(l, 2)));
    return 1;
}

/* ---- in Lua ---- */

static const char helpers[] =
    "local C, string, math, utf8, type, tonumber, error, select, concat = ...\n"
    "local P = {}\n"
    /* The name of what a value is. */
    "local function kind(v)\n"
    "  local t = type(v)\n"
    "  if t == 'table' then return C.kind(v) end\n"
    "  if t == 'number' then return math.type(v) == 'integer' and 'int' or 'float' end\n"
    "  if t == 'nil' then return 'None' end\n"
    "  if t == 'boolean' then return 'bool' end\n"
    "  if t == 'string' then return 'str' end\n"
    "  error('a ' .. t .. ' is not a value', 0)\n"
    "end\n"
    "local function fail(op, a, b)\n"
    "  error(\"'\" .. op .. \"' is not supported between \" .. kind(a) .. ' and ' .. kind(b), 0)\n"
    "end\n"
    "local function num(v)\n"
    "  local t = type(v)\n"
    "  if t == 'number' then return v end\n"
    "  if t == 'boolean' then return v and 1 or 0 end\n"
    "end\n"
    "local function list(n, t) return C.mark(t, n) end\n"
    "P.list = list\n"
    "local function key(k)\n"
    "  local t = type(k)\n"
    "  if t == 'boolean' then return k and 1 or 0 end\n"
    "  if t ~= 'string' and t ~= 'number' or k ~= k then error('a key cannot be ' .. kind(k) .. ' here', 0) end\n"
    "  return k\n"
    "end\n"
    "function P.dict(n, t)\n"
    "  local d, keys, seen, count = {}, {}, {}, 0\n"
    "  for i = 1, n, 2 do\n"
    "    local k = key(t[i])\n"
    "    d[k] = t[i + 1]\n"
    "    if not seen[k] then seen[k] = true; count = count + 1; keys[count] = k end\n"
    "  end\n"
    "  return C.mark(d, keys)\n"
    "end\n"
    "P.name = C.name\n"
    /* Truth. */
    "local function truth(v)\n"
    "  local t = type(v)\n"
    "  if t == 'boolean' then return v end\n"
    "  if t == 'number' then return v ~= 0 end\n"
    "  if t == 'string' then return v ~= '' end\n"
    "  if t == 'table' then return C.len(v) > 0 end\n"
    "  if t ~= 'nil' then kind(v) end\n"
    "  return false\n"
    "end\n"
    "P.bool, P.truth = truth, truth\n"
    "P['or'] = function(a, f) if truth(a) then return a end return f() end\n"
    "P['and'] = function(a, f) if truth(a) then return f() end return a end\n"
    "P['if'] = function(c, f, g) if c then return f() end return g() end\n"
    /* Equality and order. */
    "local eq\n"
    "local function known(d, k)\n"
    "  if d[k] ~= nil then return true end\n"
    "  local keys = C.keys(d)\n"
    "  for i = 1, #keys do if keys[i] == k then return true end end\n"
    "  return false\n"
    "end\n"
    "local function eq_list(a, b, n)\n"
    "  for i = 1, n do if not eq(a[i], b[i]) then return false end end\n"
    "  return true\n"
    "end\n"
    "local function eq_dict(a, b)\n"
    "  local keys = C.keys(a)\n"
    "  for i = 1, #keys do\n"
    "    local k = keys[i]\n"
    "    if not eq(a[k], b[k]) or (a[k] == nil and not known(b, k)) then return false end\n"
    "  end\n"
    "  return true\n"
    "end\n"
    "function eq(a, b)\n"
    "  if a == b then return true end\n"
    "  if type(a) == 'table' and type(b) == 'table' then\n"
    "    local k, n = C.kind(a), C.len(a)\n"
    "    if k ~= C.kind(b) or n ~= C.len(b) then return false end\n"
    "    if k == 'list' then return eq_list(a, b, n) end\n"
    "    return eq_dict(a, b)\n"
    "  end\n"
    "  local x, y = num(a), num(b)\n"
    "  return x ~= nil and x == y\n"
    "end\n"
    "P.eq = eq\n"
    "function P.ne(a, b) return not eq(a, b) end\n"
    "local function order(op, less)\n"
    "  local function compare(a, b)\n"
    "    local x, y = num(a), num(b)\n"
    "    if x and y then return less(x, y) end\n"
    "    if type(a) == 'string' and type(b) == 'string' then return less(a, b) end\n"
    "    if kind(a) ~= 'list' or kind(b) ~= 'list' then fail(op, a, b) end\n"
    "    local n, m = C.len(a), C.len(b)\n"
    "    for i = 1, math.min(n, m) do\n"
    "      if not eq(a[i], b[i]) then return compare(a[i], b[i]) end\n"
    "    end\n"
    "    return less(n, m)\n"
    "  end\n"
    "  return compare\n"
    "end\n"
    "P.lt = order('<', function(a, b) return a < b end)\n"
    "P.le = order('<=', function(a, b) return a <= b end)\n"
    "P.gt = order('>', function(a, b) return a > b end)\n"
    "P.ge = order('>=', function(a, b) return a >= b end)\n"
    /* Arithmetic. */
    "local function big() error('a whole number does not fit in 64 bits', 0) end\n"
    "local function ints(a, b) return math.type(a) == 'integer' and math.type(b) == 'integer' end\n"
    "local function numbers(op, a, b)\n"
    "  local x, y = num(a), num(b)\n"
    "  if x and y then return x, y end\n"
    "  if op == '*' and (x and (kind(b) == 'list' or kind(b) == 'str') or y and (kind(a) == 'list' or kind(a) == 'str')) then\n"
    "    error('text and lists cannot be multiplied here', 0)\n"
    "  end\n"
    "  if op == '%' and type(a) == 'string' then error(\"'%' cannot fill in text here\", 0) end\n"
    "  fail(op, a, b)\n"
    "end\n"
    "local function join(a, b)\n"
    "  local t, n, m = {}, C.len(a), C.len(b)\n"
    "  for i = 1, n do t[i] = a[i] end\n"
    "  for i = 1, m do t[n + i] = b[i] end\n"
    "  return list(n + m, t)\n"
    "end\n"
    "function P.add(a, b)\n"
    "  if type(a) == 'string' and type(b) == 'string' then return a .. b end\n"
    "  if kind(a) == 'list' and kind(b) == 'list' then return join(a, b) end\n"
    "  a, b = numbers('+', a, b)\n"
    "  local r = a + b\n"
    "  if ints(a, b) and (a ~ r) & (b ~ r) < 0 then big() end\n"
    "  return r\n"
    "end\n"
    "function P.sub(a, b)\n"
    "  a, b = numbers('-', a, b)\n"
    "  local r = a - b\n"
    "  if ints(a, b) and (a ~ b) & (a ~ r) < 0 then big() end\n"
    "  return r\n"
    "end\n"
    "local function mul(a, b)\n"
    "  a, b = numbers('*', a, b)\n"
    "  local f = (a + 0.0) * b\n"
    "  if not ints(a, b) then return f end\n"
    "  if f > 9.2e18 or f < -9.2e18 then big() end\n"
    "  return a * b\n"
    "end\n"
    "P.mul = mul\n"
    "local function divisor(b) if b == 0 then error('division by zero', 0) end end\n"
    "function P.div(a, b)\n"
    "  a, b = numbers('/', a, b)\n"
    "  divisor(b)\n"
    "  return a / b\n"
    "end\n"
    "local function split_float(a, b)\n"
    "  local m = C.fmod(a, b)\n"
    "  local d = (a - m) / b\n"
    "  if m == 0 then m = b < 0 and -0.0 or 0.0\n"
    "  elseif (b < 0) ~= (m < 0) then m, d = m + b, d - 1.0 end\n"
    "  if d == 0 then return (a < 0) ~= (b < 0) and -0.0 or 0.0, m end\n"
    "  if d ~= d or d == math.huge or d == -math.huge then return d, m end\n"
    "  local w = (d >= 2^53 or d <= -2^53) and d or math.floor(d) + 0.0\n"
    "  if d - w > 0.5 then w = w + 1.0 end\n"
    "  return w, m\n"
    "end\n"
    "function P.floordiv(a, b)\n"
    "  a, b = numbers('//', a, b)\n"
    "  divisor(b)\n"
    "  if ints(a, b) then return a // b end\n"
    "  return (split_float(a + 0.0, b + 0.0))\n"
    "end\n"
    "function P.mod(a, b)\n"
    "  a, b = numbers('%', a, b)\n"
    "  divisor(b)\n"
    "  if ints(a, b) then return a % b end\n"
    "  return (select(2, split_float(a + 0.0, b + 0.0)))\n"
    "end\n"
    "function P.pow(a, b)\n"
    "  a, b = numbers('**', a, b)\n"
    "  if ints(a, b) and b >= 0 then\n"
    "    local r = 1\n"
    "    if a == 0 or a == 1 or a == -1 then return b == 0 and 1 or a == -1 and b % 2 == 0 and 1 or a end\n"
    "    for _ = 1, b do r = mul(r, a) end\n"
    "    return r\n"
    "  end\n"
    "  if a == 0 and b < 0 then error('division by zero', 0) end\n"
    "  local r = (a + 0.0) ^ b\n"
    "  if r ~= r and a == a and b == b then error('the result of ** is not a real number', 0) end\n"
    "  if (r == math.huge or r == -math.huge) and a - a == 0 and b - b == 0 then error('the result of ** is too big', 0) end\n"
    "  return r\n"
    "end\n"
    "function P.neg(a)\n"
    "  local x = num(a)\n"
    "  if not x then error(\"'-' is not supported before \" .. kind(a), 0) end\n"
    "  if x == math.mininteger and math.type(x) == 'integer' then big() end\n"
    "  return -x\n"
    "end\n"
    "function P.pos(a)\n"
    "  local x = num(a)\n"
    "  if not x then error(\"'+' is not supported before \" .. kind(a), 0) end\n"
    "  return x\n"
    "end\n"
    /* Members. */
    "local function chars(s)\n"
    "  local t, n = {}, 0\n"
    "  for c in string.gmatch(s, '[\\0-\\x7f\\xc2-\\xf4][\\x80-\\xbf]*') do n = n + 1; t[n] = c end\n"
    "  return t, n\n"
    "end\n"
    "local function iterate(v)\n"
    "  local k = kind(v)\n"
    "  if k == 'list' then return v, C.len(v) end\n"
    "  if k == 'dict' then local t = C.keys(v); return t, #t end\n"
    "  if k == 'str' then return chars(v) end\n"
    "  error(k .. ' is not a list, text or dict', 0)\n"
    "end\n"
    "P['in'] = function(x, c)\n"
    "  local k = kind(c)\n"
    "  if k == 'str' then\n"
    "    if type(x) ~= 'string' then error(\"'in' a text takes a text, not \" .. kind(x), 0) end\n"
    "    return string.find(c, x, 1, true) ~= nil\n"
    "  end\n"
    "  if k == 'dict' then\n"
    "    if x == nil then return false end\n"
    "    return known(c, key(x))\n"
    "  end\n"
    "  local t, n = iterate(c)\n"
    "  for i = 1, n do if eq(t[i], x) then return true end end\n"
    "  return false\n"
    "end\n"
    "function P.at(c, k)\n"
    "  local what = kind(c)\n"
    "  if what == 'dict' then\n"
    "    k = key(k)\n"
    "    local v = c[k]\n"
    "    if v == nil and not known(c, k) then error('there is no key ' .. P.repr(k), 0) end\n"
    "    return v\n"
    "  end\n"
    "  if what ~= 'list' and what ~= 'str' then error(what .. ' has no members', 0) end\n"
    "  local i = num(k)\n"
    "  if math.type(i) ~= 'integer' then error('an index of a ' .. what .. ' is a whole number, not ' .. kind(k), 0) end\n"
    "  local t, n = iterate(c)\n"
    "  if i < 0 then i = i + n end\n"
    "  if i < 0 or i >= n then error('index ' .. k .. ' is outside of the ' .. what .. ' of ' .. n, 0) end\n"
    "  return t[i + 1]\n"
    "end\n"
    /* Functions. */
    "function P.len(v)\n"
    "  if type(v) == 'string' then return utf8.len(v) or #v end\n"
    "  if type(v) ~= 'table' then error(kind(v) .. ' has no len()', 0) end\n"
    "  return C.len(v)\n"
    "end\n"
    "local function extreme(name, better)\n"
    "  return function(n, t)\n"
    "    if n == 1 then t, n = iterate(t[1]) end\n"
    "    if n == 0 then error(name .. '() of nothing', 0) end\n"
    "    local best = t[1]\n"
    "    for i = 2, n do if better(t[i], best) then best = t[i] end end\n"
    "    return best\n"
    "  end\n"
    "end\n"
    "P.min, P.max = extreme('min', P.lt), extreme('max', P.gt)\n"
    "function P.sum(v, start)\n"
    "  local t, n = iterate(v)\n"
    "  local sum = start == nil and 0 or start\n"
    "  if type(sum) == 'string' then error('sum() does not take text', 0) end\n"
    "  for i = 1, n do sum = P.add(sum, t[i]) end\n"
    "  return sum\n"
    "end\n"
    "function P.all(v)\n"
    "  local t, n = iterate(v)\n"
    "  for i = 1, n do if not truth(t[i]) then return false end end\n"
    "  return true\n"
    "end\n"
    "function P.any(v)\n"
    "  local t, n = iterate(v)\n"
    "  for i = 1, n do if truth(t[i]) then return true end end\n"
    "  return false\n"
    "end\n"
    "function P.abs(v)\n"
    "  local x = num(v)\n"
    "  if not x then error('abs() of ' .. kind(v), 0) end\n"
    "  return x < 0 and P.neg(x) or math.abs(x)\n"
    "end\n"
    "function P.round(v, digits)\n"
    "  local x = num(v)\n"
    "  if not x then error('round() of ' .. kind(v), 0) end\n"
    "  if math.type(x) == 'integer' and (digits == nil or num(digits) and num(digits) >= 0) then return x end\n"
    "  return C.round(x, num(digits))\n"
    "end\n"
    "local function no_number(name, v) error(name .. '() cannot read ' .. P.repr(v), 0) end\n"
    "local function trim(s) return string.match(s, '^[%s\\x1c-\\x1f]*(.-)[%s\\x1c-\\x1f]*$') end\n"
    "function P.int(v)\n"
    "  if v == nil or type(v) == 'table' then no_number('int', v) end\n"
    "  local x = num(v)\n"
    "  if not x then\n"
    "    local sign, digits = string.match(trim(v), '^([+-]?)(%d[%d_]*)$')\n"
    "    if not digits or string.find(digits, '__', 1, true) or string.find(digits, '_$') then no_number('int', v) end\n"
    "    x = tonumber(sign .. string.gsub(digits, '_', ''))\n"
    "    if math.type(x) ~= 'integer' then big() end\n"
    "    return x\n"
    "  end\n"
    "  if math.type(x) == 'integer' then return x end\n"
    "  if x - x ~= 0 then no_number('int', x) end\n"
    "  return math.tointeger(x < 0 and math.ceil(x) or math.floor(x)) or big()\n"
    "end\n"
    "local words = { inf = math.huge, infinity = math.huge, nan = 0 / 0 }\n"
    "function P.float(v)\n"
    "  if v == nil or type(v) == 'table' then no_number('float', v) end\n"
    "  local x = num(v)\n"
    "  if x then return x + 0.0 end\n"
    "  local s = trim(v)\n"
    "  local sign, word = string.match(s, '^([+-]?)(%a+)$')\n"
    "  local special = word and words[string.lower(word)]\n"
    "  if special then return sign == '-' and -special or special end\n"
    "  s = string.gsub(s, '(%d)_(%f[%d])', '%1%2')\n"
    "  if not string.find(s, '^[+-]?%.?%d[%d.]*[eE]?[+-]?%d*$') then no_number('float', v) end\n"
    "  s = string.gsub(s, '^%+', '')\n"
    "  x = tonumber(s)\n"
    "  if not x then no_number('float', v) end\n"
    "  return x + 0.0\n"
    "end\n"
    "local escapes = { ['\\n'] = '\\\\n', ['\\r'] = '\\\\r', ['\\t'] = '\\\\t', ['\\\\'] = '\\\\\\\\' }\n"
    "local function quote(s)\n"
    "  local q = string.find(s, \"'\", 1, true) and not string.find(s, '\"', 1, true) and '\"' or \"'\"\n"
    "  s = string.gsub(s, '[%c\\\\]', function(c) return escapes[c] or string.format('\\\\x%02x', string.byte(c)) end)\n"
    "  if q == \"'\" then s = string.gsub(s, \"'\", \"\\\\'\") end\n"
    "  return q .. s .. q\n"
    "end\n"
    "local function repr(v)\n"
    "  local k = kind(v)\n"
    "  if k == 'str' then return quote(v) end\n"
    "  if k == 'None' then return k end\n"
    "  if k == 'bool' then return v and 'True' or 'False' end\n"
    "  if k == 'int' then return string.format('%d', v) end\n"
    "  if k == 'float' then return C.float_text(v) end\n"
    "  local t, n = iterate(v)\n"
    "  local out = {}\n"
    "  for i = 1, n do out[i] = k == 'list' and repr(t[i]) or repr(t[i]) .. ': ' .. repr(v[t[i]]) end\n"
    "  out = concat(out, ', ')\n"
    "  return k == 'list' and '[' .. out .. ']' or '{' .. out .. '}'\n"
    "end\n"
    "P.repr = repr\n"
    "function P.str(...)\n"
    "  local v = ...\n"
    "  if select('#', ...) == 0 then return '' end\n"
    "  return type(v) == 'string' and v or repr(v)\n"
    "end\n"
    /* Methods. */
    "local function must(name, v, want)\n"
    "  if kind(v) ~= want then error(kind(v) .. ' has no method ' .. name .. '()', 0) end\n"
    "end\n"
    "function P.get(d, k, otherwise)\n"
    "  must('get', d, 'dict')\n"
    "  if k == nil then return otherwise end\n"
    "  local v = d[key(k)]\n"
    "  if v == nil and otherwise ~= nil and not known(d, key(k)) then return otherwise end\n"
    "  return v\n"
    "end\n"
    "function P.keys(d)\n"
    "  must('keys', d, 'dict')\n"
    "  local t = C.keys(d)\n"
    "  return list(#t, t)\n"
    "end\n"
    "function P.values(d)\n"
    "  must('values', d, 'dict')\n"
    "  local t, out = C.keys(d), {}\n"
    "  for i = 1, #t do out[i] = d[t[i]] end\n"
    "  return list(#t, out)\n"
    "end\n"
    "function P.items(d)\n"
    "  must('items', d, 'dict')\n"
    "  local t, out = C.keys(d), {}\n"
    "  for i = 1, #t do out[i] = list(2, { t[i], d[t[i]] }) end\n"
    "  return list(#t, out)\n"
    "end\n"
    "function P.lower(s) must('lower', s, 'str'); return string.lower(s) end\n"
    "function P.upper(s) must('upper', s, 'str'); return string.upper(s) end\n"
    "function P.strip(s, set)\n"
    "  must('strip', s, 'str')\n"
    "  if set == nil then return trim(s) end\n"
    "  if type(set) ~= 'string' then error('strip() takes a text', 0) end\n"
    "  local t, n = chars(s)\n"
    "  local from, to = 1, n\n"
    "  while from <= to and string.find(set, t[from], 1, true) do from = from + 1 end\n"
    "  while to >= from and string.find(set, t[to], 1, true) do to = to - 1 end\n"
    "  return concat(t, '', from, to)\n"
    "end\n"
    "local function split_blank(s, most)\n"
    "  local out, n, rest = {}, 0, string.match(s, '^[%s\\x1c-\\x1f]*(.*)$')\n"
    "  while rest ~= '' do\n"
    "    n = n + 1\n"
    "    if n > most then out[n] = rest; break end\n"
    "    out[n], rest = string.match(rest, '^([^%s\\x1c-\\x1f]+)[%s\\x1c-\\x1f]*(.*)$')\n"
    "  end\n"
    "  return list(n, out)\n"
    "end\n"
    "function P.split(s, sep, most)\n"
    "  must('split', s, 'str')\n"
    "  most = most ~= nil and P.int(most) or -1\n"
    "  if most < 0 then most = math.maxinteger end\n"
    "  if sep == nil then return split_blank(s, most) end\n"
    "  if type(sep) ~= 'string' or sep == '' then error('split() takes a text that is not empty', 0) end\n"
    "  local out, n, from = {}, 0, 1\n"
    "  while n < most do\n"
    "    local a, b = string.find(s, sep, from, true)\n"
    "    if not a then break end\n"
    "    n = n + 1\n"
    "    out[n], from = string.sub(s, from, a - 1), b + 1\n"
    "  end\n"
    "  out[n + 1] = string.sub(s, from)\n"
    "  return list(n + 1, out)\n"
    "end\n"
    "return P\n";

/* What the Lua part is given, in the order of its first line. */
static void push_needs(lua_State *l, int base)
{
    static const luaL_Reg in_c[] = {
        {"kind", c_kind},   {"keys", c_keys}, {"len", c_len},
        {"mark", c_mark},   {"name", c_name}, {"float_text", c_float_text},
        {"round", c_round}, {"fmod", c_fmod}, {NULL, NULL},
    };
    static const char *const names[] = {"string", "math", "utf8", "type", "tonumber", "error", "select"};

    luaL_newlib(l, in_c);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        lua_getfield(l, base, names[i]);
    lua_getfield(l, base, "table");
    lua_getfield(l, -1, "concat");
    lua_remove(l, -2);
}

void expr_helpers_open(lua_State *l, int base)
{
    if (luaL_loadbufferx(l, helpers, sizeof helpers - 1, "=helpers", "t") != LUA_OK)
        lua_error(l);
    push_needs(l, base);
    lua_call(l, 9, 1);
    expr_publish(l, base, "__py");
}
