/** Sessions whose sockets are lost: nothing is missing and nothing comes twice, in both directions. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ackFrame } from '../../../src/terminal/frames.js';
import { TERMINAL_CLOSE } from '../../../src/terminal/limits.js';
import { place } from '../../support/agent.js';
import { AgentEnd } from '../../support/agent-terminal.js';
import { until } from '../../support/orch.js';

const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

describe('a session that loses its socket', () => {
  it('sends the output on from where the orchestrator stands, however often it is cut', async () => {
    const agent = await AgentEnd.start();
    const source = join(place(), 'source');
    const text = Buffer.from(Array.from({ length: 400_000 }, (_, index) => `${index}`).join(' '));
    writeFileSync(source, text);
    const { relay } = agent.open({}, 100_000);
    relay.type(`stty raw -echo; printf be''gin; head -c 1 >'${source}.go'; exec cat '${source}'\n`);
    await relay.shows('begin');
    // Nothing is acknowledged before the flood begins: otherwise too little of it may be left for all the cuts.
    relay.acknowledges = false;
    relay.type('!');
    for (let cut = 0; cut < 12; cut += 1) {
      const { received } = relay;
      relay.socket?.cut();
      await until(() => relay.received >= received + 100_000, 'all that is allowed has come');
    }
    relay.acknowledges = true;
    relay.socket?.cut();
    expect(await relay.ended()).toMatchObject({ code: 0, final_offset: relay.received });
    const at = relay.bytes.lastIndexOf('begin') + 5;
    expect(sha(relay.bytes.subarray(at))).toBe(sha(text));
  });

  it('takes what was typed exactly once', async () => {
    const agent = await AgentEnd.start();
    const file = join(place(), 'typed');
    const text = Buffer.from(Array.from({ length: 120_000 }, (_, index) => `${index}`).join(' '));
    const { relay } = agent.open();
    relay.type(`stty raw -echo; echo re''ady; head -c ${text.length} > '${file}'; exit\n`);
    await relay.shows('ready');
    const { inputTaken } = relay;
    relay.type(text);
    for (let cut = 1; cut <= 5; cut += 1) {
      const count = relay.sockets.length;
      await until(
        () => relay.inputTaken > inputTaken + (cut * text.length) / 8 || relay.exit !== null,
        'some is taken',
      );
      relay.socket?.cut();
      await until(() => relay.sockets.length > count || relay.exit !== null, 'it is dialled again');
    }
    expect(await relay.ended()).toMatchObject({ code: 0 });
    expect(sha(readFileSync(file))).toBe(sha(text));
  });

  it('keeps its exit until the orchestrator lets go of it', async () => {
    const agent = await AgentEnd.start();
    const { id, relay } = agent.open({}, null);
    await agent.answer(id);
    await until(() => relay.socket !== null, 'it has dialled');
    relay.socket?.send(ackFrame(0, 1_000_000));
    await until(() => relay.received > 0, 'there is a prompt');
    agent.reattaches = false;
    relay.socket?.cut();
    await until(() => agent.terminals.list().sessions.some(({ attached }) => !attached), 'the loss is known');
    expect(agent.reports.at(-1)).toEqual({ type: 'terminals', sessions: [{ session_id: id, attached: false }] });
    relay.window = 1_000_000;
    relay.closes = false;
    relay.type('exit 5\n');
    attach(agent, id);
    expect(await relay.ended()).toMatchObject({ code: 5 });
    relay.exit = null;
    relay.socket?.cut();
    await until(() => agent.terminals.list().sessions.some(({ attached }) => !attached), 'the loss is known');
    attach(agent, id);
    expect(await relay.ended()).toMatchObject({ code: 5, final_offset: relay.received });
    relay.socket?.close(TERMINAL_CLOSE.done);
    await agent.empty();
  });

  it('asks for other tickets, later and later, while those that it gets are no good', async () => {
    const agent = await AgentEnd.start();
    agent.reattaches = false;
    const { id, relay } = agent.open();
    await agent.answer(id);
    // A program that was not started yet would be given up at its deadline.
    await until(() => relay.received > 0, 'there is a prompt');
    relay.socket?.cut();
    const losses = () => agent.reports.filter(({ type }) => type === 'terminals').length;
    await until(() => losses() === 1, 'the loss is reported');
    for (let round = 2; round <= 3; round += 1) {
      agent.terminals.handle({ type: 'terminal_attach', session_id: id, ticket: 'an unknown ticket' });
      await until(() => losses() === round, 'it is reported again');
    }
    attach(agent, id);
    relay.type('exit 3\n');
    expect(await relay.ended()).toMatchObject({ code: 3 });
  });

  it('tells at once of a session that it does not have', async () => {
    const agent = await AgentEnd.start();
    agent.terminals.handle({
      type: 'terminal_attach',
      session_id: '01K00000000000000000000099',
      ticket: 'x'.repeat(20),
    });
    expect(agent.reports).toEqual([{ type: 'terminals', sessions: [] }]);
    agent.close('01K00000000000000000000099');
  });
});

const attach = (agent: AgentEnd, id: string): void =>
  agent.terminals.handle({ type: 'terminal_attach', session_id: id, ticket: agent.orchestrator.ticket() });
