/** `orch sync`: plans, checks and performs the update of an orchestrator from a directory. */

import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { Assignment } from '../../contract/assignments.js';
import { NO_REVISION } from '../../contract/run-targets.js';
import type { StoredValueSet } from '../../contract/values.js';
import { Fault, isFault } from '../../kernel/fault.js';
import { matches, parseSelector } from '../../language/selector.js';
import type { Context } from '../context.js';
import { argument, defineCommand } from '../define-command.js';
import { EXIT } from '../exit-status.js';
import { count, formatTime } from '../format.js';
import { allAgents } from '../list-pages.js';
import { differingFiles, fileDifferenceLines } from '../modules/files-beside.js';
import { allowAutomaticOption, consentToReach, type Reach, reached, reachLines, reachOf } from '../modules/reach.js';
import { uploadFile } from '../modules/send-modules.js';
import { valueReachOf, widestReachOf } from '../modules/value-reach.js';
import { flag } from '../options.js';
import { type Line, linesOf, proseOf, type Style, stackOf, styled, type View } from '../outcome.js';
import { type NameOfOperator, operatorNames } from '../record-names.js';
import { textDiff, textDiffLines } from '../render/text-diff.js';
import { refuseConflicts, refuseMissingModules, refuseWrongValues } from '../sync/sync-check.js';
import { readSync } from '../sync/sync-files.js';
import {
  assignmentDifferences,
  modeOf,
  planSync,
  readStored,
  type Stored,
  type SyncAction,
  type SyncPlan,
} from '../sync/sync-plan.js';

export const command = defineCommand({
  examples: ['orch sync site/ --plan', 'orch sync site/', 'orch sync site/ --prune --yes'],
  detail: [
    'Makes the modules, value sets and assignments of the orchestrator match a directory. Every *.orch.yaml at any',
    'depth is a module, and each NAME.values.yaml the value set NAME. assignments.yaml and *.assignments.yaml list',
    'assignments (name, modules, selector, description, mode, values). It sends nothing unless every file is valid,',
    'each assignment finds its modules, and the modules of each agent do not conflict. It says whom modules and',
    'values reach and asks, as orch module publish does, also about --allow-automatic-applies. It replaces no',
    'revision that was stored meanwhile, and applies nothing itself. If it is cut off, run it again.',
    'Signs: + create, ~ update, - delete; --verbose shows the changes in modules.',
  ],
  access: 'operator',
  consent: true,
  args: { directory: argument('DIR', 'the directory, such as a checkout of a repository', 'file') },
  options: {
    prune: flag('delete modules, value sets and assignments that are in no file'),
    plan: flag('show the changes without making them'),
    allowAutomaticApplies: allowAutomaticOption,
    detailedExitcode: flag('end with 2 if the sync has changes'),
  },
  run: async (context, { directory, prune, plan: isPlan, allowAutomaticApplies, detailedExitcode }) => {
    const source = readSync(directory);
    const api = await context.api();
    const stored = await readStored(api, source, context.signal);
    refuseMissingModules(source, stored, prune);
    const plan = planSync(source, stored, prune);
    const { actions, extra } = plan;
    if (actions.length > 0) {
      const agents = await allAgents(api, { status: 'approved', signal: context.signal });
      await refuseWrongValues(context, api, source);
      await refuseConflicts(context, api, { source, stored, plan, agents });
      const reaches = await reachesOf(context, api, actions);
      if (isPlan) for (const line of reaches.flatMap((reach) => reachLines(reach))) context.note(line);
      else await consent(context, reaches, allowAutomaticApplies);
      const question = isPlan ? null : pruneQuestion(actions, stored, agents);
      if (question !== null) await context.prompt.consent(question);
      if (!isPlan) await performSync(context, api, actions);
    }
    const status = isPlan ? 'planned' : 'done';
    return {
      body: { has_changes: actions.length > 0, actions: actions.map((action) => stepOf(action, status)), extra },
      names: actions.map(({ name }) => name),
      view: syncView(plan, {
        isDone: !isPlan,
        verbose: context.globals.verbose,
        nameOf: await uploaders(context, api, plan),
      }),
      exitStatus: detailedExitcode && actions.length > 0 ? EXIT.changes : EXIT.done,
    };
  },
});

/** Returns the names of those who uploaded what a sync replaces; nothing is asked for without such modules. */
async function uploaders(context: Context, api: ApiClient, { actions }: SyncPlan): Promise<NameOfOperator> {
  const isAsked = actions.some((action) => action.kind !== 'assignment' && action.action === 'update');
  return isAsked ? operatorNames(context, api) : (id) => id;
}

/** Returns whom the changed modules and value sets reach. A new module reaches no machine before an assignment names it. */
async function reachesOf(context: Context, api: ApiClient, actions: readonly SyncAction[]): Promise<readonly Reach[]> {
  const reaches: Reach[] = [];
  for (const action of actions) {
    if (action.kind === 'assignment' || action.action === 'delete') continue;
    const { name, file } = action;
    if (action.kind === 'module' && action.action === 'create') continue;
    const reach =
      action.kind === 'module'
        ? await reachOf(context, api, { name, source: file.source, files: action.file.definition.files })
        : await reachOfValues(context, api, action);
    if (reached(reach) > 0) reaches.push(reach);
  }
  return reaches;
}

async function reachOfValues(
  context: Context,
  api: ApiClient,
  { file, stored }: Extract<SyncAction, { kind: 'values'; action: 'create' | 'update' }>,
): Promise<Reach> {
  try {
    return await valueReachOf(context, api, file);
  } catch (error) {
    // The files fit together, so that it needs modules which are not published yet.
    if (!isFault(error, 'invalid_values')) throw error;
    return widestReachOf(context, api, file, stored?.sha256 ?? NO_REVISION);
  }
}

/** Throws `cancelled`, or `confirmation_required` as `requireAllowed` does. */
async function consent(context: Context, reaches: readonly Reach[], isAllowed: boolean): Promise<void> {
  if (reaches.length === 0) return;
  if (await consentToReach(context, reaches, { isAllowed, question: 'Sync, and publish these?' })) return;
  throw new Fault('cancelled', 'not confirmed, nothing was changed');
}

/** An action in the JSON output. */
export interface SyncStep {
  readonly kind: SyncAction['kind'];
  readonly action: SyncAction['action'];
  readonly name: string;
  /** Path of the file; null for a deletion. */
  readonly path: string | null;
  readonly status: 'planned' | 'done' | 'failed' | 'not_done';
}

export const stepOf = (action: SyncAction, status: SyncStep['status']): SyncStep => ({
  kind: action.kind,
  action: action.action,
  name: action.name,
  path: pathOf(action),
  status,
});

/** Returns the file of an action; null for a deletion. */
export function pathOf(action: SyncAction): string | null {
  if (action.action === 'delete') return null;
  return action.kind === 'assignment' ? action.file.file.path : action.file.path;
}

/** Performs the actions in order. On failure it throws that fault, extended by the actions that were done and not done. */
export async function performSync(context: Context, api: ApiClient, actions: readonly SyncAction[]): Promise<void> {
  for (const [at, action] of actions.entries()) {
    try {
      await perform(context, api, action);
    } catch (error) {
      throw isFault(error) ? interrupted(error, actions, at) : error;
    }
  }
}

async function perform(context: Context, api: ApiClient, action: SyncAction): Promise<void> {
  const { signal } = context;
  const params = { name: action.name };
  if (action.action === 'delete') {
    if (action.kind === 'values') {
      const ifMatch = await tagOfValues(context, api, action.stored);
      await api.call('removeValueSet', { params, ifMatch, signal });
      return;
    }
    const id = action.kind === 'module' ? 'removeModule' : 'removeAssignment';
    const ifMatch = action.kind === 'assignment' ? await tagOf(context, api, action.stored) : undefined;
    await api.call(id, { params, ifMatch, signal });
    return;
  }
  if (action.kind === 'values') {
    const { name, source: content } = action.file;
    await api.call('uploadValueSet', {
      body: { name, content, replaces: action.stored?.sha256 ?? NO_REVISION },
      signal,
    });
    return;
  }
  if (action.kind === 'module') {
    const replaces = action.stored?.sha256 ?? NO_REVISION;
    await uploadFile(context, api, { ...action.file, files: action.file.definition.files, replaces });
    return;
  }
  const { name, modules, selector, description } = action.file;
  // An older orchestrator knows no values.
  const isValued = action.file.values !== undefined || action.stored?.values != null;
  const values = isValued ? { values: action.file.values ?? {} } : {};
  const mode = modeOf(action.file);
  if (action.action === 'create') {
    const body = { name, modules: [...modules], selector, description: description ?? null, mode, ...values };
    await api.call('createAssignment', { body, signal });
  } else {
    // Null would keep the old description, and no values the old ones.
    const body = { modules: [...modules], selector, description: description ?? '', mode, ...values };
    const ifMatch = action.stored === null ? undefined : await tagOf(context, api, action.stored);
    await api.call('updateAssignment', { params, body, ifMatch, signal });
  }
}

/** Returns the tag of a value set that is as the plan was made for. Throws `precondition_failed` for another. */
async function tagOfValues({ signal }: Context, api: ApiClient, planned: StoredValueSet): Promise<string | undefined> {
  const { name } = planned;
  const { body, headers } = await api.callWithHeaders('getValueSet', { params: { name }, signal });
  if (body.sha256 === planned.sha256) return headers.etag;
  throw new Fault('precondition_failed', `it has revision ${body.revision} since this sync was planned`, {
    hint: 'look at the plan again: orch sync DIR --plan',
  });
}

/** Returns the tag of an assignment that is as the plan was made for. Throws `precondition_failed` for another. */
async function tagOf({ signal }: Context, api: ApiClient, planned: Assignment): Promise<string | undefined> {
  const { name } = planned;
  const { body, headers } = await api.callWithHeaders('getAssignment', { params: { name }, signal });
  const changes = assignmentDifferences(planned, body);
  if (changes.length === 0) return headers.etag;
  const what = changes
    .map(({ field, before, after }) => `${field} from ${after || '-'} to ${before || '-'}`)
    .join(', ');
  throw new Fault('precondition_failed', `it was changed since this sync was planned: ${what}`, {
    hint: 'look at the plan again: orch sync DIR --plan',
  });
}

const VERBS: Readonly<Record<SyncAction['action'], string>> = {
  create: 'created',
  update: 'updated',
  delete: 'deleted',
};

const NOUNS: Readonly<Record<SyncAction['kind'], string>> = {
  module: 'module',
  values: 'value set',
  assignment: 'assignment',
};

const thing = ({ kind, name }: Pick<SyncAction, 'kind' | 'name'>): string => `${NOUNS[kind]} ${name}`;

function interrupted({ code, message, hint, errors, data }: Fault, actions: readonly SyncAction[], at: number): Fault {
  const failed = actions.slice(at, at + 1);
  const [done, left] = [actions.slice(0, at), actions.slice(at + 1)];
  const lines = failed.map((action) => `${thing(action)} could not be ${VERBS[action.action]}: ${message}`);
  if (done.length > 0)
    lines.push(`done before: ${done.map((action) => `${thing(action)} ${VERBS[action.action]}`).join(', ')}`);
  if (left.length > 0) lines.push(`not done: ${left.map(thing).join(', ')}`);
  const steps = [
    ...done.map((action) => stepOf(action, 'done')),
    ...failed.map((action) => stepOf(action, 'failed')),
    ...left.map((action) => stepOf(action, 'not_done')),
  ];
  const again = 'the same sync again goes on where this one stopped';
  return new Fault(code, lines.join('\n'), {
    hint: hint === undefined ? again : `${hint}\n${again}`,
    ...(errors === undefined ? {} : { errors }),
    data: { ...data, actions: steps },
  });
}

export interface SyncViewOptions {
  /** False for a preview. */
  readonly isDone: boolean;
  /** True to show the text diffs of modules. */
  readonly verbose: boolean;
  readonly nameOf: NameOfOperator;
}

export function syncView(plan: SyncPlan, options: SyncViewOptions): View {
  const { actions, extra } = plan;
  const shown = [
    ...sectionLines(
      'modules',
      actions.filter(({ kind }) => kind === 'module'),
      options,
    ),
    ...sectionLines(
      'value sets',
      actions.filter(({ kind }) => kind === 'values'),
      options,
    ),
    ...sectionLines(
      'assignments',
      actions.filter(({ kind }) => kind === 'assignment'),
      options,
    ),
  ];
  return stackOf([
    ...(shown.length === 0 ? [] : [linesOf(shown)]),
    proseOf([...extraLines(extra), countLine(plan, options)]),
  ]);
}

function sectionLines(title: string, actions: readonly SyncAction[], options: SyncViewOptions): readonly Line[] {
  if (actions.length === 0) return [];
  return [styled('accent', title), ...actions.flatMap((action) => actionLines(action, options))];
}

const SIGNS: Readonly<Record<SyncAction['action'], readonly [sign: string, style: Style]>> = {
  create: ['+', 'good'],
  update: ['~', 'warn'],
  delete: ['-', 'bad'],
};

function actionLines(action: SyncAction, options: SyncViewOptions): readonly Line[] {
  const [sign, style] = SIGNS[action.action];
  const path = pathOf(action);
  const head: Line = [
    styled(style, `  ${sign} ${action.name}`),
    ...(path === null ? [] : [styled('dim', `  (${path})`)]),
  ];
  return [head, ...detailLines(action, options)];
}

function detailLines(action: SyncAction, { verbose, nameOf }: SyncViewOptions): readonly Line[] {
  if (action.action === 'delete') return [];
  if (action.kind !== 'assignment') {
    const { name, file, stored } = action;
    if (stored === null) return [];
    const { revision, uploaded_by, uploaded_at } = stored;
    const text = `replaces revision ${revision}, uploaded by ${nameOf(uploaded_by)} ${formatTime(uploaded_at)}`;
    const files = action.kind === 'module' ? differingFiles(action.stored?.files, action.file.definition.files) : [];
    const replaced = [styled('dim', text), ...fileDifferenceLines(files)].map(indented);
    if (!verbose) return replaced;
    const before = { label: `${name} revision ${stored.revision}`, text: stored.content };
    const diff = textDiffLines(textDiff(before, { label: file.path, text: file.source }));
    return [...replaced, ...diff.map(indented)];
  }
  const { file, stored } = action;
  if (stored === null)
    return fieldLines([
      ['selector', file.selector],
      ['modules', file.modules.join(' ')],
    ]);
  const differences = assignmentDifferences(file, stored);
  return fieldLines(differences.map(({ field, before, after }) => [field, `${before || '-'} -> ${after || '-'}`]));
}

const indented = (line: Line): Line => ['      ', ...(Array.isArray(line) ? line : [line])];

function fieldLines(rows: readonly (readonly [field: string, value: string])[]): readonly Line[] {
  const width = rows.reduce((most, [field]) => Math.max(most, field.length), 0);
  return rows.map(([field, value]) => [styled('dim', `      ${field.padEnd(width)}  `), value]);
}

function extraLines(extra: SyncPlan['extra']): readonly Line[] {
  if (extra.length === 0) return [];
  const names = extra.map(thing).join(', ');
  return [styled('dim', `Only on the orchestrator, and left there without --prune: ${names}.`)];
}

function countLine({ actions, unchanged }: SyncPlan, { isDone }: SyncViewOptions): Line {
  const title = styled('strong', isDone ? 'Synced: ' : 'Plan: ');
  const words = (['create', 'update', 'delete'] as const).flatMap((action) => {
    const number = actions.filter((one) => one.action === action).length;
    return number === 0 ? [] : [isDone ? `${number} ${action}d` : `${number} to ${action}`];
  });
  return [title, words.length === 0 ? 'nothing to do' : words.join(', '), `; ${unchanged} unchanged.`];
}

/** Returns the question that names each deletion; null if nothing is deleted. */
export function pruneQuestion(
  actions: readonly SyncAction[],
  { assignments }: Stored,
  agents: readonly Agent[],
): string | null {
  const deletions = actions.filter(({ action }) => action === 'delete');
  if (deletions.length === 0) return null;
  const named = deletions.map(({ kind, name }) => {
    const assignment = kind === 'assignment' ? assignments.find((one) => one.name === name) : undefined;
    if (assignment === undefined) return `  - ${thing({ kind, name })}`;
    const selector = parseSelector(assignment.selector);
    const matched = agents.filter((agent) => matches(selector, agent)).length;
    return `  - ${kind} ${name}, which matches ${count(matched, 'agent')} now`;
  });
  return `${['This deletes from the orchestrator:', ...named].join('\n')}\nSync, with ${count(deletions.length, 'deletion')}?`;
}
