/** `validate` of files: a command that checks the new content, on a copy before it takes the file's place, or in its place. */
import * as Type from 'typebox';
import { optional } from '../kernel/schema.js';
import { type CommandRefusal, type CommandResult, commandFailure } from './command.js';
import type { FileStep, PathFact, RunStep, Step } from './host.js';
import type { BodyProblem, Decision, PlanContext } from './kind.js';
import { checksCopy, wordsOf } from './unix/command-line.js';

export const validateField = optional(
  Type.String({
    minLength: 1,
    maxLength: 1024,
    description: 'Command that checks the new content: %s is a copy of it; without %s it checks the file in its place',
  }),
);

/** Returns why a text cannot be the check of a file; empty when it can. */
export function checkValidate(text: string | null | undefined, hasContent: boolean): readonly BodyProblem[] {
  if (text == null) return [];
  const words = wordsOf(text);
  if (typeof words === 'string') return [{ path: '/validate', message: `validate ${words}` }];
  if (hasContent) return [];
  return [{ path: '/validate', message: 'validate needs content, template, source or url, which it checks' }];
}

/** True for a check that runs with the file in its place. */
export const isInPlace = (validate: string | null | undefined): boolean => validate != null && !checksCopy(validate);

/** The memo of a file while its check in its place has not succeeded. */
const UNCHECKED = 'unchecked';
export const CHECKED = 'checked';

type WriteStep = Extract<FileStep, { do: 'write-file' }>;

interface CheckedWrite {
  readonly validate: string | null | undefined;
  readonly write: WriteStep;
  /** Steps that make room for the file. */
  readonly before?: readonly Step[];
  /** Owner and mode of the copy that is checked. */
  readonly copy: { readonly owner: string | null; readonly group: string | null; readonly mode: number };
}

interface CheckedSteps {
  readonly steps: readonly Step[];
  readonly memoBefore?: string;
}

/** Returns the steps that write a file with its check. */
export function checkedWrite({ validate, write, before = [], copy }: CheckedWrite): CheckedSteps {
  if (validate == null) return { steps: [...before, write] };
  const { path, content } = write;
  if (isInPlace(validate)) return { steps: [...before, write, checkInPlace(validate, path)], memoBefore: UNCHECKED };
  const mode = copy.mode & 0o777;
  const check = { do: 'run', command: commandOf(validate), checks: { path, content, ...copy, mode } } satisfies RunStep;
  return { steps: [check, ...before, write] };
}

/** Returns the step that checks a file in its place. */
const checkInPlace = (validate: string, path: string): RunStep => ({
  do: 'run',
  command: commandOf(validate),
  restores: path,
});

interface Checkable {
  readonly path: string;
  readonly validate?: string | null | undefined;
}

/** Plans a file that is as declared: its check, where a run has ended between the change and the check. */
export function uncheckedYet({ path, validate }: Checkable, { memo, purpose }: PlanContext): Decision {
  if (validate == null || !isInPlace(validate)) return { action: 'none' };
  if (memo !== UNCHECKED || purpose === 'drift') return { action: 'none' };
  const message = 'its check has not succeeded';
  return { action: 'update', changes: [], reason: message, unmet: { message }, steps: [checkInPlace(validate, path)] };
}

/** The fact of a file whose check is not possible on a platform. */
export const NOT_IN_PLACE: PathFact = {
  type: 'unreadable',
  code: 'unsupported_on_platform',
  message: 'files are checked in their places on Linux only; name the file with %s in validate',
};

function commandOf(validate: string): RunStep['command'] {
  const argv = wordsOf(validate);
  if (typeof argv === 'string') throw new Error(`validate ${argv}`);
  return { argv, lifetime: 'end' };
}

/** Explains a failed check; null for another step. */
export function checkFailure({ command, checks, restores }: RunStep, result: CommandResult): CommandRefusal | null {
  if (checks === undefined && restores === undefined) return null;
  const { code, message } = commandFailure(command, result);
  const failure = `validate failed: ${message}`;
  return { code, message: checks === undefined ? failure : `${checks.path} is as before, because ${failure}` };
}
