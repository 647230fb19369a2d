// SPDX-License-Identifier: Apache-2.0
// LangGraph: one node that is run again and again. Its durability "sync" waits for checkpoints only when the run is over (in
// 1.4.1 of the npm package); here the node itself waits until those before it are stored, as everybody else's steps do.
import { setImmediate as turn } from 'node:timers/promises'
import { Annotation, END, START, StateGraph } from '@langchain/langgraph'
import { over, stepBody, text } from './work.js'

const State = Annotation.Root({
  input: Annotation(),
  done: Annotation(),
  big: Annotation(),
  messages: Annotation({ reducer: (all, more) => all.concat(more), default: () => [] }),
})

// What is being stored of each thread.
const storing = new Map()

function watched(checkpointer) {
  for (const name of ['put', 'putWrites']) {
    const store = checkpointer[name].bind(checkpointer)
    checkpointer[name] = (config, ...rest) => {
      const stored = store(config, ...rest)
      const { thread_id } = config.configurable
      storing.set(thread_id, [...(storing.get(thread_id) ?? []), stored])
      return stored
    }
  }
  return checkpointer
}

// A checkpoint is handed to the store when the one before is stored, so there may be another.
async function allStored(thread) {
  for (await turn(); storing.has(thread); await turn()) {
    const now = storing.get(thread)
    storing.delete(thread)
    await Promise.all(now)
  }
}

async function node({ input, done }) {
  await allStored(input.id)
  const message = await stepBody(input)
  return { done: done + 1, ...(message && { messages: [message] }), ...(input.changed && { big: text(input.state) }) }
}

export function graphOf(checkpointer) {
  const graph = new StateGraph(State)
    .addNode('step', node)
    .addEdge(START, 'step')
    .addConditionalEdges('step', ({ input, done }) => (done < input.steps ? 'step' : END))
    .compile({ checkpointer: watched(checkpointer) })
  return async (id, input) => {
    const config = { configurable: { thread_id: id }, recursionLimit: input.steps + 10, durability: 'sync' }
    const begun = input.file && (await graph.getState(config)).next.length > 0
    await graph.invoke(begun ? null : { input, done: 0, big: input.state ? text(input.state) : '' }, config)
    over(input)
  }
}
