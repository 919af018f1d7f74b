/** Keys that are right but stand one level too high or too low. */
import type { KindSet } from './kind-set.js';
import type { ShapeSchema } from './shape-schema.js';

const BESIDE_RESOURCE: ReadonlySet<string> = new Set(['id', 'name', 'depends_on', 'resource', 'variants', 'when']);

/** For a key inside a body or where a kind belongs: what to do when it belongs to the entry around it. */
export const besideResource = (key: string): string | null =>
  BESIDE_RESOURCE.has(key) ? `"${key}" belongs beside "resource", not below it` : null;

/** For a key of an entry or a variant: what to do when it is a kind. */
export const belowResource =
  (kinds: KindSet) =>
  (key: string, { properties = {} }: ShapeSchema): string | null =>
    kinds.has(key) && Object.hasOwn(properties, 'resource') ? `"${key}" belongs below a "resource:" of its own` : null;
