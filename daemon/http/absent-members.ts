/** A member that is null and may be left out counts as left out, unless its null clears: handlers see one of the two only. */
import type { TSchema } from 'typebox';
import { NULL_CLEARS } from '../../src/kernel/schema.js';

/**
 * The value without such members, by its schema. Free-form maps are left as they are: there null is a value.
 * Unknown members stay, for the validator to refuse.
 */
export function withoutAbsent(schema: TSchema, value: unknown): unknown {
  const { properties, required, items } = branchOf(schema);
  if (Array.isArray(value)) return items ? value.map((item) => withoutAbsent(items, item)) : value;
  if (typeof value !== 'object' || value === null || !properties) return value;
  const kept = Object.entries(value).filter(
    ([name, member]) =>
      member !== null ||
      required?.includes(name) ||
      !Object.hasOwn(properties, name) ||
      Reflect.get(properties[name] ?? {}, NULL_CLEARS) === true,
  );
  return Object.fromEntries(
    kept.map(([name, member]) => {
      const inner = Object.hasOwn(properties, name) ? properties[name] : undefined;
      return [name, inner ? withoutAbsent(inner, member) : member];
    }),
  );
}

interface Branch {
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly required?: readonly string[];
  readonly items?: TSchema;
}

/** The schema itself, or what it is when it is not null; nothing is known of a choice between several. */
function branchOf(schema: TSchema): Branch {
  const union: { readonly anyOf?: readonly TSchema[] } = schema;
  if (!union.anyOf) return schema;
  const branches = union.anyOf.filter((branch) => !isNull(branch));
  return (branches.length === 1 ? branches[0] : undefined) ?? {};
}

const isNull = (schema: { readonly type?: unknown }): boolean => schema.type === 'null';
