/** The agent that waits to be found: which packets it follows, over real sockets of this machine. */
import { type KeyObject, sign } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AgentListener } from '../../daemon/fleet/agent-listener.js';
import { type AgentOptions, runAgent } from '../../src/agent/agent.js';
import { readAgentState, writeAgentState } from '../../src/agent/agent-status.js';
import { DiscoveredAddress } from '../../src/agent/discovery/discovered-address.js';
import { openPacketSocket, PacketVerifier } from '../../src/agent/discovery/discovery-packets.js';
import { Engine } from '../../src/agent/engine/engine.js';
import { PIN_FILE } from '../../src/agent/first-contact.js';
import { Journal } from '../../src/agent/journal.js';
import { isFault } from '../../src/kernel/fault.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import { type LogFields, type Logger, silentLogger } from '../../src/kernel/logger.js';
import { type Announcement, encodePacket, signedBytes } from '../../src/wire/discovery-packet.js';
import { clock, host, needs, place, ScriptedOrchestrator } from '../support/agent.js';
import { ManualClock } from '../support/database.js';
import { type Identity, newIdentity, SMALL_ORDER_KEYS } from '../support/identity.js';
import { until } from '../support/orch.js';

const home = newIdentity();
const stranger = newIdentity();

interface PacketOptions extends Partial<Announcement> {
  /** That signs, when it is not the one of the named key. */
  readonly privateKey?: KeyObject;
}

function packetOf(identity: Identity, { privateKey = identity.privateKey, ...change }: PacketOptions = {}): Buffer {
  const { publicKey } = identity;
  const announcement = { publicKey, host: '127.0.0.1', port: 4747, timestamp: Date.now(), ...change };
  return encodePacket({
    ...announcement,
    signature: sign(null, signedBytes(announcement), privateKey).toString('hex'),
  });
}

describe('a packet is followed', () => {
  const judgeOf = (pinned: PublicKeyHex | null, trustOnFirstUse = false) => {
    const time = new ManualClock();
    const judge = new PacketVerifier({ clock: time, pinned: () => pinned, trustOnFirstUse });
    const follows = (packet: Buffer) => 'follow' in judge.verify(packet);
    return { time, judge, follows };
  };

  it('of the pinned key alone', () => {
    const { follows } = judgeOf(home.publicKey);
    expect(follows(packetOf(stranger))).toBe(false);
    expect(follows(packetOf(home))).toBe(true);
  });

  it('of no key while none is pinned, or of the first with --trust-on-first-use', () => {
    expect(judgeOf(null).follows(packetOf(home))).toBe(false);
    expect(judgeOf(null, true).follows(packetOf(home))).toBe(true);
    expect(judgeOf(home.publicKey, true).follows(packetOf(stranger))).toBe(false);
  });

  it('when its own key has signed it as it is', () => {
    const { follows, judge } = judgeOf(home.publicKey);
    const forged = packetOf(home, { privateKey: stranger.privateKey });
    expect(judge.verify(forged)).toEqual({ refused: 'its signature is wrong', key: home.publicKey });
    const moved = Buffer.from(packetOf(home).toString().replace('127.0.0.1', '127.0.0.2'));
    expect(follows(moved)).toBe(false);
    expect(follows(Buffer.from('hello'))).toBe(false);
    // None of them has used up the pause.
    expect(follows(packetOf(home))).toBe(true);
  });

  it('never of a key that anybody can sign with', () => {
    const { follows } = judgeOf(null, true);
    for (const key of SMALL_ORDER_KEYS) {
      const announcement = { publicKey: key as PublicKeyHex, host: '127.0.0.1', port: 1, timestamp: 1 };
      const signature = `01${'00'.repeat(63)}`;
      expect(follows(encodePacket({ ...announcement, signature }))).toBe(false);
    }
  });

  it('at most every ten seconds, and only when it is newer than the one before', () => {
    const { follows, time } = judgeOf(home.publicKey);
    const first = packetOf(home, { timestamp: 1000 });
    expect(follows(first)).toBe(true);
    time.advance(9_999);
    expect(follows(packetOf(home, { timestamp: 2000 }))).toBe(false);
    time.advance(1);
    expect(follows(first)).toBe(false);
    expect(follows(packetOf(home, { timestamp: 999 }))).toBe(false);
    expect(follows(packetOf(home, { timestamp: 2000 }))).toBe(true);
  });

  it('whatever the clock here says, and again some time after the clock there was set back', () => {
    const { follows, time } = judgeOf(home.publicKey);
    time.setWall(0);
    expect(follows(packetOf(home, { timestamp: Date.UTC(2100, 0) }))).toBe(true);
    time.setWall(Date.UTC(2200, 0));
    time.advance(60_000);
    expect(follows(packetOf(home, { timestamp: Date.UTC(2025, 0) }))).toBe(false);
    time.advance(540_000);
    expect(follows(packetOf(home, { timestamp: Date.UTC(2025, 0) }))).toBe(true);
  });
});

describe('a genuine packet', () => {
  it('is followed in a flood of forgeries from many ports, also of its own address', async () => {
    const verifier = new PacketVerifier({ clock, pinned: () => home.publicKey, trustOnFirstUse: false });
    let port = 0;
    const info = (_message: string, fields?: LogFields) => {
      port = Number(fields?.udp_port ?? port);
    };
    const addressSource = new DiscoveredAddress({
      port: 0,
      verifier,
      last: null,
      clock,
      logger: { ...silentLogger, info },
    });
    await addressSource.start();
    onTestFinished(() => addressSource.stop());
    const senders = Array.from({ length: 6 }, () => createSocket('udp4'));
    onTestFinished(() => senders.forEach((sender) => void sender.close()));
    const forged = packetOf(home, { privateKey: stranger.privateKey });
    const genuine = packetOf(home);
    let isFound = false;
    const found = addressSource.untilKnown(new AbortController().signal).then(() => {
      isFound = true;
    });
    for (let round = 0; !isFound; round += 1) {
      const [honest, ...forgers] = senders;
      for (const forger of forgers) for (let at = 0; at < 10; at += 1) forger.send(forged, port, '127.0.0.1');
      if (round % 100 === 0) honest?.send(genuine, port, '127.0.0.1');
      await new Promise((resolve) => setImmediate(resolve));
    }
    await found;
    expect(addressSource.candidate).toMatchObject({ announcedKey: home.publicKey });
  });
});

describe('the port', () => {
  it('hears IPv4 and IPv6, answers nothing, and refuses a second agent', async (context) => {
    const hasSix = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));
    needs(context, hasSix, 'IPv6');
    const heard: string[] = [];
    const socket = await openPacketSocket(0, (bytes, from) => heard.push(`${bytes} from ${from}`));
    onTestFinished(() => socket.close());
    const second = await openPacketSocket(socket.port, () => undefined).catch((error: unknown) => error);
    expect(isFault(second, 'port_in_use')).toBe(true);
    for (const [type, address] of [
      ['udp4', '127.0.0.1'],
      ['udp4', '127.255.255.255'],
      ['udp6', '::1'],
    ] as const) {
      const sender = createSocket(type);
      onTestFinished(() => void sender.close());
      sender.on('message', () => heard.push('an answer'));
      sender.bind(0);
      await once(sender, 'listening');
      sender.setBroadcast(true);
      const count = heard.length;
      sender.send(`to ${address}`, socket.port, address);
      await until(() => heard.length > count, `what went to ${address} is heard`);
    }
    expect(heard).toEqual([
      'to 127.0.0.1 from 127.0.0.1',
      expect.stringMatching(/^to 127\.255\.255\.255 from /),
      'to ::1 from ::1',
    ]);
  });
});

async function listen(identity: Identity, port = 0) {
  const connections: ScriptedOrchestrator[] = [];
  const listener = new AgentListener({
    host: '127.0.0.1',
    port,
    privateKey: identity.privateKey,
    logger: silentLogger,
    onConnection: ({ socket }) => void connections.push(new ScriptedOrchestrator(socket)),
  });
  await listener.start();
  onTestFinished(() => listener.stop());
  const connection = async (number: number): Promise<ScriptedOrchestrator> => {
    await until(() => connections.length >= number, `connection ${number} has come`);
    return connections[number - 1] as ScriptedOrchestrator;
  };
  return { port: listener.address().port, connections, connection, stop: () => listener.stop() };
}

interface Waiting {
  readonly dataDir: string;
  readonly port: number;
  readonly log: { readonly message: string; readonly fields: LogFields | undefined }[];
  hear(packet: Buffer): void;
  stop(): Promise<unknown>;
  ended: Promise<unknown>;
}

async function wait(more: Partial<AgentOptions> = {}): Promise<Waiting> {
  const dataDir = more.dataDir ?? place();
  const log: Waiting['log'] = [];
  const note = (message: string, fields?: LogFields) => void log.push({ message, fields });
  const logger: Logger = { debug: note, info: note, warn: note, error: note, child: () => logger };
  const stopper = new AbortController();
  const ended = runAgent(
    {
      target: { discoveryPort: 0 },
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
      random: () => 0.5,
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
  await until(() => log.some(({ message }) => message.startsWith('waiting for')), 'the agent waits');
  const port = Number(log.find(({ message }) => message.startsWith('waiting for'))?.fields?.udp_port);
  const sender: Socket = createSocket('udp4');
  onTestFinished(() => void sender.close());
  return { dataDir, port, log, ended, stop, hear: (packet) => void sender.send(packet, port, '127.0.0.1') };
}

const tells = (agent: Waiting, text: string) =>
  until(() => agent.log.some(({ message }) => message.includes(text)), `"${text}" is logged`);

describe('an agent that waits to be found', () => {
  it('connects to where a packet of the given key says, and pays no heed to more while it is connected', async () => {
    const there = await listen(home);
    const elsewhere = await listen(home);
    const agent = await wait({ orchestratorKey: home.publicKey });
    expect(readAgentState(agent.dataDir)).toMatchObject({ link: 'searching', orchestrator: null });
    agent.hear(packetOf(home, { port: there.port }));
    await (await there.connection(1)).approve();
    await tells(agent, 'connected to the orchestrator');
    expect(readAgentState(agent.dataDir)).toMatchObject({
      link: 'connected',
      orchestrator: `127.0.0.1:${there.port}`,
      orchestrator_key: home.publicKey,
    });
    agent.hear(packetOf(home, { port: elsewhere.port, timestamp: Date.now() + 60_000 }));
    (await there.connection(1)).socket.close();
    await there.connection(2);
    expect(elsewhere.connections).toEqual([]);
  });

  it('follows no forgery, and says so once', async () => {
    const there = await listen(home);
    const trap = await listen(stranger);
    const agent = await wait({ orchestratorKey: home.publicKey });
    agent.hear(packetOf(stranger, { port: trap.port }));
    agent.hear(packetOf(home, { port: trap.port, privateKey: stranger.privateKey }));
    agent.hear(Buffer.alloc(2000, 'x'));
    await tells(agent, 'was not followed');
    agent.hear(packetOf(home, { port: there.port }));
    await there.connection(1);
    expect(trap.connections).toEqual([]);
    expect(agent.log.filter(({ message }) => message.includes('was not followed'))).toHaveLength(1);
  });

  it('pins the key of the first packet with --trust-on-first-use, once it is proved', async () => {
    const trap = await listen(stranger);
    const agent = await wait({ trustOnFirstUse: true });
    agent.hear(packetOf(home, { port: trap.port }));
    await tells(agent, 'the peer is not trusted');
    expect(trap.connections).toEqual([]);
    expect(() => readFileSync(join(agent.dataDir, PIN_FILE))).toThrow('ENOENT');
    const there = await listen(home);
    const second = await wait({ trustOnFirstUse: true });
    second.hear(packetOf(home, { port: there.port }));
    await (await there.connection(1)).approve();
    expect(readFileSync(join(second.dataDir, PIN_FILE), 'utf8').trim()).toBe(home.publicKey);
  });

  it('stays silent without a key, and says why', async () => {
    const there = await listen(home);
    const agent = await wait();
    agent.hear(packetOf(home, { port: there.port }));
    await tells(agent, 'was not followed');
    expect(agent.log.find(({ message }) => message.includes('was not followed'))?.fields).toMatchObject({
      reason: 'no key of an orchestrator is known here',
      key: home.publicKey,
    });
    expect(there.connections).toEqual([]);
  });

  it('tries where the orchestrator was, and goes to where a packet says it is now', async () => {
    const dataDir = place();
    mkdirSync(dataDir, { recursive: true });
    const gone = await listen(home);
    const before = await wait({ dataDir: place(), orchestratorKey: home.publicKey });
    writeAgentState(dataDir, { ...readAgentState(before.dataDir), orchestrator: `127.0.0.1:${gone.port}` });
    const agent = await wait({ dataDir, orchestratorKey: home.publicKey });
    const first = await gone.connection(1);
    await gone.stop();
    first.socket.terminate();
    await tells(agent, 'cannot connect');
    const now = await listen(home);
    agent.hear(packetOf(home, { port: now.port }));
    await now.connection(1);
  });

  it('goes back to where the orchestrator was when a packet leads to another key, as an old one may', async () => {
    const trap = await listen(stranger);
    const there = await listen(home);
    const agent = await wait({ orchestratorKey: home.publicKey });
    agent.hear(packetOf(home, { port: there.port }));
    await (await there.connection(1)).approve();
    await agent.stop();
    const again = await wait({ dataDir: agent.dataDir, orchestratorKey: home.publicKey });
    const second = await there.connection(2);
    await there.stop();
    second.socket.terminate();
    await tells(again, 'cannot connect');
    again.hear(packetOf(home, { port: trap.port }));
    await tells(again, 'the peer is not trusted');
    const back = await listen(home, there.port);
    await back.connection(1);
    expect(trap.connections).toEqual([]);
  });

  it('dials a place where another key answers again, without trust in it, and listens as well', async () => {
    const trap = await listen(stranger);
    const before = await wait({ orchestratorKey: home.publicKey });
    const dataDir = place();
    writeAgentState(dataDir, { ...readAgentState(before.dataDir), orchestrator: `127.0.0.1:${trap.port}` });
    const agent = await wait({ dataDir, orchestratorKey: home.publicKey });
    await tells(agent, 'the peer is not trusted');
    const there = await listen(home);
    agent.hear(packetOf(home, { port: there.port }));
    await there.connection(1);
    expect(readFileSync(join(dataDir, PIN_FILE), 'utf8').trim()).toBe(home.publicKey);
    expect(trap.connections).toEqual([]);
  });
});
