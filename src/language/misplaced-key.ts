/** Keys that are right but stand one level too high or too low. */
import { TRIGGER_FIELDS } from '../resources/kind.js';
import type { KindSet } from './kind-set.js';
import type { Located } from './located.js';
import { kindsMeant } from './meant-key.js';
import type { MistakeList } from './mistake.js';
import type { ShapeSchema } from './shape-schema.js';

const BESIDE_RESOURCE: ReadonlySet<string> = new Set(['id', 'name', 'depends_on', 'resource', 'variants', 'when']);

/** For a key inside a body or where a kind belongs: what to do when it belongs to the entry around it. */
export const besideResource = (key: string): string | null =>
  BESIDE_RESOURCE.has(key) ? `"${key}" belongs beside "resource", not below it` : null;

/** The module with kinds below the empty `resource:` that they stand beside; each is reported. */
export function withIndentedKinds(root: Located, kinds: KindSet, mistakes: MistakeList): Located {
  return mapItems(root, 'resources', '', (entry, path) =>
    mapItems(indentKind(entry, path), 'variants', path, indentKind),
  );

  function indentKind(node: Located, path: string): Located {
    if (node.type !== 'map') return node;
    const resource = node.members.get('resource');
    const isEmpty = resource?.value.type === 'scalar' && resource.value.raw === '';
    const beside = [...node.members].filter(([name]) => kinds.has(name));
    const [first] = beside;
    if (!resource || !isEmpty || first === undefined) return node;
    const [name, { key }] = first;
    mistakes.error('misplaced_key', `"${name}" belongs below "resource": indent it by two more spaces`, path, key);
    const kept = [...node.members].filter(([member]) => !kinds.has(member) && member !== 'resource');
    const value: Located = { type: 'map', members: new Map(beside), start: key.start, end: key.start };
    return { ...node, members: new Map([...kept, ['resource', { key: resource.key, value }]]) };
  }
}

function mapItems(
  node: Located,
  name: string,
  path: string,
  change: (item: Located, path: string) => Located,
): Located {
  const list = node.type === 'map' ? node.members.get(name) : undefined;
  if (node.type !== 'map' || list?.value.type !== 'list') return node;
  const items = list.value.items.map((item, index) => change(item, `${path}/${name}/${index}`));
  if (items.every((item, index) => item === (list.value.type === 'list' ? list.value.items[index] : null))) return node;
  return { ...node, members: new Map(node.members).set(name, { key: list.key, value: { ...list.value, items } }) };
}

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
