/** The examples of the OpenAPI document, recorded anew from a running orchestrator; `UPDATE_EXAMPLES=1` writes them. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CONTRACT } from '../../src/contract/contract.js';
import { EXAMPLES } from '../../src/contract/examples.js';
import type { Example, RouteSpec } from '../../src/contract/route.js';
import { Recorder } from './recorder.js';
import { tour } from './tour.js';
import { World } from './world.js';

const SETTINGS = ['--metrics-poll-interval', '1'];
const RECEIVERS = ['--notifications-allow-networks', '127.0.0.0/8', '--notifications-allow-http'];
const directory = fileURLToPath(new URL('../../src/contract/examples/', import.meta.url));

const world = new World();
let recorded: ReadonlyMap<string, Example>;

beforeAll(async () => {
  await world.start([...SETTINGS, ...RECEIVERS]);
  const recorder = new Recorder(world);
  await tour(world, recorder);
  recorded = recorder.examples;
  if (process.env.UPDATE_EXAMPLES === '1') write(recorded);
}, 240_000);
afterAll(() => world.sandbox.dispose());

/** Writes a file for each tag. */
function write(examples: ReadonlyMap<string, Example>): void {
  mkdirSync(directory, { recursive: true });
  const routes = Object.values<RouteSpec>(CONTRACT);
  for (const tag of new Set(routes.map((route) => route.tag))) {
    const ids = routes.filter((route) => route.tag === tag).map(({ id }) => id);
    const own = Object.fromEntries(ids.flatMap((id) => (examples.has(id) ? [[id, examples.get(id)]] : [])));
    const name = tag.replaceAll(' ', '-');
    writeFileSync(
      `${directory}${name}.ts`,
      `/** Recorded by \`test/api/examples.test.ts\`: examples of the operations about ${tag}. */\n` +
        "import type { Example } from '../route.js';\n\n" +
        `export const examples: Readonly<Record<string, Example>> = ${JSON.stringify(own, null, 2)};\n`,
    );
  }
  execFileSync('npx', ['biome', 'format', '--write', directory]);
}

const keysOf = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value).sort() : typeof value;

it('has an example of each operation', () => {
  expect([...recorded.keys()].sort()).toEqual(Object.keys(CONTRACT).sort());
});

it.each(Object.keys(CONTRACT))('%s takes and gives what its example shows', (id) => {
  const example = EXAMPLES[id];
  const now = recorded.get(id);
  expect(now?.status).toBe(example?.status);
  for (const part of ['params', 'query', 'body', 'answer'] as const) {
    expect(keysOf(now?.[part]), part).toEqual(keysOf(example?.[part]));
  }
});
