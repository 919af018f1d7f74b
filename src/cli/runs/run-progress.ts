/** Tells on standard error how runs on one or several agents get on. */
import type { ResourceResult } from '../../resources/result.js';
import type { Context } from '../context.js';
import { agentName, count } from '../format.js';
import type { RunKind } from '../render/plan.js';
import { isNoteworthy, resourceName } from '../render/resource.js';
import { type AgentRun, hasResult, type RunAgent, standingOf } from './agent-run.js';

export interface RunProgress {
  resource(agent: RunAgent, resource: ResourceResult): void;
  finished(run: AgentRun): void;
}

const DOING: Readonly<Record<RunKind, string>> = { plan: 'planning', apply: 'applying', drift: 'checking' };
/** What it tells of the resources that are not as they should be, or were not. */
const FOUND: Readonly<Record<RunKind, string>> = { plan: 'to change', apply: 'changed', drift: 'different' };

/** @param agents how many there are: one is told by its resources, several by the agents */
export function createRunProgress({ progress, globals }: Context, kind: RunKind, agents: number): RunProgress {
  let finished = 0;
  let resources = 0;
  let changes = 0;
  const tell = (last: string) => {
    const done = agents === 1 ? '' : `${bar(finished, agents)} ${finished} of ${count(agents, 'agent')}, `;
    progress.live(`${DOING[kind]}: ${done}${count(resources, 'resource')}, ${count(changes, 'change')}  ${last}`);
  };
  return {
    resource: (agent, resource) => {
      resources += 1;
      if (isNoteworthy(resource)) changes += 1;
      const name = `${agentName(agent)}: ${resource.status} ${resourceName(resource)}`;
      tell(name);
      if (agents > 1 || kind !== 'apply') return;
      if (globals.verbose || isNoteworthy(resource)) progress.step(name);
    },
    finished: (run) => {
      finished += 1;
      tell(agentName(run.agent));
      if (agents > 1) progress.step(`${agentName(run.agent)}: ${standing(run, kind)}`);
    },
  };
}

function standing(run: AgentRun, kind: RunKind): string {
  if (!hasResult(run)) return run.fault.message;
  const { changed, pending, failed, unchanged } = run.result.summary;
  const counts = `${changed + pending} ${FOUND[kind]}, ${failed} failed, ${unchanged} unchanged`;
  return `${standingOf(run)} (${counts})`;
}

const WIDTH = 20;
const bar = (done: number, all: number): string => {
  const filled = Math.round((done / all) * WIDTH);
  return `[${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}]`;
};
