/** The JSON Schema of the YAML configuration file, for editors (`orch serve --config-schema`). */
import { settingsSchema } from '../../src/kernel/settings-schema.js';
import { SETTINGS } from './settings.js';

export const configSchema = (): object =>
  settingsSchema(SETTINGS, { id: 'urn:orch:schema:serve-config:v1', title: 'Configuration of orch serve' });
