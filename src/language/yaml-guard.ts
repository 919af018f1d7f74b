/**
 * Refuses YAML that would cost too much or say more than a module may, before it is composed. The library's lexer and
 * parser are iterative, so that nothing here depends on how deep a text nests.
 */
import { CST, Lexer, Parser } from 'yaml';
import type { DiagnosticCode } from './diagnostic-code.js';
import type { MistakeList } from './mistake.js';

/** Limits of a module's text (`docs/protocols/limits.md`). */
export const YAML_LIMITS = { bytes: 1024 * 1024, tokens: 100_000, depth: 64, aliases: 100 } as const;

/** After so many tags and directives the rest of the text is not looked at. */
const MAX_REFUSED = 100;

const REFUSED = {
  tag: { code: 'yaml_tag', what: 'tags are not part of the module language' },
  'directive-line': { code: 'yaml_directive', what: 'directives are not part of the module language' },
} as const;

type Refused = keyof typeof REFUSED;

/** Codes of anchors and aliases when there are too many; the composer's cost grows with their square. */
const REFERENCES = { anchor: 'yaml_anchor', alias: 'yaml_alias' } as const;

const isReference = (type: string | null): type is keyof typeof REFERENCES =>
  type !== null && Object.hasOwn(REFERENCES, type);

const isRefused = (type: string | null): type is Refused => type !== null && Object.hasOwn(REFUSED, type);

interface Lexeme {
  readonly text: string;
  /** What it is, in the library's words; `content` for the text of a plain or block scalar. */
  readonly type: string | null;
  readonly offset: number;
  /** Its length in the text; the lexer's own signs between the tokens are not in it. */
  readonly length: number;
}

/** The tokens of a text that may be composed, or null when it is refused; then at least one error is reported. */
export function guardYaml(text: string, mistakes: MistakeList): readonly CST.Token[] | null {
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
      return stop('too_many_tokens', `the module has more than ${YAML_LIMITS.tokens} YAML tokens; split it`);
    }
    if (documents.another(type)) {
      const message = 'a module file holds one YAML document, and a second one begins here';
      return stop('yaml_documents', message, offset + length);
    }
    if (isReference(type)) {
      references += 1;
      if (references > YAML_LIMITS.aliases) {
        const message = `the module has more than ${YAML_LIMITS.aliases} anchors and aliases; put values that begin with "&" or "*" in quotes`;
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
    if (isTooDeep(parser)) return stop('too_deep', `the module nests deeper than ${YAML_LIMITS.depth} levels`);
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

/** One entry of the stack is the document and at most one, on top, a scalar; the rest are collections. */
function isTooDeep({ stack }: Parser): boolean {
  if (stack.length <= YAML_LIMITS.depth + 1) return false;
  return stack.length > YAML_LIMITS.depth + 2 || CST.isCollection(stack.at(-1));
}

function refuse(type: Refused, { text, offset, length }: Lexeme, mistakes: MistakeList): void {
  const { code, what } = REFUSED[type];
  const advice = type === 'directive-line' ? '' : `; put a value that begins with "${text[0]}" in quotes`;
  mistakes.error(code, what + advice, '', { start: offset, end: offset + length });
}

/** Tells at which token a second document begins: at its `---`, or at its content after a `...`. */
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
