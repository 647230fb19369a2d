// SPDX-License-Identifier: Apache-2.0
// The tables of `make bench-peers`: medians, with the smallest and the largest of the rounds.
function number(value, digits = 3) {
  if (value === Infinity) return 'over 45'
  if (!Number.isFinite(value)) return '?'
  if (value >= 1000) return Math.round(value).toLocaleString('en')
  return String(+value.toPrecision(digits))
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

function cell(values, unit = 1) {
  if (!values?.length) return '–'
  const scaled = values.map((v) => v * unit)
  const [low, high] = [Math.min(...scaled), Math.max(...scaled)]
  return values.length === 1 ? number(scaled[0]) : `${number(median(scaled))} (${number(low)}–${number(high)})`
}

function table(head, rows) {
  console.log(`\n| ${head.join(' | ')} |\n|${head.map(() => '---').join('|')}|`)
  for (const row of rows) console.log(`| ${row.join(' | ')} |`)
}

export function printReport(report, systems) {
  const { results } = report
  const of = (system, ...names) => names.map((name) => cell(results[system.name]?.[name]))
  const raw = (size) => cell(results.raw[size])
  console.log(`rounds: ${report.rounds}${report.quick ? ', quick: to see that it runs, not for figures' : ''}; median (smallest–largest)`)
  console.log(`load average before ${report.load.map((l) => l.toFixed(2)).join(' ')}, after ` +
    `${report.loadAfter.map((l) => l.toFixed(2)).join(' ')}; processors busy before each turn, %: ${cell(report.busy)}`)
  if (report.late) console.log(report.late)
  for (const s of systems) console.log(`sync, ${s.name}: ${results[s.name]?.sync ?? '?'}`)

  table(['durable steps', 'steps/s, 1', '10', '100 at once', '10 processes', '100 processes', 'p50 of one, ms', 'disk flushes a step'], [
    ...systems.map((s) => [s.name, ...of(s, 'rate1', 'rate10', 'rate100', 'crowd10', 'crowd100', 'p50', 'flushes')]),
    ['raw write+fdatasync, 256 B', cell(results.raw[256]?.map((ms) => 1000 / ms)), '–', '–', '–', '–', raw(256), '1'],
  ])
  table(['graph, ms a node', '10 KiB, same', '10 KiB, changed', '1 MiB, same', '1 MiB, changed'], [
    ...systems.filter((s) => s.graph).map((s) =>
      [s.name, ...of(s, 'graph10240same', 'graph10240changed', 'graph1048576same', 'graph1048576changed')]),
    ['raw write+fdatasync of so much', '–', raw(10 << 10), '–', raw(1 << 20)],
  ])
  table(['other', 'kill -9 to the next step, s', 'of the server, s', 'disk, bytes a step',
    `thread of ${number(report.threadSteps)} steps of ${number(report.threadBytes)} B, MiB`, 'idle memory, MiB'],
  systems.map((s) => [s.name, ...of(s, 'kill_process', 'kill_server', 'disk', 'thread', 'memory')]))

  console.log()
  for (const [name, reason] of report.absent) console.log(`not measured: ${name}: ${reason}`)
  for (const s of systems) for (const why of results[s.name]?.failed ?? []) console.log(`failed: ${s.name}: ${why}`)
}
