/** The attributes that expressions may name, with their types, and their values for an agent. */
import type { PartedAttributes } from '../kernel/facts.js';
import { PACKAGES } from './parse-expression.js';
import {
  BOOLEAN,
  type FieldType,
  type MapType,
  NUMBER,
  TEXT,
  type Value,
  type ValueMap,
  type ValueType,
} from './values.js';

const TEXTS: ValueType = { type: 'list', of: TEXT };

const fields = (types: Readonly<Record<string, ValueType>>, optional: readonly string[]): MapType => ({
  type: 'map',
  fields: new Map(
    Object.entries(types).map(([name, type]): [string, FieldType] => [
      name,
      { type, optional: optional.includes(name) },
    ]),
  ),
  of: null,
  isDeclared: true,
});

const byName = (of: ValueType): ValueType => ({ type: 'map', fields: new Map(), of, isDeclared: true });

/** Types by name. Numbers that earlier releases reported as texts stay texts. */
const TYPES: Readonly<Record<string, ValueType>> = {
  platform: TEXT,
  arch: TEXT,
  distro: TEXT,
  version: TEXT,
  codename: TEXT,
  init_system: TEXT,
  hostname: TEXT,
  fqdn: TEXT,
  kernel: TEXT,
  cpus: TEXT,
  processors: NUMBER,
  memory_bytes: TEXT,
  memory_mb: NUMBER,
  virtualization: TEXT,
  timezone: TEXT,
  default_interface: TEXT,
  default_gateway: TEXT,
  default_ipv4: TEXT,
  default_ipv6: TEXT,
  interfaces: byName(fields({ mac: TEXT, ipv4: TEXTS, ipv6: TEXTS }, ['mac'])),
  disks: byName(fields({ size_mb: NUMBER, model: TEXT, rotational: BOOLEAN }, ['model'])),
  mounts: { type: 'list', of: fields({ path: TEXT, device: TEXT, type: TEXT, size_mb: NUMBER }, ['size_mb']) },
  packages: byName(TEXT),
};

/** Names of the attributes that an agent may report. */
export const ATTRIBUTE_NAMES: readonly string[] = Object.keys(TYPES);

/** Type of all attributes together; each may be missing. */
export const ATTRIBUTES: MapType = fields(TYPES, ATTRIBUTE_NAMES);

/** Facts that change by themselves, which an operator sees and no expression. */
export const VOLATILE_FACTS: readonly string[] = ['boot_time', 'free_mb'];

/** Returns the value of an attribute with its type; undefined for one that the agent lacks, or that has another type. */
export function attributeOf(
  attributes: Readonly<Record<string, string>>,
  parts: PartedAttributes | undefined,
  name: string,
): Value | undefined {
  if (name === 'interfaces' || name === 'disks' || name === 'mounts' || name === PACKAGES) {
    // The schema of the link has the types of these.
    return (parts?.[name] ?? undefined) as Value | undefined;
  }
  const text = Object.hasOwn(attributes, name) ? attributes[name] : undefined;
  if (text === undefined || TYPES[name]?.type !== 'number') return text;
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Returns all attributes of an agent with their types, in the order of their names. */
export function knownAttributes(attributes: Readonly<Record<string, string>>, parts: PartedAttributes): ValueMap {
  const names = [...new Set([...Object.keys(attributes), ...Object.keys(parts)])].sort();
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = attributeOf(attributes, parts, name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
