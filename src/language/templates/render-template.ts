/** Renders a template with an engine for an agent. */
import type { Steps } from '../../kernel/steps.js';
import { type Environment, evaluate, isTrue, Missing, textsOfFact, valueOfReference } from '../evaluate.js';
import { type FillContext, GrowingText, missing, report } from '../filling.js';
import type { Expression, Reference } from '../parse-expression.js';
import { quoted } from '../printable.js';
import { byCodePoint, isList, isMap, SecretName, type Value, type ValueMap } from '../values.js';
import { EvaluationError } from '../work.js';
import { preRender } from './pre-render.js';
import {
  type CompiledTemplate,
  FORLOOP,
  MAX_NESTING,
  type Part,
  type TemplateCall,
  type TemplateLoop,
} from './template.js';

/** Returns the text of a template with its secret parts, in steps. Reports what has no value, each place once. */
export function renderTemplate(template: CompiledTemplate, filling: FillContext, path: string): Steps<GrowingText> {
  return new Rendering(filling, path).of(forElement(template, filling));
}

function forElement(template: CompiledTemplate, filling: FillContext): CompiledTemplate {
  const { preRendered } = filling;
  if (preRendered === undefined) return template;
  const known = preRendered.get(template);
  if (known !== undefined) return known;
  const found = preRender(template, filling);
  preRendered.set(template, found);
  return found;
}

/** Maximum number of mistakes that one text reports. */
const MAX_REPORTS = 100;
/** Characters that a filter looks at in the time of a report. */
const REPORT = 1_000;
/** Maximum number of parts that are rendered in one step. */
const MAX_AT_ONCE = 16;

/** Tells if parts are rendered in one step: few of them, and no loop or other template. */
const areAtOnce = (parts: readonly Part[]): boolean => roomAfter(parts, MAX_AT_ONCE) >= 0;

const isAtOnce = (part: Part): boolean => roomAfterPart(part, MAX_AT_ONCE) >= 0;

/** Returns how many parts more have room in a step beside these; a negative number if these have none. */
function roomAfter(parts: readonly Part[], room: number): number {
  let left = room;
  for (const part of parts) {
    left = roomAfterPart(part, left);
    if (left < 0) return left;
  }
  return left;
}

function roomAfterPart(part: Part, room: number): number {
  if (part.type === 'for' || part.type === 'render') return -1;
  let left = room - 1;
  if (part.type !== 'if') return left;
  for (const { parts } of part.branches) {
    left = roomAfter(parts, left - 1);
    if (left < 0) return left;
  }
  return roomAfter(part.otherwise, left);
}

class Rendering {
  private readonly growing: GrowingText;
  /** Messages by the offset of the part that they speak of. */
  private readonly reported = new Map<CompiledTemplate | null, Map<number, Set<string>>>();
  private reports = 0;
  private readonly places = new Map<CompiledTemplate | null, { readonly offset: number; readonly line: number }>();
  private readonly filling: FillContext;
  private readonly path: string;
  /** Where the rendering is, for messages. */
  private template: CompiledTemplate | null = null;
  private offset = 0;
  private depth = 0;

  constructor(filling: FillContext, path: string) {
    this.filling = filling;
    this.path = path;
    this.growing = new GrowingText(filling);
  }

  *of(template: CompiledTemplate): Steps<GrowingText> {
    const { agent, each, inputs, shared, work } = this.filling;
    try {
      yield* this.whole(template, { agent, each, inputs, shared, work, locals: {} });
      return this.growing.end();
    } catch (error) {
      if (!(error instanceof EvaluationError)) throw error;
      this.report('expression_error', error.message);
      return new GrowingText(this.filling);
    }
  }

  private *whole(template: CompiledTemplate, environment: Environment): Steps<void> {
    const around = this.template;
    this.template = template;
    yield* this.inSteps(template.parts, environment);
    this.template = around;
  }

  private *inSteps(parts: readonly Part[], environment: Environment): Steps<void> {
    const { work } = environment;
    work.step(parts.length);
    let at = 0;
    while (at < parts.length) {
      at = this.plainFrom(parts, at, environment);
      const part = parts[at];
      if (part !== undefined && !isAtOnce(part)) {
        yield* this.nested(part, environment);
        at += 1;
      }
      if (work.isPauseDue()) yield;
    }
  }

  /**
   * Renders parts from a position on, outside of a generator because that is faster. Returns the position of the next one, which
   * comes after a pause or needs steps.
   */
  private plainFrom(parts: readonly Part[], from: number, environment: Environment): number {
    const { work } = environment;
    let at = from;
    for (; at < parts.length; at += 1) {
      const part = parts[at];
      if (part === undefined || work.isPauseNear) break;
      if (part.type !== 'text' && part.type !== 'print' && !isAtOnce(part)) break;
      this.plain(part, environment);
    }
    return at;
  }

  private *nested(part: Part, environment: Environment): Steps<void> {
    if (part.type === 'for') yield* this.loop(part, environment);
    else if (part.type === 'render') yield* this.call(part, environment);
    else if (part.type === 'if') yield* this.inSteps(this.chosen(part, environment), environment);
  }

  /** Renders parts of which `areAtOnce` is true. */
  private atOnce(parts: readonly Part[], environment: Environment): void {
    environment.work.step(parts.length);
    for (const part of parts) this.plain(part, environment);
  }

  private plain(part: Part, environment: Environment): void {
    if (part.type === 'text') this.growing.add(part.text);
    else if (part.type === 'print') this.print(part, environment);
    else if (part.type === 'if') this.atOnce(this.chosen(part, environment), environment);
  }

  private print({ offset, expression }: Extract<Part, { readonly type: 'print' }>, environment: Environment): void {
    this.offset = offset;
    const { reference } = expression;
    const value = reference.from === 'secrets' ? new SecretName(reference.name) : this.value(expression, environment);
    const refusal = value === null ? null : this.growing.insert(value);
    if (refusal !== null) this.report('secret_unavailable', refusal);
  }

  /** Returns the parts of the branch whose condition holds. */
  private chosen(
    { branches, otherwise }: Extract<Part, { readonly type: 'if' }>,
    environment: Environment,
  ): readonly Part[] {
    for (const { offset, condition, parts } of branches) {
      this.offset = offset;
      environment.work.step(1);
      if (isTrue(condition, environment)) return parts;
    }
    return otherwise;
  }

  private *loop({ offset, name, source, parts, otherwise }: TemplateLoop, environment: Environment): Steps<void> {
    this.offset = offset;
    const value = this.value(source, environment);
    if (value === null) return;
    if (source.reference.from === 'facts') textsOfFact(source.reference, value);
    const elements = elementsOf(value);
    if (elements.length === 0) yield* this.inSteps(otherwise, environment);
    const { work } = environment;
    const isFew = areAtOnce(parts);
    // They are changed in place: a copy for each element costs more than most of what a loop does.
    const locals = namesLike(environment.locals);
    const inner = withLocals(environment, locals);
    for (const [index, element] of elements.entries()) {
      work.step(1);
      locals[name] = element;
      locals[FORLOOP] = {
        index: index + 1,
        first: index === 0,
        last: index === elements.length - 1,
        length: elements.length,
      };
      if (isFew) this.atOnce(parts, inner);
      else yield* this.inSteps(parts, inner);
      if (work.isPauseDue()) yield;
    }
  }

  private *call({ offset, id, given, isLine }: TemplateCall, environment: Environment): Steps<void> {
    this.offset = offset;
    const template = this.template?.others.get(id);
    if (template === undefined) throw new EvaluationError(`no template with an engine has the id ${quoted(id)}`);
    if (this.depth === MAX_NESTING)
      throw new EvaluationError(`templates render others at most ${MAX_NESTING} levels deep`);
    const locals = namesLike();
    for (const { name, value } of given) {
      const found = 'literal' in value ? value.literal : this.reference(value, environment);
      if (found === null) return;
      locals[name] = found;
    }
    this.depth += 1;
    const start = this.growing.text.length;
    yield* this.whole(template, withLocals(environment, locals));
    this.depth -= 1;
    const { text } = this.growing;
    if (isLine && text.length > start && !text.endsWith('\n')) this.growing.add('\n');
  }

  private value(expression: Expression, environment: Environment): Value | null {
    const value = evaluate(expression, environment);
    return value instanceof Missing ? this.report('expression_error', missing(value.reference)) : value;
  }

  private reference(reference: Reference, environment: Environment): Value | null {
    return valueOfReference(reference, environment) ?? this.report('expression_error', missing(reference));
  }

  private report(code: 'expression_error' | 'secret_unavailable', message: string): null {
    if (this.reports === MAX_REPORTS) return null;
    const { template, offset, filling, path } = this;
    filling.work.hasten(REPORT);
    const ofTemplate = this.reported.get(template) ?? new Map<number, Set<string>>();
    const ofPart = ofTemplate.get(offset) ?? new Set();
    if (ofPart.has(message)) return null;
    this.reported.set(template, ofTemplate.set(offset, ofPart.add(message)));
    this.reports += 1;
    const more = this.reports === MAX_REPORTS ? '; more mistakes may follow' : '';
    report(
      filling,
      code,
      path,
      `${message} (line ${this.line()} of the template ${quoted(template?.id ?? '')})${more}`,
    );
    return null;
  }

  /** Returns the line of the part. Counts on from the last line asked for, because each text may have a million characters. */
  private line(): number {
    const { template, offset } = this;
    const last = this.places.get(template);
    const from = last !== undefined && last.offset <= offset ? last : { offset: 0, line: 1 };
    let { line } = from;
    const text = template?.text ?? '';
    for (let at = text.indexOf('\n', from.offset); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line += 1;
    this.places.set(template, { offset, line });
    return line;
  }
}

/** Returns a copy of names with their values, without a prototype, so that a name such as `__proto__` is one like others. */
const namesLike = (names?: ValueMap): Record<string, Value> => Object.assign(Object.create(null), names);

/** Written out, because spreading the whole environment takes long. */
const withLocals = ({ agent, each, inputs, shared, work }: Environment, locals: ValueMap): Environment => ({
  agent,
  each,
  inputs,
  shared,
  work,
  locals,
});

/** Returns the elements of a list in its order; of a mapping, its names with their values in the order of the code points. */
function elementsOf(value: Value): readonly Value[] {
  if (isList(value)) return value;
  if (!isMap(value)) return [];
  const members = Object.entries(value).sort(([a], [b]) => byCodePoint(a, b));
  return members.map(([key, member]) => ({ key, value: member }));
}
