/** Sockets whose other end is silent, with hearts that beat fast. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { TerminalHost } from '../../../src/agent/terminal/host.js';
import { type FromHost, systemMonotonic } from '../../../src/agent/terminal/host-messages.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { anewFrame, inputFrame } from '../../../src/terminal/frames.js';
import { launchOf } from '../../support/agent-pty.js';
import { OrchestratorEnd, Relay, sessionId } from '../../support/agent-terminal.js';
import { newIdentity } from '../../support/identity.js';
import { until } from '../../support/orch.js';

const id = sessionId(1);

async function start(deadAfter = 2_000) {
  let skew = 0;
  const clock = { now: () => Date.now() + skew, monotonic: () => performance.now() + skew };
  const pass = (ms: number) => {
    skew += ms;
  };
  const orchestrator = await new OrchestratorEnd().start();
  const said: FromHost[] = [];
  const host = new TerminalHost({
    privateKey: newIdentity().privateKey,
    clock,
    pace: { pingInterval: 100, deadAfter },
    logger: silentLogger,
    post: (message) => void said.push(message),
  });
  onTestFinished(() => host.abandon());
  const relay = new Relay();
  orchestrator.relays.set(id, relay);
  const place = { host: '127.0.0.1', port: orchestrator.port, key: orchestrator.identity.publicKey };
  return { orchestrator, host, said, relay, place, pass };
}

const startBy = systemMonotonic() + 600_000;
const order = {
  launch: launchOf('echo up; exec cat'),
  size: { cols: 80, rows: 24 },
  stdin: true,
  timeoutSecs: null,
  wait: null,
};

describe('the host of terminals', () => {
  it('keeps a socket that answers, and gives up one that is silent', async () => {
    const { orchestrator, host, said, relay, place } = await start();
    host.take({ do: 'open', sessionId: id, order, dial: { place, ticket: orchestrator.ticket() }, startBy });
    await relay.shows('up');
    const pings = () => relay.socket?.frames.filter(({ type }) => type === 'ping').length ?? 0;
    await until(() => pings() > 2_000 / 100, 'more pings were answered than fit into the time after which it is dead');
    expect(said.map(({ is }) => is)).toEqual(['opened', 'started']);
    relay.socket?.stopReading();
    await until(() => said.some(({ is }) => is === 'lost'), 'the loss is noticed');
    host.take({ do: 'attach', sessionId: id, dial: { place, ticket: orchestrator.ticket() } });
    relay.type('again\n');
    await relay.shows('again\nagain');
    expect(relay.sockets.length).toBe(2);
  });

  it('takes no input after a silence until the orchestrator has said again what is meant', async () => {
    const { orchestrator, host, relay, place, pass } = await start(3_600_000);
    const placed = () => relay.socket?.frames.filter(({ type }) => type === 'place') ?? [];
    host.take({ do: 'open', sessionId: id, order, dial: { place, ticket: orchestrator.ticket() }, startBy });
    await relay.shows('up');
    expect(placed()).toEqual([{ type: 'place', offset: 0 }]);
    relay.socket?.send(anewFrame());
    relay.type('one\n');
    await relay.shows('one\none');
    pass(12_000);
    relay.socket?.send(inputFrame(4, Buffer.from('late\n')));
    await until(() => placed().length === 2, 'it asks');
    expect(placed()[1]).toEqual({ type: 'place', offset: 4 });
    // Input that was on its way already does not count either.
    relay.socket?.send(inputFrame(9, Buffer.from('later\n')));
    relay.socket?.send(anewFrame());
    relay.type('meant\n');
    await relay.shows('meant\nmeant');
    expect(relay.text()).not.toContain('late');
  });

  it('says nothing of itself to anyone but the orchestrator', async () => {
    const { orchestrator, host, said, relay, place } = await start();
    const wrong = { ...place, key: newIdentity().publicKey };
    host.take({ do: 'open', sessionId: id, order, dial: { place: wrong, ticket: orchestrator.ticket() }, startBy });
    await until(() => said.some(({ is }) => is === 'lost'), 'it is reported');
    expect(relay.sockets).toEqual([]);
  });

  it('ends everything when the agent is gone', async () => {
    const { orchestrator, host, said, relay, place } = await start();
    host.take({ do: 'open', sessionId: id, order, dial: { place, ticket: orchestrator.ticket() }, startBy });
    await relay.shows('up');
    await host.abandon();
    expect(said.map(({ is }) => is)).toEqual(['opened', 'started', 'gone']);
  });
});
