/** Whatever people read or write of a setting derives from its one definition. */
import { describe, expect, it } from 'vitest';
import { serve, settingOptions } from '../../src/cli/commands/serve.js';
import { AGENT_SETTINGS } from '../../src/settings/agent.js';
import { loadSettings } from '../../src/settings/load-serve.js';
import { SERVE_SETTINGS } from '../../src/settings/serve.js';
import { defaultsOf, flatName, jsonSchemaOf, port, type SettingTable } from '../../src/settings/setting.js';
import { configurationPage } from '../support/reference-docs.js';

const schemaOf = (table: SettingTable) =>
  jsonSchemaOf(table, { id: 'urn:x', title: 'x' }) as {
    properties: Record<string, { default?: unknown; properties?: Record<string, { default?: unknown }> }>;
  };

describe('a default that changes', () => {
  const table = { ...SERVE_SETTINGS, api_port: port({ summary: SERVE_SETTINGS.api_port.summary, default: 5999 }) };

  it('changes in what is loaded, in the help, in the document and in the schema', () => {
    const sources = { flags: {}, env: {}, configFile: '/dev/null', isRoot: false };
    expect(loadSettings(sources, table).api_port).toBe(5999);
    expect(settingOptions(table).api_port?.summary).toContain('default: 5999');
    expect(configurationPage({ serve: table, agent: AGENT_SETTINGS })).toMatch(/^\| `api_port` .* `5999` /m);
    expect(schemaOf(table).properties.api_port?.default).toBe(5999);
  });
});

describe.each([
  ['orch serve', SERVE_SETTINGS],
  ['orch agent', AGENT_SETTINGS],
] as const)('the settings of %s', (program, settings: SettingTable) => {
  it('are all in the schema for editors, with their defaults', () => {
    const { properties } = schemaOf(settings);
    for (const [key, standard] of Object.entries(defaultsOf(settings))) {
      const [section, member] = key.split('.') as [string, string?];
      const found = member === undefined ? properties[section] : properties[section]?.properties?.[member];
      expect(found).toMatchObject({ default: standard, description: expect.stringMatching(/^[\p{Lu}]/u) });
    }
  });

  it('are all in the document', () => {
    const page = configurationPage();
    for (const key of Object.keys(settings)) expect(page, program).toContain(`| \`${key}\` |`);
  });
});

describe('orch serve', () => {
  it('has a flag for every setting', () => {
    const flags = Object.entries(serve.options).map(([key, { negative }]) => (negative ? `${key}_enabled` : key));
    for (const key of Object.keys(SERVE_SETTINGS)) expect(flags).toContain(flatName(key));
  });
});
