/** A hostile agent, or server, puts steering characters wherever the API lets it: none reaches the terminal. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runOrch } from '../support/cli.js';
import {
  agents,
  appliedStream,
  driftDetail,
  events,
  facts,
  haltedRollout,
  missed,
  module,
  operations,
  operators,
  pending,
  planned,
  readings,
  reported,
  rollouts,
  runLines,
  runResult,
  state,
  streamed,
  ulid,
  web1,
  web2,
} from '../support/cli-world.js';
import { type Answers, type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';

const EVIL = '\x1b]52;c;cm0=\x07\x9b2J\u202e\r\n\u200b';

/** Texts that the schemas pin to a form, or that find things again. */
const PINNED =
  /^(node_id|operator_id|operation_id|drift_id|id|public_key|status|action|kind|role|plan_hash|origin|trigger|severity|next_cursor|name|username|event|sha256|rollout_id|state|standing|on_failure)$/;

/** The value with every free text made hostile. */
function poisoned<T>(value: T, key = ''): T {
  if (typeof value === 'string') return (PINNED.test(key) ? value : `${value}${EVIL}`) as T;
  if (Array.isArray(value)) return value.map((item) => poisoned(item, key)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, poisoned(member, name)])) as T;
}

const result = poisoned(
  runResult(planned, { warnings: [{ module: 'm', path: '/', line: 1, column: 1, message: 'w' }] }),
);
const answers: Answers = {
  ...readings,
  listAgents: { body: poisoned(agents) },
  getAgent: { body: poisoned(web1) },
  getAgentFacts: { body: poisoned(facts) },
  listOperators: { body: poisoned(operators) },
  listTags: { body: { tags: { role: [`web${EVIL}`] } } },
  listModules: { body: [{ name: `site${EVIL}`, uploaded_at: 1, uploaded_by: `x${EVIL}` }] },
  getModule: { body: { ...poisoned(module), definition: {} } },
  getState: { body: poisoned(state) },
  listOperations: {
    body: { operations: poisoned(operations).map(({ resources: _, ...rest }) => rest), total: 9, limit: 3, offset: 0 },
  },
  listRollouts: { body: { rollouts: poisoned(rollouts), total: 9, limit: 3, offset: 0 } },
  getRollout: { body: poisoned(haltedRollout) },
  getOperation: ({ headers }) =>
    headers.accept?.includes('ndjson') ? { lines: runLines(result) } : { body: poisoned(operations[0]) },
  getOperationOutput: {
    body: {
      operation_id: ulid(1),
      output: { [`a/b${EVIL}`]: { stdout: EVIL, stderr: EVIL, exit_code: 1, truncated: false } },
    },
  },
  getDrift: { body: poisoned(driftDetail(planned)) },
  listAuditEvents: { body: { events: poisoned(events), has_more: false, next_cursor: null } },
  planAgent: { lines: runLines(result) },
  planRollout: streamed([
    poisoned({ ...reported(web1, result), operation_id: null }),
    poisoned(missed(web2, 'failed', 'agent_timeout', 'it says nothing')),
  ]),
  applyRollout: poisoned(appliedStream([missed(web2, 'failed', 'agent_timeout', 'it says nothing')])),
  applyAgent: { lines: runLines({ ...result, operation_id: ulid(1) }) },
  checkDrift: { problem: 'internal', detail: `went wrong${EVIL}`, more: { errors: [{ path: '/', message: EVIL }] } },
  setAgentStatus: { body: poisoned({ ...pending, status: 'approved', name: 'web-03' }) },
};

let api: FakeApi;
beforeAll(async () => {
  api = await startFakeApi(answers);
});
afterAll(async () => {
  await api.stop();
  // A hostile server keeps to no format, and the command line reads the time as a text.
  expect(api.violations.filter((text) => !text.endsWith('must match format "date-time"'))).toEqual([]);
});

const COMMANDS: readonly (readonly string[])[] = [
  ['agents'],
  ['agents', 'show', 'web-01'],
  ['facts', 'web-01'],
  ['operator', 'list'],
  ['tags'],
  ['module', 'list'],
  ['module', 'show', 'site'],
  ['state', 'web-01'],
  ['ops'],
  ['ops', 'show', ulid(2)],
  ['ops', 'watch', ulid(2)],
  ['ops', 'output', ulid(1)],
  ['rollouts'],
  ['rollouts', 'show', ulid(8)],
  ['rollouts', 'watch', ulid(8)],
  ['apply', 'web-01', 'web-02', '--yes'],
  ['drift', 'show', ulid(7)],
  ['drift', 'web-01'],
  ['audit'],
  ['plan', 'web-01', '-v'],
  ['plan', 'web-01', 'web-02'],
  ['apply', 'web-01', '--yes'],
  ['agents', 'approve', '77aa55ee', '--name', 'web-03', '--yes'],
  ['api', 'GET', '/audit'],
];

const STEERING = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

describe.each(['table', 'wide', 'json', 'yaml', 'name'])('-o %s', (format) => {
  it.each(COMMANDS.map((argv) => [argv.join(' '), argv] as const))('orch %s', async (_line, argv) => {
    const ran = await runOrch([...argv, '-o', format], { isHostile: true, env: { ...loggedIn(api), NO_COLOR: '1' } });
    expect((ran.stdout + ran.stderr).replaceAll('\n', '')).not.toMatch(STEERING);
    expect(ran.status).not.toBe(64);
  });
});

describe('on a terminal', () => {
  it('neither do progress nor questions', async () => {
    const answersTyped = [{ at: 'Apply it, with 1 removal?', type: 'n\r' }];
    const ran = await runOrch(['apply', 'web-01'], { env: loggedIn(api), columns: 100, answers: answersTyped });
    expect(ran.status).toBe(1);
    // Sequences that the renderer, the live line and the question library write themselves.
    const own = /\x1b\[[0-9;?]*[A-Za-z]|\r|\n/g;
    expect(ran.stderr.replace(own, '')).not.toMatch(STEERING);
    expect(ran.stderr).toContain('\\x1b]52;c;cm0=');
  });
});
