/** Text that holds secrets: which parts came from which secret, and the one way to show it. */

/** A part of a text that came from a secret: `start` inclusive, `end` exclusive, in UTF-16 code units. */
export interface Span {
  readonly start: number;
  readonly end: number;
  /** Name of the secret. */
  readonly secret: string;
  /** Four hex digits of a keyed hash of the value: they tell whether it changed, not what it is. */
  readonly tag: string;
}

/** What stands in place of a secret's value wherever a text is shown, logged or stored. */
export const maskOf = (span: Pick<Span, 'secret' | 'tag'>): string => `‹secret ${span.secret} #${span.tag}›`;

/** The text with every span replaced by its mask. Spans are ordered and do not overlap. */
export function mask(text: string, spans: readonly Span[] | undefined): string {
  if (!spans?.length) return text;
  let shown = '';
  let from = 0;
  for (const span of spans) {
    shown += text.slice(from, span.start) + maskOf(span);
    from = span.end;
  }
  return shown + text.slice(from);
}

/**
 * A text known only in the clear (what is on the machine now), masked with what is known of its counterpart: every
 * line that could hold a secret is replaced as a whole. A text without a tainted counterpart is returned as it is.
 */
export function maskCounterpart(text: string, spans: readonly Span[] | undefined): string {
  if (!spans?.length || text === '') return text;
  const ending = text.endsWith('\n') ? '\n' : '';
  const lines = (ending ? text.slice(0, -1) : text).split('\n');
  return lines.map(() => '‹masked line›').join('\n') + ending;
}
