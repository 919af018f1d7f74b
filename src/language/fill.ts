/** Fills the blanks of a body for one agent, and keeps track of which parts of its texts are secrets. */

import type { Span } from '../kernel/tainted.js';
import { escapePointer } from '../kernel/validator.js';
import { MAX_CONTENT_BYTES } from '../resources/host.js';
import { type AgentLabels, own } from './clause.js';
import type { Compiled } from './compile-body.js';
import type { Reference, TextParts } from './expression.js';

export interface AgentFacts extends AgentLabels {
  readonly node_id: string;
  readonly name: string;
}

/** A secret's value, and four hex digits that tell whether it changed. */
export interface SecretValue {
  readonly value: string;
  readonly tag: string;
}

/** Why an agent does not get a secret: the end of a sentence that begins with its name. */
export interface SecretRefusal {
  readonly refused: string;
}

/** Gives a secret, or says why this agent does not get it; null is a secret that does not exist. */
export type SecretSource = (name: string) => SecretValue | SecretRefusal | null;

export interface FillProblem {
  readonly code: 'expression_error' | 'secret_unavailable';
  /** JSON pointer inside the body. */
  readonly path: string;
  readonly message: string;
}

export interface Filling {
  readonly agent: AgentFacts;
  readonly secret: SecretSource;
  readonly problems: FillProblem[];
  /** JSON pointer inside the body -> secret parts of the text there. */
  readonly taint: Map<string, readonly Span[]>;
  /** Characters that this resolution may still make out of expressions. */
  readonly room: { left: number };
}

/** The value with every blank filled. A blank that cannot be filled is reported and left empty. */
export function fill(compiled: Compiled, filling: Filling, path = ''): unknown {
  switch (compiled.type) {
    case 'constant':
      return compiled.value;
    case 'list':
      return compiled.items.map((item, index) => fill(item, filling, `${path}/${index}`));
    case 'map': {
      const members = compiled.members.map(([name, value]) => [
        name,
        fill(value, filling, `${path}/${escapePointer(name)}`),
      ]);
      return Object.fromEntries(members);
    }
    case 'text': {
      const { text, spans } = fillText(compiled.parts, filling, path);
      if (spans.length > 0) filling.taint.set(path, spans);
      return text;
    }
  }
}

/** A filled-in text and the parts of it that came from secrets, in order. */
export interface FilledText {
  readonly text: string;
  readonly spans: readonly Span[];
}

/** Fills in a text in a single pass: what is filled in is never looked at again. */
export function fillText(parts: TextParts, filling: Filling, path: string): FilledText {
  const spans: Span[] = [];
  let text = '';
  for (const part of parts) {
    const value: FilledValue | null = typeof part === 'string' ? { value: part } : lookUp(part, filling, path);
    if (value === null) continue;
    if (value.span) spans.push({ start: text.length, end: text.length + value.value.length, ...value.span });
    text += value.value;
    filling.room.left -= value.value.length;
    if (text.length > MAX_CONTENT_BYTES || filling.room.left < 0) {
      const message = `${fieldOf(path)}: the text is too long with its expressions filled in`;
      filling.problems.push({ code: 'expression_error', path, message });
      return { text: '', spans: [] };
    }
  }
  return { text, spans };
}

interface FilledValue {
  readonly value: string;
  readonly span?: Pick<Span, 'secret' | 'tag'>;
}

function lookUp({ from, name }: Reference, { agent, secret, problems }: Filling, path: string): FilledValue | null {
  if (from === 'agent') return { value: agent[name] };
  if (from === 'secrets') {
    const found = secret(name);
    if (found !== null && 'value' in found) return { value: found.value, span: { secret: name, tag: found.tag } };
    const message = `${fieldOf(path)}: the secret "${name}" ${found?.refused ?? 'does not exist'}`;
    problems.push({ code: 'secret_unavailable', path, message });
    return null;
  }
  const value = own(agent[from], name);
  if (value !== undefined) return { value };
  const noun = from === 'tags' ? 'tag' : 'attribute';
  problems.push({ code: 'expression_error', path, message: `${fieldOf(path)}: the agent has no ${noun} "${name}"` });
  return null;
}

/** The field of a body that a JSON pointer means, for messages. */
const fieldOf = (path: string): string => path.slice(1);
