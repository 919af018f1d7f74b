/** Values of the running kernel in /proc/sys: how they are read, compared and set, and why one cannot be set. */
import type { CommandRefusal, CommandResult } from '../command.js';
import { commandFailure } from '../command.js';
import type { Host, PathFact, RunStep } from '../host.js';

/** A value of the kernel. */
export interface KernelValue {
  readonly fact: PathFact;
  /** True where /proc/sys is mounted read-only, as in most containers. */
  readonly isReadOnly: boolean;
}

/** Returns the values at some paths below /proc/sys, in their order. */
export function readKernelValues(host: Host, paths: readonly string[]): readonly KernelValue[] {
  const facts = host.observe(paths.map((path) => ({ path, content: true, entries: false })));
  return paths.map((path, at) => ({ fact: facts[at] ?? MISSING, isReadOnly: isReadOnly(host, path) }));
}

const MISSING: PathFact = { type: 'absent', parent: 'directory' };

/** Asks whether a change at the path would fail; nothing is changed. */
const isReadOnly = (host: Host, path: string): boolean =>
  host.obstacle?.({ do: 'set-metadata', path, expect: 'file', owner: null, group: null, mode: null })?.code ===
  'read_only';

/** Returns the text of a value with single blanks, because the kernel separates numbers with tabs; null where it has none. */
export const kernelText = ({ fact }: KernelValue): string | null =>
  fact.type === 'file' && fact.content.kind === 'text' ? plainValue(fact.content.text) : null;

export const plainValue = (text: string): string => text.trim().split(/\s+/).join(' ');

/** Returns why a value cannot be set, as far as its observation shows; null when nothing is known to be in the way. */
export function refusalOfKernelValue(name: string, { fact, isReadOnly: isFixed }: KernelValue): CommandRefusal | null {
  if (fact.type === 'unreadable') return { code: fact.code, message: fact.message };
  if (fact.type === 'absent') {
    const message = `the kernel of this machine has no setting ${name}; correct the name, or load the module that brings it first`;
    return { code: 'value_unknown', message };
  }
  if (fact.type !== 'file') return { code: 'value_unknown', message: `${name} is a group of settings, not one` };
  return isFixed ? readOnly(name) : null;
}

const readOnly = (name: string): CommandRefusal => ({
  code: 'read_only',
  message: `${name} cannot be changed here, because the settings of the kernel are read-only, as in most containers; set it on the host`,
});

/** Writes a value into the running kernel. `tee` names the error of the system. */
export const setKernelValue = (path: string, value: string): RunStep => ({
  do: 'run',
  command: { argv: ['tee', path], input: `${value}\n` },
});

/** Explains why a value could not be set. Quotes no output. */
export function explainKernelValue(name: string, step: RunStep, result: CommandResult): CommandRefusal {
  const { stderr } = result;
  if (stderr.includes('Read-only file system')) return readOnly(name);
  if (/Permission denied|not permitted/.test(stderr)) {
    return { code: 'permission_denied', message: `the kernel lets only root of the host change ${name}` };
  }
  if (/Invalid argument|Numerical result out of range/.test(stderr)) {
    return { code: 'value_unknown', message: `the kernel refuses the value of ${name}; look up which values it takes` };
  }
  return commandFailure(step.command, result);
}
