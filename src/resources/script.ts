/** `script`: a text that an interpreter runs, with an optional check that decides whether it has to run. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
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
import { type Decision, defineResource, type PlanContext } from './kind.js';

/** The programs that run scripts. */
export const PROGRAMS = ['sh', 'bash', 'pwsh', 'powershell', 'cmd'] as const;
export type Program = (typeof PROGRAMS)[number];

const Text = (description: string) => Type.String({ minLength: 1, description });

const schema = closed({
  program: Type.Enum(PROGRAMS, { description: 'What runs the texts' }),
  apply: Text('What is run'),
  check: optional(Text('Exit status 0 says that all is as it should be; without it, apply runs once for each body')),
  undo: optional(Text('What is run when the resource is removed; without it, the resource is released')),
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
  | { readonly is: 'unknown'; readonly refusal: CommandRefusal; readonly missing: boolean };

const NUL = '\0';
const CONTROL = /\p{Cc}/u;

export const script = defineResource<ScriptBody, ScriptFact>({
  kind: 'script',
  family: 'script',
  platforms: ['linux', 'macos', 'windows'],
  schema,

  check: (body) => [
    ...(['apply', 'check', 'undo'] as const)
      .filter((member) => body[member]?.includes(NUL))
      .map((member) => ({ path: `/${member}`, message: `${member} must not contain a NUL character` })),
    ...(CONTROL.test(body.manages ?? '')
      ? [{ path: '/manages', message: 'manages must not contain control characters' }]
      : []),
  ],

  identity: (body, id) => body.manages ?? id ?? '',
  requires: () => [],
  // A script that was renamed is the same one.
  thingsOf: (_host, wants) =>
    wants.map(({ program, check, apply, undo }) => JSON.stringify([program, check ?? null, apply, undo ?? null])),

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
    for (const want of wants) facts.push(await look(host, want, purpose === 'removal' ? null : (want.check ?? null)));
    return facts;
  },

  /** Earlier runs cannot be observed, only that the script need not run. */
  exists: (have) => have.is === 'checked' && have.status === 0,

  plan(want, have, context): Decision {
    if (have.is === 'unknown' && !(have.missing && context.mayAppear)) return { action: 'fail', ...have.refusal };
    const difference = differenceOf(want, have, context);
    if (difference === null && !context.due.has('rerun_on')) return { action: 'none' };
    if (have.is === 'unchecked' && have.refusal && !(have.missing && context.mayAppear)) {
      return { action: 'fail', ...have.refusal };
    }
    return { action: 'run', changes: [], ...difference, steps: [stepOf(want.program, want.apply)] };
  },

  planRemoval({ program, undo }, have): Decision {
    if (undo == null) return { action: 'release', reason: 'it has no undo' };
    if (have.is !== 'checked' && have.refusal) return { action: 'fail', ...have.refusal };
    return { action: 'remove', changes: [], steps: [stepOf(program, undo)], isUnseen: true, reason: 'its undo runs' };
  },

  removalNeeds: ['undo'],
  inseparable: ['apply', 'check'],
  removes: ({ undo }) => undo != null,
  memo: digestOf,
  memoIsState: true,

  explain(_host, { program, undo }, { command }, result) {
    const isUndo = undo != null && command.script?.text === scriptCommand(program, undo).script?.text;
    return scriptFailure(isUndo ? 'undo' : 'apply', command, result);
  },
});

async function look(host: Host, { program }: ScriptBody, check: string | null): Promise<ScriptFact> {
  const platforms = programPlatforms(program);
  if (!platforms.includes(host.platform)) {
    const message = `scripts of ${program} run on ${platforms.join(' and ')}, and this is a machine with ${host.platform}`;
    return { is: 'unknown', missing: false, refusal: { code: 'unsupported_on_platform', message } };
  }
  if (check === null) {
    const command = scriptCommand(program, '');
    const end = host.unstartable?.(command.argv[0]) ?? null;
    if (end === null) return { is: 'unchecked' };
    const refusal = commandFailure(command, { end, stdout: '', stderr: '', truncated: false });
    return { is: 'unchecked', missing: end.missing, refusal };
  }
  const command = scriptCommand(program, check);
  const result = await host.run(command);
  const { end } = result;
  if (end.how === 'exited') {
    return { is: 'checked', status: end.code, ...(end.code === 0 ? {} : { output: tailOf(result) }) };
  }
  const missing = end.how === 'not-started' && end.missing;
  return {
    is: 'unknown',
    missing,
    refusal: quoting(scriptEnd('check', command, result), wasRun(result) ? tailOf(result) : undefined),
  };
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
    case 'unchecked':
      if (context.memo === null) return { changes: [], reason: 'no apply of it is on record here' };
      return context.memo === digestOf(want, have, context)
        ? null
        : { changes: [], reason: 'it is another one than was applied here' };
  }
}

function digestOf({ program, apply, check }: ScriptBody, _have: ScriptFact, context: PlanContext): string {
  return context.digest({ program, apply, check: check ?? null });
}

const stepOf = (program: Program, text: string) =>
  ({ do: 'run', command: scriptCommand(program, text), keepsOutput: true }) as const;

/** @param part member of the body that ran */
function scriptFailure(part: ScriptPart, command: Pick<Command, 'argv'>, result: CommandResult): CommandRefusal {
  const { code, message } = scriptEnd(part, command, result);
  return { code, message: wasRun(result) ? withLines(message, result) : message };
}

type ScriptPart = 'apply' | 'check' | 'undo';

/** True when the output says more about the end than orch knows. */
const wasRun = ({ end }: CommandResult): boolean => end.how !== 'cancelled' && end.how !== 'not-started';

/** Returns how a script ended, without its output. */
function scriptEnd(part: ScriptPart, command: Pick<Command, 'argv'>, result: CommandResult): CommandRefusal {
  const { end } = result;
  switch (end.how) {
    case 'exited':
      return { code: 'script_failed', message: `${part} ended with status ${end.code}` };
    case 'killed':
      return { code: 'script_failed', message: `${part} was ended by ${end.signal}` };
    case 'timed-out': {
      const message = `${part} was stopped after ${end.seconds} seconds, which is the script_timeout of the agent`;
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
