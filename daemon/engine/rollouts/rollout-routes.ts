/** HTTP handlers of rollouts, and those that plan and apply an assignment. */
import type { assignmentRoutes } from '../../../src/contract/assignments.js';
import { ROLLOUT_CONCURRENCY } from '../../../src/contract/rollout-concurrency.js';
import type { RolloutEvent, rolloutRoutes } from '../../../src/contract/rollouts.js';
import { clampLimit } from '../../../src/contract/shapes.js';
import { Fault } from '../../../src/kernel/fault.js';
import type { ResourceResult } from '../../../src/resources/result.js';
import type { AgentRow } from '../../fleet/agent-store.js';
import type { Handler, HandlersFor } from '../../http/handler.js';
import type { CurrentModules } from '../modules/current-modules.js';
import type { RolloutTarget } from './rollout-target.js';
import type { Rollouts, RolloutWatcher } from './rollouts.js';

export interface RolloutServices {
  readonly rollouts: Rollouts;
  /** Parses the modules that a request carries as text. */
  readonly sources: CurrentModules['read'];
}

type Routes = typeof rolloutRoutes;
type AssignmentRoutes = Pick<typeof assignmentRoutes, 'planAssignment' | 'applyAssignment'>;

export const rolloutHandlers = (services: RolloutServices): HandlersFor<Routes> => ({
  planRollout: (request) => plan(services, chosen(request.body), request),
  applyRollout: (request) => apply(services, chosen(request.body), request),
  cancelRollout: async ({ params, context }) => {
    const { rollout_id } = params;
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

async function plan({ rollouts, sources }: RolloutServices, target: RolloutTarget, request: PlanRequest) {
  const { body, context, signal, stream } = request;
  const lines = stream === null ? null : new Lines(stream, body.progress === true);
  const sent = await sources(body.sources ?? []);
  const result = await rollouts.plan({ ...orderOf(target, body), sent, signal }, context, lines);
  await lines?.write({ event: 'result', result });
  return { status: 200, body: result } as const;
}

async function apply({ rollouts }: RolloutServices, target: RolloutTarget, request: ApplyRequest) {
  const { body, context, stream } = request;
  const isAwaited = body.wait !== false;
  const lines = stream === null || !isAwaited ? null : new Lines(stream, body.progress === true);
  const order = { allowRemovals: body.allow_removals ?? null, expect: body.expect ?? null };
  const { rollout, finished } = await rollouts.apply({ ...orderOf(target, body), ...order }, context, lines);
  if (!isAwaited) return { status: 202, body: rollout } as const;
  const result = await finished;
  await lines?.write({ event: 'result', result });
  return { status: 200, body: result } as const;
}

const orderOf = (
  target: RolloutTarget,
  { modules, concurrency, canary, max_failures }: Omit<PlanRequest['body'], 'sources'>,
) => ({
  target,
  modules: modules ?? [],
  concurrency: clampLimit(concurrency, ROLLOUT_CONCURRENCY.standard, ROLLOUT_CONCURRENCY.maximum),
  canary: canary ?? 0,
  maxFailures: max_failures ?? null,
});

/** Number of waiting lines from which resources are left out. */
const MOST_WAITING = 256;

/** Writes rollout events to the stream one line at a time, in order. */
class Lines implements RolloutWatcher {
  readonly onResource: RolloutWatcher['onResource'];
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

  readonly onAgent: RolloutWatcher['onAgent'] = (agent) => this.write({ event: 'agent', agent });

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
