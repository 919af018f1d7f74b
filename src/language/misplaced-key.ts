/** Keys that are right but stand one level too high or too low. */
import { TRIGGER_FIELDS } from '../resources/kind.js';
import type { KindSet } from './kind-set.js';
import { kindsMeant } from './meant-key.js';
import type { ShapeSchema } from './shape-schema.js';

const BESIDE_RESOURCE: ReadonlySet<string> = new Set(['id', 'name', 'depends_on', 'resource', 'variants', 'when']);

/** For a key inside a body or where a kind belongs: what to do when it belongs to the entry around it. */
export const besideResource = (key: string): string | null =>
  BESIDE_RESOURCE.has(key) ? `"${key}" belongs beside "resource", not below it` : null;

const BESIDE_VARIANTS: ReadonlySet<string> = new Set(['id', 'name', 'depends_on']);

/** For a key of an entry or a variant: what to do when it belongs to the body, the entry or the variant. */
export const belowResource =
  (kinds: KindSet) =>
  (key: string, { properties = {} }: ShapeSchema): string | null => {
    const has = (name: string) => Object.hasOwn(properties, name);
    if (!has('resource')) return null;
    if (kinds.has(key)) return `"${key}" belongs below a "resource:" of its own`;
    if (!BESIDE_RESOURCE.has(key) && kindsMeant(key, [...kinds.keys()]).length > 0) {
      return `"${key}" is no key of a resource; a kind stands below "resource:", such as ${kindsMeant(key, [...kinds.keys()])[0]}`;
    }
    if (has('when')) return BESIDE_VARIANTS.has(key) ? `"${key}" belongs beside "variants", not below it` : null;
    if (key === 'when') return '"when" belongs into an entry of "variants", beside its "resource"';
    const isTrigger = TRIGGER_FIELDS.some((field) => field === key);
    return isTrigger ? `"${key}" belongs into the body of a resource that can have it` : null;
  };
