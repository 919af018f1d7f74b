/** Parses module texts for the engine, on the calling thread or through an interface for other threads. */
import { createHash } from 'node:crypto';
import type { Warning } from '../../../src/contract/modules.js';
import { Fault, type FaultDetail } from '../../../src/kernel/fault.js';
import type { Diagnostic, Position } from '../../../src/language/diagnostic.js';
import { type FileDigests, identityText } from '../../../src/language/files-beside.js';
import { parseValueSet, type ValueSet } from '../../../src/language/inputs/value-set.js';
import { parseModule } from '../../../src/language/parse-module.js';
import type { ModuleDefinition } from '../../../src/language/schema.js';
import type { AttachedFiles } from './module-files.js';

export interface ParsedText {
  /** Null when the text has an error. */
  readonly definition: ModuleDefinition | null;
  /** Errors and warnings, by position. */
  readonly diagnostics: readonly Diagnostic[];
  /** Position of the module's name. */
  readonly name: Position;
}

export interface ParsedValues {
  /** Null when the text has an error. */
  readonly set: ValueSet | null;
  /** Errors and warnings, by position. */
  readonly diagnostics: readonly Diagnostic[];
}

/** Parses texts. One that waits for its turn counts for the operator who sent it; null for none. */
export interface TextParser {
  /** Parses a module. @param files those beside it */
  parse(content: string, files: AttachedFiles, operatorId: string | null): Promise<ParsedText>;
  /** Parses a value set. */
  parseValues(content: string, operatorId: string | null): Promise<ParsedValues>;
  /** Returns the positions in a text for JSON pointers into its definition. */
  locate(content: string, pointers: readonly string[]): Promise<readonly Position[]>;
}

export function parseText(content: string, files: AttachedFiles = {}): ParsedText {
  const { definition, diagnostics, locate } = parseModule(content, (path) =>
    Object.hasOwn(files, path) ? (files[path] ?? NOT_SENT) : NOT_SENT,
  );
  return { definition, diagnostics, name: locate('/name') };
}

const NOT_SENT = 'did not come with the module';

export function parseValues(content: string): ParsedValues {
  const { set, diagnostics } = parseValueSet(content);
  return { set, diagnostics };
}

export function locateIn(content: string, pointers: readonly string[]): readonly Position[] {
  const { locate } = parseModule(content);
  return pointers.map(locate);
}

/** A valid module text: its definition, digest and warnings. */
interface CheckedModule {
  readonly definition: ModuleDefinition;
  /** `digestOf` the module. */
  readonly sha256: string;
  readonly warnings: readonly Warning[];
  /** Where the text has its name. */
  readonly place: Position;
}

/** Returns the SHA-256 of a text in UTF-8, with the files beside it if it is that of a module, in hex. */
export const digestOf = (content: string, files?: FileDigests): string =>
  createHash('sha256').update(identityText(content, files)).digest('hex');

interface SentText {
  readonly name: string;
  readonly content: string;
  readonly files: AttachedFiles;
  /** Operator who sent the text; null for none. */
  readonly operatorId: string | null;
}

/**
 * Parses a text. Throws `invalid_module` with every mistake, including a name that differs from the given one, and a file that the
 * module does not use.
 */
export async function checkUpload(
  parser: TextParser,
  { name, content, files, operatorId }: SentText,
): Promise<CheckedModule> {
  const { definition, diagnostics, name: place } = await parser.parse(content, files, operatorId);
  const found = diagnostics.map(({ severity, path, message, line, column }) => ({
    severity,
    detail: { path, message, line, column },
  }));
  const errors: FaultDetail[] = found.filter(({ severity }) => severity === 'error').map(({ detail }) => detail);
  if (definition !== null && definition.name !== name) errors.push({ ...misnamed(name, definition), ...place });
  const used = definition?.files ?? {};
  const unused = Object.keys(files).find((path) => !Object.hasOwn(used, path));
  if (definition !== null && unused !== undefined) {
    errors.push({ path: '', message: `the module does not use the file "${unused}" that came with it`, ...place });
  }
  if (definition === null || errors.length > 0) throw invalid(name, errors);
  return {
    definition,
    sha256: digestOf(content, definition.files),
    warnings: found.filter(({ severity }) => severity === 'warning').map(({ detail }) => detail),
    place,
  };
}

/** Throws `invalid_module` when the definition's name differs from the name it was sent under. */
export function requireName(name: string, definition: ModuleDefinition): void {
  if (definition.name !== name) throw invalid(name, [misnamed(name, definition)]);
}

const misnamed = (name: string, definition: ModuleDefinition): FaultDetail => ({
  path: '/name',
  message: `the module is named "${definition.name}", but is sent as "${name}"`,
});

function invalid(name: string, errors: readonly FaultDetail[]): Fault {
  const [first] = errors;
  const place = first?.line === undefined ? '' : ` (line ${first.line})`;
  const more = errors.length > 1 ? ` and ${errors.length - 1} more` : '';
  const what = first === undefined ? 'it is no module' : `${first.message}${place}${more}`;
  return new Fault('invalid_module', `module "${name}" is not valid: ${what}`, {
    hint: 'check it first: orch module validate FILE',
    errors,
  });
}
