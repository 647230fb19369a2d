// SPDX-License-Identifier: Apache-2.0
// A PostgreSQL cluster of our own, of Debian's package: in a directory to be thrown away, with the settings it is made with.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'

const HOME = '/usr/lib/postgresql'
const SETTINGS = ['fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method']

export async function query(url, sql) {
  const { Client } = (await import('pg')).default
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

export async function syncOf(url) {
  const rows = await query(url, `SELECT name, setting FROM pg_settings WHERE name IN ('${SETTINGS.join("','")}') ORDER BY 1`)
  return rows.map((r) => `${r.name}=${r.setting}`).join(', ')
}

export function postgresBin() {
  const versions = existsSync(HOME) ? readdirSync(HOME).filter((v) => existsSync(`${HOME}/${v}/bin/initdb`)) : []
  return versions.length ? `${HOME}/${versions.sort((a, b) => b - a)[0]}/bin` : null
}

// It refuses to run as root: then as the user that Debian's package makes.
function user() {
  if (process.getuid() !== 0) return {}
  const id = (flag) => +execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' })
  return { uid: id('-u'), gid: id('-g') }
}

// begin(command, args, options) starts a process that ends with us.
export async function startPostgres(dir, port, begin) {
  const bin = postgresBin()
  const who = user()
  const password = randomBytes(16).toString('hex')
  const data = `${dir}/data`
  mkdirSync(dir, { mode: 0o700 })
  writeFileSync(`${dir}/password`, password, { mode: 0o600 })
  if (who.uid !== undefined) {
    chmodSync(dir, 0o700)
    for (const path of [dir, `${dir}/password`]) chownSync(path, who.uid, who.gid)
  }
  execFileSync(`${bin}/initdb`, ['-D', data, '-U', 'bench', '-A', 'scram-sha-256', `--pwfile=${dir}/password`, '-E', 'UTF8',
    '--locale=C'], { ...who, cwd: '/', stdio: ['ignore', 'ignore', 'inherit'] })
  const server = begin(`${bin}/postgres`, ['-D', data, '-p', String(port), '-c', 'listen_addresses=127.0.0.1', '-c',
    'unix_socket_directories=', '-c', 'max_connections=400'], { ...who, cwd: '/', log: 'postgres.log' })
  return { server, data, urlOf: (db) => `postgresql://bench:${password}@127.0.0.1:${port}/${db}` }
}
