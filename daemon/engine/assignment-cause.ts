/** Why no assignment gives a module to an agent any more: the assignment was deleted or changed, or a tag was. */
import type { AgentLabels } from '../../src/language/clause.js';
import { matches, type Selector } from '../../src/language/selector.js';
import type { CurrentAssignment } from './current-assignments.js';
import type { Deed } from './removal-cause.js';

/** What an assignment was before or after a change. */
export interface AssignmentContent {
  readonly modules: readonly string[];
  readonly selector: string;
}

export interface AssignmentChange {
  readonly name: string;
  /** Unix milliseconds. */
  readonly at: number;
  readonly deed: Deed;
  readonly before: AssignmentContent;
  /** Null when it was deleted. */
  readonly after: AssignmentContent | null;
}

export interface TagChange {
  /** Unix milliseconds. */
  readonly at: number;
  readonly deed: Deed;
  readonly before: AgentLabels['tags'];
  readonly after: AgentLabels['tags'];
}

export interface AssignmentHistory {
  /** Those of now. */
  readonly assignments: readonly CurrentAssignment[];
  /** Newest first. */
  readonly changes: readonly AssignmentChange[];
  /** Of the agent, newest first. */
  readonly tagChanges: readonly TagChange[];
  /** Of the agent, as they are now. */
  readonly attributes: AgentLabels['attributes'];
}

/** One clause for a message, or null when the history does not tell. `since` is when the resource was applied. */
export function assignmentCause(module: string, since: number, history: AssignmentHistory): string | null {
  return (
    causeOfChange(
      module,
      history.changes.filter(({ at }) => at >= since),
    ) ?? causeOfTags(module, since, history)
  );
}

/** The newest change that took the module away from somebody. */
function causeOfChange(module: string, changes: readonly AssignmentChange[]): string | null {
  for (const { name, deed, before, after } of changes) {
    if (!before.modules.includes(module)) continue;
    const by = `by ${deed.who} at ${deed.when}`;
    if (after === null) return `assignment ${name} was deleted ${by}`;
    if (!after.modules.includes(module)) return `module ${module} was taken out of assignment ${name} ${by}`;
    if (after.selector !== before.selector) {
      return `the selector of assignment ${name} was changed from "${before.selector}" to "${after.selector}" ${by}`;
    }
  }
  return null;
}

/** The newest change of tags after which an assignment of the module did not match any more. */
function causeOfTags(module: string, since: number, history: AssignmentHistory): string | null {
  const { attributes, tagChanges, assignments } = history;
  for (const { name, selector, modules } of assignments) {
    if (!modules.includes(module)) continue;
    const change = tagChanges.find(
      ({ at, before, after }) =>
        at >= since &&
        matches(selector, { attributes, tags: before }) &&
        !matches(selector, { attributes, tags: after }),
    );
    if (change === undefined) continue;
    const { deed } = change;
    return `assignment ${name} (${selector.text}) does not match any more: ${tagsThatChanged(selector, change)} by ${deed.who} at ${deed.when}`;
  }
  return null;
}

/** `tag role=web was removed`, of the tags that the selector asks for. */
function tagsThatChanged({ terms }: Selector, { before, after }: TagChange): string {
  const keys = [...new Set(terms.map(({ key }) => key))].filter((key) => key.startsWith('tag.'));
  const told = keys.map((key) => key.slice('tag.'.length)).flatMap((key) => changeOf(key, before[key], after[key]));
  return told.length === 0 ? 'the tags were changed' : told.join(' and ');
}

function changeOf(key: string, before: string | undefined, after: string | undefined): readonly string[] {
  if (before === after) return [];
  if (before === undefined) return [`tag ${shown(key, after ?? '')} was set`];
  if (after === undefined) return [`tag ${shown(key, before)} was removed`];
  return [`tag ${key} was changed from "${before}" to "${after}"`];
}

const shown = (key: string, value: string): string => (value === '' ? key : `${key}=${value}`);
