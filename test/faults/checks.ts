/** Promises that have to hold after a fault, when everything runs again. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../support/orch.js';
import { AGENTS, type AgentName, type Fleet } from './fleet.js';
import { contentOf, type Fate, type Ledger, linesOf, moduleOf } from './load.js';

interface Ended {
  readonly operation_id: string;
  readonly status: string;
  readonly finished_at: number | null;
}

/** What a fault takes away by its nature, so that it is no violation. */
export interface Allowed {
  /** Agents whose journal was lost: operations of that time may be interrupted, owed triggers forgotten. */
  readonly lostJournal?: readonly AgentName[];
}

/** Adds a sentence to `ledger.violations` for each promise that does not hold. */
export async function check(fleet: Fleet, ledger: Ledger, allowed: Allowed = {}): Promise<void> {
  const violated = (sentence: string) => void ledger.violations.push(sentence);
  await checkWrites(fleet, ledger, violated);
  await checkAudit(fleet, ledger, violated);
  const ends = await endedOperations(fleet);
  for (const agent of AGENTS) {
    checkScripts(fleet, ledger, agent, ends, violated);
    await checkConvergence(fleet, ledger, agent, violated, allowed.lostJournal?.includes(agent) ?? false);
  }
  await checkExecs(fleet, ledger, violated);
}

type Violated = (sentence: string) => void;

async function checkWrites(fleet: Fleet, ledger: Ledger, violated: Violated): Promise<void> {
  const secrets: readonly { name: string }[] = await fleet.world.gives('listSecrets', {}, 200);
  const channels: readonly { name: string }[] = await fleet.world.gives('listChannels', {}, 200);
  const compare = (what: string, fates: ReadonlyMap<string, Fate>, present: ReadonlySet<string>) => {
    for (const [name, fate] of fates) {
      if (fate === 'acknowledged' && !present.has(name))
        violated(`the ${what} ${name} was acknowledged and is missing`);
      if (fate === 'refused' && present.has(name)) violated(`the ${what} ${name} was refused and is there`);
    }
  };
  compare('secret', ledger.secrets, new Set(secrets.map(({ name }) => name)));
  compare('channel', ledger.channels, new Set(channels.map(({ name }) => name)));
  const tags = ledger.tags.get('a1');
  const agent = await fleet.world.gives('getAgent', { params: { node_id: fleet.nodes.a1 } }, 200);
  const turn = Number(agent.tags.turn ?? 0);
  if (tags !== undefined && (turn < tags.acknowledged || turn > tags.attempted)) {
    violated(`the tag is ${turn}; ${tags.acknowledged} was acknowledged, ${tags.attempted} asked for last`);
  }
}

async function checkAudit(fleet: Fleet, ledger: Ledger, violated: Violated): Promise<void> {
  const query: Record<string, string> = ledger.checkpoint === null ? {} : { since: ledger.checkpoint };
  const found = await fleet.world.gives('verifyAudit', { query }, 200);
  if (!found.intact) violated(`the audit log is not intact: ${JSON.stringify(found.problem)}`);
  if (found.since !== null && found.since.found !== 'confirmed') {
    violated(`the checkpoint kept outside is ${found.since.found}`);
  }
  ledger.checkpoint = found.checkpoint?.text ?? ledger.checkpoint;
  const missing = await secretsWithoutEvent(fleet, ledger);
  if (missing.length > 0) violated(`no audit event tells of the secrets ${missing.join(', ')}`);
}

async function secretsWithoutEvent(fleet: Fleet, ledger: Ledger): Promise<readonly string[]> {
  const { status, stdout } = await fleet.cli(['audit', '--type', 'secret.created', '--all', '-o', 'json']);
  if (status !== 0) return [`(audit list ended with ${status})`];
  return [...ledger.secrets]
    .filter(([name, fate]) => fate === 'acknowledged' && !stdout.includes(`"${name}"`))
    .map(([name]) => name);
}

/** Waits until each operation has its end, and returns their states by ID. */
async function endedOperations(fleet: Fleet): Promise<ReadonlyMap<string, string>> {
  let operations: readonly Ended[] = [];
  await until(async () => {
    operations = [];
    for (let offset = 0; ; offset += 500) {
      const query = { limit: '500', offset: String(offset) };
      const page = await fleet.world.gives('listOperations', { query }, 200);
      operations = [...operations, ...page.operations];
      if (operations.length >= page.total || page.operations.length === 0) break;
    }
    return operations.every(({ finished_at }) => finished_at !== null);
  }, 'every operation has ended');
  return new Map(operations.map(({ operation_id, status }) => [operation_id, status]));
}

const linesIn = (path: string): readonly string[] =>
  existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];

const countIn = (lines: readonly string[], line: string): number => lines.filter((one) => one === line).length;

function checkScripts(
  fleet: Fleet,
  ledger: Ledger,
  agent: AgentName,
  ends: ReadonlyMap<string, string>,
  violated: Violated,
): void {
  const ran = linesIn(join(fleet.witness(agent), 'ran'));
  const triggered = linesIn(join(fleet.witness(agent), 'triggered'));
  for (const { value, id, fate } of ledger.applies.filter((apply) => apply.agent === agent)) {
    const runs = countIn(ran, value);
    if (runs > 1) violated(`the script of ${value} ran ${runs} times`);
    if (countIn(triggered, value) > 1) violated(`the trigger of ${value} fired ${countIn(triggered, value)} times`);
    if (fate === 'refused' && runs > 0) violated(`the apply of ${value} was refused and ran`);
    if (id === null) continue;
    const end = ends.get(id);
    if (end === undefined) violated(`the operation ${id} of ${value} was acknowledged and is not listed`);
    if (end === 'succeeded' && runs !== 1) violated(`the apply of ${value} succeeded, its script ran ${runs} times`);
  }
}

/** Applies once more: it succeeds, pays what is owed once, and leaves nothing to do and no half-made file. */
async function checkConvergence(
  fleet: Fleet,
  ledger: Ledger,
  agent: AgentName,
  violated: Violated,
  hasLostJournal: boolean,
): Promise<void> {
  const file = join(fleet.site(agent), 'value');
  if (existsSync(file)) {
    const found = readFileSync(file, 'utf8');
    const value = found.split('\n')[0] ?? '';
    if (found !== contentOf(value) && !hasLostJournal) violated(`${file} is half-written: ${found.length} bytes`);
  }
  const value = ledger.fresh(agent);
  const name = `load-${agent}`;
  await fleet.world.gives('uploadModule', { body: { name, content: moduleOf(fleet, agent, value) } }, 201);
  for (const round of ['first', 'second']) {
    const call = { params: { node_id: fleet.nodes[agent] }, body: { modules: [name] } };
    const result = await fleet.world.gives('applyAgent', call, 200);
    if (result.status !== 'succeeded')
      violated(`the ${round} apply of ${value} is ${result.status}: ${JSON.stringify(result.error)}`);
    if (round === 'second' && result.has_changes) violated(`the second apply of ${value} changed something`);
  }
  const triggered = linesIn(join(fleet.witness(agent), 'triggered'));
  if (countIn(triggered, value) !== 1) violated(`the trigger of ${value} fired ${countIn(triggered, value)} times`);
  if (countIn(linesIn(join(fleet.witness(agent), 'ran')), value) !== 1)
    violated(`the script of ${value} did not run once`);
  const left = readdirSync(fleet.site(agent)).filter((entry) => entry !== 'value');
  if (left.length > 0) violated(`left in the managed directory: ${left.join(', ')}`);
}

/** A command that ended well has shown all of its lines, its recording holds them, and no session stays open. */
async function checkExecs(fleet: Fleet, ledger: Ledger, violated: Violated): Promise<void> {
  for (const agent of AGENTS) {
    const { status, stderr } = await fleet.cli(['exec', agent, '--', 'true']);
    if (status !== 0) violated(`a command on ${agent} ends with ${status}: ${stderr}`);
  }
  for (const { marker, ended } of ledger.execs) {
    if (ended.status === 0 && ended.stdout !== linesOf(marker)) {
      violated(`the command ${marker} ended well and showed ${ended.stdout.length} bytes: ${ended.stderr}`);
    }
  }
  let open: readonly { id: string }[] = [];
  await until(async () => {
    open = await fleet.world.gives('listTerminals', { query: { status: 'active' } }, 200);
    return open.length === 0;
  }, 'every session has ended').catch(() => violated(`${open.length} sessions stay active`));
  const done = ledger.execs.filter(({ ended }) => ended.status === 0);
  const pattern = `^exec-\\S+ ${Number(linesOf('x').trim().split(' ').at(-1))}$`;
  const { stdout, status, stderr } = await fleet.cli(['term', 'grep', pattern, '--limit', '1000', '-o', 'json']);
  if (done.length > 0 && status !== 0) violated(`orch term grep ended with ${status}: ${stderr}`);
  for (const { marker } of done) {
    if (!stdout.includes(`${marker} `))
      violated(`the recording of ${marker} does not hold its last line: ${stdout.slice(0, 600)} ${stderr}`);
  }
  ledger.execs.length = 0;
}
