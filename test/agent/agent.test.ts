/** The agent as a whole, against a listener that speaks the real link. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AgentListener } from '../../daemon/fleet/agent-listener.js';
import { type AgentOptions, runAgent } from '../../src/agent/agent.js';
import { readAgentState } from '../../src/agent/agent-status.js';
import { Engine } from '../../src/agent/engine/engine.js';
import { PIN_FILE, repin } from '../../src/agent/first-contact.js';
import { Journal } from '../../src/agent/journal.js';
import { nodeIdOf } from '../../src/identity/key-object.js';
import { Fault, isFault } from '../../src/kernel/fault.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import { type LogFields, type Logger, silentLogger } from '../../src/kernel/logger.js';
import { formatEnrolmentToken } from '../../src/wire/enrolment-token.js';
import {
  clock,
  content,
  file,
  head,
  host,
  place,
  runId,
  ScriptedOrchestrator,
  script,
  whole,
} from '../support/agent.js';
import { newIdentity } from '../support/identity.js';
import { until } from '../support/until.js';

const identity = newIdentity();

interface Place {
  readonly port: number;
  /** Connections in the order in which they came. */
  readonly connections: ScriptedOrchestrator[];
  readonly keys: PublicKeyHex[];
  connection(number: number): Promise<ScriptedOrchestrator>;
}

async function listen(privateKey = identity.privateKey, port = 0): Promise<Place & { stop(): Promise<void> }> {
  const connections: ScriptedOrchestrator[] = [];
  const keys: PublicKeyHex[] = [];
  let wake: () => void = () => undefined;
  const listener = new AgentListener({
    host: '127.0.0.1',
    port,
    privateKey,
    logger: silentLogger,
    onConnection: ({ socket, publicKey }) => {
      connections.push(new ScriptedOrchestrator(socket));
      keys.push(publicKey);
      wake();
    },
  });
  await listener.start();
  onTestFinished(() => listener.stop());
  return {
    port: listener.address().port,
    connections,
    keys,
    stop: () => listener.stop(),
    async connection(number) {
      for (;;) {
        const found = connections[number - 1];
        if (found) return found;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

interface Running {
  readonly ended: Promise<unknown>;
  readonly dataDir: string;
  readonly log: { readonly level: string; readonly message: string; readonly fields: LogFields | undefined }[];
  stop(): Promise<unknown>;
}

function start(port: number, more: Partial<AgentOptions> = {}): Running {
  const dataDir = more.dataDir ?? place();
  const log: Running['log'] = [];
  const at = (level: string) => (message: string, fields?: LogFields) => void log.push({ level, message, fields });
  const logger: Logger = {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: () => logger,
  };
  const stopper = new AbortController();
  const ended = runAgent(
    {
      target: { host: '127.0.0.1', port },
      orchestratorKey: undefined,
      trustOnFirstUse: false,
      endsUntrusted: true,
      ask: null,
      logger,
      clock,
      metrics: () => ({ enabled: true, interval: 30 }),
      permissions: () => ({
        permits_terminal: 'no',
        permits_forward: 'no',
        permits_ssh_proxy: 'no',
        permits_copy: 'no',
      }),
      factsDirectory: () => '/nonexistent/facts.d',
      // No waiting between attempts.
      random: () => 0,
      createEngine: (directory) =>
        new Engine({ journal: new Journal(directory), createHost: host, clock, logger: silentLogger }),
      ...more,
      dataDir,
    },
    stopper.signal,
  ).catch((error: unknown) => error);
  const stop = () => {
    stopper.abort();
    return ended;
  };
  onTestFinished(async () => void (await stop()));
  return { ended, dataDir, log, stop };
}

const faultOf = async (ended: Promise<unknown>): Promise<Fault> => {
  const error = await ended;
  if (!isFault(error)) throw new Error(`no fault, but ${String(error)}`);
  return error;
};

const pinOf = (dataDir: string): string => readFileSync(join(dataDir, PIN_FILE), 'utf8').trim();

describe('first contact', () => {
  it('pins the key that it was given, and connects', async () => {
    const there = await listen();
    const agent = start(there.port, { orchestratorKey: identity.publicKey });
    await (await there.connection(1)).approve();
    expect(pinOf(agent.dataDir)).toBe(identity.publicKey);
    expect(statSync(join(agent.dataDir, PIN_FILE)).mode & 0o777).toBe(0o600);
    expect(statSync(agent.dataDir).mode & 0o777).toBe(0o700);
    expect(await agent.stop()).toBeUndefined();
    const later = start(there.port, { dataDir: agent.dataDir });
    await (await there.connection(2)).approve();
    expect(there.keys[1]).toBe(there.keys[0]);
    await later.stop();
  });

  it('asks a person, shows the key as orch serve does, and connects when the answer is yes', async () => {
    const there = await listen();
    const questions: string[] = [];
    const agent = start(there.port, {
      ask: async (question) => {
        questions.push(question);
        return true;
      },
    });
    await (await there.connection(1)).approve();
    expect(questions).toHaveLength(1);
    expect(questions[0]).toContain(identity.publicKey);
    expect(pinOf(agent.dataDir)).toBe(identity.publicKey);
  });

  it('pins nothing when the answer is no', async () => {
    const there = await listen();
    const agent = start(there.port, { ask: async () => false });
    expect(await faultOf(agent.ended)).toMatchObject({ code: 'pin_missing', hint: expect.any(String) });
    expect(existsSync(join(agent.dataDir, PIN_FILE))).toBe(false);
    expect(there.connections).toHaveLength(0);
  });

  it('trusts the first orchestrator only when that was allowed', async () => {
    const there = await listen();
    const agent = start(there.port, { trustOnFirstUse: true });
    await (await there.connection(1)).approve();
    expect(pinOf(agent.dataDir)).toBe(identity.publicKey);
    const careful = start(there.port);
    const fault = await faultOf(careful.ended);
    expect(fault).toMatchObject({ code: 'pin_missing' });
    expect(fault.hint).toContain(`--orchestrator-key ${identity.publicKey}`);
    expect(existsSync(join(careful.dataDir, PIN_FILE))).toBe(false);
  });

  it('pins no key that no orchestrator has proved: a mistyped one is not in the way of the right one', async () => {
    const there = await listen();
    const mistyped = newIdentity().publicKey;
    const agent = start(there.port, { orchestratorKey: mistyped, trustOnFirstUse: true, ask: async () => true });
    const fault = await faultOf(agent.ended);
    expect(fault).toMatchObject({ code: 'pin_mismatch', data: { given: mistyped, shown: identity.publicKey } });
    expect(fault.hint).toContain('nothing was pinned');
    expect(there.connections).toHaveLength(0);
    expect(existsSync(join(agent.dataDir, PIN_FILE))).toBe(false);
    const { dataDir } = agent;
    expect(readAgentState(dataDir)).toMatchObject({
      orchestrator_key: null,
      last_error: fault.message,
      hint: fault.hint,
    });
    start(there.port, { dataDir, orchestratorKey: identity.publicKey });
    await (await there.connection(1)).approve();
    expect(pinOf(dataDir)).toBe(identity.publicKey);
  });

  it('refuses a given key that contradicts the pinned one, until that is forgotten', async () => {
    const other = newIdentity();
    const first = await listen();
    const agent = start(first.port, { orchestratorKey: identity.publicKey });
    await (await first.connection(1)).approve();
    await agent.stop();
    const { dataDir } = agent;
    const there = await listen(other.privateKey);
    const again = start(there.port, { dataDir, orchestratorKey: other.publicKey });
    const fault = await faultOf(again.ended);
    expect(fault).toMatchObject({ code: 'pin_mismatch', data: { pinned: identity.publicKey, given: other.publicKey } });
    expect(fault.hint).toContain('orch agent repin');
    repin(dataDir);
    start(there.port, { dataDir, orchestratorKey: other.publicKey });
    await (await there.connection(1)).approve();
    expect(pinOf(dataDir)).toBe(other.publicKey);
  });

  it('goes on with the pinned key under a service manager, whatever key it is given', async () => {
    const there = await listen();
    const agent = start(there.port, { orchestratorKey: identity.publicKey });
    await (await there.connection(1)).approve();
    await agent.stop();
    const given = { dataDir: agent.dataDir, orchestratorKey: newIdentity().publicKey, endsUntrusted: false };
    const later = start(there.port, given);
    await (await there.connection(2)).approve();
    expect(later.log.find(({ level }) => level === 'error')).toMatchObject({
      message: 'the given key of the orchestrator is not used, the pinned one counts',
      fields: { hint: expect.stringContaining('orch agent repin') },
    });
    expect(pinOf(agent.dataDir)).toBe(identity.publicKey);
  });

  it.each([
    ['in the foreground, once the right one has answered', true],
    ['under a service manager', false],
  ])('outlives another key at the address of its orchestrator: %s', async (_, endsUntrusted) => {
    const there = await listen();
    const agent = start(there.port, { orchestratorKey: identity.publicKey, endsUntrusted });
    await (await there.connection(1)).approve();
    await there.stop();
    const impostor = await listen(newIdentity().privateKey, there.port);
    const state = () => readAgentState(agent.dataDir);
    await until(() => state().link === 'untrusted', 'the key is not trusted');
    expect(state()).toMatchObject({
      link: 'untrusted',
      orchestrator_key: identity.publicKey,
      last_error: expect.stringContaining(`but ${identity.publicKey} is pinned`),
      hint: expect.stringContaining('orch agent repin'),
    });
    expect(impostor.connections).toHaveLength(0);
    const said = agent.log.find(({ message }) => message.includes('is not trusted'));
    expect(said).toMatchObject({ level: 'error', fields: { hint: expect.stringContaining('orch agent repin') } });
    await impostor.stop();
    const back = await listen(identity.privateKey, there.port);
    await (await back.connection(1)).approve();
    expect(state()).toMatchObject({ link: 'connected', last_error: null, hint: null });
  });

  it('waits for the right key under a service manager, also when none has ever answered', async () => {
    const impostor = await listen(newIdentity().privateKey);
    const agent = start(impostor.port, { orchestratorKey: identity.publicKey, endsUntrusted: false });
    await until(() => agent.log.some(({ level }) => level === 'error'), 'the agent has said so');
    expect(agent.log.find(({ level }) => level === 'error')?.message).toContain('nothing is done for it');
    await impostor.stop();
    const there = await listen(identity.privateKey, impostor.port);
    await (await there.connection(1)).approve();
    expect(pinOf(agent.dataDir)).toBe(identity.publicKey);
  });

  it('says in log and status what may be wrong with an address that does not exist', async () => {
    const target = { host: 'no-such-host.invalid', port: 4747 };
    const agent = start(0, { target, orchestratorKey: identity.publicKey });
    const isSaid = () => agent.log.some(({ level }) => level === 'warn');
    await until(isSaid, 'the agent has said so');
    expect(agent.log.find(({ level }) => level === 'warn')).toMatchObject({
      message: 'cannot connect to the orchestrator, trying again',
      fields: { hint: expect.stringContaining('check the spelling') },
    });
    expect(readAgentState(agent.dataDir)).toMatchObject({
      last_error: expect.stringContaining('the host name is not known'),
      hint: expect.stringContaining('check the spelling'),
    });
  });

  it('is not forgotten in a directory where no agent is', () => {
    const elsewhere = place();
    expect(() => repin(elsewhere)).toThrow(`there is no agent in ${elsewhere}`);
  });
});

describe('an enrolment token', () => {
  const SECRET = Buffer.alloc(32, 0x5a);
  const tokenOf = (orchestratorKey: PublicKeyHex) => ({
    orchestratorKey,
    file: null,
    text: formatEnrolmentToken({ id: '01JQ2Z6T0V5X8Y4M3N7P9R1S2T', secret: SECRET, orchestratorKey }),
  });
  const token = tokenOf(identity.publicKey);
  const given = { orchestratorKey: identity.publicKey, enrolmentToken: token };

  /** The agent's hello on that connection. */
  const shown = async (orchestrator: ScriptedOrchestrator) => (await orchestrator.next('hello')).enrolment_token;

  it('is shown until there is an answer to it, and kept nowhere', async () => {
    const there = await listen();
    const agent = start(there.port, given);
    const first = await there.connection(1);
    expect(await shown(first)).toBe(token.text);
    first.socket.terminate();
    const second = await there.connection(2);
    expect(await shown(second)).toBe(token.text);
    second.say({ type: 'token_verdict', verdict: 'accepted' });
    second.socket.close(1001);
    const third = await there.connection(3);
    expect(await shown(third)).toBeUndefined();
    await third.approve();
    await agent.stop();
    const files = readdirSync(agent.dataDir, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    const kept = files.map((one) => readFileSync(join(one.parentPath, one.name), 'latin1')).join('');
    expect(kept).toContain(identity.publicKey);
    for (const place of [kept, JSON.stringify(agent.log)]) {
      expect(place).not.toContain(SECRET.toString('base64url'));
    }
    expect(agent.log.map(({ message }) => message)).toContain('the enrolment token was accepted');
  });

  it('that is refused is reported once, also by the status, and the agent waits like any other', async () => {
    const there = await listen();
    const agent = start(there.port, given);
    const first = await there.connection(1);
    await first.next('hello');
    first.say({ type: 'token_verdict', verdict: 'expired' });
    first.socket.close(4429, 'too many agents of this address wait for approval');
    const second = await there.connection(2);
    expect(await shown(second)).toBeUndefined();
    second.status('pending');
    const told = 'the enrolment token was not accepted: it has expired';
    const state = () => readAgentState(agent.dataDir);
    await until(() => state().link === 'pending', 'the agent waits for approval');
    expect(state()).toMatchObject({ link: 'pending', last_error: told });
    const errors = agent.log.filter(({ level }) => level === 'error');
    expect(errors).toMatchObject([{ message: told, fields: { hint: expect.stringContaining('orch enroll create') } }]);
    second.status('approved', 'web-01');
    await second.next('inventory');
    expect(state()).toMatchObject({ link: 'connected', last_error: null });
  });

  it('is shown to no other orchestrator than its own', async () => {
    const evil = newIdentity();
    const there = await listen(evil.privateKey);
    const careful = start(there.port, given);
    expect((await faultOf(careful.ended)).code).toBe('pin_mismatch');
    expect(there.connections).toHaveLength(0);
    start(there.port, { orchestratorKey: evil.publicKey, enrolmentToken: token });
    expect(await shown(await there.connection(1))).toBeUndefined();
  });

  it('does not stand above the key that is pinned', async () => {
    const there = await listen();
    const agent = start(there.port, { orchestratorKey: identity.publicKey });
    await (await there.connection(1)).approve();
    await agent.stop();
    const other = tokenOf(newIdentity().publicKey);
    const { dataDir } = agent;
    const later = start(there.port, { dataDir, orchestratorKey: other.orchestratorKey, enrolmentToken: other });
    expect((await faultOf(later.ended)).code).toBe('pin_mismatch');
    expect(pinOf(dataDir)).toBe(identity.publicKey);
    expect(there.connections).toHaveLength(1);
  });
});

describe('the agent', () => {
  it('tells how it is doing while it waits, works, is alone and has stopped', async () => {
    const there = await listen();
    const agent = start(there.port, { orchestratorKey: identity.publicKey, hostname: 'given-name' });
    const orchestrator = await there.connection(1);
    expect((await orchestrator.next('hello')).hostname).toBe('given-name');
    const state = () => readAgentState(agent.dataDir);
    const linked = (link: string) => until(() => state().link === link, `the link is ${link}`);
    orchestrator.status('pending');
    await linked('pending');
    expect(state()).toMatchObject({
      node_id: nodeIdOf(there.keys[0] as PublicKeyHex),
      orchestrator_key: identity.publicKey,
      orchestrator: `127.0.0.1:${there.port}`,
      name: null,
      pid: process.pid,
      last_error: null,
      journal_unacknowledged: 0,
    });
    orchestrator.status('approved', 'web-01');
    await linked('connected');
    expect(state()).toMatchObject({ name: 'web-01' });
    expect(Date.parse(state().since)).toBeLessThanOrEqual(Date.now());
    orchestrator.run(head(1), content([]));
    await orchestrator.next('run_finished');
    expect(state()).toMatchObject({
      journal_unacknowledged: 1,
      journal_running: 0,
      journal_owed: 0,
      journal_error: null,
    });
    await there.stop();
    await linked('disconnected');
    expect(state().last_error).toMatch(/the orchestrator stops|nothing listens there|closed/);
    await agent.stop();
    expect(state()).toMatchObject({ link: 'stopped', pid: null, name: 'web-01' });
    expect(statSync(join(agent.dataDir, 'state.json')).mode & 0o777).toBe(0o600);
    expect(readdirSync(agent.dataDir).sort()).toEqual([
      'identity.key',
      'journal',
      'journal.made',
      PIN_FILE,
      'state.json',
    ]);
  });

  it('comes back after every cut, with what it did in the meantime', async () => {
    const there = await listen();
    const root = place();
    start(there.port, { orchestratorKey: identity.publicKey });
    const first = await there.connection(1);
    await first.approve();
    first.run(head(1), content([file(join(root, 'f'))]));
    await first.next('run_accepted');
    first.socket.terminate();
    const second = await there.connection(2);
    expect((await second.approve()).runs).toMatchObject([{ run_id: runId(1) }]);
    second.say({ type: 'run_resume', run_id: runId(1), from: 0 });
    expect(await second.next('run_finished')).toMatchObject({ end: 'succeeded', results: 1 });
    second.say({ type: 'run_ack', run_id: runId(1) });
    second.socket.close(1001, 'the orchestrator stops');
    const third = await there.connection(3);
    expect((await third.approve()).runs).toEqual([]);
  });

  it('waits for an orchestrator that is not there yet', async () => {
    const probe = await listen();
    await probe.stop();
    const agent = start(probe.port, { orchestratorKey: identity.publicKey });
    await until(() => agent.log.length >= 3, 'the agent has tried again');
    expect(agent.log.map(({ message }) => message)).toContain('cannot connect to the orchestrator, trying again');
    const there = await listen(identity.privateKey, probe.port);
    await (await there.connection(1)).approve();
  });

  it('says loudly that it was rejected, and does not come back at once', async () => {
    const there = await listen();
    const agent = start(there.port, { orchestratorKey: identity.publicKey });
    const orchestrator = await there.connection(1);
    await orchestrator.next('hello');
    orchestrator.socket.close(4403, 'this agent was rejected by an operator');
    await orchestrator.closed;
    await until(() => readAgentState(agent.dataDir).link === 'rejected', 'the agent knows that it was rejected');
    expect(readAgentState(agent.dataDir)).toMatchObject({
      link: 'rejected',
      last_error: expect.stringContaining('rejected'),
    });
    expect(agent.log.find(({ level }) => level === 'error')?.message).toBe('an operator rejected this agent');
    // A pause that proves that nothing happens: an agent that dialled at once would have done it by now.
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(there.connections).toHaveLength(1);
    expect(await agent.stop()).toBeUndefined();
  });

  it('ends a long pause as soon as an apply has to be confirmed', async () => {
    const there = await listen();
    const root = place();
    const agent = start(there.port, {
      orchestratorKey: identity.publicKey,
      createEngine: (directory) =>
        new Engine({ journal: new Journal(directory), createHost: host, clock, logger: silentLogger, settleMs: 0 }),
    });
    const orchestrator = await there.connection(1);
    await orchestrator.approve();
    const wait = script('wait', { apply: `until [ -e '${root}/go' ]; do sleep 0.05; done` });
    orchestrator.run(head(1, { confirm_secs: 60 }), content([wait]));
    await orchestrator.next('run_accepted');
    // After another version of the protocol the agent pauses for a minute.
    orchestrator.socket.close(4426, 'another version');
    await orchestrator.closed;
    const said = () =>
      agent.log.some(({ fields }) => fields?.hint === 'install the same version of orch on both sides');
    await until(said, 'the agent pauses');
    writeFileSync(join(root, 'go'), '');
    await (await there.connection(2)).approve();
  });

  it('stops the apply under way when it is rejected', async () => {
    const there = await listen();
    const root = place();
    const agent = start(there.port, { orchestratorKey: identity.publicKey });
    const orchestrator = await there.connection(1);
    await orchestrator.approve();
    const chain = Array.from({ length: 300 }, (_, index) =>
      file(join(root, `f${index}`), {}, { after: index === 0 ? [] : [index - 1] }),
    );
    orchestrator.run(head(1), content(chain));
    await orchestrator.next('run_results');
    orchestrator.socket.close(4403, 'this agent was rejected by an operator');
    await orchestrator.closed;
    await until(() => readAgentState(agent.dataDir).link === 'rejected', 'the agent knows that it was rejected');
    expect(await agent.stop()).toBeUndefined();
    expect(readdirSync(root).length).toBeLessThan(300);
    start(there.port, { orchestratorKey: identity.publicKey, dataDir: agent.dataDir });
    const again = await there.connection(2);
    const { runs } = await again.approve();
    expect(runs).toMatchObject([{ run_id: runId(1), state: 'finished' }]);
    again.say({ type: 'run_resume', run_id: runId(1), from: 0 });
    expect(await again.next('run_finished')).toMatchObject({ end: 'cancelled' });
  });

  it('finishes what it changes before it stops, and tells it the next time', async () => {
    const there = await listen();
    const root = place();
    const agent = start(there.port, { orchestratorKey: identity.publicKey });
    const orchestrator = await there.connection(1);
    await orchestrator.approve();
    const chain = Array.from({ length: 300 }, (_, index) =>
      file(join(root, `f${index}`), {}, { after: index === 0 ? [] : [index - 1] }),
    );
    orchestrator.run(head(1), content(chain), 200_000);
    await orchestrator.next('run_results');
    expect(await agent.stop()).toBeUndefined();
    const done = readdirSync(root);
    expect(done.every((name) => /^f\d+$/.test(name))).toBe(true);
    start(there.port, { dataDir: agent.dataDir });
    const next = await there.connection(2);
    expect((await next.approve()).runs).toEqual([{ run_id: runId(1), state: 'finished', results: 300 }]);
    next.say({ type: 'run_resume', run_id: runId(1), from: 0 });
    expect(await next.next('run_finished')).toMatchObject({ end: 'interrupted' });
    const changed = next.heard.flatMap((one) => (one.type === 'run_results' ? whole(one.items) : []));
    expect(changed.filter(({ result }) => result.status === 'changed')).toHaveLength(done.length);
  });
});

describe('a data directory', () => {
  it('is used by one agent at a time', async () => {
    const there = await listen();
    const agent = start(there.port, { orchestratorKey: identity.publicKey });
    await (await there.connection(1)).next('hello');
    const fault = await faultOf(start(there.port, { dataDir: agent.dataDir }).ended);
    expect(fault).toMatchObject({ code: 'agent_running', data: { pid: process.pid }, hint: expect.any(String) });
    expect(fault.message).toContain(`process ${process.pid}`);
    expect(() => repin(agent.dataDir)).toThrow(/runs as process/);
    expect(pinOf(agent.dataDir)).toBe(identity.publicKey);
  });

  it('with a damaged journal is served all the same, and the loss is reported until an orchestrator has it', async () => {
    const dataDir = place();
    writeFileSync(join(dataDir, 'journal'), 'not a journal at all\n'.repeat(20));
    const there = await listen();
    const agent = start(there.port, { dataDir, orchestratorKey: identity.publicKey });
    const connection = await there.connection(1);
    expect((await connection.next('hello')).journal_loss).toContain('does not begin like a journal');
    expect(readAgentState(dataDir).journal_error).toContain('journal.damaged-1');
    await connection.approve();
    await connection.next('inventory');
    expect(existsSync(join(dataDir, 'journal.loss'))).toBe(false);
    await agent.stop();
    start(there.port, { dataDir, orchestratorKey: identity.publicKey });
    expect(await (await there.connection(2)).next('hello')).not.toHaveProperty('journal_loss');
  });

  it('that no agent has used says so', () => {
    expect(() => readAgentState(place())).toThrow(/no agent has run/);
    const broken = place();
    mkdirSync(join(broken, 'state.json'));
    expect(() => readAgentState(broken)).toThrow(Fault);
  });
});
