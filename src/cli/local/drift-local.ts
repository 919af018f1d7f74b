/** `orch drift --local`. */
import { Fault } from '../../kernel/fault.js';
import { CATALOGUE } from '../../resources/catalogue.js';
import type { DesiredResource } from '../../resources/desired.js';
import { maskResource } from '../../resources/tainted-body.js';
import type { Context } from '../context.js';
import type { Outcome } from '../outcome.js';
import { runAgents } from '../runs/run-agents.js';
import { runOutcome } from '../runs/run-outcome.js';
import { type Applied, resourceKey } from './believed-state.js';
import { localDesired } from './local-desired.js';
import type { LocalChoice } from './local-options.js';
import { driftDetailOf } from './local-result.js';
import { type LocalSession, withLocal } from './local-session.js';

/** Throws `no_snapshot` when nothing was ever applied. */
export const driftLocal = (context: Context, choice: LocalChoice, detailed: boolean): Promise<Outcome> =>
  withLocal(context, choice, async (session) => {
    const operationId = session.state.operation_id;
    if (operationId === null) throw noSnapshot(session);
    const resources = toCompare(context, session, choice);
    const runs = await runAgents(context, {
      kind: 'drift',
      agents: [session.agent],
      run: async (agent, progress) => {
        const startedAt = context.clock.now();
        const outcome = await session.machine.drift(
          { resources, removals: [] },
          {
            signal: context.signal,
            onResults: (items) => {
              for (const { result } of items) progress.resource(agent, result);
            },
          },
        );
        const driftId = session.machine.newId();
        const finishedAt = context.clock.now();
        return driftDetailOf(session, { driftId, operationId, outcome, startedAt, finishedAt });
      },
    });
    return runOutcome(runs, { kind: 'drift', detailed, verbose: context.globals.verbose });
  });

/** What was applied, with its secrets where files and secrets give them again; the others are not compared. */
function toCompare(context: Context, session: LocalSession, { file }: LocalChoice): readonly DesiredResource[] {
  const wanted = file.length === 0 ? [] : localDesired(session, file).resources;
  const byKey = new Map(wanted.map((resource) => [resourceKey(resource), resource]));
  return session.state.applied.flatMap((applied) => {
    const { module, kind, identity, id, name, body, taint } = applied;
    const resource = { module, kind, identity, id, name, body, after: [] };
    if (taint === undefined || Object.keys(taint).length === 0) return resource;
    const again = byKey.get(resourceKey(applied));
    if (again !== undefined && isSame(applied, maskResource(again))) {
      return { ...resource, body: again.body, ...(again.taint ? { taint: again.taint } : {}) };
    }
    const fields = [...new Set(Object.keys(taint).map((path) => path.split('/')[1] ?? ''))];
    const left = new Set(fields.flatMap((field) => [field, ...boundTo(kind, field)]));
    const why =
      again === undefined ? 'give -f and --secret-file' : 'a value or the module is another one than at the last apply';
    context.warn(`${kind} ${identity}: ${fields.join(', ')} holds a secret and is not compared; ${why}`);
    // What cannot be without them is not compared at all.
    if (requiredBy(kind).some((field) => left.has(field))) return [];
    return { ...resource, body: Object.fromEntries(Object.entries(body).filter(([field]) => !left.has(field))) };
  });
}

/** What cannot be compared without that field. */
function boundTo(kind: string, field: string): readonly string[] {
  const { inseparable = [] }: { readonly inseparable?: readonly string[] } = CATALOGUE.get(kind) ?? {};
  return inseparable.includes(field) ? inseparable : [];
}

function requiredBy(kind: string): readonly string[] {
  const { required = [] }: { readonly required?: readonly string[] } = CATALOGUE.get(kind)?.schema ?? {};
  return required;
}

/** With every secret masked, whose mark tells whether its value is the same. */
const isSame = ({ body }: Applied, masked: DesiredResource): boolean =>
  JSON.stringify(body) === JSON.stringify(masked.body);

const noSnapshot = ({ agent }: LocalSession): Fault =>
  new Fault(
    'no_snapshot',
    `nothing was ever applied to ${agent.name} with --local, so there is nothing to compare with`,
    {
      hint: 'apply something first: orch apply --local -f FILE',
    },
  );
