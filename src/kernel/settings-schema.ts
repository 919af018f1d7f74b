/** The JSON Schema of a YAML file of settings, for editors. */
import type { SettingTable } from './settings-file.js';

export interface SettingsSchema {
  /** `urn:…` */
  readonly id: string;
  readonly title: string;
}

export function settingsSchema(table: SettingTable, { id, title }: SettingsSchema): object {
  const properties: Record<string, unknown> = {};
  for (const [key, { schema }] of Object.entries(table)) {
    const [section, member] = key.split('.') as [string, string?];
    if (member === undefined) {
      properties[section] = schema;
      continue;
    }
    properties[section] ??= { type: 'object', additionalProperties: false, properties: {} };
    (properties[section] as { properties: Record<string, unknown> }).properties[member] = schema;
  }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: id,
    title,
    type: 'object',
    additionalProperties: false,
    properties,
  };
}
