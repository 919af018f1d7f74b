/** How many SQL statements an apply that changes nothing costs, from the request of its API until the orchestrator is quiet. */
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { World } from '../api/world.js';
import { noPostgres, TestPostgres } from '../support/postgres.js';
import { StatementLog, statementOfPostgres } from '../support/statements.js';

const MOST = 15;
const ROUNDS = 4;

async function expectFew(
  world: World,
  log: StatementLog,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  onTestFinished(() => world.sandbox.dispose());
  await world.start(['--no-drift', '--metrics-poll-interval', '86400', ...args], env);
  const { nodeId } = await world.startAgent('machine');
  const params = { node_id: nodeId };
  await world.gives('setAgentStatus', { params, body: { status: 'approved', name: 'web-01' } }, 200);
  const file = `{path: ${world.sandbox.path('motd')}, content: hello}`;
  const content = `name: site\nsupports: [{platform: linux}]\nresources: [{resource: {file-unix: ${file}}}]\n`;
  await world.gives('uploadModule', { body: { name: 'site', content } }, 201);
  const apply = (summary: object) => async () => {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const result = await world.gives('applyAgent', { params, body: { modules: ['site'] }, headers }, 200);
    expect(result).toMatchObject({ status: 'succeeded', summary });
  };
  await log.during(apply({ changed: 1 }));
  await log.during(apply({ unchanged: 1 }));
  const rounds: (readonly string[])[] = [];
  while (rounds.length < ROUNDS) {
    const statements = await log.during(apply({ unchanged: 1 }));
    // The watch over lost agents reads once a second, with or without an apply.
    rounds.push(statements.filter((sql) => !sql.includes('agent_absences')));
  }
  // The periodic work of the orchestrator is in some rounds.
  const [fewest = []] = rounds.sort((one, other) => one.length - other.length);
  expect(fewest.filter((sql) => sql.includes('"operations"')).length, fewest.join('\n')).toBeGreaterThan(0);
  expect(fewest.length, fewest.join('\n')).toBeLessThanOrEqual(MOST);
}

it('a no-op apply of one agent takes at most 15 statements of SQLite', async () => {
  const world = new World();
  const log = new StatementLog(world.sandbox.path('statements'));
  await expectFew(world, log, [], log.env);
});

it.skipIf(noPostgres !== null)(
  `a no-op apply of one agent takes at most 15 statements of PostgreSQL${noPostgres === null ? '' : ` (skipped: ${noPostgres})`}`,
  async () => {
    const postgres = await TestPostgres.start({ conf: ["log_statement = 'all'"] });
    onTestFinished(() => postgres.remove());
    const url = await postgres.createDatabase('orch');
    const log = new StatementLog(join(postgres.directory, 'log'), statementOfPostgres);
    await expectFew(new World(), log, ['--store', url], {});
  },
);
