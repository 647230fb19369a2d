// SPDX-License-Identifier: Apache-2.0
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres'
import { graphOf } from './peer_langgraph.js'
import { syncOf } from './postgres.js'

export async function open(dir, url) {
  const saver = PostgresSaver.fromConnString(url)
  await saver.setup()
  return { sync: () => syncOf(url), start: graphOf(saver) }
}
