/**
 * Bad input to every operation of a real orchestrator: whatever comes, it answers with something that its description
 * names, is never at a loss, goes on, and does not grow. What is slow, large or cut off on the wire: `test/http/limits.test.ts`.
 * ORCH_FUZZ_RUNS sets how many requests each operation gets.
 */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONTRACT } from '../../src/contract/contract.js';
import { type Answer, headOf, openWire, send } from './api-request.js';
import { arbitraryRequest, type Spoiled } from './arbitrary-request.js';
import type { Described } from './described-api.js';
import { type KnownIds, MODULE, samplesFor } from './samples.js';
import { World } from './world.js';

const RUNS = Number(process.env.ORCH_FUZZ_RUNS ?? 25);
const MEBIBYTE = 1024;

/** Where a path may lead that is none of the operation's. */
const ASTRAY = ['not_found', 'method_not_allowed', 'bad_request'];

const world = new World();
let known: KnownIds;

beforeAll(async () => {
  await world.start([
    ...['--limits-login-per-minute', '100000', '--limits-failed-login-per-minute', '100000'],
    ...['--notifications-allow-networks', '127.0.0.0/8'],
  ]);
  await world.startAgents();
  await world.gives('uploadModule', { body: { name: 'sample', content: MODULE } }, 201);
  const samples = samplesFor(world);
  await world.gives('createAssignment', samples.createAssignment, 201);
  await world.gives('createSecret', samples.createSecret, 201);
  const [channel, window, token] = [
    await world.gives('createChannel', samples.createChannel, 201),
    await world.gives('createMaintenanceWindow', samples.createMaintenanceWindow, 201),
    await world.gives('createEnrolmentToken', samples.createEnrolmentToken, 201),
  ];
  known = { channel: channel.id, window: window.id, token: token.id };
});
afterAll(() => world.sandbox.dispose());

/** Why an answer is not one that the request may get; empty when it is. */
function mistakes({ id }: Described, request: Spoiled, answer: Answer): readonly string[] {
  if (answer.json?.code === 'internal') return ['it was at a loss'];
  if (request.strays && ASTRAY.includes(answer.json?.code)) return [];
  // It may have led to another operation.
  if (request.strays && answer.status < 400) return [];
  const taken = answer.status < 400 ? world.api.requestProblemsOf(id, request.body) : [];
  return [
    ...world.api.problemsOf(id, answer),
    ...taken.map((problem) => `took a body that is not described: ${problem}`),
  ];
}

const memory = (): number => {
  const status = readFileSync(`/proc/${world.server.process.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0);
};

describe('bad input', () => {
  it.each(Object.keys(CONTRACT))(
    'to %s is answered as described',
    async (id) => {
      const operation = world.api.operation(id);
      const token = id === 'endSession' ? await world.login(world.people.operator) : world.tokenOf('admin');
      const property = fc.asyncProperty(arbitraryRequest(world, operation, { token, known }), async (request) => {
        const answer = await send(world.base, request);
        expect(mistakes(operation, request, answer), `${answer.status} ${answer.text}`).toEqual([]);
      });
      await fc.assert(property, { numRuns: RUNS });
      const answer = await send(world.base, { method: 'GET', path: '/api/v1/status', headers: {}, body: null });
      expect(answer.json).toMatchObject({ status: 'ok' });
      await world.gives('getSession', {}, 200);
    },
    // A hundred times what it takes.
    30_000 + RUNS * 1000,
  );

  it('of clients that stop sending, or only connect, keep no other from an answer', async () => {
    const wires = await Promise.all(Array.from({ length: 300 }, () => openWire(world.base)));
    const head = headOf('GET', '/api/v1/status', { host: 'orch' });
    // Some are silent, some stop in the middle, some are done and have closed their side.
    for (const [at, wire] of wires.entries()) if (at % 3 > 0) wire.write(at % 3 === 1 ? head : `${head}\r\n`);
    for (const [at, wire] of wires.entries()) if (at % 3 === 2) wire.end();
    // Who closes their side is gone: the server closes its own, answered or not.
    await Promise.all(wires.filter((_, at) => at % 3 === 2).map(({ answer }) => answer));
    await world.gives('getStatus', { as: null }, 200);
    for (const wire of wires) wire.close();
  });

  it.skipIf(process.platform !== 'linux')('does not make it grow (needs Linux)', async () => {
    const before = memory();
    const big = { body: { name: 'big', content: `name: big\n# ${'x'.repeat(1024 * 1024)}` } };
    for (let times = 0; times < 250; times += 1) {
      await world.call('uploadModule', { body: [big] });
      await world.call('getModule', {
        params: { name: `${times}${'x'.repeat(100)}` },
        query: { revision: `${times}` },
      });
    }
    expect(memory() - before).toBeLessThan(150 * MEBIBYTE);
    expect(world.server.process.exitCode).toBeNull();
    expect(world.server.output()).not.toContain('a request failed');
  });
});
