// SPDX-License-Identifier: Apache-2.0
// Drives one of the others: `node driver.js PEER DIRECTORY URL`. One command a line on standard input, one JSON object a line
// on standard output; the end of the input ends it. tidemark-bench-ours speaks the same.
//
//   steps N K BYTES       N workflows at once, each K steps one after another, each with a result of BYTES  -> from, to, p50_ms
//   graph K BYTES 0|1     K nodes over a state of BYTES, unchanged or changed by each                       -> from, to
//   loop FILE             a workflow of slow steps that add a line to FILE; started again, it continues     -> no answer
import { basename } from 'node:path'
import { createInterface } from 'node:readline'
import { times } from './work.js'

const LOOP_STEPS = 900 // one of the peers refuses more than 1,000

let runs = 0
async function run(peer, n, input) {
  const ids = Array.from({ length: n }, () => `w${process.pid}-${++runs}`)
  times.clear()
  for (const id of ids) times.set(id, [])
  await Promise.all(ids.map((id) => peer.start(id, { ...input, id })))
  const all = [...times.values()]
  if (all.some((t) => t.length !== input.steps + 1)) throw new Error('a step was not done, or done twice')
  const took = all[0].slice(1).map((t, i) => t - all[0][i]).sort((a, b) => a - b)
  return {
    from: Math.min(...all.map((t) => t[0])),
    to: Math.max(...all.map((t) => t.at(-1))),
    p50_ms: took[took.length >> 1] * 1000,
  }
}

const commands = {
  steps: (peer, n, steps, bytes) => run(peer, +n, { steps: +steps, bytes: +bytes }),
  graph: (peer, steps, bytes, changed) => run(peer, 1, { steps: +steps, bytes: 0, state: +bytes, changed: changed === '1' }),
  loop: (peer, file) => void peer.start(basename(file), { id: basename(file), steps: LOOP_STEPS, bytes: 0, file }),
}

const [name, dir, url] = process.argv.slice(2)
const peer = await (await import(`./peer_${name}.js`)).open(dir, url)
const say = (answer) => process.stdout.write(JSON.stringify(answer) + '\n')
say({ ready: true, info: { sync: await peer.sync() } })
for await (const line of createInterface({ input: process.stdin })) {
  const [word, ...args] = line.split(' ')
  const answer = await commands[word](peer, ...args)
  if (answer) say(answer)
}
process.exit(0)
