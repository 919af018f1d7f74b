/** Inputs of a module: the values that it takes from outside, with their types and what they must keep to. */
import type { TSchema } from 'typebox';
import type { Pattern } from '../../kernel/pattern.js';
import type { Value, ValueType } from '../values.js';

export const INPUT_TYPES = ['string', 'integer', 'number', 'boolean', 'list', 'map', 'object'] as const;
export type InputType = (typeof INPUT_TYPES)[number];

/** Pattern of the names of inputs and of their fields. */
export const INPUT_NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_-]{0,127}$';

/** An input, the elements of one, or a field of them. */
export interface Input {
  readonly declared: InputType;
  readonly description: string | null;
  /** Its type in expressions. */
  readonly type: ValueType;
  /** Schema of a value, without the pattern and the number of members. */
  readonly schema: TSchema;
  readonly isSecret: boolean;
  /** True if a value may be missing, which then equals only `nil`. */
  readonly isOptional: boolean;
  /** True if values of different places are merged. */
  readonly isMerged: boolean;
  /** Value without any other, as it is used and as it is written; undefined for none. */
  readonly standard: { readonly value: Value; readonly written: unknown } | undefined;
  readonly pattern: Pattern | null;
  readonly minItems: number;
  readonly maxItems: number;
  /** Elements of a list or a map; null for other types. */
  readonly of: Input | null;
  /** Fields of an object; null for other types. */
  readonly fields: Inputs | null;
}

/** Inputs or fields by name. */
export type Inputs = ReadonlyMap<string, Input>;

export const NO_INPUTS: Inputs = new Map();
