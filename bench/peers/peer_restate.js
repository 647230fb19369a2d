// SPDX-License-Identifier: Apache-2.0
// Restate: a server that calls the service in this process. URL: "ADMIN INGRESS SERVICE-PORT".
import { once } from 'node:events'
import { createServer } from 'node:http2'
import * as restate from '@restatedev/restate-sdk'
import { work } from './work.js'

const workflow = restate.workflow({
  name: 'bench',
  handlers: { run: (ctx, input) => work(input, (name, body) => ctx.run(name, body)) },
})

async function post(url, body) {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`)
  return answer.text()
}

export async function open(dir, url) {
  const [admin, ingress, port] = url.split(' ')
  // Not restate.serve(): that listens to everybody.
  const server = createServer(restate.createEndpointHandler({ services: [workflow], logger: () => {} }))
  await once(server.listen(+port, '127.0.0.1'), 'listening')
  await post(`${admin}/deployments`, { uri: `http://127.0.0.1:${port}`, force: true })
  return {
    sync: () => '',
    // A loop is only sent: nobody waits for it, and the same id again is attached to what runs.
    start: (id, input) =>
      post(`${ingress}/bench/${id}/run${input.file ? '/send' : ''}`, input),
  }
}
