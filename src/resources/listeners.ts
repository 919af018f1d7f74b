/**
 * Listeners of a resource: the resources whose triggers named it when it was last applied. They are stored, because one edit
 * of a module may drop both a resource and its name in a trigger.
 */
import * as Type from 'typebox';
import type { DesiredResource, Removal } from './desired.js';
import { type ResourceAddress, TRIGGER_FIELDS } from './kind.js';
import { resourceKey } from './resource-key.js';

export const ListenerSchema = Type.Object(
  {
    module: Type.String({ maxLength: 128 }),
    kind: Type.String({ maxLength: 64 }),
    identity: Type.String({ maxLength: 8192 }),
    /** Trigger, such as `reload_on`. */
    field: Type.Enum(TRIGGER_FIELDS),
  },
  { additionalProperties: false },
);

/** A resource that reacts, and its trigger. */
export type Listener = Type.Static<typeof ListenerSchema>;

/** Returns the listeners of each resource by its position; resources without any are left out. */
export function listenersOf(resources: readonly DesiredResource[]): ReadonlyMap<number, readonly Listener[]> {
  const listeners = new Map<number, Listener[]>();
  for (const { module, kind, identity, triggers } of resources) {
    for (const field of triggers === undefined ? [] : TRIGGER_FIELDS) {
      for (const position of triggers?.[field] ?? []) {
        // Positions beyond the resources are those of removals.
        if (position >= resources.length) continue;
        const listener = { module, kind, identity, field };
        const known = listeners.get(position);
        if (known === undefined) listeners.set(position, [listener]);
        else known.push(listener);
      }
    }
  }
  return listeners;
}

/**
 * Returns the resources with the removals among their triggers: positions of removals follow those of the resources.
 * @param listeners of a removal when it was last applied
 */
export function withRemovalTriggers(
  resources: readonly DesiredResource[],
  removals: readonly Removal[],
  listeners: (removal: Removal) => readonly Listener[],
): readonly DesiredResource[] {
  const reactions = new Map<string, { field: Listener['field']; position: number }[]>();
  for (const [index, removal] of removals.entries()) {
    for (const listener of listeners(removal)) {
      const key = keyOf(listener);
      const reaction = { field: listener.field, position: resources.length + index };
      const known = reactions.get(key);
      if (known === undefined) reactions.set(key, [reaction]);
      else known.push(reaction);
    }
  }
  if (reactions.size === 0) return resources;
  return resources.map((resource) => {
    const own = reactions.get(keyOf(resource));
    if (own === undefined) return resource;
    const triggers: Record<string, number[]> = { ...resource.triggers };
    for (const { field, position } of own) triggers[field] = [...(triggers[field] ?? []), position];
    return { ...resource, triggers };
  });
}

/** Returns the resources without removals among their triggers, for an apply that does not remove the same. */
export const withoutRemovalTriggers = (resources: readonly DesiredResource[]): readonly DesiredResource[] =>
  resources.map((resource) => {
    const { triggers, ...rest } = resource;
    const all = Object.entries(triggers ?? {});
    if (all.every(([, positions]) => positions.every((position) => position < resources.length))) return resource;
    const kept = all.map(([field, positions]) => [field, positions.filter((one) => one < resources.length)] as const);
    const some = kept.filter(([, positions]) => positions.length > 0);
    return some.length === 0 ? rest : { ...rest, triggers: Object.fromEntries(some) };
  });

/** A resource of another kind under the same key is not the listener. */
const keyOf = (address: ResourceAddress): string => `${address.kind}\0${resourceKey(address)}`;
