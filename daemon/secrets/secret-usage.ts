/** Reports the usage of a secret: modules that reference it, and agents with resources applied with it. */
import type { SecretUsage } from '../../src/contract/secrets.js';
import { toSeconds } from '../../src/kernel/clock.js';
import { isFault } from '../../src/kernel/fault.js';
import { finish } from '../../src/kernel/steps.js';
import type { ValueSet } from '../../src/language/inputs/value-set.js';
import type { ModuleDefinition } from '../../src/language/schema.js';
import { secretSteps } from '../../src/language/templates/module-templates.js';
import type { Core } from '../core/core.js';
import { jsonColumns } from '../database/json-columns.js';
import type { Queryable } from '../database/schema.js';
import type { Keyring } from './keyring.js';
import { findSecret, sealedRecordOf, secretNotFound } from './secret-store.js';

interface SecretUsageOptions extends Pick<Core, 'db'> {
  readonly keyring: Keyring;
}

/** Returns the usage of a secret. Throws `secret_not_found`. */
export async function secretUsage({ db, keyring }: SecretUsageOptions, name: string): Promise<SecretUsage> {
  const row = await findSecret(db, name);
  if (row === null) throw secretNotFound(name);
  const candidates = await definitionsWith(db, name);
  const modules = candidates.filter(
    ({ definition }) => finish(secretSteps(definition)).has(name) || namesSecret(definition.inputs, name),
  );
  const sets = (await setsWith(db, name)).filter(({ set }) => namesSecret(set.entries, name));
  const hash = currentHash();
  const agents = new Map<string, SecretUsage['agents'][number]>();
  for (const { node_id, agent_name, applied_at, secrets } of await appliedSecrets(db, name)) {
    const known = agents.get(node_id);
    const current = secrets?.[name] === hash && (known?.current ?? true);
    const newest = Math.max(toSeconds(applied_at), known?.applied_at ?? 0);
    agents.set(node_id, { node_id, name: agent_name, current, applied_at: newest });
  }
  return {
    name,
    modules: modules.map((module) => module.name),
    values: sets.map((one) => one.name),
    agents: [...agents.values()],
  };

  function currentHash(): string | null {
    try {
      return row === null ? null : keyring.hash(name, keyring.open(row, sealedRecordOf(row)));
    } catch (error) {
      if (isFault(error, 'secrets_locked')) return null;
      throw error;
    }
  }
}

interface NamedDefinition {
  readonly name: string;
  readonly definition: ModuleDefinition;
}

const moduleColumns = jsonColumns<Pick<NamedDefinition, 'definition'>>({ definition: true });

/** Returns the current module definitions that may contain a name, ordered by module name. Its `_` stands for any character here. */
async function definitionsWith(db: Queryable, name: string): Promise<readonly NamedDefinition[]> {
  const rows = await db
    .selectFrom('modules')
    .innerJoin('module_revisions as current', (join) =>
      join.onRef('modules.name', '=', 'current.name').onRef('modules.revision', '=', 'current.revision'),
    )
    .select(['current.name', 'current.definition_json'])
    .where('current.definition_json', 'like', `%${name}%`)
    .orderBy('current.name')
    .execute();
  return rows.map((row) => moduleColumns.decode(row));
}

interface NamedSet {
  readonly name: string;
  readonly set: ValueSet;
}

const setColumns = jsonColumns<Pick<NamedSet, 'set'>>({ set: true });

/** Returns the value sets that may contain a name, by name. */
async function setsWith(db: Queryable, name: string): Promise<readonly NamedSet[]> {
  const query = db.selectFrom('value_sets').select(['name', 'set_json']).where('set_json', 'like', `%${name}%`);
  return (await query.orderBy('name').execute()).map((row) => setColumns.decode(row));
}

/** Returns true if a value or a part of it is `{secret: NAME}`. */
function namesSecret(value: unknown, name: string): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return ('secret' in value && value.secret === name) || Object.values(value).some((part) => namesSecret(part, name));
}

/** Hashes of the secret values that a resource of an agent was applied with. */
interface AppliedSecrets {
  readonly node_id: string;
  readonly agent_name: string | null;
  /** Unix milliseconds. */
  readonly applied_at: number;
  /** Keyed hashes of the values, by secret name. */
  readonly secrets: Readonly<Record<string, string>> | null;
}

const appliedColumns = jsonColumns<Pick<AppliedSecrets, 'secrets'>>({ secrets: true });

/** Returns every applied resource that uses the secret, ordered by agent. */
async function appliedSecrets(db: Queryable, name: string): Promise<readonly AppliedSecrets[]> {
  const rows = await db
    .selectFrom('applied_resources')
    .innerJoin('agents', 'agents.node_id', 'applied_resources.node_id')
    .select(['applied_resources.node_id', 'agents.name as agent_name', 'applied_at', 'secrets_json'])
    .where('secrets_json', 'like', `%${JSON.stringify(name)}:%`)
    .orderBy('agents.name')
    .orderBy('applied_resources.node_id')
    .execute();
  // `like` treats `_` as a wildcard, and ignores case in SQLite, so the matches are checked exactly.
  return rows.map((row) => appliedColumns.decode(row)).filter(({ secrets }) => Object.hasOwn(secrets ?? {}, name));
}
