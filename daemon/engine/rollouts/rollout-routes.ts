/** HTTP handlers of rollouts, and those that plan and apply an assignment. */

import type { assignmentRoutes } from '../../../src/contract/assignments.js';
import { ROLLOUT_LIST_LIMIT, type RolloutEvent, type rolloutRoutes } from '../../../src/contract/rollouts.js';
import { clampLimit } from '../../../src/contract/shapes.js';
import { Fault } from '../../../src/kernel/fault.js';
import type { ResourceResult } from '../../../src/resources/result.js';
import type { Rights } from '../../core/rights.js';
import type { AgentRow } from '../../fleet/agent-store.js';
import type { Handler, HandlersFor } from '../../http/handler.js';
import { nextByNumber } from '../../http/query-string.js';
import { limitsOf } from '../applies/apply-limits.js';
import type { CurrentModules } from '../modules/current-modules.js';
import type { ReadOneOff } from '../values/one-off-request.js';
import type { RequestedPace } from './rollout-pace.js';
import type { PlanWatcher } from './rollout-plans.js';
import type { RolloutRights } from './rollout-rights.js';
import type { RolloutTarget } from './rollout-target.js';
import type { Rollouts } from './rollouts.js';

export interface RolloutServices {
  readonly rollouts: Rollouts;
  readonly rolloutRights: RolloutRights;
  /** Parses the modules that a request carries as text. */
  readonly sources: CurrentModules['read'];
  /** Reads the values that a request brings with it. */
  readonly oneOff: ReadOneOff;
}

type Routes = typeof rolloutRoutes;
type AssignmentRoutes = Pick<typeof assignmentRoutes, 'planAssignment' | 'applyAssignment'>;

export const rolloutHandlers = (services: RolloutServices): HandlersFor<Routes> => ({
  planRollout: (request) => plan(services, chosen(request.body), request),
  applyRollout: (request) => apply(services, chosen(request.body), request),
  listRollouts: async ({ query, rights }) => {
    const body = await services.rollouts.list({
      limit: clampLimit(query.limit, ROLLOUT_LIST_LIMIT.standard, ROLLOUT_LIST_LIMIT.maximum),
      offset: query.offset ?? 0,
      state: query.state ?? null,
      assignment: query.assignment ?? null,
      rights,
    });
    return { status: 200, body, headers: nextByNumber('/rollouts', query, body) };
  },
  getRollout: getRollout(services),
  pauseRollout: async ({ params, body, context, rights }) => {
    await services.rolloutRights.requireOf(services.rollouts, params.rollout_id, 'cancel', rights);
    return { status: 200, body: await services.rollouts.pause(params.rollout_id, body.reason ?? null, context) };
  },
  resumeRollout: async ({ params, context, rights }) => {
    await services.rolloutRights.requireOf(services.rollouts, params.rollout_id, 'apply', rights);
    return { status: 200, body: await services.rollouts.resume(params.rollout_id, context) };
  },
  retryRollout: async ({ params, context, rights }) => {
    await services.rolloutRights.requireOf(services.rollouts, params.rollout_id, 'apply', rights);
    return { status: 200, body: await services.rollouts.retry(params.rollout_id, context) };
  },
  cancelRollout: async ({ params, context, rights }) => {
    const { rollout_id } = params;
    await services.rolloutRights.requireOf(services.rollouts, rollout_id, 'cancel', rights);
    return { status: 202, body: { rollout_id, cancelled: await services.rollouts.cancel(rollout_id, context) } };
  },
});

export const assignmentRolloutHandlers = (services: RolloutServices): HandlersFor<AssignmentRoutes> => ({
  planAssignment: (request) => plan(services, { kind: 'assignment', name: request.params.name }, request),
  applyAssignment: (request) => apply(services, { kind: 'assignment', name: request.params.name }, request),
});

type RequestOf<H> = H extends (request: infer R) => unknown ? R : never;
type PlanRequest = Omit<RequestOf<Handler<AssignmentRoutes['planAssignment']>>, 'params'>;
type ApplyRequest = Omit<RequestOf<Handler<AssignmentRoutes['applyAssignment']>>, 'params'>;

/** Returns the agents that a body chooses. Throws `invalid_body` unless it chooses them in exactly one way. */
function chosen({ selector = null, agents = null }: RequestOf<Handler<Routes['planRollout']>>['body']): RolloutTarget {
  if (selector !== null && agents === null) return { kind: 'selector', selector };
  if (agents !== null && selector === null) return { kind: 'agents', nodeIds: agents };
  const found = agents === null ? 'neither' : 'both';
  throw new Fault('invalid_body', `a rollout takes either "selector" or "agents", and the body has ${found}`);
}

const getRollout =
  ({ rollouts, rolloutRights }: RolloutServices): Handler<Routes['getRollout']> =>
  async (request) => {
    const { params, query, rights, signal, stream } = request;
    const { rollout_id } = params;
    const check = (now: Rights) => rolloutRights.requireOf(rollouts, rollout_id, 'read', now);
    await check(rights);
    request.keepPermitted(check);
    if (stream !== null) {
      await rollouts.follow(rollout_id, { write: stream, showsResources: query.progress === true, signal });
    }
    return { status: 200, body: await rollouts.get(rollout_id) };
  };

async function plan({ rollouts, sources, oneOff }: RolloutServices, target: RolloutTarget, request: PlanRequest) {
  const { body, context, signal, stream } = request;
  const lines = stream === null ? null : new PlanLines(stream, body.progress === true);
  const sent = await sources(body.sources ?? [], context.actor.id);
  const order = {
    target,
    modules: body.modules ?? [],
    pace: paceOf(body),
    sent,
    oneOff: await oneOff(body.values, sent, context.actor.id),
    signal,
    onAdmitted: request.keepPermitted.bind(request),
  };
  const result = await rollouts.plan(order, context, lines);
  await lines?.write({ event: 'result', result });
  return { status: 200, body: result } as const;
}

async function apply({ rollouts, sources, oneOff }: RolloutServices, target: RolloutTarget, request: ApplyRequest) {
  const { body, context, signal, stream } = request;
  const sent = await sources(body.sources ?? [], context.actor.id);
  const order = {
    target,
    modules: body.modules ?? [],
    sent,
    oneOff: await oneOff(body.values, sent, context.actor.id),
    pace: paceOf(body),
    limits: limitsOf(body),
    expect: body.expect ?? null,
    onAdmitted: request.keepPermitted.bind(request),
  };
  if (body.wait === false) return { status: 202, body: (await rollouts.apply(order, context)).result() } as const;
  if (stream === null) {
    return { status: 200, body: await rollouts.settled(await rollouts.apply(order, context), signal) } as const;
  }
  const watch = { write: stream, showsResources: body.progress === true, signal };
  return { status: 200, body: await rollouts.applyAndFollow(order, context, watch) } as const;
}

type PaceBody = Pick<PlanRequest['body'], 'concurrency' | 'canary' | 'max_failures'> &
  Partial<Pick<ApplyRequest['body'], 'waves' | 'soak_secs' | 'on_failure' | 'skip_offline' | 'when_online_secs'>>;

const paceOf = (body: PaceBody): RequestedPace => ({
  concurrency: body.concurrency ?? null,
  canary: body.canary ?? null,
  waves: body.waves ?? [],
  soakSecs: body.soak_secs ?? 0,
  maxFailures: body.max_failures ?? null,
  onFailure: body.on_failure ?? 'halt',
  skipOffline: body.skip_offline ?? false,
  whenOnlineSecs: body.when_online_secs ?? null,
});

/** Number of waiting lines from which resources are left out. */
const MOST_WAITING = 256;

/** Writes the lines of plans to the stream one at a time, in order. */
class PlanLines implements PlanWatcher {
  readonly onResource: PlanWatcher['onResource'];
  private readonly stream: (line: RolloutEvent) => Promise<void>;
  private written: Promise<void> = Promise.resolve();
  private waiting = 0;

  constructor(stream: (line: RolloutEvent) => Promise<void>, showsResources: boolean) {
    this.stream = stream;
    this.onResource = showsResources
      ? ({ node_id, name }, result) => this.writeResource({ node_id, name }, result)
      : null;
  }

  readonly onStarted = (rollout_id: string, agents: number): void =>
    void this.write({ event: 'started', rollout_id, agents });

  readonly onAgent: PlanWatcher['onAgent'] = (agent) => this.write({ event: 'agent', agent });

  write(line: RolloutEvent): Promise<void> {
    this.waiting += 1;
    this.written = this.written
      .then(() => this.stream(line))
      .then(() => {
        this.waiting -= 1;
      });
    return this.written;
  }

  private writeResource(agent: Pick<AgentRow, 'node_id' | 'name'>, result: ResourceResult): void {
    if (this.waiting >= MOST_WAITING) return;
    const { module, kind, identity, action, status } = result;
    void this.write({ event: 'resource', ...agent, resource: { module, kind, identity, action, status } });
  }
}
