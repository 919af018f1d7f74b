/** Rows of secrets as the API shows them, and as parties of events. */
import type { Restriction, Secret } from '../../src/contract/secrets.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import type { Party } from '../core/domain-event.js';
import type { Belonging } from './keyring.js';
import type { SecretRow } from './secret-store.js';

export const secretParty = (name: string): Party => ({ id: name, name, type: 'secret' });

export const restrictionOf = ({ restriction_json }: Pick<SecretRow, 'restriction_json'>): Restriction | null =>
  restriction_json === null ? null : JSON.parse(restriction_json);

/** What a sealed value belongs to. */
export const belongingOf = ({ secret_id, name, row_version }: Omit<SecretRow, 'sealed'>): Belonging => ({
  recordId: secret_id,
  name,
  version: row_version,
});

export function secretView(row: Omit<SecretRow, 'sealed'>): Secret {
  const restriction = restrictionOf(row);
  return {
    name: row.name,
    description: row.description,
    expires_at: row.expires_at === null ? null : toTimestamp(row.expires_at),
    ...(restriction === null ? {} : { restriction: { ...restriction, node_ids: restriction.node_ids ?? [] } }),
    created_at: toTimestamp(row.created_at),
    created_by: row.created_by,
    updated_at: toTimestamp(row.updated_at),
    updated_by: row.updated_by,
  };
}

export const secretNotFound = (name: string): Fault =>
  new Fault('secret_not_found', `there is no secret "${name}"`, { hint: 'see what there is: orch secrets list' });
