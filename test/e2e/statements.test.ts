/** How many SQL statements an apply that changes nothing costs, from the request of its API until the orchestrator is quiet. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { World } from '../api/world.js';
import { StatementLog } from '../support/statements.js';

const MOST = 14;
const ROUNDS = 4;

/** What the writer runs for each batch and each unit of it, besides `begin`, `commit` and one insert of audit events. */
const OF_WRITER = [
  /^(release )?savepoint unit$/,
  /^select \* from "audit_(events|marks)" (where "kind" = \? )?order by "seq" desc limit \?$/,
];

const world = new World();
const log = new StatementLog(world.sandbox.path('statements'));
let nodeId = '';

beforeAll(async () => {
  await world.start(['--no-drift', '--metrics-poll-interval', '86400'], log.env);
  ({ nodeId } = await world.startAgent('machine'));
  await world.gives(
    'setAgentStatus',
    { params: { node_id: nodeId }, body: { status: 'approved', name: 'web-01' } },
    200,
  );
  const file = `{path: ${world.sandbox.path('motd')}, content: hello}`;
  const content = `name: site\nsupports: [{platform: linux}]\nresources: [{resource: {file-unix: ${file}}}]\n`;
  await world.gives('uploadModule', { body: { name: 'site', content } }, 201);
});

afterAll(() => world.sandbox.dispose());

const apply = (summary: object) => async () => {
  const headers = { 'idempotency-key': crypto.randomUUID() };
  const result = await world.gives(
    'applyAgent',
    { params: { node_id: nodeId }, body: { modules: ['site'] }, headers },
    200,
  );
  expect(result).toMatchObject({ status: 'succeeded', summary });
};

it('a no-op apply of one agent takes at most 14 statements', async () => {
  await log.during(apply({ changed: 1 }));
  await log.during(apply({ unchanged: 1 }));
  const rounds: (readonly string[])[] = [];
  while (rounds.length < ROUNDS) rounds.push(await log.during(apply({ unchanged: 1 })));
  // What the orchestrator does from time to time by itself is in some rounds.
  const [fewest = []] = rounds
    .map((statements) => statements.filter((sql) => !OF_WRITER.some((one) => one.test(sql))))
    .sort((one, other) => one.length - other.length);
  expect(fewest.filter((sql) => sql.includes('"operations"')).length, fewest.join('\n')).toBeGreaterThan(0);
  expect(fewest.length, fewest.join('\n')).toBeLessThanOrEqual(MOST);
});
