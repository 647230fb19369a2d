// SPDX-License-Identifier: Apache-2.0
// OpenWorkflow: a library over SQLite, with a worker that claims what is to be run.
import { OpenWorkflow } from 'openworkflow'
import { BackendSqlite } from 'openworkflow/sqlite'
import { work } from './work.js'

export async function open(dir) {
  // A worker runs what any process started; a namespace of its own keeps each process to what it started itself.
  const backend = BackendSqlite.connect(`${dir}/openworkflow.db`, { namespaceId: process.env.BENCH_PROCESS ?? 'default' })
  backend.db.exec('PRAGMA busy_timeout = 10000; PRAGMA synchronous = FULL')
  const client = new OpenWorkflow({ backend })
  const workflow = client.defineWorkflow({ name: 'work' }, ({ input, step }) =>
    work(input, (name, body) => step.run({ name }, body)))
  const pragma = (name) => Object.values(backend.db.prepare(`PRAGMA ${name}`).get())[0]
  await client.newWorker({ concurrency: 100 }).start()
  return {
    sync: () => `journal_mode=${pragma('journal_mode')}, synchronous=${pragma('synchronous')}`,
    start: async (id, input) => (await workflow.run(input, { idempotencyKey: id })).result(),
  }
}
