/** The resource kinds that a module may use, prepared once for validation and resolution. */
import type { TSchema } from 'typebox';
import { type Validator, validator } from '../kernel/validator.js';
import { type ResourceKind, TRIGGER_FIELDS, type TriggerField } from '../resources/kind.js';
import { admitExpressions } from './admit-expressions.js';
import { memberNames } from './shape-schema.js';

export interface KnownKind {
  readonly kind: ResourceKind;
  /** The body's schema with expressions admitted, as modules write it. */
  readonly schema: TSchema;
  readonly written: Validator<unknown>;
  /** Checks a body with every expression filled in. */
  readonly resolved: Validator<unknown>;
  readonly triggers: readonly TriggerField[];
  /** True when `template` may give the `content`. */
  readonly templated: boolean;
}

export type KindSet = ReadonlyMap<string, KnownKind>;

export function kindSet(catalogue: ReadonlyMap<string, ResourceKind>): KindSet {
  return new Map([...catalogue].map(([name, kind]) => [name, known(kind)]));
}

function known(kind: ResourceKind): KnownKind {
  const members = new Set(memberNames(kind.schema));
  const schema = admitExpressions(kind.schema);
  return {
    kind,
    schema,
    written: validator(schema),
    resolved: validator(kind.schema),
    triggers: TRIGGER_FIELDS.filter((field) => members.has(field)),
    templated: members.has('template') && members.has('content'),
  };
}

/** True for a body member that holds ids of the module, which are names and no text to fill in. */
export const isReference = (member: string, { templated, triggers }: KnownKind): boolean =>
  (templated && member === 'template') || triggers.some((field) => field === member);
