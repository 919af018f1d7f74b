/** `service-launchd`: whether a daemon of macOS may be loaded and runs, and with `program_arguments` its property list. */

import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { escapePointer } from '../kernel/validator.js';
import { type CommandRefusal, type CommandResult, commandFailure, exitedWith } from './command.js';
import type { Host } from './host.js';
import { type BodyProblem, type Decision, defineResource } from './kind.js';
import { type Daemon, isNew, planLaunchd, planLaunchdRemoval } from './services/launchd-plan.js';
import { plistPath, systemPlistPath } from './services/launchd-plist.js';
import {
  DISABLED_COMMAND,
  explainLaunchd,
  isDisabledList,
  LIST_COMMAND,
  parseDisabled,
  parseList,
} from './services/launchd-state.js';
import { portHolders } from './services/port-holders.js';
import { problemOfUnixPath } from './unix/unix-path.js';

/** A label names a file and is part of `system/LABEL`. */
const LABEL_PATTERN = '^[A-Za-z0-9_][A-Za-z0-9_.-]*$';
const ACCOUNT_PATTERN = '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,255}$';
const Path = (description: string) => Type.String({ minLength: 1, description });

const LaunchdBodySchema = closed({
  name: Type.String({
    minLength: 1,
    maxLength: 200,
    pattern: LABEL_PATTERN,
    description: 'Label of the service: letters, digits, "_", "." and "-"',
  }),
  enabled: optional(Type.Boolean({ description: 'Whether launchd may load it, at boot as well; null: not managed' })),
  running: optional(Type.Boolean({ description: 'Whether it is loaded and has a process; null: not managed' })),
  program_arguments: optional(
    Type.Array(Type.String(), {
      minItems: 1,
      description: 'The program and its arguments; with them orch writes the property list, without them it must exist',
    }),
  ),
  run_at_load: optional(Type.Boolean({ description: 'Whether it starts when it is loaded' })),
  keep_alive: optional(Type.Boolean({ description: 'Whether launchd starts it again when it ends' })),
  user: optional(Type.String({ pattern: ACCOUNT_PATTERN, description: 'User that it runs as; root unless given' })),
  group: optional(
    Type.String({ pattern: ACCOUNT_PATTERN, description: "Group that it runs as; the user's unless given" }),
  ),
  working_directory: optional(Path('Absolute path of its working directory')),
  environment: optional(
    Type.Record(Type.String(), Type.String(), {
      additionalProperties: false,
      description: 'Its environment variables',
    }),
  ),
  standard_out_path: optional(Path('File that its standard output is added to')),
  standard_error_path: optional(Path('File that its standard error is added to')),
  description: optional(Type.String({ description: 'What the service is, for people' })),
  restart_on: optional(
    Type.Array(Type.String({ minLength: 1 }), { description: 'Ids of resources whose change restarts it' }),
  ),
});

export type LaunchdBody = Type.Static<typeof LaunchdBodySchema>;

/** Members that are only written to a property list. */
const IN_PLIST = [
  'run_at_load',
  'keep_alive',
  'user',
  'group',
  'working_directory',
  'environment',
  'standard_out_path',
  'standard_error_path',
  'description',
] as const;

/** Characters that XML cannot represent, and the carriage return, which it reads as a line break. */
const UNWRITABLE = /[\u0000-\u0008\u000b-\u001f\ufffe\uffff]|\p{Surrogate}/u;
const PATHS = ['working_directory', 'standard_out_path', 'standard_error_path'] as const;

function checkLaunchd(body: LaunchdBody): readonly BodyProblem[] {
  const problems: BodyProblem[] = [];
  const add = (path: string, message: string | null) => {
    if (message !== null) problems.push({ path, message });
  };
  if (body.enabled === false && body.running === true) {
    add('/running', 'launchd loads no service that is disabled; leave running out, or set enabled: true');
  }
  if (body.program_arguments == null) {
    for (const field of IN_PLIST) {
      if (body[field] != null) {
        add(`/${field}`, `${field} needs program_arguments: without them orch does not write the property list`);
      }
    }
    return problems;
  }
  for (const [at, argument] of body.program_arguments.entries()) {
    add(`/program_arguments/${at}`, problemOfText(`argument ${at}`, argument));
  }
  if (body.program_arguments[0] === '') add('/program_arguments/0', 'the program must not be empty');
  for (const field of PATHS) add(`/${field}`, problemOfPath(field, body[field] ?? null));
  for (const [name, value] of Object.entries(body.environment ?? {})) {
    add(`/environment/${escapePointer(name)}`, problemOfVariable(name, value));
  }
  add('/description', problemOfText('description', body.description ?? ''));
  return problems;
}

const problemOfText = (name: string, text: string): string | null =>
  UNWRITABLE.test(text) ? `${name} holds a character that a property list has no form for` : null;

function problemOfPath(name: string, path: string | null): string | null {
  if (path === null || path === '/') return null;
  const problem = problemOfUnixPath(path);
  return problem === null ? problemOfText(name, path) : `${name} ${problem}`;
}

function problemOfVariable(name: string, value: string): string | null {
  if (name === '' || name.includes('=')) return 'a variable name must not be empty and holds no "="';
  return problemOfText('the name', name) ?? problemOfText(name, value);
}

/** A service, or why launchd does not report it. */
type LaunchdHave = Daemon | { readonly refusal: CommandRefusal };

export const serviceLaunchd = defineResource<LaunchdBody, LaunchdHave>({
  kind: 'service-launchd',
  family: 'service',
  platforms: ['macos'],
  schema: LaunchdBodySchema,
  check: checkLaunchd,
  identity: (body) => body.name,
  requires: (body) => [
    ...(body.user == null ? [] : [{ family: 'user', identity: body.user } as const]),
    ...(body.group == null ? [] : [{ family: 'group', identity: body.group } as const]),
    ...(body.program_arguments == null ? [{ family: 'path', identity: plistPath(body.name) } as const] : []),
  ],
  queried: true,
  obstacles: portHolders,
  read,
  exists: (have) => !('refusal' in have) && !isNew(have),
  plan: (want, have, context): Decision =>
    'refusal' in have ? failed(have.refusal) : planLaunchd(want, have, context),
  planRemoval: (last, have): Decision => ('refusal' in have ? failed(have.refusal) : planLaunchdRemoval(last, have)),
  inseparable: ['program_arguments', ...IN_PLIST],
  explain: (host, body, step, result) => explainLaunchd(host, body.name, step, result),
});

const failed = (refusal: CommandRefusal): Decision => ({ action: 'fail', ...refusal });

/** Reads all services with two commands and observes the places of their property lists. */
async function read(host: Host, wants: readonly LaunchdBody[]): Promise<readonly LaunchdHave[]> {
  const list = await host.run({ argv: LIST_COMMAND });
  const disabled = await host.run({ argv: DISABLED_COMMAND });
  const refusal = refusalOf(list) ?? refusalOf(disabled) ?? refusalOfList(disabled);
  if (refusal) return wants.map(() => ({ refusal }));
  const loaded = parseList(list.stdout);
  const overrides = parseDisabled(disabled.stdout);
  const own = host.observe(wants.map(({ name }) => ({ path: plistPath(name), content: true, entries: false })));
  const system = host.observe(
    wants.map(({ name }) => ({ path: systemPlistPath(name), content: false, entries: false })),
  );
  return wants.map(({ name }, at) => ({
    file: own[at] ?? { type: 'absent', parent: 'directory' },
    isOfSystem: (system[at]?.type ?? 'absent') !== 'absent',
    isLoaded: loaded.has(name),
    pid: loaded.get(name) ?? null,
    isDisabled: overrides.get(name) ?? null,
  }));
}

const refusalOf = (result: CommandResult): CommandRefusal | null =>
  exitedWith(result, 0) ? null : commandFailure({ argv: ['launchctl'] }, result);

const refusalOfList = ({ stdout }: CommandResult): CommandRefusal | null =>
  isDisabledList(stdout)
    ? null
    : { code: 'observe_failed', message: 'launchctl print-disabled prints something that orch does not know' };
