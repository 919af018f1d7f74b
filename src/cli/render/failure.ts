/** How a failure is told: a sentence and a hint to people, a problem document to programs. */
import { FAULTS } from '../../contract/faults.js';
import { Fault, isFault, messageOf } from '../../kernel/fault.js';
import { type Line, styled } from '../view.js';

/** What anything thrown looks like as one of ours. */
function faultOf(error: unknown): Fault {
  return isFault(error)
    ? error
    : new Fault('internal', `something went wrong inside orch: ${messageOf(error)}`, {
        hint: 'run it again with --verbose to see where, and report it',
        cause: error,
      });
}

/** The RFC 9457 problem document: the server's own members, or the same shape for what failed on this machine. */
export function problemOf(error: unknown): Readonly<Record<string, unknown>> {
  const { code, message, hint, errors, data } = faultOf(error);
  return {
    type: `urn:orch:problem:${code}`,
    title: FAULTS[code].title,
    detail: message,
    code,
    ...(hint === undefined ? {} : { hint }),
    ...(errors === undefined ? {} : { errors }),
    ...data,
  };
}

export function renderFailure(error: unknown, verbose: boolean): readonly Line[] {
  const fault = faultOf(error);
  const [first = '', ...more] = fault.message.split('\n');
  const all: Line[] = [[styled('bad', 'orch: '), first], ...more.map((line) => `  ${line}`)];
  for (const { path, message, line, column } of fault.errors ?? []) {
    // What the sentence tells already needs no line of its own.
    if (fault.message.includes(message)) continue;
    const place = line === undefined ? path : `${path || '/'} (line ${line}, column ${column ?? 1})`;
    all.push(`  ${place === '' ? '' : `${place}: `}${message}`);
  }
  if (fault.hint !== undefined) {
    const [hint = '', ...rest] = fault.hint.split('\n');
    all.push([styled('dim', '  hint: '), hint], ...rest.map((line) => `        ${line}`));
  }
  if (verbose) all.push(...details(error, fault));
  return all;
}

function details(error: unknown, fault: Fault): readonly Line[] {
  const requestId = fault.data?.request_id;
  const all: Line[] = [styled('dim', `  code: ${fault.code}`)];
  if (typeof requestId === 'string') all.push(styled('dim', `  request: ${requestId}`));
  if (fault.cause instanceof Error && isFault(error)) all.push(styled('dim', `  cause: ${fault.cause.message}`));
  if (!isFault(error) && error instanceof Error) {
    all.push(
      ...(error.stack ?? '')
        .split('\n')
        .slice(1)
        .map((line) => styled('dim', line)),
    );
  }
  return all;
}
