/** The benchmarks: measures what is asked for and prints a table. Ends with 1 when a goal is not met, or a row gives no number. */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { messageOf } from '../../src/kernel/fault.js';
import { agent } from './agent/agent.js';
import { api, audit } from './api/api.js';
import { copy } from './copy/copy.js';
import { fleet, largeApply, largeFleet } from './fleet/fleet.js';
import { stores } from './fleet/stores.js';
import { startGuard } from './guard.js';
import { typicalHost } from './host/typical-host.js';
import { local } from './local/local.js';
import { memory } from './memory.js';

import { observation } from './observation.js';
import { printTable } from './print-table.js';
import { resolution } from './resolution.js';
import type { Part, Row } from './row.js';
import { runParts } from './run-parts.js';
import { IS_SMALLEST } from './sized.js';
import { start } from './start.js';
import { terminal } from './terminal/terminal.js';

const PARTS: readonly Part[] = [
  start,
  local,
  typicalHost,
  memory,
  agent,
  observation,
  resolution,
  fleet,
  largeFleet,
  largeApply,
  stores,
  api,
  audit,
  terminal,
  copy,
];

const HELP = [
  'npm run bench [-- NAME…] [--only TEXT] [--list] [--smallest] [--no-peers] [--json FILE] [--compare FILE]',
  '',
  ...PARTS.map(({ name, summary }) => `  ${name.padEnd(16)}${summary}`),
  '',
  '  --only TEXT     measure only the rows whose name has this text',
  '  --list          print the names of the rows and measure nothing',
  '  --smallest      run each row once with as little as gives a number, to see that it works',
  '  --no-peers      measure no program of others but OpenSSH; they are measured where they are installed',
  '  --json FILE     keep the numbers in a file',
  '  --compare FILE  show numbers that were kept beside the new ones',
  '',
  'Ends with 1 when a row gives no number, and, without --smallest, when a goal is not met.',
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string', default: '' },
    list: { type: 'boolean', default: false },
    // Read by bench.mjs, because sizes are constants.
    smallest: { type: 'boolean', default: false },
    'no-peers': { type: 'boolean', default: false },
    json: { type: 'string' },
    compare: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

const say = (line: string): void => void process.stderr.write(`${line}\n`);

function chosen(): readonly Part[] {
  const names = PARTS.map(({ name }) => name);
  const unknown = positionals.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`there is no benchmark ${unknown}; there are: ${names.join(', ')}`);
  return positionals.length === 0 ? PARTS : PARTS.filter(({ name }) => positionals.includes(name));
}

function readRows(path: string): ReadonlyMap<string, Row> {
  const { rows } = JSON.parse(readFileSync(path, 'utf8')) as { rows: readonly Row[] };
  return new Map(rows.map((row) => [row.what, row]));
}

async function run(): Promise<void> {
  if (values.help) {
    say(HELP.join('\n'));
    return;
  }
  const parts = chosen();
  const before = values.compare === undefined ? null : readRows(values.compare);
  if (!values.list) startGuard();
  const { rows, missing } = await runParts(parts, {
    say,
    peers: !values['no-peers'],
    only: values.only,
    list: values.list,
  });
  if (values.list) return;
  if (rows.length === 0 && missing.size === 0)
    throw new Error(`no row has ${values.only} in its name; --list prints the names`);
  process.stdout.write(`${printTable(rows, before)}\n`);
  for (const [name, reason] of missing) process.stdout.write(`not measured: ${name} (${reason})\n`);
  if (values.json !== undefined) {
    const kept = { node: process.version, rows, missing: Object.fromEntries(missing) };
    writeFileSync(values.json, `${JSON.stringify(kept, null, 2)}\n`);
  }
  if (rows.some(({ ours, isMet }) => Number.isNaN(ours) || (isMet === false && !IS_SMALLEST))) process.exitCode = 1;
}

try {
  await run();
} catch (error) {
  say(`bench: ${messageOf(error)}`);
  process.exitCode = 1;
}
