import { describe, expect, it } from 'vitest';
import { Fault } from '../../src/kernel/fault.js';
import { PROTOCOL_VERSION } from '../../src/kernel/version.js';
import { Fleet, HELLO, type TestAgent, until } from '../support/fleet.js';
import { newIdentity } from '../support/identity.js';

const RUN = '01J8ZQ4Y7M0000000000000000';
const accepted = { type: 'run_accepted', run_id: RUN };

/** The one violation in the log, and that it names the agent and where it came from. */
async function violation(fleet: Fleet, agent: TestAgent): Promise<string> {
  const events = await fleet.events('agent.protocol_violation');
  expect(events).toHaveLength(1);
  expect(events[0]).toMatchObject({
    target: { id: agent.nodeId, type: 'agent' },
    metadata: { address: '127.0.0.1', reason: expect.any(String) },
  });
  return String(events[0]?.metadata.reason);
}

describe('a connection', () => {
  it('that says nothing is closed in time', async () => {
    const fleet = await Fleet.start({ timeouts: { hello: 100 } });
    const agent = await fleet.dial();
    expect(await agent.closed).toEqual({ code: 1008, reason: 'no hello in time' });
    expect(await fleet.story()).toEqual([]);
  });

  it('that has said hello has no deadline', async () => {
    const fleet = await Fleet.start({ timeouts: { hello: 300 } });
    const agent = await fleet.join();
    // Its deadline begins later.
    await (await fleet.dial()).closed;
    expect(agent.socket.readyState).toBe(agent.socket.OPEN);
  });

  it('of a pending agent is answered so, with the version that both speak', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.join();
    expect(agent.received).toEqual([
      { type: 'status', status: 'pending', protocol_version: PROTOCOL_VERSION, name: null },
    ]);
  });

  it('of an approved agent has its messages handed on in order, one at a time', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    let running = 0;
    fleet.traffic.onReceive = async () => {
      running += 1;
      expect(running).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 1));
      running -= 1;
    };
    const ids = Array.from({ length: 100 }, (_, index) => `01J8ZQ4Y7M0000000000000${String(index).padStart(3, '0')}`);
    for (const run_id of ids) agent.send({ type: 'run_accepted', run_id });
    await until(() => fleet.traffic.messages.length === 100);
    expect(fleet.traffic.messages).toEqual(ids.map((run_id) => ({ type: 'run_accepted', run_id })));
  });

  it('of a newer release may send messages and members that this one does not know', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    agent.send({ type: 'weather', degrees: 21 });
    agent.send({ ...accepted, priority: { deep: ['new'] } });
    await until(() => fleet.traffic.messages.length === 1);
    expect(fleet.traffic.messages).toEqual([accepted]);
    expect(agent.socket.readyState).toBe(agent.socket.OPEN);
    expect(await fleet.events('agent.protocol_violation')).toEqual([]);
  });

  it('has frames of unknown type dropped before they are parsed', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    agent.send('{"type":"weather","degrees":}');
    agent.send(accepted);
    await until(() => fleet.traffic.messages.length === 1);
    expect(await fleet.events('agent.protocol_violation')).toEqual([]);
  });

  it.each<[string, object]>([
    ['messages', { type: 'weather', text: 'x'.repeat(600 * 1024) }],
    ['members', { ...accepted, text: 'x'.repeat(600 * 1024) }],
  ])('is read more slowly after a flood of unknown %s', async (_, flood) => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    const last = { type: 'run_accepted', run_id: '01J8ZQ4Y7M0000000000000999' };
    const began = performance.now();
    agent.send(flood);
    agent.send(flood);
    // Larger than what the orchestrator has read from the socket when it stops reading.
    agent.send({ ...flood, text: 'x'.repeat(200 * 1024) });
    agent.send(last);
    await until(() =>
      fleet.traffic.messages.some((message) => message.type === 'run_accepted' && message.run_id === last.run_id),
    );
    // The first two exceed the budget by 176 KiB, which is 1.3 seconds.
    expect(performance.now() - began).toBeGreaterThan(1_000);
    expect(agent.socket.readyState).toBe(agent.socket.OPEN);
    expect(await fleet.events('agent.protocol_violation')).toEqual([]);
  });

  it('may send large frames once the agent is approved', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    const runs = Array.from({ length: 8_000 }, () => ({ run_id: RUN, state: 'running', results: 0 }));
    agent.send({ type: 'inventory', runs });
    await until(() => fleet.traffic.messages.length === 1);
    expect(agent.socket.readyState).toBe(agent.socket.OPEN);
  });
});

const manyMembers = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, 1]));

describe('a violation before the approval', () => {
  const nested = `{"type":"hello","attributes":${'['.repeat(4_000)}${']'.repeat(4_000)}}`;
  const cases: readonly [string, readonly unknown[], RegExp][] = [
    ['a message before hello', [accepted], /run_accepted out of turn/],
    ['attributes before hello', [{ type: 'attributes', attributes: {} }], /attributes out of turn/],
    ['a second hello right behind the first', [HELLO, HELLO], /hello out of turn/],
    ['a message right behind hello', [HELLO, accepted], /run_accepted before it was approved/],
    ['a binary frame', [Buffer.from(JSON.stringify(HELLO))], /a binary frame/],
    ['what is not JSON', ['{"type":"hello"'], /a frame that is not JSON/],
    ['nothing', [''], /a frame that is not JSON/],
    ['JSON that is no message', ['[]'], /unknown type undefined/],
    ['an unknown type', [{ type: 'shell', command: 'id' }], /unknown type "shell"/],
    ['a type of the other direction', [{ type: 'run_cancel', run_id: RUN }], /unknown type "run_cancel"/],
    ['a type that every object has', [{ type: '__proto__' }], /unknown type "__proto__"/],
    ['a type that is no text', [{ type: ['hello'] }], /unknown type \["hello"\]/],
    ['a missing field', [{ ...HELLO, hostname: undefined }], /malformed hello message: \/hostname/],
    [
      'an attribute of another name',
      [{ ...HELLO, attributes: { 'A B': 'x' } }],
      /malformed hello message: \/attributes/,
    ],
    ['an attribute that is no text', [{ ...HELLO, attributes: { cpus: 4 } }], /malformed hello message: \/attributes/],
    ['a deep frame', [nested], /more than 32 levels/],
    ['very many members', [{ ...HELLO, ...manyMembers(1_000) }], /more than 256 members in one object/],
    ['a frame over the limit', [{ ...HELLO, hostname: 'x'.repeat(16 * 1024) }], /more than 16384 bytes/],
    ['one over the limit in bytes only', [{ ...HELLO, hostname: 'ä'.repeat(9_000) }], /more than 16384 bytes/],
  ];

  it.each(cases)('%s closes the connection and is audited', async (_, messages, reason) => {
    const fleet = await Fleet.start();
    const agent = await fleet.dial();
    for (const message of messages) agent.send(message);
    const closed = await agent.closed;
    expect(closed).toEqual({ code: 1008, reason: expect.stringMatching(reason) });
    expect(await violation(fleet, agent)).toMatch(reason);
    expect(fleet.traffic.messages).toEqual([]);
    expect(fleet.errors).toEqual([]);
  });

  it.each<[string, unknown, RegExp]>([
    ['a message', accepted, /run_accepted before it was approved/],
    ['attributes', { type: 'attributes', attributes: {} }, /attributes before it was approved/],
    ['a second hello', HELLO, /hello out of turn/],
    ['a binary frame', Buffer.alloc(10), /a binary frame/],
    ['20 KiB', 'x'.repeat(20 * 1024), /more than 16384 bytes/],
  ])('%s while it waits closes the connection and is audited', async (_, message, reason) => {
    const fleet = await Fleet.start();
    const agent = await fleet.join();
    agent.send(message);
    expect(await agent.closed).toEqual({ code: 1008, reason: expect.stringMatching(reason) });
    expect(await violation(fleet, agent)).toMatch(reason);
    expect((await fleet.agents.get(agent.nodeId)).connected).toBe(false);
  });

  it('is noticed before a large frame is complete', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.join();
    agent.send('x'.repeat(900 * 1024));
    await agent.closed;
    expect(await violation(fleet, agent)).toMatch(/more than 16384 bytes/);
  });

  it('ends nothing but the connection when its reason is long in bytes', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.dial();
    agent.send({ type: '\u{1f525}\u2028語'.repeat(100) });
    const { code, reason } = await agent.closed;
    expect(code).toBe(1008);
    expect(Buffer.byteLength(reason)).toBeLessThanOrEqual(123);
    expect(reason).toMatch(/^the peer sent a message of unknown type "\u{1f525}/u);
    expect(reason).not.toContain('\ufffd');
    expect(await violation(fleet, agent)).toMatch(/unknown type/);
    expect((await fleet.join()).received).toHaveLength(1);
  });

  it('with halves of characters is audited all the same', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.dial();
    agent.send(`{"type": ${'"'}${'\\ud83d'.repeat(60)}"}`);
    expect((await agent.closed).code).toBe(1008);
    await violation(fleet, agent);
  });

  it('is audited once a minute for one address, whatever the key', async () => {
    const fleet = await Fleet.start();
    const breakIt = async () => {
      const agent = await fleet.dial();
      agent.send('?');
      await agent.closed;
    };
    for (let count = 0; count < 3; count += 1) await breakIt();
    expect(await fleet.events('agent.protocol_violation')).toHaveLength(1);
    fleet.clock.advance(60_000);
    await breakIt();
    expect(await fleet.events('agent.protocol_violation')).toHaveLength(2);
  });
});

describe('a violation of an approved agent', () => {
  it.each<[string, unknown, RegExp]>([
    ['hello again', HELLO, /hello out of turn/],
    ['a run id with a path', { type: 'run_accepted', run_id: '../../etc/passwd' }, /malformed run_accepted/],
    ['a binary frame', Buffer.alloc(10), /a binary frame/],
  ])('%s closes the connection and is audited under its name', async (_, message, reason) => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    agent.send(message);
    expect(await agent.closed).toEqual({ code: 1008, reason: expect.stringMatching(reason) });
    expect(await violation(fleet, agent)).toMatch(reason);
    const [event] = await fleet.events('agent.protocol_violation');
    expect(event).toMatchObject({ target: { name: 'web' }, summary: expect.stringContaining('Agent web was cut off') });
    expect(fleet.traffic.log).toContain(`disconnected ${agent.nodeId}`);
  });

  it.each<[string, (agent: TestAgent) => void, RegExp]>([
    [
      'members that no message has, without a look at each of them',
      (agent) => agent.send({ type: 'attributes', attributes: manyMembers(80_000) }),
      /too much in it: more than 256 members in one object/,
    ],
    [
      'very many small objects',
      (agent) => agent.send({ type: 'terminals', sessions: Array.from({ length: 101_000 }, () => ({ a: 1 })) }),
      /too much in it: more than 100000 members/,
    ],
    ['a frame over 1 MiB', (agent) => agent.send('x'.repeat(1024 * 1024 + 1)), /broken frame: Max payload/],
    ['text that is not UTF-8', (agent) => agent.socket.send(Buffer.from([0xff, 0xfe]), { binary: false }), /UTF-8/],
    [
      'no WebSocket frame',
      ({ socket }) => {
        const { _socket: raw } = socket as unknown as { _socket: { write(bytes: Buffer): void } };
        raw.write(Buffer.from([0xff, 0xff, 0xff, 0xff]));
      },
      /broken frame/,
    ],
  ])('%s is audited too', async (_, send, reason) => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    send(agent);
    await agent.closed;
    expect(await violation(fleet, agent)).toMatch(reason);
    expect(fleet.registry.has(agent.nodeId)).toBe(false);
  });

  it('that only the engine can see closes the connection, and what came behind it is dropped', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    fleet.traffic.onReceive = () => {
      throw new Fault('protocol_violation', 'run 7 is not of this agent');
    };
    for (let count = 0; count < 5; count += 1) agent.send(accepted);
    expect(await agent.closed).toEqual({ code: 1008, reason: 'run 7 is not of this agent' });
    expect(await violation(fleet, agent)).toBe('run 7 is not of this agent');
    expect(fleet.traffic.messages).toHaveLength(1);
  });

  it('does not touch other agents', async () => {
    const fleet = await Fleet.start();
    const [loud, quiet] = [await fleet.approved('loud'), await fleet.approved('quiet')];
    loud.send('?');
    await loud.closed;
    quiet.send(accepted);
    await until(() => fleet.traffic.messages.length === 1);
  });
});

describe('a failure of ours', () => {
  it('closes the connection so that the agent comes back, blames no one, and tells the agent nothing', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    fleet.traffic.onReceive = () => {
      throw new Error('/var/lib/orch/orch.db: secret detail');
    };
    agent.send(accepted);
    expect(await agent.closed).toEqual({ code: 1001, reason: 'the orchestrator could not handle a message' });
    expect(fleet.errors).toEqual([expect.stringContaining('secret detail')]);
    expect(await fleet.story()).not.toContain('agent.protocol_violation');
    expect(await fleet.story()).not.toContain('agent.refused');
  });
});

describe('a version that is not spoken', () => {
  it.each<[string, unknown, RegExp]>([
    ['too new', { ...HELLO, protocol_version: 7 }, /protocol version 7, the orchestrator 2: upgrade the orchestrator/],
    ['too old', { ...HELLO, protocol_version: 0 }, /protocol version 0, the orchestrator 2: upgrade the agent/],
    ['too new, in another form', { type: 'hello', protocol_version: 3, token: 'x' }, /protocol version 3, /],
  ])('%s is refused with the reason on both sides', async (_, hello, reason) => {
    const fleet = await Fleet.start();
    const agent = await fleet.dial();
    agent.send(hello);
    expect(await agent.closed).toEqual({ code: 4426, reason: expect.stringMatching(reason) });
    const events = await fleet.events();
    expect(events.map(({ type }) => type)).toEqual(['agent.refused']);
    expect(events[0]).toMatchObject({
      target: { id: agent.nodeId },
      metadata: { reason: expect.stringMatching(reason), address: '127.0.0.1' },
    });
    await expect(fleet.agents.get(agent.nodeId)).rejects.toMatchObject({ code: 'agent_not_found' });
  });

  it('of a known agent is kept in its record', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await fleet.gone(agent);
    const newer = await fleet.dial(agent.identity);
    newer.send({ ...HELLO, protocol_version: 9 });
    expect((await newer.closed).code).toBe(4426);
    await fleet.quiet();
    const row = await fleet.db.selectFrom('agents').select('protocol_version').executeTakeFirstOrThrow();
    expect(row.protocol_version).toBe(9);
    expect(await fleet.events('agent.refused')).toMatchObject([{ target: { name: 'web' } }]);
    expect((await fleet.join(agent.identity)).received).toMatchObject([{ status: 'approved' }]);
  });
});

describe('the end', () => {
  it('of the orchestrator is announced to everyone, and recorded before it is over', async () => {
    const fleet = await Fleet.start();
    const [known, waiting, silent] = [await fleet.approved('web'), await fleet.join(), await fleet.dial(newIdentity())];
    await fleet.gateway.stop();
    const last = fleet.db.selectFrom('audit_events').select('event_type').orderBy('seq', 'desc').limit(1);
    expect(await last.execute()).toEqual([{ event_type: 'agent.disconnected' }]);
    for (const agent of [known, waiting, silent]) {
      expect(await agent.closed).toEqual({ code: 1001, reason: 'the orchestrator stops' });
    }
    await fleet.gateway.stop();
    expect(fleet.traffic.log).toEqual([`disconnected ${known.nodeId}`]);
  });
});
