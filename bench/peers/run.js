// SPDX-License-Identifier: Apache-2.0
// `make bench-peers`: the same work by Tidemark and by what people would use instead, in turns, several rounds, one machine.
// Each turn starts its server and driver on fresh data and ends them, so that nothing else runs meanwhile; before each turn the
// raw disk is measured. What cannot be measured here is named with its reason.
//
//   run.js BUILD [--quick] [--rounds=N] [--minutes=N] [--only=NAME]
import { closeSync, existsSync, fdatasyncSync, mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, statSync,
  unlinkSync, writeSync, chmodSync } from 'node:fs'
import os from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { Driver, begin, end, endAll, freePorts, memoryOf } from './processes.js'
import { postgresBin, query, startPostgres } from './postgres.js'
import { restateBin, startRestate } from './restate_server.js'
import { printReport } from './report.js'

const here = import.meta.dirname
const module = (name) => existsSync(`${here}/node_modules/${name}/package.json`) || `${name} is not installed (npm.log)`
const postgres = () => postgresBin() !== null || 'PostgreSQL is not installed'
const restate = () => existsSync(restateBin) || 'the server is not installed (npm.log)'
const sqlite = () => existsSync(`${here}/node_modules/better-sqlite3/build/Release/better_sqlite3.node`) ||
  'better-sqlite3 was not built (npm.log)'

// `needs`: each says true, or why it cannot be measured. `kills`: in how many rounds, where a lease is waited for. `most`: steps
// of a workflow, where more than 1,000 are refused.
const systems = [
  { name: 'Tidemark, pure steps', ours: 'pure', graph: true, crowds: [10, 100], kills: 9, needs: [] },
  { name: 'Tidemark, steps once', ours: 'once', crowds: [10, 100], kills: 0, needs: [] },
  { name: 'Restate', driver: 'restate', server: 'restate', crowds: [], kills: 9,
    needs: [restate, () => module('@restatedev/restate-sdk')] },
  { name: 'DBOS, PostgreSQL', driver: 'dbos', server: 'postgres', crowds: [10], kills: 9,
    needs: [postgres, () => module('pg'), () => module('@dbos-inc/dbos-sdk')] },
  { name: 'OpenWorkflow, SQLite', driver: 'openworkflow', crowds: [10], kills: 1, most: 900, needs: [() => module('openworkflow')] },
  { name: 'LangGraph, SQLite', driver: 'langgraph_sqlite', graph: true, crowds: [10], kills: 9,
    needs: [sqlite, () => module('@langchain/langgraph'), () => module('@langchain/langgraph-checkpoint-sqlite')] },
  { name: 'LangGraph, PostgreSQL', driver: 'langgraph_postgres', server: 'postgres', graph: true, crowds: [10], kills: 9,
    needs: [postgres, () => module('pg'), () => module('@langchain/langgraph'),
      () => module('@langchain/langgraph-checkpoint-postgres')] },
]

// What this command does not have, whatever is installed.
const absent = [
  ['Absurd, PostgreSQL', 'its tables are made by absurdctl, which is neither in npm nor in Debian'],
  ['LangGraph in Python', 'only its npm packages are installed, and measured above'],
  ['Temporal, Inngest', 'their packages fetch a server from elsewhere than a package registry'],
]

const build = process.argv[2]
const options = process.argv.slice(3)
const valueOf = (name) => options.find((o) => o.startsWith(`--${name}=`))?.split('=')[1]
const quick = options.includes('--quick')
const rounds = +(valueOf('rounds') ?? (quick ? 1 : 3))
const seconds = quick ? 0.2 : 0.5 // of each rate
const RAW_SIZES = [256, 10 << 10, 1 << 20]
const DURABLE = /synchronous=(2|FULL)|fsync=on, .*synchronous_commit=on|disable-wal-fsync = false/
const minutes = +(valueOf('minutes') ?? 10) // after that no turn begins
const KILL_MS = 45000
const STEPS_MAX = 50000 // of one workflow, unless its row has `most`
const THREAD_STEPS = quick ? 100 : 1000
const THREAD_BYTES = 1024

const unknown = options.filter((o) => o !== '--quick' && !/^--(rounds=[1-9]\d?|minutes=[1-9]\d*|only=.+)$/.test(o))
if (!build || unknown.length) {
  console.error('usage: make bench-peers ARGS="[--quick] [--rounds=N] [--minutes=N] [--only=NAME]"')
  process.exit(2)
}

// ---- the machine ----

const device = (path) => {
  const { dev } = statSync(path)
  const sys = `/sys/dev/block/${(dev >> 8) & 0xfff}:${(dev & 0xff) | ((dev >> 12) & 0xfff00)}`
  return existsSync(`${sys}/partition`) ? `${sys}/../stat` : `${sys}/stat`
}

// Flushes of the disk's cache so far, by anybody; NaN where the kernel does not count them.
function flushes(dir) {
  try {
    return Number(readFileSync(device(dir), 'utf8').trim().split(/\s+/)[15])
  } catch {
    return NaN
  }
}

// Milliseconds of a write of so many bytes to the end of a file, and its sync.
function rawWrite(dir, size) {
  const fd = openSync(`${dir}/raw`, 'w')
  const bytes = Buffer.alloc(size, 'x')
  const start = performance.now()
  let n = 0
  for (; performance.now() - start < seconds * 250; n++) {
    writeSync(fd, bytes)
    fdatasyncSync(fd)
  }
  const each = (performance.now() - start) / n
  closeSync(fd)
  unlinkSync(`${dir}/raw`)
  return each
}

// How busy the processors are with what is not ours, in percent.
async function busy() {
  const read = () => readFileSync('/proc/stat', 'utf8').split('\n')[0].trim().split(/\s+/).slice(1).map(Number)
  const before = read()
  await pause(500)
  const spent = read().map((v, i) => v - before[i])
  return 100 * (1 - (spent[3] + spent[4]) / spent.slice(0, 8).reduce((a, b) => a + b))
}

function bytesBelow(dir) {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((e) => e.isFile())
    .reduce((sum, e) => sum + statSync(`${e.parentPath}/${e.name}`).size, 0)
}

// How many steps of a workflow take as long as a rate is measured, when so few took that long.
function stepsFor(few, took, most = STEPS_MAX) {
  return Math.min(most, Math.max(5, Math.round((few / took) * seconds)))
}

// ---- a turn ----

class Turn {
  constructor(system, base, results) {
    this.system = system
    this.dir = mkdtempSync(`${base}/turn-`)
    this.results = results
    chmodSync(this.dir, 0o711) // PostgreSQL's user looks below it
    this.begin = (command, args, more) => begin(command, args, { logs: base, ...more })
    this.base = base
  }

  record(what, value) {
    this.results[what] ??= []
    this.results[what].push(value)
  }

  async startServer() {
    this.data = `${this.dir}/data`
    if (this.system.server === 'postgres') {
      const [port] = await freePorts(1)
      const pg = await startPostgres(`${this.dir}/postgres`, port, this.begin)
      this.server = pg.server
      await this.#until(() => query(pg.urlOf('postgres'), 'CREATE DATABASE bench'))
      this.url = pg.urlOf('bench')
    } else if (this.system.server === 'restate') {
      this.ports ??= await freePorts(4)
      const started = await startRestate(this.data, this.ports, this.begin)
      Object.assign(this, { server: started.server, url: started.url, serverSync: started.sync })
    }
    if (!existsSync(this.data)) mkdirSync(this.data)
  }

  async #until(action) {
    for (let left = 400; ; left--) {
      try {
        return await action()
      } catch (error) {
        if (left === 0 || this.server.exitCode !== null) throw error
        await pause(25)
      }
    }
  }

  driver(id) {
    const { ours, driver } = this.system
    const env = { ...process.env, NODE_NO_WARNINGS: '1', ...(id !== undefined && { BENCH_PROCESS: `p${id}`, DBOS__VMID: `p${id}` }) }
    return ours
      ? new Driver(`${build}/bench/tidemark-bench-ours`, [`sqlite:${this.data}/ours.db`, ours], { logs: this.base, env })
      : new Driver(process.execPath, [`${here}/driver.js`, driver, this.data, this.url ?? ''], { logs: this.base, env })
  }

  // A PostgreSQL database without its write-ahead log; else all files, with SQLite's log moved into its database.
  async bytes() {
    if (this.system.server === 'postgres') {
      await query(this.url, 'CHECKPOINT')
      return +(await query(this.url, 'SELECT pg_database_size(current_database()) AS n'))[0].n
    }
    for (const name of this.system.ours ? [] : readdirSync(this.data).filter((n) => n.endsWith('.db'))) {
      const db = new DatabaseSync(`${this.data}/${name}`)
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      db.close()
    }
    return bytesBelow(this.data)
  }

  async memory(driver) {
    await pause(1000)
    this.record('memory', memoryOf(driver.child.pid) + (this.server ? memoryOf(this.server.pid) : 0))
  }

  // So many at once, for about as long as a rate is measured.
  async rate(driver, n) {
    const few = quick ? 3 : 10
    const warm = await driver.ask('steps', n, few, 0)
    const each = stepsFor(few, warm.to - warm.from, this.system.most)
    const before = flushes(this.dir)
    const { from, to, p50_ms } = await driver.ask('steps', n, each, 0)
    this.record(`rate${n}`, (n * each) / (to - from))
    if (n === 1) {
      this.record('p50', p50_ms)
      this.record('flushes', (flushes(this.dir) - before) / each)
    }
  }

  async graph(driver) {
    await driver.ask('graph', 20, 10240, 1)
    for (const [bytes, nodes] of [[10 << 10, quick ? 10 : 100], [1 << 20, quick ? 5 : 20]])
      for (const changed of [0, 1]) {
        const { from, to } = await driver.ask('graph', nodes, bytes, changed)
        this.record(`graph${bytes}${changed ? 'changed' : 'same'}`, ((to - from) / nodes) * 1000)
      }
  }

  async crowd(n) {
    const drivers = []
    try {
      // One after another: not all of them wait for each other while they open.
      for (let i = 0; i < n; i++) {
        drivers.push(this.driver(i))
        await drivers[i].ready()
      }
      const all = async (each) => {
        const took = await Promise.all(drivers.map((d) => d.ask('steps', 1, each, 0)))
        return Math.max(...took.map((t) => t.to)) - Math.min(...took.map((t) => t.from))
      }
      const each = stepsFor(5, await all(5), this.system.most)
      this.record(`crowd${n}`, (n * each) / (await all(each)))
    } finally {
      await Promise.all(drivers.map((d) => d.close()))
    }
  }

  // From the kill of the driver [of the server] to the next step, in seconds: started again at once, as a supervisor would.
  async killed(what) {
    const file = `${this.dir}/steps-${what}`
    const lines = () => (existsSync(file) ? statSync(file).size : 0)
    const more = async (than, ms) => {
      const stop = performance.now() + ms
      while (lines() <= than) {
        if (performance.now() > stop) return false
        await pause(1)
      }
      return true
    }
    let driver = this.driver()
    try {
      driver.tell('loop', file)
      await driver.ready()
      if (!(await more(5 * 20, KILL_MS))) throw new Error('the loop does not begin')
      await (what === 'server' ? end(this.server, 'SIGKILL') : driver.kill())
      const at = performance.now()
      const before = lines()
      const again = what === 'server' ? this.startServer() : null
      if (what !== 'server') {
        driver = this.driver()
        driver.tell('loop', file)
      }
      this.record(`kill_${what}`, (await more(before, KILL_MS)) ? (performance.now() - at) / 1000 : Infinity)
      await again
    } finally {
      await driver.kill()
    }
  }

  // What a step leaves on disk, and a long thread: sizes when nobody has it open.
  async disk() {
    const sizes = [await this.bytes()]
    for (const [n, steps, bytes] of [[10, 100, 0], [1, THREAD_STEPS, THREAD_BYTES]]) {
      const driver = this.driver()
      await driver.ready()
      await driver.ask('steps', n, steps, bytes)
      await driver.close()
      sizes.push(await this.bytes())
    }
    this.record('disk', (sizes[1] - sizes[0]) / 1000)
    this.record('thread', (sizes[2] - sizes[1]) / (1 << 20))
  }

  async run(round) {
    const { graph, crowds, kills, server } = this.system
    await this.startServer()
    const driver = this.driver()
    const { info } = await driver.ready()
    this.results.sync = info.sync || this.serverSync
    if (!DURABLE.test(this.results.sync)) throw new Error(`does not sync what it acknowledges: ${this.results.sync}`)
    if (round === 0) await this.memory(driver)
    for (const n of [1, 10, 100]) await this.rate(driver, n)
    if (graph) await this.graph(driver)
    await driver.close()
    if (round === 0) await this.disk()
    for (const n of crowds) await this.crowd(n)
    if (round < kills) await this.killed('process')
    if (round < kills && server === 'restate') await this.killed('server')
  }

  async close() {
    await end(this.server)
    rmSync(this.dir, { recursive: true, force: true })
  }
}

// ---- all of it ----

async function round(i, chosen, base, report) {
  for (const system of chosen) {
    if (performance.now() > minutes * 60000) {
      report.late ??= `${minutes} minutes over: round ${i + 1} ends before ${system.name}`
      return
    }
    report.busy.push(await busy())
    const results = (report.results[system.name] ??= { failed: [] })
    const turn = new Turn(system, base, results)
    for (const size of RAW_SIZES) (report.results.raw[size] ??= []).push(rawWrite(turn.dir, size))
    const start = performance.now()
    try {
      await turn.run(i)
    } catch (error) {
      results.failed.push(`round ${i + 1}: ${error.message}`)
    } finally {
      await turn.close()
    }
    console.error(`round ${i + 1} of ${rounds}: ${system.name}, ${((performance.now() - start) / 1000).toFixed(0)} s`)
  }
}

setTimeout(() => {
  console.error('bench-peers: not over within twice its time')
  endAll().then(() => process.exit(1))
}, minutes * 120000).unref()
const where = process.env.BENCH_DIR ?? here
const base = mkdtempSync(`${where}/run-`)
chmodSync(base, 0o711)
let failed = false
process.on('exit', () => failed || rmSync(base, { recursive: true, force: true }))

const report = { rounds, quick, load: os.loadavg(), busy: [], results: { raw: {} }, absent, threadSteps: THREAD_STEPS,
  threadBytes: THREAD_BYTES }
const chosen = systems.filter((s) => !valueOf('only') || s.name.toLowerCase().includes(valueOf('only').toLowerCase()))
const able = chosen.filter((s) => {
  const reason = s.needs.map((need) => need()).find((answer) => answer !== true)
  if (reason) report.absent.unshift([s.name, reason])
  return !reason
})
for (let i = 0; i < rounds; i++) await round(i, able, base, report)
report.loadAfter = os.loadavg()
printReport(report, able)
failed = Object.values(report.results).some((r) => r.failed?.length)
if (failed) console.error(`what the servers and drivers said is in ${base}`)
process.exit(failed ? 1 : 0)
