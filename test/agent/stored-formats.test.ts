/** Files of the agent's data directory, which an upgrade finds: journal, state, the record of an upgrade, and the list of running programs. */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AgentState, readAgentState, writeAgentState } from '../../src/agent/agent-status.js';
import type { Intent } from '../../src/agent/converge/apply-group.js';
import type { Memo, OwedTrigger } from '../../src/agent/converge/ledger.js';
import type { JournalRecord, RunError } from '../../src/agent/journal/journal-state.js';
import { frameOf } from '../../src/agent/journal/read-journal.js';
import { type Acceptance, Journal } from '../../src/agent/journal.js';
import { processEntry } from '../../src/agent/pty/process-table.js';
import {
  makeSnapshotDirectory,
  readSnapshot,
  type SnapshotRecord,
  writeSnapshot,
} from '../../src/agent/snapshot/snapshot-record.js';
import { killSurvivors, writeLiveSessions } from '../../src/agent/terminal/survivors.js';
import { readUpgrade, type UpgradeRecord, writeUpgrade } from '../../src/agent/upgrade/upgrade-record.js';
import type { CheckReport } from '../../src/resources/checks/check.js';
import type { RunItem } from '../../src/wire/messages.js';
import { type Complete, describeReleased } from '../support/released.js';

const RUNS = ['01JQ2Z6T0V5X8Y4M3N7P9R1S2T', '01JQ2Z6T0V5X8Y4M3N7P9R1S2V', '01JQ2Z6T0V5X8Y4M3N7P9R1S2W'] as const;

const acceptance: Complete<Acceptance> = {
  id: RUNS[0],
  epoch: 2,
  generation: 41,
  content: {
    resources: [
      {
        module: 'site',
        kind: 'file-unix',
        identity: '/etc/motd',
        id: 'motd',
        name: 'the message of the day',
        body: { path: '/etc/motd', content: 'one ******** two' },
        taint: { '/content': [{ start: 4, end: 12, secret: 'TOKEN', tag: 'ab12' }] },
        after: [],
        triggers: { rerun_on: [1] },
      },
    ],
    removals: [
      {
        module: 'site',
        kind: 'file-unix',
        identity: '/etc/old',
        id: 'old',
        name: 'the old file',
        body: { path: '/etc/old' },
        taint: {},
        origin: 'created',
      },
    ],
    verify: [
      {
        module: 'site',
        name: 'page',
        kind: 'http',
        within_secs: 30,
        timeout_secs: 10,
        body: { url: 'http://127.0.0.1/?key=********' },
        taint: { '/url': [{ start: 22, end: 30, secret: 'TOKEN', tag: 'ab12' }] },
      },
    ],
  },
};

const item: Complete<RunItem> = {
  index: 0,
  result: {
    module: 'site',
    kind: 'script',
    identity: 'greet',
    id: 'greet',
    name: 'greets',
    action: 'run',
    status: 'failed',
    changes: [{ field: 'content', before: null, after: 'x' }],
    diff: '@@ -0,0 +1 @@\n+x\n',
    sensitive: true,
    reason: 'it was triggered',
    error: { code: 'command_failed', message: 'it ended with 1' },
    duration_ms: 12,
  },
  existed: false,
  output: { stdout: 'ä\n', stderr: '', exit_code: 1, truncated: false },
};

const intent: Complete<Intent> = { index: 0, action: 'run', existed: false };
const rerun: Complete<OwedTrigger> = { key: 'site/greet', field: 'rerun_on', run: RUNS[0] };
const restart: Complete<OwedTrigger> = { key: 'site/web', field: 'restart_on', run: RUNS[0] };
const memo: Complete<Memo> = { key: 'site/greet', memo: 'digest' };
const check: Complete<CheckReport> = { index: 0, status: 'unhealthy', duration_ms: 30_000, reason: 'it answered 503' };

const error: Complete<RunError> = { code: 'disk_full', message: 'the disk is full' };

const WRITTEN: Readonly<Record<JournalRecord['t'], true>> = {
  journal: true,
  accepted: true,
  key: true,
  owe: true,
  notes: true,
  intent: true,
  items: true,
  end: true,
  ack: true,
};

function writeJournal(directory: string): void {
  const file = join(directory, 'journal');
  const records = [
    { t: 'journal', version: 1, epoch: 1, generation: 7 },
    { t: 'key', key: '5a'.repeat(32) },
  ];
  writeFileSync(file, frameOf(records), { mode: 0o600 });
  const journal = new Journal(directory);
  journal.accept(acceptance);
  journal.intend(RUNS[0], [intent], { owed: [rerun, restart], memos: [memo, { key: 'site/gone', memo: 'x' }] });
  const { run: _, ...answered } = restart;
  journal.record(RUNS[0], [item], { paid: [answered], memos: [{ key: 'site/gone', memo: null }] });
  journal.end(RUNS[0], 'failed', error, { checks: [check] });
  journal.accept({ ...acceptance, id: RUNS[1], generation: 42, content: { resources: [], removals: [] } });
  journal.end(RUNS[1], 'succeeded', null);
  journal.sync();
  journal.acknowledge(RUNS[1]);
  journal.accept({ ...acceptance, id: RUNS[2], generation: 43 });
  journal.close();
  const text = readFileSync(file, 'latin1');
  for (const type of Object.keys(WRITTEN))
    if (!text.includes(`"t":"${type}"`)) throw new Error(`no ${type} is written`);
}

function readJournal(directory: string): unknown {
  const journal = new Journal(directory);
  const { runs, owed, loss } = journal;
  const memos = ['site/greet', 'site/gone'].map((key) => journal.memo(key));
  const isNewer = [journal.isNewer(2, 43), journal.isNewer(2, 44)];
  const digest = journal.digest({ a: 1 });
  journal.close();
  return { runs, owed, loss, memos, isNewer, digest };
}

const state: Complete<AgentState> = {
  node_id: '3f'.repeat(16),
  orchestrator_key: 'ab'.repeat(32),
  orchestrator: 'orch.example:4747',
  name: 'web-01',
  link: 'connected',
  since: '2026-03-01T12:00:00.000Z',
  last_error: 'the connection was lost',
  hint: 'check the network',
};

const upgrade: Complete<UpgradeRecord> = {
  format: 1,
  upgrade_id: RUNS[0],
  version: '0.2.0',
  state: 'rolled_back',
  waits_for: 'an apply',
  error: { code: 'upgrade_failed', message: 'the new agent ends again and again' },
  trial: {
    release: '/opt/orch/releases/0.2.0-5a5a5a5a5a5a',
    previous: '/opt/orch/releases/0.1.0-3f3f3f3f3f3f',
    seconds: 180,
    begun: 1,
  },
};

const snapshot: Complete<SnapshotRecord> = {
  format: 1,
  run_id: RUNS[0],
  state: 'restored',
  confirm_secs: 90,
  keeps: true,
  deadline: { boot: 'the boot of the deadline', at: 4_000_003 },
  why: 'the machine did not come back within 90 s',
  items: [
    {
      kind: 'file-unix',
      identity: '/etc/motd',
      key: 'path\0/etc/motd',
      action: 'update',
      saved: { type: 'file', path: '/etc/motd', blob: '1', mtime: 1_740_830_400.5, uid: 0, gid: 0, mode: 0o644 },
      reason: null,
    },
    {
      kind: 'script',
      identity: 'greet',
      key: 'script\0greet\0site',
      action: 'run',
      saved: null,
      reason: 'what a script has done cannot be undone',
    },
  ],
  restored: { restored: 1, not_restored: 1, resources: [{ kind: 'script', identity: 'greet', reason: 'it ran' }] },
  checks: [check],
};

const BOOT = 'the boot that the list belongs to';
const bootId = () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
const replaced = (file: string, texts: readonly (readonly [string, string])[]): void => {
  const change = (text: string, [from, to]: readonly [string, string]) => text.replace(from, to);
  writeFileSync(file, texts.reduce(change, readFileSync(file, 'utf8')));
};

function writeSurvivors(directory: string): void {
  writeLiveSessions(directory, new Map([[RUNS[0], { pid: 4_000_001, startTime: 4_000_002, tty: 0 }]]));
  replaced(join(directory, 'terminals.json'), [[bootId(), BOOT]]);
}

/** Puts a running program into the list, and waits for its end. */
async function readSurvivors(directory: string): Promise<unknown> {
  const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const pid = child.pid ?? 0;
  replaced(join(directory, 'terminals.json'), [
    [BOOT, bootId()],
    ['4000001', String(pid)],
    ['4000002', String(processEntry(pid)?.startTime)],
  ]);
  const sessions = killSurvivors(directory);
  if (sessions === 0) child.kill();
  await ended;
  return { sessions };
}

describeReleased(import.meta.url, [
  {
    name: 'journal',
    revision: 2,
    version: 'VERSION in src/agent/journal/read-journal.ts',
    write: writeJournal,
    read: readJournal,
  },
  {
    name: 'state',
    revision: 1,
    version: null,
    write: (directory) => writeAgentState(directory, state),
    read: readAgentState,
  },
  {
    name: 'upgrade',
    revision: 1,
    version: 'format in src/agent/upgrade/upgrade-record.ts',
    write: (directory) => writeUpgrade(directory, upgrade),
    read: readUpgrade,
  },
  {
    name: 'snapshot',
    revision: 1,
    version: 'format in src/agent/snapshot/snapshot-record.ts',
    write: (directory) => {
      makeSnapshotDirectory(directory);
      writeSnapshot(directory, snapshot);
    },
    read: readSnapshot,
  },
  { name: 'terminals', revision: 1, version: null, write: writeSurvivors, read: readSurvivors },
]);
