// SPDX-License-Identifier: Apache-2.0
// LangGraph: one node that is run again and again, a checkpoint after each before the next begins (durability "sync").
import { Annotation, END, START, StateGraph } from '@langchain/langgraph'
import { over, stepBody, text } from './work.js'

const State = Annotation.Root({
  input: Annotation(),
  done: Annotation(),
  big: Annotation(),
  messages: Annotation({ reducer: (all, more) => all.concat(more), default: () => [] }),
})

async function node({ input, done }) {
  const message = await stepBody(input)
  return { done: done + 1, ...(message && { messages: [message] }), ...(input.changed && { big: text(input.state) }) }
}

export function graphOf(checkpointer) {
  const graph = new StateGraph(State)
    .addNode('step', node)
    .addEdge(START, 'step')
    .addConditionalEdges('step', ({ input, done }) => (done < input.steps ? 'step' : END))
    .compile({ checkpointer })
  return async (id, input) => {
    const config = { configurable: { thread_id: id }, recursionLimit: input.steps + 10, durability: 'sync' }
    const begun = input.file && (await graph.getState(config)).next.length > 0
    await graph.invoke(begun ? null : { input, done: 0, big: input.state ? text(input.state) : '' }, config)
    over(input)
  }
}
