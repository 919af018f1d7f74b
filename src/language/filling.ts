/** Inserts values of expressions into texts for an agent, and records which parts are secrets. */
import type { Span } from '../kernel/tainted.js';
import { MAX_CONTENT_BYTES } from '../resources/host.js';
import { type Environment, evaluate, Missing } from './evaluate.js';
import type { TextParts } from './expression.js';
import { type Expression, type Reference, written } from './parse-expression.js';
import type { CompiledTemplate } from './templates/template.js';
import { isList, SecretName, textOf, type Value } from './values.js';
import { EvaluationError } from './work.js';

/** A secret's value, and four hex digits that change with it. */
interface SecretValue {
  readonly value: string;
  readonly tag: string;
}

/** Reason why an agent does not get a secret, as the end of a sentence that begins with the secret's name. */
export interface SecretRefusal {
  readonly refused: string;
}

/** Returns a secret's value, the reason why this agent does not get it, or null for a secret that does not exist. */
export type SecretSource = (name: string) => SecretValue | SecretRefusal | null;

export interface FillProblem {
  readonly code: 'expression_error' | 'secret_unavailable';
  /** JSON pointer inside the body. */
  readonly path: string;
  readonly message: string;
}

export interface FillContext extends Environment {
  readonly secret: SecretSource;
  readonly problems: FillProblem[];
  /** Secret parts of texts, by JSON pointer inside the body. */
  readonly taint: Map<string, readonly Span[]>;
  /** Remaining characters that expressions of this resolution may produce. */
  readonly room: { left: number };
  /** Templates of the module whose parts that no element changes are rendered already; absent outside of loops. */
  readonly preRendered?: Map<CompiledTemplate, CompiledTemplate> | undefined;
}

/** A text with its expressions filled in, and its secret parts in order. */
export interface FilledText {
  readonly text: string;
  readonly spans: readonly Span[];
}

/** A text while values are inserted, in a single pass, so that expressions in inserted values stay text. */
export class GrowingText implements FilledText {
  text = '';
  readonly spans: Span[] = [];
  private readonly room: FillContext['room'];
  private readonly secret: FillContext['secret'];

  constructor({ room, secret }: Pick<FillContext, 'room' | 'secret'>) {
    this.room = room;
    this.secret = secret;
  }

  /** Appends a text. Throws `EvaluationError` if the whole gets too long. */
  add(text: string): void {
    this.text += text;
    if (this.text.length > MAX_CONTENT_BYTES) throw new EvaluationError(TOO_LONG);
  }

  /** Counts the whole text. Throws `EvaluationError` if all texts of the resolution get too long. */
  end(): this {
    this.room.left -= this.text.length;
    if (this.room.left < 0) throw new EvaluationError(TOO_LONG);
    return this;
  }

  /** Appends a value, a secret with its span. Returns a message about a secret that the agent does not get, or null. */
  insert(value: Value): string | null {
    if (typeof value === 'string') {
      this.add(value);
      return null;
    }
    if (!(value instanceof SecretName)) {
      // Only the type of a fact of one's own is not known before.
      if (typeof value === 'object') throw new EvaluationError(notInserted(value));
      this.add(textOf(value));
      return null;
    }
    const found = this.secret(value.secret);
    if (found === null || 'refused' in found)
      return `the secret "${value.secret}" ${found?.refused ?? 'does not exist'}`;
    const start = this.text.length;
    this.spans.push({ start, end: start + found.value.length, secret: value.secret, tag: found.tag });
    this.add(found.value);
    return null;
  }
}

const notInserted = (value: Value): string =>
  isList(value)
    ? 'this is a list, which cannot be inserted; end with | join: " ", first or last'
    : 'this is a mapping, which cannot be inserted; name a field of it, or end with | to_json';

export const TOO_LONG = 'the text is too long with its expressions filled in';
const EMPTY: FilledText = { text: '', spans: [] };

/** Fills in a text. Reports an expression without a value and leaves it out. */
export function fillText(parts: TextParts, filling: FillContext, path: string): FilledText {
  const growing = new GrowingText(filling);
  try {
    for (const part of parts) {
      if (typeof part === 'string') growing.add(part);
      else {
        const value = valueFor(part, filling, path);
        const refusal = value === null ? null : growing.insert(value);
        if (refusal !== null) report(filling, 'secret_unavailable', path, refusal);
      }
    }
    return growing.end();
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    report(filling, 'expression_error', path, error.message);
    return EMPTY;
  }
}

/** Reports a mistake in the field of a JSON pointer. */
export function report({ problems }: FillContext, code: FillProblem['code'], path: string, message: string): void {
  problems.push({ code, path, message: `${path.slice(1)}: ${message}` });
}

/** Returns the value of an expression, or null after it has reported why there is none. */
export function valueFor(expression: Expression, filling: FillContext, path: string): Value | null {
  if (expression.reference.from === 'secrets') return new SecretName(expression.reference.name);
  try {
    const value = evaluate(expression, filling);
    if (!(value instanceof Missing)) return value;
    report(filling, 'expression_error', path, missing(value.reference));
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    report(filling, 'expression_error', path, error.message);
  }
  return null;
}

/** Returns a message about a value that is not there. */
export function missing(reference: Reference): string {
  const { from, name } = reference;
  if (from === 'each') return `this element has no ${name.split('.').at(-1)}`;
  if (from === 'inputs' || from === 'local') return `${written(reference)} has no value`;
  if (from === 'shared') return `the agent has no shared value "${name}"; set it below "shared" in a value set`;
  const mend = name.includes('|') ? '; write a filter after " | ", with a space on both sides' : '';
  const noun = from === 'tags' ? 'tag' : from === 'facts' ? 'fact' : 'attribute';
  return `the agent has no ${noun} "${name}"${mend}`;
}
