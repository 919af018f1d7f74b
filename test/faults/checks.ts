/** Promises that have to hold after a fault, when everything runs again. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Answer } from '../api/api-request.js';
import type { Call } from '../api/world.js';
import { until } from '../support/orch.js';
import { checkEnforced } from './enforced.js';
import type { Fleet } from './fleet.js';
import type { Fate, Ledger } from './ledger.js';
import { contentOf, linesOf, moduleOf, OWNER, secretContent } from './load.js';
import { AGENTS, type AgentName } from './machines.js';
import { countIn, linesIn } from './witness.js';

interface Ended {
  readonly operation_id: string;
  readonly status: string;
  readonly finished_at: number | null;
}

/** The losses that belong to a fault, so that they are no violation. */
export interface Allowed {
  /** Agents whose journal was lost: operations of that time may be interrupted, owed triggers and scripts that ran forgotten. */
  readonly lostJournal?: readonly AgentName[];
}

/** Adds a sentence to `ledger.violations` for each promise that does not hold. */
export async function check(fleet: Fleet, ledger: Ledger, allowed: Allowed = {}): Promise<void> {
  const violated = (sentence: string) => void ledger.violations.push(sentence);
  if (allowed.lostJournal) ledger.allowSecondRuns();
  await checkWrites(fleet, ledger, violated);
  await checkAudit(fleet, ledger, violated);
  await checkRollouts(fleet, ledger, violated);
  const ends = await endedOperations(fleet);
  for (const agent of AGENTS) {
    const hasLostJournal = allowed.lostJournal?.includes(agent) ?? false;
    await checkScripts({ fleet, ledger, agent, ends, hasLostJournal, violated });
    await checkConvergence(fleet, ledger, agent, violated, hasLostJournal);
  }
  await checkEnforced(fleet, ledger, violated);
  await checkExecs(fleet, ledger, violated);
  for (const sentence of await fleet.receiver.check(fleet.world)) violated(sentence);
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

/** Every rollout that was acknowledged has its end, and its script ran on each agent at most once. */
async function checkRollouts(fleet: Fleet, ledger: Ledger, violated: Violated): Promise<void> {
  const known = new Map<string, string>();
  await until(async () => {
    for (let offset = 0; ; offset += 500) {
      const page = await fleet.world.gives('listRollouts', { query: { limit: '500', offset: String(offset) } }, 200);
      for (const { rollout_id, state } of page.rollouts) known.set(rollout_id, state);
      if (page.rollouts.length < 500) break;
    }
    return [...known.values()].every((state) => ENDED.includes(state));
  }, 'every rollout has ended').catch(async (error) => {
    const open = [...known].flatMap(([id, state]) => (ENDED.includes(state) ? [] : [id]));
    for (const rollout_id of open) {
      const { agents } = await fleet.world.gives('getRollout', { params: { rollout_id } }, 200);
      violated(`the rollout ${rollout_id} does not end: ${JSON.stringify(agents)}`);
    }
    if (open.length === 0) throw error;
  });
  for (const { id, value } of ledger.rollouts) {
    const state = id === null ? undefined : known.get(id);
    if (id !== null && state === undefined)
      violated(`the rollout ${id} of ${value} was acknowledged and is not listed`);
    for (const agent of AGENTS) {
      const runs = countIn(linesIn(join(fleet.witness(agent), 'shared')), value);
      const allowed = ledger.mayRunAgain.has(value) ? 2 : 1;
      const most = runs > allowed ? allowed + (await interruptedRuns(fleet, agent)) : allowed;
      if (runs > most) violated(`the script of ${value} ran ${runs} times on ${agent}`);
      if (state === 'succeeded' && (runs === 0 || runs > most))
        violated(`the rollout of ${value} succeeded, its script ran ${runs} times on ${agent}`);
    }
  }
}

/** Returns how many applies of the agent were interrupted in the shared script, which the next one runs again. */
async function interruptedRuns(fleet: Fleet, agent: AgentName): Promise<number> {
  const query = { status: 'interrupted', limit: '500' };
  const call = { params: { node_id: fleet.nodes[agent] }, query };
  const { operations } = await fleet.world.gives('listAgentOperations', call, 200);
  const details = await Promise.all(
    operations.map(({ operation_id }: { operation_id: string }) =>
      fleet.world.gives('getOperation', { params: { operation_id } }, 200),
    ),
  );
  const hasStopped = ({ identity, error }: { identity: string; error: { code: string } | null }) =>
    identity === 'shared' && error?.code === 'interrupted';
  return details.filter(({ resources }) => resources.some(hasStopped)).length;
}

/** A rollout whose canary failed has halted: an operator would have to resume it. */
const ENDED = ['succeeded', 'failed', 'cancelled', 'reverted', 'halted'];

interface CheckedAgent {
  readonly fleet: Fleet;
  readonly ledger: Ledger;
  readonly agent: AgentName;
  /** States of all operations by ID. */
  readonly ends: ReadonlyMap<string, string>;
  readonly hasLostJournal: boolean;
  readonly violated: Violated;
}

/** The notes of the scripts agree with their operations. */
async function checkScripts(checked: CheckedAgent): Promise<void> {
  const { fleet, ledger, agent, ends, hasLostJournal, violated } = checked;
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
    // An agent that lost its journal does not know what ran.
    if (end === 'succeeded' || end === 'interrupted' || end === undefined || ledger.compared.has(id)) continue;
    ledger.compared.add(id);
    if (hasLostJournal) continue;
    const { resources } = await fleet.world.gives('getOperation', { params: { operation_id: id } }, 200);
    const said = resources.find(({ identity }: { identity: string }) => identity === 'ran')?.status;
    if (said === 'changed' ? runs !== 1 : said !== 'failed' && said !== undefined && runs > 0)
      violated(`the apply of ${value} is ${end}, its script is ${said} and ran ${runs} times`);
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
    const result = await appliedWhenFree(fleet, call);
    if (result.status !== 'succeeded')
      violated(`the ${round} apply of ${value} is ${result.status}: ${JSON.stringify(result.error)}`);
    if (round === 'second' && result.has_changes) violated(`the second apply of ${value} changed something`);
  }
  const triggered = linesIn(join(fleet.witness(agent), 'triggered'));
  if (countIn(triggered, value) !== 1) violated(`the trigger of ${value} fired ${countIn(triggered, value)} times`);
  if (countIn(linesIn(join(fleet.witness(agent), 'ran')), value) !== 1)
    violated(`the script of ${value} did not run once`);
  const secret = join(fleet.site(agent), 'secret');
  if (readFileSync(secret, 'utf8') !== secretContent) violated(`${secret} has another content`);
  const { uid, gid, mode } = statSync(secret);
  const found = `${uid} ${gid} ${(mode & 0o7777).toString(8)}`;
  if (found !== `${idOf('passwd', OWNER.user)} ${idOf('group', OWNER.group)} 640`) violated(`${secret} has ${found}`);
  const left = readdirSync(fleet.site(agent)).filter((entry) => entry !== 'value' && entry !== 'secret');
  if (left.length > 0) violated(`left in the managed directory: ${left.join(', ')}`);
  if (existsSync(join(fleet.path(agent), 'data', 'snapshot')))
    violated(`the snapshot of a confirmed apply is left on ${agent}`);
}

/**
 * Applies once the agent is free. An apply that a restored store does not know may still wait for its confirmation, and the
 * agent refuses another one meanwhile.
 */
async function appliedWhenFree(fleet: Fleet, call: Call): Promise<Answer['json']> {
  let answer: Answer | null = null;
  await until(async () => {
    answer = await fleet.world.call('applyAgent', call);
    return answer.status !== 409 && answer.json.error?.code !== 'operation_in_progress';
  }, 'the agent is free');
  const { status, json } = answer as unknown as Answer;
  if (status !== 200) throw new Error(`applyAgent answers ${status}: ${JSON.stringify(json)}`);
  return json;
}

/** Returns the number of a user or a group of this machine. */
const idOf = (file: 'passwd' | 'group', name: string): number =>
  Number(readFileSync(`/etc/${file}`, 'utf8').match(new RegExp(`^${name}:[^:]*:(\\d+):`, 'm'))?.[1]);

/** A command that ended well has shown all of its lines, its recording holds them, and no session stays open. */
async function checkExecs(fleet: Fleet, ledger: Ledger, violated: Violated): Promise<void> {
  for (const agent of AGENTS) {
    const { status, stderr } = await fleet.cli(['exec', agent, '--', 'true']);
    if (status !== 0) violated(`a command on ${agent} ends with ${status}: ${stderr}`);
  }
  for (const { agent, marker, ended } of ledger.execs) {
    const runs = countIn(linesIn(join(fleet.witness(agent), 'commands')), marker);
    if (runs > 1) violated(`the command ${marker} ran ${runs} times`);
    if (ended.status === 0 && runs === 0) violated(`the command ${marker} ended well and did not run`);
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
  if (done.length > 0 && status !== 0) violated(`orch term grep ended with ${status}: ${stderr} ${stdout.slice(-400)}`);
  for (const { marker } of done) {
    if (!stdout.includes(`${marker} `))
      violated(`the recording of ${marker} does not hold its last line: ${stdout.slice(0, 600)} ${stderr}`);
  }
  ledger.execs.length = 0;
}
