import { describe, expect, it } from 'vitest';
import { editSettings } from '../../src/settings/edit-settings.js';
import { SERVE_SETTINGS } from '../../src/settings/serve.js';
import { parseSettings } from '../../src/settings/yaml-settings.js';

const read = (source: string) => parseSettings(SERVE_SETTINGS, { source, path: 'orchestrator.yaml', hint: '' });

describe('settings are changed in a file', () => {
  it('and comments and other settings stay', () => {
    const before = '# ours\napi_host: 127.0.0.1 # for now\n\nlog:\n  level: debug\n';
    const after = editSettings(before, { api_host: '0.0.0.0', advertised_host: 'orch.home' });
    expect(after).toBe('# ours\napi_host: 0.0.0.0 # for now\n\nlog:\n  level: debug\nadvertised_host: orch.home\n');
  });

  it('that has none, or only comments', () => {
    expect(editSettings('', { api_port: 4000 })).toBe('api_port: 4000\n');
    expect(editSettings('# nothing yet\n', { api_port: 4000 })).toBe('# nothing yet\napi_port: 4000\n');
  });

  it('also in sections, which are made where they are missing or empty', () => {
    for (const before of ['', 'log:\n', '# log:\n', 'log:\n  format: json\n']) {
      expect(read(editSettings(before, { 'log.level': 'warn' }))).toMatchObject({ 'log.level': 'warn' });
    }
    expect(editSettings('', { 'log.level': 'warn', 'drift.enabled': false })).toBe(
      'log:\n  level: warn\ndrift:\n  enabled: false\n',
    );
  });

  it('and nothing is written when nothing changes', () => {
    const odd = 'api_host:    "::1"   # odd spaces\n';
    expect(editSettings(odd, { api_host: undefined })).toBe(odd);
  });

  it('with texts that mean something else in YAML', () => {
    for (const advertised_host of ['true', '1.5', 'a: b', '# c', "it's", '']) {
      expect(read(editSettings('', { advertised_host }))).toEqual({ advertised_host });
    }
  });
});
