/** Rules for `service-systemd` beyond its schema: every value has to come out of the unit file as it went in. */
import { escapePointer } from '../../kernel/validator.js';
import type { BodyProblem } from '../kind.js';
import { problemOfUnixPath } from '../unix/unix-path.js';
import type { ServiceBody } from './systemd-service-body.js';
import { problemOfUnitName, unitNameOf } from './systemd-unit-name.js';

/** Members that only stand in a unit file. */
export const IN_UNIT_FILE = [
  'description',
  'type',
  'user',
  'group',
  'working_directory',
  'environment',
  'restart',
  'dependencies',
] as const;

const CONTROL = /[\u0000-\u001f\u007f]/;
/** An environment variable may hold tabs and line breaks besides. */
const CONTROL_IN_VALUE = /[\u0000-\u0008\u000b-\u001f\u007f]/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const SURROGATE = /\p{Surrogate}/u;

export function checkService(body: ServiceBody): readonly BodyProblem[] {
  const problems: BodyProblem[] = [];
  const add = (path: string, message: string | null) => {
    if (message !== null) problems.push({ path, message });
  };
  add('/name', named('name', problemOfUnitName(body.name)));
  if (body.exec_start == null) {
    for (const field of IN_UNIT_FILE) {
      if (body[field] != null)
        add(`/${field}`, `${field} needs exec_start: without it orch does not write the unit file`);
    }
    return problems;
  }
  if (!unitNameOf(body.name).endsWith('.service'))
    add('/exec_start', 'exec_start is only for units that end in .service');
  add('/exec_start', named('exec_start', problemOfLine(body.exec_start)));
  add('/description', named('description', problemOfLine(body.description ?? 'none')));
  add('/working_directory', named('working_directory', problemOfDirectory(body.working_directory ?? '/')));
  for (const [name, value] of Object.entries(body.environment ?? {})) {
    add(`/environment/${escapePointer(name)}`, problemOfVariable(name, value));
  }
  for (const [at, name] of (body.dependencies ?? []).entries()) {
    add(`/dependencies/${at}`, named(name, problemOfUnitName(name)));
  }
  if (body.type === 'oneshot' && body.restart === 'always') {
    add('/restart', 'systemd refuses restart: always for type: oneshot; use on_failure');
  }
  return problems;
}

const named = (name: string, problem: string | null): string | null => (problem === null ? null : `${name} ${problem}`);

function problemOfLine(text: string): string | null {
  if (text.trim() === '') return 'must not be blank';
  if (CONTROL.test(text)) return 'must be one line without control characters';
  if (SURROGATE.test(text)) return 'is not valid Unicode text';
  // A backslash that nothing follows would take the next line of the unit file along.
  return /(?:^|[^\\])(?:\\\\)*\\$/.test(text) ? 'must not end with a backslash' : null;
}

function problemOfDirectory(path: string): string | null {
  if (path === '/') return null;
  if (path !== path.trim()) return 'must not begin or end with a blank';
  return problemOfUnixPath(path) ?? problemOfLine(path);
}

function problemOfVariable(name: string, value: string): string | null {
  if (!VARIABLE.test(name)) return 'a variable name is made of letters, digits and "_" and does not begin with a digit';
  if (CONTROL_IN_VALUE.test(value)) return `${name} holds a control character, which systemd does not take`;
  return SURROGATE.test(value) ? `${name} is not valid Unicode text` : null;
}
