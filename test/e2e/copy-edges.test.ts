/** `orch cp` at its edges: kills, settings taken back, a process that is held up, slow and lossy links, its line on a terminal. */
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { firstOf, IS_EXHAUSTIVE, itInLong } from '../support/exhaustive.js';
import { auditEvents, dial, echo, forward, Targets } from '../support/forwarding.js';
import { type Finished, ORCH, type Running, until } from '../support/orch.js';
import { Pty } from '../support/pty.js';
import { SlowWay } from '../support/slow-way.js';
import { childrenOf, commandLine, NODE_NAME, TerminalFleet } from '../support/terminal-fleet.js';

const MEBIBYTE = 1024 * 1024;
const SIZE = 96 * MEBIBYTE;
const FILES = IS_EXHAUSTIVE ? 4_000 : 1_000;
let fleet: TerminalFleet;
let targets: Targets;
let echoPort = 0;
/** Directory of this test on the operator's side and on the machine's. */
let here = '';
let there = '';
let round = 0;

const remote = (...parts: readonly string[]): string => `${NODE_NAME}:${join(there, ...parts)}`;
const cp = (...words: readonly string[]): Promise<Finished> => fleet.sandbox.orch(['cp', ...words]);
const left = (directory: string): readonly string[] =>
  readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('.orch-cp-'));
const hostPids = () => childrenOf(fleet.agentPid).filter((pid) => commandLine(pid).includes('forward-host'));
const ended = (running: Running) => new Promise<number | null>((resolve) => running.process.once('close', resolve));

/** Settings of the agent that permit copies below the directory of the machine, with others in place of them. */
const settings = (other: object = {}): string => {
  const machine = join(realpathSync(fleet.sandbox.root), 'machine');
  const forwards = { forward: { targets: [`localhost:${echoPort}`] } };
  return JSON.stringify({ copy: { read: [machine], write: [machine] }, ...forwards, ...other });
};

/** Gives the machine its settings back, and waits until the agent has read them. */
async function permit(): Promise<void> {
  writeFileSync(fleet.sandbox.path('agent.yaml'), settings());
  writeFileSync(join(here, 'probe'), 'x');
  await until(async () => (await cp(join(here, 'probe'), remote('probe'))).status === 0, 'the agent permits copies');
}

/** Waits until an incomplete file of at least a few MiB is there. */
const halfWay = (directory: string): Promise<void> =>
  until(() => {
    const [name] = left(directory);
    return name !== undefined && statSync(join(directory, name)).size > 4 * MEBIBYTE;
  }, 'a part has arrived');

beforeAll(async () => {
  fleet = await TerminalFleet.start();
  targets = new Targets();
  echoPort = await targets.serve(echo);
  mkdirSync(join(realpathSync(fleet.sandbox.root), 'machine'));
  await fleet.agent.stop();
  writeFileSync(fleet.sandbox.path('agent.yaml'), settings());
  fleet.startAgent();
  await fleet.connected();
});

afterAll(async () => {
  targets.close();
  await fleet.dispose();
});

beforeEach(() => {
  round += 1;
  const root = realpathSync(fleet.sandbox.root);
  here = join(root, `here-${round}`);
  there = join(root, 'machine', `${round}`);
  mkdirSync(here);
  mkdirSync(there);
});

it('names the reason of a refusal by the real path in the audit log', async () => {
  const secret = realpathSync(fleet.sandbox.root);
  writeFileSync(join(secret, 'key'), 'private');
  symlinkSync(secret, join(there, 'way'));
  expect((await cp(remote('way', 'key'), here)).status).not.toBe(0);
  await until(async () => {
    const [closed] = await auditEvents(fleet.sandbox, 'copy.closed');
    return (closed?.summary ?? '').includes('1 failed (this agent does not permit orch cp to read');
  }, 'the end is recorded with its reason');
  const [closed] = await auditEvents(fleet.sandbox, 'copy.closed');
  expect(closed?.metadata).toMatchObject({
    failed: 1,
    refusals: [expect.stringContaining(`which leads to ${join(secret, 'key')}`)],
  });
});

it.each(firstOf(1, ['write', 'read'] as const))(
  'ends when its setting %s is taken back in the middle',
  async (direction) => {
    const [source, target] = direction === 'write' ? [here, there] : [there, here];
    writeFileSync(join(source, 'data'), randomBytes(SIZE));
    const words = direction === 'write' ? [join(here, 'data'), remote('copy')] : [remote('data'), join(here, 'copy')];
    const running = fleet.sandbox.start(['cp', ...words]);
    await halfWay(target);
    // Holds the copy where it is, so that it cannot be over before the settings are read.
    const [pid = 0] = hostPids();
    process.kill(pid, 'SIGSTOP');
    const end = ended(running);
    const told = /a copy ends, because its targets are no longer permitted/g;
    const before = fleet.agent.output().match(told)?.length ?? 0;
    writeFileSync(fleet.sandbox.path('agent.yaml'), settings({ copy: {} }));
    await until(() => (fleet.agent.output().match(told)?.length ?? 0) > before, 'the agent ends it');
    process.kill(pid, 'SIGCONT');
    expect(await end).not.toBe(0);
    expect(running.output()).toContain(`this agent permits orch cp to ${direction} nothing`);
    expect(existsSync(join(target, 'copy'))).toBe(false);
    await permit();
  },
);

it('is recorded with an end when the orchestrator was killed, as is a forward', async () => {
  writeFileSync(join(here, 'data'), randomBytes(SIZE));
  const forwarding = await forward(fleet, `0:localhost:${echoPort}`);
  const socket = dial(forwarding.port);
  socket.write('x');
  await new Promise((resolve) => socket.once('data', resolve));
  const running = fleet.sandbox.start(['cp', join(here, 'data'), remote('copy')]);
  await halfWay(there);
  const [copy] = await auditEvents(fleet.sandbox, 'copy.opened');
  const [opened] = await auditEvents(fleet.sandbox, 'forward.opened');
  const end = ended(running);
  await fleet.killServer();
  expect(await end).toBe(0);
  for (const [type, before] of [
    ['copy.closed', copy],
    ['forward.closed', opened],
  ] as const) {
    const events = await auditEvents(fleet.sandbox, type);
    const own = events.filter(({ metadata }) => metadata.session_id === before?.metadata.session_id);
    expect(own.map(({ metadata }) => metadata)).toEqual([
      expect.objectContaining({ reason: 'orchestrator_lost', targets: before?.metadata.targets }),
    ]);
  }
  // A second start finds nothing to end.
  const count = (await auditEvents(fleet.sandbox, 'copy.closed')).length;
  await fleet.killServer();
  expect((await auditEvents(fleet.sandbox, 'copy.closed')).length).toBe(count);
  socket.destroy();
  await forwarding.running.stop('SIGKILL');
  await fleet.connected();
});

it('is recorded with an end when the agent was killed', async () => {
  writeFileSync(join(here, 'data'), randomBytes(SIZE));
  const running = fleet.sandbox.start(['cp', join(here, 'data'), remote('copy')]);
  await halfWay(there);
  const [opened] = await auditEvents(fleet.sandbox, 'copy.opened');
  const end = ended(running);
  await fleet.agent.stop('SIGKILL');
  fleet.startAgent();
  expect(await end).toBe(0);
  const closed = await auditEvents(fleet.sandbox, 'copy.closed');
  expect(closed.find(({ metadata }) => metadata.session_id === opened?.metadata.session_id)?.metadata).toMatchObject({
    reason: 'agent_lost',
  });
  await fleet.connected();
});

// The agent waits for the process that is held up.
itInLong('gets another process when a file system holds up the one that there is', async () => {
  writeFileSync(join(here, 'data'), randomBytes(SIZE));
  const running = fleet.sandbox.start(['cp', join(here, 'data'), remote('copy')]);
  await halfWay(there);
  const held = hostPids();
  for (const pid of held) process.kill(pid, 'SIGSTOP');
  expect(await running.stop('SIGINT')).toBe(130);
  writeFileSync(join(here, 'small'), 'x');
  await until(async () => (await cp(join(here, 'small'), remote('small'))).status === 0, 'another process copies');
  expect(readFileSync(join(there, 'small'), 'utf8')).toBe('x');
  expect(hostPids().filter((pid) => held.includes(pid))).toEqual([]);
});

it('goes over a slow link that stalls as one with losses does, without a round trip for each file', async () => {
  const way = await SlowWay.to(fleet.operatorCable.port, 25);
  const stalls = setInterval(() => {
    way.hold();
    setTimeout(() => way.release(), 150);
  }, 400);
  try {
    const { pin } = fleet.profile;
    const url = `https://127.0.0.1:${way.port}`;
    await fleet.sandbox.orch(['profile', 'create', 'slow', '--url', url, '--tls-fingerprint', pin]);
    mkdirSync(join(here, 'many'));
    // A round trip for each would take longer than this test may.
    for (let file = 0; file < FILES; file += 1) writeFileSync(join(here, 'many', `${file}`), `${file}`.repeat(20));
    writeFileSync(join(here, 'many', 'large'), randomBytes(4 * MEBIBYTE));
    for (const words of [
      [join(here, 'many'), remote('many')],
      [remote('many'), join(here, 'back')],
    ]) {
      const { status, stdout, stderr } = await cp('-r', '--profile', 'slow', ...words);
      expect([status, stderr]).toEqual([0, '']);
      expect(stdout).toContain(`${FILES + 1} files`);
    }
    for (const name of ['0', `${FILES - 1}`, 'large']) {
      expect(readFileSync(join(here, 'back', name)).equals(readFileSync(join(here, 'many', name)))).toBe(true);
    }
  } finally {
    clearInterval(stalls);
    way.release();
    await way.close();
  }
});

it.each(
  firstOf(1, [
    [80, 24],
    [60, 20],
  ] as const),
)('shows files, bytes and rate in one line of a terminal of %i columns', async (cols, rows) => {
  writeFileSync(join(here, 'data'), randomBytes(SIZE));
  const { sandbox } = fleet;
  const words = [process.execPath, ORCH, 'cp', join(here, 'data'), remote(`copy-${cols}`)];
  const pty = new Pty(words, { env: sandbox.env, cwd: sandbox.root, cols, rows });
  await until(
    () => pty.lines.some((line) => /^\S*\s*0 files {2}[\d.]+ [KMG]?i?B {2}[\d.]+ [KMG]?i?B\/s$/.test(line)),
    'live',
  );
  const line = pty.lines.findIndex((text) => text.includes('0 files'));
  // The line is drawn in one place, and fits.
  expect(pty.lines.filter((text) => text !== '')).toHaveLength(1);
  expect((pty.lines[line] ?? '').length).toBeLessThan(cols);
  expect(await pty.ended()).toBe(0);
  const text = pty.lines.join('');
  expect(text).toMatch(new RegExp(`${NODE_NAME}: 1 file, 96\\.0 MiB, SHA-256\\s+[0-9a-f]{64}`));
  // Nothing of the live line is left.
  expect(text).not.toContain('/s');
});
