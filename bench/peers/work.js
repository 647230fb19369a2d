// SPDX-License-Identifier: Apache-2.0
// What every workflow of every peer does, and when it did it.
import { appendFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

const LOOP_PAUSE_MS = 20
const RANDOM = Array.from({ length: 1 << 20 }, () => String.fromCharCode(97 + Math.random() * 26)).join('')

// Of each workflow: when each of its steps began, and when it was over, in seconds of the clock that all processes share.
export const times = new Map()
const now = () => Number(process.hrtime.bigint()) / 1e9

// Does not compress, and no two are the same.
let texts = 0
export function text(bytes) {
  return String(++texts).padStart(10, '0') + RANDOM.slice(0, Math.max(0, bytes - 10))
}

export async function stepBody(input) {
  times.get(input.id)?.push(now())
  if (input.file) {
    appendFileSync(input.file, 'step\n')
    await pause(LOOP_PAUSE_MS)
  }
  return input.bytes ? text(input.bytes) : null
}

// step(name, body) is the peer's own call for a durable step.
export async function work(input, step) {
  for (let i = 0; i < input.steps; i++) await step(`s${i}`, () => stepBody(input))
  over(input)
}

export function over(input) {
  times.get(input.id)?.push(now())
}
