// SPDX-License-Identifier: Apache-2.0
// Processes that we start, each ended by its id: in order, when we end, and by the kernel when we are killed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, closeSync, readFileSync, readdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'

const ANSWER_MS = 90000
const END_MS = 10000
const running = new Set()

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => endAll().then(() => process.exit(130)))

// `log`: a file for what it prints; else its output is a pipe.
export function begin(command, args, { log, logs, ...options } = {}) {
  const to = openSync(`${logs}/${log}`, 'a')
  const child = spawn('setpriv', ['--pdeathsig', 'INT', command, ...args], { ...options, stdio: options.stdio ?? ['ignore', to, to] })
  closeSync(to)
  running.add(child)
  child.on('exit', () => running.delete(child))
  child.on('error', () => running.delete(child))
  return child
}

export async function end(child, signal = 'SIGINT') {
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill(signal)
  const late = setTimeout(() => child.kill('SIGKILL'), END_MS)
  await gone
  clearTimeout(late)
}

export function endAll() {
  return Promise.all([...running].map((child) => end(child)))
}

async function within(ms, what, promise) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: no answer within ${ms / 1000} s`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

// A driver: what it is asked line by line, and what it answers.
export class Driver {
  constructor(command, args, { logs, ...options }) {
    const errors = openSync(`${logs}/drivers.log`, 'a')
    this.child = begin(command, args, { log: 'drivers.log', logs, ...options, stdio: ['pipe', 'pipe', errors] })
    closeSync(errors)
    this.child.stdin.on('error', () => {})
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]()
  }

  async #answer(what) {
    const { value, done } = await within(ANSWER_MS, what, this.lines.next())
    if (done) throw new Error(`${what}: the driver ended (drivers.log)`)
    return JSON.parse(value)
  }

  ready() {
    return this.#answer('start')
  }

  tell(...words) {
    this.child.stdin.write(words.join(' ') + '\n')
  }

  ask(...words) {
    this.tell(...words)
    return this.#answer(words.join(' '))
  }

  async close() {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const gone = once(this.child, 'exit')
    this.child.stdin.end()
    const late = setTimeout(() => this.child.kill('SIGKILL'), END_MS)
    await gone
    clearTimeout(late)
  }

  kill() {
    return end(this.child, 'SIGKILL')
  }
}

export async function freePorts(n) {
  const servers = Array.from({ length: n }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((s) => once(s, 'listening')))
  const ports = servers.map((s) => s.address().port)
  await Promise.all(servers.map((s) => once(s.close(), 'close')))
  return ports
}

// MiB of a process and those below it, what they share counted once.
export function memoryOf(pid) {
  const parents = readdirSync('/proc').filter((p) => /^\d+$/.test(p)).map((p) => {
    try {
      return [+p, +readFileSync(`/proc/${p}/stat`, 'utf8').replace(/.*\) /s, '').split(' ')[1]]
    } catch {
      return [0, 0]
    }
  })
  const family = (id) => [id, ...parents.filter(([, parent]) => parent === id).flatMap(([p]) => family(p))]
  const pss = (id) => {
    try {
      return +/^Pss: +(\d+)/m.exec(readFileSync(`/proc/${id}/smaps_rollup`, 'utf8'))[1]
    } catch {
      return 0
    }
  }
  return family(pid).reduce((sum, id) => sum + pss(id), 0) / 1024
}
