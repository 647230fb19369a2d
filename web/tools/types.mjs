// SPDX-License-Identifier: Apache-2.0
// Writes src/api/schema.ts from the API's own document, so that a page that expects something else does not compile.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const beside = join(here, '../openapi.json'); /* where the build copies it */
const source = process.argv[2] ?? (existsSync(beside) ? beside : join(here, '../../docs/openapi.json'));
const document = JSON.parse(readFileSync(source, 'utf8'));

const pascal = name => name.replace(/(^|[_.-])(\w)/g, (_, __, c) => c.toUpperCase());
const isName = name => /^[A-Za-z_]\w*$/.test(name);

function type(schema, indent) {
    if (!schema || Object.keys(schema).length === 0 || schema === true) return 'Json';
    if (schema.$ref) return pascal(schema.$ref.split('/').pop());
    if ('const' in schema) return JSON.stringify(schema.const);
    if (schema.enum) return schema.enum.map(v => JSON.stringify(v)).join(' | ');
    const either = schema.anyOf ?? schema.oneOf;
    if (either) return [...new Set(either.map(s => type(s, indent)))].join(' | ');
    if (schema.properties) return object(schema, indent);
    if (Array.isArray(schema.type)) return [...new Set(schema.type.map(t => type({ ...schema, type: t }, indent)))].join(' | ');
    switch (schema.type) {
        case 'string': return 'string';
        case 'integer': case 'number': return 'number';
        case 'boolean': return 'boolean';
        case 'null': return 'null';
        case 'array': return schema.prefixItems ? `[${schema.prefixItems.map(s => type(s, indent)).join(', ')}]` : `Array<${type(schema.items, indent)}>`;
        case 'object': return object(schema, indent);
        default: return 'Json';
    }
}

function object(schema, indent) {
    const members = Object.entries(schema.properties ?? {});
    if (members.length === 0) return 'JsonObject';
    const required = new Set(schema.required ?? []);
    const inner = indent + '    ';
    const lines = members.map(([name, s]) => `${inner}${isName(name) ? name : JSON.stringify(name)}${required.has(name) ? '' : '?'}: ${type(s, inner)};`);
    return `{\n${lines.join('\n')}\n${indent}}`;
}

const out = [
    '// Made from openapi.json by tools/types.mjs; not edited by hand.',
    'export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };',
    'export type JsonObject = { [name: string]: Json };',
    '',
];
for (const [name, schema] of Object.entries(document.components.schemas))
    out.push(`export type ${pascal(name)} = ${type(schema, '')};`, '');

/* What is given may be left out by giving nothing; numbers and switches of a query are written as they are. */
function givenType(schema, required) {
    const given = type(schema, "    ") === "Json" ? "unknown" : type(schema, "    ");
    return required ? given : `${given} | undefined`;
}

// Each action: its method, its path, and what it answers.
out.push('export interface Actions {');
const rows = [], requests = [];
for (const [path, methods] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(methods)) {
        if (!operation.operationId) continue;
        const success = Object.entries(operation.responses).find(([status]) => status.startsWith('2'))?.[1];
        const body = success?.content?.['application/json']?.schema;
        const given = [...(operation.parameters ?? []).map(p => [p.name, p.required, p.schema]),
            ...Object.entries(operation.requestBody?.content?.['application/json']?.schema?.properties ?? {}).map(([name, schema]) =>
                [name, (operation.requestBody.content['application/json'].schema.required ?? []).includes(name), schema])];
        requests.push(`    ${JSON.stringify(operation.operationId)}: {${given.map(([name, required, schema]) => ` ${isName(name) ? name : JSON.stringify(name)}${required ? '' : '?'}: ${givenType(schema, required)};`).join('')} };`);
        out.push(`    ${JSON.stringify(operation.operationId)}: ${body ? type(body, '    ') : 'void'};`);
        rows.push(`    ${JSON.stringify(operation.operationId)}: { method: ${JSON.stringify(method.toUpperCase())}, path: ${JSON.stringify(path)}, scope: ${JSON.stringify(operation['x-scope'] ?? 'none')} },`);
    }
out.push('}', '', '/* What each action takes: of its path, of its query, of its body. */', 'export interface Requests {', ...requests, '}', '', 'export const routes = {', ...rows, '} as const;', '');

const target = join(here, '../src/api/schema.ts');
mkdirSync(dirname(target), { recursive: true });
writeFileSync(target, out.join('\n'));
