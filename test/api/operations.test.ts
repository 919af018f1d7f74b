/**
 * The API as a whole, on a real orchestrator with a real agent: every operation with every answer that its description
 * names, and no other.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EVENT_SEVERITY } from '../../daemon/core/domain-event.js';
import { CONTRACT } from '../../src/contract/contract.js';
import { StoreLab } from '../support/store-lab.js';
import type { Described } from './described-api.js';
import {
  accessMistakes,
  conflictMistake,
  malformedMistakes,
  shutdownMistakes,
  timeoutMistake,
  useUpKey,
} from './general-steps.js';
import { LISTED_OPERATIONS } from './listed-operations.js';
import { openApiMistakes } from './open-api-schema.js';
import * as desired from './steps/desired.js';
import * as fleet from './steps/fleet.js';
import { followPages, PAGED, WITHOUT_PAGES } from './steps/pages.js';
import * as people from './steps/people.js';
import * as runs from './steps/runs.js';
import * as telling from './steps/telling.js';
import * as terminals from './steps/terminals.js';
import { type Call, World } from './world.js';

/** Documented, and not to be had by requests alone. */
const UNPROVOKED: Readonly<Record<string, string>> = {
  internal: 'is never answered: every one of them would be a mistake of ours',
  store_unavailable: 'needs a disk that is full or broken: see test/database',
  'planAgent agent_timeout':
    'needs an agent that lives and says nothing for a minute: see test/engine/plan-drift.test.ts',
  'applyAgent agent_timeout': 'needs an agent that lives and says nothing for a minute: see test/engine/apply.test.ts',
  'openTerminal agent_timeout': 'needs an agent that lives and says nothing: see test/terminal/relay/session.test.ts',
  'execOnAgent agent_timeout': 'needs an agent that lives and says nothing: see test/terminal/relay/session.test.ts',
  'openForward agent_timeout': 'needs an agent that lives and says nothing',
  'openSshProxy agent_timeout': 'needs an agent that lives and says nothing',
  'openCopy agent_timeout': 'needs an agent that lives and says nothing',
  'getTranscript transcript_invalid': 'needs a damaged file: see test/e2e/term-recordings.test.ts',
  'getTranscript transcript_not_found': 'needs a session that was not recorded: see test/terminal/relay/flow.test.ts',
  'rotateOperatorKey rate_limited': 'needs dozens of keys within a minute: see test/auth/operators.test.ts',
  terminal_unsupported: 'needs an agent without its optional library: see test/terminal/relay/session.test.ts',
  recording_failed: 'needs a disk that is full: see test/terminal/relay/flow.test.ts',
  'planAgent variant_ambiguous':
    'needs an agent that tells of a system that does not exist: see test/language/cases/resolve',
  'applyAgent variant_ambiguous':
    'needs an agent that tells of a system that does not exist: see test/language/cases/resolve',
  'uploadModule rate_limited':
    'needs more texts at a time than wait for the parser: see test/engine/parser-pool.test.ts',
  'uploadValueSet rate_limited':
    'needs more texts at a time than wait for the parser: see test/engine/parser-pool.test.ts',
  'previewValueSet rate_limited':
    'needs more texts at a time than wait for the parser: see test/engine/parser-pool.test.ts',
  'planAgent rate_limited': 'needs more texts at a time than wait for the parser: see test/engine/parser-pool.test.ts',
  'planAssignment rate_limited':
    'needs more texts at a time than wait for the parser: see test/engine/parser-pool.test.ts',
  'pauseRollout rollout_in_progress': 'needs a rollout that is being reverted: see test/engine/rollout-reverts.test.ts',
  'cancelRollout rollout_in_progress':
    'needs a rollout that is being reverted: see test/engine/rollout-reverts.test.ts',
  'planRollout rate_limited':
    'needs more texts at a time than wait for the parser: see test/engine/parser-pool.test.ts',
  'applyAgent rate_limited': 'needs more texts at a time than wait for the parser: see test/engine/parser-pool.test.ts',
  'applyAssignment rate_limited':
    'needs more texts at a time than wait for the parser: see test/engine/parser-pool.test.ts',
  'applyRollout rate_limited':
    'needs more texts at a time than wait for the parser: see test/engine/parser-pool.test.ts',
  'verifyChallenge operator_expired': 'needs time to pass: see test/auth/operator-ends.test.ts',
  'verifyAgent agent_not_connected': 'needs an agent that goes away after an apply: see test/engine/verify.test.ts',
  'refreshAgentFacts agent_timeout': 'needs an agent that says nothing: see test/fleet/facts.test.ts',
  'verifyAgent agent_timeout': 'needs an agent that says nothing for a minute: see test/engine/verify.test.ts',
  agent_too_old: 'needs an agent of an earlier release: see test/engine/verify.test.ts',
  'checkDrift agent_timeout':
    'needs an agent that lives and says nothing for a minute: see test/engine/plan-drift.test.ts',
};

/** Types of audit events that requests alone do not raise, and the tests in which they are. */
const RAISED_ELSEWHERE: Readonly<Record<string, string>> = {
  'operator.expiring': 'auth/operator-ends.test.ts',
  'operator.expired': 'auth/operator-ends.test.ts',
  'orchestrator.certificate_expiring': 'e2e/own-certificate.test.ts',
  'orchestrator.certificate_expired': 'e2e/own-certificate.test.ts',
  'agent.journal_lost': 'fleet/presence.test.ts',
  'agent.removals_held': 'fleet/ephemeral.test.ts',
  'agent.name_reused': 'fleet/names.test.ts',
  'agent.refused': 'fleet/rejection.test.ts',
  'agent.returned': 'notify/notification-rules.test.ts',
  'agent.protocol_violation': 'fleet/conduct.test.ts',
  'agent.duplicate_identity': 'fleet/presence.test.ts',
  'agent.kept': 'fleet/contests.test.ts',
  'agent.upgraded': 'e2e/upgrade-reports.test.ts',
  'enrolment.used': 'fleet/enrolment-tokens.test.ts',
  'state.apply_failed': 'engine/apply.test.ts',
  'state.apply_interrupted': 'engine/recovery.test.ts',
  'state.apply_rolled_back': 'engine/confirm.test.ts',
  'state.operations_pruned': 'engine/retention.test.ts',
  'state.outputs_pruned': 'engine/retention.test.ts',
  'rollout.halted': 'engine/durable-rollouts.test.ts',
  'rollout.reverted': 'engine/rollout-reverts.test.ts',
  'rollout.pruned': 'engine/retention.test.ts',
  'drift.failed': 'engine/plan-drift.test.ts',
  'drift.pruned': 'engine/retention.test.ts',
  'enforcement.stopped': 'engine/enforcement.test.ts',
  'secret.expired': 'secrets/service.test.ts',
  'secret.key_rotated': 'secrets/rotation.test.ts',
  'channel.delivery_failed': 'notify/outbox.test.ts',
  'notification.pruned': 'engine/retention.test.ts',
  'terminal.attached': 'terminal/relay/people.test.ts',
  'terminal.taken_over': 'terminal/relay/people.test.ts',
  'terminal.transcript_found': 'terminal/recordings/strays.test.ts',
  'terminal.transcripts_pruned': 'terminal/recordings/transcripts.test.ts',
  'audit.key_changed': 'audit/verification.test.ts',
  'audit.events_lost': 'e2e/lost-events.test.ts',
  'orchestrator.identity_changed': 'e2e/identity.test.ts',
  'orchestrator.backed_up': 'e2e/backup.test.ts',
  'orchestrator.restored': 'e2e/backup.test.ts',
  'orchestrator.store_damaged': 'e2e/lost-events.test.ts',
  'orchestrator.clock_jumped': 'core/clock-watch.test.ts',
  'orchestrator.clock_accepted': 'core/clock-watch.test.ts',
};

const SETTINGS = ['--metrics-poll-interval', '1', '--limits-headers-timeout-secs', '3'];
const RECEIVERS = ['--notifications-allow-networks', '127.0.0.0/8', '--notifications-allow-http'];

describe('the operations of the specification', () => {
  const known = new Set(Object.values(CONTRACT).map(({ method, path }) => `${method} ${path}`));

  it('are 67', () => expect(new Set(LISTED_OPERATIONS).size).toBe(67));

  it.each(LISTED_OPERATIONS)('have %s', (operation) => expect(known).toContain(operation));
});

describe('a running orchestrator', () => {
  const world = new World();
  /** Behind a proxy that tells of plain HTTP. */
  const proxied = new World();
  let timeouts: Promise<readonly string[]>;

  /** Types of audit events that were seen in the log. */
  const raised = new Set<string>();
  const lookAtLog = async () => {
    let cursor: string | null = null;
    do {
      const page: Awaited<ReturnType<World['gives']>> = await world.gives(
        'listAuditEvents',
        { query: { limit: '500', ...(cursor === null ? {} : { cursor }) } },
        200,
      );
      for (const { event_type: type } of page.events) raised.add(type);
      cursor = page.next_cursor;
    } while (cursor !== null);
  };

  const all = (): readonly Described[] => [...world.api.operations.values()];
  const writes = () => all().filter(({ method, access }) => method !== 'GET' && access !== null);
  const each = async (operations: readonly Described[], ask: (one: Described) => Promise<readonly string[]>) => {
    const mistakes = [];
    for (const operation of operations) mistakes.push(...(await ask(operation)));
    return mistakes;
  };

  beforeAll(async () => {
    await world.start([...SETTINGS, ...RECEIVERS]);
    timeouts = Promise.all(all().map((operation) => timeoutMistake(world, operation))).then((found) => found.flat());
    await world.startAgents();
  });
  afterAll(() => Promise.all([world.sandbox.dispose(), proxied.sandbox.dispose()]));

  it('serves a document that is OpenAPI 3.1', () => expect(openApiMistakes(world.api.document)).toEqual([]));

  it('refuses callers without the required role', async () => {
    expect(await each(all(), (operation) => accessMistakes(world, operation))).toEqual([]);
  });

  it('refuses malformed requests alike everywhere', async () => {
    expect(await each(all(), (operation) => malformedMistakes(world, operation))).toEqual([]);
  });

  it('gives its documents', () => telling.documents(world));
  it('logs people in and out', () => people.logins(world));
  it('has operators', () => people.operators(world));
  it('has agents', () => fleet.agents(world));
  it('lists agents page by page', async () => {
    const found = await fleet.agentPages(world);
    expect([...found].sort()).toEqual([world.agents.connected, world.agents.away, world.agents.pending].sort());
  });
  it('upgrades agents', () => fleet.upgrades(world));
  it('tags agents', () => fleet.tags(world));
  it('gives enrolment tokens', () => fleet.enrolmentTokens(world));
  it('sends discovery packets', () => fleet.discovery(world));
  it('keeps measurements', () => fleet.metrics(world));
  it('keeps modules', () => desired.modules(world));
  it('keeps files beside modules', () => desired.files(world));
  it('says why it cannot run something', () => runs.refusedRuns(world));
  it('keeps values of inputs', () => desired.values(world));

  it('assigns modules', () => desired.assignments(world));
  it('keeps secrets', () => desired.secrets(world));
  it('sends to channels', () => telling.channels(world));
  it('tells people', () => telling.notifications(world));
  it('has maintenance windows', () => telling.maintenanceWindows(world));
  it('opens terminals and runs commands', () => terminals.terminals(world));
  it('writes an audit log', async () => {
    await lookAtLog();
    await telling.audit(world);
  });
  it('has a bound on the readers of the audit log', () => telling.manyReaders(world));

  it('plans, applies, checks and tells of it', async () => {
    const operationId = await runs.runs(world);
    await runs.records(world, operationId);
    await runs.driftExcuses(world);
    await runs.foreignOperation(world, operationId);
    await runs.busyAgent(world);
    await runs.verified(world);
  });

  it('names the next page of each list that has a limit', async () => {
    const takes = ({ object }: Described, name: string) => object.parameters?.some((one) => one.name === name) ?? false;
    const limited = all().filter((operation) => takes(operation, 'limit'));
    expect(limited.map(({ id }) => id).sort()).toEqual([...Object.keys(PAGED), ...WITHOUT_PAGES].sort());
    const placed = limited.filter((operation) => takes(operation, 'cursor') || takes(operation, 'offset'));
    expect(placed.map(({ id }) => id).sort()).toEqual(Object.keys(PAGED).sort());
    const several: string[] = [];
    // Needs a channel with deliveries: see test/notify/channels.test.ts
    const here = Object.keys(PAGED).filter((id) => id !== 'listDeliveries');
    for (const id of here) if ((await followPages(world, id)) > 1) several.push(id);
    expect(several).toEqual(here);
  });

  it('refuses a key that was used for another request', async () => {
    await useUpKey(world);
    expect(await each(writes(), (operation) => conflictMistake(world, operation))).toEqual([]);
  });

  it('has reported every event that could be reported', async () => {
    await lookAtLog();
    const elsewhere = Object.keys(RAISED_ELSEWHERE);
    const known = [...elsewhere, 'orchestrator.stopped'];
    const types = Object.keys(EVENT_SEVERITY).filter((type) => !known.includes(type));
    expect(types.filter((type) => !raised.has(type))).toEqual([]);
    // An agent that is rejected here may dial once more before its record is removed, and is refused then.
    expect(elsewhere.filter((type) => raised.has(type) && type !== 'agent.refused')).toEqual([]);
  });

  it.each(Object.entries(RAISED_ELSEWHERE))('tells of %s in %s', (type, file) => {
    expect(readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')).toContain(`'${type}'`);
  });

  it('ends requests that do not come', async () => expect(await timeouts).toEqual([]));

  it('takes secrets over TLS alone', async () => {
    const env = { ORCH_SERVE_TLS_ENABLED: 'false', ORCH_SERVE_TRUST_PROXY_TLS: 'true' };
    await proxied.start([], env);
    const config = { channel_type: 'ntfy', name: 'a', config: { topic: 'a' } };
    const requests: Readonly<Record<string, Call>> = {
      createSecret: { body: { name: 'A', value: 'a' } },
      updateSecret: { params: { name: 'A' }, body: {} },
      removeSecret: { params: { name: 'A' } },
      createChannel: { body: config },
      updateChannel: { body: {} },
      createEnrolmentToken: {},
      openTerminal: {},
      attachTerminal: { body: { mode: 'read' } },
      openForward: { body: { targets: [{ host: 'localhost', port: 80 }] } },
      openSshProxy: {},
      openCopy: { body: { direction: 'read', paths: ['/etc/motd'] } },
      execOnAgent: { body: { command: ['true'] } },
    };
    for (const [id, call] of Object.entries(requests)) await proxied.refuses(id, call, 'tls_required');
  });

  it('tells of a secret that it cannot read', async () => {
    const headers = { 'x-forwarded-proto': 'https' };
    await proxied.gives('createSecret', { body: { name: 'A', value: 'a' }, headers }, 201);
    await proxied.server.stop();
    new StoreLab(proxied.sandbox.path('serve', 'orch.db')).run(`update secrets set sealed = '${'ab'.repeat(32)}'`);
    await proxied.start([], { ORCH_SERVE_TLS_ENABLED: 'false', ORCH_SERVE_TRUST_PROXY_TLS: 'true' });
    const call = { params: { name: 'A' }, body: { description: 'new' }, headers };
    await proxied.refuses('updateSecret', call, 'secrets_locked');
  });

  it('takes no request while it stops', async () => {
    await people.tooManyLogins(world);
    expect(await shutdownMistakes(world)).toEqual([]);
    const store = new StoreLab(world.sandbox.path('serve', 'orch.db'));
    const [last] = store.rows('select event_type from audit_events order by seq desc limit 1');
    expect(last).toEqual({ event_type: 'orchestrator.stopped' });
  });

  it('has given every answer that it describes', () => {
    const missing = all().flatMap(({ id, outcomes }) =>
      [...outcomes]
        .filter((outcome) => ![world, proxied].some(({ seen }) => seen.get(id)?.has(outcome)))
        .filter((outcome) => UNPROVOKED[outcome] === undefined && UNPROVOKED[`${id} ${outcome}`] === undefined)
        .map((outcome) => `${id} ${outcome}`),
    );
    expect(missing).toEqual([]);
  });

  it('has given no answer that is said not to be had', () => {
    const had = all().flatMap(({ id }) =>
      [...(world.seen.get(id) ?? [])].flatMap((outcome) => [outcome, `${id} ${outcome}`]),
    );
    expect(Object.keys(UNPROVOKED).filter((outcome) => had.includes(outcome))).toEqual([]);
    const described = all().flatMap(({ id, outcomes }) =>
      [...outcomes].flatMap((outcome) => [outcome, `${id} ${outcome}`]),
    );
    expect(Object.keys(UNPROVOKED).filter((outcome) => !described.includes(outcome))).toEqual([]);
  });
});
