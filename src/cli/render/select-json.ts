/** Selects parts of an answer with JSONPath (RFC 9535), for `-o jsonpath=EXPR`. */
import { compile, JSONPathError } from 'json-p3';
import { Fault } from '../../kernel/fault.js';
import { escapeJson, sanitize } from './terminal-text.js';

/** Returns one line for each selected value: a text as it is, anything else as JSON. */
export type Selection = (body: unknown) => readonly string[];

/** Compiles an expression. Throws `usage` that says what is wrong with it. */
export function compileSelection(expression: string): Selection {
  const query = compileQuery(expression);
  return (body) =>
    // JSON turns a missing member into an absent one, as the API would have sent it.
    query
      .query(JSON.parse(JSON.stringify(body)))
      .values()
      .map(lineOf);
}

function compileQuery(expression: string) {
  const text = standardForm(expression);
  try {
    return compile(text);
  } catch (error) {
    if (!(error instanceof JSONPathError)) throw error;
    throw new Fault('usage', `"${expression}" is no JSONPath: ${error.message}`, {
      hint: `such as '$[*].name', or '$[?@.connected==false].name'; see: orch help output`,
      cause: error,
    });
  }
}

/** Returns the expression with the `$` of RFC 9535. kubectl also takes `{.items[*].name}` and `.items[*].name`. */
function standardForm(expression: string): string {
  const trimmed = expression.trim();
  const inner = /^\{(.*)\}$/s.exec(trimmed)?.[1]?.trim() ?? trimmed;
  return /^[.[]/.test(inner) ? `$${inner}` : inner;
}

const lineOf = (value: unknown): string =>
  typeof value === 'string' ? sanitize(value) : escapeJson(JSON.stringify(value));
