/** Parses texts of modules for the engine: its interface, and the parser that works where it is called. */
import type { Diagnostic, Position } from '../../../src/language/diagnostic.js';
import { parseModule } from '../../../src/language/parse-module.js';
import type { ModuleDefinition } from '../../../src/language/schema.js';

export interface ParsedText {
  /** Null when there is an error. */
  readonly definition: ModuleDefinition | null;
  /** Errors and warnings in the order of their places. */
  readonly diagnostics: readonly Diagnostic[];
  /** The place of the module's name. */
  readonly name: Position;
}

export interface TextParser {
  parse(content: string): Promise<ParsedText>;
  /** The positions in a text that JSON pointers into its definition mean. */
  locate(content: string, pointers: readonly string[]): Promise<readonly Position[]>;
}

export function parseText(content: string): ParsedText {
  const { definition, diagnostics, locate } = parseModule(content);
  return { definition, diagnostics, name: locate('/name') };
}

export function locateIn(content: string, pointers: readonly string[]): readonly Position[] {
  const { locate } = parseModule(content);
  return pointers.map(locate);
}

/** Parses on the calling thread, which a large module holds up for half a second. */
export const inlineParser: TextParser = {
  parse: async (content) => parseText(content),
  locate: async (content, pointers) => locateIn(content, pointers),
};
