/** From the text of a module to its definition, with every mistake and its place at once. */
import { type Validator, validator } from '../kernel/validator.js';
import { checkModule } from './check-module.js';
import type { Diagnostic } from './diagnostic.js';
import { diagnosticsOf } from './diagnostics-of.js';
import type { KindSet } from './kind-set.js';
import { dataOf, type Located, placeAt } from './located.js';
import { MistakeList } from './mistake.js';
import { readYaml } from './read-yaml.js';
import { type ModuleDefinition, moduleSchema, STANDARD_KINDS } from './schema.js';
import { type Position, textLines } from './text-lines.js';

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
  const written = readYaml(text, lines, mistakes);
  const root = written === null ? null : checkModule(written, { text, lines, kinds, mistakes });
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
