/** Facts of an agent beside its attributes: what its system has in parts, and facts of one's own. */
import * as Type from 'typebox';
import type { JsonValue } from './json.js';
import { closed, nullable, optional } from './schema.js';

/** Limits of facts. The agent refuses what exceeds them, and the orchestrator checks again. */
export const FACT_LIMITS = {
  /** Facts of one's own of one agent. */
  count: 64,
  /** Bytes of the JSON of one fact. */
  bytes: 32 * 1024,
  /** Bytes of the JSON of all facts of one's own. */
  total: 128 * 1024,
  depth: 8,
  /** Members of one mapping or list. */
  width: 256,
  /** Values in one fact. */
  values: 2_000,
  /** Interfaces, disks and mounts, and addresses of one interface. */
  parts: 64,
  /** Packages whose versions one agent reports. */
  packages: 256,
  /** Characters of the reason why a fact has no value. */
  reason: 512,
} as const;

/** Names of facts of one's own, as modules write them after `facts.`. */
export const FACT_NAME = /^[A-Za-z_][\w-]{0,63}$/;

/** Names of packages whose versions modules read. None is an option or a pattern of a package manager. */
export const PACKAGE_NAME = /^[A-Za-z0-9][\w.+-]{0,127}$/;

const text = (maxLength: number) => Type.String({ maxLength });
const megabytes = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const named = <T extends Type.TSchema>(schema: T) =>
  Type.Record(Type.String({ pattern: '^.{1,256}$' }), schema, {
    maxProperties: FACT_LIMITS.parts,
    additionalProperties: false,
  });
const addresses = Type.Array(text(64), { maxItems: FACT_LIMITS.parts });

/** Versions of installed packages by name. */
export const PackageVersionsSchema = Type.Record(Type.String({ pattern: PACKAGE_NAME.source }), text(256), {
  maxProperties: FACT_LIMITS.packages,
  additionalProperties: false,
});
export type PackageVersions = Type.Static<typeof PackageVersionsSchema>;

/** Attributes that have parts. Members are absent where the system does not say them. */
export const PartedAttributesSchema = closed({
  interfaces: optional(named(closed({ mac: Type.Optional(text(64)), ipv4: addresses, ipv6: addresses }))),
  disks: optional(named(closed({ size_mb: megabytes, model: Type.Optional(text(256)), rotational: Type.Boolean() }))),
  mounts: optional(
    Type.Array(closed({ path: text(4_096), device: text(4_096), type: text(64), size_mb: Type.Optional(megabytes) }), {
      maxItems: FACT_LIMITS.parts,
    }),
  ),
  /** Absent in reports of facts: an agent reports versions apart, as the orchestrator asks for them. */
  packages: optional(PackageVersionsSchema),
});
export type PartedAttributes = Type.Static<typeof PartedAttributesSchema>;

/** Facts that change by themselves, so that no expression may name them. */
export const VolatileFactsSchema = closed({
  boot_time: optional(Type.Integer({ minimum: 0, description: 'Unix time in seconds of the last boot' })),
  free_mb: optional({ ...named(megabytes), description: 'Free megabytes of each mounted file system, by its path' }),
});
export type VolatileFacts = Type.Static<typeof VolatileFactsSchema>;

/** One fact of one's own: its value, or the reason why it has none. */
const OwnFactSchema = closed({
  value: Type.Optional(Type.Unknown()),
  error: nullable(text(FACT_LIMITS.reason)),
});

export const OwnFactsSchema = Type.Record(Type.String({ pattern: FACT_NAME.source }), OwnFactSchema, {
  maxProperties: FACT_LIMITS.count,
  additionalProperties: false,
});
export type OwnFacts = Type.Static<typeof OwnFactsSchema>;

/**
 * Returns the value without nulls in mappings, which mean the same as absent members; or why it cannot be a fact.
 * @param value parsed JSON
 */
export function factValue(value: unknown): { readonly value: JsonValue } | { readonly error: string } {
  const bounded = new Bounded();
  const kept = bounded.take(value, 1);
  if (bounded.problem !== null) return { error: bounded.problem };
  if (kept === undefined) return { error: 'it is null, and a fact has a value' };
  return { value: kept };
}

class Bounded {
  problem: string | null = null;
  private count = 0;

  /** Returns undefined for null, and after a problem. */
  take(value: unknown, depth: number): JsonValue | undefined {
    if (this.problem !== null || value === null || value === undefined) return undefined;
    this.count += 1;
    if (this.count > FACT_LIMITS.values) return this.fail(`it has more than ${FACT_LIMITS.values} values`);
    if (typeof value === 'string') {
      return value.includes('\0') ? this.fail('a text in it has a NUL character') : value;
    }
    if (typeof value === 'boolean') return value;
    if (typeof value === 'number') {
      const isExact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
      return isExact ? value : this.fail('a number in it is too large');
    }
    if (typeof value !== 'object') return this.fail('it is no JSON');
    if (depth > FACT_LIMITS.depth) return this.fail(`it is deeper than ${FACT_LIMITS.depth} levels`);
    return Array.isArray(value) ? this.list(value, depth) : this.mapping(value, depth);
  }

  private list(items: readonly unknown[], depth: number): JsonValue | undefined {
    if (items.length > FACT_LIMITS.width) return this.fail(`a list in it has more than ${FACT_LIMITS.width} elements`);
    if (items.includes(null)) return this.fail('a list in it holds null');
    const kept = items.map((item) => this.take(item, depth + 1));
    return this.problem === null ? kept.filter((item) => item !== undefined) : undefined;
  }

  private mapping(value: object, depth: number): JsonValue | undefined {
    const members = Object.entries(value);
    if (members.length > FACT_LIMITS.width) {
      return this.fail(`a mapping in it has more than ${FACT_LIMITS.width} members`);
    }
    const kept: [string, JsonValue][] = [];
    for (const [name, member] of members) {
      if (name.length > 128 || name === '') return this.fail('a name in it is empty or longer than 128 characters');
      const taken = this.take(member, depth + 1);
      if (taken !== undefined) kept.push([name, taken]);
    }
    return this.problem === null ? Object.fromEntries(kept) : undefined;
  }

  private fail(problem: string): undefined {
    this.problem ??= problem;
  }
}
