/** How secrets are shown. There is no value to show. */
import type { Secret, SecretUsage } from '../../../contract/secrets.js';
import { count, orNone } from '../../format.js';
import type { NameOfOperator } from '../../operator-names.js';
import { type FieldsView, fields, type TableView } from '../../view.js';

export const secretTable = (secrets: readonly Secret[], nameOf: NameOfOperator): TableView => ({
  kind: 'table',
  columns: [
    { title: 'SECRET', whole: true },
    { title: 'EXPIRES' },
    { title: 'ONLY FOR' },
    { title: 'UPDATED' },
    { title: 'BY' },
    { title: 'DESCRIPTION' },
  ],
  rows: secrets.map((secret) => [
    secret.name,
    orNone(shortTime(secret.expires_at)),
    orNone(restrictionText(secret.restriction)),
    shortTime(secret.updated_at),
    nameOf(secret.updated_by),
    orNone(secret.description),
  ]),
  empty: 'No secrets. Make one with: orch secrets set NAME',
});

export function secretFields(secret: Secret, nameOf: NameOfOperator): FieldsView {
  return fields(
    ['Secret', secret.name],
    ['Description', orNone(secret.description)],
    ['Expires', secret.expires_at === null ? 'never' : shortTime(secret.expires_at)],
    ['Only for', restrictionText(secret.restriction) || 'every approved agent'],
    ['Created', `${shortTime(secret.created_at)} by ${nameOf(secret.created_by)}`],
    ['Updated', `${shortTime(secret.updated_at)} by ${nameOf(secret.updated_by)}`],
  );
}

export const usageFields = ({ modules, agents }: SecretUsage): FieldsView =>
  fields(
    ['Modules', orNone(modules.join(', '))],
    [
      'Agents',
      orNone(
        agents.map(({ name, node_id, current }) => `${name ?? node_id}${current ? '' : ' (older value)'}`).join(', '),
      ),
    ],
  );

function restrictionText(restriction: Secret['restriction']): string {
  const { node_ids: nodes, tags } = restriction ?? { node_ids: [], tags: null };
  return [...(nodes.length === 0 ? [] : [count(nodes.length, 'agent')]), ...(tags === null ? [] : [tags])].join(
    ' and ',
  );
}

/** Without milliseconds. */
const shortTime = (timestamp: string | null): string => (timestamp ?? '').replace(/\.\d{3}Z$/, 'Z');
