/**
 * Refuses YAML that is too expensive or uses features outside the module language: characters, tokens, tags, nesting, and
 * aliases. It runs before composing. The library's lexer and parser are iterative, so deep nesting does no harm here.
 */
import { CST, isAlias, isSeq, Lexer, Parser } from 'yaml';
import type { DiagnosticCode, MistakeList, Place } from './diagnostic.js';
import type { Located } from './located.js';
import { quoted } from './printable.js';

/** Limits of a module's text (`docs/protocols/limits.md`). */
export const YAML_LIMITS = { bytes: 1024 * 1024, tokens: 100_000, depth: 64, aliases: 100 } as const;

/** Number of tags and directives after which the rest of the text is skipped. */
const MAX_REFUSED = 100;

const REFUSED = {
  tag: { code: 'yaml_tag', what: 'tags are not part of the module language' },
  'directive-line': { code: 'yaml_directive', what: 'directives are not part of the module language' },
} as const;

type Refused = keyof typeof REFUSED;

/** Codes for too many anchors and aliases; the composer's cost grows with their square. */
const REFERENCES = { anchor: 'yaml_anchor', alias: 'yaml_alias' } as const;

const isReference = (type: string | null): type is keyof typeof REFERENCES =>
  type !== null && Object.hasOwn(REFERENCES, type);

const isRefused = (type: string | null): type is Refused => type !== null && Object.hasOwn(REFUSED, type);

interface Lexeme {
  readonly text: string;
  /** Token type of the library; `content` for the text of a plain or block scalar. */
  readonly type: string | null;
  readonly offset: number;
  /** Length in the source text; 0 for marks that the lexer inserts. */
  readonly length: number;
}

/** Returns the tokens of an acceptable text. Returns null and reports at least one error otherwise. */
export function guardYaml(text: string, mistakes: MistakeList, noun = 'module'): readonly CST.Token[] | null {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  const documents = documentCounter();
  let count = 0;
  let refused = 0;
  let references = 0;
  for (const lexeme of lexemesOf(text)) {
    const { type, offset, length } = lexeme;
    const stop = (code: DiagnosticCode, message: string, end = offset): null => {
      mistakes.error(code, message, '', { start: offset, end });
      return null;
    };
    count += 1;
    if (count > YAML_LIMITS.tokens) {
      return stop('too_many_tokens', `the ${noun} has more than ${YAML_LIMITS.tokens} YAML tokens; split it`);
    }
    if (documents.another(type)) {
      const message = 'a module file holds one YAML document, and a second one begins here';
      return stop('yaml_documents', message, offset + length);
    }
    if (isReference(type)) {
      references += 1;
      if (references > YAML_LIMITS.aliases) {
        const message = `the ${noun} has more than ${YAML_LIMITS.aliases} anchors and aliases; put values that begin with "&" or "*" in quotes`;
        return stop(REFERENCES[type], message, offset + length);
      }
    }
    if (isRefused(type)) {
      refuse(type, lexeme, mistakes);
      refused += 1;
      if (refused === MAX_REFUSED) return null;
    }
    if (refused > 0) continue;
    for (const token of parser.next(lexeme.text)) tokens.push(token);
    if (isTooDeep(parser)) return stop('too_deep', `the ${noun} nests deeper than ${YAML_LIMITS.depth} levels`);
  }
  if (refused > 0) return null;
  for (const token of parser.end()) tokens.push(token);
  return tokens;
}

function* lexemesOf(source: string): Generator<Lexeme> {
  let offset = 0;
  let isContent = false;
  for (const text of new Lexer().lex(source)) {
    const type: string | null = isContent ? 'content' : CST.tokenType(text);
    const length = type === 'doc-mode' || type === 'scalar' || type === 'flow-error-end' ? 0 : text.length;
    yield { text, type, offset, length };
    isContent = type === 'scalar';
    offset += length;
  }
}

/** The stack holds the document, collections, and at most one scalar on top. */
function isTooDeep({ stack }: Parser): boolean {
  if (stack.length <= YAML_LIMITS.depth + 1) return false;
  return stack.length > YAML_LIMITS.depth + 2 || CST.isCollection(stack.at(-1));
}

function refuse(type: Refused, { text, offset, length }: Lexeme, mistakes: MistakeList): void {
  const { code, what } = REFUSED[type];
  const advice = type === 'directive-line' ? '' : `; put a value that begins with "${text[0]}" in quotes`;
  mistakes.error(code, what + advice, '', { start: offset, end: offset + length });
}

/** Finds the token that begins a second document: its `---`, or its content after a `...`. */
function documentCounter(): { another(type: string | null): boolean } {
  let modes = 0;
  let started = false;
  return {
    another(type) {
      switch (type) {
        case 'doc-mode':
          modes += 1;
          started &&= modes === 1;
          return false;
        case 'doc-start': {
          const again = started || modes > 1;
          started = true;
          return again;
        }
        case 'doc-end':
        case 'newline':
        case 'space':
        case 'comment':
        case 'directive-line':
        case 'byte-order-mark':
          return false;
        default:
          started = true;
          return modes > 1;
      }
    },
  };
}

/** Number of values inside a value, itself included, and their nesting depth. */
interface Extent {
  readonly size: number;
  readonly depth: number;
}

interface Anchor extends Place {
  readonly name: string;
  /** Null until the value is complete. */
  value: (Extent & { readonly located: Located }) | null;
  isUsed: boolean;
}

/** Maximum number of values that all aliases may repeat. */
const MOST_VALUES = YAML_LIMITS.tokens;

/** Anchors of a text, and aliases that repeat their values. An anchor must precede its aliases. */
export class Anchors {
  private readonly mistakes: MistakeList;
  /** Last anchor of each name. */
  private readonly known = new Map<string, Anchor>();
  private readonly all: Anchor[] = [];
  /** Extents of values with an anchor. */
  private readonly extents = new Map<Located, Extent>();
  private left: number = MOST_VALUES;

  constructor(mistakes: MistakeList) {
    this.mistakes = mistakes;
  }

  /** Records the start of an anchor's value. `near` is the place of its key. */
  begin(name: string | undefined, text: string, near: Place): Anchor | null {
    if (name === undefined) return null;
    const start = text.indexOf(`&${name}`, near.start);
    const anchor: Anchor = { name, start, end: start + name.length + 1, value: null, isUsed: false };
    this.known.set(name, anchor);
    this.all.push(anchor);
    return anchor;
  }

  end(anchor: Anchor | null, located: Located): void {
    if (anchor === null) return;
    const extent = this.extentOf(located);
    this.extents.set(located, extent);
    anchor.value = { located, ...extent };
  }

  /** Returns the value of an alias. Returns null and reports the mistake of an invalid one. */
  valueOf(name: string, place: Place, path: string): Located | null {
    const anchor = this.known.get(name);
    const problem = anchor === undefined ? unknownAnchor(name) : this.problemOf(anchor, path);
    if (anchor) anchor.isUsed = true;
    if (problem === null) return anchor?.value?.located ?? null;
    this.mistakes.error('yaml_alias', problem, path, place);
    return null;
  }

  /** Counts the anchors of the aliases in a value that is dropped as used. */
  useIn(node: unknown): void {
    for (const one of isSeq(node) ? node.items : [node]) {
      const anchor = isAlias(one) ? this.known.get(one.source) : undefined;
      if (anchor) anchor.isUsed = true;
    }
  }

  /** Warns about unused anchors: an unquoted value that begins with `&` is read as an anchor without a value. */
  warnOfUnused(): void {
    for (const anchor of this.all) {
      if (anchor.isUsed) continue;
      const message = `no alias uses the anchor ${quoted(anchor.name)}; put a value that begins with "&" in quotes`;
      this.mistakes.warning('yaml_anchor', message, '', anchor);
    }
  }

  private problemOf({ name, value }: Anchor, path: string): string | null {
    if (value === null) return `the value of the anchor ${quoted(name)} holds this alias of it`;
    this.left -= value.size;
    if (this.left < 0) return `the aliases of this file stand for more than ${MOST_VALUES} values`;
    const depth = path.split('/').length + value.depth;
    return depth > YAML_LIMITS.depth ? `with this alias, the file nests deeper than ${YAML_LIMITS.depth} levels` : null;
  }

  private extentOf(node: Located): Extent {
    if (node.type === 'scalar') return { size: 1, depth: 1 };
    const known = this.extents.get(node);
    if (known !== undefined) return known;
    const inner = node.type === 'list' ? node.items : [...node.members.values()].map(({ value }) => value);
    let size = 1;
    let depth = 0;
    for (const one of inner) {
      const extent = this.extentOf(one);
      size += extent.size;
      depth = Math.max(depth, extent.depth);
    }
    return { size, depth: depth + 1 };
  }
}

const unknownAnchor = (name: string): string =>
  `no anchor ${quoted(name)} stands before this alias; put a value that begins with "*" in quotes`;

// Forbidden: C0 except tab and line ends, DEL, C1 except NEL, a carriage return alone, a byte order mark inside, lone surrogates.
const FORBIDDEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f\ufeff]|\r(?!\n)|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Reports every forbidden character and returns false when there is one. `text` has no byte order mark. */
export function checkCharacters(text: string, mistakes: MistakeList): boolean {
  let sound = true;
  for (const match of text.matchAll(FORBIDDEN)) {
    sound = false;
    const code = match[0].charCodeAt(0);
    const place = { start: match.index, end: match.index + 1 };
    if (code === 0xfeff) mistakes.error('byte_order_mark', 'a byte order mark may only stand at the start', '', place);
    else mistakes.error('control_character', messageOf(code), '', place);
  }
  return sound;
}

function messageOf(code: number): string {
  if (code === 0) return 'a NUL character is not allowed in a module';
  if (code === 0x0d) return 'a carriage return is not allowed without a line feed behind it';
  const name = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  if (code >= 0xd800) return `half of a surrogate pair (${name}) is not a character`;
  return `the control character ${name} is not allowed; in double quotes write it as an escape such as "\\x1b"`;
}
