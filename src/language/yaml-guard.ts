/**
 * Refuses YAML that would cost too much or say more than a module may, before it is composed. The library's lexer and
 * parser are iterative, so that nothing here depends on how deep a text nests.
 */
import { CST, Lexer, Parser } from 'yaml';
import type { MistakeList } from './mistake.js';

/** Limits of a module's text (`security.md` c7). */
export const YAML_LIMITS = { bytes: 1024 * 1024, tokens: 100_000, depth: 64 } as const;

/** After so many anchors, aliases and tags the rest of the text is not looked at. */
const MAX_REFUSED = 100;

const REFUSED = {
  anchor: { code: 'yaml_anchor', what: 'anchors are not part of the module language' },
  alias: { code: 'yaml_alias', what: 'aliases are not part of the module language' },
  tag: { code: 'yaml_tag', what: 'tags are not part of the module language' },
  'directive-line': { code: 'yaml_directive', what: 'directives are not part of the module language' },
} as const;

type Refused = keyof typeof REFUSED;

const isRefused = (type: string | null): type is Refused => type !== null && Object.hasOwn(REFUSED, type);

/** The tokens of a text that may be composed, or null when it is refused; then at least one error is reported. */
export function guardYaml(text: string, mistakes: MistakeList): readonly CST.Token[] | null {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  const documents = documentCounter();
  let offset = 0;
  let count = 0;
  let refused = 0;
  let inScalar = false;
  const stop = (code: 'too_many_tokens' | 'too_deep' | 'yaml_documents', message: string, length = 0): null => {
    mistakes.error(code, message, '', { start: offset, end: offset + length });
    return null;
  };

  for (const lexeme of new Lexer().lex(text)) {
    const type: string | null = inScalar ? 'content' : CST.tokenType(lexeme);
    inScalar = type === 'scalar';
    count += 1;
    if (count > YAML_LIMITS.tokens) {
      return stop('too_many_tokens', `the module has more than ${YAML_LIMITS.tokens} YAML tokens; split it`);
    }
    if (isRefused(type)) {
      refuse(type, lexeme, { offset, mistakes });
      refused += 1;
      if (refused === MAX_REFUSED) return null;
    }
    if (documents.another(type)) {
      return stop(
        'yaml_documents',
        'a module file holds one YAML document, and a second one begins here',
        isMarker(type) ? 0 : lexeme.length,
      );
    }
    if (refused === 0) {
      for (const token of parser.next(lexeme)) tokens.push(token);
      if (isTooDeep(parser)) return stop('too_deep', `the module nests deeper than ${YAML_LIMITS.depth} levels`);
    }
    if (!isMarker(type)) offset += lexeme.length;
  }
  if (refused > 0) return null;
  for (const token of parser.end()) tokens.push(token);
  return tokens;
}

/** The lexer's own signs between the tokens, which are not in the text. */
const isMarker = (type: string | null): boolean =>
  type === 'doc-mode' || type === 'scalar' || type === 'flow-error-end';

/** One entry of the stack is the document and at most one, on top, a scalar; the rest are collections. */
function isTooDeep({ stack }: Parser): boolean {
  if (stack.length <= YAML_LIMITS.depth + 1) return false;
  return stack.length > YAML_LIMITS.depth + 2 || CST.isCollection(stack.at(-1));
}

function refuse(type: Refused, lexeme: string, at: { readonly offset: number; readonly mistakes: MistakeList }): void {
  const { code, what } = REFUSED[type];
  const advice = type === 'directive-line' ? '' : `; put a value that begins with "${lexeme[0]}" in quotes`;
  at.mistakes.error(code, what + advice, '', { start: at.offset, end: at.offset + lexeme.length });
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
