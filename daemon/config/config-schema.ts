/** The JSON Schema of the YAML configuration file, for editors (`orch serve --config-schema`). */
import { SETTING_KEYS, SETTINGS } from './settings.js';

export function configSchema(): object {
  const properties: Record<string, unknown> = {};
  for (const key of SETTING_KEYS) {
    const [section, member] = key.split('.') as [string, string?];
    if (member === undefined) {
      properties[section] = SETTINGS[key].schema;
      continue;
    }
    properties[section] ??= { type: 'object', additionalProperties: false, properties: {} };
    (properties[section] as { properties: Record<string, unknown> }).properties[member] = SETTINGS[key].schema;
  }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'urn:orch:schema:serve-config:v1',
    title: 'Configuration of orch serve',
    type: 'object',
    additionalProperties: false,
    properties,
  };
}
