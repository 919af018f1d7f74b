/** The commands of `orch rollouts`. */
import type { RolloutRecord } from '../../contract/rollouts.js';
import type { Context } from '../context.js';
import { argument, defineCommand } from '../define-command.js';
import { count, timeCells } from '../format.js';
import { choice, integer, text } from '../options.js';
import { type Line, lines, type Outcome, proseOf } from '../outcome.js';
import { operatorNames } from '../record-names.js';
import { watchRollout } from '../runs/follow-rollout.js';
import { expectingRollout } from '../runs/other-id.js';
import {
  exitStatusOfRollout,
  nextStepLines,
  ROLLOUT_STATES,
  rolloutSentence,
  rolloutSubject,
} from '../runs/rollout-record.js';
import { ROLLOUT_COLUMNS, rolloutDetails, rolloutTable } from '../runs/rollout-view.js';
import { watchList, watchOption } from '../watch-list.js';

const rolloutArgument = argument('ID', 'rollout ID, as "orch rollouts" shows it', 'rollout');

/** `orch rollouts list`. */
export const listRollouts = defineCommand({
  examples: [
    'orch rollouts',
    'orch rollouts --watch',
    'orch rollouts --state halted',
    'orch rollouts --assignment web -o wide',
  ],
  detail: ['DONE is the number of agents that succeeded, of all agents. Plans are not listed.'],
  access: 'viewer',
  columns: ROLLOUT_COLUMNS,
  options: {
    state: choice('STATE', ROLLOUT_STATES, 'in this state'),
    assignment: text('ASSIGNMENT', 'filter by assignment', { completes: 'assignment' }),
    limit: integer('N', 'maximum number, newest first [50]', 1),
    offset: integer('N', 'number of newest rollouts to skip'),
    watch: watchOption,
  },
  run: async (context, { state, assignment, limit, offset, watch }) => {
    const api = await context.api();
    const query = {
      state: state ?? null,
      assignment: assignment ?? null,
      limit: limit ?? null,
      offset: offset ?? null,
    };
    const read = async (reading: Context): Promise<Outcome> => {
      const body = await api.call('listRollouts', { query, signal: reading.signal });
      const shown = body.offset + body.rollouts.length;
      if (shown < body.total) reading.note(`${shown} of ${body.total}; more with --offset ${shown}`);
      return {
        body,
        records: body.rollouts,
        names: body.rollouts.map(({ rollout_id }) => rollout_id),
        view: rolloutTable(body.rollouts, {
          nameOf: await operatorNames(reading, api),
          timeOf: timeCells(reading.clock.now(), reading.globals),
          filtered: [state, assignment, offset].some((given) => given !== undefined),
        }),
      };
    };
    // The agents of a rollout write events of other categories.
    return watch ? watchList(context, api, { read, category: null }) : read(context);
  },
});

/** `orch rollouts show`. */
export const showRollout = defineCommand({
  examples: ['orch rollouts show 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: [
    'Agents that did not succeed come first, each error with one operation to look at. With --verbose it names every agent.',
  ],
  access: 'viewer',
  args: { id: rolloutArgument },
  run: async (context, { id }) => {
    const { signal, globals } = context;
    const api = await context.api();
    const rollout = await expectingRollout(context, api, id, () =>
      api.call('getRollout', { params: { rollout_id: id }, signal }),
    );
    const nameOf = await operatorNames(context, api);
    return {
      body: rollout,
      names: [rollout.rollout_id],
      view: rolloutDetails(rollout, { nameOf, verbose: globals.verbose }),
    };
  },
});

/** `orch rollouts watch`. */
export const watchRollouts = defineCommand({
  examples: ['orch rollouts watch 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: [
    'Follows until the rollout has ended or halted, also while the orchestrator restarts. Ends like the apply: with 0',
    'if it succeeded, with 5 if the only failures are offline agents, and usually with 3 otherwise. Ctrl-C leaves the',
    'rollout running.',
  ],
  access: 'viewer',
  args: { id: rolloutArgument },
  run: async (context, { id }) => {
    const { signal, globals } = context;
    const api = await context.api();
    const first = await expectingRollout(context, api, id, () =>
      api.call('getRollout', { params: { rollout_id: id }, signal }),
    );
    const rollout = await watchRollout(context, api, first);
    const nameOf = await operatorNames(context, api);
    return {
      body: rollout,
      names: [rollout.rollout_id],
      view: rolloutDetails(rollout, { nameOf, verbose: globals.verbose }),
      exitStatus: exitStatusOfRollout(rollout, rollout.agents),
    };
  },
});

/** `orch rollouts pause`. */
export const pauseRollout = defineCommand({
  examples: ['orch rollouts pause 01JQ2Z6T0V5X8Y4M3N7P9R1S2T --reason "errors on the load balancer"'],
  detail: ['Agents in flight finish.'],
  access: 'operator',
  args: { id: rolloutArgument },
  options: { reason: text('TEXT', 'reason of the pause, for other operators') },
  run: async (context, { id, reason }) => {
    const api = await context.api();
    const rollout = await expectingRollout(context, api, id, () =>
      api.call('pauseRollout', {
        params: { rollout_id: id },
        body: { reason: reason ?? null },
        signal: context.signal,
      }),
    );
    const { running } = rollout.counts;
    const flight = `  ${count(running, 'agent')} in flight ${running === 1 ? 'finishes' : 'finish'}.`;
    return changedOutcome(rollout, running === 0 ? [] : [flight]);
  },
});

/** `orch rollouts resume`. */
export const resumeRollout = defineCommand({
  examples: ['orch rollouts resume 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: [
    'Continues with the agents that have not begun. Failures so far no longer count against its bounds. "orch',
    'rollouts retry" applies again to agents that failed.',
  ],
  access: 'operator',
  consent: true,
  args: { id: rolloutArgument },
  run: async (context, { id }) => {
    const { signal } = context;
    const api = await context.api();
    const params = { rollout_id: id };
    if (!context.globals.yes) {
      const rollout = await expectingRollout(context, api, id, () => api.call('getRollout', { params, signal }));
      const { waiting } = rollout.counts;
      if (rollout.state === 'paused' || rollout.state === 'halted') {
        await context.prompt.consent(
          `Resume the rollout of ${rolloutSubject(rollout)}, with ${count(waiting, 'waiting agent')}?`,
        );
      }
    }
    const resumed = await expectingRollout(context, api, id, () => api.call('resumeRollout', { params, signal }));
    return changedOutcome(resumed);
  },
});

/** `orch rollouts retry`. */
export const retryRollout = defineCommand({
  examples: ['orch rollouts retry 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: [
    'Applies within the same rollout to the agents that failed, were offline or were skipped. It must have ended or',
    'halted.',
  ],
  access: 'operator',
  consent: true,
  args: { id: rolloutArgument },
  run: async (context, { id }) => {
    const { signal } = context;
    const api = await context.api();
    const params = { rollout_id: id };
    if (!context.globals.yes) {
      const rollout = await expectingRollout(context, api, id, () => api.call('getRollout', { params, signal }));
      const { failed, unreachable, skipped } = rollout.counts;
      const again = failed + unreachable + skipped;
      if (again > 0) {
        await context.prompt.consent(
          `Apply ${rolloutSubject(rollout)} again to ${count(again, 'agent')} (${failed} failed, ${unreachable} offline, ${skipped} skipped)?`,
        );
      }
    }
    const retried = await expectingRollout(context, api, id, () => api.call('retryRollout', { params, signal }));
    return changedOutcome(retried);
  },
});

/** `orch rollouts cancel`. */
export const cancelRollout = defineCommand({
  examples: ['orch rollouts cancel 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: ['Cancels the applies in flight at the next resource. Also ends a paused or halted rollout. Undoes nothing.'],
  access: 'operator',
  args: { id: rolloutArgument },
  run: (context, { id }) => cancelOneRollout(context, id),
});

/** Returns the outcome of a request that changed the state of a rollout. */
const changedOutcome = (rollout: RolloutRecord, notes: readonly Line[] = []): Outcome => ({
  body: rollout,
  names: [rollout.rollout_id],
  view: proseOf([rolloutSentence(rollout), ...notes, ...nextStepLines(rollout)]),
});

/** Cancels a rollout, also for `orch ops cancel --rollout`. */
export async function cancelOneRollout(context: Context, id: string): Promise<Outcome> {
  const { signal } = context;
  const api = await context.api();
  const params = { rollout_id: id };
  const body = await expectingRollout(context, api, id, () => api.call('cancelRollout', { params, signal }));
  const { length } = body.cancelled;
  const operations =
    length === 0
      ? ''
      : `, and ${count(length, 'operation')} of it ${length === 1 ? 'stops' : 'stop'} at the next resource`;
  return {
    body,
    names: body.cancelled,
    view: lines(`Rollout ${id} starts no further agent${operations}.`, `  see it: orch rollouts show ${id}`),
  };
}
