/** The key of a resource on a machine: two resources with one key are the same thing. */
import { CATALOGUE } from './catalogue.js';
import { type Family, MODULE_FAMILIES, type ResourceAddress } from './kind.js';

/** A key in two parts: the family, and the identity in the family. */
interface KeyParts {
  readonly family: string;
  /** The identity, prefixed with the module name in families whose identities belong to one module. */
  readonly identity_key: string;
}

/** Returns the parts of a key. A kind that is not in the catalogue is its own family. */
export function keyParts({ module, kind, identity }: ResourceAddress): KeyParts {
  const family = CATALOGUE.get(kind)?.family;
  return family === undefined ? { family: kind, identity_key: identity } : partsIn(family, identity, module);
}

const partsIn = (family: Family, identity: string, module: string): KeyParts => ({
  family,
  identity_key: MODULE_FAMILIES.has(family) ? `${module}/${identity}` : identity,
});

/** Returns the key as one string, for maps. */
export const keyText = ({ family, identity_key }: KeyParts): string => `${family}\0${identity_key}`;

/** Returns the key of an identity in a family as one string. */
export const keyInFamily = (family: Family, identity: string, module: string): string =>
  keyText(partsIn(family, identity, module));

/** Returns the key of a resource as one string. */
export const resourceKey = (address: ResourceAddress): string => keyText(keyParts(address));
