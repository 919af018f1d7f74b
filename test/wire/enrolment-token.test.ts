import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import { agentDecoder } from '../../src/wire/codec.js';
import { formatEnrolmentToken, parseEnrolmentToken } from '../../src/wire/enrolment-token.js';
import { HELLO } from '../support/fleet.js';

const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 });
const token = fc.record({
  id: fc.constant('01JQ2Z6T0V5X8Y4M3N7P9R1S2T'),
  secret: bytes.map((array) => Buffer.from(array)),
  orchestratorKey: bytes.map((array) => Buffer.from(array).toString('hex') as PublicKeyHex),
});

describe('an enrolment token', () => {
  it('is read as it was written, and may stand in hello', () => {
    const decode = agentDecoder();
    fc.assert(
      fc.property(token, (one) => {
        const text = formatEnrolmentToken(one);
        expect(parseEnrolmentToken(text)).toEqual(one);
        expect(text).toMatch(/^[A-Za-z0-9._-]{129}$/);
        expect(decode(JSON.stringify({ ...HELLO, enrolment_token: text }))).toMatchObject({ enrolment_token: text });
      }),
    );
  });

  it('has one spelling: no other text is the same token', () => {
    fc.assert(
      fc.property(token, fc.nat(128), fc.string({ unit: 'grapheme', maxLength: 2 }), (one, at, other) => {
        const text = formatEnrolmentToken(one);
        const changed = text.slice(0, at) + other + text.slice(at + 1);
        if (changed !== text) expect(parseEnrolmentToken(changed)).not.toEqual(one);
      }),
    );
  });

  it.each(['', 'orch-enroll-v1', 'x', `orch-enroll-v1.${'A'.repeat(115)}`, 'orch-enroll-v1...'])(
    'is not %j, and an agent that says so is cut off',
    (text) => {
      expect(parseEnrolmentToken(text)).toBeNull();
      const hello = () => agentDecoder()(JSON.stringify({ ...HELLO, enrolment_token: text }));
      expect(hello).toThrow('a malformed hello message');
    },
  );

  it('is not shown in what is said about a malformed hello', () => {
    const secret = 's3cr3t'.repeat(7);
    const hello = () => agentDecoder()(JSON.stringify({ ...HELLO, enrolment_token: `orch-enroll-v1.x.${secret}` }));
    expect(hello).toThrow(/^(?!.*s3cr3t)/);
  });
});
