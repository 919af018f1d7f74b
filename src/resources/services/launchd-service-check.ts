/** Rules for `service-launchd` beyond its schema: every value has to come out of the property list as it went in. */
import { escapePointer } from '../../kernel/validator.js';
import type { BodyProblem } from '../kind.js';
import { problemOfUnixPath } from '../unix/unix-path.js';
import type { LaunchdBody } from './launchd-service-body.js';

/** Members that only stand in a property list. */
export const IN_PLIST = [
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

/** XML has no form for these, and reads a carriage return as a line break. */
const UNWRITABLE = /[\u0000-\u0008\u000b-\u001f\ufffe\uffff]|\p{Surrogate}/u;
const PATHS = ['working_directory', 'standard_out_path', 'standard_error_path'] as const;

export function checkLaunchd(body: LaunchdBody): readonly BodyProblem[] {
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
