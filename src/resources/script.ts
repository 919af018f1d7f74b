/** `script`: a text that an interpreter runs, with an optional check or path that decides whether it has to run. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { escapePointer } from '../kernel/validator.js';
import {
  type Command,
  type CommandRefusal,
  type CommandResult,
  commandFailure,
  type Quote,
  tailOf,
  withLines,
} from './command.js';
import type { Host } from './host.js';
import {
  type BodyProblem,
  type Decision,
  defineResource,
  type Family,
  type PlanContext,
  type ReadPurpose,
} from './kind.js';
import { checkUserReference, MAX_ACCOUNT_NAME, parseUnixId } from './unix/unix-accounts.js';
import { aboveUnixPath, parentOf, problemOfUnixPath } from './unix/unix-path.js';
import { problemOfWindowsPath, windowsIdentity } from './windows/windows-path.js';

/** The programs that run scripts. */
export const PROGRAMS = ['sh', 'bash', 'python3', 'perl', 'pwsh', 'powershell', 'cmd'] as const;
export type Program = (typeof PROGRAMS)[number];

const Text = (description: string) => Type.String({ minLength: 1, description });

const schema = closed({
  program: Type.Enum(PROGRAMS, { description: 'What runs the texts' }),
  apply: Text('What is run'),
  check: optional(Text('Exit status 0 says that all is as it should be; without it, apply runs once for each body')),
  creates: optional(Text('Absolute path that apply makes; where it exists, apply does not run')),
  undo: optional(Text('What is run when the resource is removed; without it, the resource is released')),
  user: optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_ACCOUNT_NAME,
      description: 'User that the texts run as, by name or numeric id, with its groups',
    }),
  ),
  environment: optional(
    Type.Record(Type.String(), Type.String(), {
      additionalProperties: false,
      description: 'Environment variables of the texts',
    }),
  ),
  working_directory: optional(Text('Absolute path of the directory that the texts run in')),
  timeout: optional(
    Type.String({
      pattern: '^[1-9]\\d{0,3}[smh]$',
      description: 'A number with s, m or h, such as 90s or 20m: the time after which a text is ended',
    }),
  ),
  manages: optional(
    Type.String({ minLength: 1, maxLength: 1024, description: 'The identity of the resource, instead of its id' }),
  ),
  rerun_on: optional(
    Type.Array(Type.String({ minLength: 1 }), { description: 'Ids of resources whose change runs it again' }),
  ),
});

type ScriptBody = Type.Static<typeof schema>;

/** The result of the check; `unchecked` without one. */
type ScriptFact =
  /** `refusal`: why its program cannot be started. */
  | { readonly is: 'unchecked'; readonly missing?: boolean; readonly refusal?: CommandRefusal }
  /** `output` is that of a failed check. */
  | { readonly is: 'checked'; readonly status: number; readonly output?: CommandResult | undefined }
  /** `refusal`: why its program cannot be started. */
  | { readonly is: 'made'; readonly exists: boolean; readonly missing?: boolean; readonly refusal?: CommandRefusal }
  | { readonly is: 'unknown'; readonly refusal: CommandRefusal; readonly missing: boolean };

const NUL = '\0';
const CONTROL = /\p{Cc}/u;

/** Maximum seconds of `timeout`. */
const MAX_TIMEOUT = 6 * 3600;
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

const secondsOf = (duration: string): number => Number.parseInt(duration, 10) * (SECONDS[duration.slice(-1)] ?? 1);

function checkScript(body: ScriptBody): readonly BodyProblem[] {
  const { check, creates, environment, manages, timeout, user, working_directory } = body;
  const problems: BodyProblem[] = [];
  const add = (path: string, message: string) => problems.push({ path, message });
  for (const member of ['apply', 'check', 'undo'] as const) {
    if (body[member]?.includes(NUL)) add(`/${member}`, `${member} must not contain a NUL character`);
  }
  if (CONTROL.test(manages ?? '')) add('/manages', 'manages must not contain control characters');
  if (check != null && creates != null) add('/creates', 'check and creates exclude each other');
  for (const [member, path] of Object.entries({ creates, working_directory })) {
    const problem = path == null ? null : problemOfPath(path);
    if (problem !== null) add(`/${member}`, `${member} ${problem}`);
  }
  if (user != null) problems.push(...checkUserReference('/user', user));
  for (const [name, value] of Object.entries(environment ?? {})) {
    const problem = problemOfVariable(name, value);
    if (problem !== null) add(`/environment/${escapePointer(name)}`, problem);
  }
  if (timeout != null && secondsOf(timeout) > MAX_TIMEOUT) add('/timeout', 'timeout must be at most 6h');
  return problems;
}

/** Returns why a path is none of Unix or Windows, or null. */
const problemOfPath = (path: string): string | null =>
  /^[A-Za-z]:/.test(path) ? problemOfWindowsPath(path) : path === '/' ? null : problemOfUnixPath(path);

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

function problemOfVariable(name: string, value: string): string | null {
  if (!VARIABLE.test(name)) return `${JSON.stringify(name)} is not the name of an environment variable`;
  return value.includes(NUL) ? `the value of ${name} must not contain a NUL character` : null;
}

/** Returns the user and the directory of a script, which come first if they are declared. */
const needsOf = ({ user, working_directory }: ScriptBody): readonly { family: Family; identity: string }[] => [
  ...(user == null || parseUnixId(user) !== undefined ? [] : [{ family: 'user', identity: user } as const]),
  ...(working_directory == null ? [] : [{ family: 'path', identity: identityOf(working_directory) } as const]),
];

const identityOf = (path: string): string => (path.startsWith('/') ? path : windowsIdentity(path));

export const script = defineResource<ScriptBody, ScriptFact>({
  kind: 'script',
  family: 'script',
  platforms: ['linux', 'macos', 'windows'],
  schema,

  check: checkScript,
  identity: (body, id) => body.manages ?? id ?? '',
  requires: needsOf,
  above: ({ working_directory }) =>
    working_directory?.startsWith('/')
      ? [{ family: 'path', identity: parentOf(working_directory) }, ...aboveUnixPath({ path: working_directory })]
      : [],
  // A script that was renamed is the same one.
  thingsOf: (_host, wants) =>
    wants.map((want) =>
      JSON.stringify([want.program, want.check ?? null, want.apply, want.undo ?? null, circumstances(want)]),
    ),

  /** The undo of a script may undo what the one in its place does. */
  obstacles(_host, wants, removals) {
    const fresh = wants.filter(({ isNew }) => isNew);
    return removals.filter(
      (one) =>
        one.kind === 'script' &&
        fresh.some(({ module, identity }) => module === one.module || identity === one.identity),
    );
  },

  async read(host, wants, purpose) {
    const facts: ScriptFact[] = [];
    for (const want of wants) facts.push(await look(host, want, purpose));
    return facts;
  },

  /** Earlier runs cannot be observed, only that the script need not run. */
  exists: (have) => (have.is === 'made' ? have.exists : have.is === 'checked' && have.status === 0),

  plan(want, have, context): Decision {
    if (have.is === 'unknown' && !(have.missing && context.mayAppear)) return { action: 'fail', ...have.refusal };
    const difference = differenceOf(want, have, context);
    if (difference === null && !context.due.has('rerun_on')) return { action: 'none' };
    if ((have.is === 'unchecked' || have.is === 'made') && have.refusal && !(have.missing && context.mayAppear)) {
      return { action: 'fail', ...have.refusal };
    }
    return { action: 'run', changes: [], ...difference, steps: [stepOf(want, want.apply)] };
  },

  planRemoval(last, have): Decision {
    const { undo } = last;
    if (undo == null) return { action: 'release', reason: 'it has no undo' };
    if (have.is !== 'checked' && have.refusal) return { action: 'fail', ...have.refusal };
    return { action: 'remove', changes: [], steps: [stepOf(last, undo)], isUnseen: true, reason: 'its undo runs' };
  },

  removalNeeds: ['undo', 'environment'],
  inseparable: ['apply', 'check'],
  removes: ({ undo }) => undo != null,
  memo: digestOf,
  memoIsState: true,

  explain(_host, body, { command }, result) {
    const { program, undo } = body;
    const isUndo = undo != null && command.script?.text === scriptCommand(program, undo).script?.text;
    return scriptFailure(isUndo ? 'undo' : 'apply', body, command, result);
  },
});

async function look(host: Host, want: ScriptBody, purpose: ReadPurpose): Promise<ScriptFact> {
  const { program, creates } = want;
  const check = purpose === 'removal' ? null : (want.check ?? null);
  const platforms = programPlatforms(program);
  if (!platforms.includes(host.platform)) {
    const message = `scripts of ${program} run on ${platforms.join(' and ')}, and this is a machine with ${host.platform}`;
    return { is: 'unknown', missing: false, refusal: { code: 'unsupported_on_platform', message } };
  }
  if (want.user != null && host.platform !== 'linux') {
    const message = `user is possible on linux only, and this is a machine with ${host.platform}`;
    return { is: 'unknown', missing: false, refusal: { code: 'unsupported_on_platform', message } };
  }
  if (check === null) {
    const start = startOf(host, commandOf(want, ''));
    if (creates == null || purpose === 'removal') return { is: 'unchecked', ...start };
    const [fact] = host.observe([{ path: creates, content: false, entries: false }]);
    if (fact?.type !== 'unreadable') return { is: 'made', exists: fact?.type !== 'absent', ...start };
    return { is: 'unknown', missing: false, refusal: { code: fact.code, message: fact.message } };
  }
  const command = commandOf(want, check);
  const result = await host.run(command);
  const { end } = result;
  if (end.how === 'exited') {
    return { is: 'checked', status: end.code, ...(end.code === 0 ? {} : { output: tailOf(result) }) };
  }
  const missing = end.how === 'not-started' && end.missing;
  return {
    is: 'unknown',
    missing,
    refusal: quoting(scriptEnd('check', want, command, result), wasRun(result) ? tailOf(result) : undefined),
  };
}

/** Returns why a command cannot be started; nothing when it can. */
function startOf(host: Host, command: Command): { readonly missing?: boolean; readonly refusal?: CommandRefusal } {
  const end = host.unstartable?.(command) ?? null;
  if (end === null) return {};
  const refusal = commandFailure(command, { end, stdout: '', stderr: '', truncated: false });
  return { missing: end.missing, refusal };
}

type Difference = Pick<Extract<Decision, { steps: unknown }>, 'changes' | 'reason' | 'unmet'>;

const quoting = <Q extends Quote>(quote: Q, output: CommandResult | undefined): Q =>
  output === undefined ? quote : { ...quote, output };

/** Returns why the script has to run; null when it does not. */
function differenceOf(want: ScriptBody, have: ScriptFact, context: PlanContext): Difference | null {
  switch (have.is) {
    case 'unknown':
      return { changes: [], reason: `its check cannot run yet: ${have.refusal.message}` };
    case 'checked':
      if (have.status === 0) return null;
      return {
        changes: [{ field: 'check', before: `exit ${have.status}`, after: 'exit 0' }],
        unmet: quoting({ message: `its check ended with status ${have.status}` }, have.output),
      };
    case 'made':
      if (have.exists) return null;
      return {
        changes: [{ field: 'creates', before: null, after: want.creates ?? null }],
        unmet: { message: `${want.creates} does not exist` },
      };
    case 'unchecked':
      if (context.memo === null) return { changes: [], reason: 'no apply of it is on record here' };
      return context.memo === digestOf(want, have, context)
        ? null
        : { changes: [], reason: 'it is another one than was applied here' };
  }
}

function digestOf(want: ScriptBody, _have: ScriptFact, context: PlanContext): string {
  const { program, apply, check } = want;
  return context.digest({ program, apply, check: check ?? null, ...circumstances(want) });
}

/** Returns the fields that change how a text runs. Without them, digests are those of releases that had none of them. */
function circumstances({ user, environment, working_directory }: ScriptBody): object {
  return {
    ...(user == null ? {} : { user }),
    ...(environment == null ? {} : { environment }),
    ...(working_directory == null ? {} : { working_directory }),
  };
}

const stepOf = (body: ScriptBody, text: string) =>
  ({ do: 'run', command: commandOf(body, text), keepsOutput: true }) as const;

function commandOf({ program, user, environment, working_directory, timeout }: ScriptBody, text: string): Command {
  return {
    ...scriptCommand(program, text),
    ...(user == null ? {} : { user }),
    ...(environment == null ? {} : { env: environment }),
    ...(working_directory == null ? {} : { directory: working_directory }),
    ...(timeout == null ? {} : { timeoutSecs: secondsOf(timeout) }),
  };
}

/** @param part member of the body that ran */
function scriptFailure(
  part: ScriptPart,
  body: ScriptBody,
  command: Pick<Command, 'argv'>,
  result: CommandResult,
): CommandRefusal {
  const { code, message } = scriptEnd(part, body, command, result);
  return { code, message: wasRun(result) ? withLines(message, result) : message };
}

type ScriptPart = 'apply' | 'check' | 'undo';

/** True when the output says more about the end than orch knows. */
const wasRun = ({ end }: CommandResult): boolean => end.how !== 'cancelled' && end.how !== 'not-started';

/** Returns how a script ended, without its output. */
function scriptEnd(
  part: ScriptPart,
  { timeout }: ScriptBody,
  command: Pick<Command, 'argv'>,
  result: CommandResult,
): CommandRefusal {
  const { end } = result;
  switch (end.how) {
    case 'exited':
      return { code: 'script_failed', message: `${part} ended with status ${end.code}` };
    case 'killed':
      return { code: 'script_failed', message: `${part} was ended by ${end.signal}` };
    case 'timed-out': {
      const limit = timeout == null ? 'the script_timeout of the agent' : 'its timeout';
      const message = `${part} was stopped after ${end.seconds} seconds, which is ${limit}`;
      return { code: 'command_timed_out', message };
    }
    case 'cancelled':
      return { code: 'cancelled', message: `${part} was stopped because the operation was cancelled` };
    case 'not-started':
      return commandFailure(command, result);
  }
}

interface ProgramFact {
  readonly platforms: readonly Host['platform'][];
  readonly argv: Command['argv'];
  readonly suffix: string;
  /** Converts the text to the form that the program reads. */
  written(text: string): string;
}

const asItIs = (text: string): string => text;

const FACTS: Readonly<Record<Program, ProgramFact>> = {
  sh: { platforms: ['linux', 'macos'], argv: ['sh'], suffix: '.sh', written: asItIs },
  bash: { platforms: ['linux', 'macos'], argv: ['bash'], suffix: '.sh', written: asItIs },
  python3: { platforms: ['linux', 'macos'], argv: ['python3'], suffix: '.py', written: asItIs },
  perl: { platforms: ['linux', 'macos'], argv: ['perl'], suffix: '.pl', written: asItIs },
  pwsh: {
    platforms: ['linux', 'macos', 'windows'],
    argv: ['pwsh', '-NoProfile', '-NonInteractive', '-File'],
    suffix: '.ps1',
    written: asItIs,
  },
  powershell: {
    platforms: ['windows'],
    argv: ['powershell', '-NoProfile', '-NonInteractive', '-ExecutionPolicy', 'Bypass', '-File'],
    suffix: '.ps1',
    // Without a byte order mark it assumes the machine's legacy code page.
    written: (text) => `\ufeff${text}`,
  },
  cmd: {
    platforms: ['windows'],
    argv: ['cmd', '/d', '/c'],
    suffix: '.cmd',
    // It does not find labels with other line ends.
    written: (text) => text.replaceAll(/\r?\n/g, '\r\n'),
  },
};

/** Platforms on which scripts of the program run. */
export const programPlatforms = (program: Program): readonly Host['platform'][] => FACTS[program].platforms;

/** Returns the command for a text, with the agent's script timeout; a cancelled run ends it. */
export function scriptCommand(program: Program, text: string): Command {
  const { argv, suffix, written } = FACTS[program];
  return { argv, script: { text: written(text), suffix }, timeoutSecs: 'script', lifetime: 'end' };
}
