/** From the text of a module to its definition, with every mistake and its place at once. */
import { type Validator, validator } from '../kernel/validator.js';
import { checkModule } from './check-module.js';
import type { Diagnostic } from './diagnostic.js';
import type { KindSet } from './kind-set.js';
import { dataOf, type Located, placeAt } from './located.js';
import { type Mistake, MistakeList } from './mistake.js';
import { readYaml } from './read-yaml.js';
import { type ModuleDefinition, moduleSchema, STANDARD_KINDS } from './schema.js';
import { type Position, type TextLines, textLines } from './text-lines.js';

/** A file with more mistakes is no module with mistakes. */
const MAX_DIAGNOSTICS = 1000;

export interface ParsedModule {
  /** Null when there is an error. */
  readonly definition: ModuleDefinition | null;
  /** Errors and warnings in the order of their places. */
  readonly diagnostics: readonly Diagnostic[];
  /** Where a JSON pointer into the definition stands in the text, or the nearest thing around it. */
  locate(pointer: string): Position;
}

export type ModuleParser = (source: string) => ParsedModule;

/** Makes a parser for modules that may use the given kinds. */
export function moduleParser(kinds: KindSet): ModuleParser {
  const definition: Validator<ModuleDefinition> = validator(moduleSchema(kinds));
  return (source) => parseWith(source, kinds, definition);
}

/** Parses and validates the text of a module; never throws, whatever the text is. */
export const parseModule: ModuleParser = moduleParser(STANDARD_KINDS);

function parseWith(source: string, kinds: KindSet, definitions: Validator<ModuleDefinition>): ParsedModule {
  const text = source.startsWith('\ufeff') ? source.slice(1) : source;
  const lines = textLines(text);
  const mistakes = new MistakeList();
  const root = readYaml(text, lines, mistakes);
  if (root !== null) checkModule(root, { text, lines, kinds, mistakes });
  const definition = root === null || mistakes.failed ? null : definitionOf(root, definitions, mistakes);
  return {
    definition,
    diagnostics: diagnosticsOf(mistakes.found, lines),
    locate: (pointer) => lines.positionAt(root === null ? 0 : placeAt(root, pointer).start),
  };
}

/** The definition by the one schema; what only the schema refuses is reported as it says it. */
function definitionOf(
  root: Located,
  definitions: Validator<ModuleDefinition>,
  mistakes: MistakeList,
): ModuleDefinition | null {
  const data = dataOf(root);
  if (definitions.check(data)) return data;
  for (const { path, message } of definitions.problems(data)) {
    mistakes.error('invalid_value', message, path, placeAt(root, path));
  }
  return null;
}

function diagnosticsOf(mistakes: readonly Mistake[], lines: TextLines): readonly Diagnostic[] {
  const sorted = [...mistakes].sort((a, b) => a.start - b.start || order(a) - order(b));
  const shown = sorted.slice(0, MAX_DIAGNOSTICS).map((mistake) => diagnosticOf(mistake, lines));
  const next = sorted[MAX_DIAGNOSTICS];
  if (next === undefined) return shown;
  const message = `${sorted.length - MAX_DIAGNOSTICS} more mistakes follow`;
  return [...shown, diagnosticOf({ ...next, severity: 'error', code: 'too_many_mistakes', message, path: '' }, lines)];
}

const order = ({ severity }: Mistake): number => (severity === 'error' ? 0 : 1);

function diagnosticOf({ severity, code, message, path, start, end }: Mistake, lines: TextLines): Diagnostic {
  const { line, column } = lines.positionAt(start);
  const until = end > start ? lines.positionAt(end) : null;
  const marked = until !== null && until.line === line ? { endColumn: until.column } : {};
  return { severity, code, message, path, line, column, ...marked };
}
