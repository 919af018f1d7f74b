/** Whom a new revision of a module reaches, and the consent to that. */
import { createHash } from 'node:crypto';
import type { ApiClient } from '../../client/api-client.js';
import type { ModuleReach } from '../../contract/modules.js';
import { NO_REVISION } from '../../contract/run-targets.js';
import { Fault } from '../../kernel/fault.js';
import { type FileDigests, identityText } from '../../language/files-beside.js';
import type { Context } from '../context.js';
import { count } from '../format.js';
import { flag } from '../options.js';

/** The consent to applies that the orchestrator starts by itself. */
export const ALLOW_AUTOMATIC = '--allow-automatic-applies';

export const allowAutomaticOption = flag('consent to automatic applies to other machines');

type Follower = Pick<ModuleReach['agents'][number], 'node_id' | 'name' | 'mode' | 'on_trial' | 'own_values'>;

/** A text of a module or a value set, and the other machines that it reaches when it is published. */
export interface Reach {
  readonly noun: 'module' | 'value set';
  readonly name: string;
  /** SHA-256 of the text. */
  readonly sha256: string;
  /** SHA-256 of the stored revision, or `NO_REVISION`. */
  readonly current: string;
  /** False if this operator may not store it. */
  readonly mayStore: boolean;
  readonly assignments: ModuleReach['assignments'];
  /** Machines that get it at once, because an assignment in mode `enforce` gives it. */
  readonly atOnce: readonly Follower[];
  /** Machines that get it when they connect. */
  readonly onConnect: readonly Follower[];
  /** Machines that become behind, and get it with their next apply. */
  readonly behind: readonly Follower[];
  /** Machines that stay on trial of something else. */
  readonly onTrial: readonly Follower[];
  /** Machines that keep the values of their last apply until an operator applies without them. */
  readonly withOwnValues: readonly Follower[];
  /** Problems that machines have with the text. */
  readonly problems: readonly string[];
  /** Node IDs of the machines that have this text on trial. */
  readonly triedBy: readonly string[];
}

/** Returns the SHA-256 of a text, with the files beside it if it is that of a module, in hex. */
export const digestOf = (source: string, files?: FileDigests): string =>
  createHash('sha256').update(identityText(source, files)).digest('hex');

/** Returns whom a text reaches, without the given machines and those that have tried it. */
export async function reachOf(
  { signal }: Context,
  api: ApiClient,
  { name, source, files }: { readonly name: string; readonly source: string; readonly files?: FileDigests | undefined },
  without: ReadonlySet<string> = new Set(),
): Promise<Reach> {
  const reach = await api.call('getModuleReach', { params: { name }, signal });
  const { sha256: current, assignments, agents } = reach;
  const sha256 = digestOf(source, files);
  const others = agents.filter(({ node_id, tried }) => tried !== sha256 && !without.has(node_id));
  return {
    noun: 'module',
    name,
    sha256,
    current: current ?? NO_REVISION,
    mayStore: reach.may_store !== false,
    assignments,
    ...grouped(others),
    problems: [],
    triedBy: agents.filter(({ tried }) => tried === sha256).map(({ node_id }) => node_id),
  };
}

/** Returns machines by when a text reaches them. */
export function grouped(
  followers: readonly Follower[],
): Pick<Reach, 'atOnce' | 'onConnect' | 'behind' | 'onTrial' | 'withOwnValues'> {
  const free = followers.filter(({ on_trial, own_values }) => !on_trial && own_values !== true);
  return {
    atOnce: free.filter(({ mode }) => mode === 'enforce'),
    onConnect: free.filter(({ mode }) => mode === 'on-connect'),
    behind: free.filter(({ mode }) => mode === 'manual' || mode === null),
    onTrial: followers.filter(({ on_trial }) => on_trial),
    withOwnValues: followers.filter(({ on_trial, own_values }) => !on_trial && own_values === true),
  };
}

/** Returns the number of machines that a text reaches. */
export const reached = (reach: Reach): number => everyOne(reach).length;

const everyOne = ({ atOnce, onConnect, behind, onTrial, withOwnValues }: Reach): readonly Follower[] => [
  ...atOnce,
  ...onConnect,
  ...behind,
  ...onTrial,
  ...withOwnValues,
];

const isAutomatic = ({ atOnce, onConnect }: Reach): boolean => atOnce.length + onConnect.length > 0;

/** Returns lines about whom a text reaches, with modes; none if it reaches no machine. */
export function reachLines(reach: Reach, doing = 'Publishing'): readonly string[] {
  const { noun, name, assignments, atOnce, onConnect, behind, onTrial, withOwnValues, problems } = reach;
  const number = reached(reach);
  if (number === 0) return [];
  const groups: readonly (readonly [string, readonly Follower[]])[] = [
    ['at once', atOnce],
    ['when they connect', onConnect],
    ['behind, until their next apply', behind],
    ['on trial, and left alone', onTrial],
    ['applied with values of their own, and left alone', withOwnValues],
  ];
  return [
    `${doing} ${noun} ${name} reaches ${count(number, 'machine')}:`,
    ...groups.flatMap(([words, followers]) => (followers.length === 0 ? [] : [`  ${words}: ${namesOf(followers)}`])),
    ...assignments.map(
      ({ name: assignment, mode, agents }) =>
        `  assignment ${assignment} (${mode}) gives it to ${count(agents, 'machine')}`,
    ),
    ...requestedLines(everyOne(reach)),
    ...problems.map((problem) => `  ${problem}`),
  ];
}

function requestedLines(followers: readonly Follower[]): readonly string[] {
  const requested = followers.filter(({ mode }) => mode === null);
  return requested.length === 0 ? [] : [`  only a request gave it to: ${namesOf(requested)}`];
}

/** Maximum number of listed machines; the rest is counted. */
const NAMED = 10;

function namesOf(followers: readonly Follower[]): string {
  const names = followers.slice(0, NAMED).map(({ name, node_id }) => name ?? node_id);
  const more = followers.length > NAMED ? ` and ${followers.length - NAMED} more` : '';
  return `${names.join(', ')}${more}`;
}

/** Returns where a text is after an apply: which machines follow the module, in a few words. */
export function othersOf(reach: Reach): string {
  const automatic = [
    ...(reach.atOnce.length > 0 ? ['enforce'] : []),
    ...(reach.onConnect.length > 0 ? ['on-connect'] : []),
  ];
  const mode = automatic.length === 0 ? '' : `, by assignments in mode ${automatic.join(' and ')} too`;
  const number = reached(reach);
  return `${count(number, 'other machine')} ${number === 1 ? 'follows' : 'follow'} it${mode}`;
}

/**
 * Throws `confirmation_required` if that lets the orchestrator apply to other machines by itself, no question can be asked,
 * and the operator has not allowed it.
 */
export function requireAllowed(
  { prompt, globals }: Context,
  reaches: readonly Reach[],
  isAllowed: boolean,
  doing = 'publishing',
): void {
  const automatic = reaches.filter(isAutomatic);
  const asks = prompt.possible && !globals.yes;
  if (asks || isAllowed || automatic.length === 0) return;
  const names = automatic.map(({ noun, name }) => `${noun} ${name}`).join(', ');
  const number = new Set(
    automatic.flatMap(({ atOnce, onConnect }) => [...atOnce, ...onConnect].map(({ node_id }) => node_id)),
  ).size;
  throw new Fault(
    'confirmation_required',
    `${doing} ${names} lets the orchestrator apply to ${count(number, 'other machine')} by itself`,
    { hint: `add ${ALLOW_AUTOMATIC} to do it without a question` },
  );
}

/** Shows whom publishing reaches. Asks if it reaches a machine and a question can be asked. Returns false for a no. */
export async function consentToReach(
  context: Context,
  reaches: readonly Reach[],
  { isAllowed, question }: { readonly isAllowed: boolean; readonly question: string },
): Promise<boolean> {
  requireAllowed(context, reaches, isAllowed);
  for (const line of reaches.flatMap((reach) => reachLines(reach))) context.note(line);
  const { prompt, globals } = context;
  if (globals.yes || !prompt.possible || reaches.every((reach) => reached(reach) === 0)) return true;
  return prompt.confirm(question, `add --yes and ${ALLOW_AUTOMATIC}`);
}
