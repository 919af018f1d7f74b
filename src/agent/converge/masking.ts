/** Masks the secrets of one resource in every text that leaves the agent. */

import {
  MIN_SCRUBBED_LENGTH,
  mask,
  maskCounterpart,
  maskForeignLines,
  maskLines,
  maskOf,
  type Span,
} from '../../kernel/tainted.js';
import { escapePointer } from '../../kernel/validator.js';
import type { DesiredResource } from '../../resources/desired.js';
import type { FieldChange } from '../../resources/kind.js';
import type { Target } from './target.js';

export interface Texts {
  readonly before: string | null;
  readonly after: string | null;
}

/** A text that a sentence may contain, and the text shown in its place. */
interface Replacement {
  readonly text: string;
  readonly shown: string;
}

/** A resource, removal or check whose body may hold secrets. */
interface Masked {
  readonly source: Pick<DesiredResource, 'body' | 'taint'>;
}

export class Masking {
  private readonly body: Readonly<Record<string, unknown>>;
  private readonly taint: Readonly<Record<string, readonly Span[]>>;
  private readonly replacements: readonly Replacement[];

  private readonly hadSecrets: boolean;

  constructor({ source, hadSecrets = false }: Masked & Partial<Pick<Target, 'hadSecrets'>>) {
    this.hadSecrets = hadSecrets;
    this.body = source.body;
    this.taint = source.taint ?? {};
    this.replacements = Object.entries(this.taint)
      .flatMap(([pointer, spans]) => replacementsOf(textAt(this.body, pointer) ?? '', spans))
      // A longer text may contain a shorter one, so it is replaced first.
      .sort((a, b) => b.text.length - a.text.length);
  }

  get isEmpty(): boolean {
    return Object.keys(this.taint).length === 0;
  }

  /** Masks a sentence that may quote values of the body. */
  sentence(text: string): string {
    return this.replacements.reduce((shown, { text: from, shown: to }) => shown.replaceAll(from, () => to), text);
  }

  change({ field, before, after }: FieldChange): FieldChange {
    if (this.isEmpty) return { field, before: this.old(before, after), after };
    const spans = this.taint[`/${escapePointer(field)}`];
    const own = this.body[field];
    const counterpart = typeof own === 'string' ? own : undefined;
    return {
      field,
      before: before === null ? null : this.sentence(maskCounterpart(before, spans, counterpart)),
      after: after === null ? null : this.sentence(after === own ? mask(after, spans) : after),
    };
  }

  /** Masks the present text where an earlier body held secrets: only lines that the new text has too are shown. */
  private old(before: string | null, after: string | null): string | null {
    return before === null || !this.hadSecrets ? before : maskForeignLines(before, after ?? '');
  }

  /** Masks text content. When the positions of its secrets are unknown, no line is shown. */
  texts({ before, after }: Texts): Texts {
    if (this.isEmpty) return { before: this.old(before, after), after };
    const pointer = after === null ? undefined : pointerTo(this.body, after);
    if (pointer === undefined || after === null) {
      return { before: before === null ? null : maskLines(before), after: after === null ? null : maskLines(after) };
    }
    const spans = this.taint[pointer];
    return { before: before === null ? null : maskCounterpart(before, spans, after), after: mask(after, spans) };
  }
}

function replacementsOf(text: string, spans: readonly Span[]): readonly Replacement[] {
  const secrets = spans.map((span) => ({ text: text.slice(span.start, span.end), shown: maskOf(span) }));
  const long = secrets.filter((secret) => secret.text.length >= MIN_SCRUBBED_LENGTH);
  return text === '' ? [] : [{ text, shown: mask(text, spans) }, ...long];
}

function textAt(body: unknown, pointer: string): string | undefined {
  const tokens = pointer.split('/').slice(1);
  let value: unknown = body;
  for (const token of tokens.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, token)) return undefined;
    value = Reflect.get(value, token);
  }
  return typeof value === 'string' ? value : undefined;
}

/** Returns the JSON pointer to a text in the body. */
function pointerTo(value: unknown, text: string): string | undefined {
  if (value === text) return '';
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, member] of Object.entries(value)) {
    const inner = pointerTo(member, text);
    if (inner !== undefined) return `/${escapePointer(key)}${inner}`;
  }
  return undefined;
}
