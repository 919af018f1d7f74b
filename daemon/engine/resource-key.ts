/** What makes a resource the same thing on a machine: its family and its identity in it. */
import { CATALOGUE } from '../../src/resources/catalogue.js';
import { MODULE_FAMILIES } from '../../src/resources/kind.js';

export interface ResourceKey {
  readonly family: string;
  /** Where identities belong to one module, its name stands in front. */
  readonly identity_key: string;
}

export interface ResourceAddress {
  readonly module: string;
  readonly kind: string;
  readonly identity: string;
}

export function resourceKey({ module, kind, identity }: ResourceAddress): ResourceKey {
  const family = CATALOGUE.get(kind)?.family;
  if (family === undefined) return { family: kind, identity_key: identity };
  return { family, identity_key: MODULE_FAMILIES.has(family) ? `${module}/${identity}` : identity };
}

/** The key as one string, for maps. */
export const keyText = ({ family, identity_key }: ResourceKey): string => `${family}\0${identity_key}`;
