/** Sockets whose other end is silent, with hearts that beat fast. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { TerminalHost } from '../../../src/agent/terminal/host.js';
import { type FromHost, systemMonotonic } from '../../../src/agent/terminal/host-messages.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { newIdentity } from '../../identity/keys.js';
import { until } from '../../support/orch.js';
import { launchOf } from '../pty/support/running.js';
import { clock } from '../support/place.js';
import { sessionId } from './support/agent-end.js';
import { OrchestratorEnd, Relay } from './support/orchestrator-end.js';

const id = sessionId(1);

async function start() {
  const orchestrator = await new OrchestratorEnd().start();
  const said: FromHost[] = [];
  const host = new TerminalHost({
    privateKey: newIdentity().privateKey,
    clock,
    pace: { pingInterval: 100, deadAfter: 2_000 },
    logger: silentLogger,
    say: (message) => void said.push(message),
  });
  onTestFinished(() => host.abandon());
  const relay = new Relay();
  orchestrator.relays.set(id, relay);
  const place = { host: '127.0.0.1', port: orchestrator.port, key: orchestrator.identity.publicKey };
  return { orchestrator, host, said, relay, place };
}

const startBy = systemMonotonic() + 600_000;
const order = { launch: launchOf('echo up; exec cat'), size: { cols: 80, rows: 24 }, stdin: true, timeoutSecs: null };

describe('the host of terminals', () => {
  it('keeps a socket that answers, and gives up one that is silent', async () => {
    const { orchestrator, host, said, relay, place } = await start();
    host.take({ do: 'open', sessionId: id, order, dial: { place, ticket: orchestrator.ticket() }, startBy });
    await relay.shows('up');
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(said.map(({ is }) => is)).toEqual(['opened', 'started']);
    relay.socket?.stopReading();
    await until(() => said.some(({ is }) => is === 'lost'), 'the loss is noticed');
    host.take({ do: 'attach', sessionId: id, dial: { place, ticket: orchestrator.ticket() } });
    relay.type('again\n');
    await relay.shows('again\nagain');
    expect(relay.sockets.length).toBe(2);
  });

  it('says nothing of itself to somebody else than the orchestrator', async () => {
    const { orchestrator, host, said, relay, place } = await start();
    const wrong = { ...place, key: newIdentity().publicKey };
    host.take({ do: 'open', sessionId: id, order, dial: { place: wrong, ticket: orchestrator.ticket() }, startBy });
    await until(() => said.some(({ is }) => is === 'lost'), 'it is told');
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
