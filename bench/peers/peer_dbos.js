// SPDX-License-Identifier: Apache-2.0
// DBOS: a library over PostgreSQL. A workflow started again under its id continues; launch() resumes what was interrupted.
import { DBOS } from '@dbos-inc/dbos-sdk'
import { work } from './work.js'
import { syncOf } from './postgres.js'

const workflow = DBOS.registerWorkflow((input) => work(input, (name, body) => DBOS.runStep(body, { name })), { name: 'work' })

export async function open(dir, url) {
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, logLevel: 'error', runAdminServer: false })
  await DBOS.launch()
  return {
    sync: () => syncOf(url),
    start: async (workflowID, input) => (await DBOS.startWorkflow(workflow, { workflowID })(input)).getResult(),
  }
}
