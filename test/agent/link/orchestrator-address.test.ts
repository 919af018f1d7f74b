import { describe, expect, it } from 'vitest';
import { parseAddress } from '../../../src/agent/link/orchestrator-address.js';

describe('the address of an orchestrator', () => {
  it.each<[string, string, number]>([
    ['orch.example.org', 'orch.example.org', 4747],
    ['orch:1', 'orch', 1],
    ['10.0.0.1:65535', '10.0.0.1', 65_535],
    ['::1', '::1', 4747],
    ['fe80::1', 'fe80::1', 4747],
    ['[::1]', '::1', 4747],
    ['[2001:db8::1]:99', '2001:db8::1', 99],
  ])('may be %s', (text, host, port) => {
    expect(parseAddress(text)).toEqual({ host, port });
  });

  it.each(['', 'orch:', 'orch:0', 'orch:65536', 'orch:x', 'https://orch', 'a b', '[::1', '[::1]:', 'orch:1:2'])(
    'may not be %j',
    (text) => {
      expect(() => parseAddress(text)).toThrow(expect.objectContaining({ code: 'usage', hint: expect.any(String) }));
    },
  );
});
