/**
 * Templates with `engine: liquid`: conditions and loops in the syntax of Liquid (https://shopify.github.io/liquid),
 * with the expressions, conditions and types of the rest of the language.
 */
import { type Condition, referencesOfCondition } from '../parse-condition.js';
import { type Expression, type Literal, type Reference, referencesOf } from '../parse-expression.js';

/** Value of `engine`. */
export const LIQUID = 'liquid';

/** Part of a template; `offset` is that of its opening in the text. */
export type Part =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'print'; readonly offset: number; readonly expression: Expression }
  | { readonly type: 'if'; readonly branches: readonly Branch[]; readonly otherwise: readonly Part[] }
  | TemplateLoop
  | TemplateCall;

export interface Branch {
  readonly offset: number;
  readonly condition: Condition;
  readonly parts: readonly Part[];
}

export interface TemplateLoop {
  readonly type: 'for';
  readonly offset: number;
  /** Name of the element. */
  readonly name: string;
  readonly source: Expression;
  readonly parts: readonly Part[];
  /** What stands there for no element. */
  readonly otherwise: readonly Part[];
}

/** Another template in the place of `{% render %}`. */
export interface TemplateCall {
  readonly type: 'render';
  readonly offset: number;
  /** Id of the other template. */
  readonly id: string;
  readonly given: readonly { readonly name: string; readonly value: Literal | Reference }[];
  /** True on a line of its own, which ends with the other template's last line. */
  readonly isLine: boolean;
}

export interface TemplateProblem {
  /** Offset of the opening in the text. */
  readonly offset: number;
  readonly message: string;
}

/** A template of a module, ready for rendering. */
export interface CompiledTemplate {
  readonly id: string;
  readonly text: string;
  readonly parts: readonly Part[];
  /** All templates with an engine of the module, by id. */
  readonly others: ReadonlyMap<string, CompiledTemplate>;
}

/** Maximum depth of conditions and loops inside each other, and of templates that render others. */
export const MAX_NESTING = 32;

/** The place in a loop, as Liquid calls it. */
export const FORLOOP = 'forloop';

/** Returns everything that the parts name. */
export const referencesOfParts = (parts: readonly Part[]): readonly Reference[] => parts.flatMap(referencesOfPart);

function referencesOfPart(part: Part): readonly Reference[] {
  switch (part.type) {
    case 'text':
      return [];
    case 'print':
      return referencesOf(part.expression);
    case 'if': {
      const conditions = part.branches.flatMap(({ condition }) => referencesOfCondition(condition));
      return [...conditions, ...partsInside(part).flatMap(referencesOfPart)];
    }
    case 'for':
      return [...referencesOf(part.source), ...partsInside(part).flatMap(referencesOfPart)];
    case 'render':
      return part.given.flatMap(({ value }) => ('from' in value ? [value] : []));
  }
}

const partsInside = (part: Extract<Part, { readonly type: 'if' | 'for' }>): readonly Part[] =>
  part.type === 'for'
    ? [...part.parts, ...part.otherwise]
    : [...part.branches.flatMap(({ parts }) => parts), ...part.otherwise];

/** Returns the conditions of the parts, with the offsets of their tags. */
export const conditionsIn = (parts: readonly Part[]): readonly Pick<Branch, 'offset' | 'condition'>[] =>
  parts.flatMap((part) => {
    if (part.type !== 'if' && part.type !== 'for') return [];
    return [...(part.type === 'if' ? part.branches : []), ...conditionsIn(partsInside(part))];
  });

/** Returns the ids of the templates that the parts render. */
export const rendersIn = (parts: readonly Part[]): readonly string[] =>
  parts.flatMap((part): readonly string[] => {
    if (part.type === 'render') return [part.id];
    return part.type === 'if' || part.type === 'for' ? rendersIn(partsInside(part)) : [];
  });
