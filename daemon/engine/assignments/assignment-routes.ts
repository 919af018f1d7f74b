/** HTTP handlers of assignments and their rollouts. */
import { type assignmentRoutes, ROLLOUT_CONCURRENCY, type RolloutEvent } from '../../../src/contract/assignments.js';
import { clampLimit } from '../../../src/contract/shapes.js';
import type { Handler, HandlersFor } from '../../http/handler.js';
import type { CurrentModules } from '../modules/current-modules.js';
import type { Assignments } from './assignments.js';
import type { Rollouts, RolloutWatcher } from './rollout.js';

interface AssignmentServices {
  readonly assignments: Assignments;
  readonly rollouts: Rollouts;
  /** Parses the modules that a request carries as text. */
  readonly sources: CurrentModules['read'];
}

type Routes = typeof assignmentRoutes;

export const assignmentHandlers = ({ assignments, rollouts, sources }: AssignmentServices): HandlersFor<Routes> => ({
  listAssignments: async () => ({ status: 200, body: await assignments.list() }),
  createAssignment: async ({ body, context }) => ({
    status: 201,
    body: await assignments.create({ ...body, description: body.description ?? null }, context),
  }),
  getAssignment: async ({ params }) => ({ status: 200, body: await assignments.get(params.name) }),
  updateAssignment: async ({ params, body, context }) => {
    const { modules = null, selector = null, description = null } = body;
    return { status: 200, body: await assignments.update(params.name, { modules, selector, description }, context) };
  },
  removeAssignment: async ({ params, context }) => {
    await assignments.remove(params.name, context);
    return { status: 204, body: undefined };
  },
  planAssignment: planAssignment(rollouts, sources),
  applyAssignment: applyAssignment(rollouts),
  cancelRollout: async ({ params, context }) => {
    const { rollout_id } = params;
    return { status: 202, body: { rollout_id, cancelled: await rollouts.cancel(rollout_id, context) } };
  },
});

const planAssignment =
  (rollouts: Rollouts, sources: CurrentModules['read']): Handler<Routes['planAssignment']> =>
  async ({ params, body, context, signal, stream }) => {
    const lines = stream === null ? null : new Lines(stream);
    const sent = await sources(body.sources ?? []);
    const result = await rollouts.plan({ ...requestOf(params.name, body), sent, signal }, context, lines);
    await lines?.write({ event: 'result', result });
    return { status: 200, body: result };
  };

const applyAssignment =
  (rollouts: Rollouts): Handler<Routes['applyAssignment']> =>
  async ({ params, body, context, stream }) => {
    const isAwaited = body.wait !== false;
    const lines = stream === null || !isAwaited ? null : new Lines(stream);
    const { rollout, finished } = await rollouts.apply(
      {
        ...requestOf(params.name, body),
        allowRemovals: body.allow_removals ?? null,
        expect: body.expect ?? null,
      },
      context,
      lines,
    );
    if (!isAwaited) return { status: 202, body: rollout };
    const result = await finished;
    await lines?.write({ event: 'result', result });
    return { status: 200, body: result };
  };

type RolloutBody = Parameters<Handler<Routes['planAssignment']>>[0]['body'];

const requestOf = (
  assignment: string,
  { modules, concurrency, canary, max_failures }: Omit<RolloutBody, 'sources'>,
) => ({
  assignment,
  modules: modules ?? [],
  concurrency: clampLimit(concurrency, ROLLOUT_CONCURRENCY.standard, ROLLOUT_CONCURRENCY.maximum),
  canary: canary ?? 0,
  maxFailures: max_failures ?? null,
});

/** Writes rollout events to the stream one line at a time, in order. */
class Lines implements RolloutWatcher {
  private readonly stream: (line: RolloutEvent) => Promise<void>;
  private written: Promise<void> = Promise.resolve();

  constructor(stream: (line: RolloutEvent) => Promise<void>) {
    this.stream = stream;
  }

  readonly onStarted = (rollout_id: string, agents: number): void =>
    void this.write({ event: 'started', rollout_id, agents });

  readonly onAgent: RolloutWatcher['onAgent'] = (agent) => this.write({ event: 'agent', agent });

  write(line: RolloutEvent): Promise<void> {
    this.written = this.written.then(() => this.stream(line));
    return this.written;
  }
}
