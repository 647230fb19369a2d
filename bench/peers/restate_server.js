// SPDX-License-Identifier: Apache-2.0
// A Restate server of our own, as it is without a configuration, but for its addresses and its telemetry.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

export const restateBin = `${import.meta.dirname}/node_modules/@restatedev/restate-server-linux-x64/bin/restate-server`
const START_MS = 30000

function environment([node, admin, ingress]) {
  const local = (port) => `127.0.0.1:${port}`
  return {
    ...process.env,
    RESTATE_BIND_ADDRESS: local(node),
    RESTATE_ADVERTISED_ADDRESS: `http://${local(node)}`,
    RESTATE_LISTEN_MODE: 'tcp',
    RESTATE_ADMIN__BIND_ADDRESS: local(admin),
    RESTATE_INGRESS__BIND_ADDRESS: local(ingress),
    RESTATE_DISABLE_TELEMETRY: 'true',
  }
}

// What its configuration says of syncs.
function syncOf(dir, env) {
  const config = execFileSync(restateBin, ['--dump-config'], { env, cwd: dir, encoding: 'utf8' })
  const lines = config.split('\n')
  const section = lines.slice(lines.indexOf('[log-server]'))
  return section.filter((line) => /wal-fsync/.test(line)).slice(0, 1).map((line) => `log-server ${line.trim()}`).join(', ')
}

async function isUp(url) {
  try {
    return (await fetch(url)).ok
  } catch {
    return false
  }
}

// Started again on the same directory and ports, it continues.
export async function startRestate(dir, ports, begin) {
  const env = environment(ports)
  const [, admin, ingress, service] = ports
  const urls = [`http://127.0.0.1:${admin}`, `http://127.0.0.1:${ingress}`]
  if (!existsSync(dir)) mkdirSync(dir)
  const server = begin(restateBin, ['--node-name', 'bench', '--base-dir', dir, '--no-logo'], { env, cwd: dir, log: 'restate.log' })
  const end = Date.now() + START_MS
  while (!((await isUp(`${urls[0]}/health`)) && (await isUp(`${urls[1]}/restate/health`)))) {
    if (Date.now() > end || server.exitCode !== null) throw new Error('the server does not start (restate.log)')
    await pause(20)
  }
  return { server, data: dir, sync: syncOf(dir, env), url: `${urls[0]} ${urls[1]} ${service}` }
}
