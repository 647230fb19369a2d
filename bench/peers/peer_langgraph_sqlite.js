// SPDX-License-Identifier: Apache-2.0
import Database from 'better-sqlite3'
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite'
import { graphOf } from './peer_langgraph.js'

export async function open(dir) {
  const db = new Database(`${dir}/langgraph.db`, { timeout: 10000 })
  const saver = new SqliteSaver(db)
  saver.setup()
  db.pragma('synchronous = FULL') // NORMAL without it, which a power cut does not respect
  return {
    sync: () => `journal_mode=${db.pragma('journal_mode', { simple: true })}, ` +
      `synchronous=${db.pragma('synchronous', { simple: true })}`,
    start: graphOf(saver),
  }
}
