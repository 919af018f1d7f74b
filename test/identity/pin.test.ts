import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readPin, requirePinned, writePin } from '../../src/identity/pin.js';
import { faultOf, newIdentity, temporaryDirectory } from '../support/identity.js';

const newPath = (): string => join(temporaryDirectory(), 'orchestrator.pub');
const { publicKey: key } = newIdentity();
const { publicKey: other } = newIdentity();

describe('a pin', () => {
  it('is absent until it is written, then holds', () => {
    const path = newPath();
    expect(readPin(path)).toBeNull();
    writePin(path, key);
    writePin(path, key);
    expect(readPin(path)).toBe(key);
    expect(statSync(path).mode & 0o7777).toBe(0o600);
  });

  it('is never replaced by another key', () => {
    const path = newPath();
    writePin(path, key);
    const { code, message, hint } = faultOf(() => writePin(path, other));
    expect(code).toBe('pin_mismatch');
    expect(message).toBe(`${path} pins ${key}, not ${other}`);
    expect(hint).toContain('orch agent repin');
    expect(readFileSync(path, 'utf8')).toBe(`${key}\n`);
  });

  it.each(['', 'garbage', '00'.repeat(32)])('that is damaged is a fault, not a missing one (%j)', (content) => {
    const path = newPath();
    writeFileSync(path, content, { mode: 0o600 });
    expect(faultOf(() => readPin(path))).toMatchObject({
      code: 'key_invalid',
      message: `${path} holds no usable key`,
      hint: expect.stringContaining('orch agent repin'),
    });
    expect(faultOf(() => writePin(path, key)).code).toBe('key_invalid');
  });

  it('that others can write is refused', () => {
    const path = newPath();
    writePin(path, key);
    chmodSync(path, 0o622);
    expect(faultOf(() => readPin(path)).code).toBe('key_permissions');
  });

  it('turns away every other key', () => {
    requirePinned(key, key, 'orch.example.net:4747');
    expect(faultOf(() => requirePinned(key, other, 'orch.example.net:4747'))).toMatchObject({
      code: 'pin_mismatch',
      message: `orch.example.net:4747 shows the key ${other}, but ${key} is pinned`,
    });
  });
});
