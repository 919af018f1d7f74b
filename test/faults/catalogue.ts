/** Faults that strike while a load runs. When a strike returns, the fleet may still be broken; `Fleet.allBack` mends the rest. */
import { closeSync, openSync, readdirSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../support/orch.js';
import { type TEST_STORE, urlOf } from '../support/store-urls.js';
import { psql } from '../support/test-databases.js';
import type { Allowed } from './checks.js';
import { type Fleet, fakeTime } from './fleet.js';
import type { Ledger } from './ledger.js';
import { AGENTS, MACHINES, type Side } from './machines.js';
import type { Random } from './random.js';

export interface Strike {
  readonly fleet: Fleet;
  readonly ledger: Ledger;
  readonly random: Random;
}

export interface Fault {
  readonly name: string;
  /** Why it cannot be tried on this machine. */
  readonly missing?: string | null;
  readonly allowed?: Allowed;
  /** Stores that it is tried on [default: SQLite, whose files are on the disk that breaks]. */
  readonly stores?: readonly (typeof TEST_STORE)[];
  prepare?(fleet: Fleet): Promise<void>;
  strike(on: Strike): Promise<void>;
}

const BOTH = ['sqlite', 'postgres'] as const;
const withoutFakeTime = fakeTime === null ? 'faketime not installed' : null;
const HOUR = 3_600;
const YEAR = 365 * 24 * HOUR;
/** Bytes of a page of the store. */
const PAGE = 4096;
/** Bytes, some of which mean nothing to a reader: the time and the system of the compression. */
const GZIP_HEADER = 10;

/** A moment in which the load meets the fault. */
const aWhile = (random: Random) => sleep(random.between(200, 1_000));

async function kill({ fleet, random }: Strike, ...sides: readonly Side[]): Promise<void> {
  await Promise.all(sides.map((side) => fleet.end(side)));
  await aWhile(random);
  for (const side of sides) await fleet.start(side);
  await aWhile(random);
}

async function cutPower({ fleet, random }: Strike, side: Side): Promise<void> {
  await fleet.end(side);
  // A recording whose unsynced end is torn is reported as altered, which the checks take for a loss.
  fleet.disks[side].cutPower(random, 'transcripts');
  await aWhile(random);
  await fleet.start(side);
  await aWhile(random);
}

/** Breaks a disk for a while; a program that ends by itself meanwhile is started again by `Fleet.allBack`. */
async function breakDisk({ fleet, random }: Strike, side: Side, how: 'fill' | 'failSyncs' | 'turnReadOnly') {
  fleet.disks[side][how]();
  await aWhile(random);
  await aWhile(random);
  fleet.disks[side].heal();
  await aWhile(random);
}

/** Moves a clock away and back while the program runs, and across a restart. */
async function moveClock({ fleet, random }: Strike, side: Side, seconds: number): Promise<void> {
  fleet.setClock(side, seconds);
  await aWhile(random);
  await fleet.end(side, random.next() < 0.5 ? 'SIGKILL' : 'SIGTERM');
  await fleet.start(side);
  await aWhile(random);
  fleet.setClock(side, 0);
  await aWhile(random);
}

/** Changes a byte of a file that no program has open, one of those from `from` on. */
function damage(path: string, random: Random, from = 0): void {
  const bytes = readFileSync(path);
  const at = random.between(from, bytes.length - 1);
  bytes[at] = (bytes[at] ?? 0) ^ 0xff;
  writeFileSync(path, bytes);
}

/** Overwrites a page of SQLite's, as a disk does that returns a wrong sector. */
function damagePage(path: string, random: Random): void {
  const page = random.between(0, statSync(path).size / PAGE - 1);
  const store = openSync(path, 'r+');
  writeSync(store, Buffer.alloc(PAGE, random.between(0, 255)), 0, PAGE, page * PAGE);
  closeSync(store);
}

/** The orchestrator has to complain of a damaged file, or to have lost nothing; the file as it was mends it. */
async function damageServe({ fleet, ledger, random }: Strike, file: string, signal: NodeJS.Signals): Promise<void> {
  await fleet.end('serve', signal);
  const kept = fleet.path('serve-kept');
  fleet.copy(fleet.disks.serve.root, kept);
  damage(join(fleet.disks.serve.root, file), random);
  const complaint = await fleet.startComplaining();
  if (complaint === null) await aWhile(random);
  else if (!complaint.includes(file) && !complaint.includes('audit')) {
    ledger.violations.push(`with ${file} damaged the orchestrator says: ${complaint}`);
  }
  await fleet.end('serve');
  // Its writes to the damaged store are given up.
  if (complaint === null) return;
  fleet.disks.serve.replaceWith(kept);
  await fleet.startServe();
}

/**
 * Pages of a store that was closed in order are changed. The orchestrator has to complain at its start or after the check that
 * follows it, unless nothing stood in the page: then the check has to call the store whole, and every promise holds.
 */
async function damageStore({ fleet, ledger, random }: Strike): Promise<void> {
  await fleet.end('serve', 'SIGTERM');
  const kept = fleet.path('serve-kept');
  fleet.copy(fleet.disks.serve.root, kept);
  const forget = ledger.mark();
  damagePage(join(fleet.disks.serve.root, 'orch.db'), random);
  let complaint: string | null = await fleet.startComplaining(['--log-level', 'debug']);
  if (complaint === null) complaint = await fleet.checkedStore();
  if (complaint === null) return;
  if (!complaint.includes('damaged')) ledger.violations.push(`with a damaged page the orchestrator says: ${complaint}`);
  await fleet.end('serve');
  fleet.disks.serve.replaceWith(kept);
  forget();
  await fleet.startServe(['--new-epoch']);
}

/** A byte of a recording that is kept is changed: each read or search of it has to fail with that. */
async function damageRecording({ fleet, ledger, random }: Strike): Promise<void> {
  const id = await fleet.recordedSession();
  const file = await compressedRecording(fleet, id);
  const kept = readFileSync(file);
  damage(file, random, GZIP_HEADER);
  const read = await fleet.cli(['term', 'transcript', id]);
  if (read.status === 0) ledger.violations.push(`the damaged recording ${id} is read without a word: ${read.stderr}`);
  const searched = await fleet.cli(['term', 'grep', 'no line has this', '--limit', '1000']);
  if (searched.status === 0 || !searched.stderr.includes(id)) {
    ledger.violations.push(`the damaged recording ${id} is searched without a word: ${searched.stderr}`);
  }
  writeFileSync(file, kept);
  await aWhile(random);
}

/** The file of a session's recording; compressed some time after the session has ended. */
async function compressedRecording(fleet: Fleet, id: string): Promise<string> {
  const directory = join(fleet.disks.serve.root, 'transcripts');
  let name: string | undefined;
  await until(() => {
    name = readdirSync(directory, { recursive: true, encoding: 'utf8' }).find((one) => one.endsWith(`${id}.cast.gz`));
    return name !== undefined;
  }, 'the recording is compressed');
  return join(directory, name ?? '');
}

/** A backup is restored while the agents run: what was acknowledged after it is gone, and nothing else. */
async function restoreBackup({ fleet, ledger, random }: Strike): Promise<void> {
  const backup = fleet.path(`backup-${random.between(0, 1e9)}.db`);
  const directory = ['--data-dir', fleet.disks.serve.root];
  const forget = ledger.mark();
  await succeed(fleet, ['serve', 'backup', backup, ...directory]);
  await aWhile(random);
  await fleet.end('serve', 'SIGTERM');
  await succeed(fleet, ['serve', 'restore', backup, '--yes', ...directory]);
  await fleet.startServe();
  await aWhile(random);
  forget();
}

/** The server ends every connection to the database of the store, several times while the load runs. */
async function endConnections({ fleet, random }: Strike): Promise<void> {
  const url = urlOf(join(fleet.disks.serve.root, 'orch.db'));
  if (url === null) throw new Error('this store is no database');
  for (let cut = random.between(2, 5); cut > 0; cut -= 1) {
    psql(url, [
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
    ]);
    await aWhile(random);
  }
}

async function succeed(fleet: Fleet, args: readonly string[]): Promise<void> {
  const { status, stdout, stderr } = await fleet.cli(args);
  if (status !== 0) throw new Error(`orch ${args.join(' ')} ended with ${status}: ${stderr}${stdout}`);
}

/** The orchestrator is started while its data directory is not mounted. */
async function startUnmounted({ fleet, ledger, random }: Strike): Promise<void> {
  await fleet.end('serve', random.next() < 0.5 ? 'SIGKILL' : 'SIGTERM');
  const putBack = fleet.disks.serve.takeAway();
  const complaint = await fleet.startComplaining();
  if (!complaint?.includes('is not mounted')) ledger.violations.push(`unmounted, the orchestrator says: ${complaint}`);
  await fleet.end('serve');
  putBack();
  await fleet.startServe();
  await aWhile(random);
}

const oneOf = (random: Random): Side => MACHINES[random.between(0, MACHINES.length - 1)] ?? 'a1';

export const FAULTS: readonly Fault[] = [
  { name: 'kill -9 of the orchestrator', stores: BOTH, strike: (on) => kill(on, 'serve') },
  { name: 'kill -9 of an agent', strike: (on) => kill(on, oneOf(on.random)) },
  { name: 'kill -9 of both ends', stores: BOTH, strike: (on) => kill(on, 'serve', ...MACHINES) },
  {
    name: 'kill -9 of the terminal host',
    strike: async ({ fleet, random }) => {
      let hosts: readonly number[] = [];
      await until(() => {
        hosts = AGENTS.flatMap((name) => fleet.terminalHosts(name));
        return hosts.length > 0;
      }, 'a terminal host runs');
      for (const pid of hosts) process.kill(pid, 'SIGKILL');
      await aWhile(random);
    },
  },
  { name: 'connections of the database that end', stores: ['postgres'], strike: endConnections },
  {
    name: 'a power cut at the orchestrator',
    prepare: (fleet) => fleet.keepImages('serve'),
    strike: (on) => cutPower(on, 'serve'),
  },
  {
    name: 'a power cut at an agent',
    prepare: (fleet) => fleet.keepImages('a1'),
    strike: (on) => cutPower(on, 'a1'),
  },
  { name: 'a full disk at the orchestrator', strike: (on) => breakDisk(on, 'serve', 'fill') },
  { name: 'a full disk at an agent', strike: (on) => breakDisk(on, oneOf(on.random), 'fill') },
  { name: 'syncs that fail at the orchestrator', strike: (on) => breakDisk(on, 'serve', 'failSyncs') },
  { name: 'syncs that fail at an agent', strike: (on) => breakDisk(on, oneOf(on.random), 'failSyncs') },
  { name: 'a read-only disk at the orchestrator', strike: (on) => breakDisk(on, 'serve', 'turnReadOnly') },
  { name: 'a read-only disk at an agent', strike: (on) => breakDisk(on, oneOf(on.random), 'turnReadOnly') },
  {
    name: 'a clock that is hours ahead at the orchestrator',
    missing: withoutFakeTime,
    strike: (on) => moveClock(on, 'serve', on.random.between(1, 20) * HOUR),
  },
  {
    name: 'a clock that is years ahead at the orchestrator',
    missing: withoutFakeTime,
    strike: (on) => moveClock(on, 'serve', on.random.between(1, 10) * YEAR),
  },
  {
    name: 'a clock that is hours behind at the orchestrator',
    missing: withoutFakeTime,
    strike: (on) => moveClock(on, 'serve', -on.random.between(1, 20) * HOUR),
  },
  {
    name: 'a clock that is years off at an agent',
    missing: withoutFakeTime,
    strike: (on) => moveClock(on, oneOf(on.random), on.random.between(-10, 10) * YEAR),
  },
  { name: 'a damaged write-ahead log', strike: (on) => damageServe(on, 'orch.db-wal', 'SIGKILL') },
  { name: 'a damaged page of the store', strike: damageStore },
  { name: 'a damaged recording', strike: damageRecording },
  { name: 'a damaged identity key', strike: (on) => damageServe(on, 'identity.key', 'SIGKILL') },
  { name: 'a damaged key of the secrets', strike: (on) => damageServe(on, 'secrets.key', 'SIGTERM') },
  {
    name: 'a damaged journal of an agent',
    allowed: { lostJournal: ['a1'] },
    strike: async ({ fleet, random }) => {
      await fleet.end('a1');
      damage(join(fleet.path('a1', 'data'), 'journal'), random);
      fleet.startAgent('a1');
      await aWhile(random);
    },
  },
  { name: 'an old backup under a running fleet', stores: BOTH, strike: restoreBackup },
  { name: 'a start without the data directory', strike: startUnmounted },
];
