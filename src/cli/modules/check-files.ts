/** Checks module files on this machine, with the code that the orchestrator checks them with. */

import { Fault } from '../../kernel/fault.js';
import { type Diagnostic, renderDiagnostic } from '../../language/diagnostic.js';
import { type ParsedModule, parseModule } from '../../language/parse-module.js';
import type { ModuleDefinition } from '../../language/schema.js';
import { count } from '../format.js';
import { plainText } from '../render/paint.js';
import { type Line, type Style, styled } from '../view.js';
import type { ModuleFile } from './module-files.js';

/** A file with what is wrong with it. */
export interface CheckedText extends ModuleFile {
  readonly valid: boolean;
  readonly diagnostics: readonly Diagnostic[];
}

export interface CheckedFile extends CheckedText {
  /** Of the module, as far as it could be read. */
  readonly name: string | null;
  readonly parsed: ParsedModule;
}

/** A file that holds a module. */
export interface ValidFile extends CheckedFile {
  readonly name: string;
  readonly definition: ModuleDefinition;
}

export const checkFiles = (files: readonly ModuleFile[]): readonly CheckedFile[] =>
  files.map((file) => {
    const parsed = parseModule(file.source);
    const { definition, diagnostics } = parsed;
    return { ...file, name: definition?.name ?? null, valid: definition !== null, diagnostics, parsed };
  });

/** Every mistake with the line it is in and a marker below. */
export const diagnosticLines = ({ path, source, diagnostics }: CheckedText): readonly Line[] =>
  diagnostics.flatMap((diagnostic) => {
    const [head = '', ...excerpt] = renderDiagnostic(diagnostic, { file: path, source }).split('\n');
    const style: Style = diagnostic.severity === 'error' ? 'bad' : 'warn';
    return [styled(style, head), ...excerpt];
  });

/** What is wrong with several files in one sentence, or null. */
export function sumUp(files: readonly CheckedText[]): string | null {
  const bad = files.filter(({ valid }) => !valid);
  if (bad.length === 0) return null;
  const errors = bad.flatMap(({ diagnostics }) => diagnostics).filter(({ severity }) => severity === 'error').length;
  return `${count(errors, 'error')} in ${bad.length === 1 ? (bad[0]?.path ?? '') : count(bad.length, 'file')}`;
}

/** The modules, ready to be used. Throws `invalid_module` with every mistake of every file. */
export function requireValid(files: readonly ModuleFile[]): readonly ValidFile[] {
  const checked = checkFiles(files);
  refuseInvalid(checked);
  refuseSameName(checked);
  return validFiles(checked);
}

/** Throws `invalid_module` with every mistake of every file. */
export function refuseInvalid(checked: readonly CheckedText[]): void {
  const told = sumUp(checked);
  if (told !== null) {
    const bad = checked.filter(({ valid }) => !valid);
    const list = bad.flatMap(diagnosticLines).map(plainText);
    throw new Fault('invalid_module', `${told}:\n${list.join('\n')}`, {
      hint: 'nothing was done',
      errors: bad.flatMap(({ diagnostics }) =>
        diagnostics.map(({ path, message, line, column }) => ({ path, message, line, column })),
      ),
    });
  }
}

/** Those that hold a module. */
export const validFiles = (checked: readonly CheckedFile[]): readonly ValidFile[] =>
  checked.flatMap((file) => {
    const { definition } = file.parsed;
    return definition === null ? [] : [{ ...file, name: definition.name, definition }];
  });

function refuseSameName(files: readonly CheckedFile[]): void {
  for (const [index, { name, path }] of files.entries()) {
    const before = files.slice(0, index).find((other) => other.name === name);
    if (before) throw new Fault('usage', `${before.path} and ${path} both hold the module "${name}"`);
  }
}
