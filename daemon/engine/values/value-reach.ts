/** Finds the agents whose values change with a change of the value sets. */
import type { ReachedAgent } from '../../../src/contract/values.js';
import { ASSIGNMENT_MODES } from '../../../src/kernel/assignment-modes.js';
import { isSameJson } from '../../../src/kernel/json.js';
import type { Steps } from '../../../src/kernel/steps.js';
import { valueSteps, valuesFor } from '../../../src/language/inputs/choose.js';
import { type SetValues, withAssignments } from '../../../src/language/inputs/fleet-values.js';
import { matches } from '../../../src/language/selector.js';
import { getMeta } from '../../database/meta.js';
import type { Queryable } from '../../database/schema.js';
import { listAgents } from '../../fleet/agent-store.js';
import { tagsByAgent } from '../../fleet/tag-store.js';
import { factsOf } from '../applies/desired-set.js';
import { type CurrentAssignments, labelsOf } from '../assignments/assignment-store.js';
import type { CurrentModule, CurrentModules } from '../modules/current-modules.js';
import { agentsWithValues } from '../modules/followers.js';
import { MODULES_REVISION } from '../modules/module-store.js';
import { triedTexts } from '../modules/source-store.js';
import { listStateOperations } from '../operations/operation-store.js';
import type { RunContents } from '../runs/run-contents.js';
import { inSlices } from '../slices.js';

interface ReachOptions {
  readonly assignments: CurrentAssignments;
  readonly current: CurrentModules;
  readonly contents: RunContents;
}

interface Change {
  readonly before: SetValues;
  readonly after: SetValues;
}

/** Returns the approved agents with a module whose values differ, by name. */
export async function valueReach(
  db: Queryable,
  { assignments: all, current, contents }: ReachOptions,
  change: Change,
): Promise<ReachedAgent[]> {
  const agents = await listAgents(db, { status: 'approved' });
  const [tags, tried, assignments] = [await tagsByAgent(db), await triedTexts(db), await all.all(db)];
  const requested = new Map<string, ReadonlySet<string>>();
  const applied = await listStateOperations(db);
  const own = agentsWithValues(applied);
  for (const { node_id, content_id } of applied) {
    if (content_id !== null) requested.set(node_id, (await contents.get(db, content_id)).adHoc);
  }
  const names = new Set([
    ...assignments.flatMap(({ modules }) => modules),
    ...[...requested.values()].flatMap((own) => [...own]),
  ]);
  const revision = await getMeta(db, MODULES_REVISION);
  const found = await current.find(db, await current.present(db, [...names], revision), { revision });
  const modules = new Map(found.map((module) => [module.name, module]));
  return inSlices(
    (function* (): Steps<ReachedAgent[]> {
      const reached: ReachedAgent[] = [];
      for (const agent of agents) {
        const ownTags = tags.get(agent.node_id) ?? {};
        const labels = labelsOf(agent, ownTags);
        const matching = assignments.filter(({ selector }) => matches(selector, labels));
        const given = [...matching.flatMap((one) => one.modules), ...(requested.get(agent.node_id) ?? [])];
        const facts = factsOf(agent, ownTags);
        const [before, after] = [change.before, change.after].map((set) =>
          valuesFor(withAssignments(set, matching), facts),
        );
        if (before === undefined || after === undefined) continue;
        const changed: CurrentModule[] = [];
        const problems: string[] = [];
        for (const name of new Set(given)) {
          const module = modules.get(name);
          if (module === undefined) continue;
          const was = yield* valueSteps(module.compiled, before);
          const is = yield* valueSteps(module.compiled, after);
          const isSame = isSameJson(was.inputs, is.inputs) && isSameJson(was.shared, is.shared);
          const isAsWrong = isSameJson(
            was.problems.map(({ input }) => input),
            is.problems.map(({ input }) => input),
          );
          if (isSame && isAsWrong) continue;
          changed.push(module);
          problems.push(...is.problems.map(({ message }) => `module "${name}": ${message}`));
        }
        yield;
        if (changed.length === 0) continue;
        const isGiven = (one: { readonly modules: readonly string[] }) =>
          changed.some(({ name }) => one.modules.includes(name));
        const ranks = matching.filter(isGiven).map(({ mode }) => ASSIGNMENT_MODES.indexOf(mode));
        reached.push({
          node_id: agent.node_id,
          name: agent.name,
          mode: ASSIGNMENT_MODES[Math.max(...ranks)] ?? null,
          on_trial: tried.has(agent.node_id),
          ...(own.has(agent.node_id) && { own_values: true }),
          modules: changed.map(({ name }) => name),
          problem: problems[0] ?? null,
        });
      }
      return reached;
    })(),
  );
}
