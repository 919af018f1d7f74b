/**
 * Requests with an `Idempotency-Key` whose store fails at each of their statements: on PostgreSQL the connections are cut before the
 * statement or before its answer, on SQLite the disk is full. The answer has to say what was committed, and a repetition must not
 * begin anything twice.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BEGINS_NOTHING, type EventType } from '../../daemon/core/domain-event.js';
import type { AuditEvent } from '../../src/contract/audit.js';
import type { Answer } from '../api/api-request.js';
import { type Call, World } from '../api/world.js';
import { CuttingWay, type Loss } from '../support/cutting-way.js';
import { IS_EXHAUSTIVE } from '../support/exhaustive.js';
import { noPostgres, TestPostgres } from '../support/postgres.js';
import { until } from '../support/until.js';

/** Loses one statement of an orchestrator. */
interface Saboteur {
  readonly losses: readonly Loss[];
  /** False if an apply whose end could not be stored takes long to be reported again. */
  readonly endsApplies: boolean;
  lose(number: number, loss: Loss): void;
  /** Loses none. Returns true if one was lost. */
  stop(): boolean;
}

interface Case {
  readonly name: string;
  readonly id: string;
  /** Returns a request that nothing else has made. */
  readonly call: (number: number) => Call | Promise<Call>;
  /** True if the end of an apply may be among the statements. */
  readonly hasEnd?: boolean;
  /** The answer holds a secret, so a repetition does not get it. */
  readonly isSecret?: boolean;
}

/** A request of each kind: one that begins an operation, one that changes a row, and one whose answer is a secret. */
const FEW: readonly string[] = ['an apply', 'a new assignment', 'a new token'];

const at = (secs: number) => Math.floor(Date.now() / 1000) + secs;

function suite(world: World, saboteur: Saboteur): void {
  let nodeId = '';
  const params = () => ({ node_id: nodeId });

  const cases: readonly Case[] = [
    {
      name: 'an apply that is waited for',
      id: 'applyAgent',
      call: () => ({ params: params(), body: { modules: ['site'] } }),
      hasEnd: true,
    },
    {
      name: 'an apply',
      id: 'applyAgent',
      call: () => ({ params: params(), body: { modules: ['site'], wait: false } }),
    },
    {
      name: 'a rollout',
      id: 'applyRollout',
      call: () => ({ body: { agents: [nodeId], modules: ['site'], wait: false } }),
      hasEnd: true,
    },
    {
      name: 'an approval or a rejection',
      id: 'setAgentStatus',
      call: async (number) => {
        const away = number % 2 === 0 ? 'rejected' : 'approved';
        await world.gives('setAgentStatus', { params: { node_id: other }, body: { status: away } }, 200);
        const body = { status: away === 'rejected' ? 'approved' : 'rejected' };
        return { params: { node_id: other }, body };
      },
    },
    {
      name: 'a new assignment',
      id: 'createAssignment',
      call: (number) => ({ body: { name: `a${number}`, modules: ['site'], selector: 'role=none' } }),
    },
    { name: 'a new token', id: 'createEnrolmentToken', call: () => ({ body: {} }), isSecret: true },
    {
      name: 'a new window',
      id: 'createMaintenanceWindow',
      call: (number) => ({ body: { reason: `w${number}`, starts_at: at(3600), ends_at: at(7200) } }),
    },
  ];
  let other = '';
  let number = 0;

  beforeAll(async () => {
    ({ nodeId } = await world.startAgent('machine'));
    await world.gives('setAgentStatus', { params: params(), body: { status: 'approved', name: 'web-01' } }, 200);
    const away = await world.startAgent('away');
    other = away.nodeId;
    await world.gives(
      'setAgentStatus',
      { params: { node_id: other }, body: { status: 'approved', name: 'away' } },
      200,
    );
    await away.agent.stop();
    const file = `{path: ${world.sandbox.path('motd')}, content: hello}`;
    const content = `name: site\nsupports: [{platform: linux}]\nresources: [{resource: {file-unix: ${file}}}]\n`;
    await world.gives('uploadModule', { body: { name: 'site', content } }, 201);
  });

  /** Number of changes that the request has committed. */
  async function begun({ headers }: Answer): Promise<number> {
    const { json } = await insist('listAuditEvents', { query: { limit: '100' } });
    const events: readonly AuditEvent[] = json.events;
    return events.filter(
      ({ event_type, metadata }) =>
        metadata.request_id === headers['x-request-id'] && !BEGINS_NOTHING.has(event_type as EventType),
    ).length;
  }

  const idle = () =>
    until(async () => {
      const { json: all } = await insist('listOperations', { query: { limit: '20' } });
      const { json: rollouts } = await insist('listRollouts', { query: { limit: '20' } });
      return [...all.operations, ...rollouts.rollouts].every(({ finished_at }) => finished_at !== null);
    }, 'no apply is in progress');

  /** Sends the request until the store answers. */
  async function insist(id: string, call: Call): Promise<Answer> {
    let answer = await world.call(id, call);
    await until(async () => {
      if (answer.status !== 503) return true;
      answer = await world.call(id, call);
      return false;
    }, 'the store answers');
    return answer;
  }

  for (const one of cases) {
    if (!IS_EXHAUSTIVE && !FEW.includes(one.name)) continue;
    if (one.hasEnd && !saboteur.endsApplies) continue;
    it(`${one.name}: is answered as it was committed, and is not done twice`, async () => {
      for (const loss of saboteur.losses) {
        for (let statement = 1, isLost = true; isLost; statement += 1) {
          await idle();
          number += 1;
          const headers = { 'idempotency-key': crypto.randomUUID() };
          const call = { ...(await one.call(number)), headers };
          saboteur.lose(statement, loss);
          const first = await world.call(one.id, call);
          isLost = saboteur.stop();
          const where = `statement ${statement}, ${loss}: ${first.status} ${first.text}`;
          const again = await insist(one.id, call);
          const isDone = (await begun(first)) > 0;
          expect(first.status < 400, where).toBe(isDone);
          if (!isDone) expect(first.status, where).toBe(503);
          if (one.isSecret && isDone) {
            expect(again.json, where).toMatchObject({ code: 'idempotency_conflict', reason: 'answer_secret' });
          } else {
            expect(again.status, `${where}; then ${again.text}`).toBeLessThan(400);
            expect(again.headers['idempotent-replayed'], where).toBe(isDone ? 'true' : undefined);
          }
          if (isDone && !one.isSecret) expect(again.json, where).toEqual(first.json);
          expect((await begun(again)) > 0, where).toBe(!isDone);
        }
      }
    });
  }
}

describe.skipIf(noPostgres !== null)(
  `a request on PostgreSQL whose connections are cut${noPostgres === null ? '' : ` (skipped: ${noPostgres})`}`,
  () => {
    const world = new World();
    let postgres: TestPostgres;
    let way: CuttingWay;

    beforeAll(async () => {
      postgres = await TestPostgres.start();
      await postgres.createDatabase('orch');
      way = await CuttingWay.to(postgres.port);
      const store = `postgres://orch@127.0.0.1:${way.port}/orch`;
      await world.start(['--store', store, '--no-drift', '--metrics-poll-interval', '86400']);
    });
    afterAll(async () => {
      await world.sandbox.dispose();
      await way?.close();
      await postgres?.remove();
    });

    suite(world, {
      losses: ['request', 'answer'],
      endsApplies: true,
      lose: (number, loss) => way.loseStatement(number, loss),
      stop: () => way.keepStatements(),
    });
  },
);

describe('a request on SQLite whose disk is full', () => {
  const world = new World();
  const control = world.sandbox.path('fail-at');
  const preload = fileURLToPath(new URL('../support/failing-sqlite.cjs', import.meta.url));

  beforeAll(async () => {
    writeFileSync(control, '0');
    const env = { NODE_OPTIONS: `--require=${preload}`, ORCH_TEST_FAIL_AT: control };
    await world.start(['--no-drift', '--metrics-poll-interval', '86400'], env);
  });
  afterAll(() => world.sandbox.dispose());

  suite(world, {
    losses: ['request'],
    // `full-disk.test.ts` is about those.
    endsApplies: false,
    lose: (number) => writeFileSync(control, String(number)),
    stop: () => {
      const isLost = readFileSync(control, 'utf8') === '0';
      writeFileSync(control, '0');
      return isLost;
    },
  });
});
