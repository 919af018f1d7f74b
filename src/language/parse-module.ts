/** Parses the text of a module into its definition and reports every mistake with its place. */
import { type Check, validator } from '../kernel/validator.js';
import { checkModule } from './check-module.js';
import { definitionCheck } from './definition-check.js';
import { type Diagnostic, diagnosticsOf, MistakeList, type Position, textLines } from './diagnostic.js';
import { type FileBeside, type FindFile, findNoFile, isTemplatePath, UsedFiles } from './files-beside.js';
import type { KindSet } from './kind-set.js';
import { dataOf, type Located, placeAt } from './located.js';
import { readYaml } from './read-yaml.js';
import { type ModuleDefinition, moduleSchema, STANDARD_KINDS } from './schema.js';
import { LIQUID } from './templates/template.js';
import { isListPath } from './trees.js';

export interface ParsedModule {
  /** Null when there is an error. */
  readonly definition: ModuleDefinition | null;
  /** Errors and warnings in the order of their places. */
  readonly diagnostics: readonly Diagnostic[];
  /** Files beside the module that it names and that can be used, by path. */
  readonly files: ReadonlyMap<string, FileBeside>;
  /** Returns the position of a JSON pointer in the text, or of its nearest existing ancestor. */
  locate(pointer: string): Position;
}

/** @param findFile finds the files beside the module [default: finds none] */
type ModuleParser = (source: string, findFile?: FindFile) => ParsedModule;

interface Rules {
  readonly kinds: KindSet;
  readonly definitions: Check<ModuleDefinition>;
}

/** Creates a parser for modules with the given kinds. */
export function moduleParser(kinds: KindSet): ModuleParser {
  const definitions: Check<ModuleDefinition> = validator(moduleSchema(kinds));
  return (source, findFile) => parseWith(source, { kinds, definitions }, findFile);
}

/** Parses and validates any text; never throws. */
export const parseModule: ModuleParser = (source, findFile) =>
  parseWith(source, { kinds: STANDARD_KINDS, definitions: definitionCheck }, findFile);

function parseWith(source: string, rules: Rules, findFile = findNoFile): ParsedModule {
  const { kinds } = rules;
  const text = source.startsWith('\ufeff') ? source.slice(1) : source;
  const lines = textLines(text);
  const mistakes = new MistakeList();
  const written = readYaml(text, lines, mistakes);
  const files = new UsedFiles(findFile);
  const root = written === null ? null : checkModule(written, { text, lines, kinds, mistakes, files });
  const definition = root === null || mistakes.failed ? null : definitionOf(root, rules, mistakes);
  return {
    definition: definition === null ? null : withFiles(definition, files.found),
    files: files.found,
    diagnostics: diagnosticsOf(mistakes.found, lines),
    locate: (pointer) => lines.positionAt(root === null ? 0 : placeAt(root, pointer).start),
  };
}

/** Validates the data with the compiled schema and reports mistakes that only the schema finds. */
function definitionOf(root: Located, { kinds, definitions }: Rules, mistakes: MistakeList): ModuleDefinition | null {
  const data = dataOf(root);
  if (definitions.check(data)) return data;
  for (const { path, message } of validator(moduleSchema(kinds)).problems(data)) {
    mistakes.error('invalid_value', message, path, placeAt(root, path));
  }
  return null;
}

/** Adds the digests of the files, those that are templates to the templates, and the lists of directories. */
function withFiles(definition: ModuleDefinition, files: ReadonlyMap<string, FileBeside>): ModuleDefinition {
  if (files.size === 0) return definition;
  const templates = [...files].flatMap(([id, { text }]) =>
    text === undefined || !isTemplatePath(id) ? [] : [{ id, content: text, engine: LIQUID } as const],
  );
  const trees = [...files].flatMap(([path, { text }]) =>
    text === undefined || !isListPath(path) ? [] : [[path.slice(0, -1), text] as const],
  );
  return {
    ...definition,
    ...(templates.length > 0 && { templates: [...(definition.templates ?? []), ...templates] }),
    ...(trees.length > 0 && { trees: Object.fromEntries(trees) }),
    files: Object.fromEntries([...files].map(([path, { sha256 }]) => [path, sha256])),
  };
}
